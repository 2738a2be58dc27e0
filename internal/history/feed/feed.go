package feed

import (
	"context"
	"sync"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// Defaults of Options.
const (
	DefaultBufferBytes = 8 << 20
	DefaultLagBytes    = 64 << 20
	DefaultPatience    = 5 * time.Second
)

// Options bound a Feed. Zero values mean the defaults.
type Options struct {
	// BufferBytes bounds the recent entries kept for tails; negative keeps none beyond
	// what KeepUnread asks for.
	BufferBytes int64
	// LagBytes bounds what may wait to be stored or delivered.
	LagBytes int64
	// Patience is how long Admit waits before it returns history.ErrOverloaded.
	Patience time.Duration
	// KeepUnread keeps every published entry until all tails have got it, for stores
	// that may trim entries before they have been delivered.
	KeepUnread bool
}

func (o Options) withDefaults() Options {
	if o.BufferBytes == 0 {
		o.BufferBytes = DefaultBufferBytes
	}
	if o.LagBytes <= 0 {
		o.LagBytes = DefaultLagBytes
	}
	if o.Patience <= 0 {
		o.Patience = DefaultPatience
	}
	return o
}

// Feed connects the appends of one log with its tails.
type Feed struct {
	o Options

	// mu protects all fields below.
	mu       sync.Mutex
	recent   recent
	last     history.Position // of the newest published entry
	reserved int64            // admitted and not yet published
	tails    map[*tail]struct{}
	closed   bool
	more     signal // fires for tails: an entry was published, or the feed closed
	room     signal // fires for Admit: something shrank, or the feed closed
}

// New returns a Feed for a log whose newest entry is at last.
func New(o Options, last history.Position) *Feed {
	return &Feed{
		o: o.withDefaults(), recent: recent{floor: last}, last: last,
		tails: make(map[*tail]struct{}),
	}
}

// Admit reserves n bytes for a record. It waits while too much waits to be stored
// or delivered, for as long as the feed's patience lasts: then it returns
// history.ErrOverloaded. Other errors are the context's and history.ErrClosed.
// Whoever was admitted must Publish or Release as many bytes.
func (f *Feed) Admit(ctx context.Context, n int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var timeout <-chan time.Time
	for {
		wait, err := f.tryAdmit(n)
		if wait == nil {
			return err
		}
		if timeout == nil {
			timer := time.NewTimer(f.o.Patience)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-wait:
		case <-timeout:
			return history.ErrOverloaded
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tryAdmit reserves n bytes, fails, or returns a channel to wait on.
func (f *Feed) tryAdmit(n int64) (<-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, history.ErrClosed
	}
	waiting := f.reserved + f.lag()
	if waiting > 0 && waiting+n > f.o.LagBytes {
		return f.room.wait(), nil
	}
	f.reserved += n
	return nil, nil
}

// lag returns what the slowest tail has not got. The caller holds the lock.
func (f *Feed) lag() int64 {
	var most int64
	for t := range f.tails {
		most = max(most, t.pending)
	}
	return most
}

// Release gives back n reserved bytes of records that were not stored.
func (f *Feed) Release(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reserved -= n
	f.room.fire()
}

// Publish hands entries to the tails and gives back their reservations. The
// entries must be visible to readers of the store already. The slice stays the
// caller's; what the entries refer to is shared.
func (f *Feed) Publish(entries []history.Entry) {
	if len(entries) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range entries {
		size := int64(entries[i].Size())
		f.reserved -= size
		f.recent.push(&entries[i], size)
		for t := range f.tails {
			if entries[i].Position > t.counted {
				t.pending += size
			}
		}
	}
	f.last = entries[len(entries)-1].Position
	f.evict()
	f.more.fire()
	f.room.fire()
}

// evict drops recent entries beyond the bound. The caller holds the lock.
func (f *Feed) evict() {
	keep := f.last // entries after this position must stay
	if f.o.KeepUnread {
		for t := range f.tails {
			keep = min(keep, t.position)
		}
	}
	f.recent.evict(max(f.o.BufferBytes, 0), keep)
}

// Close makes Admit and Tail return history.ErrClosed. What was admitted may still
// be published.
func (f *Feed) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.more.fire()
	f.room.fire()
}

// signal is a broadcast: fire wakes everybody who waits. The owner's lock protects it.
type signal struct{ ch chan struct{} }

// wait returns a channel that the next fire closes.
func (s *signal) wait() <-chan struct{} {
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) fire() {
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}
