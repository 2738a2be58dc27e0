package token

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// Defaults and bounds of a Verifier.
const (
	// DefaultMaxBytes is the longest compact token accepted, in bytes.
	DefaultMaxBytes = 8 << 10
	// DefaultCacheSize is the number of verified tokens remembered.
	DefaultCacheSize = 4096
	// Leeway is how far clocks may differ when nbf and iat are judged. There is none for exp.
	Leeway = 30 * time.Second
	// maxCandidates bounds the signatures checked for one token.
	maxCandidates = 32
)

// Issuer is one party whose tokens are accepted, with its own keys and no others (TOK-12, TOK-13).
type Issuer struct {
	// ID equals iss byte for byte.
	ID string
	// Keys are the issuer's keys.
	Keys KeySource
	// AuthorizationServer tells an authorization server from a publisher that issues tokens to itself: a self-issued token
	// must be signed by a key that serves the endpoint it is presented at (TOK-26).
	AuthorizationServer bool
}

// Revocations knows the tokens that were revoked before they expired.
type Revocations interface {
	// Revoked says whether the token must no longer be accepted. It is asked for every use of a token, so it answers from
	// memory, and it is safe for concurrent use.
	Revoked(c *Claims) bool
}

// Options configures a Verifier.
type Options struct {
	// Resource is the identifier of the hub that aud must contain, byte for byte.
	Resource string
	// Issuers are the trusted issuers, each id once.
	Issuers []Issuer
	// Compiler compiles the matchers of the token's details.
	Compiler *topic.Compiler
	// Limits bounds the token's details; the zero value means rar.DefaultLimits.
	Limits rar.Limits
	// MaxBytes is the longest compact token accepted; 0 means DefaultMaxBytes.
	MaxBytes int
	// CacheSize is the number of verified tokens remembered; 0 means DefaultCacheSize, -1 none.
	CacheSize int
	// Revocations is asked at every use of a token; nil means that nothing is ever revoked.
	Revocations Revocations
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Validate checks the options: a resource, a compiler, issuers with distinct ids and keys that fit their algorithms, and
// no key trusted for two issuers (TOK-12).
func (o Options) Validate() error {
	if o.Resource == "" {
		return errors.New("token: the resource identifier is empty")
	}
	if o.Compiler == nil {
		return errors.New("token: no compiler for topic matchers")
	}
	if o.MaxBytes < 0 {
		return errors.New("token: the longest token accepted has a negative length")
	}
	for n, i := range o.Issuers {
		if i.ID == "" || i.Keys == nil {
			return errors.New("token: an issuer needs an id and keys")
		}
		for _, other := range o.Issuers[:n] {
			if other.ID == i.ID {
				return fmt.Errorf("token: issuer %s is configured twice", shown(i.ID))
			}
			if sharedKey(i, other) {
				return fmt.Errorf("issuer %s: %w: it is also a key of issuer %s; each key belongs to one issuer",
					shown(i.ID), ErrKey, shown(other.ID))
			}
		}
		for _, k := range i.staticKeys() {
			if _, err := finishKey(k); err != nil {
				return fmt.Errorf("issuer %s: %w", shown(i.ID), err)
			}
		}
	}
	return nil
}

// staticKeys are the keys given by hand, which can be judged beforehand.
func (i Issuer) staticKeys() []Key {
	if s, ok := i.Keys.(*staticSource); ok {
		return s.keys
	}
	return nil
}

func sharedKey(a, b Issuer) bool {
	return slices.ContainsFunc(a.staticKeys(), func(k Key) bool {
		return slices.ContainsFunc(b.staticKeys(), func(other Key) bool { return sameMaterial(k.Material, other.Material) })
	})
}

// Verifier decides which tokens are accepted. It is safe for concurrent use.
type Verifier struct {
	resource    string
	issuers     map[string]*Issuer
	compiler    *topic.Compiler
	limits      rar.Limits
	maxBytes    int
	revocations Revocations
	now         func() time.Time
	checks      []check
	cache       *cache
}

// NewVerifier returns a Verifier, or the error of Options.Validate.
func NewVerifier(o Options) (*Verifier, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	v := &Verifier{
		resource:    o.Resource,
		issuers:     make(map[string]*Issuer, len(o.Issuers)),
		compiler:    o.Compiler,
		limits:      o.Limits,
		maxBytes:    o.MaxBytes,
		revocations: o.Revocations,
		now:         o.Now,
		checks:      orderedChecks(),
	}
	for _, i := range o.Issuers {
		v.issuers[i.ID] = &i
	}
	if v.limits == (rar.Limits{}) {
		v.limits = rar.DefaultLimits()
	}
	if v.maxBytes == 0 {
		v.maxBytes = DefaultMaxBytes
	}
	if v.now == nil {
		v.now = time.Now
	}
	if o.CacheSize == 0 {
		o.CacheSize = DefaultCacheSize
	}
	v.cache = newCache(o.CacheSize)
	return v, nil
}

// Verify accepts or refuses a compact token for use at an endpoint that performs the action; an empty action stands for
// no particular endpoint. A refused token gives an *InvalidError of the first check that failed (TOK-23). An error that
// wraps ErrUnavailable says that the issuer's keys cannot be had. The claims are shared and read only. That the token
// grants the action on a topic is not judged here.
func (v *Verifier) Verify(ctx context.Context, compact string, endpoint rar.Action) (*Claims, error) {
	now := v.now()
	key, cacheable := v.cache.key(compact, endpoint, v.maxBytes)
	if cacheable {
		if c := v.recall(key, now); c != nil {
			return c, nil
		}
	}
	e := v.evaluate(compact, endpoint, now)
	for _, c := range v.checks {
		if err := c.run(ctx, e); err != nil {
			return nil, verdictError(c.name, err)
		}
	}
	if cacheable && e.version != 0 {
		v.cache.put(key, e.claims, e.version)
	}
	return e.claims, nil
}

// recall returns the claims of a token verified before, if all that can change since still holds.
func (v *Verifier) recall(key cacheKey, now time.Time) *Claims {
	c, version := v.cache.get(key)
	if c == nil {
		return nil
	}
	source, ok := v.issuers[c.Issuer].Keys.(VersionedSource)
	switch {
	case !ok, source.KeysVersion() != version, c.expired(now), early(c.NotBefore, now), v.revoked(c):
		v.cache.drop(key)
		return nil
	}
	return c
}

func (v *Verifier) revoked(c *Claims) bool { return v.revocations != nil && v.revocations.Revoked(c) }

func (v *Verifier) evaluate(compact string, endpoint rar.Action, now time.Time) *evaluation {
	return &evaluation{v: v, compact: compact, endpoint: endpoint, now: now, claims: &Claims{}}
}

// verdictError turns what a check returned into the error of Verify.
func verdictError(name Check, err error) error {
	if reason, ok := errors.AsType[reasonError](err); ok {
		return &InvalidError{Check: name, Reason: string(reason)}
	}
	return fmt.Errorf("check %s: %w", name, err)
}
