// Package seal encrypts small secrets at rest: private signing keys, cookie keys, client secrets.
//
// A Sealer derives one AES-256-GCM key per purpose from the data folder's secret (HKDF-SHA-256, RFC 5869), so that what was sealed
// for one purpose never opens for another, and binds each sealed value to the identifier of the record it belongs to, so that sealed
// values cannot be swapped between records. It does not own the secret (see secretfile) and does not store anything.
//
// A sealed value is one version byte, a random 12-byte nonce, and the ciphertext with its 16-byte tag. Nonces are random: a
// purpose must not seal more than 2^32 values under one secret (NIST SP 800-38D section 8.3).
//
// A Sealer is immutable and safe for concurrent use.
package seal
