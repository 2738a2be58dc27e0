package as

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// secretBytes is the length of the random identifiers: 256 bits.
const secretBytes = 32

// NewClientSecret draws a client secret of 256 random bits and returns it with what the store keeps of it.
func NewClientSecret() (secret string, hash []byte) {
	secret = newSecret()
	return secret, HashClientSecret(secret)
}

// HashClientSecret is what the store keeps of a client secret, and as such store.Client.SecretHash. A plain SHA-256 is enough for what
// has the entropy of a key; it is not for passwords.
func HashClientSecret(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// newSecret returns 256 random bits in base64url.
func newSecret() string {
	var b [secretBytes]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// newID returns an identifier that need not be secret: a prefix and 128 random bits.
func newID(prefix string) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + base64.RawURLEncoding.EncodeToString(b[:])
}

func isSecret(s string) bool {
	return isBase64URL(s, base64.RawURLEncoding.EncodedLen(secretBytes))
}

// hashSecret is under which a secret is stored. It has the entropy of a key, so a plain hash is enough.
func hashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
