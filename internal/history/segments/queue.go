package segments

import (
	"sync"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// request is an append that waits for its commit.
type request struct {
	records []*history.Record // at least one; they are committed together
	size    int               // encoded, of all of them
	millis  int64             // when it was appended to the log it comes from; 0 means now

	// Set by the committer before it sends on done.
	position history.Position // of the last record
	err      error
	done     chan struct{} // capacity 1; one value per append
}

// stamped returns the time that the record gets, milliseconds.
func (r *request) stamped(now int64) int64 {
	if r.millis == 0 {
		return now
	}
	return min(r.millis, now)
}

// queue holds accepted appends in order. The feed's admission bounds it.
type queue struct {
	// wake tells the committer that there is something to do; capacity 1, nobody closes it, and a
	// full channel is as good as another value.
	wake chan struct{}

	// mu protects the fields below.
	mu     sync.Mutex
	items  []*request
	rotate bool
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

func (q *queue) push(r *request) {
	q.mu.Lock()
	q.items = append(q.items, r)
	q.mu.Unlock()
	q.signal()
}

// askRotation asks the committer to close the current segment.
func (q *queue) askRotation() {
	q.mu.Lock()
	q.rotate = true
	q.mu.Unlock()
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take moves the oldest requests to dst, at least one if there is one, as many as fit into the
// bounds, and tells whether a rotation was asked for.
func (q *queue) take(dst []*request, maxBytes, maxCount int) (batch []*request, bytes int, rotate bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, records := 0, 0
	for n < len(q.items) && records < maxCount && (n == 0 || bytes+q.items[n].size <= maxBytes) {
		bytes += q.items[n].size
		records += len(q.items[n].records)
		n++
	}
	dst = append(dst, q.items[:n]...)
	rest := copy(q.items, q.items[n:])
	clear(q.items[rest:])
	q.items = q.items[:rest]
	rotate, q.rotate = q.rotate, false
	return dst, bytes, rotate
}
