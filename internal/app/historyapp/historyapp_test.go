package historyapp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/app/historyapp"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/private"
)

func TestOpen(t *testing.T) {
	if _, err := historyapp.Open(t.Context(), config.History{Driver: "redis"}, 0, nil); err == nil {
		t.Error("Open(redis) succeeded")
	}
	for _, driver := range config.HistoryDrivers() {
		t.Run(driver, func(t *testing.T) {
			c := config.History{Driver: driver, Path: config.File(filepath.Join(t.TempDir(), "history"))}
			log, err := historyapp.Open(t.Context(), c, time.Second, nil)
			if err != nil {
				t.Fatalf("Open() = %v", err)
			}
			if p, err := log.Append(t.Context(), &history.Record{ID: "a", Topics: []string{"t"}}); err != nil || p != 1 {
				t.Errorf("Append() = %d, %v", p, err)
			}
			inspector, ok := log.(history.Inspector)
			if !ok {
				t.Fatal("there are no statistics")
			}
			if s, err := inspector.Stats(t.Context()); err != nil || s.Driver != driver {
				t.Errorf("Stats() = %+v, %v", s, err)
			}
			if err := log.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
			if !c.Durable() {
				return
			}
			if s, err := historyapp.Check(t.Context(), driver, string(c.Path)); err != nil || s.Events != 1 {
				t.Errorf("Check() = %+v, %v", s, err)
			}
		})
	}
}

// The configuration's 0 is no limit, for every driver.
func TestOpen_noLimit(t *testing.T) {
	log, err := historyapp.Open(t.Context(), config.History{Driver: "memory"}, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	for i := range 110_002 { // one more of each kind than the driver keeps by itself
		if _, err := log.Append(t.Context(), &history.Record{ID: "a", Topics: []string{"t"}, Subscription: i%11 == 0}); err != nil {
			t.Fatal(err)
		}
	}
	if inspector, ok := log.(history.Inspector); ok {
		if s, err := inspector.Stats(t.Context()); err != nil || s.SubscriptionEvents != 10_001 || s.Events != 100_001 {
			t.Errorf("Stats() = %+v, %v", s, err)
		}
	}
	if h, err := log.Head(t.Context()); err != nil || h.First != 1 {
		t.Errorf("Head() = %+v, %v, want nothing trimmed", h, err)
	}
}

// Subscription events have a limit of their own, and push no update out. The segments driver removes them file by file.
func TestOpen_subscriptionEvents(t *testing.T) {
	for _, driver := range config.HistoryDrivers() {
		t.Run(driver, func(t *testing.T) {
			c := config.History{Driver: driver, Path: config.File(filepath.Join(t.TempDir(), "history")), MaxEvents: 10, MaxSubscriptionEvents: 5}
			log, err := historyapp.Open(t.Context(), c, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = log.Close() }()
			for i := range 40 {
				r := &history.Record{ID: strconv.Itoa(i), Topics: []string{"t"}, Subscription: i >= 10}
				if _, err := log.Append(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			inspector, ok := log.(history.Inspector)
			if !ok {
				t.Fatal("there are no statistics")
			}
			if s, err := inspector.Stats(t.Context()); err != nil || s.Events != 10 ||
				s.SubscriptionEvents < 5 || s.SubscriptionEvents > 5 && driver != "segments" {
				t.Errorf("Stats() = %+v, %v", s, err)
			}
		})
	}
}

func TestOpenDirectory(t *testing.T) {
	if d, err := historyapp.OpenDirectory(config.History{Driver: "memory", Path: config.File(t.TempDir())}, nil); d != nil || err != nil {
		t.Errorf("OpenDirectory(memory) = %v, %v, want none", d, err)
	}
	for _, driver := range []string{"segments", "bolt"} {
		c := filled(t, driver, 1)
		d, err := historyapp.OpenDirectory(c, nil)
		if err != nil {
			t.Fatalf("OpenDirectory(%s) = %v", driver, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if n := len(all(t, c)); n != 1 { // the file is none of the history's
			t.Errorf("%s: %d entries, want 1", driver, n)
		}
	}
	if _, err := historyapp.OpenDirectory(config.History{Driver: "bolt", Path: config.File(filepath.Join(t.TempDir(), "missing"))}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("OpenDirectory() = %v without a folder, want ErrNotExist", err)
	}
}

// A file of subscribers that others could have written, or that is none, is not taken over.
func TestImport_subscribersOfOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		make func(path string) error
		want error
	}{
		"rights": {func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o666)) }, private.ErrLoose},
		"a link": {func(path string) error { return os.Symlink(filepath.Join(t.TempDir(), "x"), path) }, private.ErrKind},
		"folder": {func(path string) error { return os.Mkdir(path, 0o700) }, private.ErrKind},
	} {
		if runtime.GOOS == "windows" && name != "folder" {
			continue
		}
		source := filled(t, "segments", 1)
		target := config.History{Driver: "bolt", Path: config.File(filepath.Join(t.TempDir(), "new"))}
		if err := tc.make(filepath.Join(string(source.Path), ".presence.db")); err != nil {
			t.Fatal(err)
		}
		if _, err := historyapp.Import(t.Context(), source, target, nil); !errors.Is(err, tc.want) {
			t.Errorf("%s: Import() = %v, want %v", name, err, tc.want)
		}
		if _, err := os.Lstat(filepath.Join(string(target.Path), ".presence.db")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the target has a file of subscribers: %v", name, err)
		}
	}
}

