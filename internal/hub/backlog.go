package hub

import (
	"cmp"
	"slices"
	"sync/atomic"
)

// backlog is what waits for readers in the whole hub.
type backlog struct {
	limit  int64
	shards []*shard
	bytes  atomic.Int64
	// relieving is set while the shards have been asked to give way, so that they are asked once.
	relieving atomic.Int32
}

func (b *backlog) exceeded() bool { return b.bytes.Load() > b.limit }

// relieve asks every shard to give way.
func (b *backlog) relieve() {
	if !b.relieving.CompareAndSwap(0, int32(len(b.shards))) {
		return
	}
	for _, s := range b.shards {
		if !s.inbox.put(message{kind: relieveMessage}) {
			b.relieving.Add(-1)
		}
	}
}

// account updates what the stream is counted for.
func (s *shard) account(sub *Subscriber) {
	waiting := sub.queued + sub.heldFor
	delta := waiting - sub.counted
	if delta == 0 {
		return
	}
	sub.counted = waiting
	s.backlogs += delta
	s.backlog.bytes.Add(int64(delta))
}

// overflows tells whether more waits for the reader than may, beyond the entry that is being written.
func (s *shard) overflows(sub *Subscriber) bool {
	waiting := sub.queued + sub.heldFor
	if len(sub.queue) > 0 {
		waiting -= sub.queue[0].cost()
	}
	return waiting > s.opts.Backlog
}

// relieve makes the largest backlogs of the shard give way while too much waits in the hub and the shard holds more
// than its share of it. At least one shard does whenever the hub is over its limit.
func (s *shard) relieve() {
	defer s.backlog.relieving.Add(-1)
	share := s.backlog.limit / int64(len(s.backlog.shards))
	if !s.backlog.exceeded() || int64(s.backlogs) <= share {
		return
	}
	var waiting []*Subscriber
	for sub := range s.subscribers.m {
		if sub.counted > 0 {
			waiting = append(waiting, sub)
		}
	}
	slices.SortFunc(waiting, func(a, b *Subscriber) int { return cmp.Compare(b.counted, a.counted) })
	// A little below the limit, or the next entry would start it all over.
	target := s.backlog.limit - s.backlog.limit/8
	for _, sub := range waiting {
		if s.backlog.bytes.Load() <= target || int64(s.backlogs) <= share-share/8 {
			return
		}
		s.fallBack(sub)
	}
}

// fallBack makes a reader that is too slow for its backlog go on from the history: what waits is dropped, except for
// an entry that is partly written, and read again when the reader has caught up with what it got.
func (s *shard) fallBack(sub *Subscriber) {
	switch sub.phase {
	case live, replaying:
		// Position 1 stays as well: going on after 0 would not notice that the entry has been trimmed.
		keep := 0
		for keep < len(sub.queue) && (sub.queue[keep].pos <= 1 || keep == 0 && sub.offset > 0) {
			keep++
		}
		if keep == len(sub.queue) {
			return
		}
		sub.x = sub.queue[keep].pos - 1
		s.opts.Metrics.Dropped(len(sub.queue) - keep)
		s.keepFrames(sub, keep)
	case closingGap:
		s.opts.Metrics.Dropped(len(sub.held))
		sub.held, sub.heldFor = nil, 0
	case opening, joining, finishing, ended:
		return
	}
	s.unregister(sub)
	sub.phase, sub.atHead = replaying, false
	s.account(sub)
	s.advance(sub)
}
