package presencetest

import (
	"math"
	"sync"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/presence"
)

func (s *suite) testReap(t *testing.T) {
	t.Run("a directory never reaps its own", func(t *testing.T) {
		f := s.fixture(t)
		f.wantReaped()
		f.put(subscribers(0, 20)...)
		f.wantReaped()
		f.reopen()
		f.put(subscribers(20, 20)...)
		f.wantReaped(subscribers(0, 20)...)
		f.put(subscribers(40, 20)...)
		f.wantReaped()
	})
	t.Run("the limit is kept, and less than 1 means 1", func(t *testing.T) {
		for _, limit := range []int{-1, 0, 1, 7, 20, 21, math.MaxInt} {
			f := s.fixture(t)
			f.put(subscribers(0, 20)...)
			f.reopen()
			diff(t, subscribers(0, 20), f.reapAll(limit))
		}
	})
	t.Run("each is given once in the life of a process", func(t *testing.T) {
		f := s.fixture(t)
		f.put(subscribers(0, 20)...)
		f.reopen()
		first := f.reap(8)
		f.remove(first[:4]...)
		diff(t, subscribers(0, 20), append(first, f.reapAll(3)...))
		f.wantReaped()
	})
	t.Run("ACT-03 what was reaped and not removed is reaped by the next process too", func(t *testing.T) {
		f := s.fixture(t)
		f.put(subscribers(0, 30)...)
		for range 2 {
			f.reopen()
			f.wantReaped(subscribers(0, 30)...)
		}
		f.reopen()
		first := f.reap(10)
		f.remove(first...)
		f.reopen()
		rest := f.reapAll(4)
		diff(t, subscribers(0, 30), append(first, rest...))
		f.remove(rest...)
		f.reopen()
		f.wantReaped()
	})
	t.Run("each is given to one of many callers", func(t *testing.T) {
		f := s.fixture(t)
		f.put(subscribers(0, 400)...)
		f.reopen()
		diff(t, subscribers(0, 400), f.reapAtOnce(8, 7))
	})
}

// reapAtOnce reaps in several goroutines until there are no more.
func (f *fixture) reapAtOnce(callers, limit int) []presence.Subscriber {
	ctx := f.context()
	var mu sync.Mutex
	var all []presence.Subscriber
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for {
				got, err := f.dir.Reap(ctx, limit)
				if err != nil {
					f.t.Errorf("Reap() = %v", err)
				}
				if len(got) == 0 {
					return
				}
				mu.Lock()
				all = append(all, got...)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return all
}
