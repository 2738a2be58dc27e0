// Package client publishes to a Mercure hub and follows its updates, from Go.
//
// A [Client] talks to one hub. [Client.Publish] sends one update and returns its id. [Client.Subscribe] is an
// iterator over updates: it reconnects by itself, resumes after the last event it has yielded, and ends with an error
// only when another attempt would not help. [Discover] learns from a resource which hub to ask, for which topic,
// and from where on. Failures are of type [*Error], but for calls that make no sense, such as that of an update without a topic. It
// works with any hub that implements the Mercure protocol.
//
// # What it owns and what not
//
// It owns the client's side of the protocol: encoding of publications and subscriptions, credentials, time-outs, bounds on what is
// read, reconnection with its waiting times, and the comparison that finds lost updates. Where tokens come from is the caller's
// matter ([Options.Token]; golang.org/x/oauth2 makes them), and so is what an update says and what to do when some are missing.
// Link elements in HTML are not looked at.
//
// # Credentials
//
// Tokens travel in the Authorization header alone, never in a URL, only to the hub's own URL, since redirects are not followed,
// and over plain HTTP only to this machine (AUTH-14, AUTH-18, SEC-09). No error and no log line holds a token, a topic or
// an update.
//
// # Loss and repetition
//
// Every event is yielded once and in the hub's order, over as many connections as it takes. Where the hub cannot resume, that is
// reported by [Event.Gap] and [Connection.Gap]. Two limits come with the protocol. Without a cursor nothing can be resumed: until the
// first event has come, a lost connection can lose updates, unless [Subscription.Cursor] says where to begin. And a cursor is an event
// id, so a publisher that uses an id twice makes a resumed stream repeat what lies between.
//
// # Concurrency
//
// A Client is safe for concurrent use and keeps no goroutine running but those of its connections. An iterator reads in the goroutine
// that ranges over it, and has let go of its connection when the loop is over; the functions of a [Subscription] are called there too.
//
// # References
//
// Mercure, "Subscription", "Publication", "Reconnection, State Reconciliation, and Event Sourcing", "Discovery"; the WHATWG HTML
// standard, "Server-sent events"; RFC 6750 (Bearer tokens), RFC 8288 (Link), RFC 9110 section 10.2.3 (Retry-After), RFC 9457 (problem
// documents).
package client
