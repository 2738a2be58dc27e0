package token

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/lestrrat-go/jwx/v2/jwk"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// MemberActions is the member of our JSON Web Keys that lists the actions a key serves.
const MemberActions = "mercure_actions"

// Bounds of a JSON Web Key Set.
const (
	maxSetKeys  = 64
	maxKidBytes = 256
)

// errSkip marks a member of a set that RFC 7517 section 5 wants ignored: of a kind, curve or use that is not ours.
var errSkip = errors.New("not for signing tokens, by its kind, curve, algorithm, use or actions")

// ParseJWKSet reads the signature keys of a JSON Web Key Set (RFC 7517 section 5). Members of unknown kinds, for
// encryption, or for none of the actions are left out. The whole set is refused when it is not strict JSON, has
// symmetric or private keys, odd or repeated kids, weak or malformed keys, or more than 64 members. A key serves the actions of its
// mercure_actions member, or all without one, intersected with actions; 0 means no restriction. Errors wrap ErrKey.
func ParseJWKSet(data []byte, actions rar.ActionSet) ([]Key, error) {
	var members []jsontext.Value
	found := false
	err := readObject(data, func(name string, v jsontext.Value) error {
		if name != "keys" {
			return nil
		}
		found = true
		return readArray(v, func(member jsontext.Value) error {
			if len(members) == maxSetKeys {
				return fmt.Errorf("more than %d keys", maxSetKeys)
			}
			members = append(members, member.Clone())
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("%w: not a JWK Set: %w", ErrKey, err)
	}
	if !found {
		return nil, fmt.Errorf("%w: not a JWK Set: no member \"keys\"", ErrKey)
	}
	return parseMembers(members, Key{Actions: actions}.serves())
}

func parseMembers(members []jsontext.Value, allowed rar.ActionSet) ([]Key, error) {
	var keys []Key
	seen := make(map[string]bool, len(members))
	for i, member := range members {
		k, err := parseMember(member)
		if errors.Is(err, errSkip) {
			continue
		}
		if err == nil && k.ID != "" && seen[k.ID] {
			err = fmt.Errorf("%w: the kid %s is there twice", ErrKey, shown(k.ID))
		}
		if err != nil {
			return nil, fmt.Errorf("key %d of the set: %w", i, err)
		}
		seen[k.ID] = true
		if k.Actions = k.serves() & allowed; k.Actions != 0 {
			keys = append(keys, k)
		}
	}
	return keys, nil
}

// parseMember reads a member of a set. A set is a published document: what must stay secret has no place there, and a key
// whose secret part is there can be anybody's.
func parseMember(data []byte) (Key, error) {
	m, err := readJWK(data)
	switch {
	case err != nil:
		return Key{}, fmt.Errorf("%w: not a JWK: %w", ErrKey, err)
	case m.kty == "oct":
		return Key{}, fmt.Errorf("%w: a symmetric key does not belong in a set", ErrKey)
	case m.private:
		return Key{}, fmt.Errorf("%w: a private key does not belong in a set", ErrKey)
	}
	k, err := parseJWK(data)
	if err != nil {
		return Key{}, err
	}
	return finishKey(k)
}

// looksLikeJWK tells a JSON object from a secret that happens to begin with a brace.
func looksLikeJWK(text []byte) bool {
	stop := errors.New("found")
	err := readObject(text, func(name string, _ jsontext.Value) error {
		if name == "kty" || name == "keys" {
			return stop
		}
		return nil
	})
	return errors.Is(err, stop)
}

// jwkMembers are the members of a JWK that are ours to judge; the rest is for the JWK library.
type jwkMembers struct {
	kid, alg, kty, crv, use string
	keyOps                  []string
	actions                 rar.ActionSet
	hasActions, hasOps      bool
	set, private            bool // whether the members keys and d are there
}

func readJWK(data []byte) (m jwkMembers, err error) {
	err = readObject(data, func(name string, v jsontext.Value) (err error) {
		switch name {
		case "kid":
			m.kid, err = readString(v)
		case "alg":
			m.alg, err = readString(v)
		case "kty":
			m.kty, err = readString(v)
		case "crv":
			m.crv, err = readString(v)
		case "use":
			m.use, err = readString(v)
		case "keys":
			m.set = true
		case "d":
			m.private = true
		case "key_ops":
			m.hasOps = true
			m.keyOps, err = readStrings(v)
		case MemberActions:
			m.hasActions = true
			var names []string
			names, err = readStrings(v)
			for _, n := range names {
				m.actions.Add(rar.Action(n))
			}
		}
		if err != nil {
			return fmt.Errorf("member %s: %w", name, err)
		}
		return nil
	})
	return m, err
}

// ours says whether the key is of a kind, curve and use that signs tokens: errSkip when it is merely for something else.
func (m jwkMembers) ours() error {
	switch {
	case m.set:
		return fmt.Errorf("%w: this is a JWK Set, not a single JWK", ErrKey)
	case m.use != "" && m.use != "sig", m.hasActions && m.actions == 0, m.hasOps && !signs(m.keyOps):
		return errSkip
	}
	if len(m.kid) > maxKidBytes {
		return fmt.Errorf("%w: the kid is longer than %d bytes", ErrKey, maxKidBytes)
	}
	for i := range len(m.kid) {
		if c := m.kid[i]; c < 0x20 || c > 0x7e {
			return fmt.Errorf("%w: the kid has characters beyond printable ASCII", ErrKey)
		}
	}
	switch m.kty {
	case "RSA", "oct":
		return nil
	case "EC":
		if m.crv == "P-256" || m.crv == "P-384" || m.crv == "P-521" {
			return nil
		}
	case "OKP":
		if m.crv == "Ed25519" {
			return nil
		}
	}
	return errSkip
}

func signs(ops []string) bool { return slices.Contains(ops, "verify") || slices.Contains(ops, "sign") }

// parseJWK reads one JWK and keeps its public part. It returns errSkip for keys that are for something else.
func parseJWK(data []byte) (Key, error) {
	m, err := readJWK(data)
	if err != nil {
		return Key{}, fmt.Errorf("%w: not a JWK: %w", ErrKey, err)
	}
	if err := m.ours(); err != nil {
		if errors.Is(err, errSkip) {
			return Key{}, fmt.Errorf("%w: this JWK of type %s is %w", ErrKey, shown(m.kty), err)
		}
		return Key{}, err
	}
	k := Key{ID: m.kid, Actions: m.actions}
	if m.alg != "" {
		a, ok := algorithmByName(m.alg)
		if !ok {
			return Key{}, fmt.Errorf("%w: this JWK for the algorithm %s is %w", ErrKey, shown(m.alg), errSkip)
		}
		k.Algorithm = a.name
	}
	k.Material, err = rawMaterial(data)
	if err != nil {
		return Key{}, err
	}
	if public := publicOf(k.Material); public != nil {
		k.Material = public
	}
	return k, nil
}

// rawMaterial lets the JWK library decode the numbers.
func rawMaterial(data []byte) (any, error) {
	parsed, err := jwk.ParseKey(data)
	if err != nil { // its text may quote members: private ones among them
		return nil, fmt.Errorf("%w: the JWK has missing or malformed members", ErrKey)
	}
	var raw any
	if err := parsed.Raw(&raw); err != nil {
		return nil, fmt.Errorf("%w: the JWK has missing or malformed members", ErrKey)
	}
	switch key := raw.(type) {
	case []byte, *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey, *rsa.PrivateKey, *ecdsa.PrivateKey, ed25519.PrivateKey:
		return key, nil
	default:
		return nil, fmt.Errorf("%w: unsupported kind of JWK", ErrKey)
	}
}
