// Package token mints and verifies access tokens (RFC 9068). What it mints is what it accepts.
//
// It owns the ordered list of checks that decides about a token, the form of trusted keys and where they come from (given
// by hand, or discovered from an authorization server), and the form of the tokens issued here. It does not own the life of
// signing keys (package keyring), the evaluation of grants (package rar), who may have a token (package as), nor how a
// token travels in a request (package hubhttp).
//
// # Invariants
//
//   - There is one list of checks. [Verifier.Verify] stops at the first that fails; [Verifier.Inspect] runs the same
//     list and reports every verdict. Nothing else judges tokens.
//   - A token chooses among the trusted keys of its own issuer and adds none: kid is a hint, and jwk, jku, x5u and x5c are
//     not even read (TOK-08 to TOK-13).
//   - The algorithm belongs to the key, and the Go type of the key to the algorithm, so that no token can make a public key
//     serve as a secret (TOK-05).
//   - A remembered verdict holds only while exp, nbf, revocation and the issuer's keys say so.
//   - Reasons and errors contain neither tokens, nor key material, nor topics.
//
// # Concurrency
//
// [Verifier], [Discovery] and key sources are safe for concurrent use. No goroutine is started.
//
// References: RFC 7515, 7517, 7518, 7519, 7638, 8037, 8414, 8725, 9068, 9396; Mercure, "Token Validation".
package token
