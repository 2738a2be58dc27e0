package segments_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/segments"
)

// wantAll checks by every way of reading that the log holds the numbered records from 1 to last.
func wantAll(t *testing.T, log *segments.Log, last int) {
	t.Helper()
	wantNumbers(t, log, 1, last)
	for n := 1; n <= last; n++ {
		if p, err := log.Seek(t.Context(), numbered(n).ID); err != nil || p != history.Position(n) {
			t.Errorf("Seek(%s) = %d, %v, want %d", numbered(n).ID, p, err, n)
		}
	}
	if p, err := log.Seek(t.Context(), "none"); !errors.Is(err, history.ErrUnknownID) {
		t.Errorf("Seek(none) = %d, %v, want ErrUnknownID", p, err)
	}
	for name, tc := range map[string]struct {
		sel  history.Selection
		want int
	}{
		"exact":         {history.Selection{Exact: []string{"a topic"}}, last},
		"nothing":       {history.Selection{Exact: []string{"another topic"}}, 0},
		"pattern":       {history.Selection{Pattern: func(s string) bool { return strings.HasPrefix(s, "a t") }, Prefixes: []string{"urn:"}}, last},
		"pattern, none": {history.Selection{Pattern: func(string) bool { return false }}, 0},
	} {
		page, err := log.Replay(t.Context(), history.Query{MaxBytes: 1 << 30, Select: tc.sel})
		if err != nil || len(page.Entries) != tc.want || page.Through != history.Position(last) {
			t.Errorf("Replay(%s) = %d entries through %d, %v, want %d", name, len(page.Entries), page.Through, err, tc.want)
		}
	}
	if v, err := log.Verify(t.Context()); err != nil || v.Events != int64(last) {
		t.Errorf("Verify() = %+v, %v, want %d entries", v, err, last)
	}
}

// manyRecords has three segments, two of which are full, with more records than are looked at without an index.
const manyRecords = 350

func manyOptions(dir string) segments.Options {
	return segments.Options{Dir: dir, SegmentBytes: headerSize + 150*recordSize}
}

// Whatever has become of an index file, nothing is lost or invented, and the file is made again as it was.
func TestIndexFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "history")
	put(t, manyOptions(dir), 1, manyRecords)
	whole := snapshot(t, dir)
	other := filepath.Join(t.TempDir(), "history")
	put(t, manyOptions(other), 1, manyRecords)
	if len(indexFiles(t, dir)) != 2 || len(indexFiles(t, other)) != 2 {
		t.Fatalf("%d and %d index files, want 2", len(indexFiles(t, dir)), len(indexFiles(t, other)))
	}
	first, second := indexFiles(t, dir)[0], indexFiles(t, dir)[1]
	content := readFile(t, first)
	mutilations := map[string]func(){
		"missing":                 func() { remove(t, first) },
		"empty":                   func() { writeFile(t, first, nil) },
		"cut short in its header": func() { writeFile(t, first, content[:100]) },
		"cut short":               func() { writeFile(t, first, content[:len(content)/2]) },
		"too long":                func() { writeFile(t, first, append(bytes.Clone(content), 0)) },
		"garbage":                 func() { writeFile(t, first, bytes.Repeat([]byte{0xa5}, len(content))) },
		"zeros":                   func() { writeFile(t, first, make([]byte, len(content))) },
		"zeros behind the header": func() { writeFile(t, first, append(bytes.Clone(content[:128]), make([]byte, len(content)-128)...)) },
		"of another version":      func() { b := bytes.Clone(content); b[8]++; writeFile(t, first, b) },
		"of another segment":      func() { writeFile(t, first, readFile(t, second)) },
		"of another store":        func() { writeFile(t, first, readFile(t, indexFiles(t, other)[0])) },
		"beside one unfinished":   func() { writeFile(t, first+".tmp", content[:200]) },
		"unfinished":              func() { remove(t, first); writeFile(t, first+".tmp", content[:200]) },
		"all missing":             func() { remove(t, first); remove(t, second) },
		"of a segment that is gone": func() {
			writeFile(t, filepath.Join(dir, fmt.Sprintf("%016x.idx", 0x7fffff)), content)
		},
		"of the last segment": func() {
			writeFile(t, strings.TrimSuffix(names(t, dir)[2], ".seg")+".idx", content)
		},
	}
	for at := range 8 { // flips in every part
		mutilations[fmt.Sprintf("with a bit flipped in eighth %d", at)] = func() {
			b := bytes.Clone(content)
			b[at*len(b)/8+3] ^= 0x10
			writeFile(t, first, b)
		}
	}
	for name, mutilate := range mutilations {
		t.Run(name, func(t *testing.T) {
			mutilate()
			before := snapshot(t, dir)
			readOnly := manyOptions(dir)
			readOnly.ReadOnly = true
			log := mustOpen(t, readOnly)
			page, err := log.Replay(t.Context(), history.Query{MaxBytes: 1 << 30, Select: history.Selection{Exact: []string{"a topic"}}})
			if err != nil || len(page.Entries) != manyRecords {
				t.Errorf("Replay() = %d entries, %v, opened for reading alone", len(page.Entries), err)
			}
			if _, err := log.Seek(t.Context(), numbered(2).ID); err != nil {
				t.Errorf("Seek() = %v, opened for reading alone", err)
			}
			mustClose(t, log)
			wantSnapshot(t, dir, before)

			log = mustOpen(t, manyOptions(dir))
			_, _ = log.Seek(t.Context(), numbered(2).ID) // Verify alone tells of damage and does not mend it
			_, _ = log.Replay(t.Context(), history.Query{Select: history.Selection{Exact: []string{"a topic"}}})
			_, _ = log.Replay(t.Context(), history.Query{After: 5})
			mustCompact(t, log)
			wantAll(t, log, manyRecords)
			mustClose(t, log)
			wantSnapshot(t, dir, whole)
		})
	}
}

func remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
}

// wantSnapshot checks that the folder holds these files and no others.
func wantSnapshot(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	got := snapshot(t, dir)
	for name, content := range want {
		if c, ok := got[name]; !ok || c != content {
			t.Errorf("%s is there: %v, and not as it should be", name, ok)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s should not be there", name)
		}
	}
}

// Verify tells of a damaged index, and Compact mends it.
func TestVerify_damagedIndex(t *testing.T) {
	o := manyOptions(t.TempDir())
	put(t, o, 1, manyRecords)
	name := indexFiles(t, o.Dir)[1]
	b := readFile(t, name)
	b[len(b)-2] ^= 1
	writeFile(t, name, b)
	log := mustOpen(t, o)
	defer mustClose(t, log)
	if _, err := log.Verify(t.Context()); !errors.Is(err, history.ErrCorrupt) || !strings.Contains(err.Error(), filepath.Base(names(t, o.Dir)[1])) {
		t.Errorf("Verify() = %v, want ErrCorrupt and the segment", err)
	}
	mustCompact(t, log)
	if got, err := log.Verify(t.Context()); err != nil || got.Indexes != 3 || got.Segments != 3 {
		t.Errorf("Verify() = %+v, %v when it was compacted", got, err)
	}
}

// A segment that cannot be read keeps nobody from what is in others.
func TestSeek_besideDamage(t *testing.T) {
	o := manyOptions(t.TempDir())
	put(t, o, 1, manyRecords)
	remove(t, indexFiles(t, o.Dir)[0])
	name := names(t, o.Dir)[0]
	b := readFile(t, name)
	b[headerSize+70*recordSize] ^= 1
	writeFile(t, name, b)
	said := &strings.Builder{}
	o.Logger = slog.New(slog.NewTextHandler(said, nil))
	log := mustOpen(t, o)
	if p, err := log.Seek(t.Context(), numbered(200).ID); err != nil || p != 200 {
		t.Errorf("Seek() = %d, %v in a sound segment", p, err)
	}
	for _, id := range []string{numbered(2).ID, "none"} {
		if p, err := log.Seek(t.Context(), id); !errors.Is(err, history.ErrCorrupt) || !strings.Contains(err.Error(), filepath.Base(name)) {
			t.Errorf("Seek(%s) = %d, %v, want ErrCorrupt and the segment", id, p, err)
		}
	}
	if page, err := log.Replay(t.Context(), history.Query{After: 150, Select: history.Selection{Exact: []string{"a topic"}}}); err != nil || len(page.Entries) != manyRecords-150 {
		t.Errorf("Replay() = %d entries, %v of the sound segments", len(page.Entries), err)
	}
	if _, err := log.Compact(t.Context()); !errors.Is(err, history.ErrCorrupt) {
		t.Errorf("Compact() = %v, want ErrCorrupt", err)
	}
	mustClose(t, log)
	if strings.Count(said.String(), "segment is damaged") != 1 {
		t.Errorf("the log says %q, want the damage once", said)
	}
}

// A segment that another one cannot follow is told from a full one also when its index is there.
func TestOpen_indexTellsOfLoss(t *testing.T) {
	o := manyOptions(t.TempDir())
	put(t, o, 1, manyRecords)
	name := names(t, o.Dir)[0]
	whole := readFile(t, name)
	writeFile(t, name, whole[:len(whole)-recordSize])
	wantRefused(t, o, history.ErrCorrupt)
	writeFile(t, name, append(bytes.Clone(whole), 1, 2, 3))
	wantRefused(t, o, history.ErrCorrupt)
	writeFile(t, name, whole)
	remove(t, names(t, o.Dir)[1])
	wantRefused(t, o, history.ErrCorrupt)
}

