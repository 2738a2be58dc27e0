package segments_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/segments"
)

func TestOpen_files(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "down", "history")
	put(t, segments.Options{Dir: dir, SegmentBytes: headerSize + 2*recordSize}, 1, 5)
	want := []string{
		"LOCK", "0000000000000001.seg", "0000000000000003.seg", "0000000000000005.seg",
		"0000000000000001.idx", "0000000000000003.idx",
	}
	for _, name := range want {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", name, info.Mode())
		}
	}
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v, want 0700", info.Mode())
	}
	log := mustOpen(t, segments.Options{Dir: dir})
	defer mustClose(t, log)
	wantNumbers(t, log, 1, 5)
}

// Whatever part of the last record a crash has left, the ones before it are there and the log
// goes on.
func TestOpen_tornTail(t *testing.T) {
	o := segments.Options{Dir: t.TempDir()}
	put(t, o, 1, 3)
	name := names(t, o.Dir)[0]
	whole := readFile(t, name)
	if len(whole) != headerSize+3*recordSize {
		t.Fatalf("the file has %d bytes, want %d", len(whole), headerSize+3*recordSize)
	}
	keep := headerSize + 2*recordSize
	for cut := keep; cut < len(whole); cut++ {
		for kind, tail := range map[string][]byte{
			"missing": nil,
			"zeros":   make([]byte, len(whole)-cut),
			"garbage": bytes.Repeat([]byte{0xa5}, 3*recordSize),
		} {
			if cut == keep && kind == "missing" {
				continue // that is two whole records
			}
			writeFile(t, name, append(bytes.Clone(whole[:cut]), tail...))
			log, err := segments.Open(t.Context(), o)
			if err != nil {
				t.Fatalf("Open(cut at %d, then %s) = %v", cut, kind, err)
			}
			wantNumbers(t, log, 1, 2)
			mustClose(t, log)
			if got := readFile(t, name); !bytes.Equal(got, whole[:keep]) {
				t.Fatalf("cut at %d, then %s: %d bytes are left, want %d", cut, kind, len(got), keep)
			}
		}
	}
	put(t, o, 3, 1)
	log := mustOpen(t, o)
	defer mustClose(t, log)
	wantNumbers(t, log, 1, 3)
}

func TestOpen_tornTailIsReported(t *testing.T) {
	o := segments.Options{Dir: t.TempDir()}
	put(t, o, 1, 2)
	name := names(t, o.Dir)[0]
	writeFile(t, name, readFile(t, name)[:headerSize+recordSize+5])
	var out bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&out, nil))
	mustClose(t, mustOpen(t, o))
	if !strings.Contains(out.String(), "unfinished write") || strings.Contains(out.String(), "number 0") {
		t.Errorf("the log says %q", out.String())
	}
}

// Each acknowledged record that goes bad is damage, not a torn tail, whichever bit it is: it is found when the store is opened if it
// is in the last segment and later commits follow, and when it is read if it is in another one.
func TestOpen_damage(t *testing.T) {
	for place, segmentBytes := range map[string]int64{"the last segment": 0, "another segment": headerSize + 3*recordSize} {
		t.Run(place, func(t *testing.T) {
			o := segments.Options{Dir: t.TempDir(), SegmentBytes: segmentBytes}
			put(t, o, 1, 4)
			name := names(t, o.Dir)[0]
			whole := readFile(t, name)
			for at := headerSize + recordSize; at < headerSize+2*recordSize; at++ {
				bad := bytes.Clone(whole)
				bad[at] ^= 0x40
				writeFile(t, name, bad)
				if segmentBytes == 0 {
					wantRefused(t, o, history.ErrCorrupt)
				} else {
					wantDamaged(t, o, name)
				}
			}
			writeFile(t, name, whole)
			log := mustOpen(t, o)
			defer mustClose(t, log)
			wantNumbers(t, log, 1, 4)
		})
	}
	t.Run("the header", func(t *testing.T) {
		o := segments.Options{Dir: t.TempDir()}
		put(t, o, 1, 4)
		name := names(t, o.Dir)[0]
		whole := readFile(t, name)
		whole[40] ^= 1
		writeFile(t, name, whole)
		wantRefused(t, o, history.ErrCorrupt)
		writeFile(t, name, whole[:20])
		wantRefused(t, o, history.ErrCorrupt)
	})
	t.Run("another segment that is too short", func(t *testing.T) {
		o := segments.Options{Dir: t.TempDir(), SegmentBytes: headerSize + 2*recordSize}
		put(t, o, 1, 6)
		name := names(t, o.Dir)[1]
		writeFile(t, name, readFile(t, name)[:headerSize+recordSize+7])
		wantRefused(t, o, history.ErrCorrupt)
		writeFile(t, name, readFile(t, name)[:headerSize+recordSize])
		wantRefused(t, o, history.ErrCorrupt)
	})
	t.Run("a missing segment", func(t *testing.T) {
		o := segments.Options{Dir: t.TempDir(), SegmentBytes: headerSize + 2*recordSize}
		put(t, o, 1, 6)
		if err := os.Remove(names(t, o.Dir)[1]); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, o, history.ErrCorrupt)
	})
	t.Run("while it is open", func(t *testing.T) {
		o := segments.Options{Dir: t.TempDir()}
		put(t, o, 1, 4)
		log := mustOpen(t, o)
		defer mustClose(t, log)
		name := names(t, o.Dir)[0]
		whole := readFile(t, name)
		whole[headerSize+2*recordSize+50] ^= 1
		writeFile(t, name, whole)
		if _, err := log.Replay(t.Context(), history.Query{}); !errors.Is(err, history.ErrCorrupt) {
			t.Errorf("Replay() = %v, want ErrCorrupt", err)
		}
		if p, err := log.Seek(t.Context(), numbered(2).ID); err != nil || p != 2 {
			t.Errorf("Seek() = %d, %v for a sound record", p, err)
		}
		if _, err := log.Seek(t.Context(), numbered(3).ID); !errors.Is(err, history.ErrCorrupt) {
			t.Errorf("Seek() = %v, want ErrCorrupt", err)
		}
	})
}

