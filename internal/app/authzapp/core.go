package authzapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/account"
	"github.com/cinnabar-hub/cinnabar/internal/as/ashttp"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/as/store/seal"
	"github.com/cinnabar-hub/cinnabar/internal/as/store/secretfile"
	"github.com/cinnabar-hub/cinnabar/internal/as/store/sqlstore"
	"github.com/cinnabar-hub/cinnabar/internal/keyring"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// CoreOptions says which store to open, and how.
type CoreOptions struct {
	StorePath  string
	SecretPath string
	// Serve makes what is missing and brings the schema up to date, as a server does. A command leaves it out: it works on what
	// is there and never migrates.
	Serve bool
	// Logger is required.
	Logger *slog.Logger
}

// Core is what every issuer and every command of one store shares.
type Core struct {
	Store    store.Store
	Accounts *account.Service

	secret []byte
	serve  bool
	logger *slog.Logger
}

// OpenCore opens the store with its secret. The caller closes it.
func OpenCore(ctx context.Context, o CoreOptions) (*Core, error) {
	read := secretfile.Load
	if o.Serve {
		read = secretfile.LoadOrCreate
	}
	secret, err := read(o.SecretPath)
	if err != nil {
		return nil, err
	}
	db, err := sqlstore.Open(ctx, sqlstore.Options{
		Path: o.StorePath, Secret: secret, SecretFile: o.SecretPath, Migrate: o.Serve, Logger: o.Logger,
	})
	if err != nil {
		return nil, err
	}
	accounts, err := account.New(account.Options{Store: db, Logger: o.Logger})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Core{Store: db, Accounts: accounts, secret: secret, serve: o.Serve, logger: o.Logger}, nil
}

// Close closes the store.
func (c *Core) Close() error { return c.Store.Close() }

// Derive gives 32 bytes for a purpose, the same at every start, which tell nothing about the secret.
func (c *Core) Derive(purpose string) ([32]byte, error) { return seal.Derive(c.secret, purpose) }

// OpenRing opens the signing keys of an issuer. A server makes those that are missing, a command does not.
func (c *Core) OpenRing(ctx context.Context, issuer, algorithm string) (*keyring.Ring, error) {
	ring, err := keyring.Open(ctx, keyring.Options{Store: ringStore{c.Store}, Issuer: issuer, Algorithm: algorithm, Existing: !c.serve, Logger: c.logger})
	if err != nil {
		return nil, fmt.Errorf("open signing keys: %w", err)
	}
	return ring, nil
}

// Issuer is one authorization server: its keys and its state machine.
type Issuer struct {
	Server *as.Server
	Ring   *keyring.Ring
}

// Issuer builds an authorization server on the core, with the ring of its signing keys. Nothing runs before its Run. revoked is
// called after each revocation that the server writes; nil is fine.
func (c *Core) Issuer(ctx context.Context, o as.Options, ring *keyring.Ring, revoked func()) (*Issuer, error) {
	secret, err := c.Derive("authorization codes")
	if err != nil {
		return nil, err
	}
	server, err := as.New(ctx, o, as.Dependencies{
		Store: c.Store, Accounts: c.Accounts, Keys: ring, Secret: secret, Revoked: revoked, Logger: c.logger,
	})
	if err != nil {
		return nil, err
	}
	return &Issuer{Server: server, Ring: ring}, nil
}

// Run follows the store and does the housekeeping until ctx ends.
func (i *Issuer) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return i.Ring.Run(ctx) })
	g.Go(func() error { return i.Server.Run(ctx) })
	return g.Wait()
}

// EdgeOptions says how an issuer is served.
type EdgeOptions struct {
	ashttp.Options

	ClientIP func(*http.Request) netip.Addr
}

// Register mounts the issuer's endpoints.
func (c *Core) Register(e *echo.Echo, i *Issuer, o EdgeOptions) error {
	return ashttp.Register(e, o.Options, ashttp.Dependencies{Server: i.Server, ClientIP: o.ClientIP, Logger: c.logger})
}

// ringStore lets the key ring keep its entries in the store, which seals them.
type ringStore struct{ store store.Keys }

// LoadKeys implements keyring.Store.
func (s ringStore) LoadKeys(ctx context.Context, issuer string) ([]keyring.Entry, int64, error) {
	keys, version, err := s.store.LoadKeys(ctx, issuer)
	if err != nil {
		return nil, 0, err
	}
	entries := make([]keyring.Entry, 0, len(keys))
	for _, k := range keys {
		entries = append(entries, keyring.Entry{
			KeyID: k.ID, Issuer: k.Issuer, Algorithm: k.Algorithm, Actions: rar.ActionSet(k.Actions), Private: k.Private,
			CreatedAt: k.CreatedAt, ActivatesAt: k.ActivatesAt, RetiresAt: k.RetiresAt, ExpiresAt: k.ExpiresAt,
		})
	}
	return entries, version, nil
}

// SaveKeys implements keyring.Store.
func (s ringStore) SaveKeys(ctx context.Context, issuer string, version int64, entries []keyring.Entry) error {
	keys := make([]store.Key, 0, len(entries))
	for _, e := range entries {
		keys = append(keys, store.Key{
			ID: e.KeyID, Issuer: e.Issuer, Algorithm: e.Algorithm, Actions: uint8(e.Actions), Private: e.Private,
			CreatedAt: e.CreatedAt, ActivatesAt: e.ActivatesAt, RetiresAt: e.RetiresAt, ExpiresAt: e.ExpiresAt,
		})
	}
	err := s.store.SaveKeys(ctx, issuer, version, keys)
	if errors.Is(err, store.ErrConflict) {
		return keyring.ErrConflict
	}
	return err
}
