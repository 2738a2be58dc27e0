package historytest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

func (s *suite) testConcurrency(t *testing.T) {
	t.Run("SSE-20 a tail sees the entries of many writers in order, each once", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		c := f.tail(0)
		var wg sync.WaitGroup
		wg.Go(func() { f.fillFast(0, 3000, 64) })
		got := f.next(c, 3000)
		wg.Wait()
		diffEntries(t, "Tail", f.want, got)
		diffEntries(t, "Replay", f.want, f.replayAll(0, 0, 0))
	})
	t.Run("readers and writers and retention do not disturb each other", s.testReaders)
	t.Run("an accepted append is finished, and its outcome told", s.testAbandoned)
}

// testReaders lets everything run at once on a log that trims all the time.
func (s *suite) testReaders(t *testing.T) {
	f := s.fixture(t, Limits{MaxEvents: 500})
	ctx, stop := context.WithCancel(f.context())
	defer stop()
	var wg sync.WaitGroup
	var reads atomic.Int64
	for r := range 2 {
		wg.Go(func() {
			for ctx.Err() == nil {
				h := f.head()
				after := h.First
				if r%2 == 0 && after > 0 {
					after-- // the oldest entry, which goes any moment
				}
				page, err := f.log.Replay(ctx, history.Query{After: after, MaxBytes: 4096})
				switch {
				case err == nil:
					checkPage(t, after, page)
					reads.Add(1)
				case !errors.Is(err, history.ErrPositionGone) && ctx.Err() == nil:
					t.Errorf("Replay(after %d) = %v", after, err)
				}
				if h.LastID != "" {
					if _, err := f.log.Seek(ctx, h.LastID); err != nil && !errors.Is(err, history.ErrUnknownID) && ctx.Err() == nil {
						t.Errorf("Seek(%s) = %v", h.LastID, err)
					}
				}
			}
		})
	}
	f.fillFast(0, 3000, 64)
	stop()
	wg.Wait()
	if reads.Load() == 0 {
		t.Error("no reader ever read anything")
	}
	f.wantRetained(f.trimmed(f.want[2500].Position))
}

// checkPage checks the order of a page of a log without gaps between its own entries.
func checkPage(t *testing.T, after history.Position, page history.Page) {
	t.Helper()
	for _, e := range page.Entries {
		if e.Position <= after {
			t.Errorf("position %d follows %d", e.Position, after)
		}
		after = e.Position
	}
	if page.Through < after {
		t.Errorf("Through = %d, want at least %d", page.Through, after)
	}
}

// testAbandoned ends the contexts of appends at odd moments: what failed is not there, what
// did not is.
func (s *suite) testAbandoned(t *testing.T) {
	f := s.fixture(t, Limits{})
	const count = 400
	var stored, refused [count]bool
	var wg sync.WaitGroup
	for n := range count {
		ctx, cancel := context.WithCancel(f.context())
		wg.Go(func() {
			_, err := f.log.Append(ctx, record(n))
			stored[n], refused[n] = err == nil, errors.Is(err, context.Canceled)
		})
		wg.Go(cancel)
	}
	wg.Wait()
	for n := range count {
		_, err := f.log.Seek(f.context(), record(n).ID)
		switch {
		case stored[n] == refused[n]:
			t.Errorf("append %d neither succeeded nor was cancelled", n)
		case stored[n] && err != nil:
			t.Errorf("append %d succeeded and cannot be found: %v", n, err)
		case refused[n] && !errors.Is(err, history.ErrUnknownID):
			t.Errorf("append %d was cancelled and Seek() = %v", n, err)
		}
	}
}
