package hub

import (
	"slices"
	"sync"

	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// announcement is how far a subscriber's subscriptions have been announced. The roster's lock protects it.
type announcement uint8

const (
	// absent: nobody has heard of the subscriptions.
	absent announcement = iota
	// waiting: they have begun, and nobody has been told yet.
	waiting
	// announced: others have been told, or are being told, that they began.
	announced
	// departed: they have ended, and what was to be announced of them is in the queue or out.
	departed
	// unheard: they have ended, and nobody hears of them.
	unheard
)

// waitingMost bounds the subscriptions that wait to be announced. Beyond it the beginning of one that is still open waits as well, and the end of
// one that was announced, but not what came and went meanwhile.
const waitingMost = 1 << 16

// change is a beginning or an end that is to be announced.
type change struct {
	sub    *Subscriber
	active bool
}

// matcherKey identifies a matcher as its subscriber sent it: the wildcard has as many as there are types.
type matcherKey struct {
	typ     topic.Type
	pattern string
}

func keyOf(m *topic.Matcher) matcherKey { return matcherKey{typ: m.Type(), pattern: m.Pattern()} }

// members are the subscribers with one matcher. Most matchers have few, and those with one need no map.
type members struct {
	one  *Subscriber
	more *table[string, *Subscriber] // by id; nil while there is one
}

// roster knows which subscriptions are active on this node, and what of that is still to be announced. It knows of a
// subscription before the event of its beginning is stored, and has forgotten it before that of its end is: so a list that is made
// after an event was stored contains its effect. Shards and Subscribe wait for its lock, so nobody has it for longer than it takes to copy pointers.
type roster struct {
	// wake has capacity 1 and is never closed; a token in it says that there may be changes.
	wake chan struct{}

	// mu protects the fields below, and the announcement and the rank of each subscriber.
	mu          sync.Mutex
	subscribers []*Subscriber // with active subscriptions, each at its rank
	members     table[matcherKey, members]
	queue       []change
	head        int  // of the queue: those before it have been taken
	void        int  // changes in the queue whose subscriber is unheard
	waiting     int  // subscriptions that the others in the queue are about
	failing     bool // nothing can be announced at the moment
	closed      bool // nothing is announced any more
}

func newRoster() *roster {
	return &roster{wake: make(chan struct{}, 1), members: newTable[matcherKey, members]()}
}

// begin takes the subscriptions of a stream in, unless it has ended already. A roster that is nil does nothing.
func (r *roster) begin(s *Subscriber) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.announcement != absent {
		return
	}
	s.announcement = waiting
	s.rank = len(r.subscribers)
	r.subscribers = append(r.subscribers, s)
	for _, m := range s.matchers {
		r.members.set(keyOf(m), r.members.m[keyOf(m)].with(s))
	}
	r.push(change{sub: s, active: true})
}

// end strikes the subscriptions of a stream off. A roster that is nil does nothing.
func (r *roster) end(s *Subscriber) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before := s.announcement
	if before != unheard {
		s.announcement = departed
	}
	if before != waiting && before != announced {
		return
	}
	r.leave(s)
	for _, m := range s.matchers {
		r.strike(keyOf(m), s)
	}
	if before == waiting && !r.closed && (r.failing || r.waiting > waitingMost) {
		// It came and went while nobody could be told. So what waits is bounded by the streams that others know of or that are open.
		s.announcement = unheard
		r.waiting -= len(s.matchers)
		r.void++
		r.tidy()
		return
	}
	r.push(change{sub: s})
}

// leave takes a subscriber from all of them, and gives the list's memory back once it has shrunk to a quarter.
func (r *roster) leave(s *Subscriber) {
	last := len(r.subscribers) - 1
	r.subscribers[s.rank] = r.subscribers[last]
	r.subscribers[s.rank].rank = s.rank
	r.subscribers[last] = nil
	r.subscribers = r.subscribers[:last]
	if cap(r.subscribers) > tableMin && last < cap(r.subscribers)/4 {
		r.subscribers = append(make([]*Subscriber, 0, 2*last), r.subscribers...)
	}
}

