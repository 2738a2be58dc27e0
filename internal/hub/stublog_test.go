package hub_test

import (
	"context"
	"sync"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/memory"
)

// stubLog is a log that fails on demand.
type stubLog struct {
	history.Log

	mu                                     sync.Mutex
	headErr, seekErr, appendErr, replayErr error
	epoch                                  string
	tails                                  int
	endTail                                context.CancelCauseFunc
	replaying                              func() // called before and after each Replay
	appending                              func() // called before each Append
	tailing                                func() // called before each batch of Tail
	heading                                func() // called after each Head
	refuse                                 func(*history.Record) error
}

func openMemory(tb testing.TB) *memory.Log {
	tb.Helper()
	log, err := memory.Open(memory.Options{MaxEvents: 100_000})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = log.Close() })
	return log
}

func (l *stubLog) set(field *error, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*field = err
}

func (l *stubLog) get(field *error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *field
}

// hold has f called before and after each Replay from now on.
func (l *stubLog) hold(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replaying = f
}

func (l *stubLog) holding() func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.replaying
}

func (l *stubLog) Head(ctx context.Context) (history.Head, error) {
	if err := l.get(&l.headErr); err != nil {
		return history.Head{}, err
	}
	head, err := l.Log.Head(ctx)
	if l.heading != nil {
		l.heading()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	head.Epoch += l.epoch
	return head, err
}

func (l *stubLog) Seek(ctx context.Context, id string) (history.Position, error) {
	if err := l.get(&l.seekErr); err != nil {
		return 0, err
	}
	return l.Log.Seek(ctx, id)
}

func (l *stubLog) Append(ctx context.Context, rs ...*history.Record) (history.Position, error) {
	if err := l.get(&l.appendErr); err != nil {
		return 0, err
	}
	if l.appending != nil {
		l.appending()
	}
	for _, r := range rs {
		if l.refuse != nil {
			if err := l.refuse(r); err != nil {
				return 0, err
			}
		}
	}
	return l.Log.Append(ctx, rs...)
}

func (l *stubLog) Replay(ctx context.Context, q history.Query) (history.Page, error) {
	if err := l.get(&l.replayErr); err != nil {
		return history.Page{}, err
	}
	if hold := l.holding(); hold != nil {
		hold()
		defer hold()
	}
	return l.Log.Replay(ctx, q)
}

func (l *stubLog) Tail(ctx context.Context, after history.Position, fn func([]history.Entry) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.mu.Lock()
	l.tails++
	l.endTail = cancel
	l.mu.Unlock()
	err := l.Log.Tail(ctx, after, func(entries []history.Entry) error {
		if l.tailing != nil {
			l.tailing()
		}
		return fn(entries)
	})
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// breakTail makes the running Tail fail.
func (l *stubLog) breakTail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endTail(err)
}