func TestOpenOffline(t *testing.T) {
	if _, err := historyapp.OpenOffline(t.Context(), config.History{Driver: "memory"}); !errors.Is(err, historyapp.ErrVolatile) {
		t.Errorf("OpenOffline() = %v, want ErrVolatile", err)
	}
	if _, err := historyapp.OpenOffline(t.Context(), config.History{Driver: "redis"}); err == nil {
		t.Error("OpenOffline(redis) succeeded")
	}
	for _, driver := range []string{"segments", "bolt"} {
		missing := filepath.Join(t.TempDir(), "missing")
		c := config.History{Driver: driver, Path: config.File(missing)}
		if _, err := historyapp.OpenOffline(t.Context(), c); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("OpenOffline(%s) = %v, want ErrNotExist", driver, err)
		}
		if _, err := historyapp.Compact(t.Context(), c, nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Compact(%s) = %v, want ErrNotExist", driver, err)
		}
		if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Stat() = %v, want no folder", err)
		}
	}
}

// filled makes a history with so many updates.
func filled(t *testing.T, driver string, count int) config.History {
	t.Helper()
	return filledWith(t, driver, count, func(int) bool { return false })
}

// filledWith makes a history with so many entries, of which some are subscription events.
func filledWith(t *testing.T, driver string, count int, subscription func(n int) bool) config.History {
	t.Helper()
	c := config.History{Driver: driver, Path: config.File(filepath.Join(t.TempDir(), "history"))}
	log, err := historyapp.Open(t.Context(), c, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	importer, ok := log.(history.Importer)
	if !ok {
		t.Fatalf("%s cannot import", driver)
	}
	n := 0
	err = importer.Import(t.Context(), func() (history.Stamped, error) {
		if n == count {
			return history.Stamped{}, io.EOF
		}
		n++
		r := history.Record{ID: fmt.Sprint("id-", n), Topics: []string{"t"}, Private: n%2 == 0, Subscription: subscription(n), Event: []byte("data: x\n\n")}
		return history.Stamped{Record: r, At: time.Unix(1_600_000_000+int64(n), 0)}, nil
	})
	if err := errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
	return c
}

// all reads a history.
func all(t *testing.T, c config.History) []history.Stamped {
	t.Helper()
	log, err := historyapp.OpenOffline(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var got []history.Stamped
	err = log.Export(t.Context(), func(s history.Stamped) error {
		got = append(got, s)
		return nil
	})
	if err := errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
	return got
}

// Updates keep their ids, their order and their times, whatever the drivers.
func TestImport(t *testing.T) {
	const count = 3000
	for _, from := range []string{"segments", "bolt"} {
		for _, to := range []string{"segments", "bolt"} {
			t.Run(from+" to "+to, func(t *testing.T) {
				source := filledWith(t, from, count, func(n int) bool { return n%4 == 0 })
				target := config.History{Driver: to, Path: config.File(filepath.Join(t.TempDir(), "new", "history"))}
				subscribers := filepath.Join(string(source.Path), ".presence.db")
				if err := os.WriteFile(subscribers, []byte("mine"), 0o600); err != nil {
					t.Fatal(err)
				}
				r, err := historyapp.Import(t.Context(), source, target, nil)
				if err != nil || r != (historyapp.Imported{Events: count, Kept: count}) {
					t.Fatalf("Import() = %+v, %v", r, err)
				}
				copied := filepath.Join(string(target.Path), ".presence.db")
				for _, file := range []string{subscribers, copied} { // whose ends are still to be reported
					if b, err := os.ReadFile(file); err != nil || string(b) != "mine" {
						t.Errorf("the file of subscribers is %q, %v", b, err)
					}
				}
				if err := private.CheckFile(copied); err != nil {
					t.Error(err)
				}
				if d := cmp.Diff(all(t, source), all(t, target)); d != "" {
					t.Errorf("the histories differ (-source +target):\n%s", d)
				}
				if _, err := historyapp.Import(t.Context(), source, target, nil); !errors.Is(err, history.ErrNotEmpty) {
					t.Errorf("Import() = %v the second time, want ErrNotEmpty", err)
				}
			})
		}
	}
	t.Run("limits hold", func(t *testing.T) {
		target := config.History{Driver: "bolt", MaxEvents: 10, Path: config.File(filepath.Join(t.TempDir(), "history"))}
		r, err := historyapp.Import(t.Context(), filled(t, "segments", 50), target, nil)
		if err != nil || r != (historyapp.Imported{Events: 50, Kept: 10}) {
			t.Errorf("Import() = %+v, %v", r, err)
		}
	})
}

func TestImport_errors(t *testing.T) {
	source := filled(t, "bolt", 5)
	target := config.History{Driver: "segments", Path: config.File(filepath.Join(t.TempDir(), "history"))}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(string(source.Path), link); err != nil {
		link = string(source.Path)
	}
	for name, c := range map[string]struct {
		from, to config.History
		want     error
		source   bool // it is the source's error
	}{
		"no such source":       {config.History{Driver: "bolt", Path: "nowhere"}, target, fs.ErrNotExist, true},
		"another driver's":     {config.History{Driver: "segments", Path: source.Path}, target, history.ErrForeignFile, true},
		"the same folder":      {source, source, historyapp.ErrSamePlace, false},
		"the same, by a link":  {source, config.History{Driver: "bolt", Path: config.File(link)}, historyapp.ErrSamePlace, false},
		"the same, not there":  {target, target, historyapp.ErrSamePlace, false},
		"inside of the source": {source, config.History{Driver: "segments", Path: source.Path + "/new/history"}, historyapp.ErrSamePlace, false},
		"inside, by a link":    {source, config.History{Driver: "segments", Path: config.File(link + "/new")}, historyapp.ErrSamePlace, false},
		"memory":               {source, config.History{Driver: "memory"}, historyapp.ErrVolatile, false},
		"from memory":          {config.History{Driver: "memory"}, target, historyapp.ErrVolatile, false},
		"a target with others": {source, config.History{Driver: "bolt", Path: filled(t, "segments", 1).Path}, history.ErrForeignFile, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := historyapp.Import(t.Context(), c.from, c.to, nil)
			_, isSource := errors.AsType[*historyapp.SourceError](err)
			if !errors.Is(err, c.want) || isSource != c.source {
				t.Errorf("Import() = %v, want %v, of the source: %t", err, c.want, c.source)
			}
			if _, err := os.Stat(string(target.Path)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Stat() = %v, want no target", err)
			}
		})
	}
	for _, open := range []config.History{source, filled(t, "segments", 0)} {
		log, err := historyapp.Open(t.Context(), open, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = historyapp.Import(t.Context(), source, config.History{Driver: open.Driver, Path: open.Path}, nil)
		if open.Path != source.Path && !errors.Is(err, history.ErrLocked) {
			t.Errorf("Import() = %v to a history that is open, want ErrLocked", err)
		}
		if _, err = historyapp.Import(t.Context(), open, target, nil); !errors.Is(err, history.ErrLocked) {
			t.Errorf("Import() = %v from a history that is open, want ErrLocked", err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := historyapp.Import(ctx, source, target, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Import(cancelled) = %v", err)
	}
}

func TestCompact(t *testing.T) {
	for _, driver := range []string{"segments", "bolt"} {
		c := filled(t, driver, 2000)
		c.MaxEvents = 10
		if r, err := historyapp.Compact(t.Context(), c, nil); err != nil || r.Before == 0 || r.After > r.Before {
			t.Errorf("Compact(%s) = %+v, %v", driver, r, err)
		}
		if got := all(t, c); driver == "bolt" && len(got) != 10 {
			t.Errorf("%s has %d updates, want those within the limit", driver, len(got))
		}
	}
}
