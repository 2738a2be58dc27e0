package segments

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/private"
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
	// Map returns the first bytes of the file as memory that must not be written to, and what gives that back. It
	// outlives the file's being closed.
	Map(size int) (data []byte, free func() error, err error)
	Close() error
}

// folder is the place of a store. It exists as an interface for the sake of tests that
// make it fail.
type folder interface {
	List() ([]fs.DirEntry, error)
	Open(name string) (file, error)
	// Create makes a file that must not exist.
	Create(name string) (file, error)
	// Exists tells whether there is anything with the name.
	Exists(name string) (bool, error)
	Rename(from, to string) error
	Remove(name string) error
	// Sync makes the names durable.
	Sync() error
	// Close gives up the lock.
	Close() error
}

// dir is a folder of the operating system, locked for this process.
type dir struct {
	root     *os.Root
	path     string
	readOnly bool
	lock     *os.File // nil for a store without one that is read alone
}

var _ folder = (*dir)(nil)

// openDir makes the folder at path if it is missing, and locks it. For reading alone it makes nothing.
func openDir(path string, readOnly bool) (_ *dir, err error) {
	if !readOnly {
		if err := makeDir(path); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	d := &dir{root: root, path: path, readOnly: readOnly}
	err = d.takeLock()
	if err == nil && !readOnly {
		err = d.settle()
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// takeLock locks the folder for this process.
func (d *dir) takeLock() error {
	info, err := d.root.Stat(".")
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	if err := private.CheckRights(d.path, info, othersWrite); err != nil {
		return err
	}
	name := filepath.Join(d.path, lockName)
	switch lock, err := d.root.Lstat(lockName); {
	case errors.Is(err, fs.ErrNotExist) && d.readOnly:
		return nil // nobody has ever opened this store for writing: a backup
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("open store's lock: %w", err)
	case !lock.Mode().IsRegular():
		return fmt.Errorf("%w: %s is no plain file", history.ErrForeignFile, name)
	}
	flag := os.O_RDWR | os.O_CREATE
	if d.readOnly {
		flag = os.O_RDONLY
	}
	if d.lock, err = d.root.OpenFile(lockName, flag, private.FileMode); err != nil {
		return fmt.Errorf("open store's lock: %w", d.located(err))
	}
	if err := lockFile(d.lock); err != nil {
		return fmt.Errorf("lock %s: %w", name, err)
	}
	if !d.inPlace(info) {
		return fmt.Errorf("lock %s: it was replaced meanwhile: %w", name, history.ErrLocked)
	}
	return nil
}

// inPlace tells whether what was opened and locked is still what the paths name: if not, somebody else can lock what is
// there now.
func (d *dir) inPlace(opened fs.FileInfo) bool {
	locked, err := d.lock.Stat()
	if err != nil {
		return false
	}
	named, err := d.root.Lstat(lockName)
	if err != nil || !os.SameFile(locked, named) {
		return false
	}
	folder, err := os.Stat(d.path)
	return err == nil && os.SameFile(opened, folder)
}

// Rights that other users must not have on a folder, and on a file.
const (
	othersWrite fs.FileMode = 0o002
	othersMask  fs.FileMode = 0o007
)

// makeDir makes the folder and missing parents.
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
	if err := os.MkdirAll(path, private.FolderMode); err != nil {
		return fmt.Errorf("make store: %w", err)
	}
	return nil
}

// settle makes the names of a folder that holds no segment yet durable, and those of the folders it is in: this process
// may have made them, or one that was killed right after.
func (d *dir) settle() error {
	files, err := d.List()
	if err != nil {
		return fmt.Errorf("make store: %w", err)
	}
	for _, f := range files {
		if _, isSegment := parseSegmentName(f.Name()); isSegment {
			return nil
		}
	}
	path, err := filepath.Abs(d.path)
	if err != nil {
		return fmt.Errorf("make store: %w", err)
	}
	for parent := filepath.Dir(path); parent != path; path, parent = parent, filepath.Dir(parent) {
		f, err := os.Open(parent) //nolint:gosec // the operator names the folder
		switch {
		case errors.Is(err, fs.ErrPermission):
			return nil // whoever may not read a folder cannot sync it, and has made nothing above
		case err != nil:
			return fmt.Errorf("make store: %w", err)
		}
		err = errors.Join(syncDir(f), f.Close())
		switch {
		case errors.Is(err, errors.ErrUnsupported), errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.EROFS):
			return nil // another file system, which has no such thing; nor has one in a read-only image changed
		case err != nil:
			return fmt.Errorf("make store: sync %s: %w", parent, err)
		}
	}
	return nil
}

func (d *dir) List() ([]fs.DirEntry, error) { return fs.ReadDir(d.root.FS(), ".") }

func (d *dir) Open(name string) (file, error) {
	if d.readOnly {
		return d.open(name, os.O_RDONLY)
	}
	return d.open(name, os.O_RDWR)
}

func (d *dir) Create(name string) (file, error) {
	return d.open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (d *dir) open(name string, flag int) (file, error) {
	f, err := d.root.OpenFile(name, flag, private.FileMode)
	if err != nil {
		return nil, d.located(err)
	}
	return osFile{f}, nil
}

// located makes an error of the root, which knows names alone, say where the file is.
func (d *dir) located(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		p.Path = filepath.Join(d.path, p.Path)
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		l.Old, l.New = filepath.Join(d.path, l.Old), filepath.Join(d.path, l.New)
	}
	return err
}

func (d *dir) Exists(name string) (bool, error) {
	_, err := d.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (d *dir) Rename(from, to string) error { return d.located(d.root.Rename(from, to)) }

func (d *dir) Remove(name string) error { return d.located(d.root.Remove(name)) }

func (d *dir) Sync() error {
	f, err := d.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(syncDir(f), f.Close())
}

// Close closes the lock file, which gives up the lock. The file stays: removing it would race
// with a process that has just opened it.
func (d *dir) Close() error {
	var err error
	if d.lock != nil {
		err = d.lock.Close()
	}
	return errors.Join(err, d.root.Close())
}

// osFile is a file of the operating system.
type osFile struct{ *os.File }

func (f osFile) Sync() error { return syncData(f.File) }

func (f osFile) Map(size int) ([]byte, func() error, error) { return mapFile(f.File, size) }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
