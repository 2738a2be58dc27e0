package token

import (
	"bytes"
	"context"
	"crypto"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// Key is one trusted key of one issuer. Its algorithm is part of the key: a token whose alg differs is refused, whatever
// the key could do (TOK-05).
type Key struct {
	// ID is the kid; empty when the key has none.
	ID string
	// Algorithm is a JWS algorithm name of the allow-list.
	Algorithm string
	// Material is an *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey, or the []byte secret of an HMAC algorithm.
	Material any
	// Actions is the set of actions the key serves; 0 means all.
	Actions rar.ActionSet
}

// serves is Actions with 0 spelled out.
func (k Key) serves() rar.ActionSet {
	if k.Actions == 0 {
		return allActions()
	}
	return k.Actions
}

// same says whether two keys are the same key for the same algorithm, whatever they serve.
func (k Key) same(other Key) bool {
	return k.Algorithm == other.Algorithm && sameMaterial(k.Material, other.Material)
}

func allActions() rar.ActionSet { return rar.Actions(rar.Publish, rar.Subscribe) }

func sameMaterial(a, b any) bool {
	if secret, ok := a.([]byte); ok {
		other, ok := b.([]byte)
		return ok && bytes.Equal(secret, other)
	}
	public, ok := a.(interface{ Equal(x crypto.PublicKey) bool })
	return ok && public.Equal(b)
}

// KeySource has the trusted keys of one issuer. Implementations are safe for concurrent use and never take anything but
// the kid from a token (TOK-08 to TOK-11).
type KeySource interface {
	// Keys returns the keys that may have signed a token with this kid, which is a hint and may be empty. No key at all
	// is not an error. An error wraps ErrUnavailable and says nothing about the token. The slice is read only.
	Keys(ctx context.Context, kid string) ([]Key, error)
}

// VersionedSource is a KeySource that can tell when its keys have changed. Verdicts on tokens of other sources are
// not cached.
type VersionedSource interface {
	KeySource
	// KeysVersion is a number that differs after every change; 0 means that only Keys can tell.
	KeysVersion() uint64
}

// Static is a KeySource of keys that never change. Keys of equal material and algorithm become one that serves the actions
// of all. A kid that names none of the keys selects all of them: who configures keys by hand need not know kids.
func Static(keys ...Key) KeySource {
	s := &staticSource{}
	for _, k := range keys {
		s.add(k)
	}
	return s
}

type staticSource struct{ keys []Key }

func (s *staticSource) add(k Key) {
	if a, ok := algorithmByName(k.Algorithm); ok {
		k.Algorithm = a.name
	}
	for i, have := range s.keys {
		if have.same(k) && (have.ID == k.ID || have.ID == "" || k.ID == "") {
			s.keys[i].Actions = have.serves() | k.serves()
			if have.ID == "" {
				s.keys[i].ID = k.ID
			}
			return
		}
	}
	s.keys = append(s.keys, k)
}

// Keys implements KeySource.
func (s *staticSource) Keys(_ context.Context, kid string) ([]Key, error) {
	if named := withID(s.keys, kid); len(named) > 0 {
		return named, nil
	}
	return s.keys, nil
}

// KeysVersion implements VersionedSource.
func (s *staticSource) KeysVersion() uint64 { return 1 }

// withID selects the keys that bear kid; an empty kid names none.
func withID(keys []Key, kid string) []Key {
	if kid == "" {
		return nil
	}
	var named []Key
	for _, k := range keys {
		if k.ID == kid {
			named = append(named, k)
		}
	}
	return named
}
