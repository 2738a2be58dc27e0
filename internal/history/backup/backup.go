package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/private"
)

// ErrNotEmpty says that the folder for a copy is there already and holds something, or is no folder.
var ErrNotEmpty = errors.New("backup: the place of the copy is taken")

// ErrName says that a copy has a file with a name that no history has.
var ErrName = errors.New("backup: impossible file name")

const (
	// marker is the file that a folder holds until its copy is complete.
	marker     = "INCOMPLETE"
	markerText = "This copy of a history was not finished. It cannot be used; remove the folder.\n"
)

// Options say what is copied where.
type Options struct {
	// Dir is the folder that the copy becomes. It must not exist, or be empty; its parent must exist.
	Dir string
	// Source gives the copy.
	Source history.Backupper
	// Check opens the finished copy, reads all of it and describes it; its error makes the copy fail.
	Check func(ctx context.Context, dir string) (history.Stats, error)
}

// Result describes a copy that was written.
type Result struct {
	// Dir is the absolute path of its folder.
	Dir string `json:"dir"`
	// Files and Bytes say what is in it.
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
	// Stats is what the check found in it.
	Stats history.Stats `json:"history"`
}

// Write makes a copy. When it returns nil the copy is durable, checked, and has its name. Otherwise nothing is at o.Dir
// that was not there before, and nothing beside it unless the error says so. Errors: ErrNotEmpty, ErrName, those of the
// source and of the check, and those of the file system.
func Write(ctx context.Context, o Options) (Result, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return Result{}, fmt.Errorf("back up: %w", err)
	}
	if err := checkFree(dir); err != nil {
		return Result{}, err
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".partial-*") // 0700
	if err != nil {
		return Result{}, fmt.Errorf("back up: %w", err)
	}
	r, err := write(ctx, o, temp)
	if err == nil {
		err = install(temp, dir)
	}
	if err != nil {
		if gone := os.RemoveAll(temp); gone != nil {
			err = errors.Join(err, fmt.Errorf("remove the unfinished copy: %w", gone))
		}
		return Result{}, fmt.Errorf("back up: %w", err)
	}
	r.Dir = dir
	return r, nil
}

// checkFree returns ErrNotEmpty unless dir does not exist or is an empty folder.
func checkFree(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("back up: %w", err)
	case !info.IsDir():
		return fmt.Errorf("%w: %s is no folder", ErrNotEmpty, dir)
	}
	names, err := os.ReadDir(dir)
	switch {
	case err != nil:
		return fmt.Errorf("back up: %w", err)
	case len(names) > 0:
		return fmt.Errorf("%w: %s is not empty", ErrNotEmpty, dir)
	}
	return nil
}

// write fills the folder with a durable, checked copy.
func write(ctx context.Context, o Options, folder string) (r Result, err error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if err := root.WriteFile(marker, []byte(markerText), private.FileMode); err != nil {
		return Result{}, err
	}
	err = o.Source.Backup(ctx, func(name string, size int64) (io.WriteCloser, error) {
		r.Files++
		r.Bytes += size
		return create(root, name, size)
	})
	if err != nil {
		return Result{}, err
	}
	if r.Files == 0 {
		return Result{}, errors.New("the copy holds no file")
	}
	if err := syncFolder(folder); err != nil {
		return Result{}, err
	}
	if err := root.Remove(marker); err != nil {
		return Result{}, err
	}
	if err := syncFolder(folder); err != nil {
		return Result{}, err
	}
	if r.Stats, err = o.Check(ctx, folder); err != nil {
		return Result{}, fmt.Errorf("the copy cannot be opened: %w", err)
	}
	return r, nil
}

// install gives the folder its name, for good.
func install(temp, dir string) error {
	// An empty folder may be there; one that has got something meanwhile cannot be removed.
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(temp, dir); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(dir))
}

// maxNameBytes bounds the name of a file.
const maxNameBytes = 100

// validName tells whether a history may have a file of the name: ASCII letters, digits, "-", "_" and, not in front, ".".
func validName(name string) bool {
	const plain = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
	return name != "" && len(name) <= maxNameBytes && strings.Trim(name, plain+".") == "" && name[0] != '.' &&
		!strings.EqualFold(name, marker) && filepath.IsLocal(name)
}

// syncEvery is how much of a file is written between two syncs.
const syncEvery = 8 << 20

// file is a file of a copy that is being written. Nothing but its own methods may write to what it wraps, since they count.
type file struct {
	under    *os.File
	left     int64 // bytes that were announced and not yet written
	unsynced int
}

func create(root *os.Root, name string, size int64) (*file, error) {
	if !validName(name) {
		return nil, fmt.Errorf("%w: %q", ErrName, name)
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, private.FileMode)
	if err != nil {
		return nil, err
	}
	return &file{under: f, left: size}, nil
}

func (f *file) Write(p []byte) (int, error) {
	if int64(len(p)) > f.left {
		return 0, fmt.Errorf("%s is larger than announced", f.under.Name())
	}
	n, err := f.under.Write(p)
	f.left -= int64(n)
	f.unsynced += n
	if err == nil && f.unsynced >= syncEvery {
		f.unsynced = 0
		err = f.under.Sync()
	}
	return n, err
}

// Close makes the file durable.
func (f *file) Close() error {
	var err error
	if f.left > 0 {
		err = fmt.Errorf("%s is smaller than announced", f.under.Name())
	}
	return errors.Join(err, f.under.Sync(), f.under.Close())
}

// syncFolder makes the names in a folder durable. Windows cannot flush a folder, and journals its names.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path) //nolint:gosec // the folder of the copy, or its parent
	if errors.Is(err, fs.ErrPermission) {
		return nil // whoever may not read a folder cannot sync it
	}
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
