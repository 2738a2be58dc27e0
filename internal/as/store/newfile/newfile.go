// Package newfile gives a finished file its name, so that nobody ever finds half a file under that name and nobody's file is replaced.
//
// It owns the last steps: syncing what was written, taking the name if it is free, and making the name durable. It does not own what
// is in the file, nor its mode: the caller makes it in the folder where it is to be, under another name.
//
// Its functions may be called at once, by several processes too; of those that want one name, one gets it.
package newfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Place makes the finished file durable under the name to, in the same folder, and returns an error that wraps fs.ErrExist when that
// is taken. Afterwards the file may have its old name as well; removing that is up to the caller.
//
// Where hard links do not exist, the name is reserved first and the file moved over it: who reads in between finds an empty file.
func Place(from, to string, mode fs.FileMode) error {
	if err := syncFile(from); err != nil {
		return err
	}
	err := os.Link(from, to)
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	if err != nil {
		if err := reserve(from, to, mode); err != nil {
			return err
		}
	}
	return syncFolder(filepath.Dir(to))
}

func reserve(from, to string, mode fs.FileMode) error {
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode) //nolint:gosec // the caller says where its own file goes
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(from, to)
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // the caller's own file
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncFolder makes a new name durable where folders can be synced. That some systems cannot sync them is no error.
func syncFolder(path string) error {
	d, err := os.Open(path) //nolint:gosec // the folder of the caller's own file
	if err != nil {
		return err
	}
	_ = d.Sync()
	return d.Close()
}
