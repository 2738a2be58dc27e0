// Package historyapp chooses the history of a hub, and where it keeps which subscribers it has: for the hub itself, and for the commands that look
// at a history no hub has open. It owns the choice between the drivers, and moving updates from one to another; it does not own what a hub does
// with its log.
package historyapp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/bolt"
	"github.com/cinnabar-hub/cinnabar/internal/history/memory"
	"github.com/cinnabar-hub/cinnabar/internal/history/segments"
	"github.com/cinnabar-hub/cinnabar/internal/presence"
	"github.com/cinnabar-hub/cinnabar/internal/presence/local"
	"github.com/cinnabar-hub/cinnabar/internal/private"
)

// minProcessors is how many processors a hub with a durable history schedules on at least, on machines with fewer too.
const minProcessors = 2

// offlineWait is how long a command waits for a hub that is just ending.
const offlineWait = 2 * time.Second

// ErrVolatile says that a history is lost when its hub ends, so that there is nothing to look at without it.
var ErrVolatile = errors.New("the memory driver keeps nothing without a running hub")

// Open opens the history that a configuration names, for a hub. It waits as long as wait for a predecessor that has it open.
func Open(ctx context.Context, c config.History, wait time.Duration, logger *slog.Logger) (history.Log, error) {
	switch c.Driver {
	case "memory":
		o := memory.Options{MaxEvents: c.MaxEvents, MaxSubscriptionEvents: c.MaxSubscriptionEvents, MaxBytes: int64(c.MaxBytes), MaxAge: c.MaxAge}
		if o.MaxEvents == 0 {
			o.MaxEvents = -1 // the configuration's 0 is no limit, the driver's is its default
		}
		if o.MaxSubscriptionEvents == 0 {
			o.MaxSubscriptionEvents = -1
		}
		if o.MaxBytes == 0 {
			o.MaxBytes = -1
		}
		return memory.Open(o)
	case "segments", "bolt":
		// Waiting for the disk holds a processor: with a single one, nothing would be delivered meanwhile.
		if runtime.GOMAXPROCS(0) < minProcessors {
			runtime.GOMAXPROCS(minProcessors)
		}
		return openDurable(ctx, c, wait, logger)
	}
	return nil, fmt.Errorf("unknown driver %q", c.Driver)
}

// presenceFile is the name of the file beside a durable history's own: those whose names begin with a dot are none of its files.
const presenceFile = ".presence.db"

