package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/bolt"
)

// Compacting applies the limits and makes the file smaller, while everybody goes on.
func TestCompact(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := mustOpen(t, bolt.Options{Dir: dir})
	if err := log.Import(t.Context(), records(20_000, nil)); err != nil {
		t.Fatal(err)
	}
	mustClose(t, log)
	log = mustOpen(t, bolt.Options{Dir: dir, MaxEvents: 1000})
	defer mustClose(t, log)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			h, err := log.Head(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			page, err := log.Replay(t.Context(), history.Query{After: h.Last - 10})
			if err != nil || len(page.Entries) < 10 {
				t.Errorf("Replay() = %d entries, %v", len(page.Entries), err)
			}
			if _, err := log.Seek(t.Context(), h.LastID); err != nil {
				t.Errorf("Seek() = %v", err)
			}
		}
	})
	wg.Go(func() { fill(t, log, 30_000, 300) })
	c, err := log.Compact(t.Context())
	if err != nil || c.After >= c.Before/3 {
		t.Errorf("Compact() = %+v, %v, want far less", c, err)
	}
	info, err := os.Stat(filepath.Join(dir, "history.db"))
	if err != nil || info.Size() < c.After {
		t.Errorf("the file has %d bytes, %v, want %d", info.Size(), err, c.After)
	}
	stop()
	wg.Wait()
	if v, err := log.Verify(t.Context()); err != nil || v.Events != 1000 {
		t.Errorf("Verify() = %+v, %v", v, err)
	}
	if again, err := log.Compact(t.Context()); err != nil || again.After > again.Before {
		t.Errorf("Compact() = %+v, %v the second time", again, err)
	}
	fill(t, log, 40_000, 10)
	if left, err := filepath.Glob(filepath.Join(dir, "*.tmp")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestCompact_cancelled(t *testing.T) {
	dir := t.TempDir()
	log := mustOpen(t, bolt.Options{Dir: dir})
	fill(t, log, 0, 100)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := log.Compact(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Compact(cancelled) = %v", err)
	}
	if _, err := log.Verify(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Verify(cancelled) = %v", err)
	}
	fill(t, log, 100, 10)
	mustClose(t, log)
	if _, err := log.Compact(t.Context()); !errors.Is(err, history.ErrClosed) {
		t.Errorf("Compact() = %v, want ErrClosed", err)
	}
	if _, err := log.Verify(t.Context()); !errors.Is(err, history.ErrClosed) {
		t.Errorf("Verify() = %v, want ErrClosed", err)
	}
}

// copied are the files of a copy.
type copied map[string]*bytes.Buffer

type copiedFile struct{ *bytes.Buffer }

func (copiedFile) Close() error { return nil }

func (c copied) create(name string, _ int64) (io.WriteCloser, error) {
	c[name] = &bytes.Buffer{}
	return copiedFile{c[name]}, nil
}

func (c copied) write(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "copy")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range c {
		if err := os.WriteFile(filepath.Join(dir, name), content.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A copy is taken while the log grows and is trimmed, and is another store with the same entries.
func TestBackup(t *testing.T) {
	t.Parallel()
	log := mustOpen(t, bolt.Options{Dir: t.TempDir(), MaxEvents: 2000})
	defer mustClose(t, log)
	fill(t, log, 0, 1500)
	before, err := log.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { fill(t, log, 1500, 1500) })
	files := copied{}
	if err := log.Backup(t.Context(), files.create); err != nil {
		t.Fatalf("Backup() = %v", err)
	}
	wg.Wait()
	restored := mustOpen(t, bolt.Options{Dir: files.write(t)})
	defer mustClose(t, restored)
	after, err := restored.Head(t.Context())
	if err != nil || after.Epoch == before.Epoch || after.Last < before.Last {
		t.Errorf("Head() = %+v, %v of the copy, want another epoch than %s and at least %d", after, err, before.Epoch, before.Last)
	}
	if v, err := restored.Verify(t.Context()); err != nil || v.Events != int64(after.Last-after.First+1) {
		t.Errorf("Verify() = %+v, %v of the copy", v, err)
	}
	fill(t, restored, 9000, 5)
}

func TestBackup_errors(t *testing.T) {
	log := mustOpen(t, bolt.Options{Dir: t.TempDir()})
	defer mustClose(t, log)
	fill(t, log, 0, 100)
	broken := errors.New("broken")
	if err := log.Backup(t.Context(), func(string, int64) (io.WriteCloser, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("Backup() = %v, want the error of create", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := log.Backup(ctx, func(string, int64) (io.WriteCloser, error) {
		cancel()
		return copiedFile{&bytes.Buffer{}}, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Backup() = %v, want the context's error", err)
	}
	sizes := map[string]int64{}
	files := copied{}
	err = log.Backup(t.Context(), func(name string, size int64) (io.WriteCloser, error) {
		sizes[name] = size
		return files.create(name, size)
	})
	if err != nil || len(files) != 2 {
		t.Fatalf("Backup() gave %d files, %v", len(files), err)
	}
	for name, size := range sizes {
		if got := int64(files[name].Len()); got != size {
			t.Errorf("%s has %d bytes, and %d were announced", name, got, size)
		}
	}
}

// With a limit by bytes the file stops growing, and no publish waits for more than its own share of trimming.
func TestRetention_boundsTheFile(t *testing.T) {
	t.Parallel()
	const most = 2 << 20
	dir := t.TempDir()
	log := mustOpen(t, bolt.Options{Dir: dir, MaxBytes: most})
	defer mustClose(t, log)
	if err := log.Import(t.Context(), records(40_000, nil)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "history.db"))
	if err != nil {
		t.Fatal(err)
	}
	// A commit of up to 4 MiB needs room beside what it replaces, and the file grows in steps of 4 MiB.
	if info.Size() > most+16<<20 {
		t.Errorf("the file has %d bytes with a limit of %d", info.Size(), most)
	}
	if _, err := log.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if info, err = os.Stat(filepath.Join(dir, "history.db")); err != nil || info.Size() > most+4<<20 {
		t.Errorf("the file has %d bytes with a limit of %d after it was compacted, %v", info.Size(), most, err)
	}
	s, err := log.Stats(t.Context())
	if err != nil || s.Events < 2000 || s.Bytes > most {
		t.Errorf("Stats() = %+v, %v", s, err)
	}
}
