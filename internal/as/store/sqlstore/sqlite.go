package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/private"
)

// maxConnections is small: readers are served from the page cache in microseconds, and there is one writer at a time.
const maxConnections = 4

// walLimitBytes is what the write-ahead log file is cut back to after a burst.
const walLimitBytes = 16 << 20

//go:embed migrations/sqlite/*.sql
var sqliteMigrations embed.FS

// sqliteDialect is SQLite through modernc.org/sqlite, which needs no C compiler.
type sqliteDialect struct{}

// open with readOnly set differs at the end: the last connection that could write empties the write-ahead log into the database file.
func (sqliteDialect) open(o Options, readOnly bool) (*sql.DB, error) {
	path, err := prepareFile(o.Path, o.Migrate)
	if err != nil {
		return nil, err
	}
	connector, err := sqlite.NewConnector(sqliteDSN(path, o.BusyTimeout, readOnly))
	if err != nil {
		return nil, fmt.Errorf("database name: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(maxConnections)
	db.SetMaxIdleConns(maxConnections)
	return db, nil
}

// prepareFile checks folder and file, makes them when create is set, and returns the absolute path without symbolic links: SQLite puts
// its companions beside the real file, so that is the folder that counts.
func prepareFile(path string, create bool) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("database path: %w", err)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	folder, file := private.CheckFolder, private.CheckFile
	if create {
		folder, file = private.EnsureFolder, private.EnsureFile
	}
	if err := folder(filepath.Dir(path)); err != nil {
		return "", fmt.Errorf("database folder: %w", err)
	}
	if err := file(path); err != nil {
		return "", fmt.Errorf("database file: %w", err)
	}
	for _, suffix := range []string{"-wal", "-shm", "-journal"} { // made by SQLite with the mode of the database file
		if err := private.CheckFile(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("database file: %w", err)
		}
	}
	return path, nil
}

// sqliteDSN sets what has to be set on every connection. The file has been made with the right mode, SQLite never makes it.
func sqliteDSN(path string, busy time.Duration, readOnly bool) string {
	mode := "rw"
	if readOnly {
		mode = "ro"
	}
	query := url.Values{
		"mode":          {mode},
		"_txlock":       {"immediate"}, // read-only transactions stay deferred
		"_busy_timeout": {strconv.FormatInt(busy.Milliseconds(), 10)},
		"_foreign_keys": {"on"},
		"_synchronous":  {"FULL"},
		"_dqs":          {"0"},
		"_defensive":    {"1"},
		"_error_rc":     {"1"},
		"_pragma": {
			"fullfsync(1)", // macOS: fsync alone does not reach the disk
			"trusted_schema(0)",
			"journal_size_limit(" + strconv.Itoa(walLimitBytes) + ")",
		},
	}
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") { // C:/…
		slashed = "/" + slashed
	}
	return (&url.URL{Scheme: "file", Path: slashed, RawQuery: query.Encode()}).String()
}

// prepare switches the file to the write-ahead log, once in its life.
func (sqliteDialect) prepare(ctx context.Context, db *sql.DB) error {
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return fmt.Errorf("read journal mode: %w", err)
	}
	if mode == "wal" {
		return nil
	}
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return fmt.Errorf("set journal mode: %w", err)
	}
	if mode != "wal" {
		return fmt.Errorf("set journal mode: %w: the file system does not support the write-ahead log", store.ErrUnavailable)
	}
	return nil
}

func (sqliteDialect) bind(query string) string { return query }

// lock does nothing: BEGIN IMMEDIATE has taken the lock.
func (sqliteDialect) lock(context.Context, *sql.Tx) error { return nil }

func (sqliteDialect) tables(ctx context.Context, db *sql.DB, name string) (int, bool, error) {
	const query = `SELECT count(*), coalesce(sum(name = ?), 0) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'`
	var count, found int
	if err := db.QueryRowContext(ctx, query, name).Scan(&count, &found); err != nil {
		return 0, false, fmt.Errorf("list tables: %w", err)
	}
	return count, found > 0, nil
}

// backup reads one snapshot, beside writers. The copy is checked and set to the write-ahead log, which VACUUM leaves out.
func (d sqliteDialect) backup(ctx context.Context, db *sql.DB, path string) (err error) {
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, path); err != nil {
		return fmt.Errorf("copy database: %w", err)
	}
	connector, err := sqlite.NewConnector(sqliteDSN(path, DefaultBusyTimeout, false))
	if err != nil {
		return fmt.Errorf("database name: %w", err)
	}
	copied := sql.OpenDB(connector)
	defer func() { err = errors.Join(err, copied.Close()) }()
	var verdict string
	if err := copied.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&verdict); err != nil {
		return fmt.Errorf("check copy: %w", err)
	}
	if verdict != "ok" {
		return fmt.Errorf("check copy: %w: %s", store.ErrUnavailable, verdict)
	}
	return d.prepare(ctx, copied)
}

func (sqliteDialect) classify(err error) error {
	var driver *sqlite.Error
	if !errors.As(err, &driver) {
		return err
	}
	switch driver.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID:
		return fmt.Errorf("%w: %w", store.ErrExists, err)
	case sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
		return fmt.Errorf("%w: %w", store.ErrNotFound, err)
	}
	switch driver.Code() & 0xff { // the primary code of an extended one
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN,
		sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_NOMEM:
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: not an SQLite database: %w", store.ErrSchema, err)
	default:
		return err
	}
}

func (sqliteDialect) migrations() (goose.Dialect, fs.FS, error) {
	sub, err := fs.Sub(sqliteMigrations, "migrations/sqlite")
	if err != nil {
		return "", nil, fmt.Errorf("migrations: %w", err)
	}
	return goose.DialectSQLite3, sub, nil
}
