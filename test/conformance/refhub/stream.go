package refhub

import (
	"net/http"
	"sync"
	"time"
)

// stream is an open subscription connection. The goroutine of its request writes; others push.
type stream struct {
	h          *Hub
	number     int
	matchers   []matcher
	token      *token // nil: anonymous
	subscriber string
	active     []subscription // guarded by the hub's mutex

	w      http.ResponseWriter
	writer *http.ResponseController
	wake   chan struct{} // has one element when queue is not empty
	ended  chan struct{} // closed to end the stream
	once   sync.Once

	mu     sync.Mutex // guards the rest
	queue  []*update
	over   bool // the request is done: the writer must not be used
	pushed int

	// What faults need to remember.
	held         *update
	skip, stalls int
	writing      bool
}

// push queues an update for the writer. A reader that is too slow loses its stream, and can resume (STRESS-03).
func (s *stream) push(u *update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pushed++
	switch {
	case s.h.fault("every-500th-stream-loses-one") && s.number%500 == 0 && s.pushed == 25:
		return
	case s.h.fault("every-tenth-event-late") && s.pushed%10 == 0 && s.held == nil:
		s.held = u
		return
	}
	if s.skip > 0 {
		s.skip--
		return
	}
	if len(s.queue) >= maxQueue {
		s.abort()
		return
	}
	s.queue = append(s.queue, u)
	if s.held != nil {
		s.queue, s.held = append(s.queue, s.held), nil
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// stall is the mistake of waiting for a slow reader before the next update.
func (s *stream) stall() {
	const long, often = 30 * time.Second, 2
	until := time.NewTimer(long)
	defer until.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		s.mu.Lock()
		done := len(s.queue) == 0 && !s.writing
		done = done || s.stalls >= often
		s.mu.Unlock()
		if done {
			return
		}
		select {
		case <-tick.C:
		case <-s.ended:
			return
		case <-s.h.ending:
			return
		case <-until.C:
			s.mu.Lock()
			s.stalls++
			s.mu.Unlock()
			return
		}
	}
}

// cut ends the stream, also when its writer waits for the reader.
func (s *stream) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abort()
}

// abort is cut for those who hold the mutex.
func (s *stream) abort() {
	s.once.Do(func() { close(s.ended) })
	if !s.over {
		_ = s.writer.SetWriteDeadline(time.Now())
	}
}

// take empties the queue.
func (s *stream) take() []*update {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.queue
	s.queue, s.writing = nil, len(queue) > 0
	return queue
}

// write sends octets at once.
func (s *stream) write(b []byte) error {
	s.mu.Lock()
	select {
	case <-s.ended:
	default:
		_ = s.writer.SetWriteDeadline(time.Now().Add(writeTimeout))
	}
	s.mu.Unlock()
	_, err := s.w.Write(b)
	if err == nil {
		err = s.writer.Flush()
	}
	s.mu.Lock()
	s.writing = false
	s.mu.Unlock()
	return err
}

// end gives the response back to the server, without a deadline.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.writer.SetWriteDeadline(time.Time{})
	s.over = true
}

// serve writes until the reader goes away, the stream is cut, or its time is over (PRIV-09, PRIV-10).
func (s *stream) serve(gone <-chan struct{}, end time.Time) {
	over := time.NewTimer(time.Until(end))
	defer over.Stop()
	idle := time.NewTimer(s.h.opts.KeepAlive)
	defer idle.Stop()
	if s.write([]byte(s.h.opening())) != nil {
		return
	}
	for {
		select {
		case <-s.wake:
			var frames []byte
			for _, u := range s.take() {
				frames = append(frames, u.frame...)
			}
			if len(frames) > 0 && s.write(frames) != nil {
				return
			}
			idle.Reset(s.h.opts.KeepAlive)
		case <-idle.C:
			if !s.h.fault("no-keep-alive") && s.write([]byte(s.h.keepAlive())) != nil {
				return
			}
			idle.Reset(s.h.opts.KeepAlive)
		case <-over.C:
			return
		case <-gone:
			return
		case <-s.ended:
			return
		}
	}
}

// opening is sent first, so that the reader sees that the stream is open (SSE-18).
func (h *Hub) opening() string {
	if h.fault("opening-retry-is-no-number") {
		return "retry: 2s\n\n"
	}
	return "retry: 2000\n\n"
}

// keepAlive is a comment (SSE-02).
func (h *Hub) keepAlive() string {
	if h.fault("keep-alive-is-event") {
		return "event: ping\ndata:\n\n"
	}
	return ":\n\n"
}
