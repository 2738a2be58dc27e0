// Package secretfile keeps the secret of a data folder: 32 random bytes that seal keys at rest and from which other keys are derived.
//
// The file holds one line, "cinnabar-secret-v1:" and the bytes in base64url without padding, and has mode 0600; a looser mode is an
// error. It is written once and never changed: a store that was sealed with a secret cannot be read without it, so a backup of a store needs
// its secret file, kept apart.
//
// LoadOrCreate is safe for several processes that start at once: exactly one of them makes the secret and all return the same.
// What the secret is used for is not decided here (see seal).
package secretfile
