package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rsa"
	"fmt"
	"math/big"
)

// Bounds of RSA moduli in bits. RFC 7518 section 3.3 demands 2048; beyond 8192 one verification costs milliseconds.
const (
	minRSABits = 2048
	maxRSABits = 8192
)

type family uint8

const (
	familyHMAC family = iota + 1
	familyRSA
	familyPSS
	familyECDSA
	familyEdDSA
)

// algorithm is one entry of the allow-list (TOK-03, TOK-06): what a key for it must be and how a signature is checked.
type algorithm struct {
	name   string
	family family
	hash   crypto.Hash
	curve  elliptic.Curve
}

// algorithmByName is the allow-list itself. "none" and everything unknown is absent by construction (TOK-04), and the
// family decides the Go type of the key, so that a public key can never serve as an HMAC secret (TOK-05).
func algorithmByName(name string) (algorithm, bool) {
	a := algorithm{name: name}
	switch name {
	case "HS256", "HS384", "HS512":
		a.family = familyHMAC
	case "RS256", "RS384", "RS512":
		a.family = familyRSA
	case "PS256", "PS384", "PS512":
		a.family = familyPSS
	case "ES256":
		a.family, a.curve = familyECDSA, elliptic.P256()
	case "ES384":
		a.family, a.curve = familyECDSA, elliptic.P384()
	case "ES512":
		a.family, a.curve = familyECDSA, elliptic.P521()
	case "EdDSA", "Ed25519": // RFC 8037 section 3.1; RFC 9864 names the curve
		a.name, a.family = "EdDSA", familyEdDSA
		return a, true
	default:
		return algorithm{}, false
	}
	switch name[2:] {
	case "256":
		a.hash = crypto.SHA256
	case "384":
		a.hash = crypto.SHA384
	case "512":
		a.hash = crypto.SHA512
	}
	return a, true
}

// fits says whether public is a usable public key, or secret, for the algorithm; the error tells an operator what to do.
func (a algorithm) fits(public any) error {
	switch key := public.(type) {
	case []byte:
		if a.family != familyHMAC {
			return fmt.Errorf("%w: %s needs a public key, not a secret", ErrKey, a.name)
		}
		if need := a.hash.Size(); len(key) < need {
			return fmt.Errorf("%w: the secret has %d bytes, %s needs at least %d (for example: openssl rand -hex %d)",
				ErrKey, len(key), a.name, need, need)
		}
		return nil
	case *rsa.PublicKey:
		if a.family != familyRSA && a.family != familyPSS {
			return fmt.Errorf("%w: this is an RSA key, which does not fit %s", ErrKey, a.name)
		}
		return checkRSA(key)
	case *ecdsa.PublicKey:
		if a.family != familyECDSA || key.Curve != a.curve {
			return fmt.Errorf("%w: this is an elliptic curve key (%s), which does not fit %s", ErrKey, curveName(key.Curve), a.name)
		}
		if _, err := key.ECDH(); err != nil {
			return fmt.Errorf("%w: the point is not on the curve", ErrKey)
		}
		return nil
	case ed25519.PublicKey:
		if a.family != familyEdDSA {
			return fmt.Errorf("%w: this is an Ed25519 key, which does not fit %s", ErrKey, a.name)
		}
		if len(key) != ed25519.PublicKeySize {
			return fmt.Errorf("%w: an Ed25519 key has %d bytes, not %d", ErrKey, ed25519.PublicKeySize, len(key))
		}
		return nil
	default:
		return fmt.Errorf("%w: unsupported kind of key", ErrKey)
	}
}

// verify checks a signature over input. The caller has made sure that the key fits; a key of another kind never verifies.
func (a algorithm) verify(public any, input, signature []byte) bool {
	switch key := public.(type) {
	case []byte:
		if a.family != familyHMAC {
			return false
		}
		mac := hmac.New(a.hash.New, key)
		mac.Write(input)
		return hmac.Equal(mac.Sum(nil), signature)
	case *rsa.PublicKey:
		switch a.family {
		case familyRSA:
			return rsa.VerifyPKCS1v15(key, a.hash, a.digest(input), signature) == nil
		case familyPSS: // RFC 7518 section 3.5: the salt is as long as the hash
			opts := &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}
			return rsa.VerifyPSS(key, a.hash, a.digest(input), signature, opts) == nil
		case familyHMAC, familyECDSA, familyEdDSA:
			return false
		}
		return false
	case *ecdsa.PublicKey:
		if a.family != familyECDSA || key.Curve != a.curve {
			return false
		}
		size := (a.curve.Params().BitSize + 7) / 8
		if len(signature) != 2*size { // RFC 7518 section 3.4: two integers of fixed length
			return false
		}
		r, s := new(big.Int).SetBytes(signature[:size]), new(big.Int).SetBytes(signature[size:])
		return ecdsa.Verify(key, a.digest(input), r, s)
	case ed25519.PublicKey:
		return a.family == familyEdDSA && len(key) == ed25519.PublicKeySize && ed25519.Verify(key, input, signature)
	default:
		return false
	}
}

func (a algorithm) digest(input []byte) []byte {
	h := a.hash.New()
	h.Write(input)
	return h.Sum(nil)
}

// algorithmOf names the algorithm of a public key that comes without one. A curve has exactly one; for RSA it is RS256,
// which RFC 9068 section 4 makes every authorization server support.
func algorithmOf(public any) string {
	switch key := public.(type) {
	case *rsa.PublicKey:
		return "RS256"
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P256():
			return "ES256"
		case elliptic.P384():
			return "ES384"
		case elliptic.P521():
			return "ES512"
		}
	case ed25519.PublicKey:
		return "EdDSA"
	}
	return ""
}

// publicOf is the part of signing material that verifies; a secret is its own.
func publicOf(private any) any {
	switch key := private.(type) {
	case []byte:
		return key
	case *rsa.PrivateKey:
		return &key.PublicKey
	case *ecdsa.PrivateKey:
		return &key.PublicKey
	case ed25519.PrivateKey:
		if len(key) != ed25519.PrivateKeySize {
			return nil
		}
		return ed25519.PublicKey(key[ed25519.PrivateKeySize-ed25519.PublicKeySize:])
	default:
		return nil
	}
}

func checkRSA(key *rsa.PublicKey) error {
	if key == nil || key.N == nil {
		return fmt.Errorf("%w: the RSA key has no modulus", ErrKey)
	}
	if bits := key.N.BitLen(); bits < minRSABits || bits > maxRSABits {
		return fmt.Errorf("%w: the RSA key has %d bits; %d to %d are accepted", ErrKey, bits, minRSABits, maxRSABits)
	}
	if key.E < 3 || key.E%2 == 0 {
		return fmt.Errorf("%w: the RSA key has a bad exponent", ErrKey)
	}
	return nil
}

func curveName(c elliptic.Curve) string {
	if c == nil {
		return "no curve"
	}
	return c.Params().Name
}
