package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// laterDialect is the dialect of a program with one more migration.
type laterDialect struct{ sqliteDialect }

func (laterDialect) migrations() (goose.Dialect, fs.FS, error) {
	const email = "-- +goose Up\nALTER TABLE accounts ADD COLUMN email TEXT NOT NULL DEFAULT '';\n" +
		"UPDATE meta SET number = 3 WHERE name = 'schema_version';\n"
	files, err := ourMigrations()
	files[laterMigration] = &fstest.MapFile{Data: []byte(email)}
	return goose.DialectSQLite3, files, err
}

const laterMigration = "00003_email.sql"

// firstDialect is the dialect of the first version of this program.
type firstDialect struct{ sqliteDialect }

func (firstDialect) migrations() (goose.Dialect, fs.FS, error) {
	files, err := ourMigrations()
	delete(files, "00002_tokens.sql")
	return goose.DialectSQLite3, files, err
}

// brokenDialect is the dialect of a program whose last migration fails after it changed something.
type brokenDialect struct{ laterDialect }

func (d brokenDialect) migrations() (goose.Dialect, fs.FS, error) {
	name, files, err := d.laterDialect.migrations()
	if m, ok := files.(fstest.MapFS); ok {
		m[laterMigration].Data = append(m[laterMigration].Data, "INSERT INTO nowhere VALUES (1);\n"...)
	}
	return name, files, err
}

// ourMigrations are those of this program.
func ourMigrations() (fstest.MapFS, error) {
	files := fstest.MapFS{}
	_, ours, err := sqliteDialect{}.migrations()
	if err != nil {
		return files, err
	}
	names, err := fs.Glob(ours, "*.sql")
	for _, name := range names {
		data, rerr := fs.ReadFile(ours, name)
		files[name], err = &fstest.MapFile{Data: data}, errors.Join(err, rerr)
	}
	return files, err
}

func testOptions(t *testing.T) Options {
	t.Helper()
	return Options{
		Path: filepath.Join(t.TempDir(), "data", "authz.db"), Secret: bytes.Repeat([]byte{7}, 32), Migrate: true,
	}.withDefaults()
}

