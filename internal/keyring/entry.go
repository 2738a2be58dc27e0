package keyring

import (
	"context"
	"errors"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// State is where a key is in its life.
type State string

// The states of a key.
const (
	Next     State = "next"
	Active   State = "active"
	Retiring State = "retiring"
	Gone     State = "gone"
)

// Entry is one key as it is stored.
type Entry struct {
	// KeyID is the RFC 7638 thumbprint of the public key.
	KeyID string
	// Issuer is the issuer that signs with it, and no other.
	Issuer string
	// Algorithm is ES256, EdDSA or RS256.
	Algorithm string
	// Actions is the family.
	Actions rar.ActionSet
	// Private is the private JWK in JSON. A store seals it at rest.
	Private []byte
	// CreatedAt is when the key was made and published.
	CreatedAt time.Time
	// ActivatesAt is when it begins to sign.
	ActivatesAt time.Time
	// RetiresAt is when it stops signing; zero: not planned.
	RetiresAt time.Time
	// ExpiresAt is when its tokens are no longer accepted; zero: not planned.
	ExpiresAt time.Time
}

// State returns the state of the key at an instant.
func (e Entry) State(now time.Time) State {
	switch {
	case !e.ExpiresAt.IsZero() && !now.Before(e.ExpiresAt):
		return Gone
	case !e.RetiresAt.IsZero() && !now.Before(e.RetiresAt):
		return Retiring
	case now.Before(e.ActivatesAt):
		return Next
	}
	return Active
}

// ErrConflict is what a Store returns when the keys changed since they were loaded.
var ErrConflict = errors.New("keyring: keys changed meanwhile")

// Store keeps the keys of issuers. Implementations are safe for concurrent use by several processes.
type Store interface {
	// LoadKeys returns all keys of the issuer and the version of the set, which differs after every change; none is not an error.
	LoadKeys(ctx context.Context, issuer string) (entries []Entry, version int64, err error)
	// SaveKeys replaces all keys of the issuer, or returns ErrConflict with nothing changed unless version is current.
	SaveKeys(ctx context.Context, issuer string, version int64, entries []Entry) error
}
