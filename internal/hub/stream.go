package hub

import (
	"errors"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// open takes a new subscriber in.
func (s *shard) open(sub *Subscriber) {
	s.subscribers.set(sub, struct{}{})
	sub.lastWrite = s.now
	if s.opts.MaxLifetime > 0 {
		sub.endBy = s.now + s.lifetime()
	}
	if sub.principal != nil && !sub.principal.ExpiresAt.IsZero() {
		sub.expiry = sub.principal.ExpiresAt.UnixNano()
	}
	s.schedule(sub)
	if s.draining {
		s.endWithin(sub, s.drainBy-s.now)
	}
}

// start notes where a stream begins.
func (s *shard) start(sub *Subscriber, st *start) {
	if sub.phase != opening {
		return // it has been closed meanwhile
	}
	if st.generation != s.generation {
		s.end(sub, reasonHistoryReset)
		return
	}
	sub.x, sub.fresh, sub.filter = st.x, st.fresh, st.filter
	if s.expired(sub) {
		s.end(sub, reasonExpired)
		return
	}
	sub.phase = replaying
	if st.atHead {
		// Subscribe asks the dispatcher itself.
		sub.phase, sub.asked = joining, true
	}
	s.enqueuePage(sub, st.frames)
}

// attach gives a stream its sink and begins to write.
func (s *shard) attach(sub *Subscriber, sink Sink) {
	if sub.phase >= finishing {
		sink.Finish()
		return
	}
	sub.sink = sink
	sub.lastWrite = s.now
	sub.queue = append([]*frame{s.writer.preamble(s.opts.Retry)}, sub.queue...)
	sub.queued += sub.queue[0].cost()
	s.touch(sub)
	s.schedule(sub)
}

// writable goes on writing to a sink that was full.
func (s *shard) writable(sub *Subscriber) {
	if sub.phase == ended {
		return
	}
	sub.blocked = false
	s.touch(sub)
	s.schedule(sub)
}

// join makes a stream live, or has the gap closed that lies before that. The dispatcher sends every entry after
// reg.at, and nothing of it has come yet: this message came first.
func (s *shard) join(sub *Subscriber, reg *registration) {
	sub.asked = false
	sub.registration = reg
	if sub.phase != joining {
		s.dropRegistration(sub)
		s.advance(sub)
		return
	}
	s.listen(sub)
	switch {
	case sub.fresh || sub.x >= reg.at:
		sub.phase = live
		sub.seen = max(reg.at, sub.x)
	default:
		sub.phase = closingGap
		sub.gapEnd, sub.seen = reg.at, reg.at
		s.fetch(sub, sub.gapEnd)
	}
	sub.fresh = false
}

// advance goes on with a replay when the reader has taken everything it got so far.
func (s *shard) advance(sub *Subscriber) {
	if sub.sink == nil || sub.blocked || len(sub.queue) > 0 || sub.fetching || sub.asked {
		return
	}
	switch {
	case sub.phase == closingGap:
		s.fetch(sub, sub.gapEnd)
	case sub.phase == replaying && sub.atHead:
		sub.phase, sub.asked = joining, true
		s.orders.put(order{sub: sub})
	case sub.phase == replaying:
		s.fetch(sub, 0)
	}
}

// fetch has the next page read.
func (s *shard) fetch(sub *Subscriber, upTo history.Position) {
	if sub.filter == nil {
		sub.filter = newFilter(s.opts.Compiler, sub.matchers, sub.principal.grants())
	}
	sub.fetching = true
	s.replays.request(fetch{sub: sub, filter: sub.filter, after: sub.x, upTo: upTo, maxBytes: pageBytes})
}

// turnPage takes a page in.
func (s *shard) turnPage(sub *Subscriber, p *page) {
	sub.fetching = false
	if sub.phase != replaying && sub.phase != closingGap {
		return
	}
	if p.after != sub.x {
		s.advance(sub) // read for a place that the reader has fallen back from
		return
	}
	if errors.Is(p.err, history.ErrClosed) && s.gate.isShut() {
		return // it is ended with the others, in its turn (Quiesce)
	}
	if p.err != nil {
		s.end(sub, p.reason())
		return
	}
	sub.x, sub.atHead = p.through, p.atHead
	s.enqueuePage(sub, p.frames)
	if sub.phase == closingGap && sub.x >= sub.gapEnd {
		sub.phase = live
		sub.queue = append(sub.queue, sub.held...)
		sub.queued += sub.heldFor
		sub.held, sub.heldFor = nil, 0
	}
	s.touch(sub)
}

// enqueuePage queues frames that were read from the history.
func (s *shard) enqueuePage(sub *Subscriber, frames []*frame) {
	if len(frames) == 0 {
		return
	}
	for _, f := range frames {
		sub.queued += f.cost()
	}
	if len(sub.queue) == 0 {
		s.writer.recycle(sub)
		sub.queue = frames
	} else {
		sub.queue = append(sub.queue, frames...)
	}
	s.opts.Metrics.Replayed(len(frames))
	s.touch(sub)
}
