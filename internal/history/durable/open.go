package durable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/private"
)

// LockName is the file on which the owner of a store holds its lock.
const LockName = "LOCK"

// retryInterval is how often a successor looks whether the store has become free.
const retryInterval = 25 * time.Millisecond

// othersWrite are rights that other users must not have on the folder.
const othersWrite fs.FileMode = 0o002

// Options say which folder is opened, and how.
type Options struct {
	// Path is the folder. It is made, and missing parents, with mode 0700, unless it is opened for reading alone.
	Path string
	// ReadOnly makes nothing. The lock is taken all the same if there is a file for it.
	ReadOnly bool
	// Wait is how long Open waits for another process that has the folder; 0 means that it returns history.ErrLocked at once.
	Wait time.Duration
	// Check is asked whether the folder holds nothing but a store, before anything is put there, and again under the lock. Its error ends
	// Open. Nil means that nobody is asked.
	Check func(*Folder) error
	// Logger is told when Open has to wait, and when that is over. It must not be nil if Wait is not 0.
	Logger *slog.Logger
}

// Open opens and locks a folder. The context bounds the waiting for another process that has it. Errors: history.ErrLocked,
// history.ErrForeignFile for something else in the place of the folder or of the lock, private.ErrLoose for a folder that others may write
// to, fs.ErrNotExist for a missing one that is to be read alone, those of Options.Check, and those of the file system.
//
// Each attempt opens the folder anew, so that it gets the one that is at the path by then. The owner gives up its lock
// last of all, when its files are closed, and nobody reads the store before having the lock.
func Open(ctx context.Context, o Options) (*Folder, error) {
	f, err := openOnce(o)
	if !errors.Is(err, history.ErrLocked) || o.Wait == 0 {
		return f, err
	}
	began := time.Now()
	o.Logger.Info("history is in use by another process: waiting for it to end",
		slog.String("folder", o.Path), slog.Duration("at_most", o.Wait))
	timeout := time.NewTimer(o.Wait)
	defer timeout.Stop()
	tick := time.NewTicker(retryInterval)
	defer tick.Stop()
	for errors.Is(err, history.ErrLocked) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timeout.C:
			return nil, fmt.Errorf("waited %s: %w", o.Wait, err)
		case <-tick.C:
			f, err = openOnce(o)
		}
	}
	if err != nil {
		return nil, err
	}
	o.Logger.Info("history was handed over", slog.String("folder", o.Path), slog.Duration("waited", time.Since(began)))
	return f, nil
}

// openOnce opens the folder without waiting.
func openOnce(o Options) (*Folder, error) {
	if !o.ReadOnly {
		if err := makeFolder(o.Path); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(o.Path)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	f := &Folder{root: root, path: o.Path}
	if err := f.occupy(o); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// makeFolder makes the folder and missing parents.
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

// occupy checks the folder and locks it.
func (f *Folder) occupy(o Options) error {
	info, err := f.root.Stat(".")
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	if err := private.CheckRights(f.path, info, othersWrite); err != nil {
		return err
	}
	if o.Check == nil {
		return f.takeLock(info, o.ReadOnly)
	}
	if err := o.Check(f); err != nil {
		return err
	}
	if err := f.takeLock(info, o.ReadOnly); err != nil {
		return err
	}
	return o.Check(f)
}

// takeLock locks the folder, which is the one described, for this process.
func (f *Folder) takeLock(opened fs.FileInfo, readOnly bool) error {
	name := f.File(LockName)
	switch lock, err := f.root.Lstat(LockName); {
	case errors.Is(err, fs.ErrNotExist) && readOnly:
		return nil // nobody has ever opened this store for writing: a backup
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("open store's lock: %w", err)
	case !lock.Mode().IsRegular():
		return fmt.Errorf("%w: %s is no plain file", history.ErrForeignFile, name)
	}
	flag := os.O_RDWR | os.O_CREATE
	if readOnly {
		flag = os.O_RDONLY
	}
	var err error
	if f.lock, err = f.root.OpenFile(LockName, flag, private.FileMode); err != nil {
		return fmt.Errorf("open store's lock: %w", f.Located(err))
	}
	if err := lockFile(f.lock); err != nil {
		return fmt.Errorf("lock %s: %w", name, err)
	}
	if !f.inPlace(opened) {
		return fmt.Errorf("lock %s: it was replaced meanwhile: %w", name, history.ErrLocked)
	}
	return nil
}

// inPlace tells whether what was opened and locked is still what the paths name: if not, somebody else can lock what is
// there now.
func (f *Folder) inPlace(opened fs.FileInfo) bool {
	locked, err := f.lock.Stat()
	if err != nil {
		return false
	}
	named, err := f.root.Lstat(LockName)
	if err != nil || !os.SameFile(locked, named) {
		return false
	}
	folder, err := os.Stat(f.path)
	return err == nil && os.SameFile(opened, folder)
}
