package keyring

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

const (
	// followEvery is how often Run looks at the store.
	followEvery = time.Second
	// openAttempts bounds the races with other processes that make the first keys too.
	openAttempts = 5
	// DefaultAlgorithm is the algorithm of keys made here.
	DefaultAlgorithm = "ES256"
)

// ErrNoKey says that no key may sign a token with the actions asked for.
var ErrNoKey = errors.New("keyring: no active key for these actions")

// Options configures a Ring.
type Options struct {
	// Store keeps the keys.
	Store Store
	// Issuer is the issuer whose keys these are.
	Issuer string
	// Algorithm is that of keys still to be made: ES256, EdDSA or RS256; empty means DefaultAlgorithm. Keys there keep theirs.
	Algorithm string
	// Existing makes Open use the keys there are and make none, as a command does beside a server.
	Existing bool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Logger gets failures of Run; nil means none.
	Logger *slog.Logger
}

// Ring has the signing keys of one issuer, and is the token.KeySource of that issuer's tokens within the process. It is
// safe for concurrent use.
type Ring struct {
	store     Store
	issuer    string
	algorithm string
	now       func() time.Time
	logger    *slog.Logger

	reloading sync.Mutex // one Reload at a time, so that an older answer of the store never follows a newer one

	mu       sync.RWMutex
	keys     []ringKey
	stored   int64  // version of the store the keys are from
	version  uint64 // of the keys as verifiers see them
	accepted int    // how many were accepted when version was given
}

// ringKey is an entry ready for use.
type ringKey struct {
	entry   Entry
	signing token.SigningKey
	public  token.Key
	jwk     []byte
}

// Open loads the keys of the issuer and, unless Existing is set, makes those that are missing, one for each family without a key
// that signs now or later. They are active at once. An issuer without any key is ErrNoKey.
func Open(ctx context.Context, o Options) (*Ring, error) {
	r := &Ring{store: o.Store, issuer: o.Issuer, algorithm: o.Algorithm, now: o.Now, logger: o.Logger, stored: -1}
	if r.store == nil || r.issuer == "" {
		return nil, errors.New("keyring: needs a store and an issuer")
	}
	if r.algorithm == "" {
		r.algorithm = DefaultAlgorithm
	}
	if r.now == nil {
		r.now = time.Now
	}
	if r.logger == nil {
		r.logger = slog.New(slog.DiscardHandler)
	}
	if !o.Existing {
		if err := r.complete(ctx); err != nil {
			return nil, fmt.Errorf("open key ring: %w", err)
		}
	}
	if err := r.Reload(ctx); err != nil {
		return nil, fmt.Errorf("open key ring: %w", err)
	}
	if len(r.keys) == 0 {
		return nil, fmt.Errorf("open key ring: %w: %s has none", ErrNoKey, r.issuer)
	}
	return r, nil
}

// complete makes the missing keys, whoever else makes them at the same time.
func (r *Ring) complete(ctx context.Context) error {
	var err error
	for range openAttempts {
		if err = r.fill(ctx); !errors.Is(err, ErrConflict) {
			break
		}
	}
	return err
}

// families are the sets of actions that have keys of their own.
func families() []rar.ActionSet {
	return []rar.ActionSet{
		rar.Actions(rar.Subscribe),
		rar.Actions(rar.Publish),
		rar.Actions(rar.Publish, rar.Subscribe),
	}
}

// fill makes the missing keys.
func (r *Ring) fill(ctx context.Context) error {
	entries, version, err := r.store.LoadKeys(ctx, r.issuer)
	if err != nil {
		return fmt.Errorf("load keys: %w", err)
	}
	now := r.now()
	have := len(entries)
	for _, f := range families() {
		if slices.ContainsFunc(entries, func(e Entry) bool {
			s := e.State(now)
			return e.Actions == f && (s == Active || s == Next)
		}) {
			continue
		}
		e, err := r.generate(f, r.algorithm, now)
		if err != nil {
			return err
		}
		entries = append(entries, e)
	}
	if len(entries) == have {
		return nil
	}
	if err := r.store.SaveKeys(ctx, r.issuer, version, entries); err != nil {
		return fmt.Errorf("save keys: %w", err)
	}
	return nil
}

// generate makes a key that is active from now on; an empty algorithm means that of the ring.
func (r *Ring) generate(family rar.ActionSet, algorithm string, now time.Time) (Entry, error) {
	if algorithm == "" {
		algorithm = r.algorithm
	}
	k, err := token.Generate(algorithm)
	if err != nil {
		return Entry{}, fmt.Errorf("make key: %w", err)
	}
	private, err := k.PrivateJWK()
	if err != nil {
		return Entry{}, fmt.Errorf("encode key: %w", err)
	}
	return Entry{
		KeyID: k.ID, Issuer: r.issuer, Algorithm: k.Algorithm, Actions: family,
		Private: private, CreatedAt: now, ActivatesAt: now,
	}, nil
}

