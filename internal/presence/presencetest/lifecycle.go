package presencetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/presence"
)

func (s *suite) testLifecycle(t *testing.T) {
	t.Run("a closed directory refuses everything", func(t *testing.T) {
		f := s.fixture(t)
		f.put(subscribers(0, 3)...)
		f.close()
		ctx := f.context()
		_, reapErr := f.dir.Reap(ctx, 1)
		for name, err := range map[string]error{
			"Put": f.dir.Put(ctx, subscribers(3, 3)), "Remove": f.dir.Remove(ctx, ids(subscribers(0, 3))), "Reap": reapErr,
		} {
			if !errors.Is(err, presence.ErrClosed) {
				t.Errorf("%s() = %v after Close, want ErrClosed", name, err)
			}
		}
		f.close()
		f.reopen()
		f.wantReaped(subscribers(0, 3)...)
	})
	t.Run("closing finishes calls or refuses them", s.testCloseUnderLoad)
	t.Run("a context that has ended changes nothing", func(t *testing.T) {
		f := s.fixture(t)
		f.put(subscribers(0, 3)...)
		f.reopen()
		f.put(subscribers(3, 3)...)
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
		defer cancel()
		for want, ctx := range map[error]context.Context{context.Canceled: cancelled, context.DeadlineExceeded: late} {
			if err := f.dir.Put(ctx, subscribers(6, 3)); !errors.Is(err, want) {
				t.Errorf("Put() = %v, want %v", err, want)
			}
			if err := f.dir.Remove(ctx, ids(subscribers(3, 3))); !errors.Is(err, want) {
				t.Errorf("Remove() = %v, want %v", err, want)
			}
			if got, err := f.dir.Reap(ctx, 3); !errors.Is(err, want) || len(got) > 0 {
				t.Errorf("Reap() = %v, %v, want %v", got, err, want)
			}
		}
		f.wantReaped(subscribers(0, 3)...)
		f.reopen()
		f.wantReaped(subscribers(0, 6)...)
	})
}

func (s *suite) testCloseUnderLoad(t *testing.T) {
	const count, batch = 40, 5
	f := s.fixture(t)
	ctx := f.context()
	var kept [count]bool
	var wg sync.WaitGroup
	one := make(chan struct{}, count) // one value for each put that has succeeded; nobody closes it, and it is never full
	for n := range count {
		wg.Go(func() {
			err := f.dir.Put(ctx, subscribers(n*batch, batch))
			switch {
			case err == nil:
				kept[n] = true
				one <- struct{}{}
			case !errors.Is(err, presence.ErrClosed):
				t.Errorf("Put() = %v while closing, want ErrClosed", err)
			}
		})
	}
	<-one
	for range 2 {
		wg.Go(func() {
			if err := f.dir.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
		})
	}
	wg.Wait()
	var want []presence.Subscriber
	for n, ok := range kept {
		if ok {
			want = append(want, subscribers(n*batch, batch)...)
		}
	}
	f.reopen()
	f.wantReaped(want...)
}