// strike takes a subscriber from those with a matcher.
func (r *roster) strike(key matcherKey, s *Subscriber) {
	set := r.members.m[key]
	if set.more == nil {
		r.members.remove(key)
		return
	}
	set.more.remove(s.id)
	if len(set.more.m) == 1 {
		for _, last := range set.more.m {
			r.members.set(key, members{one: last})
		}
	}
}

// with returns the members and s.
func (m members) with(s *Subscriber) members {
	switch {
	case m.more != nil:
		m.more.set(s.id, s)
	case m.one == nil:
		m.one = s
	default:
		more := newTable[string, *Subscriber]()
		more.set(m.one.id, m.one)
		more.set(s.id, s)
		m.one, m.more = nil, &more
	}
	return m
}

func (r *roster) push(c change) {
	if r.closed {
		return
	}
	r.queue = append(r.queue, c)
	r.waiting += len(c.sub.matchers)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// close lets go of what waits: nothing is announced any more.
func (r *roster) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.queue, r.head, r.void, r.waiting = nil, 0, 0, 0
}

// tidy drops the changes that nobody hears of once they are more than half.
func (r *roster) tidy() {
	if r.void <= (len(r.queue)-r.head)/2 {
		return
	}
	kept := r.queue[:0]
	for _, c := range r.queue[r.head:] {
		if c.sub.announcement != unheard {
			kept = append(kept, c)
		}
	}
	clear(r.queue[len(kept):])
	r.queue, r.head, r.void = kept, 0, 0
}

// take moves the oldest changes that are to be announced to dst, no more than limit, and tells whether there may be others.
func (r *roster) take(dst []change, limit int) (changes []change, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.head < len(r.queue) && len(dst) < limit {
		c := r.queue[r.head]
		r.queue[r.head] = change{}
		r.head++
		switch c.sub.announcement {
		case unheard:
			r.void--
			continue
		case waiting:
			c.sub.announcement = announced
		case absent, announced, departed:
		}
		r.waiting -= len(c.sub.matchers)
		dst = append(dst, c)
	}
	switch {
	case r.head == len(r.queue):
		r.queue, r.head = r.queue[:0], 0
		if cap(r.queue) > keptMessages {
			r.queue = nil
		}
	case r.head > len(r.queue)/2:
		n := copy(r.queue, r.queue[r.head:])
		clear(r.queue[n:])
		r.queue, r.head = r.queue[:n], 0
	}
	return dst, len(r.queue) > 0
}

// setFailing notes whether anything can be announced.
func (r *roster) setFailing(failing bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing = failing
}

// listed is a subscription on the roster.
type listed struct {
	sub     *Subscriber
	matcher *topic.Matcher
}

// list returns the subscriptions with a matcher, or all; of one subscriber, or of all. They are in no order.
func (r *roster) list(key *matcherKey, subscriber string) []listed {
	subscribers := r.candidates(key, subscriber)
	all := make([]listed, 0, len(subscribers))
	for _, s := range subscribers {
		if subscriber != "" && s.id != subscriber {
			continue
		}
		for _, m := range s.matchers {
			if key == nil || keyOf(m) == *key {
				all = append(all, listed{sub: s, matcher: m})
			}
		}
	}
	return all
}

// candidates returns the subscribers with a matcher, or all; others than the one asked for may be among them.
func (r *roster) candidates(key *matcherKey, subscriber string) []*Subscriber {
	r.mu.Lock()
	defer r.mu.Unlock()
	if key == nil {
		return slices.Clone(r.subscribers)
	}
	set := r.members.m[*key]
	switch {
	case set.one != nil:
		return []*Subscriber{set.one}
	case set.more == nil:
		return nil
	case subscriber != "":
		if s := set.more.get(subscriber); s != nil {
			return []*Subscriber{s}
		}
		return nil
	}
	all := make([]*Subscriber, 0, len(set.more.m))
	for _, s := range set.more.m {
		all = append(all, s)
	}
	return all
}