// OpenDirectory opens where the hub keeps which subscribers it has; nil where the history is lost with the hub, as what was announced in it is. The
// caller has the history open, which keeps other processes away, and closes the directory first.
func OpenDirectory(c config.History, logger *slog.Logger) (presence.Directory, error) {
	if !c.Durable() {
		return nil, nil
	}
	d, err := local.Open(local.Options{Path: filepath.Join(string(c.Path), presenceFile), Logger: logger})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Durable is a history that is kept in a folder.
type Durable interface {
	history.Log
	history.Inspector
	history.Backupper
	history.Verifier
	history.Compacter
	history.Importer
	history.Exporter
}

// openDurable opens a history in a folder, and makes it where there is none.
func openDurable(ctx context.Context, c config.History, wait time.Duration, logger *slog.Logger) (Durable, error) {
	if c.Driver == "bolt" {
		return durable(bolt.Open(ctx, bolt.Options{
			Dir: string(c.Path), MaxEvents: c.MaxEvents, MaxSubscriptionEvents: c.MaxSubscriptionEvents, MaxBytes: int64(c.MaxBytes), MaxAge: c.MaxAge,
			Wait: wait, Logger: logger,
		}))
	}
	return durable(segments.Open(ctx, segments.Options{
		Dir: string(c.Path), MaxEvents: c.MaxEvents, MaxSubscriptionEvents: c.MaxSubscriptionEvents, MaxBytes: int64(c.MaxBytes), MaxAge: c.MaxAge,
		Wait: wait, Logger: logger,
	}))
}

// durable keeps a nil pointer from becoming an interface that is not nil.
func durable[L Durable](l L, err error) (Durable, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Offline is a history that no hub has open. Nothing in it is changed.
type Offline interface {
	history.Inspector
	history.Backupper
	history.Verifier
	history.Exporter
	Close() error
}

// OpenOffline opens the history that a configuration names for reading alone. It returns ErrVolatile for a driver that
// keeps nothing, fs.ErrNotExist where there is no history yet, and history.ErrLocked when a process has it open.
func OpenOffline(ctx context.Context, c config.History) (Offline, error) {
	return openReading(ctx, c, offlineWait)
}

func openReading(ctx context.Context, c config.History, wait time.Duration) (Durable, error) {
	switch c.Driver {
	case "memory":
		return nil, ErrVolatile
	case "bolt":
		return durable(bolt.Open(ctx, bolt.Options{Dir: string(c.Path), ReadOnly: true, Wait: wait}))
	case "segments":
		return durable(segments.Open(ctx, segments.Options{Dir: string(c.Path), ReadOnly: true, Wait: wait}))
	}
	return nil, fmt.Errorf("unknown driver %q", c.Driver)
}

// Compact compacts a history that no hub has open, and gives it the limits of its configuration. Errors are those of OpenOffline, and those of
// the history.
func Compact(ctx context.Context, c config.History, logger *slog.Logger) (history.Compaction, error) {
	reading, err := OpenOffline(ctx, c) // opened for writing it would be made where there is none
	if err != nil {
		return history.Compaction{}, err
	}
	if err := reading.Close(); err != nil {
		return history.Compaction{}, err
	}
	l, err := openDurable(ctx, c, offlineWait, logger)
	if err != nil {
		return history.Compaction{}, err
	}
	done, err := l.Compact(ctx)
	return done, errors.Join(err, l.Close())
}

// ErrSamePlace says that a history was to be moved to where it is, or to a folder inside of its own.
var ErrSamePlace = errors.New("source and target are in the same folder")

// Imported says how an import went.
type Imported struct {
	// Events is how many entries were read from the source, updates and subscription events, and Kept how many of them the target has, whose
	// limits may be narrower.
	Events int64 `json:"events"`
	Kept   int64 `json:"kept"`
}

// SourceError is an error that came from reading the source of an import.
type SourceError struct{ Err error }

func (e *SourceError) Error() string { return "read " + e.Err.Error() }
func (e *SourceError) Unwrap() error { return e.Err }

// Import copies all updates of the history from to the history to, which is made where there is none and must be empty, and who was subscribed
// when its hub ended: the ends of those subscriptions belong behind their beginnings. Nothing in the source is changed. Errors: ErrSamePlace, ErrVolatile for a driver that keeps nothing, and those of the two histories: of the source in a
// SourceError. What was copied before an error stays; the result says how much was read.
func Import(ctx context.Context, from, to config.History, logger *slog.Logger) (r Imported, err error) {
	if from.Driver == "memory" || to.Driver == "memory" {
		return r, ErrVolatile
	}
	if err := apart(string(from.Path), string(to.Path)); err != nil {
		return r, err
	}
	source, err := openReading(ctx, from, offlineWait)
	if err != nil {
		return r, &SourceError{err}
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := openDurable(ctx, to, offlineWait, logger)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if err := transfer(ctx, source, target, &r); err != nil {
		return r, err
	}
	if err := copySubscribers(string(from.Path), string(to.Path)); err != nil {
		return r, fmt.Errorf("copy the file of subscribers: %w", err)
	}
	s, err := target.Stats(ctx)
	r.Kept = s.Events + s.SubscriptionEvents
	return r, err
}

// copySubscribers copies the file beside one durable history to another one, if there is one. The caller has both histories open, so nobody has
// the file.
func copySubscribers(from, to string) (err error) {
	source, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	info, err := source.Lstat(presenceFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	path := filepath.Join(from, presenceFile)
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: %w: not a regular file", path, private.ErrKind)
	}
	if err := private.Check(path, info); err != nil {
		return err
	}
	in, err := source.Open(presenceFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	target, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	const unfinished = presenceFile + ".copy"
	out, err := target.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return errors.Join(err, target.Remove(unfinished))
	}
	return target.Rename(unfinished, presenceFile)
}

// Check opens a copy of a history that a driver has made, reads all of it, and describes it.
func Check(ctx context.Context, driver, dir string) (history.Stats, error) {
	l, err := openReading(ctx, config.History{Driver: driver, Path: config.File(dir)}, 0)
	if err != nil {
		return history.Stats{}, err
	}
	_, err = l.Verify(ctx)
	s, failed := l.Stats(ctx)
	return s, errors.Join(err, failed, l.Close())
}
