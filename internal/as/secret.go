package as

import "crypto/sha256"

// NewSecret draws a client secret of 256 random bits and returns it with what the store keeps of it.
func NewSecret() (secret string, hash []byte) {
	secret = newSecret()
	return secret, HashSecret(secret)
}

// HashSecret is what the store keeps of a client secret, and as such store.Client.SecretHash. A plain SHA-256 is enough for what
// has the entropy of a key; it is not for passwords.
func HashSecret(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
