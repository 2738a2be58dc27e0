// Package session is the browser session broker: it signs a person in at the authorization server and
// puts the access token into the hub's cookie, so that a page gets private updates without ever holding a
// token.
//
// It owns the endpoints under {hub}/session, the login cookies, the sealed session cookie, and setting and
// expiring the hub cookie. It does not own what a token means (package token, reached through
// Dependencies.Verify), the streams (package hub, reached through Dependencies.End), or signing anybody in
// (the authorization server, which it knows as an ordinary confidential client over HTTP only).
//
// # Endpoints
//
//	GET  {hub}/session/login?return_to=&profile=  starts a sign-in; a page links or navigates here
//	GET  {hub}/session/callback                   the redirect URI; ends at return_to
//	GET  {hub}/session                            the state of the session as JSON, type [Status]
//	POST {hub}/session/refresh                    renews it; the new state
//	POST {hub}/session/logout                     ends it; type [SignedOut]
//
// A sign-in that fails after it started ends at return_to with session_error set to one of the values of
// [ErrorCodes]. A request that cannot start answers 400 (RFC 9457) and sets nothing. What is answered when is in
// docs/session.md, which the tests hold every answer against.
//
// # Cookies
//
// There is no store: all state is in three kinds of cookies, all HttpOnly and, except for the development
// exception of Options.InsecureCookie, Secure.
//
//   - The login cookie, one for each sign-in under way and at most three: state, PKCE verifier, return
//     address, issuer and the session it replaces, sealed. SameSite=Lax, because the callback comes from another site. Its name
//     ends in a hash of the state, so that parallel sign-ins do not disturb each other.
//   - The hub cookie: the access token. SameSite=Strict, its path is the hub's. It outlives the token on
//     purpose: an expired token is answered 401 by the hub, where a missing one would silently turn the
//     reader into an anonymous one.
//   - The session cookie: who the session belongs to, which tokens it had, and its refresh token, sealed.
//     SameSite=Strict.
//
// Signing out leaves an empty hub cookie for a minute, which the hub refuses: streams of other tabs end for good.
// A sealed cookie that cannot be read counts as absent. Sealing keys rotate: the first one seals, all of
// them open.
//
// # Invariants
//
// No redirect leaves the hub's own origin and Options.ReturnToOrigins, as judged by the serialised form of
// the WHATWG URL parser: the Location that is sent starts with an allowed origin and a slash. A state is
// good for one callback. Codes, tokens, states, verifiers and cookie values are never logged. The token
// that goes into the cookie was accepted by the same verifier the hub uses, was issued to this client by
// this issuer, and fits into what browsers keep.
//
// A session changes only for a page at the hub's own origin or one of Options.ReturnToOrigins that says so (CSRF). Only
// a verdict of the authorization server ends one, its absolute end, or its person; a server that is away ends none. A
// refresh token is sent once at a time, and never again after its session has ended; both hold within this process, and what
// several processes do is the authorization server's to judge. A renewed token is of the same person, client and login. Signing out
// leaves the browser with nothing whatever happens.
//
// Everything is safe for concurrent use and starts no goroutine that outlives a request.
//
// References: RFC 6749 sections 4.1 and 6, RFC 7009 (revocation), RFC 7636 (PKCE), RFC 8414 (metadata), RFC 8707
// (resource), RFC 9126 (pushed requests), RFC 9207 (iss), RFC 9396 (authorization_details), RFC 9700 (best practice),
// RFC 10017 (browser-based applications: this is its backend for frontend), RFC 6265bis (cookies).
package session
