package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/calls"
	"github.com/cinnabar-hub/cinnabar/internal/history/durable"
	"github.com/cinnabar-hub/cinnabar/internal/history/feed"
)

// Log is a history.Log in a bbolt database.
type Log struct {
	o      Options
	folder *folder
	epoch  string
	key    hashKey
	feed   *feed.Feed
	queue  *queue
	health *durable.Health

	closing sync.Once
	calls   calls.Running  // Close waits for them
	workers sync.WaitGroup // committer and janitor
	quit    chan struct{}  // closed by Close to end the workers
	upkeep  chan struct{}  // holds a value while a copy or a compaction is under way; capacity 1, nobody closes it

	committer committer // belongs to the committer's goroutine

	// swap is held for reading by whoever uses db, but for the committer, which alone changes it: under the lock.
	swap sync.RWMutex
	db   *bbolt.DB // nil when the file could not be opened again
	file *os.File  // what db has open

	// mu protects the field below.
	mu    sync.RWMutex
	shown shown
}

var _ history.Log = (*Log)(nil)

// Append implements history.Log. Beyond the port's errors it fails with
// history.ErrTooLarge for records above 16 MiB or 65,535 topics, with history.ErrNoSpace,
// and with history.ErrReadOnly.
func (l *Log) Append(ctx context.Context, records ...*history.Record) (history.Position, error) {
	position, err := l.append(ctx, records)
	if err != nil {
		return 0, fmt.Errorf("append to bolt: %w", err)
	}
	return position, nil
}

func (l *Log) append(ctx context.Context, records []*history.Record) (history.Position, error) {
	if err := checkRecords(records); err != nil {
		return 0, err
	}
	if err := l.calls.Begin(ctx); err != nil {
		return 0, err
	}
	defer l.calls.Done()
	q, err := l.accept(ctx, records, time.Time{})
	if err != nil {
		return 0, err
	}
	<-q.done
	return q.position, q.err
}

// accept queues the records once there is room.
func (l *Log) accept(ctx context.Context, records []*history.Record, at time.Time) (*request, error) {
	if err := l.health.Err(); err != nil {
		return nil, err
	}
	q := &request{records: records, at: at, done: make(chan struct{}, 1)}
	for _, r := range records {
		q.size += encodedSize(r)
	}
	if err := l.feed.Admit(ctx, sizeOf(records)); err != nil {
		return nil, err
	}
	l.queue.push(q)
	return q, nil
}

// sizeOf is what records count for in limits and bounds.
func sizeOf(records []*history.Record) int64 {
	var size int64
	for _, r := range records {
		size += int64(r.Size())
	}
	return size
}

// Head implements history.Log. The epoch is that of the store.
func (l *Log) Head(ctx context.Context) (history.Head, error) {
	if err := l.calls.Begin(ctx); err != nil {
		return history.Head{}, fmt.Errorf("head of bolt: %w", err)
	}
	defer l.calls.Done()
	s := l.seen()
	return history.Head{Epoch: l.epoch, First: s.first, Last: s.last, LastID: s.lastID}, nil
}

// Ready implements history.Log.
func (l *Log) Ready(ctx context.Context) error {
	if err := l.calls.Begin(ctx); err != nil {
		return err
	}
	defer l.calls.Done()
	return l.health.Err()
}

// seen returns what may be shown.
func (l *Log) seen() shown {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.shown
}

// bounds returns the positions from which on, and up to which, entries may be shown.
func (l *Log) bounds() (first, last history.Position) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.shown.first, l.shown.last
}

// Tail implements history.Log.
func (l *Log) Tail(ctx context.Context, after history.Position, fn func([]history.Entry) error) error {
	if err := l.calls.Begin(ctx); err != nil {
		return fmt.Errorf("tail bolt: %w", err)
	}
	defer l.calls.Done()
	if after == 0 {
		after = l.seen().first - 1
	}
	if err := l.feed.Tail(ctx, after, l.replay, fn); err != nil {
		return fmt.Errorf("tail bolt: %w", err)
	}
	return nil
}

// Close implements history.Log. It must not be called from a Tail's function.
func (l *Log) Close() error {
	var err error
	l.closing.Do(func() { err = l.close() })
	return err
}

func (l *Log) close() error {
	l.calls.Close(l.feed.Close) // the committer finishes accepted appends meanwhile
	close(l.quit)
	l.workers.Wait()
	return l.closeFiles()
}

// closeFiles closes what is open and gives up the lock. Nobody uses the log any more.
func (l *Log) closeFiles() error {
	l.swap.Lock()
	defer l.swap.Unlock()
	var err error
	switch {
	case l.db != nil && l.committer.stuck:
		err = abandon(l.file) // the database would wait for the transaction that has panicked
	case l.db != nil:
		err = l.db.Close()
	}
	l.db = nil
	if err := errors.Join(err, l.folder.Close()); err != nil {
		return fmt.Errorf("close bolt: %w", err)
	}
	return nil
}