// Reload takes over what the store has. On error the keys stay as they were.
func (r *Ring) Reload(ctx context.Context) error {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	entries, stored, err := r.store.LoadKeys(ctx, r.issuer)
	if err != nil {
		return fmt.Errorf("load keys: %w", err)
	}
	r.mu.RLock()
	same, known := stored == r.stored, r.keys
	r.mu.RUnlock()
	var keys []ringKey
	if !same {
		if keys, err = r.prepare(entries, known); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !same {
		r.keys, r.stored = keys, stored
	}
	if accepted := len(r.live()); !same || accepted != r.accepted {
		r.accepted = accepted
		r.version++
	}
	return nil
}

// prepare decodes entries, in order of their activation, so that of several active keys the last one is the youngest. Keys known
// already are not decoded again.
func (r *Ring) prepare(entries []Entry, known []ringKey) ([]ringKey, error) {
	keys := make([]ringKey, 0, len(entries))
	for _, e := range entries {
		i := slices.IndexFunc(known, func(k ringKey) bool {
			have := k.entry
			return have.KeyID == e.KeyID && have.Issuer == e.Issuer && have.Algorithm == e.Algorithm && have.Actions == e.Actions &&
				bytes.Equal(have.Private, e.Private)
		})
		var k ringKey
		if i >= 0 {
			k = known[i]
		} else {
			var err error
			if k, err = r.decode(e); err != nil {
				return nil, fmt.Errorf("key %s: %w", e.KeyID, err)
			}
		}
		k.entry = e
		keys = append(keys, k)
	}
	slices.SortStableFunc(keys, func(a, b ringKey) int {
		if n := a.entry.ActivatesAt.Compare(b.entry.ActivatesAt); n != 0 {
			return n
		}
		return bytes.Compare([]byte(a.entry.KeyID), []byte(b.entry.KeyID))
	})
	return keys, nil
}

// decode makes a stored key ready for use.
func (r *Ring) decode(e Entry) (k ringKey, err error) {
	if k.signing, err = token.ParseSigningKey(e.Private); err != nil {
		return k, err
	}
	if e.Issuer != r.issuer || e.KeyID != k.signing.ID || e.Algorithm != k.signing.Algorithm || e.Actions == 0 {
		return k, fmt.Errorf("%w: the stored entry does not describe its key", token.ErrKey)
	}
	k.signing.Actions = e.Actions
	if k.public, err = k.signing.Public(); err != nil {
		return k, err
	}
	k.jwk, err = k.public.PublicJWK()
	return k, err
}

// live returns the keys that are not gone. The caller holds mu.
func (r *Ring) live() []ringKey {
	now := r.now()
	live := make([]ringKey, 0, len(r.keys))
	for _, k := range r.keys {
		if k.entry.State(now) != Gone {
			live = append(live, k)
		}
	}
	return live
}

// Signing returns the key for tokens with exactly these actions, or ErrNoKey.
func (r *Ring) Signing(_ context.Context, actions rar.ActionSet) (token.SigningKey, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	now := r.now()
	for _, k := range slices.Backward(r.keys) {
		if k.entry.Actions == actions && k.entry.State(now) == Active {
			return k.signing, nil
		}
	}
	return token.SigningKey{}, fmt.Errorf("%w: %q", ErrNoKey, actions.String())
}

// PublicSet returns the JWK Set (RFC 7517 section 5) of the keys that are next, active or retiring: public members only,
// with kid, alg, use and mercure_actions.
func (r *Ring) PublicSet() []byte {
	r.mu.RLock()
	defer r.mu.RUnlock()
	live := r.live()
	members := make([][]byte, 0, len(live))
	for _, k := range live {
		members = append(members, k.jwk)
	}
	return slices.Concat([]byte(`{"keys":[`), bytes.Join(members, []byte(",")), []byte(`]}`))
}

// Keys implements token.KeySource: the published key with this kid, or all of them for an empty kid.
func (r *Ring) Keys(_ context.Context, kid string) ([]token.Key, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var keys []token.Key
	for _, k := range r.live() {
		if kid == "" || k.public.ID == kid {
			keys = append(keys, k.public)
		}
	}
	return keys, nil
}

// KeysVersion implements token.VersionedSource. It changes with Reload, so a key that has gone by the clock alone is
// noticed by those who remember verdicts within a second of Run.
func (r *Ring) KeysVersion() uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.version
}

// Run follows the store until ctx ends, looking once a second. Failures are logged once for each outage; the keys stay as
// they were. It returns nil.
func (r *Ring) Run(ctx context.Context) error {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		err := r.Reload(ctx)
		switch {
		case err == nil && failing:
			r.logger.InfoContext(ctx, "signing keys followed again", slog.String("issuer", r.issuer))
		case err != nil && !failing && ctx.Err() == nil:
			r.logger.ErrorContext(ctx, "signing keys not followed", slog.String("issuer", r.issuer), slog.Any("error", err))
		}
		failing = err != nil
	}
}