func mustOpen(t *testing.T, o Options, d dialect) *Store {
	t.Helper()
	s, err := open(t.Context(), o, d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func mustClose(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustExec(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatal(err)
	}
}

func wantSchemaError(t *testing.T, o Options, d dialect, parts ...string) {
	t.Helper()
	s, err := open(t.Context(), o, d)
	if err == nil {
		_ = s.Close()
	}
	if !errors.Is(err, store.ErrSchema) {
		t.Fatalf("open = %v, want store.ErrSchema", err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}

func TestSchema_versions(t *testing.T) {
	ctx := t.Context()
	server := testOptions(t)
	old := mustOpen(t, server, sqliteDialect{})
	if err := old.CreateAccount(ctx, store.Account{ID: "u_1", Username: "one"}); err != nil {
		t.Fatal(err)
	}
	command := server
	command.Migrate = false

	// A later command does not migrate, and says what to do.
	wantSchemaError(t, command, laterDialect{}, "schema version 2", "needs 3", "start the server")
	// A migration that fails changes nothing.
	if _, err := open(ctx, server, brokenDialect{}); err == nil || errors.Is(err, store.ErrSchema) {
		t.Fatalf("open with a broken migration = %v", err)
	}
	if err := old.Ready(ctx); err != nil {
		t.Fatalf("Ready after a broken migration = %v", err)
	}
	// A later server migrates; the old one notices.
	later := mustOpen(t, server, laterDialect{})
	if _, err := later.Account(ctx, "u_1"); err != nil {
		t.Fatal(err)
	}
	if err := old.Ready(ctx); !errors.Is(err, store.ErrSchema) {
		t.Errorf("Ready of the old server = %v, want store.ErrSchema", err)
	}
	mustClose(t, old)
	mustClose(t, later)

	// A later schema is refused by both, and the file stays as it is.
	before, err := os.ReadFile(server.Path)
	if err != nil {
		t.Fatal(err)
	}
	wantSchemaError(t, command, sqliteDialect{}, "schema version 3", "needs 2", "later version")
	wantSchemaError(t, server, sqliteDialect{}, "schema version 3", "needs 2", "later version")
	after, err := os.ReadFile(server.Path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, after) {
		t.Error("a later schema was refused, and the file changed")
	}
}

// TestSchema_fromVersion1 brings a database of the first version up to date, with what it holds.
func TestSchema_fromVersion1(t *testing.T) {
	ctx, o := t.Context(), testOptions(t)
	db := versionOne(t, o)
	for _, query := range []string{
		`INSERT INTO clients VALUES ('app', 'App', 'none', NULL, '', '["https://app.example/cb"]', '["authorization_code"]', '[]', 0, 1, 0, 1000)`,
		`INSERT INTO accounts VALUES ('u_1', 'ada', '', '[]', '{}', 0, 0, 1000, 7)`,
		`INSERT INTO key_sets VALUES ('https://as', 1)`,
		`INSERT INTO grants VALUES ('ended', 'https://as', 'app', 'u_1', 'sid', 'https://hub', '[]', 1000, 2000, 0)`,
		`INSERT INTO grants VALUES ('live', 'https://as', 'app', 'u_1', 'sid', 'https://hub', '[]', 2000, 4000000000000, 0)`,
		`INSERT INTO issued_tokens VALUES ('t1', 'https://as', 'live', 'sid', 'u_1', 'app', 2000, 4000000000000)`,
		`INSERT INTO interactions VALUES ('i1', 'b', 'https://as', 'app', '{}', '', '', 0, 0, 1000, 4000000000000)`,
		`INSERT INTO revocations VALUES (5000000000000, 'https://as', 'jti', 't0', 1000, 4000000000000)`,
		`DELETE FROM revocations`, // the last number is known all the same
	} {
		mustExec(t, db, query)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	command := o
	command.Migrate = false
	wantSchemaError(t, command, sqliteDialect{}, "schema version 1", "needs 2", "start the server")

	s := mustOpen(t, o, sqliteDialect{})
	if c, err := s.Client(ctx, "app"); err != nil || c.Name != "App" || c.Broker || len(c.SecretHash) != 0 {
		t.Errorf("Client = %+v, %v", c, err)
	}
	if a, err := s.Account(ctx, "u_1"); err != nil || a.Revision != 7 {
		t.Errorf("Account = %+v, %v", a, err)
	}
	if tok, err := s.IssuedToken(ctx, "t1"); err != nil || tok.GrantID != "live" || !tok.RevokedAt.IsZero() {
		t.Errorf("IssuedToken = %+v, %v", tok, err)
	}
	if err := s.FinishInteraction(ctx, "i1"); err != nil {
		t.Errorf("FinishInteraction = %v", err)
	}
	if _, err := s.Sweep(ctx, time.Now(), 100); err != nil {
		t.Fatal(err)
	}
	if grants, err := s.ListGrants(ctx, store.GrantFilter{}); err != nil || len(grants) != 1 || grants[0].ID != "live" {
		t.Errorf("grants after Sweep = %v (%v), want the one that has not ended", grants, err)
	}
	if err := s.DeleteClient(ctx, "app", time.Now()); err != nil {
		t.Fatal(err)
	}
	log, err := s.RevocationsSince(ctx, 0, 10)
	if err != nil || len(log) != 1 || log[0].Seq <= 5000000000000 || log[0].Until.UnixMilli() != 4000000000000 {
		t.Errorf("revocation log = %+v (%v), want one entry, numbered after those that are gone", log, err)
	}
}

// versionOne makes a database as the first version of this program did.
func versionOne(t *testing.T, o Options) *sql.DB {
	t.Helper()
	db, err := firstDialect{}.open(o, false)
	if err != nil {
		t.Fatal(err)
	}
	sch, err := newSchema(db, firstDialect{}, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := sch.settle(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return db
}

func TestSchema_foreignFiles(t *testing.T) {
	t.Run("tables of another program", func(t *testing.T) {
		o := testOptions(t)
		db, err := sqliteDialect{}.open(o, false)
		if err != nil {
			t.Fatal(err)
		}
		mustExec(t, db, "CREATE TABLE recipes (name TEXT)")
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadFile(o.Path)
		if err != nil {
			t.Fatal(err)
		}
		wantSchemaError(t, o, sqliteDialect{}, "another program")
		after, err := os.ReadFile(o.Path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(before, after) {
			t.Error("the file was changed")
		}
	})
	t.Run("no database", func(t *testing.T) {
		o := testOptions(t)
		if err := os.MkdirAll(filepath.Dir(o.Path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(o.Path, bytes.Repeat([]byte("a diary\n"), 1000), 0o600); err != nil {
			t.Fatal(err)
		}
		wantSchemaError(t, o, sqliteDialect{}, "not an SQLite database")
	})
	t.Run("an empty file is a new database to the server only", func(t *testing.T) {
		o := testOptions(t)
		if _, err := prepareFile(o.Path, true); err != nil {
			t.Fatal(err)
		}
		o.Migrate = false
		wantSchemaError(t, o, sqliteDialect{}, "schema version 0", "start the server")
		o.Migrate = true
		mustOpen(t, o, sqliteDialect{})
	})
	t.Run("a crash before the first migration", func(t *testing.T) {
		o := testOptions(t)
		db, err := sqliteDialect{}.open(o, false)
		if err != nil {
			t.Fatal(err)
		}
		sch, err := newSchema(db, sqliteDialect{}, o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sch.provider.GetDBVersion(t.Context()); err != nil { // makes the library's table
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		mustOpen(t, o, sqliteDialect{})
	})
}

func TestSchema_recordedTwice(t *testing.T) {
	o := testOptions(t)
	for _, d := range []dialect{sqliteDialect{}, laterDialect{}} {
		s := mustOpen(t, o, d)
		ours, err := s.schema.version(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		library, err := s.schema.provider.GetDBVersion(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ours != library || ours != s.schema.target {
			t.Errorf("meta says version %d, the migration library %d, want %d", ours, library, s.schema.target)
		}
	}
}

// TestOpen_together starts several servers on one new database.
func TestOpen_together(t *testing.T) {
	for round := range 2 {
		o := testOptions(t)
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() {
				s, err := open(context.Background(), o, laterDialect{})
				if err == nil {
					err = errors.Join(s.PutClient(context.Background(), store.Client{ID: strconv.Itoa(i)}), s.Close())
				}
				errs[i] = err
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}

// TestConnections checks the settings of every connection of the pool.
func TestConnections(t *testing.T) {
	s := mustOpen(t, testOptions(t), sqliteDialect{})
	for range maxConnections {
		conn, err := s.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		for pragma, want := range map[string]string{
			"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "10000", "fullfsync": "1",
			"trusted_schema": "0", "journal_size_limit": strconv.Itoa(walLimitBytes),
		} {
			var got string
			if err := conn.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("%s = %s, want %s", pragma, got, want)
			}
		}
	}
	if got := s.db.Stats().MaxOpenConnections; got != maxConnections {
		t.Errorf("the pool has up to %d connections, want %d", got, maxConnections)
	}
}

// TestWrite_locked holds the write lock as another process would.
func TestWrite_locked(t *testing.T) {
	o := testOptions(t)
	o.BusyTimeout = 50 * time.Millisecond
	s, other := mustOpen(t, o, sqliteDialect{}), mustOpen(t, o, sqliteDialect{})
	held, err := other.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	put := func(ctx context.Context) error { return s.PutClient(ctx, store.Client{ID: "app"}) }
	if err := put(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("PutClient while another process writes = %v, want store.ErrUnavailable", err)
	}
	if _, err := s.ListClients(t.Context()); err != nil {
		t.Errorf("ListClients while another process writes = %v", err)
	}
	if _, err := s.RevocationsSince(t.Context(), 0, 10); err != nil {
		t.Errorf("RevocationsSince while another process writes = %v", err)
	}
	if err := s.Backup(t.Context(), filepath.Join(t.TempDir(), "copy.db")); err != nil {
		t.Errorf("Backup while another process writes = %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := put(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("PutClient with little time = %v, want context.DeadlineExceeded", err)
	}
	// Writers of one process wait in a queue of their own, as long.
	s.writer <- struct{}{}
	if err := put(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("PutClient while this process writes = %v, want store.ErrUnavailable", err)
	}
	<-s.writer
	if err := held.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := put(t.Context()); err != nil {
		t.Errorf("PutClient = %v", err)
	}
}

// TestKeys_swapped checks that a sealed key opens in its own row only.
func TestKeys_swapped(t *testing.T) {
	const issuer = "https://auth.example.com"
	s := mustOpen(t, testOptions(t), sqliteDialect{})
	keys := []store.Key{
		{ID: "a", Issuer: issuer, Algorithm: "ES256", Private: []byte("a")}, {ID: "b", Issuer: issuer, Algorithm: "ES256", Private: []byte("b")},
	}
	if err := s.SaveKeys(t.Context(), issuer, 0, keys); err != nil {
		t.Fatal(err)
	}
	mustExec(t, s.db, "UPDATE signing_keys SET private_sealed = (SELECT private_sealed FROM signing_keys WHERE id = 'a') WHERE id = 'b'")
	if _, _, err := s.LoadKeys(t.Context(), issuer); err == nil || !strings.Contains(err.Error(), "key b") {
		t.Errorf("LoadKeys of a swapped key = %v, want an error that names it", err)
	}
}

// TestRetention checks that the rules of Sweep keep what the port promises.
func TestRetention(t *testing.T) {
	if keepCodes < store.MinCodeRetention {
		t.Errorf("codes are kept for %s, want at least %s", keepCodes, store.MinCodeRetention)
	}
	o := testOptions(t)
	now := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, retention := range []time.Duration{24 * time.Hour, -1} {
		o.AuditRetention = retention
		s := mustOpen(t, o, sqliteDialect{})
		for _, age := range []time.Duration{time.Hour, 48 * time.Hour} {
			if err := s.Audit(t.Context(), store.AuditRecord{At: now.Add(-age), Event: "login"}); err != nil {
				t.Fatal(err)
			}
		}
		want := 1
		if retention < 0 {
			want = 0
		}
		if deleted, err := s.Sweep(t.Context(), now, 10); err != nil || deleted != want {
			t.Errorf("Sweep with retention %s = %d, %v, want %d", retention, deleted, err, want)
		}
	}
}

// TestSchema_laterAfterCrash checks that a later schema is left alone to the last byte, also when the program that made it was killed and
// its last commits are in the write-ahead log only.
func TestSchema_laterAfterCrash(t *testing.T) {
	from := testOptions(t)
	later := mustOpen(t, from, laterDialect{})
	if err := later.PutClient(t.Context(), store.Client{ID: "app"}); err != nil {
		t.Fatal(err)
	}
	for _, migrate := range []bool{true, false} {
		o := testOptions(t)
		o.Migrate = migrate
		if err := os.MkdirAll(filepath.Dir(o.Path), 0o700); err != nil {
			t.Fatal(err)
		}
		before := map[string][]byte{}
		for _, suffix := range []string{"", "-wal"} { // as they are while the database is open
			data, err := os.ReadFile(from.Path + suffix)
			if err != nil {
				t.Fatal(err)
			}
			if len(data) == 0 {
				t.Fatalf("the test copied no %s", suffix)
			}
			if err := os.WriteFile(o.Path+suffix, data, 0o600); err != nil {
				t.Fatal(err)
			}
			before[suffix] = data
		}
		wantSchemaError(t, o, sqliteDialect{}, "schema version 3", "needs 2", "later version")
		for suffix, data := range before {
			after, err := os.ReadFile(o.Path + suffix)
			if err != nil || !bytes.Equal(data, after) {
				t.Errorf("migrate %t: the file%s changed from %d to %d bytes (%v)", migrate, suffix, len(data), len(after), err)
			}
		}
		mustOpen(t, o, laterDialect{}) // the program it belongs to can still have it
	}
}
