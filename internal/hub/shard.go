package hub

import (
	"context"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

const (
	// maxInbox bounds the bytes of entries on their way to a shard.
	maxInbox = 8 << 20
	// visitsPerStep bounds how many timed visits a shard makes before it looks for new entries.
	visitsPerStep = 256
	// idleWait is the longest a shard sleeps; nothing depends on it.
	idleWait = time.Hour
)

// messageKind is what a message to a shard is about.
type messageKind uint8

const (
	deliverMessage  messageKind = iota // the dispatcher: an entry
	joinMessage                        // the dispatcher: a subscriber is registered
	resetMessage                       // the dispatcher: positions have lost their meaning
	openMessage                        // Subscribe: a subscriber exists
	startMessage                       // Subscribe: where it starts
	attachMessage                      // Attach
	discardMessage                     // Discard
	writableMessage                    // a sink: more fits
	goneMessage                        // a sink: the peer is gone
	pageMessage                        // a replay worker: a page
	relieveMessage                     // another shard: too much waits in the hub
	drainMessage                       // Drain: end all streams over a time
	abandonMessage                     // Drain: end all streams at once
	closeMessage                       // CloseBy and CloseAnonymous
	endMessage                         // End
)

// message is what others tell a shard. Which fields are set follows from the kind.
type message struct {
	kind    messageKind
	private bool
	frame   *frame
	ids     []topic.MatcherID
	sub     *Subscriber
	sink    Sink
	join    *registration
	start   *start
	page    *page
	closing *closing

	generation uint64
	window     time.Duration
}

// closing is a call of CloseBy or CloseAnonymous.
type closing struct {
	match func(*Principal) bool // asked about nil for anonymous streams
	// closed gets the number of streams ended, from each shard once; its capacity is the number of shards.
	closed chan int
}

// shard owns a part of the subscribers: nobody else touches what it keeps of them (I4), and nobody else writes to
// their sinks. It never waits for anything but its inbox.
type shard struct {
	number  int
	opts    *Options
	base    time.Time
	logger  *slog.Logger
	orders  *mailbox[order]
	replays *replays
	backlog *backlog
	left    func() // called for each stream that has ended
	gate    *gate
	roster  *roster // nil when nobody is told of subscriptions

	// inbox is bounded: entries by maxInbox (see admit), and the rest by a few messages per subscriber.
	inbox *mailbox[message]
	// load is the bytes of the entries in the inbox. room has capacity 1, is never closed, and
	// holds a token after load has shrunk.
	load atomic.Int64
	room chan struct{}

	generation  uint64
	subscribers table[*Subscriber, struct{}]
	routes      table[topic.MatcherID, []*Subscriber]
	sets        table[*grantSet, *readers]
	readable    table[topic.MatcherID, []*readers]

	now       instant
	draining  bool
	drainBy   instant
	wheel     wheel
	due       []*Subscriber // visits to make
	touched   []*Subscriber // to write to in this step
	again     []*Subscriber // to write to in the next step
	urgent    []*Subscriber // whose queue has grown too long for this step
	writer    writer
	backlogs  int // what the shard's subscribers are counted for
	delivered int
	spare     []message
}

func newShard(number int, o *Options) *shard {
	return &shard{
		number:      number,
		opts:        o,
		base:        time.Now(),
		logger:      o.Logger,
		inbox:       newMailbox[message](),
		room:        make(chan struct{}, 1),
		subscribers: newTable[*Subscriber, struct{}](),
		routes:      newTable[topic.MatcherID, []*Subscriber](),
		sets:        newTable[*grantSet, *readers](),
		readable:    newTable[topic.MatcherID, []*readers](),
	}
}

// admit puts entries into the inbox once there is room, and reports false when ctx ended before that.
func (s *shard) admit(ctx context.Context, entries []message) bool {
	for s.load.Load() > maxInbox {
		select {
		case <-s.room:
		case <-ctx.Done():
			return false
		}
	}
	bytes := 0
	for i := range entries {
		bytes += entries[i].frame.cost()
	}
	s.load.Add(int64(bytes))
	return s.inbox.putAll(entries)
}

// run works until ctx ends, then ends all streams.
func (s *shard) run(ctx context.Context) {
	timer := time.NewTimer(idleWait)
	defer timer.Stop()
	for s.wait(ctx, timer) {
		// Whoever woke the shard often has more to say: letting it go on first makes one write of many.
		runtime.Gosched()
		s.step()
		wait := idleWait
		s.now = s.clock()
		if at, ok := s.wheel.next(); ok {
			wait = max(at-s.now, 0)
		}
		timer.Reset(wait)
	}
	s.stop()
}

func (s *shard) clock() instant { return time.Since(s.base) }

// wait returns when there is something to do, or reports false when ctx has ended.
func (s *shard) wait(ctx context.Context, timer *time.Timer) bool {
	if len(s.again) > 0 || len(s.due) > 0 {
		return ctx.Err() == nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-s.inbox.wake:
	case <-timer.C:
	}
	return ctx.Err() == nil
}

// step handles what waits in the inbox and what is due, and writes once to every subscriber that has something new.
func (s *shard) step() {
	s.now = s.clock()
	before := s.backlogs
	for _, sub := range s.again {
		s.touch(sub)
	}
	clear(s.again)
	s.again = s.again[:0]
	s.spare = s.inbox.take(s.spare)
	taken := 0
	for i := range s.spare {
		m := &s.spare[i]
		if m.kind == deliverMessage {
			taken += m.frame.cost()
			s.deliver(m)
			s.relieveUrgent()
			continue
		}
		s.handle(m)
	}
	if taken > 0 {
		s.load.Add(-int64(taken))
		select {
		case s.room <- struct{}{}:
		default:
		}
	}
	s.visit()
	s.writeAll()
	if s.delivered > 0 {
		s.opts.Metrics.Delivered(s.delivered)
		s.delivered = 0
	}
	// Only growth asks for relief: what cannot give way must not keep the shards busy.
	if s.backlogs > before && s.backlog.exceeded() {
		s.backlog.relieve()
	}
}

// handle handles a message that is not an entry.
func (s *shard) handle(m *message) {
	switch m.kind {
	case deliverMessage: // see step
	case joinMessage:
		s.join(m.sub, m.join)
	case resetMessage:
		s.generation = m.generation
		s.endAll(reasonHistoryReset)
	case openMessage:
		s.open(m.sub)
	case startMessage:
		s.start(m.sub, m.start)
	case attachMessage:
		s.attach(m.sub, m.sink)
	case discardMessage:
		s.end(m.sub, reasonDiscarded)
	case writableMessage:
		s.writable(m.sub)
	case goneMessage:
		s.end(m.sub, reasonGone)
	case pageMessage:
		s.turnPage(m.sub, m.page)
	case relieveMessage:
		s.relieve()
	case drainMessage:
		s.drain(m.window)
	case abandonMessage:
		s.abandon()
	case endMessage:
		s.end(m.sub, reasonClosed)
	case closeMessage:
		m.closing.closed <- s.closeBy(m.closing.match)
	}
}

// closeBy ends the streams whose principal matches, which is nil for an anonymous one, and returns their number.
func (s *shard) closeBy(match func(*Principal) bool) int {
	n := 0
	for sub := range s.subscribers.m {
		if sub.phase < finishing && match(sub.principal) {
			n++
			s.end(sub, reasonClosed)
		}
	}
	return n
}

// endAll ends all streams.
func (s *shard) endAll(reason string) {
	for sub := range s.subscribers.m {
		s.end(sub, reason)
	}
}

// cutAll cuts the streams that are still finishing.
func (s *shard) cutAll() {
	for sub := range s.subscribers.m {
		s.terminate(sub, false)
	}
}

// stop ends all streams, and what is left in the inbox.
func (s *shard) stop() {
	s.now = s.clock()
	rest := s.inbox.close()
	for i := range rest {
		if rest[i].kind != deliverMessage && rest[i].kind != relieveMessage {
			s.handle(&rest[i])
		}
	}
	s.endAll(reasonStopped)
	s.cutAll()
}
