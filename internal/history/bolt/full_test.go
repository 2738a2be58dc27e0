package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/bolt"
	"github.com/cinnabar-hub/cinnabar/test/needs"
)

// fullDir tells the test binary to be the process whose disk is full.
const fullDir = "CINNABAR_TEST_BOLT_FULL_DIR"

// A disk that is full for real: of a few hundred kilobytes, mounted where only a child process sees it.
func TestNoSpace_onARealDisk(t *testing.T) {
	flags := needs.Namespaces(t, "-m")
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := `mount -t tmpfs -o size=2m,mode=0700 tmpfs "$1" && exec "$2"`
	cmd := exec.CommandContext(t.Context(), "unshare", append(flags, "sh", "-c", script, "sh", dir, exe)...)
	cmd.Env = append(os.Environ(), fullDir+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// fullRecord is not of a size that fills pages.
func fullRecord(n int) *history.Record {
	return &history.Record{ID: fmt.Sprint("id-", n), Topics: []string{"t"}, Event: make([]byte, 2900)}
}

// fillDisk appends until the disk at dir is full, makes room, and goes on. It returns what is wrong.
func fillDisk(ctx context.Context, dir string) error {
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 600<<10), 0o600); err != nil {
		return err
	}
	o := bolt.Options{Dir: filepath.Join(dir, "history")}
	stored := 0
	err := withLog(ctx, o, func(log history.Log) error {
		for {
			_, err := log.Append(ctx, fullRecord(stored+1))
			if errors.Is(err, history.ErrNoSpace) {
				return expectFull(ctx, log, stored)
			}
			if err != nil {
				return err
			}
			if stored++; stored > 1000 {
				return errors.New("the disk is never full")
			}
		}
	})
	if err != nil {
		return fmt.Errorf("when the disk gets full: %w", err)
	}
	err = withLog(ctx, o, func(log history.Log) error {
		if err := expectFull(ctx, log, stored); err != nil {
			return err
		}
		if err := os.Remove(filler); err != nil {
			return err
		}
		for range 20 {
			stored++
			if p, err := log.Append(ctx, fullRecord(stored)); err != nil || p != history.Position(stored) {
				return fmt.Errorf("append with space = %d, %w, want %d", p, err, stored)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("opened on a full disk: %w", err)
	}
	return withLog(ctx, o, func(log history.Log) error { return expectRecords(ctx, log, stored) })
}

func withLog(ctx context.Context, o bolt.Options, fn func(history.Log) error) error {
	log, err := bolt.Open(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(fn(log), log.Close())
}

// expectFull checks that nothing can be appended, and that nothing has happened.
func expectFull(ctx context.Context, log history.Log, stored int) error {
	for range 3 {
		if _, err := log.Append(ctx, fullRecord(stored+1)); !errors.Is(err, history.ErrNoSpace) {
			return fmt.Errorf("append without space = %w, want ErrNoSpace", err)
		}
	}
	if _, err := log.Seek(ctx, fullRecord(stored+1).ID); !errors.Is(err, history.ErrUnknownID) {
		return fmt.Errorf("seek of what was not stored = %w", err)
	}
	return expectRecords(ctx, log, stored)
}

func expectRecords(ctx context.Context, log history.Log, stored int) error {
	page, err := log.Replay(ctx, history.Query{MaxBytes: 1 << 30})
	if err != nil || len(page.Entries) != stored {
		return fmt.Errorf("replay = %d entries, %w, want %d", len(page.Entries), err, stored)
	}
	for i, e := range page.Entries {
		if e.ID != fullRecord(i+1).ID || e.Position != history.Position(i+1) {
			return fmt.Errorf("entry %d is %s", e.Position, e.ID)
		}
	}
	h, err := log.Head(ctx)
	if err != nil || h.Last != history.Position(stored) || h.LastID != fullRecord(stored).ID {
		return fmt.Errorf("head = %+v, %w, want the last at %d", h, err, stored)
	}
	return nil
}
