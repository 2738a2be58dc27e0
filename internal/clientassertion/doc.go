// Package clientassertion proves who a client is to an authorization server without a shared secret: private_key_jwt.
//
// It owns the form of the assertion (RFC 7523 sections 2.2 and 3) and the choice of its algorithm. It does not own requests, which
// the clients make themselves (packages session and revocation), nor the judging of assertions (package as).
//
// # Invariants
//
//   - An assertion names the issuer as its audience, which no other server accepts, unlike the address of an endpoint. It
//     lives for a minute and has an identifier of its own, so that it serves one request.
//   - No error contains key material.
//
// # Concurrency
//
// An [Asserter] is safe for concurrent use.
//
// References: RFC 7521; RFC 7523; RFC 7515; OpenID Connect Core, "Client Authentication".
package clientassertion
