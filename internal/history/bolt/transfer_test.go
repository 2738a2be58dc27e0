package bolt_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/bolt"
)

func rapidContext() context.Context { return context.Background() } // a rapid check has none of its own

// began is a time in the past.
func began() time.Time { return time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC) }

// records gives so many records, a second apart.
func records(count int, topics func(n int) []string) func() (history.Stamped, error) {
	n := 0
	return func() (history.Stamped, error) {
		if n == count {
			return history.Stamped{}, io.EOF
		}
		s := history.Stamped{Record: *record(n), At: began().Add(time.Duration(n) * time.Second)}
		if topics != nil {
			s.Topics = topics(n)
		}
		n++
		return s, nil
	}
}

func TestTransfer(t *testing.T) {
	t.Parallel()
	const count = 20_000 // more than wait for a commit at a time
	source := mustOpen(t, bolt.Options{Dir: t.TempDir()})
	defer mustClose(t, source)
	if err := source.Import(t.Context(), records(count, nil)); err != nil {
		t.Fatalf("Import() = %v", err)
	}
	if s, err := source.Stats(t.Context()); err != nil || s.Events != count || !s.FirstAt.Equal(began()) || !s.LastAt.Equal(began().Add((count-1)*time.Second)) {
		t.Errorf("Stats() = %+v, %v", s, err)
	}
	n := 0
	err := source.Export(t.Context(), func(s history.Stamped) error {
		if want := record(n); s.ID != want.ID || !s.At.Equal(began().Add(time.Duration(n)*time.Second)) || string(s.Event) != string(want.Event) {
			t.Fatalf("record %d is %+v", n, s)
		}
		n++
		return nil
	})
	if err != nil || n != count {
		t.Errorf("Export() gave %d records, %v", n, err)
	}
	if _, err := source.Verify(t.Context()); err != nil {
		t.Errorf("Verify() = %v", err)
	}
	enough := errors.New("enough")
	if err := source.Export(t.Context(), func(history.Stamped) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("Export() = %v, want the function's error", err)
	}
	if err := source.Import(t.Context(), records(1, nil)); !errors.Is(err, history.ErrNotEmpty) {
		t.Errorf("Import() = %v, want ErrNotEmpty", err)
	}
}

// What was imported before an error stays.
func TestImport_errors(t *testing.T) {
	log := mustOpen(t, bolt.Options{Dir: t.TempDir()})
	defer mustClose(t, log)
	broken := errors.New("broken")
	next := records(5, nil)
	err := log.Import(t.Context(), func() (history.Stamped, error) {
		s, err := next()
		if errors.Is(err, io.EOF) {
			err = broken
		}
		return s, err
	})
	if !errors.Is(err, broken) {
		t.Errorf("Import() = %v, want the function's error", err)
	}
	if h, err := log.Head(t.Context()); err != nil || h.Last != 5 {
		t.Errorf("Head() = %+v, %v, want the five that came", h, err)
	}
	other := mustOpen(t, bolt.Options{Dir: t.TempDir()})
	defer mustClose(t, other)
	if err := other.Import(t.Context(), func() (history.Stamped, error) { return history.Stamped{}, nil }); err == nil {
		t.Error("Import() of a record without id succeeded")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := other.Import(ctx, records(5, nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("Import(cancelled) = %v", err)
	}
}

// Times never decrease and are never in the future, and limits hold for what is imported.
func TestImport_times(t *testing.T) {
	log := mustOpen(t, bolt.Options{Dir: t.TempDir(), MaxEvents: 3})
	defer mustClose(t, log)
	now := time.Now()
	times := []time.Time{began(), began().Add(-time.Hour), {}, now.Add(time.Hour), now.Add(2 * time.Hour)}
	n := 0
	err := log.Import(t.Context(), func() (history.Stamped, error) {
		if n == len(times) {
			return history.Stamped{}, io.EOF
		}
		n++
		return history.Stamped{Record: *record(n), At: times[n-1]}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var last time.Time
	kept := 0
	err = log.Export(t.Context(), func(s history.Stamped) error {
		kept++
		if s.At.Before(last) || s.At.After(time.Now()) {
			t.Errorf("%s has time %v after %v", s.ID, s.At, last)
		}
		last = s.At
		return nil
	})
	if err != nil || kept != 3 {
		t.Errorf("Export() gave %d records, %v, want what the limit keeps", kept, err)
	}
}