// Within one commit, which has one sync, a crash may leave later records without earlier ones.
func TestOpen_tornWithinACommit(t *testing.T) {
	var o segments.Options
	var whole []byte
	first := -1
	for attempt := 0; first < 0; attempt++ { // which appends share a commit is up to the scheduler
		if attempt == 100 {
			t.Fatal("20,000 concurrent appends, and never three in one commit")
		}
		o = segments.Options{Dir: t.TempDir()}
		whole, first = commitOfThree(t, o)
	}
	name := names(t, o.Dir)[0]
	whole[headerSize+(first+1)*recordSize+40] ^= 1
	writeFile(t, name, whole)
	log := mustOpen(t, o)
	defer mustClose(t, log)
	if h, err := log.Head(t.Context()); err != nil || h.Last != history.Position(first+1) {
		t.Errorf("Head() = %+v, %v, want the commit's first record at %d to be the last", h, err, first+1)
	}
}

// commitOfThree appends concurrently and returns the segment up to the third record of the first commit that has so many,
// and the index of that commit's first record, -1 when there is none.
func commitOfThree(t *testing.T, o segments.Options) (whole []byte, first int) {
	t.Helper()
	put(t, o, 1, 2)
	log := mustOpen(t, o)
	const count = 200
	done := make(chan error, count)
	for n := range count {
		go func() {
			_, err := log.Append(context.WithoutCancel(t.Context()), numbered(100+n))
			done <- err
		}()
	}
	for range count {
		if err := <-done; err != nil {
			t.Fatalf("Append() = %v", err)
		}
	}
	mustClose(t, log)
	whole = readFile(t, names(t, o.Dir)[0])
	size := 0
	for n, at := 2, headerSize+2*recordSize; at < len(whole); n, at = n+1, at+recordSize {
		if whole[at+9]&2 != 0 {
			first, size = n, 0
		}
		if size++; size > 2 {
			return whole[:at+recordSize], first
		}
	}
	return nil, -1
}

func TestOpen_refuses(t *testing.T) {
	fill := func(t *testing.T) (segments.Options, string) {
		t.Helper()
		o := segments.Options{Dir: t.TempDir()}
		put(t, o, 1, 2)
		return o, names(t, o.Dir)[0]
	}
	t.Run("a newer format", func(t *testing.T) {
		o, name := fill(t)
		b := readFile(t, name)
		binary.LittleEndian.PutUint16(b[8:], 2)
		writeFile(t, name, b)
		wantRefused(t, o, history.ErrNewerFormat)
	})
	for _, foreign := range []string{"mercure.db", "1.idx", "000000000000000A.idx", "1.seg", "000000000000000A.seg", "0000000000000000.seg"} {
		t.Run("a file called "+foreign, func(t *testing.T) {
			o, _ := fill(t)
			writeFile(t, filepath.Join(o.Dir, foreign), []byte("hello"))
			wantRefused(t, o, history.ErrForeignFile)
		})
	}
	t.Run("a segment that is none", func(t *testing.T) {
		o, _ := fill(t)
		writeFile(t, filepath.Join(o.Dir, "0000000000000003.seg"), []byte("hello"))
		wantRefused(t, o, history.ErrForeignFile)
	})
	t.Run("a renamed segment", func(t *testing.T) {
		o, name := fill(t)
		if err := os.Rename(name, filepath.Join(o.Dir, "0000000000000002.seg")); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, o, history.ErrForeignFile)
	})
	t.Run("a segment of another store", func(t *testing.T) {
		small := headerSize + 2*int64(recordSize)
		o, other := segments.Options{Dir: t.TempDir(), SegmentBytes: small}, segments.Options{Dir: t.TempDir(), SegmentBytes: small}
		put(t, o, 1, 4)
		put(t, other, 1, 4)
		writeFile(t, names(t, o.Dir)[1], readFile(t, names(t, other.Dir)[1]))
		wantRefused(t, o, history.ErrForeignFile)
	})
	t.Run("a folder in its place", func(t *testing.T) {
		o, _ := fill(t)
		if err := os.Mkdir(filepath.Join(o.Dir, "backup"), 0o700); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, o, history.ErrForeignFile)
	})
	t.Run("a file in the place of the folder", func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "history")
		writeFile(t, name, []byte("x"))
		if _, err := segments.Open(t.Context(), segments.Options{Dir: name}); !errors.Is(err, history.ErrForeignFile) {
			t.Errorf("Open() = %v, want ErrForeignFile", err)
		}
	})
	t.Run("a store in use", func(t *testing.T) {
		o, _ := fill(t)
		log := mustOpen(t, o)
		if _, err := segments.Open(t.Context(), o); !errors.Is(err, history.ErrLocked) {
			t.Errorf("Open() = %v, want ErrLocked", err)
		}
		mustClose(t, log)
		mustClose(t, mustOpen(t, o))
	})
	t.Run("when its context has ended", func(t *testing.T) {
		o, _ := fill(t)
		put(t, o, 3, 1100)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := segments.Open(ctx, o); !errors.Is(err, context.Canceled) {
			t.Errorf("Open() = %v, want the context's error", err)
		}
		mustClose(t, mustOpen(t, o))
	})
}

