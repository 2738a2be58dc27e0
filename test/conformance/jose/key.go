package jose

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	// The hash functions that crypto.Hash names.
	_ "crypto/sha256"
	_ "crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"hash"
	"math/big"
	"strings"
)

// ErrKey means that a key cannot be used.
var ErrKey = errors.New("jose: unusable key")

// Key signs with one algorithm. The zero value cannot sign.
type Key struct {
	Alg string
	Kid string // sent in the header unless empty

	secret  []byte
	private crypto.Signer
}

// algorithm is how one of the names is computed.
type algorithm struct {
	kind string // HS, RS, PS, ES, EdDSA
	hash crypto.Hash
	size int // bytes of one number of an ES signature
}

func algorithms() map[string]algorithm {
	return map[string]algorithm{
		"HS256": {"HS", crypto.SHA256, 0}, "HS384": {"HS", crypto.SHA384, 0}, "HS512": {"HS", crypto.SHA512, 0},
		"RS256": {"RS", crypto.SHA256, 0}, "RS384": {"RS", crypto.SHA384, 0}, "RS512": {"RS", crypto.SHA512, 0},
		"PS256": {"PS", crypto.SHA256, 0}, "PS384": {"PS", crypto.SHA384, 0}, "PS512": {"PS", crypto.SHA512, 0},
		"ES256": {"ES", crypto.SHA256, 32}, "ES384": {"ES", crypto.SHA384, 48}, "ES512": {"ES", crypto.SHA512, 66},
		"EdDSA": {"EdDSA", 0, 0},
	}
}

// Generate makes a key for an algorithm. An RSA key has 2,048 bits, a secret as many as the hash.
func Generate(alg string) (Key, error) {
	a, ok := algorithms()[alg]
	if !ok {
		return Key{}, fmt.Errorf("%w: algorithm %q", ErrKey, alg)
	}
	k := Key{Alg: alg}
	var err error
	switch a.kind {
	case "HS":
		k.secret = make([]byte, a.hash.Size())
		_, err = rand.Read(k.secret)
	case "RS", "PS":
		k.private, err = rsa.GenerateKey(rand.Reader, 2048)
	case "ES":
		k.private, err = ecdsa.GenerateKey(map[int]elliptic.Curve{32: elliptic.P256(), 48: elliptic.P384(), 66: elliptic.P521()}[a.size], rand.Reader)
	case "EdDSA":
		_, k.private, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		return Key{}, fmt.Errorf("jose: generate key: %w", err)
	}
	return k, nil
}

// Parse reads a key: the bytes of a shared secret (HS algorithms; line breaks at the end do not belong to it), or a private
// key as PEM (PKCS #8, PKCS #1 or SEC 1) or as a JSON Web Key.
func Parse(alg, kid string, raw []byte) (Key, error) {
	a, ok := algorithms()[alg]
	if !ok {
		return Key{}, fmt.Errorf("%w: algorithm %q", ErrKey, alg)
	}
	k := Key{Alg: alg, Kid: kid}
	var err error
	switch {
	case a.kind == "HS" && !json.Valid(raw):
		k.secret = bytes.TrimRight(raw, "\r\n")
	case strings.HasPrefix(strings.TrimSpace(string(raw)), "{"):
		k, err = parseJWK(k, raw)
	default:
		k.private, err = parsePEM(raw)
	}
	if err != nil {
		return Key{}, err
	}
	if !k.fits(a) {
		return Key{}, fmt.Errorf("%w: it does not fit %s", ErrKey, alg)
	}
	return k, nil
}

func (k Key) fits(a algorithm) bool {
	switch p := k.private.(type) {
	case *rsa.PrivateKey:
		return a.kind == "RS" || a.kind == "PS"
	case *ecdsa.PrivateKey:
		return a.kind == "ES" && (p.Curve.Params().BitSize+7)/8 == a.size
	case ed25519.PrivateKey:
		return a.kind == "EdDSA"
	default:
		return a.kind == "HS" && len(k.secret) > 0
	}
}

func parsePEM(raw []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, fmt.Errorf("%w: neither PEM nor a JSON Web Key", ErrKey)
	}
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		if s, ok := key.(crypto.Signer); ok {
			return s, nil
		}
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	return nil, fmt.Errorf("%w: PEM block %q holds no private key", ErrKey, block.Type)
}

