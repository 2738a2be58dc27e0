package segments_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/segments"
	"github.com/cinnabar-hub/cinnabar/internal/private"
	"github.com/cinnabar-hub/cinnabar/test/needs"
)

// smallSegments has two of the numbered records in each segment.
func smallSegments(t *testing.T) segments.Options {
	t.Helper()
	return segments.Options{Dir: filepath.Join(t.TempDir(), "history"), SegmentBytes: headerSize + 2*recordSize}
}

func chmod(t *testing.T, name string, mode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
}

func TestOpen_symbolicLinks(t *testing.T) {
	needs.SymbolicLinks(t)
	t.Run("a link in the place of a segment is refused", func(t *testing.T) {
		o := smallSegments(t)
		put(t, o, 1, 4)
		name := names(t, o.Dir)[1]
		elsewhere := filepath.Join(t.TempDir(), "elsewhere.seg")
		writeFile(t, elsewhere, readFile(t, name))
		if err := errors.Join(os.Remove(name), os.Symlink(elsewhere, name)); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, o, history.ErrForeignFile)
		if info, err := os.Lstat(name); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("Lstat() = %v, %v, want the link as it was", info, err)
		}
	})
	t.Run("a link in the place of the lock is refused", func(t *testing.T) {
		o := smallSegments(t)
		put(t, o, 1, 4)
		lock := filepath.Join(o.Dir, "LOCK")
		if err := errors.Join(os.Remove(lock), os.Symlink(filepath.Base(names(t, o.Dir)[0]), lock)); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, o, history.ErrForeignFile)
	})
	t.Run("a link to the folder is followed", func(t *testing.T) {
		o := smallSegments(t)
		put(t, o, 1, 4)
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(o.Dir, link); err != nil {
			t.Fatal(err)
		}
		log := mustOpen(t, segments.Options{Dir: link})
		defer mustClose(t, log)
		wantNumbers(t, log, 1, 4)
	})
}

func TestOpen_modes(t *testing.T) {
	needs.PermissionBits(t)
	for _, mode := range []fs.FileMode{0o604, 0o644, 0o602, 0o601} {
		t.Run("a segment of mode "+mode.String()+" is refused", func(t *testing.T) {
			o := smallSegments(t)
			put(t, o, 1, 4)
			name := names(t, o.Dir)[0]
			chmod(t, name, mode)
			wantRefused(t, o, private.ErrLoose)
			_, err := segments.Open(t.Context(), o)
			if want := "chmod o-rwx " + name; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Open() = %v, want it to say %q", err, want)
			}
			chmod(t, name, 0o600)
			mustClose(t, mustOpen(t, o))
		})
	}
	t.Run("a folder that others may write to is refused", func(t *testing.T) {
		o := smallSegments(t)
		put(t, o, 1, 4)
		chmod(t, o.Dir, 0o702)
		wantRefused(t, o, private.ErrLoose)
		chmod(t, o.Dir, 0o700)
		mustClose(t, mustOpen(t, o))
	})
	t.Run("rights of the group are the operator's affair", func(t *testing.T) {
		o := smallSegments(t)
		put(t, o, 1, 4)
		chmod(t, o.Dir, 0o2770)
		chmod(t, names(t, o.Dir)[0], 0o660)
		mustClose(t, mustOpen(t, o))
	})
}

// Segments that are missing at the beginning cannot be told from ones that retention has removed.
func TestOpen_missingFirstSegments(t *testing.T) {
	o := smallSegments(t)
	put(t, o, 1, 6)
	if err := os.Remove(names(t, o.Dir)[0]); err != nil {
		t.Fatal(err)
	}
	log := mustOpen(t, o)
	defer mustClose(t, log)
	wantNumbers(t, log, 3, 6)
	if h, err := log.Head(t.Context()); err != nil || h.First != 3 || h.Last != 6 {
		t.Errorf("Head() = %+v, %v, want 3 to 6", h, err)
	}
	if _, err := log.Seek(t.Context(), numbered(2).ID); !errors.Is(err, history.ErrUnknownID) {
		t.Errorf("Seek() = %v, want ErrUnknownID", err)
	}
	if _, err := log.Replay(t.Context(), history.Query{After: 1}); !errors.Is(err, history.ErrPositionGone) {
		t.Errorf("Replay() = %v, want ErrPositionGone", err)
	}
}

// What a loss of power must not do, because the store syncs, is damage when something does it all the same. In a full segment
// it is found when it is read, or when the index has gone too as soon as that is missed.
func TestOpen_zeros(t *testing.T) {
	for name, tc := range map[string]struct {
		segment, from int
		unindexed     bool
		want          error // of Open; nil for that of whatever reads it
	}{
		"the end of a full segment":                      {0, headerSize + recordSize, false, nil},
		"the end of a full segment without an index":     {0, headerSize + recordSize, true, nil},
		"all records of a full segment":                  {0, headerSize, false, nil},
		"all records of a full segment without an index": {0, headerSize, true, history.ErrCorrupt},
		"all of a full segment":                          {0, 0, false, history.ErrForeignFile},
		"all of the last segment":                        {2, 0, false, history.ErrForeignFile},
	} {
		t.Run(name, func(t *testing.T) {
			o := smallSegments(t)
			put(t, o, 1, 6)
			file := names(t, o.Dir)[tc.segment]
			b := readFile(t, file)
			clear(b[tc.from:])
			writeFile(t, file, b)
			if tc.unindexed {
				if err := os.Remove(indexFiles(t, o.Dir)[tc.segment]); err != nil {
					t.Fatal(err)
				}
			}
			if tc.want == nil {
				wantDamaged(t, o, file)
				return
			}
			wantRefused(t, o, tc.want)
		})
	}
}