func TestOpen_leavesAlone(t *testing.T) {
	o := segments.Options{Dir: t.TempDir()}
	put(t, o, 1, 2)
	writeFile(t, filepath.Join(o.Dir, ".gitignore"), []byte("*"))
	if err := os.Mkdir(filepath.Join(o.Dir, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	temp := filepath.Join(o.Dir, "0000000000000003.seg.tmp")
	writeFile(t, temp, []byte("half a header"))
	log := mustOpen(t, o)
	defer mustClose(t, log)
	wantNumbers(t, log, 1, 2)
	if _, err := os.Stat(temp); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an unfinished segment is still there: %v", err)
	}
	if got := readFile(t, filepath.Join(o.Dir, ".gitignore")); string(got) != "*" {
		t.Errorf(".gitignore is now %q", got)
	}
}

// A new store is another sequence of positions; a reopened one is the same.
func TestOpen_epoch(t *testing.T) {
	epoch := func(dir string) string {
		log := mustOpen(t, segments.Options{Dir: dir})
		defer mustClose(t, log)
		h, err := log.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return h.Epoch
	}
	dir := t.TempDir()
	if a, b, c := epoch(dir), epoch(dir), epoch(t.TempDir()); a != b || a == c || a == "" {
		t.Errorf("epochs are %q, %q of one store and %q of another", a, b, c)
	}
}

func TestOptions_Validate(t *testing.T) {
	for name, o := range map[string]segments.Options{
		"no folder":                {},
		"a negative limit":         {Dir: "x", MaxEvents: -1},
		"another negative limit":   {Dir: "x", MaxSubscriptionEvents: -1},
		"a negative age":           {Dir: "x", MaxAge: -1},
		"a tiny limit by bytes":    {Dir: "x", MaxBytes: 1000},
		"huge segments":            {Dir: "x", SegmentBytes: 2 << 30},
		"segments near the limit":  {Dir: "x", SegmentBytes: 60 << 10, MaxBytes: 100 << 10},
		"a negative tail's buffer": {Dir: "x", TailBufferBytes: -1},
	} {
		if _, err := segments.Open(t.Context(), o); err == nil {
			t.Errorf("Open() accepts %s", name)
		}
	}
}

func TestAppend_refuses(t *testing.T) {
	log := mustOpen(t, segments.Options{Dir: t.TempDir()})
	defer mustClose(t, log)
	many := make([]string, 1<<16)
	for name, tc := range map[string]struct {
		record history.Record
		want   error
	}{
		"a large event":   {history.Record{ID: "a", Topics: []string{"t"}, Event: make([]byte, 16<<20)}, history.ErrTooLarge},
		"too many topics": {history.Record{ID: "a", Topics: many}, history.ErrTooLarge},
		"no id":           {history.Record{Topics: []string{"t"}}, nil},
		"no topic":        {history.Record{ID: "a"}, nil},
	} {
		if _, err := log.Append(t.Context(), &tc.record); err == nil || tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("Append(%s) = %v, want %v", name, err, tc.want)
		}
	}
	large := history.Record{ID: "a", Topics: many[1:], Event: make([]byte, 15<<20)}
	if p, err := log.Append(t.Context(), &large); err != nil || p != 1 {
		t.Errorf("Append(a large record) = %d, %v", p, err)
	}
	page, err := log.Replay(t.Context(), history.Query{})
	if err != nil || len(page.Entries) != 1 || len(page.Entries[0].Event) != 15<<20 {
		t.Errorf("Replay() = %d entries, %v", len(page.Entries), err)
	}
}
