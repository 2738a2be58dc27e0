package historytest

import (
	"errors"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// testInspect is about history.Inspector.
func (s *suite) testInspect(t *testing.T) {
	// wantStats compares what the log says of itself with its head and with so many entries.
	wantStats := func(f *fixture, events int64) history.Stats {
		f.t.Helper()
		got, err := capability[history.Inspector](f).Stats(f.context())
		if err != nil {
			f.t.Fatalf("Stats() = %v", err)
		}
		h := f.head()
		want := history.Stats{
			Driver: got.Driver, Epoch: h.Epoch, Events: events, Bytes: got.Bytes, Segments: got.Segments,
			First: h.First, Last: h.Last, FirstAt: got.FirstAt, LastAt: got.LastAt, LastID: h.LastID,
		}
		if got != want || got.Driver == "" {
			f.t.Errorf("Stats() = %+v, want %+v", got, want)
		}
		if (events == 0) != got.FirstAt.IsZero() || (events == 0) != got.LastAt.IsZero() || got.LastAt.Before(got.FirstAt) {
			f.t.Errorf("Stats() has times %v and %v for %d entries", got.FirstAt, got.LastAt, events)
		}
		return got
	}
	t.Run("of an empty log", func(t *testing.T) {
		wantStats(s.fixture(t, Limits{}), 0)
	})
	t.Run("grows with the log", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		f.fill(0, 1)
		one := wantStats(f, 1)
		f.fillFast(1, 999, 64)
		many := wantStats(f, 1000)
		if many.Bytes < 500*one.Bytes/2 || !many.FirstAt.Equal(one.FirstAt) {
			t.Errorf("Stats() = %+v of 1000 entries, and %+v of the first", many, one)
		}
	})
	t.Run("counts what is retained", func(t *testing.T) {
		f := s.fixture(t, Limits{MaxEvents: 10})
		f.fill(0, 25)
		wantStats(f, 10)
	})
	t.Run("ends with its context and with the log", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		f.fill(0, 1)
		i := capability[history.Inspector](f)
		if _, err := i.Stats(cancelled(t)); !errors.Is(err, errCancelled) {
			t.Errorf("Stats(cancelled) = %v", err)
		}
		if err := f.log.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := i.Stats(f.context()); !errors.Is(err, history.ErrClosed) {
			t.Errorf("Stats() = %v after Close, want ErrClosed", err)
		}
	})
}
