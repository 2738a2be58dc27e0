package segments

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

var errBroken = errors.New("broken")

// faults makes operations on a folder and its files fail.
type faults struct {
	folder

	mu sync.Mutex
	// err, when set, is asked about each operation: "create", "open", "rename", "remove", "sync
	// folder", "read", "write", "truncate" and "sync".
	err func(op, name string) error
}

func (f *faults) set(err func(op, name string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// on makes the operations fail with err.
func (f *faults) on(err error, ops ...string) {
	f.set(func(op, _ string) error {
		if slices.Contains(ops, op) {
			return err
		}
		return nil
	})
}

func (f *faults) check(op, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		return nil
	}
	return f.err(op, name)
}

func (f *faults) Open(name string) (file, error)   { return f.open("open", name, f.folder.Open) }
func (f *faults) Create(name string) (file, error) { return f.open("create", name, f.folder.Create) }

func (f *faults) open(op, name string, open func(string) (file, error)) (file, error) {
	if err := f.check(op, name); err != nil {
		return nil, err
	}
	under, err := open(name)
	if err != nil {
		return nil, err
	}
	return &faultyFile{file: under, name: name, faults: f}, nil
}

func (f *faults) Rename(from, to string) error {
	if err := f.check("rename", from); err != nil {
		return err
	}
	return f.folder.Rename(from, to)
}

func (f *faults) Remove(name string) error {
	if err := f.check("remove", name); err != nil {
		return err
	}
	return f.folder.Remove(name)
}

func (f *faults) Sync() error {
	if err := f.check("sync folder", ""); err != nil {
		return err
	}
	return f.folder.Sync()
}

// faultyFile fails as its folder says. A write that fails has written half.
type faultyFile struct {
	file

	name   string
	faults *faults
}

func (f *faultyFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.faults.check("read", f.name); err != nil {
		return 0, err
	}
	return f.file.ReadAt(p, off)
}

func (f *faultyFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.faults.check("write", f.name); err != nil {
		n, _ := f.file.WriteAt(p[:len(p)/2], off)
		return n, err
	}
	return f.file.WriteAt(p, off)
}

func (f *faultyFile) Truncate(size int64) error {
	if err := f.faults.check("truncate", f.name); err != nil {
		return err
	}
	return f.file.Truncate(size)
}

func (f *faultyFile) Sync() error {
	if err := f.faults.check("sync", f.name); err != nil {
		return err
	}
	return f.file.Sync()
}

// stage is a log on a folder that fails on demand.
type stage struct {
	*Log

	t      *testing.T
	faults *faults
	o      Options
	n      int
}

func newStage(t *testing.T, o Options) *stage {
	t.Helper()
	o.Dir = t.TempDir()
	s := &stage{t: t, o: o}
	s.open()
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// open opens the log; without faults again.
func (s *stage) open() {
	s.t.Helper()
	d, err := openDir(s.t.Context(), Options{Dir: s.o.Dir})
	if err != nil {
		s.t.Fatalf("openDir() = %v", err)
	}
	s.faults = &faults{folder: d}
	s.Log, err = open(s.t.Context(), s.o, s.faults, constantHash)
	if err != nil {
		s.t.Fatalf("open() = %v", err)
	}
}

// constantHash makes all ids collide.
func constantHash(hashKey, []byte) uint64 { return 1 }

func (s *stage) reopen() {
	s.t.Helper()
	s.faults.set(nil)
	if err := s.Close(); err != nil {
		s.t.Fatalf("Close() = %v", err)
	}
	s.open()
}

// append appends another record.
func (s *stage) append() error {
	s.n++
	return s.appendID(fmt.Sprint("id-", s.n))
}

func (s *stage) appendID(id string) error {
	_, err := s.Append(s.t.Context(), &history.Record{ID: id, Topics: []string{"t"}, Event: make([]byte, 100)})
	return err
}

func (s *stage) mustAppend(count int) {
	s.t.Helper()
	for range count {
		if err := s.append(); err != nil {
			s.t.Fatalf("Append() = %v", err)
		}
	}
}

func (s *stage) head() history.Head {
	s.t.Helper()
	h, err := s.Head(s.t.Context())
	if err != nil {
		s.t.Fatalf("Head() = %v", err)
	}
	return h
}

// wantIDs checks what is there, in order.
func (s *stage) wantIDs(want ...string) {
	s.t.Helper()
	page, err := s.Replay(s.t.Context(), history.Query{MaxBytes: 1 << 30})
	if err != nil {
		s.t.Fatalf("Replay() = %v", err)
	}
	var got []string
	for i, e := range page.Entries {
		got = append(got, e.ID)
		if p, err := s.Seek(s.t.Context(), e.ID); err != nil || p != e.Position || p != history.Position(i+1) {
			s.t.Errorf("Seek(%s) = %d, %v, want %d", e.ID, p, err, e.Position)
		}
	}
	if g, w := strings.Join(got, " "), strings.Join(want, " "); g != w {
		s.t.Errorf("the log holds %q, want %q", g, w)
	}
}

func TestFailedCommit(t *testing.T) {
	for name, ops := range map[string][]string{
		"write":              {"write"},
		"sync":               {"sync"},
		"write and truncate": {"write", "truncate"},
		"sync and truncate":  {"sync", "truncate"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, Options{})
			s.mustAppend(2)
			before := s.head()
			s.faults.on(errBroken, ops...)
			if err := s.append(); !errors.Is(err, history.ErrReadOnly) || !errors.Is(err, errBroken) {
				t.Errorf("Append() = %v, want ErrReadOnly and its cause", err)
			}
			s.faults.set(nil) // the disk has recovered, and nobody may believe it
			if err := s.append(); !errors.Is(err, history.ErrReadOnly) {
				t.Errorf("Append() = %v after the failure, want ErrReadOnly", err)
			}
			if err := s.Ready(t.Context()); !errors.Is(err, history.ErrReadOnly) {
				t.Errorf("Ready() = %v, want ErrReadOnly", err)
			}
			if after := s.head(); after != before {
				t.Errorf("Head() = %+v, want %+v", after, before)
			}
			s.wantIDs("id-1", "id-2")
			s.reopen()
			if len(ops) == 1 {
				s.wantIDs("id-1", "id-2")
			}
			if err := s.Ready(t.Context()); err != nil {
				t.Errorf("Ready() = %v after reopening", err)
			}
			n := int(s.head().Last) // a sync that failed may have stored the third record after all
			if err := s.appendID("new"); err != nil {
				t.Errorf("Append() = %v after reopening", err)
			}
			s.wantIDs(append([]string{"id-1", "id-2", "id-3"}[:n], "new")...)
		})
	}
}

