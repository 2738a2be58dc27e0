// Package wire is the conformance suite's own HTTP client: it writes requests byte by byte, so that a check can send
// what no HTTP library would, and reads responses and event streams strictly, so that a check sees what really
// arrived.
//
// It owns connections: a Response that is an event stream keeps one until it is closed, everything else is read whole
// within the limits below. It knows nothing of the protocol under test, of tokens or of requirements.
//
// A Dialer and its parts may be used by several goroutines at once; a Response and an EventReader belong to one.
//
// References: RFC 9112 (HTTP/1.1 messages), RFC 9113 (HTTP/2), WHATWG HTML section 9.2 (server-sent events).
package wire
