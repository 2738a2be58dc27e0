package segments_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/segments"
)

// copied is a file of a copy.
type copied struct {
	bytes.Buffer

	name string
	size int64
	err  error // of closing
}

func (f *copied) Close() error { return f.err }

// collector keeps the files of a copy.
type collector struct {
	files []*copied
	// created, when set, is called for each file before it is made.
	created func(name string) error
}

func (c *collector) create(name string, size int64) (io.WriteCloser, error) {
	if c.created != nil {
		if err := c.created(name); err != nil {
			return nil, err
		}
	}
	f := &copied{name: name, size: size}
	c.files = append(c.files, f)
	return f, nil
}

// folder writes the files to a new folder.
func (c *collector) folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range c.files {
		if int64(f.Len()) != f.size {
			t.Errorf("%s has %d bytes, and %d were announced", f.name, f.Len(), f.size)
		}
		writeFile(t, filepath.Join(dir, f.name), f.Bytes())
	}
	return dir
}

func backup(t *testing.T, log *segments.Log) string {
	t.Helper()
	var c collector
	if err := log.Backup(t.Context(), c.create); err != nil {
		t.Fatalf("Backup() = %v", err)
	}
	return c.folder(t)
}

func epoch(t *testing.T, log history.Log) string {
	t.Helper()
	h, err := log.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h.Epoch
}

func TestBackup(t *testing.T) {
	o := smallSegments(t)
	put(t, o, 1, 5)
	log := mustOpen(t, o)
	defer mustClose(t, log)
	before := snapshot(t, o.Dir)
	dir := backup(t, log)
	for name, content := range snapshot(t, o.Dir) {
		if before[name] != content {
			t.Errorf("Backup() changed %s", name)
		}
	}
	restored := mustOpen(t, segments.Options{Dir: dir, SegmentBytes: o.SegmentBytes})
	wantNumbers(t, restored, 1, 5)
	if a, b := epoch(t, log), epoch(t, restored); a == b || b == "" {
		t.Errorf("epoch of the copy is %q, that of the log %q", b, a)
	}
	for n := 1; n <= 5; n++ {
		if p, err := restored.Seek(t.Context(), numbered(n).ID); err != nil || p != history.Position(n) {
			t.Errorf("Seek() = %d, %v in the copy, want %d", p, err, n)
		}
	}
	if p, err := restored.Append(t.Context(), numbered(6)); err != nil || p != 6 {
		t.Errorf("Append() = %d, %v to the copy, want 6", p, err)
	}
	mustClose(t, restored)
	restored = mustOpen(t, segments.Options{Dir: dir})
	defer mustClose(t, restored)
	wantNumbers(t, restored, 1, 6)
	wantNumbers(t, log, 1, 5)
	// A file of the copy does not pass for one of the log, nor the other way round.
	mixed := backup(t, log)
	writeFile(t, filepath.Join(mixed, "0000000000000003.seg"), readFile(t, filepath.Join(o.Dir, "0000000000000003.seg")))
	wantRefused(t, segments.Options{Dir: mixed}, history.ErrForeignFile)
}

