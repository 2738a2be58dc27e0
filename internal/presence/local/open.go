package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/cinnabar-hub/cinnabar/internal/private"
)

// Errors of this package.
var (
	// ErrLocked says that another process, or another directory of this one, has the file open.
	ErrLocked = errors.New("local: file is in use")
	// ErrNewerFormat says that a newer version of the program wrote the file.
	ErrNewerFormat = errors.New("local: file has a newer format")
)

const (
	bucketName = "subscribers"
	// damagedSuffix is appended to the name of a file that was given up.
	damagedSuffix = ".damaged"
	// growBytes is how much a large file grows at a time.
	growBytes = 4 << 20
	// renewBytes is how large a file without subscribers may be when it is opened: one that is larger is made anew.
	renewBytes = 16 << 20
	// maxKey is far more than a hub ever puts.
	maxKey = 1 << 62
)

// Open opens the file, makes it where there is none, and locks it until Close. A file that is damaged, or of another program, is renamed,
// in the place of one that was before, and a new one is made. Errors: ErrLocked, ErrNewerFormat, private.ErrLoose, private.ErrKind
// for a link and whatever else is no file, and those of the file system.
func Open(o Options) (*Directory, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	d, err := openIn(o.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("open presence: %w", err)
	}
	return d, nil
}

func openIn(o Options) (_ *Directory, err error) {
	folder, name := filepath.Split(o.Path)
	root, err := os.OpenRoot(filepath.Clean(folder))
	if err != nil {
		return nil, err
	}
	p := place{root: root, name: name, path: o.Path, wait: o.Wait}
	defer func() { err = errors.Join(err, root.Close()) }()
	d, err := p.open()
	switch {
	case errors.Is(err, errDamaged):
		// Two processes that find a file damaged could rename each other's new one. The lock of the folder's store keeps them apart.
		if err := root.Rename(name, name+damagedSuffix); err != nil {
			return nil, fmt.Errorf("move damaged file aside: %w", err)
		}
		o.Logger.Warn("the file of subscribers is damaged and was moved aside: the ends of their subscriptions are not reported",
			slog.String("file", o.Path), slog.String("moved_to", o.Path+damagedSuffix), slog.String("error", err.Error()))
		d, err = p.open()
	case err == nil && d.reap == d.gone && d.size > renewBytes:
		if err := errors.Join(d.Close(), root.Remove(name)); err != nil {
			return nil, fmt.Errorf("make file anew: %w", err)
		}
		d, err = p.open()
	}
	if err != nil {
		return nil, err
	}
	if err := p.syncFolder(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// place is where the file is.
type place struct {
	root *os.Root // its folder
	name string
	path string // for messages
	wait time.Duration
}

// open opens the file as it is, or makes it. The error of one that is damaged wraps errDamaged.
func (p *place) open() (*Directory, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	db, file, err := p.openDatabase()
	if err != nil {
		return nil, err
	}
	d := &Directory{
		closing: make(chan struct{}), turn: make(chan struct{}, 1), db: db, file: file, keys: map[string]uint64{},
	}
	if err := p.resume(d); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// check refuses what is no file, and what other users have rights on.
func (p *place) check() error {
	info, err := p.root.Lstat(p.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: %w: not a regular file", p.path, private.ErrKind)
	}
	return private.Check(p.path, info)
}

// openDatabase opens the database and locks its file.
func (p *place) openDatabase() (db *bbolt.DB, file *os.File, err error) {
	options := &bbolt.Options{
		// The list of free pages is kept in the file: where it is not, bbolt gathers it in a goroutine, and nothing contains the panic of that one.
		Timeout: p.wait, FreelistType: bbolt.FreelistMapType,
		OpenFile: func(_ string, flag int, mode os.FileMode) (*os.File, error) {
			var err error
			file, err = p.root.OpenFile(p.name, flag, mode)
			return file, err
		},
	}
	err = contain(func() (err error) {
		db, err = bbolt.Open(p.path, private.FileMode, options)
		return err
	})
	if err == nil {
		db.AllocSize = growBytes
		return db, file, nil
	}
	_, refused := errors.AsType[*fs.PathError](err)
	_, failed := errors.AsType[syscall.Errno](err)
	switch {
	case errors.Is(err, errPanicked):
		err = errors.Join(err, abandon(file)) // bbolt was on its way with it
	case errors.Is(err, bolterrors.ErrTimeout):
		err = ErrLocked
	case errors.Is(err, bolterrors.ErrVersionMismatch):
		err = fmt.Errorf("%w: %w", ErrNewerFormat, err)
	case !refused && !failed: // what is not the system's fault is the file's
		err = fmt.Errorf("%w: %w", errDamaged, err)
	}
	return nil, nil, fmt.Errorf("%s: %w", p.path, err)
}

// resume reads what the file holds, all of it: what is wrong with it shall be known now. It makes the bucket where there is none.
func (p *place) resume(d *Directory) error {
	info, err := d.file.Stat()
	if err != nil {
		return err
	}
	named, err := p.root.Lstat(p.name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || !os.SameFile(info, named) {
		return fmt.Errorf("%s: %w: it was replaced meanwhile", p.path, ErrLocked)
	}
	d.size = info.Size()
	fresh := false
	if err := contain(func() error {
		return d.db.View(func(tx *bbolt.Tx) (err error) {
			fresh, err = d.scan(tx)
			return err
		})
	}); err != nil {
		return fmt.Errorf("%s: %w", p.path, err)
	}
	if !fresh {
		return nil
	}
	return d.update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte(bucketName))
		return err
	})
}

// scan reads all records and sets where the keys of this process begin. A database without any bucket is fresh.
func (d *Directory) scan(tx *bbolt.Tx) (fresh bool, err error) {
	if d.size < tx.Size() {
		return false, fmt.Errorf("%w: it is cut off: %d bytes of %d", errDamaged, d.size, tx.Size())
	}
	d.next, d.reap, d.gone = 1, 1, 1
	bucket := tx.Bucket([]byte(bucketName))
	if bucket == nil {
		if other, _ := tx.Cursor().First(); other != nil {
			return false, fmt.Errorf("%w: it is another program's database", errDamaged)
		}
		return true, nil
	}
	cursor := bucket.Cursor()
	for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
		key, err := parseKey(k)
		if err != nil || key < d.next {
			return false, fmt.Errorf("%w: wrong key", errDamaged)
		}
		_, err = decodeRecord(key, v)
		switch {
		case errors.Is(err, ErrNewerFormat):
			return false, err
		case err != nil:
			return false, damaged(key, err)
		}
		d.next, d.gone = key+1, key+1
	}
	return false, nil
}

// damaged says that a record cannot be read.
func damaged(key uint64, err error) error {
	return fmt.Errorf("%w: record %d: %w", errDamaged, key, err)
}

func appendKey(b []byte, key uint64) []byte { return binary.BigEndian.AppendUint64(b, key) }

func parseKey(k []byte) (uint64, error) {
	if len(k) != 8 {
		return 0, errContent
	}
	key := binary.BigEndian.Uint64(k)
	if key == 0 || key >= maxKey {
		return 0, errContent
	}
	return key, nil
}

// syncFolder makes the name of the file durable.
func (p *place) syncFolder() error {
	folder, err := p.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(syncDir(folder), folder.Close())
}
