package segments

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// lockName is the file on which the owner of the store holds its lock.
const lockName = "LOCK"

// file is an open segment file.
type file interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	// Sync makes what was written durable, size included.
	Sync() error
	Size() (int64, error)
	Close() error
}

// folder is the place of a store. It exists as an interface for the sake of tests that
// make it fail.
type folder interface {
	List() ([]fs.DirEntry, error)
	Open(name string) (file, error)
	// Create makes a file that must not exist.
	Create(name string) (file, error)
	Rename(from, to string) error
	Remove(name string) error
	// Sync makes the names durable.
	Sync() error
	// Close gives up the lock.
	Close() error
}

// dir is a folder of the operating system, locked for this process.
type dir struct {
	root *os.Root
	lock *os.File
}

var _ folder = (*dir)(nil)

// openDir makes the folder at path if it is missing, and locks it.
func openDir(path string) (*dir, error) {
	if err := makeDir(path); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	lock, err := root.OpenFile(lockName, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open store's lock: %w", err), root.Close())
	}
	if err := lockFile(lock); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", filepath.Join(path, lockName), err), lock.Close(), root.Close())
	}
	return &dir{root: root, lock: lock}, nil
}

// makeDir makes the folder, and missing parents, and makes their names durable.
func makeDir(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%w: %s is not a folder", history.ErrForeignFile, path)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("look at store: %w", err)
	}
	parent := filepath.Dir(path)
	if err := makeDir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make store: %w", err)
	}
	d, err := os.Open(parent) //nolint:gosec // the operator names the folder
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil // whoever may not read a folder cannot sync it
	case err != nil:
		return fmt.Errorf("make store: %w", err)
	}
	if err := errors.Join(syncDir(d), d.Close()); err != nil {
		return fmt.Errorf("make store: %w", err)
	}
	return nil
}

func (d *dir) List() ([]fs.DirEntry, error) { return fs.ReadDir(d.root.FS(), ".") }

func (d *dir) Open(name string) (file, error) {
	return d.open(name, os.O_RDWR)
}

func (d *dir) Create(name string) (file, error) {
	return d.open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (d *dir) open(name string, flag int) (file, error) {
	f, err := d.root.OpenFile(name, flag, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d *dir) Rename(from, to string) error { return d.root.Rename(from, to) }

func (d *dir) Remove(name string) error { return d.root.Remove(name) }

func (d *dir) Sync() error {
	f, err := d.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(syncDir(f), f.Close())
}

// Close closes the lock file, which gives up the lock. The file stays: removing it would race
// with a process that has just opened it.
func (d *dir) Close() error { return errors.Join(d.lock.Close(), d.root.Close()) }

// osFile is a file of the operating system.
type osFile struct{ *os.File }

func (f osFile) Sync() error { return syncData(f.File) }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