// What is known of the last record does not get lost when the segment that it is in is full and the next one is empty.
func TestOpen_lastSegmentIsEmpty(t *testing.T) {
	for _, unindexed := range []bool{false, true} {
		o := manyOptions(t.TempDir())
		put(t, o, 1, manyRecords)
		log := mustOpen(t, o)
		h, err := log.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		mustClose(t, log)
		last := names(t, o.Dir)[2]
		writeFile(t, last, readFile(t, last)[:headerSize])
		if unindexed {
			remove(t, indexFiles(t, o.Dir)[1])
		}
		log = mustOpen(t, o)
		got, err := log.Head(t.Context())
		want := history.Head{Epoch: h.Epoch, First: 1, Last: 300, LastID: numbered(300).ID}
		if err != nil || got != want {
			t.Errorf("Head() = %+v, %v, want %+v", got, err, want)
		}
		s, err := log.Stats(t.Context())
		if err != nil || s.LastAt.Before(s.FirstAt) || s.FirstAt.IsZero() {
			t.Errorf("Stats() = %+v, %v", s, err)
		}
		mustClose(t, log)
	}
}

// The files, indexes included, never exceed the limit by bytes.
func TestRetention_countsIndexes(t *testing.T) {
	const limit = 64 << 10
	o := segments.Options{Dir: t.TempDir(), MaxBytes: limit}
	log := mustOpen(t, o)
	defer mustClose(t, log)
	most := int64(0)
	for n := range 3000 {
		r := &history.Record{ID: strconv.Itoa(n), Topics: []string{"a rather long topic for such a small record, number " + strconv.Itoa(n)}}
		if _, err := log.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		most = max(most, folderBytes(t, o.Dir))
	}
	compactUntil(t, log, func() bool {
		return folderBytes(t, o.Dir) <= limit && len(indexFiles(t, o.Dir)) == len(names(t, o.Dir))-1
	})
	if most > limit+limit/4 { // trimmed files are removed by another goroutine
		t.Errorf("the files had %d bytes, more than %d", most, limit)
	}
	if size := folderBytes(t, o.Dir); size < limit/2 {
		t.Errorf("the files have %d bytes, want no less than half of %d", size, limit)
	}
}

func folderBytes(t *testing.T, dir string) (total int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	return total
}

// The file of an index that was made by hand says what the documentation says.
func TestIndexFile_format(t *testing.T) {
	o := manyOptions(t.TempDir())
	put(t, o, 1, manyRecords)
	seg, b := readFile(t, names(t, o.Dir)[0]), readFile(t, indexFiles(t, o.Dir)[0])
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	if string(b[:8]) != "cbridx\r\n" || binary.LittleEndian.Uint16(b[8:]) != 2 || binary.LittleEndian.Uint16(b[10:]) != 128 {
		t.Errorf("the file begins with %x", b[:12])
	}
	if string(b[24:52]) != string(seg[32:60]) {
		t.Error("the index does not name the segment's store and salt")
	}
	if u32(52) != 150 || binary.LittleEndian.Uint64(b[56:]) != uint64(len(seg)) || u32(80) != 0 || u32(84) != 1 {
		t.Errorf("the index is of %d records, %d bytes, %d and %d topics", u32(52), binary.LittleEndian.Uint64(b[56:]), u32(80), u32(84))
	}
	if want := 128 + 150*12 + 150*4 + 2*8 + len("a topic") + 150; len(b) != want {
		t.Errorf("the file has %d bytes, want %d", len(b), want)
	}
}

// A segment that ends before its records do is damaged; its end does not pass for that of the history.
func TestExport_cutAtARecord(t *testing.T) {
	o := manyOptions(t.TempDir())
	put(t, o, 1, manyRecords)
	name := names(t, o.Dir)[0]
	remove(t, indexFiles(t, o.Dir)[0])
	whole := readFile(t, name)
	writeFile(t, name, whole[:len(whole)-recordSize])
	log := mustOpen(t, o)
	defer mustClose(t, log)
	err := log.Export(t.Context(), func(history.Stamped) error { return nil })
	if !errors.Is(err, history.ErrCorrupt) || errors.Is(err, io.EOF) {
		t.Errorf("Export() = %v, want ErrCorrupt and no end of file", err)
	}
}

// The first moment that the clock knows is a time like others, and what is older counts as that.
func TestImport_oldestTimes(t *testing.T) {
	log := mustOpen(t, segments.Options{Dir: t.TempDir()})
	defer mustClose(t, log)
	times := []time.Time{time.UnixMilli(-5), time.UnixMilli(0), time.UnixMilli(3_600_000)}
	n := -1
	err := log.Import(t.Context(), func() (history.Stamped, error) {
		if n++; n == len(times) {
			return history.Stamped{}, io.EOF
		}
		return history.Stamped{Record: *numbered(n), At: times[n]}, nil
	})
	if err != nil {
		t.Fatalf("Import() = %v", err)
	}
	n = 0
	err = log.Export(t.Context(), func(s history.Stamped) error {
		if d := s.At.Sub(times[n]).Abs(); d > 10*time.Millisecond {
			t.Errorf("record %d bears %v, want %v", n, s.At, times[n])
		}
		n++
		return nil
	})
	if err != nil || n != len(times) {
		t.Errorf("Export() = %d records, %v", n, err)
	}
}
