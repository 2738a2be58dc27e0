// Package httpserver builds the HTTP side that every listener of Cinnabar shares.
//
// It owns: the echo instance with its middleware (request ids, access log, recovery, default security headers,
// body time-outs), the writer of problem documents (RFC 9457), the gate that answers foreign Host fields,
// the client address behind trusted proxies, limits per address, and the listeners themselves, plain or with TLS and HTTP/2.
//
// It does not own: routes, authentication, CORS, cookies or pages. Those belong to the edges (hubhttp, ashttp, session),
// which register themselves on the instance and decide what their errors mean.
//
// Concurrency: everything here is safe for concurrent use once built. A Server has one goroutine, started by
// Server.Start and waited for by Server.Shutdown and Server.Wait.
//
// Invariants: no URL, origin, scheme or identity is derived from a request's Host or X-Forwarded fields; query strings
// never reach a log; a response that was begun is never begun twice, and a hijacked connection is left alone.
//
// References: RFC 9110, RFC 9457, RFC 9113, Go's net/http.
package httpserver
