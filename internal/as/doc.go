// Package as is the authorization server: it decides who may be granted what at a hub, signs people in, asks their
// consent, and issues authorization codes and access tokens.
//
// It owns the validation of authorization and token requests, client authentication, redirect URI matching, policy, the steps
// of an interaction, the grants and codes, and the content of tokens. It does not own HTTP pages, cookies or routes (package
// ashttp), the database (package store), passwords (package account), signing keys (package keyring), the encoding and signing
// of a token (package token), or the meaning of authorization details (package rar).
//
// # What fosite does and what it does not
//
// fosite v0.49.0 is the state machine of the grants and nothing else: it makes codes, binds them to client, redirect URI and
// PKCE challenge, and orders the steps of an exchange. Everything in front of it and behind it is ours, because its own parts
// have quirks that pin_test.go documents: the parameter gate (params.go, authorize.go), client authentication
// (clientauth.go), redirect URI matching (redirect.go), access tokens (strategy.go), storage (storage.go), authorization
// details (details.go), and the errors (errors.go). Requests reach it rebuilt from validated values, never as they came.
//
// # An authorization request
//
//	GET /authorize ── Authorize ── validated request, ceiling of the client ── dispatch
//	dispatch: signed in?  no ─► /login   ─┐
//	          consented?  no ─► /consent ─┤ each returns to /authorize?interaction=…, never to the other
//	          issue: grant and code in one transaction ─► redirect to the client
//
// The interaction is a record in the store, bound to the browser that started it by a secret in that browser's cookie.
//
// # Invariants
//
//   - Nothing is redirected to before client and redirect URI are proven.
//   - Every token's details lie within the grant, and the grant within what policy gave to this account through this client.
//     No policy, no grant.
//   - A code is redeemed once: the store's compare-and-set decides, not this package. A failed client authentication or
//     PKCE check leaves it redeemable.
//   - The issuer, endpoints and audiences come from configuration alone, never from a request.
//   - Secrets (codes, tokens, cookies, passwords, verifiers, assertions) are neither logged nor stored in clear.
//
// # Concurrency
//
// A Server is safe for concurrent use; it has no goroutine but the one that calls Run. All state is in the store, so several
// processes can serve one issuer.
//
// References: RFC 6749, RFC 7523, RFC 7636, RFC 8252, RFC 8414, RFC 8707, RFC 9068, RFC 9207, RFC 9396, RFC 9700.
package as
