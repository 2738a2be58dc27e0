package segments

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// unindexed returns a stage with so many records in full segments of two, opened for reading alone and without indexes.
func unindexed(t *testing.T, count int) *stage {
	t.Helper()
	s := newStage(t, Options{SegmentBytes: twoRecords})
	s.mustAppend(count)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range segmentFiles(t, s.o.Dir) {
		index := name[:len(name)-len(segmentSuffix)] + indexSuffix
		if err := os.Remove(index); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	s.o.ReadOnly = true
	s.open()
	return s
}

// Close does not wait for the indexes of a whole history.
func TestClose_endsCallsThatMakeIndexes(t *testing.T) {
	for name, call := range map[string]func(*stage) error{
		"Seek": func(s *stage) error {
			_, err := s.Seek(s.t.Context(), "none")
			return err
		},
		"Replay": func(s *stage) error {
			_, err := s.Replay(s.t.Context(), history.Query{Select: history.Selection{Exact: []string{"none"}}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := unindexed(t, 10)
			closed := make(chan error, 1)
			reads := 0
			s.faults.set(func(op, _ string) error {
				if op != "read" {
					return nil
				}
				if reads++; reads == 1 {
					go func() { closed <- s.Close() }()
					for s.calls.MayGoOn(t.Context()) == nil {
						runtime.Gosched()
					}
				}
				return nil
			})
			if err := call(s); !errors.Is(err, history.ErrClosed) {
				t.Errorf("%s() = %v when the log is closed meanwhile, want ErrClosed", name, err)
			}
			if err := <-closed; err != nil {
				t.Errorf("Close() = %v", err)
			}
		})
	}
}

// A disk that cannot read one segment keeps nobody from finding what is in others.
func TestSeek_besideUnreadable(t *testing.T) {
	s := unindexed(t, 10)
	first := filepath.Base(segmentFiles(t, s.o.Dir)[0])
	s.faults.set(func(op, name string) error {
		if op == "read" && name == first {
			return errBroken
		}
		return nil
	})
	if p, err := s.Seek(t.Context(), "id-5"); err != nil || p != 5 {
		t.Errorf("Seek() = %d, %v in a readable segment, want 5", p, err)
	}
	if p, err := s.Seek(t.Context(), "id-1"); !errors.Is(err, history.ErrCorrupt) || !errors.Is(err, errBroken) {
		t.Errorf("Seek() = %d, %v in the other one, want ErrCorrupt and its cause", p, err)
	}
}

// An index that cannot get its name does not keep the later ones in memory.
func TestSeal_goesOn(t *testing.T) {
	s := newStage(t, Options{SegmentBytes: twoRecords})
	s.faults.set(func(op, name string) error {
		if op == "rename" && name == "0000000000000001"+indexSuffix+tempSuffix {
			return errBroken
		}
		return nil
	})
	s.mustAppend(10)
	if err := s.sealFull(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("sealFull() = %v, want what went wrong", err)
	}
	for i, name := range segmentFiles(t, s.o.Dir)[:4] {
		_, err := os.Stat(name[:len(name)-len(segmentSuffix)] + indexSuffix)
		if stored := err == nil; stored != (i > 0) {
			t.Errorf("segment %d has an index file: %v", i, stored)
		}
	}
}
