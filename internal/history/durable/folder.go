package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cinnabar-hub/cinnabar/internal/private"
)

// Folder is the place of a store, locked for this process until Close.
type Folder struct {
	root *os.Root
	path string
	lock *os.File // nil for a store without one that is read alone
}

// othersMask are rights that other users must not have on a file.
const othersMask fs.FileMode = 0o007

// CheckFile refuses a file of a store, which is the one described, when other users have rights on it: the error wraps private.ErrLoose. Rights
// of the group are left to the operator: who mounts volumes for a container often grants them.
func CheckFile(path string, info fs.FileInfo) error {
	return private.CheckRights(path, info, othersMask)
}

// Root returns the folder itself, which belongs to f and is open until Close. Its errors know names alone: see Located.
func (f *Folder) Root() *os.Root { return f.root }

// File returns the path of a file in the folder.
func (f *Folder) File(name string) string { return filepath.Join(f.path, name) }

// Located makes an error of the root, which knows names alone, say where the file is, and returns it.
func (f *Folder) Located(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		p.Path = f.File(p.Path)
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		l.Old, l.New = f.File(l.Old), f.File(l.New)
	}
	return err
}

// List returns what is in the folder, in order of the names.
func (f *Folder) List() ([]fs.DirEntry, error) { return fs.ReadDir(f.root.FS(), ".") }

// Sync makes the names in the folder durable.
func (f *Folder) Sync() error {
	names, err := f.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(syncNames(names), names.Close())
}

// SyncAbove makes the folder's own name durable, and those of the folders it is in: this process may have made them, or one that was killed
// right after.
func (f *Folder) SyncAbove() error {
	path, err := filepath.Abs(f.path)
	if err != nil {
		return fmt.Errorf("make store: %w", err)
	}
	for parent := filepath.Dir(path); parent != path; path, parent = parent, filepath.Dir(parent) {
		names, err := os.Open(parent) //nolint:gosec // the operator names the folder
		switch {
		case errors.Is(err, fs.ErrPermission):
			return nil // whoever may not read a folder cannot sync it, and has made nothing above
		case err != nil:
			return fmt.Errorf("make store: %w", err)
		}
		err = errors.Join(syncNames(names), names.Close())
		switch {
		case errors.Is(err, errors.ErrUnsupported), errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.EROFS):
			return nil // another file system, which has no such thing; nor has one in a read-only image changed
		case err != nil:
			return fmt.Errorf("make store: sync %s: %w", parent, err)
		}
	}
	return nil
}

// Close gives up the lock by closing its file, and closes the folder. The file stays: removing it would race with a process that has
// just opened it.
func (f *Folder) Close() error {
	var err error
	if f.lock != nil {
		err = f.lock.Close()
	}
	return errors.Join(err, f.root.Close())
}
