package bolt

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/private"
)

// The files of a store.
const (
	fileName  = "history.db"
	epochName = "EPOCH"
	lockName  = "LOCK"
	// tempSuffix marks what is being made, and is removed when it is found.
	tempSuffix = ".tmp"
)

// lockInterval is how often a successor looks whether the store has become free.
const lockInterval = 25 * time.Millisecond

// Rights that other users must not have on the folder, and on a file.
const (
	othersWrite fs.FileMode = 0o002
	othersMask  fs.FileMode = 0o007
)

// folder is the place of a store, locked for this process.
type folder struct {
	path string
	root *os.Root
	lock *os.File // nil for a store without one that is read alone

	syncDir func(*os.File) error // makes names durable
}

// openWaiting opens and locks the folder, and waits for its present owner as long as the options say. Each attempt opens the folder
// anew, so that it gets the one that is at the path by then.
func openWaiting(ctx context.Context, o Options) (*folder, error) {
	f, err := openFolder(o.Dir, o.ReadOnly)
	if !errors.Is(err, history.ErrLocked) || o.Wait == 0 {
		return f, err
	}
	began := time.Now()
	o.Logger.Info("history is in use by another process: waiting for it to end",
		slog.String("folder", o.Dir), slog.Duration("at_most", o.Wait))
	timeout := time.NewTimer(o.Wait)
	defer timeout.Stop()
	tick := time.NewTicker(lockInterval)
	defer tick.Stop()
	for errors.Is(err, history.ErrLocked) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timeout.C:
			return nil, fmt.Errorf("waited %s: %w", o.Wait, err)
		case <-tick.C:
			f, err = openFolder(o.Dir, o.ReadOnly)
		}
	}
	if err != nil {
		return nil, err
	}
	o.Logger.Info("history was handed over", slog.String("folder", o.Dir), slog.Duration("waited", time.Since(began)))
	return f, nil
}

// openFolder makes the folder at path if it is missing, locks it and looks what is in it. For reading alone it makes nothing.
func openFolder(path string, readOnly bool) (_ *folder, err error) {
	if !readOnly {
		if err := makeFolder(path); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	f := &folder{path: path, root: root, syncDir: syncDir}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	info, err := root.Stat(".")
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := private.CheckRights(path, info, othersWrite); err != nil {
		return nil, err
	}
	// What is not ours is left alone, so it is looked at before the lock's file is made, and again under the lock.
	if err := f.check(); err != nil {
		return nil, err
	}
	if err := f.takeLock(info, readOnly); err != nil {
		return nil, err
	}
	return f, f.check()
}

func makeFolder(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%w: %s is not a folder", history.ErrForeignFile, path)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("look at store: %w", err)
	}
	if err := os.MkdirAll(path, private.FolderMode); err != nil {
		return fmt.Errorf("make store: %w", err)
	}
	return nil
}

// check refuses a folder that holds something else than a store.
func (f *folder) check() error {
	files, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return fmt.Errorf("look at store: %w", err)
	}
	for _, file := range files {
		name := file.Name()
		if name == "lost+found" || strings.HasPrefix(name, ".") {
			continue
		}
		plain := strings.TrimSuffix(name, tempSuffix)
		ours := name == lockName || plain == fileName || plain == epochName
		if !ours || !file.Type().IsRegular() {
			return fmt.Errorf("%w: %s", history.ErrForeignFile, name)
		}
		info, err := file.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // a temporary file of the store's owner, if there is one
		}
		if err != nil {
			return fmt.Errorf("look at store: %w", err)
		}
		if err := private.CheckRights(filepath.Join(f.path, name), info, othersMask); err != nil {
			return err
		}
	}
	return nil
}

// takeLock locks the folder, which is the one described, for this process.
func (f *folder) takeLock(opened fs.FileInfo, readOnly bool) error {
	flag := os.O_RDWR | os.O_CREATE
	if readOnly {
		flag = os.O_RDONLY
	}
	name := filepath.Join(f.path, lockName)
	lock, err := f.root.OpenFile(lockName, flag, private.FileMode)
	switch {
	case errors.Is(err, fs.ErrNotExist) && readOnly:
		return nil // nobody has ever opened this store for writing: a backup
	case err != nil:
		return fmt.Errorf("open store's lock %s: %w", name, err)
	}
	f.lock = lock
	if err := lockFile(lock); err != nil {
		return fmt.Errorf("lock %s: %w", name, err)
	}
	if !f.inPlace(opened) {
		return fmt.Errorf("lock %s: it was replaced meanwhile: %w", name, history.ErrLocked)
	}
	return nil
}

