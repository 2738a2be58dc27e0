package segments

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// lockInterval is how often a successor looks whether the store has become free.
const lockInterval = 25 * time.Millisecond

// openWaiting opens and locks the folder, and waits for its present owner as long as the options say.
//
// Each attempt opens the folder anew, so that it gets the one that is at the path by then. The owner gives up its lock
// last of all, when its files are closed, and nobody reads the store before having the lock.
func openWaiting(ctx context.Context, o Options) (*dir, error) {
	d, err := openDir(o.Dir, o.ReadOnly)
	if !errors.Is(err, history.ErrLocked) || o.Wait == 0 {
		return d, err
	}
	began := time.Now()
	o.Logger.Info("history is in use by another process: waiting for it to end",
		slog.String("folder", o.Dir), slog.Duration("at_most", o.Wait))
	timeout := time.NewTimer(o.Wait)
	defer timeout.Stop()
	tick := time.NewTicker(lockInterval)
	defer tick.Stop()
	for errors.Is(err, history.ErrLocked) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timeout.C:
			return nil, fmt.Errorf("waited %s: %w", o.Wait, err)
		case <-tick.C:
			d, err = openDir(o.Dir, o.ReadOnly)
		}
	}
	if err != nil {
		return nil, err
	}
	o.Logger.Info("history was handed over", slog.String("folder", o.Dir), slog.Duration("waited", time.Since(began)))
	return d, nil
}
