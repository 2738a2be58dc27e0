package hub

import (
	"slices"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/sse"
)

const (
	// maxWrite bounds the frames that are joined into one write.
	maxWrite = 256 << 10
	// spareQueues and spareQueueFrames bound the emptied queues that a shard keeps for the next entries.
	spareQueues      = 8192
	spareQueueFrames = 64
	// retryJitter is the share of the reconnection time by which it varies, up and down.
	retryJitter = 5
)

// writer is what a shard needs to write, and has once for all its subscribers.
type writer struct {
	heartbeat *frame
	comment   *frame

	// joined is the frames in joinedFrames in one piece, for readers of the framing. full says that the next frame
	// did not fit. Readers with the same frames in their queue share it.
	joined       []byte
	joinedFrames []*frame
	framing      Framing
	full         bool

	queues [][]*frame
}

func newWriter() writer {
	comment := newFrame(0, sse.AppendComment(nil, ""))
	return writer{heartbeat: comment, comment: comment}
}

// preamble returns the first bytes of a stream: the reconnection time, or a comment when there is none.
func (w *writer) preamble(retry time.Duration) *frame {
	if retry <= 0 {
		return w.comment
	}
	spread := retry / retryJitter
	return newFrame(0, sse.AppendRetry(nil, retry-spread+jitter(2*spread)))
}

// queue returns an empty queue.
func (w *writer) queue() []*frame {
	n := len(w.queues)
	if n == 0 {
		return make([]*frame, 0, 4)
	}
	q := w.queues[n-1]
	w.queues[n-1] = nil
	w.queues = w.queues[:n-1]
	return q
}

// recycle takes the queue of a subscriber that has nothing in it: idle subscribers have none.
func (w *writer) recycle(sub *Subscriber) {
	if cap(sub.queue) > 0 && cap(sub.queue) <= spareQueueFrames && len(w.queues) < spareQueues {
		w.queues = append(w.queues, sub.queue[:0])
	}
	sub.queue = nil
}

// gather returns bytes from the front of a queue to write at once, as many as are worth joining. The bytes are valid
// until the next call.
func (w *writer) gather(queue []*frame, offset int, f Framing) []byte {
	first := queue[0].bytes(f)[offset:]
	if len(queue) == 1 || len(first)+len(queue[1].bytes(f)) > maxWrite {
		return first
	}
	if offset == 0 && w.holds(queue, f) {
		return w.joined
	}
	w.joined = append(w.joined[:0], first...)
	n := 1
	for ; n < len(queue); n++ {
		b := queue[n].bytes(f)
		if len(w.joined)+len(b) > maxWrite {
			break
		}
		w.joined = append(w.joined, b...)
	}
	w.forget()
	if offset == 0 {
		w.joinedFrames = append(w.joinedFrames, queue[:n]...)
		w.framing, w.full = f, n < len(queue)
	}
	return w.joined
}

// holds tells whether joined is what gathering the queue would give.
func (w *writer) holds(queue []*frame, f Framing) bool {
	n := len(w.joinedFrames)
	if n == 0 || f != w.framing || n > len(queue) || n < len(queue) && !w.full {
		return false
	}
	return slices.Equal(w.joinedFrames, queue[:n])
}

// forget lets go of the joined frames.
func (w *writer) forget() {
	clear(w.joinedFrames)
	w.joinedFrames = w.joinedFrames[:0]
}

// push queues a frame.
func (s *shard) push(sub *Subscriber, f *frame) {
	if sub.queue == nil {
		sub.queue = s.writer.queue()
	}
	sub.queue = append(sub.queue, f)
	sub.queued += f.cost()
}

// touch has the subscriber written to in this step.
func (s *shard) touch(sub *Subscriber) {
	if !sub.touched && sub.phase != ended {
		sub.touched = true
		s.touched = append(s.touched, sub)
	}
}

// writeAll writes to the subscribers that were touched.
func (s *shard) writeAll() {
	for _, sub := range s.touched {
		sub.touched = false
		if sub.phase == ended {
			continue
		}
		s.write(sub)
		s.advance(sub)
		if sub.phase != ended {
			s.account(sub)
		}
	}
	clear(s.touched)
	s.touched = s.touched[:0]
	s.writer.forget()
}

// write makes one write of what waits for the subscriber.
func (s *shard) write(sub *Subscriber) {
	if sub.sink == nil || sub.blocked || len(sub.queue) == 0 {
		return
	}
	p := s.writer.gather(sub.queue, sub.offset, sub.sink.Framing())
	n, err := sub.sink.TryWrite(p)
	if err != nil {
		s.end(sub, reasonGone)
		return
	}
	if n > 0 {
		sub.lastWrite = s.now
		s.consume(sub, n)
	}
	switch {
	case n < len(p):
		sub.blocked, sub.atHead = true, false
		sub.blockedAt = s.now
		s.schedule(sub)
		if s.overflows(sub) {
			s.fallBack(sub)
		}
	case len(sub.queue) > 0:
		s.again = append(s.again, sub)
	}
	if sub.phase == finishing && sub.offset == 0 {
		s.terminate(sub, true)
	}
}

// consume takes n written bytes off the queue.
func (s *shard) consume(sub *Subscriber, n int) {
	framing := sub.sink.Framing()
	n += sub.offset
	done := 0
	for done < len(sub.queue) {
		size := len(sub.queue[done].bytes(framing))
		if n < size {
			break
		}
		n -= size
		sub.queued -= sub.queue[done].cost()
		done++
	}
	sub.offset = n
	if done == len(sub.queue) {
		clear(sub.queue)
		s.writer.recycle(sub)
		return
	}
	rest := copy(sub.queue, sub.queue[done:])
	clear(sub.queue[rest:])
	sub.queue = sub.queue[:rest]
}

// keepFrames drops what waits for a subscriber, except for the first n frames.
func (s *shard) keepFrames(sub *Subscriber, n int) {
	for _, f := range sub.queue[n:] {
		sub.queued -= f.cost()
	}
	clear(sub.queue[n:])
	sub.queue = sub.queue[:n]
	if n == 0 {
		sub.offset = 0
		s.writer.recycle(sub)
	}
}