func noSpace(t *testing.T) error {
	t.Helper()
	if runtime.GOOS == "windows" {
		return syscall.Errno(112) // ERROR_DISK_FULL
	}
	return syscall.ENOSPC
}

func TestNoSpace(t *testing.T) {
	t.Run("appends work again when there is space", func(t *testing.T) {
		s := newStage(t, Options{})
		s.mustAppend(1)
		s.faults.on(noSpace(t), "write")
		for range 3 {
			if err := s.append(); !errors.Is(err, history.ErrNoSpace) || errors.Is(err, history.ErrReadOnly) {
				t.Errorf("Append() = %v, want ErrNoSpace", err)
			}
		}
		s.wantIDs("id-1")
		s.faults.set(nil)
		s.mustAppend(1)
		s.wantIDs("id-1", "id-5")
		s.reopen()
		s.wantIDs("id-1", "id-5")
	})
	t.Run("the operator is told once, and once that it is over", func(t *testing.T) {
		said, logger := newNotes()
		s := newStage(t, Options{Logger: logger})
		for range 2 {
			s.mustAppend(1)
			s.faults.on(noSpace(t), "write")
			for range 5 {
				if err := s.append(); err == nil {
					t.Fatal("Append() succeeds")
				}
			}
			s.faults.set(nil)
			s.mustAppend(5)
		}
		if full, over := said.count("cannot store updates"), said.count("stores updates again"); full != 2 || over != 2 {
			t.Errorf("the log says %d times that the disk is full, and %d times that it no longer is, want 2 and 2", full, over)
		}
		if said.count("history: no space left") != 2 {
			t.Error("the log does not say why")
		}
	})
	t.Run("it is final when the file cannot be cut back", func(t *testing.T) {
		s := newStage(t, Options{})
		s.mustAppend(1)
		s.faults.on(noSpace(t), "write", "truncate")
		if err := s.append(); !errors.Is(err, history.ErrReadOnly) {
			t.Errorf("Append() = %v, want ErrReadOnly", err)
		}
		s.reopen()
		s.wantIDs("id-1")
	})
	t.Run("it is final when it comes from a sync", func(t *testing.T) {
		s := newStage(t, Options{})
		s.faults.on(noSpace(t), "sync")
		if err := s.append(); !errors.Is(err, history.ErrReadOnly) {
			t.Errorf("Append() = %v, want ErrReadOnly", err)
		}
	})
}

// A segment holds two of the stage's records.
const twoRecords = headerSize + 2*(fixedSize+5+5+100)

