// Package historyapp chooses the history of a hub: for the hub itself, and for the commands that look at one no hub has
// open. It owns the choice between the drivers; it does not own what a hub does with its log.
package historyapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/memory"
	"github.com/cinnabar-hub/cinnabar/internal/history/segments"
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
		o := memory.Options{MaxEvents: c.MaxEvents, MaxBytes: int64(c.MaxBytes), MaxAge: c.MaxAge}
		if o.MaxEvents == 0 {
			o.MaxEvents = -1 // the configuration's 0 is no limit, the driver's is its default
		}
		if o.MaxBytes == 0 {
			o.MaxBytes = -1
		}
		return memory.Open(o)
	case "segments":
		// Waiting for the disk holds a processor: with a single one, nothing would be delivered meanwhile.
		if runtime.GOMAXPROCS(0) < minProcessors {
			runtime.GOMAXPROCS(minProcessors)
		}
		return segments.Open(ctx, segments.Options{
			Dir: string(c.Path), MaxEvents: c.MaxEvents, MaxBytes: int64(c.MaxBytes), MaxAge: c.MaxAge, Wait: wait, Logger: logger,
		})
	}
	return nil, fmt.Errorf("unknown driver %q", c.Driver)
}

// Offline is a history that no hub has open. Nothing in it is changed.
type Offline interface {
	history.Inspector
	history.Backupper
	Close() error
}

// OpenOffline opens the history that a configuration names for reading alone. It returns ErrVolatile for a driver that
// keeps nothing, fs.ErrNotExist where there is no history yet, and history.ErrLocked when a process has it open.
func OpenOffline(ctx context.Context, c config.History) (Offline, error) {
	if c.Driver == "memory" {
		return nil, ErrVolatile
	}
	return segments.Open(ctx, segments.Options{Dir: string(c.Path), ReadOnly: true, Wait: offlineWait})
}

// Check opens a copy of a history, reads all of it, and describes it.
func Check(ctx context.Context, dir string) (history.Stats, error) {
	l, err := segments.Open(ctx, segments.Options{Dir: dir, ReadOnly: true})
	if err != nil {
		return history.Stats{}, err
	}
	s, err := l.Stats(ctx)
	return s, errors.Join(err, l.Close())
}
