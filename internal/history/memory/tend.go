package memory

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

var (
	_ history.Verifier  = (*Log)(nil)
	_ history.Compacter = (*Log)(nil)
	_ history.Importer  = (*Log)(nil)
	_ history.Exporter  = (*Log)(nil)
)

// Verify implements history.Verifier. It compares the index of ids with the entries; appends wait for as long as that takes.
func (l *Log) Verify(ctx context.Context) (history.Verification, error) {
	if err := l.calls.Begin(ctx); err != nil {
		return history.Verification{}, fmt.Errorf("verify memory: %w", err)
	}
	defer l.calls.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trim()
	if err := l.ring.check(l.passed); err != nil {
		return history.Verification{}, fmt.Errorf("verify memory: %w: %w", history.ErrCorrupt, err)
	}
	return history.Verification{Events: int64(l.ring.updates() + l.ring.subscriptionEvents()), Bytes: l.ring.bytes, Indexes: 1}, nil
}

// Compact implements history.Compacter. The limits hold at all times, so little is left to do.
func (l *Log) Compact(ctx context.Context) (history.Compaction, error) {
	if err := l.calls.Begin(ctx); err != nil {
		return history.Compaction{}, fmt.Errorf("compact memory: %w", err)
	}
	defer l.calls.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.ring.bytes
	l.trim()
	return history.Compaction{Before: before, After: l.ring.bytes}, nil
}

// Import implements history.Importer.
func (l *Log) Import(ctx context.Context, next func() (history.Stamped, error)) error {
	if err := l.calls.Begin(ctx); err != nil {
		return fmt.Errorf("import into memory: %w", err)
	}
	defer l.calls.Done()
	l.mu.Lock()
	used := l.importing || l.last > 0
	l.importing = l.importing || !used
	l.mu.Unlock()
	if used {
		return fmt.Errorf("import into memory: %w", history.ErrNotEmpty)
	}
	defer func() {
		l.mu.Lock()
		l.importing = false
		l.mu.Unlock()
	}()
	for {
		s, err := next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("import into memory: %w", err)
		}
		if _, err := l.append(ctx, s.At, &s.Record); err != nil {
			return fmt.Errorf("import into memory: %w", err)
		}
	}
}

// Export implements history.Exporter.
func (l *Log) Export(ctx context.Context, fn func(history.Stamped) error) error {
	if err := l.calls.Begin(ctx); err != nil {
		return fmt.Errorf("export memory: %w", err)
	}
	defer l.calls.Done()
	if err := l.export(ctx, fn); err != nil {
		return fmt.Errorf("export memory: %w", err)
	}
	return nil
}

func (l *Log) export(ctx context.Context, fn func(history.Stamped) error) error {
	l.mu.Lock()
	l.trim()
	next, last := l.first(), l.last
	l.mu.Unlock()
	var chunk []history.Stamped
	for {
		if err := l.calls.MayGoOn(ctx); err != nil {
			return err
		}
		var err error
		if chunk, next, err = l.stamped(chunk[:0], next, last); err != nil {
			return err
		}
		if len(chunk) == 0 {
			return nil
		}
		for _, s := range chunk {
			if err := fn(s); err != nil {
				return err
			}
		}
	}
}

// stamped appends some of the entries from next to last to dst, none if there are no more, and returns where to go on.
func (l *Log) stamped(dst []history.Stamped, next, last history.Position) ([]history.Stamped, history.Position, error) {
	const most = 256
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trim()
	if next < l.first() && next <= last {
		return dst, next, history.ErrPositionGone
	}
	for i := l.ring.from(next); i < l.ring.len() && len(dst) < most; i++ {
		it := l.ring.at(i)
		if it.Position > last {
			break
		}
		if it.ID != "" {
			dst = append(dst, history.Stamped{Record: it.Record, At: it.stored})
		}
		next = it.Position + 1
	}
	return dst, next, nil
}