func TestFailedRotation(t *testing.T) {
	for _, tc := range []struct {
		name  string
		err   error
		ops   []string
		final bool
		want  error
	}{
		{"creating fails", errBroken, []string{"create"}, false, errBroken},
		{"renaming fails", errBroken, []string{"rename"}, false, errBroken},
		{"opening fails", errBroken, []string{"open"}, false, errBroken},
		{"the disk is full", noSpace(t), []string{"write"}, false, history.ErrNoSpace},
		{"the header cannot be written", errBroken, []string{"write"}, false, errBroken},
		{"the folder cannot be synced", errBroken, []string{"sync folder"}, true, history.ErrReadOnly},
		{"an empty segment cannot be removed", errBroken, []string{"open", "remove"}, true, history.ErrReadOnly},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(t, Options{SegmentBytes: twoRecords})
			s.mustAppend(4)
			s.faults.set(func(op, name string) error {
				if slices.Contains(tc.ops, op) && !strings.HasPrefix(name, "0000000000000001") && !strings.HasPrefix(name, "0000000000000003") {
					return tc.err
				}
				return nil
			})
			if err := s.append(); !errors.Is(err, tc.want) || errors.Is(err, history.ErrReadOnly) != tc.final {
				t.Errorf("Append() = %v, want %v, final: %v", err, tc.want, tc.final)
			}
			s.wantIDs("id-1", "id-2", "id-3", "id-4")
			s.faults.set(nil)
			if tc.final {
				s.reopen()
			}
			s.mustAppend(1)
			s.wantIDs("id-1", "id-2", "id-3", "id-4", "id-6")
			s.reopen()
			s.wantIDs("id-1", "id-2", "id-3", "id-4", "id-6")
		})
	}
}

func TestFailedRead(t *testing.T) {
	s := newStage(t, Options{})
	s.mustAppend(3)
	s.faults.on(errBroken, "read")
	if _, err := s.Replay(t.Context(), history.Query{}); !errors.Is(err, errBroken) {
		t.Errorf("Replay() = %v, want the file's error", err)
	}
	if _, err := s.Seek(t.Context(), "id-1"); !errors.Is(err, errBroken) {
		t.Errorf("Seek() = %v, want the file's error", err)
	}
}

// Ids whose hashes are equal are told apart by the records. The stage's hash is a constant.
func TestHashCollisions(t *testing.T) {
	s := newStage(t, Options{SegmentBytes: 1500})
	var want []string
	for range 60 {
		s.mustAppend(1)
		want = append(want, fmt.Sprint("id-", s.n))
	}
	s.wantIDs(want...)
	if _, err := s.Seek(t.Context(), "id-61"); !errors.Is(err, history.ErrUnknownID) {
		t.Errorf("Seek() = %v, want ErrUnknownID", err)
	}
}

func segmentFiles(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// wantReaped waits until so many segments are left: the janitor may be looking at one that is to go.
func (s *stage) wantReaped(want int) {
	s.t.Helper()
	stuck := time.After(30 * time.Second)
	for {
		s.reap()
		got := len(segmentFiles(s.t, s.o.Dir))
		if got == want {
			return
		}
		select {
		case <-time.After(time.Millisecond):
		case <-stuck:
			s.t.Fatalf("%d files are left, want %d", got, want)
		}
	}
}

// A trimmed segment stays on disk while it is read, and so do its successors, so that no crash
// can leave a gap.
func TestTrimmedWhileRead(t *testing.T) {
	s := newStage(t, Options{SegmentBytes: twoRecords, MaxEvents: 2})
	s.mustAppend(1)
	p, err := s.openPart(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.mustAppend(9)
	if h := s.head(); h.First != 9 {
		t.Fatalf("Head().First = %d, want 9", h.First)
	}
	s.reap()
	if got := len(segmentFiles(t, s.o.Dir)); got != 5 {
		t.Errorf("%d files are left while the first is read, want 5", got)
	}
	seen := 0
	if _, err := p.each(t.Context(), p.left(), func(v *view) bool { seen++; return string(v.id) == "id-1" }); err != nil || seen != 1 {
		t.Errorf("each() = %v after %d records", err, seen)
	}
	s.closePart(p)
	s.wantReaped(1)
	s.reopen()
	if h := s.head(); h.First != 9 || h.Last != 10 {
		t.Errorf("Head() = %+v after reopening, want 9 to 10", h)
	}
}

// A file that cannot be removed is tried again, and keeps its successors.
func TestRemovalFails(t *testing.T) {
	s := newStage(t, Options{SegmentBytes: twoRecords, MaxEvents: 2})
	s.faults.set(func(op, name string) error {
		if op == "remove" && !strings.HasSuffix(name, tempSuffix) {
			return errBroken
		}
		return nil
	})
	s.mustAppend(10)
	s.reap()
	if got := len(segmentFiles(t, s.o.Dir)); got != 5 {
		t.Errorf("%d files are left, want 5", got)
	}
	s.faults.set(nil)
	s.wantReaped(1)
}
