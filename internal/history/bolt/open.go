package bolt

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/durable"
	"github.com/cinnabar-hub/cinnabar/internal/history/feed"
	"github.com/cinnabar-hub/cinnabar/internal/private"
)

// The buckets of the database, and the keys of the one for everything else.
const (
	entriesBucket = "entries"
	subsBucket    = "subscriptions"
	idsBucket     = "ids"
	topicsBucket  = "topics"
	metaBucket    = "meta"

	formatKey = "format"
	hashKeyAt = "hash key"
	stateKey  = "state"
)

const (
	// growBytes is how much the file grows at a time.
	growBytes = 4 << 20
	// mapAhead is the address space set aside beyond the file, so that a file that grows need not wait for readers to be mapped anew.
	mapAhead = 1 << 30
	// mapMost bounds what a limit by bytes adds to that: a process has 128 TiB at most.
	mapMost = 1 << 40
	// lockTimeout makes bbolt ask for its lock once: it sleeps between attempts.
	lockTimeout = time.Nanosecond
)

// errReading is why nothing can be appended to a log that was opened so.
var errReading = errors.New("bolt: opened for reading alone")

// Open opens the store in o.Dir, makes it if there is none, and locks it until Close. The context bounds the
// waiting for another process that has the store. Errors: history.ErrLocked, ErrForeignFile, ErrNewerFormat and
// ErrCorrupt, private.ErrLoose, fs.ErrNotExist for reading alone where there is no store, and those of the file system.
func Open(ctx context.Context, o Options) (*Log, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	f, err := openFolder(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("open bolt: %w", err)
	}
	l, err := open(o, f)
	if err != nil {
		return nil, fmt.Errorf("open bolt: %w", err)
	}
	return l, nil
}

// open opens the store in a folder, which it closes when it fails.
func open(o Options, f *folder) (*Log, error) {
	l := &Log{o: o, folder: f, queue: newQueue(), health: durable.NewHealth(o.Dir, o.Logger), quit: make(chan struct{}), upkeep: make(chan struct{}, 1)}
	if err := l.load(); err != nil {
		return nil, errors.Join(err, l.closeFiles())
	}
	l.feed = feed.New(feed.Options{
		BufferBytes: o.TailBufferBytes, LagBytes: o.TailLagBytes, Patience: o.AppendPatience,
	}, l.shown.last)
	if o.ReadOnly {
		l.health.Refuse(errReading)
	}
	l.workers.Add(2)
	go l.runCommitter()
	go l.runJanitor()
	l.queue.askTidy()
	return l, nil
}

// load opens the database and reads where it stands: a few pages, however long the log is.
func (l *Log) load() error {
	if err := l.prepare(); err != nil {
		return err
	}
	var err error
	if l.db, l.file, err = openFile(l.folder.File(fileName), l.o); err != nil {
		return err
	}
	if err := contain(func() error { return l.db.View(l.resume) }); err != nil {
		return err
	}
	l.measure()
	if l.epoch, err = l.folder.epoch(l.o.ReadOnly); err != nil {
		return err
	}
	return nil
}

// prepare makes the database where there is none.
func (l *Log) prepare() error {
	_, err := l.folder.Root().Lstat(fileName)
	switch {
	case err == nil && l.o.ReadOnly:
		return nil
	case err == nil:
		return l.folder.settle()
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("look at store: %w", err)
	case l.o.ReadOnly:
		return fmt.Errorf("%w: the folder holds no history", fs.ErrNotExist)
	}
	if err := l.folder.settle(); err != nil {
		return err
	}
	// The epoch of a database that was here before is not that of the new one.
	if err := l.folder.Root().Remove(epochName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("make store: %w", err)
	}
	temp := l.folder.File(fileName + tempSuffix)
	db, _, err := openFile(temp, l.o)
	if err != nil {
		return err
	}
	// A database gets its name when it is complete, so one without buckets is nobody's unfinished store.
	if err := errors.Join(db.Update(initialise), db.Close()); err != nil {
		return fmt.Errorf("make store: %w", err)
	}
	if err := l.folder.install(fileName); err != nil {
		return err
	}
	return l.folder.SyncAbove()
}

// initialise makes an empty store of an empty database.
func initialise(tx *bbolt.Tx) error {
	for _, name := range []string{entriesBucket, subsBucket, idsBucket, topicsBucket} {
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	meta, err := tx.CreateBucket([]byte(metaBucket))
	if err != nil {
		return err
	}
	var key hashKey
	_, _ = rand.Read(key[:]) // never fails: crypto/rand aborts the program instead
	return errors.Join(
		meta.Put([]byte(formatKey), binary.BigEndian.AppendUint16(nil, formatVersion)),
		meta.Put([]byte(hashKeyAt), key[:]),
		meta.Put([]byte(stateKey), (&state{first: 1}).encode()),
	)
}

// openFile opens a database. Errors are those of Open.
func openFile(path string, o Options) (db *bbolt.DB, file *os.File, err error) {
	options := &bbolt.Options{
		Timeout: lockTimeout, ReadOnly: o.ReadOnly, FreelistType: bbolt.FreelistMapType,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			var err error
			file, err = os.OpenFile(name, flag, mode) //nolint:gosec // the operator names the folder
			return file, err
		},
	}
	if err := checkMagic(path, o.ReadOnly); err != nil {
		return nil, nil, err
	}
	if info, err := os.Stat(path); err == nil && strconv.IntSize == 64 && runtime.GOOS != "windows" && !o.ReadOnly {
		options.InitialMmapSize = int(info.Size() + 2*min(o.MaxBytes, mapMost/2) + mapAhead)
	}
	err = contain(func() (err error) {
		db, err = bbolt.Open(path, private.FileMode, options)
		return err
	})
	if err == nil {
		db.AllocSize = growBytes
		return db, file, nil
	}
	switch {
	case errors.Is(err, errPanicked):
		err = errors.Join(err, abandon(file)) // bbolt was on its way with it
	case errors.Is(err, bolterrors.ErrTimeout):
		err = fmt.Errorf("%s: %w", path, history.ErrLocked)
	case errors.Is(err, bolterrors.ErrVersionMismatch):
		err = fmt.Errorf("%w: %s: %w", history.ErrNewerFormat, path, err)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum):
		err = fmt.Errorf("%w: %s: %w", history.ErrCorrupt, path, err)
	}
	return nil, nil, err
}

