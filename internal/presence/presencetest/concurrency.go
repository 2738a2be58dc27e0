package presencetest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/presence"
)

func (s *suite) testConcurrency(t *testing.T) {
	t.Run("puts, removals and reaps do not disturb each other", s.testAtOnce)
	t.Run("a batch is kept as a whole or not at all", s.testWholes)
}

func (s *suite) testAtOnce(t *testing.T) {
	const workers, rounds, batch = 8, 20, 5
	f := s.fixture(t)
	f.put(subscribers(1_000_000, 200)...)
	f.reopen()
	ctx := f.context()
	var wg sync.WaitGroup
	var want []presence.Subscriber
	for w := range workers {
		for r := range rounds {
			want = append(want, subscriber((w*rounds+r)*batch))
		}
		wg.Go(func() {
			for r := range rounds {
				all := subscribers((w*rounds+r)*batch, batch)
				if err := f.dir.Put(ctx, all); err != nil {
					t.Errorf("Put() = %v", err)
				}
				if err := f.dir.Remove(ctx, ids(all[1:])); err != nil {
					t.Errorf("Remove() = %v", err)
				}
			}
		})
	}
	wg.Go(func() {
		reaped := f.reapAtOnce(2, 3)
		diff(t, subscribers(1_000_000, 200), reaped)
		for _, one := range reaped {
			if err := f.dir.Remove(ctx, []string{one.ID}); err != nil {
				t.Errorf("Remove() = %v", err)
			}
		}
	})
	wg.Wait()
	f.reopen()
	f.wantReaped(want...)
}

// testWholes ends the contexts of puts at odd moments.
func (s *suite) testWholes(t *testing.T) {
	const count, batch = 60, 20
	f := s.fixture(t)
	var kept [count]bool
	var wg sync.WaitGroup
	for n := range count {
		ctx, cancel := context.WithCancel(f.context())
		wg.Go(func() {
			err := f.dir.Put(ctx, subscribers(n*batch, batch))
			kept[n] = err == nil
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("Put() = %v", err)
			}
		})
		if n%2 == 0 {
			wg.Go(cancel)
		} else {
			t.Cleanup(cancel)
		}
	}
	wg.Wait()
	var want []presence.Subscriber
	for n, ok := range kept {
		if ok {
			want = append(want, subscribers(n*batch, batch)...)
		}
		if !ok && n%2 != 0 {
			t.Errorf("put %d failed without a reason", n)
		}
	}
	f.reopen()
	f.wantReaped(want...)
}
