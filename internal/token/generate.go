package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/lestrrat-go/jwx/v2/jwk"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// generatedRSABits is the size of RSA keys made here: 128 bits of strength, unlike the 2048 bits others' keys may have.
const generatedRSABits = 3072

// Generate makes a signing key for ES256, EdDSA or RS256. Its id is the RFC 7638 thumbprint of its public part.
func Generate(algorithm string) (SigningKey, error) {
	k := SigningKey{Algorithm: algorithm}
	var err error
	switch algorithm {
	case "ES256":
		k.Material, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "EdDSA":
		_, k.Material, err = ed25519.GenerateKey(rand.Reader)
	case "RS256":
		k.Material, err = rsa.GenerateKey(rand.Reader, generatedRSABits)
	default:
		return SigningKey{}, fmt.Errorf("%w: keys are made for ES256, EdDSA and RS256, not for %s", ErrKey, shown(algorithm))
	}
	if err != nil {
		return SigningKey{}, fmt.Errorf("make %s key: %w", algorithm, err)
	}
	public, err := jwk.FromRaw(publicOf(k.Material))
	if err != nil {
		return SigningKey{}, fmt.Errorf("encode key: %w", err)
	}
	sum, err := public.Thumbprint(crypto.SHA256)
	if err != nil {
		return SigningKey{}, fmt.Errorf("thumbprint: %w", err)
	}
	k.ID = base64.RawURLEncoding.EncodeToString(sum)
	return k, nil
}

// PrivateJWK encodes the key with its private members, for storage. ParseSigningKey reads it back.
func (k SigningKey) PrivateJWK() ([]byte, error) {
	return encodeJWK(k.Material, k.ID, k.Algorithm, nil)
}

// PublicJWK encodes a public key for publication, with kid, alg, use and mercure_actions. A secret is an error.
func (k Key) PublicJWK() ([]byte, error) {
	if _, secret := k.Material.([]byte); secret {
		return nil, fmt.Errorf("%w: a secret is not published", ErrKey)
	}
	return encodeJWK(k.Material, k.ID, k.Algorithm, k.serves().Slice())
}

// PublicJWKSet encodes the public part of the key for publication, as a JWK Set with this one member. A secret is an error.
func (k SigningKey) PublicJWKSet() ([]byte, error) {
	public, err := k.Public()
	if err != nil {
		return nil, err
	}
	member, err := public.PublicJWK()
	if err != nil {
		return nil, err
	}
	set, err := json.Marshal(map[string][]json.RawMessage{"keys": {member}})
	if err != nil {
		return nil, fmt.Errorf("encode key set: %w", err)
	}
	return set, nil
}

func encodeJWK(material any, id, algorithm string, actions []rar.Action) ([]byte, error) {
	key, err := jwk.FromRaw(material)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	members := map[string]any{jwk.KeyIDKey: id, jwk.AlgorithmKey: algorithm, jwk.KeyUsageKey: "sig"}
	if actions != nil {
		members[MemberActions] = actions
	}
	for name, value := range members {
		if err := key.Set(name, value); err != nil {
			return nil, fmt.Errorf("set %s: %w", name, err)
		}
	}
	data, err := json.Marshal(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return data, nil
}
