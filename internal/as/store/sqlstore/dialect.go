package sqlstore

import (
	"context"
	"database/sql"
	"io/fs"

	"github.com/pressly/goose/v3"
)

// dialect is what differs between SQL databases. Statements are written in the SQL that SQLite and PostgreSQL share (RETURNING, ON
// CONFLICT, ? placeholders), so a dialect stays this small.
type dialect interface {
	// open returns the connection pool. It changes nothing in an existing database, and with readOnly set closing the pool does not
	// either.
	open(o Options, readOnly bool) (*sql.DB, error)
	// prepare applies settings that the database keeps; it is called before a migration and only when the schema is acceptable.
	prepare(ctx context.Context, db *sql.DB) error
	// bind turns ? placeholders into the database's own.
	bind(query string) string
	// lock takes what makes writers take turns, at the start of a write transaction, so that sequence numbers become visible in order.
	lock(ctx context.Context, tx *sql.Tx) error
	// tables returns how many tables the database has, and whether the one with this name is among them.
	tables(ctx context.Context, db *sql.DB, name string) (count int, found bool, err error)
	// backup writes a copy of the database, as it is when backup begins, to the empty file at path. It returns an error that wraps
	// errors.ErrUnsupported where the database has tools of its own for that.
	backup(ctx context.Context, db *sql.DB, path string) error
	// classify wraps a driver's error with the store's sentinel where there is one.
	classify(err error) error
	// migrations returns the dialect's migrations and its name in the migration library.
	migrations() (goose.Dialect, fs.FS, error)
}
