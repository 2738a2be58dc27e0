package bolt

import (
	"sync"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// request is an append that waits for its commit.
type request struct {
	records []*history.Record
	size    int       // encoded
	at      time.Time // when they were appended to another log; zero means now

	// Set by the committer before it sends on done.
	position history.Position // of the last record
	err      error
	done     chan struct{} // capacity 1; one value per append
}

// queue holds accepted appends in order. The feed's admission bounds it.
type queue struct {
	// wake tells the committer that there is something to do; capacity 1, nobody closes it, and a
	// full channel is as good as another value.
	wake chan struct{}

	// mu protects the fields below.
	mu    sync.Mutex
	items []*request
	jobs  []func() // run by the committer, between commits
	tidy  bool     // look whether there is something to trim
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

func (q *queue) push(r *request) {
	q.mu.Lock()
	q.items = append(q.items, r)
	q.mu.Unlock()
	q.signal()
}

// run asks the committer to call fn.
func (q *queue) run(fn func()) {
	q.mu.Lock()
	q.jobs = append(q.jobs, fn)
	q.mu.Unlock()
	q.signal()
}

// askTidy asks the committer to trim what the limits say.
func (q *queue) askTidy() {
	q.mu.Lock()
	q.tidy = true
	q.mu.Unlock()
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// work is what the committer does next.
type work struct {
	batch   []*request
	records int // of the batch
	bytes   int // of these, encoded
	job     func()
	tidy    bool
}

// take moves the oldest requests to dst, at least one if there is one, as many as fit into the
// bound, and with them the oldest job.
func (q *queue) take(dst []*request, maxBytes int) work {
	q.mu.Lock()
	defer q.mu.Unlock()
	w, n := work{tidy: q.tidy}, 0
	for n < len(q.items) && (n == 0 || w.bytes+q.items[n].size <= maxBytes) {
		w.bytes += q.items[n].size
		w.records += len(q.items[n].records)
		n++
	}
	w.batch = append(dst, q.items[:n]...)
	rest := copy(q.items, q.items[n:])
	clear(q.items[rest:])
	q.items, q.tidy = q.items[:rest], false
	if len(q.jobs) > 0 {
		w.job = q.jobs[0]
		q.jobs = append([]func(){}, q.jobs[1:]...)
	}
	return w
}
