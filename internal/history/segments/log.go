package segments

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/calls"
	"github.com/cinnabar-hub/cinnabar/internal/history/durable"
	"github.com/cinnabar-hub/cinnabar/internal/history/feed"
)

// hashFunc hashes the id of a record of the segment whose key is given.
type hashFunc func(key hashKey, id []byte) uint64

// Log is a history.Log in segment files.
type Log struct {
	o      Options
	folder folder
	store  storeID
	hash   hashFunc
	feed   *feed.Feed
	queue  *queue
	health *durable.Health

	closing sync.Once
	calls   calls.Running      // Close waits for them
	workers sync.WaitGroup     // committer and janitor
	quit    chan struct{}      // closed by Close to end the workers
	stop    context.CancelFunc // ends what the janitor is at
	tidy    chan struct{}      // wakes the janitor; capacity 1, nobody closes it
	buffers sync.Pool          // of *[]byte, for readers

	committer committer  // belongs to the committer's goroutine
	sealing   sync.Mutex // held while an index file is written; before reaping
	reaping   sync.Mutex // held while trimmed files are removed; before a segment's building, and mu
	importing atomic.Bool

	// mu protects all fields below and the marked ones of the segments.
	mu       sync.RWMutex
	segments []*segment // by position; the last one is being written; never empty
	trimmed  []*segment // no longer part of the log, to be removed in this order
	bytes    int64      // of the files in segments, and of their indexes
	first    history.Position
	passed   history.Position // the newest that the limits for all records have taken, as far as this process knows
	last     history.Position
	lastID   string
}

var _ history.Log = (*Log)(nil)

// Append implements history.Log. Beyond the port's errors it fails with
// history.ErrTooLarge for records above 16 MiB or 65,535 topics, with history.ErrNoSpace,
// and with history.ErrReadOnly.
func (l *Log) Append(ctx context.Context, records ...*history.Record) (history.Position, error) {
	position, err := l.append(ctx, records)
	if err != nil {
		return 0, fmt.Errorf("append to segments: %w", err)
	}
	return position, nil
}

func (l *Log) append(ctx context.Context, records []*history.Record) (history.Position, error) {
	if err := l.calls.Begin(ctx); err != nil {
		return 0, err
	}
	defer l.calls.Done()
	q, err := l.enqueue(ctx, records, time.Time{})
	if err != nil {
		return 0, err
	}
	<-q.done
	return q.position, q.err
}

// checkRecords returns an error for records that must not be appended together, or that the format cannot hold, and otherwise their encoded size.
func checkRecords(records []*history.Record) (size int, err error) {
	if err := history.CheckAppend(records); err != nil {
		return 0, err
	}
	for _, r := range records {
		n := encodedSize(r)
		if n > maxRecordBytes || len(r.Topics) > maxTopics {
			return 0, history.ErrTooLarge
		}
		size += n
	}
	return size, nil
}

// recordsSize returns what records count for in bounds.
func recordsSize(records []*history.Record) int64 {
	n := 0
	for _, r := range records {
		n += r.Size()
	}
	return int64(n)
}

// Head implements history.Log. The epoch is the store's id.
func (l *Log) Head(ctx context.Context) (history.Head, error) {
	if err := l.calls.Begin(ctx); err != nil {
		return history.Head{}, fmt.Errorf("head of segments: %w", err)
	}
	defer l.calls.Done()
	l.mu.RLock()
	defer l.mu.RUnlock()
	return history.Head{Epoch: hex.EncodeToString(l.store[:]), First: l.first, Last: l.last, LastID: l.lastID}, nil
}

// Ready implements history.Log.
func (l *Log) Ready(ctx context.Context) error {
	if err := l.calls.Begin(ctx); err != nil {
		return err
	}
	defer l.calls.Done()
	return l.health.Err()
}

// Tail implements history.Log.
func (l *Log) Tail(ctx context.Context, after history.Position, fn func([]history.Entry) error) error {
	if err := l.calls.Begin(ctx); err != nil {
		return fmt.Errorf("tail segments: %w", err)
	}
	defer l.calls.Done()
	if after == 0 {
		l.mu.RLock()
		after = l.first - 1
		l.mu.RUnlock()
	}
	if err := l.feed.Tail(ctx, after, l.replay, fn); err != nil {
		return fmt.Errorf("tail segments: %w", err)
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
	l.stop()
	close(l.quit)
	l.workers.Wait()
	l.reap()
	return l.closeFiles()
}

// closeFiles closes what is open and gives up the lock. Nobody uses the log any more.
func (l *Log) closeFiles() error {
	l.mu.Lock()
	open := append(l.trimmed, l.segments...)
	l.trimmed, l.segments = nil, nil
	l.mu.Unlock()
	var errs []error
	for _, s := range open {
		errs = append(errs, s.close())
	}
	errs = append(errs, l.folder.Close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close segments: %w", err)
	}
	return nil
}

// find returns the segment that holds the position, which must be between first and last. The
// caller holds the lock.
func (l *Log) find(p history.Position) *segment {
	i := sort.Search(len(l.segments), func(i int) bool { return l.segments[i].base > p })
	return l.segments[i-1]
}

// number returns which segment begins at the position, if one does. The caller holds the lock.
func (l *Log) number(base history.Position) (int, bool) {
	i := sort.Search(len(l.segments), func(i int) bool { return l.segments[i].base >= base })
	return i, i < len(l.segments) && l.segments[i].base == base
}

// active returns the segment that is being written. The caller holds the lock.
func (l *Log) active() *segment { return l.segments[len(l.segments)-1] }