// A file that somebody puts where the next segment goes while the store is open is not overwritten.
func TestAppend_foreignFile(t *testing.T) {
	o := smallSegments(t)
	log := mustOpen(t, o)
	defer mustClose(t, log)
	for n := 1; n <= 2; n++ {
		if _, err := log.Append(t.Context(), numbered(n)); err != nil {
			t.Fatal(err)
		}
	}
	foreign := filepath.Join(o.Dir, "0000000000000003.seg")
	writeFile(t, foreign, []byte("not a segment"))
	if _, err := log.Append(t.Context(), numbered(3)); !errors.Is(err, history.ErrForeignFile) {
		t.Errorf("Append() = %v, want ErrForeignFile", err)
	}
	if got := readFile(t, foreign); string(got) != "not a segment" {
		t.Errorf("the file now holds %q", got)
	}
	wantNumbers(t, log, 1, 2)
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
	}
	if p, err := log.Append(t.Context(), numbered(3)); err != nil || p != 3 {
		t.Errorf("Append() = %d, %v when the file is gone, want 3", p, err)
	}
	wantNumbers(t, log, 1, 3)
}

func TestOpen_readOnly(t *testing.T) {
	t.Run("changes nothing", func(t *testing.T) {
		o := smallSegments(t)
		put(t, o, 1, 6)
		name := names(t, o.Dir)[2]
		writeFile(t, name, readFile(t, name)[:headerSize+recordSize+9])
		writeFile(t, filepath.Join(o.Dir, "0000000000000007.seg.tmp"), []byte("half a header"))
		before := snapshot(t, o.Dir)
		log := mustOpen(t, segments.Options{Dir: o.Dir, ReadOnly: true, MaxEvents: 1, MaxAge: 1})
		wantNumbers(t, log, 1, 5)
		if _, err := log.Append(t.Context(), numbered(6)); err == nil {
			t.Error("Append() succeeds")
		}
		if err := log.Ready(t.Context()); err == nil {
			t.Error("Ready() = nil, want why nothing can be appended")
		}
		if _, err := segments.Open(t.Context(), o); !errors.Is(err, history.ErrLocked) {
			t.Errorf("Open() = %v meanwhile, want ErrLocked", err)
		}
		mustClose(t, log)
		after := snapshot(t, o.Dir)
		for name := range before {
			if before[name] != after[name] {
				t.Errorf("%s has changed", name)
			}
		}
		if len(after) != len(before) {
			t.Errorf("%d files, want %d", len(after), len(before))
		}
	})
	t.Run("works on a store without a lock", func(t *testing.T) {
		o := smallSegments(t)
		put(t, o, 1, 4)
		if err := os.Remove(filepath.Join(o.Dir, "LOCK")); err != nil {
			t.Fatal(err)
		}
		log := mustOpen(t, segments.Options{Dir: o.Dir, ReadOnly: true})
		wantNumbers(t, log, 1, 4)
		mustClose(t, log)
		if _, err := os.Stat(filepath.Join(o.Dir, "LOCK")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Stat() = %v, want no lock", err)
		}
	})
	t.Run("makes no store", func(t *testing.T) {
		missing := filepath.Join(t.TempDir(), "missing")
		for _, dir := range []string{missing, t.TempDir()} {
			if _, err := segments.Open(t.Context(), segments.Options{Dir: dir, ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Open() = %v, want ErrNotExist", err)
			}
		}
		if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Stat() = %v, want no folder", err)
		}
	})
}

func TestStats(t *testing.T) {
	o := smallSegments(t)
	o.MaxEvents = 3
	put(t, o, 1, 6)
	log := mustOpen(t, o)
	defer mustClose(t, log)
	mustCompact(t, log)
	s, err := log.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var size int64
	for _, name := range append(names(t, o.Dir), indexFiles(t, o.Dir)...) {
		size += int64(len(readFile(t, name)))
	}
	h, err := log.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := history.Stats{
		Driver: "segments", Epoch: h.Epoch, Events: 3, Bytes: size, Segments: 2, First: 4, Last: 6, LastID: numbered(6).ID,
		FirstAt: s.FirstAt, LastAt: s.LastAt,
	}
	if s != want {
		t.Errorf("Stats() = %+v, want %+v", s, want)
	}
	if s.FirstAt.IsZero() || s.LastAt.Before(s.FirstAt) {
		t.Errorf("Stats() has times %v and %v", s.FirstAt, s.LastAt)
	}
}