// inPlace tells whether what was opened and locked is still what the paths name: if not, somebody else can lock what is
// there now.
func (f *folder) inPlace(opened fs.FileInfo) bool {
	locked, err := f.lock.Stat()
	if err != nil {
		return false
	}
	named, err := f.root.Lstat(lockName)
	if err != nil || !os.SameFile(locked, named) {
		return false
	}
	folder, err := os.Stat(f.path)
	return err == nil && os.SameFile(opened, folder)
}

// file gives the path of a file of the store.
func (f *folder) file(name string) string { return filepath.Join(f.path, name) }

// settle removes what was never finished.
func (f *folder) settle() error {
	for _, name := range []string{fileName, epochName} {
		if err := f.root.Remove(name + tempSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove unfinished file: %w", err)
		}
	}
	return nil
}

// install gives a finished file its name, for good.
func (f *folder) install(name string) error {
	if err := f.rename(name); err != nil {
		return err
	}
	return f.sync(".")
}

// rename gives a finished file its name, which is not durable yet.
func (f *folder) rename(name string) error {
	if err := f.root.Rename(name+tempSuffix, name); err != nil {
		return fmt.Errorf("install %s: %w", f.file(name), err)
	}
	return nil
}

// sync makes the names in the folder durable.
func (f *folder) sync(name string) error {
	d, err := f.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.syncDir(d), d.Close())
}

// syncAbove makes the folder's own name durable, and those of the folders it is in: this process may have made them.
func (f *folder) syncAbove() error {
	path, err := filepath.Abs(f.path)
	if err != nil {
		return fmt.Errorf("make store: %w", err)
	}
	for parent := filepath.Dir(path); parent != path; path, parent = parent, filepath.Dir(parent) {
		root, err := os.OpenRoot(parent)
		if errors.Is(err, fs.ErrPermission) {
			return nil // whoever may not read a folder cannot sync it, and has made nothing above
		}
		if err != nil {
			return fmt.Errorf("make store: %w", err)
		}
		err = (&folder{path: parent, root: root, syncDir: f.syncDir}).sync(".")
		err = errors.Join(err, root.Close())
		switch {
		case errors.Is(err, fs.ErrPermission):
			return nil
		case errors.Is(err, errors.ErrUnsupported), errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.EROFS):
			return nil // another file system, which has no such thing; nor has one in a read-only image changed
		case err != nil:
			return fmt.Errorf("make store: sync %s: %w", parent, err)
		}
	}
	return nil
}

// epoch returns the store's epoch, and makes one where there is none: a database that came here without its epoch is a copy.
func (f *folder) epoch(readOnly bool) (string, error) {
	text, err := f.root.ReadFile(epochName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read epoch: %w", err)
	}
	epoch := strings.TrimSuffix(string(text), "\n")
	if raw, err := hex.DecodeString(epoch); err == nil && len(raw) == epochBytes {
		return epoch, nil
	}
	epoch = newEpoch()
	if readOnly {
		return epoch, nil
	}
	file, err := f.root.OpenFile(epochName+tempSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, private.FileMode)
	if err != nil {
		return "", fmt.Errorf("write epoch: %w", err)
	}
	_, err = file.WriteString(epoch + "\n")
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = f.install(epochName)
	}
	if err != nil {
		return "", fmt.Errorf("write epoch: %w", err)
	}
	return epoch, nil
}

const epochBytes = 16

func newEpoch() string {
	b := make([]byte, epochBytes)
	_, _ = rand.Read(b) // never fails: crypto/rand aborts the program instead
	return hex.EncodeToString(b)
}

// Close closes the lock's file, which gives up the lock. The file stays: removing it would race with a process that has just opened it.
func (f *folder) Close() error {
	var err error
	if f.lock != nil {
		err = f.lock.Close()
	}
	return errors.Join(err, f.root.Close())
}
