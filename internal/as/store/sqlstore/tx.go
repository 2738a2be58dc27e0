package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// querier runs statements, in a transaction or on their own.
type querier struct {
	dialect dialect
	on      interface {
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
		QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	}
}

// exec returns how many rows the statement changed.
func (q querier) exec(ctx context.Context, query string, args ...any) (int64, error) {
	result, err := q.on.ExecContext(ctx, q.dialect.bind(query), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (q querier) row(ctx context.Context, query string, args ...any) *sql.Row {
	return q.on.QueryRowContext(ctx, q.dialect.bind(query), args...)
}

// scanner is a *sql.Row or *sql.Rows.
type scanner interface{ Scan(dest ...any) error }

// list collects the rows of a query.
func list[T any](ctx context.Context, q querier, scan func(scanner) (T, error), query string, args ...any) (_ []T, err error) {
	rows, err := q.on.QueryContext(ctx, q.dialect.bind(query), args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var out []T
	for rows.Next() {
		item, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, rows.Err()
}

// read runs fn with statements that each see a committed state of their own.
func (s *Store) read(_ context.Context, op string, fn func(q querier) error) error {
	return s.wrap(op, fn(querier{dialect: s.dialect, on: s.db}))
}

// snapshot runs fn with statements that all see the same committed state.
func (s *Store) snapshot(ctx context.Context, op string, fn func(q querier) error) error {
	return s.wrap(op, s.inTx(ctx, &sql.TxOptions{ReadOnly: true}, fn))
}

// write runs fn in a transaction that holds the write lock from its start, and commits it when fn returns nil.
func (s *Store) write(ctx context.Context, op string, fn func(q querier) error) error {
	release, err := s.queue(ctx)
	if err != nil {
		return s.wrap(op, err)
	}
	defer release()
	return s.wrap(op, s.inTx(ctx, nil, fn))
}

// queue waits for the turn of this writer among those of the process. SQLite's own waiting polls with pauses that grow, which is
// neither fair nor quick; it is left for writers of other processes.
func (s *Store) queue(ctx context.Context) (release func(), err error) {
	timer := time.NewTimer(s.options.BusyTimeout)
	defer timer.Stop()
	select {
	case s.writer <- struct{}{}:
		return func() { <-s.writer }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return nil, fmt.Errorf("%w: other writes took too long", store.ErrUnavailable)
	}
}

func (s *Store) inTx(ctx context.Context, o *sql.TxOptions, fn func(q querier) error) (err error) {
	tx, err := s.db.BeginTx(ctx, o)
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			return
		}
		if rerr := tx.Rollback(); rerr != nil && !errors.Is(rerr, sql.ErrTxDone) {
			err = errors.Join(err, rerr)
		}
	}()
	if o == nil {
		if err := s.dialect.lock(ctx, tx); err != nil {
			return err
		}
	}
	if err := fn(querier{dialect: s.dialect, on: tx}); err != nil {
		return err
	}
	return tx.Commit()
}

// wrap names the operation and translates the driver's error.
func (s *Store) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%s: %w", op, store.ErrNotFound)
	}
	return fmt.Errorf("%s: %w", op, s.dialect.classify(err))
}

// touch raises the version that servers follow.
func touch(ctx context.Context, q querier) error {
	_, err := q.exec(ctx, `UPDATE meta SET number = number + 1 WHERE name = ?`, metaChange)
	return err
}
