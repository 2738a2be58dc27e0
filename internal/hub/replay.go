package hub

import (
	"context"
	"errors"
	"sync"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// pageBytes bounds a page of the history, which waits in memory for its reader.
const pageBytes = 256 << 10

// fetch asks for a page of the history for one reader.
type fetch struct {
	sub         *Subscriber
	filter      *filter
	after, upTo history.Position
	maxBytes    int
}

// page is what a reader gets of a page of the history.
type page struct {
	after, through history.Position
	// atHead says that there was nothing beyond the page when it was read.
	atHead bool
	frames []*frame
	err    error
}

// replays reads pages of the history for readers: as many at a time as there are workers. The others wait in line
// for each of their pages, while their shard keeps them alive; no goroutine waits for a slow reader.
type replays struct {
	log        history.Log
	dispatcher *dispatcher

	// wake has capacity 1 and is never closed; a token in it says that there may be work.
	wake chan struct{}

	mu   sync.Mutex
	line []fetch // bounded by the subscribers: each has at most one page under way
	head int
}

func newReplays(log history.Log, d *dispatcher) *replays {
	return &replays{log: log, dispatcher: d, wake: make(chan struct{}, 1)}
}

// request has a worker read the page and send it to the subscriber's shard.
func (r *replays) request(f fetch) {
	r.mu.Lock()
	r.line = append(r.line, f)
	r.mu.Unlock()
	r.signal()
}

func (r *replays) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// work reads pages until ctx ends. Several goroutines do.
func (r *replays) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		f, more := r.next()
		if more {
			r.signal()
		}
		if f.sub == nil || f.sub.isDone() {
			continue
		}
		p, err := r.page(ctx, f)
		if err != nil {
			p = &page{after: f.after, err: err}
		}
		f.sub.shard.inbox.put(message{kind: pageMessage, sub: f.sub, page: p})
	}
}

// next takes the first request off the line and tells whether there are more.
func (r *replays) next() (f fetch, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.head == len(r.line) {
		return fetch{}, false
	}
	f, r.line[r.head] = r.line[r.head], fetch{}
	r.head++
	switch {
	case r.head == len(r.line):
		r.line, r.head = r.line[:0], 0
		if cap(r.line) > keptMessages {
			r.line = nil
		}
	case r.head > len(r.line)/2:
		n := copy(r.line, r.line[r.head:])
		clear(r.line[n:])
		r.line, r.head = r.line[:n], 0
	}
	return f, r.head < len(r.line)
}

// page reads a page. Besides ErrPositionGone its errors are the log's.
func (r *replays) page(ctx context.Context, f fetch) (*page, error) {
	// Looked up before the page is read: what is dispatched meanwhile may come after it.
	dispatched := history.Position(r.dispatcher.dispatched.Load())
	got, err := r.log.Replay(ctx, history.Query{
		After: f.after, UpTo: f.upTo, MaxBytes: f.maxBytes, Select: f.filter.selection(),
	})
	if err != nil {
		return nil, err
	}
	return &page{
		after:   f.after,
		through: got.Through,
		atHead:  got.Through >= dispatched,
		frames:  pageFrames(f.filter.apply(got.Entries)),
	}, nil
}

// reason returns why a stream ends whose page could not be read.
func (p *page) reason() string {
	if errors.Is(p.err, history.ErrPositionGone) {
		return reasonHistoryGone
	}
	return reasonHistoryError
}
