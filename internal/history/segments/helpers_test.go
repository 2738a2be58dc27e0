package segments_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/segments"
)

const (
	headerSize = 64
	// recordSize is the size of a record that put appends.
	recordSize = 32 + 8 + 4 + 7 + 20
)

// put appends records that all have the same size, and closes the log.
func put(t *testing.T, o segments.Options, first, count int) {
	t.Helper()
	log := mustOpen(t, o)
	for n := first; n < first+count; n++ {
		if _, err := log.Append(t.Context(), numbered(n)); err != nil {
			t.Fatalf("Append() = %v", err)
		}
	}
	mustCompact(t, log) // so that all full segments have their indexes
	mustClose(t, log)
}

// fill makes a store of so many records as put would, of fewer commits.
func fill(t *testing.T, o segments.Options, count int) {
	t.Helper()
	log := mustOpen(t, o)
	n := 0
	err := log.Import(t.Context(), func() (history.Stamped, error) {
		if n++; n > count {
			return history.Stamped{}, io.EOF
		}
		return history.Stamped{Record: *numbered(n)}, nil
	})
	if err != nil {
		t.Fatalf("Import() = %v", err)
	}
	mustCompact(t, log)
	mustClose(t, log)
}

func mustCompact(tb testing.TB, log *segments.Log) history.Compaction {
	tb.Helper()
	c, err := log.Compact(tb.Context())
	if err != nil {
		tb.Fatalf("Compact() = %v", err)
	}
	return c
}

func numbered(n int) *history.Record {
	return &history.Record{ID: fmt.Sprintf("id-%05d", n), Topics: []string{"a topic"}, Event: fmt.Appendf(nil, "data: number %05d\n\n", n)}
}

func mustClose(tb testing.TB, log history.Log) {
	tb.Helper()
	if err := log.Close(); err != nil {
		tb.Fatalf("Close() = %v", err)
	}
}

// wantNumbers checks that the log holds the numbered records from first to last, in order.
func wantNumbers(t *testing.T, log history.Log, first, last int) {
	t.Helper()
	page, err := log.Replay(t.Context(), history.Query{MaxBytes: 1 << 30})
	if err != nil {
		t.Fatalf("Replay() = %v", err)
	}
	if len(page.Entries) != last-first+1 {
		t.Fatalf("%d entries, want %d", len(page.Entries), last-first+1)
	}
	for i, e := range page.Entries {
		want := numbered(first + i)
		if e.ID != want.ID || !bytes.Equal(e.Event, want.Event) {
			t.Fatalf("entry %d is %s %q, want %s", i, e.ID, e.Event, want.ID)
		}
	}
}

// compactUntil compacts until done returns true: the janitor may be looking at a file that is to go.
func compactUntil(t *testing.T, log *segments.Log, done func() bool) {
	t.Helper()
	stuck := time.After(30 * time.Second)
	for mustCompact(t, log); !done(); mustCompact(t, log) {
		select {
		case <-time.After(time.Millisecond):
		case <-stuck:
			t.Error("the files are not what they should be for half a minute")
			return
		}
	}
}

// names returns the segment files in order.
func names(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// indexFiles returns the index files in order.
func indexFiles(tb testing.TB, dir string) []string {
	tb.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.idx"))
	if err != nil {
		tb.Fatal(err)
	}
	return found
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// snapshot returns the contents of every file but the lock.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Type().IsRegular() && e.Name() != "LOCK" {
			files[e.Name()] = string(readFile(t, filepath.Join(dir, e.Name())))
		}
	}
	return files
}

// wantRefused checks that the store does not open, and is left as it was.
func wantRefused(t *testing.T, o segments.Options, want error) {
	t.Helper()
	before := snapshot(t, o.Dir)
	log, err := segments.Open(t.Context(), o)
	if err == nil {
		_ = log.Close()
	}
	if !errors.Is(err, want) {
		t.Errorf("Open() = %v, want %v", err, want)
	}
	after := snapshot(t, o.Dir)
	if len(after) != len(before) {
		t.Errorf("Open() left %d files of %d", len(after), len(before))
	}
	for name, content := range before {
		if after[name] != content {
			t.Errorf("Open() changed %s", name)
		}
	}
}

// wantDamaged checks that the store opens, and that damage in the named file is told by whatever needs it, and nothing changed.
func wantDamaged(t *testing.T, o segments.Options, name string) {
	t.Helper()
	before := snapshot(t, o.Dir)
	log := mustOpen(t, o)
	_, replay := log.Replay(t.Context(), history.Query{})
	_, verify := log.Verify(t.Context())
	export := log.Export(t.Context(), func(history.Stamped) error { return nil })
	mustClose(t, log)
	for what, err := range map[string]error{"Replay": replay, "Verify": verify, "Export": export} {
		if !errors.Is(err, history.ErrCorrupt) || !strings.Contains(err.Error(), filepath.Base(name)) {
			t.Errorf("%s() = %v, want ErrCorrupt in %s", what, err, name)
		}
	}
	for file, content := range snapshot(t, o.Dir) {
		if before[file] != content {
			t.Errorf("%s has changed", file)
		}
	}
}
