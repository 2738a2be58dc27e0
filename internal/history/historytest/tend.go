package historytest

import (
	"errors"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// testTend is about history.Verifier and history.Compacter.
func (s *suite) testTend(t *testing.T) {
	t.Run("a sound log verifies", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		v := capability[history.Verifier](f)
		for _, count := range []int{0, 1, 299} {
			f.fillFast(len(f.want), count, 16)
			f.append(f.twin(len(f.want)))
			got, err := v.Verify(f.context())
			if err != nil || got.Events != int64(len(f.want)) || got.Bytes <= 0 || got.Indexes < got.Segments {
				t.Errorf("Verify() = %+v, %v, want %d entries and their indexes", got, err, len(f.want))
			}
		}
	})
	t.Run("verification goes on beside appends and retention", func(t *testing.T) {
		f := s.fixture(t, Limits{MaxEvents: 500})
		v := capability[history.Verifier](f)
		f.fillFast(0, 100, 16)
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.fillFast(100, 4000, 16)
		}()
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			if got, err := v.Verify(t.Context()); err != nil {
				t.Errorf("Verify() = %+v, %v", got, err)
				running = false
			}
		}
		<-done
	})
	t.Run("compacting changes nothing that can be read", func(t *testing.T) {
		f := s.fixture(t, Limits{MaxEvents: 200})
		log := capability[history.Compacter](f)
		f.fillFast(0, 450, 16)
		h := f.head()
		for range 2 {
			c, err := log.Compact(f.context())
			if err != nil || c.After <= 0 || c.Before <= 0 {
				t.Errorf("Compact() = %+v, %v", c, err)
			}
		}
		if got := f.head(); got != h {
			t.Errorf("Head() = %+v, want %+v", got, h)
		}
		f.wantRetained(h)
		f.fill(450, 1)
	})
	t.Run("both end with their context and with the log", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		v, c := capability[history.Verifier](f), capability[history.Compacter](f)
		f.fill(0, 3)
		if _, err := v.Verify(cancelled(t)); !errors.Is(err, errCancelled) {
			t.Errorf("Verify(cancelled) = %v", err)
		}
		if _, err := c.Compact(cancelled(t)); !errors.Is(err, errCancelled) {
			t.Errorf("Compact(cancelled) = %v", err)
		}
		if err := f.log.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := v.Verify(f.context()); !errors.Is(err, history.ErrClosed) {
			t.Errorf("Verify() = %v after Close, want ErrClosed", err)
		}
		if _, err := c.Compact(f.context()); !errors.Is(err, history.ErrClosed) {
			t.Errorf("Compact() = %v after Close, want ErrClosed", err)
		}
	})
}

// twin is a record with the id of an earlier one.
func (f *fixture) twin(n int) *history.Record {
	r := record(n)
	r.ID = record(n / 2).ID
	return r
}

// capability returns the log as something that the engine does without, and the commands that look after a history do not.
func capability[T any](f *fixture) T {
	f.t.Helper()
	log, ok := f.log.(T)
	if !ok {
		f.t.Fatalf("%T does not implement %T", f.log, new(T))
	}
	return log
}
