// Package ashttp is the HTTP edge of the authorization server: its endpoints for clients (authorize, pushed requests, token,
// revocation, the revocation log, keys, metadata) and its pages for people (sign-in, consent, errors).
//
// It owns routes, cookies, the check of a form's origin, header fields, CORS, the pages and the words they use for authorization
// details. It does not own any decision (package as), the database, or the echo instance (package httpserver).
//
// # Pages
//
// Pages are plain HTML that works without JavaScript; there is none. Forms post to their own path and are answered with a
// small page that moves on to /authorize, not with a redirect: browsers apply form-action of the Content-Security-Policy to every
// redirect that follows a form, and the last one leads to the client.
//
// # Invariants
//
//   - No page can be framed, none is cached, none loads anything of another origin.
//   - A form is accepted only with an Origin (or Referer) of the issuer's own origin and the token of its interaction.
//   - The endpoints for clients read parameters of a body from the body alone and answer in JSON with no-store.
//   - What somebody who has proven nothing can leave in the database is bounded: authorization requests, pushed or not, are counted
//     per address. Those that clients push which authenticate are not: a session broker pushes for everybody.
//   - Pages of the clients' origins may call the endpoints for clients (CORS), but not the revocation log, which only hubs read.
//   - Nothing is derived from Host or from forwarding header fields.
//
// # Concurrency
//
// Everything is safe for concurrent use once registered.
//
// References: RFC 6749 sections 3 and 5, RFC 7009 section 2, RFC 8414 section 3, RFC 9126 section 2, RFC 9207, RFC 6265bis section 4.1.3, Content Security Policy
// Level 3, Fetch (CORS), WCAG 2.2.
package ashttp
