package account

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// updateAttempts bounds how often a change is repeated because somebody else changed the account meanwhile.
const updateAttempts = 5

// Errors of a Service.
var (
	// ErrBadCredentials says that the user name is unknown, the password wrong or missing, or the account disabled; it does not say which.
	ErrBadCredentials = errors.New("account: user name or password is wrong")
	errNoStore        = errors.New("account: no store")
)

// Store is what a Service needs of the store; store.Store has it.
type Store interface {
	Account(ctx context.Context, id string) (store.Account, error)
	AccountByUsername(ctx context.Context, username string) (store.Account, error)
	CreateAccount(ctx context.Context, a store.Account) error
	UpdateAccount(ctx context.Context, a store.Account) error
	EndBrowserSessions(ctx context.Context, accountID string) (int, error)
}

// Options make a Service.
type Options struct {
	Store    Store // required
	Hash     HashOptions
	Throttle ThrottleOptions
	// Logger is told when a hash could not be made anew at login. nil: nothing is logged.
	Logger *slog.Logger
	// Now is the clock, of the throttle too unless that has its own. nil: time.Now.
	Now func() time.Time
}

// Validate returns an error for a missing store or options out of range.
func (o Options) Validate() error {
	if o.Store == nil {
		return errNoStore
	}
	return errors.Join(o.Hash.Validate(), o.Throttle.Validate())
}

// Service signs people in and makes accounts. It is safe for concurrent use.
type Service struct {
	store    Store
	hasher   *Hasher
	throttle *Throttle
	logger   *slog.Logger
	now      func() time.Time
}

// New returns a Service.
func New(o Options) (*Service, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Throttle.Now == nil {
		o.Throttle.Now = o.Now
	}
	hasher, err := NewHasher(o.Hash)
	if err != nil {
		return nil, err
	}
	throttle, err := NewThrottle(o.Throttle)
	if err != nil {
		return nil, err
	}
	return &Service{store: o.Store, hasher: hasher, throttle: throttle, logger: o.Logger, now: o.Now}, nil
}

// Authenticate returns the account of a user name and password as a person typed them; addr is the client's address. It returns
// ErrBadCredentials, a *ThrottledError, ErrBusy, or an error of the store or of ctx, which says nothing about the credentials.
func (s *Service) Authenticate(ctx context.Context, username, password string, addr netip.Addr) (store.Account, error) {
	name, err := NormalizeUsername(username)
	if err != nil {
		name = ""
	}
	attempt, err := s.throttle.Start(name, addr)
	if err != nil {
		return store.Account{}, err
	}
	a, prepared, match, stale, err := s.compare(ctx, name, password)
	if err != nil {
		attempt.Void()
		return store.Account{}, fmt.Errorf("authenticate: %w", err)
	}
	if !match || a.Disabled {
		return store.Account{}, ErrBadCredentials
	}
	attempt.Succeeded()
	if stale {
		a = s.rehash(ctx, a, prepared)
	}
	return a, nil
}

// compare does the same work whether there is such an account or not. An error means that nothing was compared.
func (s *Service) compare(ctx context.Context, name, password string) (a store.Account, prepared string, match, stale bool, err error) {
	a, err = s.lookup(ctx, name)
	if err != nil {
		return a, "", false, false, err
	}
	hash := a.PasswordHash
	prepared, err = preparePassword(password)
	if err != nil {
		hash = "" // no password is like this one
	}
	match, stale, err = s.hasher.Verify(ctx, prepared, hash)
	if errors.Is(err, ErrHash) { // to the client it must look like any account that the password does not fit
		s.logger.WarnContext(ctx, "password_hash_unusable", slog.String("account_id", a.ID))
		match, stale, err = s.hasher.Verify(ctx, prepared, "")
	}
	return a, prepared, match, stale, err
}

// lookup returns an account without a password for a name that nobody has.
func (s *Service) lookup(ctx context.Context, name string) (store.Account, error) {
	a, err := s.store.AccountByUsername(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return store.Account{}, nil
	}
	return a, err
}

// rehash stores a hash of today's cost. That it could not is no reason to refuse the login; the next login tries again.
func (s *Service) rehash(ctx context.Context, a store.Account, prepared string) store.Account {
	hash, err := s.hasher.Hash(ctx, prepared)
	if err == nil {
		old := a.PasswordHash
		a.PasswordHash = hash
		if err = s.store.UpdateAccount(ctx, a); err == nil {
			a.Revision++
			return a
		}
		a.PasswordHash = old
	}
	s.logger.WarnContext(ctx, "password hash not renewed", slog.Any("error", err))
	return a
}

// Draft is an account to be made.
type Draft struct {
	Username   string // in any spelling
	Password   string // empty: the account has none and cannot sign in with one
	Roles      []string
	Attributes map[string]string
	Demo       bool // see store.Account.Demo
}

// Create makes an account with a user name and password. It returns ErrUsername, ErrPassword, or store.ErrExists for a taken name.
func (s *Service) Create(ctx context.Context, username, password string, roles []string) (store.Account, error) {
	if password == "" {
		return store.Account{}, fmt.Errorf("create account: %w: empty", ErrPassword)
	}
	return s.Add(ctx, Draft{Username: username, Password: password, Roles: roles})
}

// Add makes an account; errors are those of Create.
func (s *Service) Add(ctx context.Context, d Draft) (store.Account, error) {
	const op = "create account"
	name, err := NormalizeUsername(d.Username)
	if err != nil {
		return store.Account{}, fmt.Errorf("%s: %w", op, err)
	}
	a := store.Account{
		ID: NewID(), Username: name, Roles: d.Roles, Attributes: d.Attributes, Demo: d.Demo, CreatedAt: s.now(),
	}
	if d.Password != "" {
		if a.PasswordHash, err = s.hashNew(ctx, name, d.Password); err != nil {
			return store.Account{}, fmt.Errorf("%s: %w", op, err)
		}
	}
	if err := s.store.CreateAccount(ctx, a); err != nil {
		return store.Account{}, err
	}
	return s.store.Account(ctx, a.ID)
}

func (s *Service) hashNew(ctx context.Context, username, password string) (string, error) {
	prepared, err := newPassword(username, password)
	if err != nil {
		return "", err
	}
	return s.hasher.Hash(ctx, prepared)
}

// SetPassword gives an account a new password and signs it out everywhere, which revokes what was issued to it. It returns ErrPassword, or store.ErrNotFound for an unknown id.
func (s *Service) SetPassword(ctx context.Context, id, password string) error {
	a, err := s.store.Account(ctx, id)
	if err != nil {
		return err
	}
	hash, err := s.hashNew(ctx, a.Username, password)
	if err != nil {
		return fmt.Errorf("set password: %w", err)
	}
	if _, err := s.Update(ctx, id, func(a *store.Account) { a.PasswordHash = hash }); err != nil {
		return err
	}
	_, err = s.store.EndBrowserSessions(ctx, id)
	return err
}

// Update changes an account: change gets what is stored, and is called again when somebody else changed the account meanwhile.
// It returns the account as it is stored then, or the store's error.
func (s *Service) Update(ctx context.Context, id string, change func(*store.Account)) (store.Account, error) {
	for attempt := 1; ; attempt++ {
		a, err := s.store.Account(ctx, id)
		if err != nil {
			return store.Account{}, err
		}
		change(&a)
		a.ID = id
		err = s.store.UpdateAccount(ctx, a)
		if err == nil {
			return s.store.Account(ctx, id)
		}
		if !errors.Is(err, store.ErrConflict) || attempt == updateAttempts {
			return store.Account{}, err
		}
	}
}
