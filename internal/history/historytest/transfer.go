package historytest

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// stampedRecord is record n as of n minutes after some day.
func stampedRecord(n int) history.Stamped {
	return history.Stamped{Record: *record(n), At: time.UnixMilli(1_700_000_000_000).Add(time.Duration(n) * time.Minute)}
}

// source returns what Import asks for records: so many, numbered from 0.
func source(count int) func() (history.Stamped, error) {
	n := -1
	return func() (history.Stamped, error) {
		if n++; n >= count {
			return history.Stamped{}, io.EOF
		}
		return stampedRecord(n), nil
	}
}

// export returns what the log exports.
func (f *fixture) export() []history.Stamped {
	f.t.Helper()
	var all []history.Stamped
	err := capability[history.Exporter](f).Export(f.context(), func(s history.Stamped) error {
		all = append(all, s)
		return nil
	})
	if err != nil {
		f.t.Fatalf("Export() = %v", err)
	}
	return all
}

// wantExport checks that the log exports the records numbered from first on, with their times.
func (f *fixture) wantExport(first, count int) {
	f.t.Helper()
	got := f.export()
	if len(got) != count {
		f.t.Fatalf("Export() gives %d records, want %d", len(got), count)
	}
	var want, have []history.Entry
	for i, s := range got {
		w := stampedRecord(first + i)
		want, have = append(want, history.Entry{Record: w.Record}), append(have, history.Entry{Record: s.Record})
		if !s.At.Equal(w.At) {
			f.t.Fatalf("record %d bears %v, want %v", first+i, s.At, w.At)
		}
	}
	diffEntries(f.t, "Export", want, have)
}

// testTransfer is about history.Importer and history.Exporter.
func (s *suite) testTransfer(t *testing.T) {
	t.Run("what was imported is there, with its times", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		if err := capability[history.Importer](f).Import(f.context(), source(1500)); err != nil {
			t.Fatalf("Import() = %v", err)
		}
		f.wantExport(0, 1500)
		if s.durable {
			f.reopen()
			f.wantExport(0, 1500)
		}
		h := f.head()
		f.wantSeek(record(0).ID, h.First)
		f.wantSeek(record(1499).ID, h.Last)
		if p := f.append(record(1500)); p <= h.Last {
			t.Errorf("Append() = %d after %d", p, h.Last)
		}
		if i, ok := f.log.(history.Inspector); ok {
			if got, err := i.Stats(f.context()); err != nil || !got.FirstAt.Equal(stampedRecord(0).At) {
				t.Errorf("Stats() = %+v, %v, want the first time to be %v", got, err, stampedRecord(0).At)
			}
		}
	})
	t.Run("limits hold for what is imported", func(t *testing.T) {
		f := s.fixture(t, Limits{MaxEvents: 100})
		if err := capability[history.Importer](f).Import(f.context(), source(250)); err != nil {
			t.Fatalf("Import() = %v", err)
		}
		f.wantExport(150, 100)
	})
	t.Run("a log that has had entries takes none over", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		f.append(record(0))
		log := capability[history.Importer](f)
		if err := log.Import(f.context(), source(1)); !errors.Is(err, history.ErrNotEmpty) {
			t.Errorf("Import() = %v, want ErrNotEmpty", err)
		}
		diffEntries(t, "Replay", f.want, f.replayAll(0, 0, 0))
	})
	t.Run("times are put in order", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		now := time.Now()
		hour := now.Add(-time.Hour).Truncate(time.Millisecond)
		times := []time.Time{hour, hour.Add(-time.Minute), now.Add(time.Hour)}
		n := -1
		err := capability[history.Importer](f).Import(f.context(), func() (history.Stamped, error) {
			if n++; n == len(times) {
				return history.Stamped{}, io.EOF
			}
			return history.Stamped{Record: *record(n), At: times[n]}, nil
		})
		if err != nil {
			t.Fatalf("Import() = %v", err)
		}
		got := f.export()
		if len(got) != 3 || !got[0].At.Equal(hour) || !got[1].At.Equal(hour) || got[2].At.Before(now.Truncate(time.Millisecond)) || got[2].At.After(time.Now()) {
			t.Errorf("Export() gives %v, want the times in order and none ahead of the clock", got)
		}
	})
	t.Run("an error of the source ends an import and keeps what came before", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		next := source(20)
		n := 0
		err := capability[history.Importer](f).Import(f.context(), func() (history.Stamped, error) {
			if n++; n > 10 {
				return history.Stamped{}, errCancelled
			}
			return next()
		})
		if !errors.Is(err, errCancelled) {
			t.Errorf("Import() = %v, want the source's error", err)
		}
		f.wantExport(0, 10)
	})
	t.Run("an export ends with its function, its context and its log", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		f.fill(0, 10)
		log := capability[history.Exporter](f)
		seen := 0
		err := log.Export(f.context(), func(history.Stamped) error {
			if seen++; seen == 3 {
				return errCancelled
			}
			return nil
		})
		if !errors.Is(err, errCancelled) || seen != 3 {
			t.Errorf("Export() = %v after %d records, want the function's error after 3", err, seen)
		}
		none := func(history.Stamped) error { return nil }
		if err := log.Export(cancelled(t), none); !errors.Is(err, errCancelled) {
			t.Errorf("Export(cancelled) = %v", err)
		}
		if err := f.log.Close(); err != nil {
			t.Fatal(err)
		}
		if err := log.Export(f.context(), none); !errors.Is(err, history.ErrClosed) {
			t.Errorf("Export() = %v after Close, want ErrClosed", err)
		}
	})
	t.Run("an export that retention overtakes says so", func(t *testing.T) {
		f := s.fixture(t, Limits{MaxEvents: 1000})
		f.fillFast(0, 1000, 64)
		log := capability[history.Exporter](f)
		began := false
		err := log.Export(f.context(), func(history.Stamped) error {
			if !began {
				began = true
				f.fillFast(1000, 6000, 64)
			}
			return nil
		})
		if err != nil && !errors.Is(err, history.ErrPositionGone) {
			t.Errorf("Export() = %v, want nil or ErrPositionGone", err)
		}
	})
}
