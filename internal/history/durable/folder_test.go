package durable_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/durable"
	"github.com/cinnabar-hub/cinnabar/internal/private"
	"github.com/cinnabar-hub/cinnabar/test/needs"
)

func mustOpen(t *testing.T, o durable.Options) *durable.Folder {
	t.Helper()
	f, err := durable.Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open() = %v", err)
	}
	return f
}

func mustClose(t *testing.T, f *durable.Folder) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Fatalf("Close() = %v", err)
	}
}

// wantRefused checks that nobody can open the folder.
func wantRefused(t *testing.T, o durable.Options, want error) {
	t.Helper()
	if f, err := durable.Open(t.Context(), o); !errors.Is(err, want) {
		t.Errorf("Open() = %v, want %v", err, want)
		if err == nil {
			mustClose(t, f)
		}
	}
}

func TestOpen_makes(t *testing.T) {
	needs.PermissionBits(t)
	path := filepath.Join(t.TempDir(), "a", "history")
	f := mustOpen(t, durable.Options{Path: path})
	defer mustClose(t, f)
	for name, want := range map[string]fs.FileMode{filepath.Dir(path): 0o700, path: 0o700, f.File(durable.LockName): 0o600} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %04o, want %04o", name, got, want)
		}
	}
	if err := errors.Join(f.SyncAbove(), f.Sync()); err != nil {
		t.Errorf("SyncAbove(), Sync() = %v", err)
	}
}

func TestOpen_locks(t *testing.T) {
	o := durable.Options{Path: filepath.Join(t.TempDir(), "history")}
	f := mustOpen(t, o)
	wantRefused(t, o, history.ErrLocked)
	wantRefused(t, durable.Options{Path: o.Path, ReadOnly: true}, history.ErrLocked)
	mustClose(t, f)
	for range 2 {
		o.ReadOnly = !o.ReadOnly
		mustClose(t, mustOpen(t, o))
	}
}

func TestOpen_readOnly(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	wantRefused(t, durable.Options{Path: missing, ReadOnly: true}, fs.ErrNotExist)
	empty := t.TempDir()
	f := mustOpen(t, durable.Options{Path: empty, ReadOnly: true})
	defer mustClose(t, f)
	if list, err := f.List(); err != nil || len(list) > 0 {
		t.Errorf("List() = %v, %v, want nothing", list, err)
	}
	if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat() = %v, want no folder", err)
	}
}

func TestOpen_foreign(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, durable.Options{Path: file}, history.ErrForeignFile)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, durable.LockName), 0o700); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, durable.Options{Path: dir}, history.ErrForeignFile)
}

func TestOpen_looseRights(t *testing.T) {
	needs.PermissionBits(t)
	dir := t.TempDir()
	for mode, want := range map[fs.FileMode]error{0o702: private.ErrLoose, 0o703: private.ErrLoose, 0o705: nil, 0o770: nil} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		f, err := durable.Open(t.Context(), durable.Options{Path: dir})
		if !errors.Is(err, want) {
			t.Errorf("Open() = %v with mode %04o, want %v", err, mode, want)
		}
		if err == nil {
			mustClose(t, f)
		}
	}
}

// A folder with something else in it is left as it is, and what has come before the lock was there is noticed.
func TestOpen_check(t *testing.T) {
	dir := t.TempDir()
	asked := 0
	o := durable.Options{Path: dir, Check: func(*durable.Folder) error {
		asked++
		return errBroken
	}}
	wantRefused(t, o, errBroken)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 || asked != 1 {
		t.Errorf("%v was made, %v, %d times asked", left, err, asked)
	}
	o.Check = func(f *durable.Folder) error {
		if _, err := f.Root().Lstat(durable.LockName); err == nil {
			return errBroken
		}
		return nil
	}
	wantRefused(t, o, errBroken)
	mustClose(t, mustOpen(t, durable.Options{Path: dir})) // it has given up the lock
}

// A lock in a folder that somebody has moved away is none: another process locks the one that is made anew.
func TestOpen_lockReplaced(t *testing.T) {
	needs.RenamesInUse(t)
	dir := filepath.Join(t.TempDir(), "history")
	asked := 0
	_, err := durable.Open(t.Context(), durable.Options{Path: dir, Check: func(*durable.Folder) error {
		if asked++; asked > 1 {
			return nil
		}
		return os.Rename(dir, dir+".old") // the folder is open by now
	}})
	if !errors.Is(err, history.ErrLocked) {
		t.Errorf("Open() = %v, want ErrLocked", err)
	}
}