func parseJWK(k Key, raw []byte) (Key, error) {
	var m struct{ Kty, Kid, Crv, K, D, X, Y, N, E, P, Q string }
	if err := json.Unmarshal(raw, &m); err != nil {
		return Key{}, fmt.Errorf("%w: JSON Web Key: %w", ErrKey, err)
	}
	if k.Kid == "" {
		k.Kid = m.Kid
	}
	b := func(s string) []byte {
		v, err := base64.RawURLEncoding.DecodeString(s)
		if err != nil {
			return nil
		}
		return v
	}
	n := func(s string) *big.Int { return new(big.Int).SetBytes(b(s)) }
	switch m.Kty {
	case "oct":
		k.secret = b(m.K)
	case "OKP":
		if d := b(m.D); m.Crv == "Ed25519" && len(d) == ed25519.SeedSize {
			k.private = ed25519.NewKeyFromSeed(d)
		}
	case "EC":
		curve := map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}[m.Crv]
		if curve != nil && m.D != "" {
			if p, err := ecdsa.ParseRawPrivateKey(curve, b(m.D)); err == nil {
				k.private = p
			}
		}
	case "RSA":
		p := &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: n(m.N), E: int(n(m.E).Int64())}, D: n(m.D), Primes: []*big.Int{n(m.P), n(m.Q)}}
		if p.Validate() == nil {
			p.Precompute()
			k.private = p
		}
	}
	if k.secret == nil && k.private == nil {
		return Key{}, fmt.Errorf("%w: a JSON Web Key of type %q without a usable private part", ErrKey, m.Kty)
	}
	return k, nil
}

// Zero says whether there is no key.
func (k Key) Zero() bool { return k.secret == nil && k.private == nil }

// Symmetric says whether signing and verifying use the same secret.
func (k Key) Symmetric() bool { return k.private == nil }

// Secret is the shared secret of a symmetric key.
func (k Key) Secret() []byte { return k.secret }

// Same says whether both are the same key.
func (k Key) Same(other Key) bool {
	if k.Zero() || other.Zero() || k.Symmetric() != other.Symmetric() {
		return false
	}
	if k.Symmetric() {
		return hmac.Equal(k.secret, other.secret)
	}
	pub, ok := k.private.Public().(interface{ Equal(x crypto.PublicKey) bool })
	return ok && pub.Equal(other.private.Public())
}

// Public is the public key of an asymmetric one.
func (k Key) Public() crypto.PublicKey {
	if k.private == nil {
		return nil
	}
	return k.private.Public()
}

// PublicDER is the public key as SubjectPublicKeyInfo.
func (k Key) PublicDER() ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(k.Public())
	if err != nil {
		return nil, fmt.Errorf("jose: encode public key: %w", err)
	}
	return der, nil
}

// PublicPEM is PublicDER in a PEM block.
func (k Key) PublicPEM() ([]byte, error) {
	der, err := k.PublicDER()
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

// PrivatePEM is the private key as PKCS #8.
func (k Key) PrivatePEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return nil, fmt.Errorf("jose: encode private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// HMAC is a key for an HS algorithm over any bytes, such as those of a public key.
func HMAC(alg, kid string, secret []byte) Key { return Key{Alg: alg, Kid: kid, secret: secret} }

// Sign signs by the key's algorithm.
func (k Key) Sign(input []byte) ([]byte, error) {
	a := algorithms()[k.Alg]
	if k.Zero() || !k.fits(a) {
		return nil, fmt.Errorf("%w: it does not fit %q", ErrKey, k.Alg)
	}
	if a.kind == "HS" {
		h := hmac.New(func() hash.Hash { return a.hash.New() }, k.secret)
		h.Write(input)
		return h.Sum(nil), nil
	}
	digest := input
	var opts crypto.SignerOpts = a.hash
	if a.kind != "EdDSA" {
		h := a.hash.New()
		h.Write(input)
		digest = h.Sum(nil)
	}
	switch p := k.private.(type) {
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, p, digest)
		if err != nil {
			return nil, fmt.Errorf("jose: sign: %w", err)
		}
		out := make([]byte, 2*a.size)
		r.FillBytes(out[:a.size])
		s.FillBytes(out[a.size:])
		return out, nil
	case *rsa.PrivateKey:
		if a.kind == "PS" {
			opts = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: a.hash}
		}
	}
	sig, err := k.private.Sign(rand.Reader, digest, opts)
	if err != nil {
		return nil, fmt.Errorf("jose: sign: %w", err)
	}
	return sig, nil
}
