package historytest

import (
	"context"
	"errors"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// errEnough ends a tail from within.
var errEnough = errors.New("historytest: enough")

// errCancelled is the cause of contexts that a test ends.
var errCancelled = context.Canceled

func cancelled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// collector gathers what a running tail delivers.
type collector struct {
	entries chan history.Entry
	done    chan error
	cancel  context.CancelFunc
}

// tail starts a tail after the position, whose entries the test takes with next.
func (f *fixture) tail(after history.Position) *collector {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	c := &collector{entries: make(chan history.Entry), done: make(chan error, 1), cancel: cancel}
	log := f.log
	go func() {
		c.done <- log.Tail(ctx, after, func(es []history.Entry) error {
			for _, e := range es {
				select {
				case c.entries <- e:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
	}()
	f.t.Cleanup(cancel)
	return c
}

// next returns the next count entries.
func (f *fixture) next(c *collector, count int) []history.Entry {
	f.t.Helper()
	var got []history.Entry
	ctx := f.context()
	for len(got) < count {
		select {
		case e := <-c.entries:
			got = append(got, e)
		case err := <-c.done:
			f.t.Fatalf("Tail() = %v after %d of %d entries", err, len(got), count)
		case <-ctx.Done():
			f.t.Fatalf("Tail() is stuck after %d of %d entries", len(got), count)
		}
	}
	return got
}

// wantEnd waits for the tail to end with the error.
func (f *fixture) wantEnd(c *collector, want error) {
	f.t.Helper()
	select {
	case err := <-c.done:
		if !errors.Is(err, want) {
			f.t.Errorf("Tail() = %v, want %v", err, want)
		}
	case e := <-c.entries:
		f.t.Errorf("Tail() delivered %d, want it to end with %v", e.Position, want)
	case <-f.context().Done():
		f.t.Fatalf("Tail() goes on, want it to end with %v", want)
	}
}

func (s *suite) testTail(t *testing.T) {
	t.Run("delivers what is there and what comes", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		f.fill(0, 20)
		all, some := f.tail(0), f.tail(f.want[9].Position)
		diffEntries(t, "from the start", f.want, f.next(all, 20))
		diffEntries(t, "from the middle", f.want[10:], f.next(some, 10))
		f.fill(20, 5)
		diffEntries(t, "live", f.want[20:], f.next(all, 5))
		diffEntries(t, "live", f.want[20:], f.next(some, 5))
		all.cancel()
		f.wantEnd(all, errCancelled)
	})
	t.Run("delivers only what can be read already", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		ctx, seen := f.context(), 0
		done := make(chan error, 1)
		go func() {
			done <- f.log.Tail(ctx, 0, func(es []history.Entry) error {
				for _, e := range es {
					if p, err := f.log.Seek(ctx, e.ID); err != nil || p != e.Position {
						t.Errorf("Seek(%s) = %d, %v in a tail, want %d", e.ID, p, err, e.Position)
					}
					page, err := f.log.Replay(ctx, history.Query{After: e.Position - 1, UpTo: e.Position})
					if err != nil || len(page.Entries) != 1 {
						t.Errorf("Replay(%d) = %d entries, %v in a tail", e.Position, len(page.Entries), err)
					}
					if h, err := f.log.Head(ctx); err != nil || h.Last < e.Position {
						t.Errorf("Head() = %+v, %v in a tail, want at least %d", h, err, e.Position)
					}
				}
				if seen += len(es); seen >= 200 {
					return errEnough
				}
				return nil
			})
		}()
		f.fillFast(0, 200, 16)
		select {
		case err := <-done:
			if !errors.Is(err, errEnough) {
				t.Errorf("Tail() = %v", err)
			}
		case <-ctx.Done():
			t.Error("Tail() is stuck")
		}
	})
	t.Run("leaves out entries up to a position beyond the head", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		f.fill(0, 3)
		c := f.tail(f.want[2].Position + 4)
		f.fill(3, 10)
		var want []history.Entry
		for _, e := range f.want {
			if e.Position > f.want[2].Position+4 {
				want = append(want, e)
			}
		}
		diffEntries(t, "Tail", want, f.next(c, len(want)))
	})
	t.Run("fails when what it needs was trimmed", func(t *testing.T) {
		f := s.fixture(t, Limits{MaxEvents: 10, TailBufferBytes: 1})
		f.fill(0, 30)
		f.trimmed(f.want[20].Position)
		f.wantEnd(f.tail(f.want[2].Position), history.ErrPositionGone)
	})
	t.Run("ends when it is told to", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		f.fill(0, 3)
		if err := f.log.Tail(cancelled(t), 0, func([]history.Entry) error { return nil }); !errors.Is(err, errCancelled) {
			t.Errorf("Tail(cancelled) = %v", err)
		}
		if err := f.log.Tail(f.context(), 0, func([]history.Entry) error { return errEnough }); !errors.Is(err, errEnough) {
			t.Errorf("Tail() = %v, want the function's error", err)
		}
	})
}
