package as

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"log/slog"
	"time"

	"github.com/ory/fosite"
	"golang.org/x/time/rate"

	"github.com/cinnabar-hub/cinnabar/internal/as/account"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/keyring"
)

const (
	// sweepEvery is how often what has expired is deleted, and sweepLimit how much of it the store deletes at a time.
	sweepEvery = time.Minute
	sweepLimit = 5000
)

// Dependencies is what a Server needs from the rest of the program. All are required, except Revoked and Logger.
type Dependencies struct {
	// Store keeps clients, accounts, interactions, grants and the audit trail.
	Store store.Store
	// Accounts checks passwords.
	Accounts *account.Service
	// Keys sign access tokens. The ring must be the issuer's.
	Keys *keyring.Ring
	// Secret authenticates authorization codes and forms: 32 random bytes, the same in every process of the issuer and
	// after a restart.
	Secret [32]byte
	// Revoked is called after each revocation that this server wrote, so that who follows the log can look at once. It must
	// return without waiting. Nil: nobody is told.
	Revoked func()
	// Logger gets failures and refusals, without secrets. Nil: nothing is logged.
	Logger *slog.Logger
}

// Server is an authorization server. All methods are safe for concurrent use.
type Server struct {
	options   Options
	resources []hubResource
	store     store.Store
	accounts  *account.Service
	keys      *keyring.Ring
	revoked   func()
	logger    *slog.Logger
	provider  fosite.OAuth2Provider
	formKey   [sha256.Size]byte
	// refreshKey derives refresh tokens from their predecessors.
	refreshKey [sha256.Size]byte
	metadata   []byte
	origins    origins
	noise      *rate.Limiter
}

// New checks the options, writes the configured clients into the store and returns the server. Clients that were configured before
// and are no longer are deleted, with their grants and tokens. Errors wrap ErrOptions when the options are at fault; then nothing was
// written.
func New(ctx context.Context, o Options, d Dependencies) (*Server, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if d.Store == nil || d.Accounts == nil || d.Keys == nil || d.Secret == [32]byte{} {
		return nil, errors.New("as: a dependency is missing")
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	if d.Revoked == nil {
		d.Revoked = func() {}
	}
	s := &Server{
		options: o.withDefaults(), store: d.Store, accounts: d.Accounts, keys: d.Keys, revoked: d.Revoked, logger: d.Logger,
		noise: rate.NewLimiter(rate.Every(noiseEvery), noiseBurst),
	}
	var err error
	if s.resources, err = compileResources(s.options.Resources); err != nil {
		return nil, err
	}
	if s.metadata, err = s.buildMetadata(); err != nil {
		return nil, err
	}
	s.formKey = deriveKey(d.Secret, "cinnabar forms of "+o.Issuer)
	s.refreshKey = deriveKey(d.Secret, "cinnabar refresh tokens of "+o.Issuer)
	s.provider = newProvider(s, deriveKey(d.Secret, "cinnabar codes of "+o.Issuer))
	if err := s.syncClients(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// deriveKey makes a key for one purpose, so that one secret file serves several.
func deriveKey(secret [32]byte, purpose string) [sha256.Size]byte {
	m := hmac.New(sha256.New, secret[:])
	_, _ = m.Write([]byte(purpose)) // never fails
	return [sha256.Size]byte(m.Sum(nil))
}

// Run does the server's housekeeping until ctx ends: it deletes what has expired. It returns nil when ctx ended.
func (s *Server) Run(ctx context.Context) error {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		s.sweep(ctx)
	}
}

// sweep deletes what has expired, all of it: anybody can begin interactions, and a fixed number for each minute would let
// them pile up.
func (s *Server) sweep(ctx context.Context) {
	count := 0
	for {
		deleted, err := s.store.Sweep(ctx, time.Now(), sweepLimit)
		count += deleted
		if err != nil && ctx.Err() == nil {
			s.logger.LogAttrs(ctx, slog.LevelWarn, "sweep failed", slog.String("error", err.Error()))
		}
		if err != nil || deleted < sweepLimit {
			break
		}
	}
	if count > 0 {
		s.logger.LogAttrs(ctx, slog.LevelDebug, "expired records deleted", slog.Int("count", count))
	}
}

// Issuer returns the issuer identifier.
func (s *Server) Issuer() string { return s.options.Issuer }

// Dev says whether the server runs in development mode.
func (s *Server) Dev() bool { return s.options.Dev }
