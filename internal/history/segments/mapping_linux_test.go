package segments_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/segments"
)

// held returns how many files of the folder the process has open, and how many it has mapped.
func held(t *testing.T, dir string) (open, mapped int) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if name, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(name, dir) {
			open++
		}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return open, strings.Count(string(maps), dir)
}

// A segment keeps one file open, and its index one mapping and no file; removing and closing give them back.
func TestDescriptorsAndMappings(t *testing.T) {
	o := segments.Options{Dir: filepath.Join(t.TempDir(), "history"), SegmentBytes: headerSize + 300*recordSize, MaxEvents: 2000}
	fill(t, o, 5000)
	for range 3 {
		log := mustOpen(t, o)
		wantNumbers(t, log, 3001, 5000)
		compactUntil(t, log, func() bool { return len(indexFiles(t, o.Dir)) == len(names(t, o.Dir))-1 })
		full := len(names(t, o.Dir)) - 1
		// The segments, the lock, and the folder as its root.
		if open, mapped := held(t, o.Dir); open > full+3 || mapped != full {
			t.Errorf("%d files are open and %d mapped of %d full segments and another", open, mapped, full)
		}
		mustClose(t, log)
		if open, mapped := held(t, o.Dir); open != 0 || mapped != 0 {
			t.Errorf("%d files are open and %d mapped after Close", open, mapped)
		}
	}
}

// An index that somebody cuts short while it is mapped, so that looking at it is a fault, is made again.
func TestIndex_cutWhileMapped(t *testing.T) {
	o := manyOptions(t.TempDir())
	put(t, o, 1, manyRecords)
	log := mustOpen(t, o)
	defer mustClose(t, log)
	for _, name := range indexFiles(t, o.Dir) {
		if err := os.Truncate(name, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := log.Verify(t.Context()); !errors.Is(err, history.ErrCorrupt) {
		t.Errorf("Verify() = %v, want ErrCorrupt", err)
	}
	page, err := log.Replay(t.Context(), history.Query{MaxBytes: 1 << 30, Select: history.Selection{Exact: []string{"a topic"}}})
	if err != nil || len(page.Entries) != manyRecords {
		t.Errorf("Replay() = %d entries, %v, want %d", len(page.Entries), err, manyRecords)
	}
	mustCompact(t, log)
	wantAll(t, log, manyRecords)
}

// What goes wrong with an index after it was found sound is told by Verify, and mended by Compact.
func TestIndex_changedWhileMapped(t *testing.T) {
	for name, at := range map[string]int64{"header": 90, "ids": 130, "offsets": 128 + 150*12, "topics": 128 + 150*16} {
		t.Run(name, func(t *testing.T) {
			o := manyOptions(t.TempDir())
			put(t, o, 1, manyRecords)
			log := mustOpen(t, o)
			defer mustClose(t, log)
			wantAll(t, log, manyRecords) // looks at all of it
			f, err := os.OpenFile(indexFiles(t, o.Dir)[0], os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			b := []byte{0}
			_, err = f.ReadAt(b, at)
			b[0] ^= 0x40
			_, written := f.WriteAt(b, at)
			if err := errors.Join(err, written, f.Close()); err != nil {
				t.Fatal(err)
			}
			if _, err := log.Verify(t.Context()); !errors.Is(err, history.ErrCorrupt) {
				t.Errorf("Verify() = %v, want ErrCorrupt", err)
			}
			mustCompact(t, log)
			wantAll(t, log, manyRecords)
		})
	}
}
