// Package as is the authorization server: it decides who may be granted what at a hub, signs people in, asks their
// consent, issues authorization codes, access tokens and refresh tokens, and takes them back.
//
// It owns the validation of authorization requests (pushed ones too) and token requests, client authentication, redirect URI
// matching, policy, the steps of an interaction, the grants, codes and refresh tokens, the content of tokens, revocation, and what
// an operator's commands may do to all of it (Admin). It does not own HTTP pages, cookies or routes (package
// ashttp), the database (package store), passwords (package account), signing keys (package keyring), the encoding and signing
// of a token (package token), or the meaning of authorization details (package rar).
//
// # What fosite does and what it does not
//
// fosite v0.49.0 is the state machine of the code grant and the pipeline of the token endpoint, and nothing else: it makes codes, binds
// them to client, redirect URI and PKCE challenge, and orders the steps of an exchange. Everything in front of it and behind it is
// ours, because its own parts have quirks that pin_test.go documents: the parameter gate (params.go, authorize.go), pushed requests
// (push.go), client authentication (clientauth.go, assertion.go), redirect URI matching (redirect.go), access tokens (strategy.go),
// storage (storage.go), authorization details (details.go), revocation (revoke.go), and the errors (errors.go). Requests reach it
// rebuilt from validated values, never as they came.
//
// The grants refresh_token and client_credentials are handlers of our own in fosite's pipeline (grants.go). fosite's handler of
// refresh tokens rotates for every client, knows no grace time, ends the family at the first repeat and reads no scope; its handler of
// client credentials would be as long as the proof that replaces it.
//
// # A token request
//
// Every grant goes the same way, and brings nothing but its proof:
//
//	Token ── form, grant type known, client authenticated, grant type allowed to it
//	  fosite: the grant's proof            a code with PKCE (fosite), a refresh token, the client itself (grants.go)
//	          detailsHandler, always last  account and policy of this moment, resource, narrowing, lifetime
//	          the token is signed          from what detailsHandler found and nothing else
//	          storage.Commit               records the token with the use of what it is issued for, in one transaction
//	  audit record ─► answer, unless the token was not recorded
//
// # Refresh tokens
//
// A client that may use them gets one with each code. The grant ends at its absolute end, and a refresh token when it was idle for too
// long; no access token outlives its grant. That of a public client is replaced at each use by one that is derived from it, so that a
// repeat within the grace time, from whichever process answers, gets the same one again; a later repeat ends the family. That of a
// client that authenticates stays (RFC 9700 section 4.14.2 asks rotation of public clients only), so that no lost answer costs a
// session. Rights are looked at anew at every use: a grant never grows, and what policy takes away is gone while it is away.
//
// # What ends a grant
//
// A login session that ends takes its grants with it: when somebody signs out at the consent page, when somebody else signs in with
// the same browser, and when a session broker revokes a token of it. A session that merely expires does not, and neither does the same
// person signing in again. Apart from that a grant ends by revocation, by the reuse of a code or refresh token, with its client, when
// its account is disabled or gets a new password, and by time. Each writes to the revocation log in its transaction, and Revoked tells
// who follows the log in this process.
//
// # An authorization request
//
//	POST /par ── Push ── validated request ─► kept for 90 seconds under a request_uri
//	GET /authorize ── Authorize ── validated request (pushed ones again), ceiling of the client ── dispatch
//	dispatch: signed in?  no ─► /login   ─┐
//	          consented?  no ─► /consent ─┤ each returns to /authorize?interaction=…, never to the other
//	          issue: grant and code in one transaction ─► redirect to the client
//
// The interaction is a record in the store, bound to the browser that started it by a secret in that browser's cookie. So is a pushed
// request, from the moment a browser brings it; it is used up when the interaction ends.
//
// # Invariants
//
//   - Nothing is redirected to before client and redirect URI are proven.
//   - Every token's details lie within the grant, and the grant within what policy gave to this account through this client.
//     No policy, no grant.
//   - A code is redeemed once, and a refresh token rotated once: the store decides in the transaction that records the token, not
//     this package. A failed client authentication, PKCE check or wish leaves both as they were.
//   - No token is handed out that is not recorded, and none is recorded under a grant that is revoked.
//   - The issuer, endpoints and audiences come from configuration alone, never from a request.
//   - Secrets (codes, tokens, cookies, passwords, verifiers, assertions) are neither logged nor stored in clear.
//
// # Concurrency
//
// A Server is safe for concurrent use; it has no goroutine but the one that calls Run. All state is in the store, so several
// processes can serve one issuer.
//
// New is also how a server is reloaded: it changes nothing unless its options are valid, then makes the static clients of the store
// those of the options, and what it returns takes the place of the server before, whose codes, refresh tokens, pushed requests and
// interactions go on.
//
// References: RFC 6749, RFC 7009, RFC 7523, RFC 7636, RFC 8252, RFC 8414, RFC 8707, RFC 9068, RFC 9126, RFC 9207, RFC 9396, RFC 9700.
package as
