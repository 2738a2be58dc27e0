package segments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

var (
	_ history.Importer = (*Log)(nil)
	_ history.Exporter = (*Log)(nil)
)

// importRecords bounds what Import gives to the committer at once; commitBytes bounds it too.
const importRecords = 4096

// Import implements history.Importer. Records go through the committer as appended ones do, many to a commit.
func (l *Log) Import(ctx context.Context, next func() (history.Stamped, error)) error {
	if err := l.calls.Begin(ctx); err != nil {
		return fmt.Errorf("import into segments: %w", err)
	}
	defer l.calls.Done()
	if err := l.importAll(ctx, next); err != nil {
		return fmt.Errorf("import into segments: %w", err)
	}
	return nil
}

func (l *Log) importAll(ctx context.Context, next func() (history.Stamped, error)) error {
	if l.importing.Swap(true) {
		return history.ErrNotEmpty
	}
	defer l.importing.Store(false)
	l.mu.RLock()
	used := l.last > 0
	l.mu.RUnlock()
	if used {
		return history.ErrNotEmpty
	}
	var waiting []*request
	bytes := 0
	for {
		s, err := next()
		if err == nil {
			var q *request
			if q, err = l.enqueue(ctx, []*history.Record{&s.Record}, s.At); err == nil {
				waiting, bytes = append(waiting, q), bytes+q.size
				if len(waiting) < importRecords && bytes < commitBytes {
					continue
				}
			}
		}
		if failed := finish(waiting); failed != nil || err != nil {
			if failed == nil && errors.Is(err, io.EOF) {
				return nil
			}
			return errors.Join(failed, err)
		}
		waiting, bytes = waiting[:0], 0
	}
}

// finish waits until all requests have been committed and returns the first error.
func finish(waiting []*request) error {
	var failed error
	for _, q := range waiting {
		<-q.done
		if failed == nil {
			failed = q.err
		}
	}
	return failed
}

// enqueue gives records to the committer, as of some time in the past; the zero time is the present. The caller has been counted in.
func (l *Log) enqueue(ctx context.Context, records []*history.Record, at time.Time) (*request, error) {
	size, err := checkRecords(records)
	if err != nil {
		return nil, err
	}
	if err := l.health.Err(); err != nil {
		return nil, err
	}
	if err := l.feed.Admit(ctx, recordsSize(records)); err != nil {
		return nil, err
	}
	q := &request{records: records, size: size, done: make(chan struct{}, 1)}
	if !at.IsZero() && at.Before(time.Now()) {
		q.millis = max(at.UnixMilli(), 1) // 0 is the present; nothing is older than the clock
	}
	l.queue.push(q)
	return q, nil
}

// Export implements history.Exporter.
func (l *Log) Export(ctx context.Context, fn func(history.Stamped) error) error {
	if err := l.calls.Begin(ctx); err != nil {
		return fmt.Errorf("export segments: %w", err)
	}
	defer l.calls.Done()
	if err := l.export(ctx, fn); err != nil {
		return fmt.Errorf("export segments: %w", err)
	}
	return nil
}

func (l *Log) export(ctx context.Context, fn func(history.Stamped) error) error {
	l.mu.RLock()
	next, last := l.first, l.last
	l.mu.RUnlock()
	for next <= last {
		part, err := l.openFrom(next, last)
		if err != nil {
			return err
		}
		if part.segment == nil { // but for subscription events that have gone meanwhile
			return nil
		}
		var failed error
		_, err = part.each(ctx, part.left(), func(v *view) bool {
			next = v.position + 1
			if v.kind() == hollow {
				return true
			}
			failed = fn(history.Stamped{Record: v.entry().Record, At: time.UnixMilli(v.millis)})
			if failed == nil {
				failed = l.calls.MayGoOn(ctx)
			}
			return failed == nil
		})
		l.closePart(part)
		if err = errors.Join(err, failed); err != nil {
			return err
		}
	}
	return nil
}
