package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// migrateAttempts bounds how often a migration is tried that fails for another reason than a lock: it may have lost to another server,
// or be wrong.
const (
	migrateAttempts = 5
	migratePause    = 50 * time.Millisecond
)

// schema knows the version a database has and the one this program needs.
type schema struct {
	db       *sql.DB
	dialect  dialect
	provider *goose.Provider
	path     string
	target   int64
}

func newSchema(db *sql.DB, d dialect, o Options) (*schema, error) {
	name, files, err := d.migrations()
	if err != nil {
		return nil, err
	}
	provider, err := goose.NewProvider(name, db, files, goose.WithDisableGlobalRegistry(true), goose.WithSlog(o.Logger))
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	sources := provider.ListSources() // ascending, never empty
	return &schema{db: db, dialect: d, provider: provider, path: o.Path, target: sources[len(sources)-1].Version}, nil
}

// version returns the version of the schema in the database, 0 for an empty database. It only reads: asking the migration library
// would create its table.
func (s *schema) version(ctx context.Context) (int64, error) {
	count, found, err := s.dialect.tables(ctx, s.db, "meta")
	if err != nil {
		return 0, err
	}
	if !found {
		if count > 0 && !s.onlyMigrationTable(ctx, count) {
			return 0, fmt.Errorf("%w: %s holds the tables of another program", store.ErrSchema, s.path)
		}
		return 0, nil
	}
	var version int64
	query := s.dialect.bind(`SELECT number FROM meta WHERE name = ?`)
	if err := s.db.QueryRowContext(ctx, query, metaSchema).Scan(&version); err != nil {
		return 0, fmt.Errorf("%w: %s: read schema version: %w", store.ErrSchema, s.path, err)
	}
	return version, nil
}

// onlyMigrationTable reports whether the one table there is belongs to the migration library, as after a crash before the first
// migration.
func (s *schema) onlyMigrationTable(ctx context.Context, count int) bool {
	_, found, err := s.dialect.tables(ctx, s.db, goose.DefaultTablename)
	return err == nil && found && count == 1
}

// check returns nil when the database has the schema this program needs.
func (s *schema) check(ctx context.Context) error {
	version, err := s.version(ctx)
	if err != nil {
		return err
	}
	if version == s.target {
		return nil
	}
	return s.mismatch(version)
}

func (s *schema) mismatch(version int64) error {
	advice := "start the server of this version once, it migrates the database"
	if version > s.target {
		advice = "it was made by a later version of this program; use that one"
	}
	return fmt.Errorf("%w: %s has schema version %d, this program needs %d: %s", store.ErrSchema, s.path, version, s.target, advice)
}

// refuse returns store.ErrSchema for a database that this program must not touch, and leaves it as it is to the last byte. Other
// errors are left to those who open it for use.
func refuse(ctx context.Context, o Options, d dialect) (err error) {
	db, err := d.open(o, true)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := db.Close(); err == nil {
			err = cerr
		}
	}()
	s, err := newSchema(db, d, o)
	if err != nil {
		return err
	}
	version, err := s.version(ctx)
	if err = d.classify(err); errors.Is(err, store.ErrSchema) {
		return err
	}
	if err == nil && version > s.target {
		return s.mismatch(version)
	}
	return nil
}

// settle checks the schema, after bringing it up to date when migrate is set. Several servers may start on one new database: each
// attempt either migrates, or loses to another process and changes nothing, and is then repeated.
func (s *schema) settle(ctx context.Context, o Options) error {
	start := time.Now()
	for attempt := 1; ; attempt++ {
		err := s.dialect.classify(s.attempt(ctx, o))
		if err == nil || errors.Is(err, store.ErrSchema) {
			return err
		}
		// Switching to the write-ahead log, for one, does not wait for others by itself.
		locked := errors.Is(err, store.ErrUnavailable) && time.Since(start) < o.BusyTimeout
		lost := o.Migrate && attempt < migrateAttempts
		if !locked && !lost {
			return err
		}
		if err := pause(ctx, migratePause); err != nil {
			return err
		}
	}
}

// attempt refuses a later schema before anything is changed.
func (s *schema) attempt(ctx context.Context, o Options) error {
	if !o.Migrate {
		return s.check(ctx)
	}
	version, err := s.version(ctx)
	if err != nil {
		return err
	}
	if version > s.target {
		return s.mismatch(version)
	}
	if err := s.dialect.prepare(ctx, s.db); err != nil {
		return err
	}
	if version == s.target {
		return nil
	}
	if _, err := s.provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate from version %d to %d: %w", version, s.target, err)
	}
	o.Logger.InfoContext(ctx, "store migrated", slog.Int64("from", version), slog.Int64("to", s.target))
	return s.check(ctx)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