func TestBackup_differentLogs(t *testing.T) {
	t.Run("without a record", func(t *testing.T) {
		log := mustOpen(t, segments.Options{Dir: t.TempDir()})
		defer mustClose(t, log)
		restored := mustOpen(t, segments.Options{Dir: backup(t, log)})
		defer mustClose(t, restored)
		if h, err := restored.Head(t.Context()); err != nil || h.First != 1 || h.Last != 0 {
			t.Errorf("Head() = %+v, %v, want an empty log", h, err)
		}
	})
	t.Run("opened for reading alone, with a torn end", func(t *testing.T) {
		o := smallSegments(t)
		put(t, o, 1, 6)
		name := names(t, o.Dir)[2]
		writeFile(t, name, readFile(t, name)[:headerSize+recordSize+9])
		log := mustOpen(t, segments.Options{Dir: o.Dir, ReadOnly: true})
		defer mustClose(t, log)
		restored := mustOpen(t, segments.Options{Dir: backup(t, log)})
		defer mustClose(t, restored)
		wantNumbers(t, restored, 1, 5)
	})
	t.Run("with entries that the limit by number has trimmed", func(t *testing.T) {
		o := smallSegments(t)
		o.MaxEvents = 3
		put(t, o, 1, 6)
		log := mustOpen(t, o)
		defer mustClose(t, log)
		restored := mustOpen(t, segments.Options{Dir: backup(t, log), MaxEvents: 3})
		defer mustClose(t, restored)
		wantNumbers(t, restored, 4, 6)
	})
	t.Run("with records larger than a buffer", func(t *testing.T) {
		log := mustOpen(t, segments.Options{Dir: t.TempDir()})
		defer mustClose(t, log)
		for n := range 4 {
			r := &history.Record{ID: strconv.Itoa(n), Topics: []string{"t"}, Event: bytes.Repeat([]byte{byte('a' + n)}, n*900_000)}
			if _, err := log.Append(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		restored := mustOpen(t, segments.Options{Dir: backup(t, log)})
		defer mustClose(t, restored)
		page, err := restored.Replay(t.Context(), history.Query{MaxBytes: 1 << 30})
		if err != nil || len(page.Entries) != 4 || len(page.Entries[3].Event) != 2_700_000 || page.Entries[3].Event[2_699_999] != 'd' {
			t.Errorf("Replay() = %d entries, %v", len(page.Entries), err)
		}
	})
}

// What retention removes while a copy is taken is missing at the copy's beginning, never in its midst, and is not kept
// for its sake.
func TestBackup_retentionMeanwhile(t *testing.T) {
	o := smallSegments(t)
	o.MaxEvents = 6
	put(t, o, 1, 12)
	log := mustOpen(t, o)
	defer mustClose(t, log)
	c := collector{}
	c.created = func(name string) error {
		if len(c.files) != 1 {
			return nil
		}
		for n := 13; n <= 16; n++ { // the newest has been copied, the next one is being copied
			if _, err := log.Append(t.Context(), numbered(n)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := log.Backup(t.Context(), c.create); err != nil {
		t.Fatal(err)
	}
	restored := mustOpen(t, segments.Options{Dir: c.folder(t)})
	defer mustClose(t, restored)
	h, err := restored.Head(t.Context())
	if err != nil || h.Last != 12 || h.First < 7 || h.First > 11 {
		t.Fatalf("Head() = %+v, %v, want what was there when the copy began but for its oldest part", h, err)
	}
	wantNumbers(t, restored, int(h.First), 12)
}

// A copy that is taken under load holds all that was acknowledged before it began, and no gap.
func TestBackup_underLoad(t *testing.T) {
	o := segments.Options{Dir: t.TempDir(), SegmentBytes: 16 << 10, MaxEvents: 4000}
	log := mustOpen(t, o)
	defer mustClose(t, log)
	var highest atomic.Uint64 // of the acknowledged positions
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				r := &history.Record{ID: fmt.Sprintf("%d-%d", w, n), Topics: []string{"t"}, Event: make([]byte, 50+n%200)}
				p, err := log.Append(context.WithoutCancel(ctx), r)
				if err != nil {
					t.Errorf("Append() = %v", err)
					return
				}
				for old := highest.Load(); old < uint64(p) && !highest.CompareAndSwap(old, uint64(p)); old = highest.Load() {
				}
			}
		})
	}
	for highest.Load() < 500 {
		if _, err := log.Head(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		before, err := log.Head(ctx)
		if err != nil {
			t.Fatal(err)
		}
		acknowledged := history.Position(highest.Load())
		dir := backup(t, log)
		after, err := log.Head(ctx)
		if err != nil {
			t.Fatal(err)
		}
		restored := mustOpen(t, segments.Options{Dir: dir})
		h, err := restored.Head(ctx)
		if err != nil || h.Last < acknowledged || h.Last > after.Last || h.First > after.First || h.Last < before.Last {
			t.Errorf("Head() = %+v, %v of a copy between %+v and %+v, want at least up to %d", h, err, before, after, acknowledged)
		}
		page, err := restored.Replay(ctx, history.Query{MaxBytes: 1 << 30})
		if err != nil || len(page.Entries) != int(h.Last-h.First+1) {
			t.Errorf("Replay() = %d entries, %v, want %d", len(page.Entries), err, h.Last-h.First+1)
		}
		mustClose(t, restored)
	}
	stop()
	wg.Wait()
}

func TestBackup_fails(t *testing.T) {
	broken := errors.New("broken")
	fill := func(t *testing.T) (segments.Options, *segments.Log) {
		t.Helper()
		o := smallSegments(t)
		put(t, o, 1, 6)
		return o, mustOpen(t, o)
	}
	t.Run("when a file cannot be made", func(t *testing.T) {
		_, log := fill(t)
		defer mustClose(t, log)
		c := collector{created: func(string) error { return broken }}
		if err := log.Backup(t.Context(), c.create); !errors.Is(err, broken) {
			t.Errorf("Backup() = %v, want the error", err)
		}
	})
	t.Run("when a file cannot be finished", func(t *testing.T) {
		_, log := fill(t)
		defer mustClose(t, log)
		err := log.Backup(t.Context(), func(string, int64) (io.WriteCloser, error) { return &copied{err: broken}, nil })
		if !errors.Is(err, broken) {
			t.Errorf("Backup() = %v, want the error", err)
		}
	})
	t.Run("when its context ends", func(t *testing.T) {
		_, log := fill(t)
		defer mustClose(t, log)
		ctx, cancel := context.WithCancel(t.Context())
		c := collector{created: func(string) error { cancel(); return nil }}
		if err := log.Backup(ctx, c.create); !errors.Is(err, context.Canceled) {
			t.Errorf("Backup() = %v, want the context's error", err)
		}
	})
	t.Run("when the log closes", func(t *testing.T) {
		_, log := fill(t)
		closed := make(chan error, 1)
		c := collector{created: func(string) error {
			select {
			case err := <-closed:
				closed <- err
			default:
				go func() { closed <- log.Close() }()
				for !errors.Is(log.Ready(t.Context()), history.ErrClosed) {
				}
			}
			return nil
		}}
		if err := log.Backup(t.Context(), c.create); !errors.Is(err, history.ErrClosed) {
			t.Errorf("Backup() = %v, want ErrClosed", err)
		}
		if err := <-closed; err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	t.Run("when a record is damaged", func(t *testing.T) {
		o, log := fill(t)
		defer mustClose(t, log)
		name := names(t, o.Dir)[1]
		b := readFile(t, name)
		b[headerSize+40] ^= 1
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		var c collector
		if err := log.Backup(t.Context(), c.create); !errors.Is(err, history.ErrCorrupt) {
			t.Errorf("Backup() = %v, want ErrCorrupt", err)
		}
	})
}
