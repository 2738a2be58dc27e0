package segments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/cinnabar-hub/cinnabar/internal/history/durable"
	"github.com/cinnabar-hub/cinnabar/internal/private"
)

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
	*durable.Folder

	readOnly bool
}

var _ folder = (*dir)(nil)

// openDir opens and locks the store's folder, and makes it if it is missing, unless it is for reading alone.
func openDir(ctx context.Context, o Options) (*dir, error) {
	f, err := durable.Open(ctx, durable.Options{Path: o.Dir, ReadOnly: o.ReadOnly, Wait: o.Wait, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	d := &dir{Folder: f, readOnly: o.ReadOnly}
	if o.ReadOnly {
		return d, nil
	}
	if err := d.settle(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// settle makes the names of the folders above durable while there is no segment yet.
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
	return d.SyncAbove()
}

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
	f, err := d.Root().OpenFile(name, flag, private.FileMode)
	if err != nil {
		return nil, d.Located(err)
	}
	return osFile{f}, nil
}

func (d *dir) Exists(name string) (bool, error) {
	_, err := d.Root().Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (d *dir) Rename(from, to string) error { return d.Located(d.Root().Rename(from, to)) }

func (d *dir) Remove(name string) error { return d.Located(d.Root().Remove(name)) }

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
