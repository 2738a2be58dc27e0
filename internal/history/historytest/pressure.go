package historytest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

func (s *suite) testPressure(t *testing.T) {
	const (
		buffer = 64 << 10
		lag    = 512 << 10
		event  = 16 << 10
	)
	t.Run("a tail that lags gets everything from the store", func(t *testing.T) {
		f := s.fixture(t, Limits{TailBufferBytes: buffer, TailLagBytes: 64 << 20})
		f.append(record(0))
		c := f.tail(0)
		first := f.next(c, 1) // the tail is under way, and stuck from its next entry on
		f.want = nil
		f.fillFast(1, 2000, 64)
		diffEntries(t, "Tail", f.want, append(first, f.next(c, 2000)...)[1:])
	})
	t.Run("appends fail when a tail lags too far and work again when it has caught up", func(t *testing.T) {
		f := s.fixture(t, Limits{TailBufferBytes: buffer, TailLagBytes: lag, AppendPatience: 20 * time.Millisecond})
		f.append(record(0))
		c := f.tail(0)
		got := f.next(c, 1)
		n := 1
		for ; n <= 10*lag/event; n++ {
			r := sized(n, event)
			p, err := f.log.Append(f.context(), r)
			if err == nil {
				f.want = append(f.want, history.Entry{Position: p, Record: *r})
				continue
			}
			if !errors.Is(err, history.ErrOverloaded) {
				t.Fatalf("Append() = %v, want ErrOverloaded", err)
			}
			f.wantUnknown(r.ID)
			break
		}
		if stored := (n - 1) * event; stored < lag/2 || stored > 2*lag {
			t.Fatalf("Append() failed after %d bytes, want about %d", stored, lag)
		}
		diffEntries(t, "Tail", f.want, append(got, f.next(c, len(f.want)-1)...))
		// The last entry counts as delivered when the tail comes for more.
		f.appendSoon(record(5000))
		diffEntries(t, "Tail", f.want[len(f.want)-1:], f.next(c, 1))
	})
	t.Run("a waiting append goes on when there is room", func(t *testing.T) {
		f := s.fixture(t, Limits{TailBufferBytes: buffer, TailLagBytes: lag, AppendPatience: patience})
		f.append(record(0))
		c := f.tail(0)
		f.next(c, 1)
		const count = 3 * lag / event
		var wg sync.WaitGroup
		wg.Go(func() {
			for n := range count {
				if _, err := f.log.Append(f.t.Context(), sized(n+1, event)); err != nil {
					t.Errorf("Append() = %v", err)
				}
			}
		})
		f.next(c, count)
		wg.Wait()
	})
	t.Run("a waiting append ends with its context", func(t *testing.T) {
		f := s.fixture(t, Limits{TailBufferBytes: buffer, TailLagBytes: lag, AppendPatience: patience})
		f.append(record(0))
		f.next(f.tail(0), 1)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		var err error
		for n := 1; err == nil; n++ {
			_, err = f.log.Append(ctx, sized(n, event))
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Append() = %v, want the context's error", err)
		}
	})
	t.Run("a tail of old entries holds nobody up", func(t *testing.T) {
		f := s.fixture(t, Limits{TailBufferBytes: buffer, TailLagBytes: lag, AppendPatience: 20 * time.Millisecond})
		for n := range 3 * lag / event {
			f.append(sized(n, event))
		}
		f.next(f.tail(0), 1)
		f.append(record(9000))
	})
}

// appendSoon appends r, again when the log is still overloaded.
func (f *fixture) appendSoon(r *history.Record) {
	f.t.Helper()
	for ctx := f.context(); ; {
		p, err := f.log.Append(ctx, r)
		if err == nil {
			f.want = append(f.want, history.Entry{Position: p, Record: *r})
			return
		}
		if !errors.Is(err, history.ErrOverloaded) {
			f.t.Fatalf("Append(%s) = %v", r.ID, err)
		}
	}
}
