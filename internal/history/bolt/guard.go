package bolt

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"go.etcd.io/bbolt"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/durable"
)

// errPanicked marks the error of a transaction in which bbolt has panicked: what it left locked stays locked.
var errPanicked = errors.New("the database is inconsistent")

// contain calls fn and makes an error of its panic. bbolt panics on pages that are not what they should be, and touching a page beyond the end
// of a file that was cut off is a fault of the memory, which would end the process.
func contain(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %s: %w: %v", history.ErrCorrupt, fileName, errPanicked, p)
		}
	}()
	return fn()
}

// abandon closes the file of a database that cannot be closed any more. Its mapping stays until the process ends.
func abandon(f *os.File) error { return errors.Join(durable.Unlock(f), f.Close()) }

// view runs fn in a read transaction. What bbolt returns in it is valid until fn returns.
func (l *Log) view(fn func(tx *bbolt.Tx) error) error {
	l.swap.RLock()
	defer l.swap.RUnlock()
	if l.db == nil {
		return l.health.Err()
	}
	return contain(func() error { return l.db.View(fn) })
}

// update runs fn in a write transaction and commits it. Only the committer calls it.
func (l *Log) update(fn func(tx *bbolt.Tx) error) error {
	if l.db == nil { // only the committer changes it
		return l.health.Err()
	}
	err := contain(func() error { return l.db.Update(fn) })
	if errors.Is(err, errPanicked) {
		l.committer.stuck = true
	}
	return err
}

// damaged says that the record at p cannot be read, or does not fit its index.
func damaged(p history.Position, err error) error {
	if errors.Is(err, history.ErrNewerFormat) {
		return fmt.Errorf("%s: record %d: %w", fileName, p, err)
	}
	return fmt.Errorf("%w: %s: record %d: %w", history.ErrCorrupt, fileName, p, err)
}
