package historytest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/test/needs"
)

const (
	// fullRecords is more than a disk holds.
	fullRecords = 1000
	// sayDone is what a child writes when it has come to its end: one that ran no test ends well too.
	sayDone = "the disk was full"
)

// Disk is the disk that gets full, small enough that fewer than 1,000 records of some 3 KB fill it.
type Disk struct {
	// Bytes is its size.
	Bytes int
	// Filler is how many of them something else takes until the disk is full, and then gives back: room for 20 such records,
	// and for what the driver needs beside them.
	Filler int
}

// NoSpace fills a disk for real: a small one, mounted where only a child process sees it. What has no space is refused and has not
// happened, nothing else is lost, also when the log is opened with the disk full, and the log goes on when there is space again.
//
// The process is the test binary itself, as Kill has it, and NoSpace returns there too.
func NoSpace(t *testing.T, d Disk, open Opener) {
	t.Helper()
	if dir := os.Getenv(childVariable); dir != "" {
		fillDisk(t, dir, d.Filler, open)
		return
	}
	flags := needs.Namespaces(t, "-m")
	dir := t.TempDir()
	script := fmt.Sprintf(`mount -t tmpfs -o size=%d,mode=0700 tmpfs "$1" && exec "$2" "$3"`, d.Bytes)
	cmd := exec.CommandContext(t.Context(), "unshare", append(flags, "sh", "-c", script, "sh", dir, self(t), onlyTest(t))...)
	cmd.Env = append(os.Environ(), childVariable+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), sayDone) {
		t.Errorf("the child ended with %v: %s", err, out)
	}
}

// fillDisk appends until the disk at dir is full, makes room, and goes on.
func fillDisk(t *testing.T, dir string, bytes int, open Opener) {
	t.Helper()
	filler, store := filepath.Join(dir, "filler"), filepath.Join(dir, "history")
	if err := os.WriteFile(filler, make([]byte, bytes), 0o600); err != nil {
		t.Fatal(err)
	}
	var stored []history.Entry
	for _, step := range []struct {
		name string
		run  func(f *fixture)
	}{
		{"when the disk gets full", func(f *fixture) {
			f.fillUp()
			f.wantFull()
		}},
		{"opened on a full disk", func(f *fixture) {
			f.wantFull()
			if err := os.Remove(filler); err != nil {
				f.t.Fatal(err)
			}
			for range 20 {
				if p := f.append(fullRecord(len(f.want) + 1)); p != history.Position(len(f.want)) {
					f.t.Fatalf("Append() = %d with space, want %d", p, len(f.want))
				}
			}
		}},
		{"opened with space", (*fixture).wantStored},
	} {
		ok := t.Run(step.name, func(t *testing.T) {
			f := opened(t, open, store)
			defer f.close()
			f.want = stored
			step.run(f)
			stored = f.want
		})
		if !ok {
			return
		}
	}
	if _, err := fmt.Fprintln(os.Stdout, sayDone); err != nil {
		t.Fatal(err)
	}
}

// fullRecord is not of a size that fills pages.
func fullRecord(n int) *history.Record {
	return &history.Record{ID: fmt.Sprint("id-", n), Topics: []string{"t"}, Event: make([]byte, 2900)}
}

// fillUp appends until there is no space.
func (f *fixture) fillUp() {
	f.t.Helper()
	for len(f.want) <= fullRecords {
		r := fullRecord(len(f.want) + 1)
		p, err := f.log.Append(f.context(), r)
		if errors.Is(err, history.ErrNoSpace) {
			return
		}
		if err != nil || p != history.Position(len(f.want)+1) {
			f.t.Fatalf("Append() = %d, %v, want %d", p, err, len(f.want)+1)
		}
		f.want = append(f.want, history.Entry{Position: p, Record: *r})
	}
	f.t.Fatal("the disk is never full")
}

// wantFull checks that nothing can be appended, and that nothing has happened.
func (f *fixture) wantFull() {
	f.t.Helper()
	next := fullRecord(len(f.want) + 1)
	for range 3 {
		if _, err := f.log.Append(f.context(), next); !errors.Is(err, history.ErrNoSpace) {
			f.t.Fatalf("Append() = %v without space, want ErrNoSpace", err)
		}
	}
	f.wantUnknown(next.ID)
	f.wantStored()
}

// wantStored checks that everything is there that was appended, and nothing else.
func (f *fixture) wantStored() {
	f.t.Helper()
	diffEntries(f.t, "Replay", f.want, f.replayPage())
	if len(f.want) == 0 {
		f.t.Fatal("nothing was ever stored")
	}
	last := f.want[len(f.want)-1]
	if h := f.head(); h.Last != last.Position || h.LastID != last.ID {
		f.t.Errorf("Head() = %+v, want the last to be %s at %d", h, last.ID, last.Position)
	}
}
