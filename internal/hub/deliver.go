package hub

import (
	"slices"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// readers is the subscribers of a shard that share a grant set.
type readers struct {
	set         *grantSet
	subscribers []*Subscriber
	// checked is the entry for which it was decided last whether the set may read it; allowed is what came out.
	checked history.Position
	allowed bool
}

// deliver queues an entry for the subscribers of the shard that want it and may read it.
func (s *shard) deliver(m *message) {
	if m.private {
		s.deliverPrivate(m)
		return
	}
	for _, id := range m.ids {
		for _, sub := range s.routes.get(id) {
			s.offer(sub, m.frame)
		}
	}
}

// deliverPrivate goes by whichever is less: those who want the entry, or those who may read it.
func (s *shard) deliverPrivate(m *message) {
	wanting := 0
	for _, id := range m.ids {
		wanting += len(s.routes.get(id))
	}
	if s.readersExceed(m.ids, wanting) {
		s.deliverByRoute(m)
		return
	}
	for _, id := range m.ids {
		for _, r := range s.readable.get(id) {
			if r.checked == m.frame.pos {
				continue
			}
			r.checked, r.allowed = m.frame.pos, true
			for _, sub := range r.subscribers {
				if intersect(sub.registration.routes, m.ids) {
					s.offer(sub, m.frame)
				}
			}
		}
	}
}

// readersExceed tells whether more than n subscribers may read by one of the matchers, some counted twice.
func (s *shard) readersExceed(ids []topic.MatcherID, n int) bool {
	for _, id := range ids {
		for _, r := range s.readable.get(id) {
			if n -= len(r.subscribers); n < 0 {
				return true
			}
		}
	}
	return false
}

func (s *shard) deliverByRoute(m *message) {
	for _, id := range m.ids {
		for _, sub := range s.routes.get(id) {
			r := sub.readers
			if r == nil {
				continue
			}
			if r.checked != m.frame.pos {
				r.checked, r.allowed = m.frame.pos, intersect(r.set.ids, m.ids)
			}
			if r.allowed {
				s.offer(sub, m.frame)
			}
		}
	}
}

// intersect tells whether two sorted lists have an element in common.
func intersect(a, b []topic.MatcherID) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	for _, id := range a {
		i, found := slices.BinarySearch(b, id)
		if found {
			return true
		}
		b = b[i:]
	}
	return false
}

// offer queues the entry unless the subscriber has it already.
func (s *shard) offer(sub *Subscriber, f *frame) {
	if f.pos <= sub.seen {
		return
	}
	sub.seen = f.pos
	s.delivered++
	if sub.phase == closingGap {
		sub.held = append(sub.held, f)
		sub.heldFor += f.cost()
	} else {
		s.push(sub, f)
	}
	s.touch(sub)
	if !sub.urgent && (sub.stuck() && s.overflows(sub) || !sub.stuck() && sub.queued >= maxWrite) {
		sub.urgent = true
		s.urgent = append(s.urgent, sub)
	}
}

// stuck tells whether nothing can be written now, so that what comes has to wait.
func (s *Subscriber) stuck() bool {
	return s.blocked || s.sink == nil || s.phase == closingGap
}

// relieveUrgent shortens the queues that an entry has made too long. It runs between entries, for it may change the
// lists by which an entry finds its subscribers.
func (s *shard) relieveUrgent() {
	for _, sub := range s.urgent {
		sub.urgent = false
		if sub.stuck() {
			s.fallBack(sub)
		} else {
			s.write(sub)
		}
	}
	clear(s.urgent)
	s.urgent = s.urgent[:0]
}

// listen puts a registered subscriber where entries find it.
func (s *shard) listen(sub *Subscriber) {
	reg := sub.registration
	sub.places = make([]int, len(reg.routes))
	for i, id := range reg.routes {
		list := s.routes.get(id)
		sub.places[i] = len(list)
		s.routes.set(id, append(list, sub))
	}
	if reg.grants == nil {
		return
	}
	r := s.sets.get(reg.grants)
	if r == nil {
		r = &readers{set: reg.grants}
		s.sets.set(reg.grants, r)
		for _, id := range reg.grants.ids {
			s.readable.set(id, append(s.readable.get(id), r))
		}
	}
	sub.readers, sub.place = r, len(r.subscribers)
	r.subscribers = append(r.subscribers, sub)
}

// unregister takes a subscriber away from where entries find it and gives its registration back.
func (s *shard) unregister(sub *Subscriber) {
	if sub.registration == nil {
		return
	}
	for i, id := range sub.registration.routes {
		list := s.routes.get(id)
		last := len(list) - 1
		moved := list[last]
		list[sub.places[i]] = moved
		if at, found := slices.BinarySearch(moved.registration.routes, id); found {
			moved.places[at] = sub.places[i]
		}
		list[last] = nil
		if last == 0 {
			s.routes.remove(id)
		} else {
			s.routes.set(id, list[:last])
		}
	}
	if r := sub.readers; r != nil {
		last := len(r.subscribers) - 1
		moved := r.subscribers[last]
		r.subscribers[sub.place], moved.place = moved, sub.place
		r.subscribers[last] = nil
		r.subscribers = r.subscribers[:last]
		sub.readers = nil
		if last == 0 {
			s.forgetSet(r)
		}
	}
	sub.places = nil
	s.dropRegistration(sub)
}

// forgetSet removes a grant set that no subscriber of the shard has any more.
func (s *shard) forgetSet(r *readers) {
	s.sets.remove(r.set)
	for _, id := range r.set.ids {
		list := s.readable.get(id)
		if len(list) == 1 {
			s.readable.remove(id)
			continue
		}
		i := slices.Index(list, r)
		last := len(list) - 1
		list[i], list[last] = list[last], nil
		s.readable.set(id, list[:last])
	}
}

// dropRegistration has the dispatcher take the registration back.
func (s *shard) dropRegistration(sub *Subscriber) {
	s.orders.put(order{sub: sub, leave: sub.registration})
	sub.registration = nil
}
