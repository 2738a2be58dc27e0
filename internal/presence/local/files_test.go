package local_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/presence/local"
	"github.com/cinnabar-hub/cinnabar/internal/private"
	"github.com/cinnabar-hub/cinnabar/test/needs"
)

func TestOpen_makesPrivateFile(t *testing.T) {
	needs.PermissionBits(t)
	path := store(t, 3)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("Stat() = %v, %v, want mode 0600", info.Mode(), err)
	}
	if names, err := os.ReadDir(filepath.Dir(path)); err != nil || len(names) != 1 {
		t.Errorf("the folder holds %v, %v, want one file", names, err)
	}
}

func TestOpen_looseRights(t *testing.T) {
	needs.PermissionBits(t)
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o602, 0o620} {
		path := store(t, 1)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := local.Open(local.Options{Path: path}); !errors.Is(err, private.ErrLoose) {
			t.Errorf("Open() = %v with mode %04o, want ErrLoose", err, mode)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		d := mustOpen(t, path)
		wantReaped(t, d, subscribers(0, 1))
		mustClose(t, d)
	}
}

func TestOpen_noFile(t *testing.T) {
	t.Run("a folder", func(t *testing.T) {
		if _, err := local.Open(local.Options{Path: t.TempDir()}); !errors.Is(err, private.ErrKind) {
			t.Errorf("Open() = %v, want ErrKind", err)
		}
	})
	t.Run("a link", func(t *testing.T) {
		needs.SymbolicLinks(t)
		for _, target := range []string{store(t, 1), filepath.Join(t.TempDir(), "missing"), "beside"} {
			path := filepath.Join(t.TempDir(), ".presence.db")
			if err := os.Symlink(target, path); err != nil {
				t.Fatal(err)
			}
			if _, err := local.Open(local.Options{Path: path}); !errors.Is(err, private.ErrKind) {
				t.Errorf("Open() = %v, want ErrKind", err)
			}
		}
	})
	t.Run("no folder", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "missing", ".presence.db")
		if _, err := local.Open(local.Options{Path: path}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Open() = %v, want ErrNotExist", err)
		}
	})
}

func TestOpen_invalid(t *testing.T) {
	for _, o := range []local.Options{{}, {Path: "x", Wait: -1}} {
		if _, err := local.Open(o); err == nil {
			t.Errorf("Open(%+v) succeeded", o)
		}
	}
}

func TestOpen_locked(t *testing.T) {
	path := store(t, 2)
	d := mustOpen(t, path)
	if _, err := local.Open(local.Options{Path: path, Wait: 1}); !errors.Is(err, local.ErrLocked) {
		t.Errorf("Open() = %v, want ErrLocked", err)
	}
	wantReaped(t, d, subscribers(0, 2))
	mustClose(t, d)
	mustClose(t, mustOpen(t, path))
}

// A successor gets the file as soon as its owner has closed it.
func TestOpen_waits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := store(t, 2)
		d := mustOpen(t, path)
		opened := make(chan *local.Directory)
		go func() {
			next, err := local.Open(local.Options{Path: path, Wait: time.Hour})
			if err != nil {
				t.Error(err)
			}
			opened <- next
		}()
		synctest.Wait()
		mustPut(t, d, subscribers(2, 2))
		mustClose(t, d)
		next := <-opened
		wantReaped(t, next, subscribers(0, 4))
		mustClose(t, next)
	})
}

// A file that was large is made anew when it is opened without subscribers, and only then.
func TestOpen_large(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".presence.db")
	d := mustOpen(t, path)
	all := subscribers(0, 20)
	for i := range all {
		all[i].Subscriptions[0].Match = string(make([]byte, 1<<20))
	}
	mustPut(t, d, all)
	mustRemove(t, d, all[1:])
	mustClose(t, d)
	large := size(t, path)
	d = mustOpen(t, path)
	wantReaped(t, d, all[:1])
	mustRemove(t, d, all[:1])
	mustClose(t, d)
	if got := size(t, path); got != large || got < 16<<20 {
		t.Errorf("the file has %d bytes with a subscriber in it, want %d", got, large)
	}
	d = mustOpen(t, path)
	mustPut(t, d, all[:1])
	mustClose(t, d)
	if got := size(t, path); got > 4<<20 {
		t.Errorf("the file has %d bytes, want a new one", got)
	}
	d = mustOpen(t, path)
	wantReaped(t, d, all[:1])
	mustClose(t, d)
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// The file takes up what is there at a time, not what ever was.
func TestPut_reusesPages(t *testing.T) {
	path := store(t, 1)
	d := mustOpen(t, path)
	for round := range 60 {
		all := subscribers(1000*round+1, 1000)
		mustPut(t, d, all)
		mustRemove(t, d, all)
	}
	mustClose(t, d)
	if got := size(t, path); got > 2<<20 {
		t.Errorf("the file has %d bytes", got)
	}
}
