package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/as/store/seal"
)

// Rows of the table meta.
const (
	metaSchema = "schema_version"
	metaChange = "change_version"
	metaSeal   = "seal_check"
	// metaRevocation is the last number that was given in the revocation log.
	metaRevocation = "revocation_seq"
)

// sealCheck is what the row metaSeal holds, sealed: it tells a wrong secret from a damaged key.
const sealCheck = "cinnabar"

// Purposes of sealing.
const (
	purposeKey    = "signing-key"
	purposeSecret = "client-secret"
	purposeCheck  = "store-check"
)

// Store is a store.Store on a SQL database. It is safe for concurrent use.
type Store struct {
	db      *sql.DB
	dialect dialect
	schema  *schema
	keys    *seal.Sealer // of the private parts of signing keys
	secrets *seal.Sealer // of the hashes of client secrets
	options Options
	writer  chan struct{} // capacity 1, holds one element while a write runs; never closed; a full channel makes writers queue
}

var _ store.Store = (*Store)(nil)

// Open opens the database, checks or migrates its schema, and checks the secret. Errors wrap store.ErrSchema for a schema this program
// must not touch, store.ErrSecret for another secret, private.ErrLoose for a file or folder that other users can use, and fs.ErrNotExist for
// a missing file. The caller closes the Store.
func Open(ctx context.Context, o Options) (*Store, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	s, err := open(ctx, o, sqliteDialect{})
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

func open(ctx context.Context, o Options, d dialect) (_ *Store, err error) {
	keys, err := seal.New(o.Secret, purposeKey)
	if err != nil {
		return nil, err
	}
	secrets, err := seal.New(o.Secret, purposeSecret)
	if err != nil {
		return nil, err
	}
	check, err := seal.New(o.Secret, purposeCheck)
	if err != nil {
		return nil, err
	}
	o.Secret = nil
	if err := refuse(ctx, o, d); err != nil {
		return nil, err
	}
	db, err := d.open(o, false)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	sch, err := newSchema(db, d, o)
	if err != nil {
		return nil, err
	}
	s := &Store{db: db, dialect: d, schema: sch, keys: keys, secrets: secrets, options: o, writer: make(chan struct{}, 1)}
	if err := sch.settle(ctx, o); err != nil {
		return nil, err
	}
	if err := s.checkSecret(ctx, check); err != nil {
		return nil, err
	}
	return s, nil
}

// checkSecret opens the check value, after writing it to a new database.
func (s *Store) checkSecret(ctx context.Context, sealer *seal.Sealer) error {
	sealed, err := s.sealCheck(ctx)
	if errors.Is(err, store.ErrNotFound) {
		if err := s.writeSealCheck(ctx, sealer); err != nil {
			return err
		}
		sealed, err = s.sealCheck(ctx) // another process may have been first, with another secret
	}
	if err != nil {
		return err
	}
	if _, err := sealer.Open(sealed, metaSeal); err != nil {
		return s.wrongSecret()
	}
	return nil
}

func (s *Store) wrongSecret() error {
	file := "the one given"
	if s.options.SecretFile != "" {
		file = s.options.SecretFile
	}
	return fmt.Errorf("%w: %s was sealed with another secret than %s; put back the secret file that belongs to it", store.ErrSecret,
		s.options.Path, file)
}

func (s *Store) sealCheck(ctx context.Context) ([]byte, error) {
	var sealed []byte
	err := s.read(ctx, "read secret check", func(q querier) error {
		return q.row(ctx, `SELECT data FROM meta WHERE name = ?`, metaSeal).Scan(&sealed)
	})
	return sealed, err
}

func (s *Store) writeSealCheck(ctx context.Context, sealer *seal.Sealer) error {
	sealed := sealer.Seal([]byte(sealCheck), metaSeal)
	return s.write(ctx, "write secret check", func(q querier) error {
		_, err := q.exec(ctx, `INSERT INTO meta (name, data) VALUES (?, ?) ON CONFLICT (name) DO NOTHING`, metaSeal, sealed)
		return err
	})
}

// Version implements store.Store.
func (s *Store) Version(ctx context.Context) (int64, error) {
	var version int64
	err := s.read(ctx, "read store version", func(q querier) error {
		return q.row(ctx, `SELECT number FROM meta WHERE name = ?`, metaChange).Scan(&version)
	})
	return version, err
}

// Ready implements store.Store.
func (s *Store) Ready(ctx context.Context) error {
	if err := s.schema.check(ctx); err != nil {
		return fmt.Errorf("store ready: %w", s.dialect.classify(err))
	}
	return nil
}

// Close implements store.Store.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

func (s *Store) now() time.Time { return s.options.Now() }