const (
	// metaMagic is what a bbolt database has after the header of its first two pages.
	metaMagic      = 0xED0CDAED
	pageHeaderSize = 16
	minPageBytes   = 1 << 10
	maxPageBytes   = 64 << 10
)

// checkMagic refuses a file that is no bbolt database, and one that was cut off within its first pages. A file that is not there is fine.
func checkMagic(path string, readOnly bool) (err error) {
	f, err := os.Open(path) //nolint:gosec // the operator names the folder
	if errors.Is(err, fs.ErrNotExist) && !readOnly {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	cutOff := func(page int64) error {
		if info.Size() < 2*page {
			return fmt.Errorf("%w: %s is cut off", history.ErrCorrupt, path)
		}
		return nil
	}
	if size, ok := metaPage(f, 0); ok {
		return cutOff(size)
	}
	for page := int64(minPageBytes); page <= maxPageBytes; page <<= 1 {
		if _, ok := metaPage(f, page); ok {
			return cutOff(page) // the first page is damaged, and the second one may do
		}
	}
	return fmt.Errorf("%w: %s is no bbolt database", history.ErrForeignFile, path)
}

// metaPage tells whether there is a meta page at the offset, and which size of a page it names.
func metaPage(r io.ReaderAt, offset int64) (size int64, ok bool) {
	var b [12]byte // magic, version, page size
	_, err := r.ReadAt(b[:], offset+pageHeaderSize)
	return int64(binary.NativeEndian.Uint32(b[8:])), err == nil && binary.NativeEndian.Uint32(b[:]) == metaMagic
}

// resume reads where the log stands.
func (l *Log) resume(tx *bbolt.Tx) error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() < tx.Size() {
		return fmt.Errorf("%w: %s is cut off: %d bytes of %d", history.ErrCorrupt, fileName, info.Size(), tx.Size())
	}
	meta := tx.Bucket([]byte(metaBucket))
	if meta == nil {
		return fmt.Errorf("%w: %s is another program's database", history.ErrForeignFile, fileName)
	}
	version := meta.Get([]byte(formatKey))
	if len(version) != 2 {
		return fmt.Errorf("%w: %s is another program's database", history.ErrForeignFile, fileName)
	}
	if v := binary.BigEndian.Uint16(version); v > formatVersion {
		return fmt.Errorf("%w: %s has version %d, this program knows %d", history.ErrNewerFormat, fileName, v, formatVersion)
	}
	key := meta.Get([]byte(hashKeyAt))
	if copy(l.key[:], key) != len(l.key) || len(key) != len(l.key) {
		return fmt.Errorf("%w: %s: wrong key", history.ErrCorrupt, fileName)
	}
	for _, name := range []string{entriesBucket, idsBucket, topicsBucket} {
		if tx.Bucket([]byte(name)) == nil {
			return fmt.Errorf("%w: %s: bucket %s is missing", history.ErrCorrupt, fileName, name)
		}
	}
	n := &l.committer.standing
	if n.state, err = readState(tx); err != nil {
		return err
	}
	newest, err := n.resume(tx)
	if err != nil {
		return err
	}
	l.show(n, string(newest.id))
	return nil
}

// resume reads the oldest and the newest entry, and compares them with the state. It returns the newest one.
func (n *standing) resume(tx *bbolt.Tx) (newest view, err error) {
	oldest, newest, err := ends(tx, entriesBucket, n.updates)
	if err != nil {
		return view{}, err
	}
	first, last, err := ends(tx, subsBucket, n.subs)
	if err != nil {
		return view{}, err
	}
	if n.updates == 0 || n.subs > 0 && first.position < oldest.position {
		oldest = first
	}
	if last.position > newest.position {
		newest = last
	}
	switch {
	case n.count() == 0:
		if n.first == n.last+1 && n.gone == n.last {
			return view{}, nil
		}
	case newest.position == n.last && oldest.position == n.first && n.gone < n.first && n.count() <= int64(n.last-n.first)+1:
		n.oldest = oldest.millis
		return newest, nil
	}
	return view{}, fmt.Errorf("%w: %s: records %d to %d are there, and it should be %d from %d to %d", history.ErrCorrupt, fileName,
		oldest.position, newest.position, n.count(), n.first, n.last)
}

// ends reads the first and the last record of a bucket, which should have so many.
func ends(tx *bbolt.Tx, bucket string, count int64) (first, last view, err error) {
	w := newWalker(tx, bucket)
	if w.cursor != nil {
		w.key, w.value = w.cursor.First()
	}
	if (w.key == nil) != (count == 0) {
		return view{}, view{}, fmt.Errorf("%w: %s: bucket %s should have %d records", history.ErrCorrupt, fileName, bucket, count)
	}
	if w.key == nil {
		return view{}, view{}, nil
	}
	if first, err = decodeIn(bucket, w.key, w.value); err != nil {
		return view{}, view{}, err
	}
	k, raw := w.cursor.Last()
	last, err = decodeIn(bucket, k, raw)
	return first, last, err
}
