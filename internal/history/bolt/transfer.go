package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"go.etcd.io/bbolt"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

var (
	_ history.Importer = (*Log)(nil)
	_ history.Exporter = (*Log)(nil)
)

// importWindow and importBytes are how much of an import waits for commits at a time.
const (
	importWindow = 8192
	importBytes  = 4 * commitBytes
)

// Import implements history.Importer.
func (l *Log) Import(ctx context.Context, next func() (history.Stamped, error)) error {
	if err := l.calls.Begin(ctx); err != nil {
		return fmt.Errorf("import into bolt: %w", err)
	}
	defer l.calls.Done()
	if err := l.importAll(ctx, next); err != nil {
		return fmt.Errorf("import into bolt: %w", err)
	}
	return nil
}

func (l *Log) importAll(ctx context.Context, next func() (history.Stamped, error)) error {
	if _, last := l.bounds(); last != 0 {
		return history.ErrNotEmpty
	}
	var waiting []*request
	bytes := 0
	for {
		s, err := next()
		if err == nil {
			err = checkRecord(&s.Record, encodedSize(&s.Record))
		}
		if err == nil {
			err = l.calls.MayGoOn(ctx)
		}
		var q *request
		if err == nil {
			q, err = l.accept(ctx, []*history.Record{&s.Record}, s.At)
		}
		if err != nil {
			// What was accepted is stored, whatever ends the import.
			if stored := outcome(waiting); !errors.Is(err, io.EOF) || stored != nil {
				return errors.Join(stored, err)
			}
			return nil
		}
		waiting = append(waiting, q)
		if bytes += q.size; len(waiting) < importWindow && bytes < importBytes {
			continue
		}
		if err := outcome(waiting); err != nil {
			return err
		}
		waiting, bytes = waiting[:0], 0
	}
}

// outcome waits for all requests and returns the first error.
func outcome(waiting []*request) error {
	var first error
	for _, q := range waiting {
		if <-q.done; first == nil {
			first = q.err
		}
	}
	return first
}

// exportBytes bounds what is read in one transaction of an export.
const exportBytes = 4 << 20

// Export implements history.Exporter.
func (l *Log) Export(ctx context.Context, fn func(history.Stamped) error) error {
	if err := l.calls.Begin(ctx); err != nil {
		return fmt.Errorf("export bolt: %w", err)
	}
	defer l.calls.Done()
	if err := l.export(ctx, fn); err != nil {
		return fmt.Errorf("export bolt: %w", err)
	}
	return nil
}

func (l *Log) export(ctx context.Context, fn func(history.Stamped) error) error {
	_, last := l.bounds()
	var chunk []history.Stamped
	for after := history.Position(0); after < last; {
		if err := l.calls.MayGoOn(ctx); err != nil {
			return err
		}
		chunk = chunk[:0]
		err := l.stretch(after, last, func(tx *bbolt.Tx, s stretch) error {
			if after = s.to; s.from > s.to {
				return nil // all of it was trimmed
			}
			room := exportBytes
			return eachRecord(ctx, tx, s, func(v *view) error {
				e := v.entry()
				chunk = append(chunk, history.Stamped{Record: e.Record, At: time.UnixMilli(v.millis).UTC()})
				if room -= v.size; room <= 0 {
					after = v.position
					return errEnough
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		for _, s := range chunk {
			if err := fn(s); err != nil {
				return err
			}
		}
	}
	return nil
}