// Errors name the file with its folder.
func TestLocated(t *testing.T) {
	dir := t.TempDir()
	f := mustOpen(t, durable.Options{Path: dir})
	defer mustClose(t, f)
	for op, err := range map[string]error{"Remove": f.Root().Remove("nothing"), "Rename": f.Root().Rename("nothing", "x")} {
		if err, want := f.Located(err), f.File("nothing"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: Located() = %v, want it to name %s", op, err, want)
		}
	}
	if err := f.Located(errBroken); !errors.Is(err, errBroken) {
		t.Errorf("Located() = %v, want the error", err)
	}
}

func TestCheckFile(t *testing.T) {
	needs.PermissionBits(t)
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[fs.FileMode]error{0o600: nil, 0o660: nil, 0o604: private.ErrLoose, 0o602: private.ErrLoose, 0o601: private.ErrLoose} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := durable.CheckFile(name, info); !errors.Is(err, want) {
			t.Errorf("CheckFile() = %v for mode %04o, want %v", err, mode, want)
		}
	}
}

// notes is what the operator is told.
type notes struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

func (n *notes) count(text string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Count(n.text.String(), text)
}

// beside opens a folder while the test goes on.
func beside(ctx context.Context, o durable.Options) (folder func() (*durable.Folder, error), done <-chan struct{}) {
	var f *durable.Folder
	var err error
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		f, err = durable.Open(ctx, o)
	}()
	return func() (*durable.Folder, error) {
		<-finished
		return f, err
	}, finished
}

func TestWait_handsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said notes
		o := durable.Options{Path: filepath.Join(t.TempDir(), "history"), Wait: time.Hour, Logger: slog.New(slog.NewTextHandler(&said, nil))}
		old := mustOpen(t, o)
		if said.count("waiting") > 0 {
			t.Error("the log says that it waits for nobody")
		}
		result, done := beside(t.Context(), o)
		synctest.Wait()
		select {
		case <-done:
			t.Fatal("Open() returns while the predecessor has the folder")
		default:
		}
		mustClose(t, old)
		f, err := result()
		if err != nil {
			t.Fatalf("Open() = %v", err)
		}
		mustClose(t, f)
		if a, b := said.count("waiting for it to end"), said.count("handed over"); a != 1 || b != 1 {
			t.Errorf("the log says %d times that it waits, and %d times that it has waited", a, b)
		}
	})
}

func TestWait_ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := durable.Options{Path: filepath.Join(t.TempDir(), "history"), Wait: time.Minute, Logger: slog.New(slog.DiscardHandler)}
		old := mustOpen(t, o)
		defer mustClose(t, old)
		began := time.Now()
		if _, err := durable.Open(t.Context(), o); !errors.Is(err, history.ErrLocked) || time.Since(began) != o.Wait {
			t.Errorf("Open() = %v after %s, want ErrLocked after its time", err, time.Since(began))
		}
		ctx, cancel := context.WithCancel(t.Context())
		result, _ := beside(ctx, o)
		synctest.Wait()
		cancel()
		if _, err := result(); !errors.Is(err, context.Canceled) {
			t.Errorf("Open() = %v, want the context's error", err)
		}
	})
}

// A backup that was put in the place of the store while a successor waited is what the successor opens, not the folder
// that was there.
func TestWait_opensWhatIsThereThen(t *testing.T) {
	needs.RenamesInUse(t)
	synctest.Test(t, func(t *testing.T) {
		o := durable.Options{Path: filepath.Join(t.TempDir(), "history"), Wait: time.Hour, Logger: slog.New(slog.DiscardHandler)}
		old := mustOpen(t, o)
		defer mustClose(t, old)
		result, _ := beside(t.Context(), o)
		synctest.Wait()
		if err := errors.Join(os.Rename(o.Path, o.Path+".old"), os.Mkdir(o.Path, 0o700), os.WriteFile(filepath.Join(o.Path, "other"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		f, err := result()
		if err != nil {
			t.Fatalf("Open() = %v", err)
		}
		defer mustClose(t, f)
		if _, err := f.Root().Stat("other"); err != nil {
			t.Errorf("Stat() = %v, want what the other folder holds", err)
		}
	})
}
