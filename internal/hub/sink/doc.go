// Package sink writes event streams to sockets. It has the implementations of hub.Sink.
//
// A [Set] answers requests with streams. How it writes depends on what the connection allows:
//
//   - HTTP/1 over plain TCP is hijacked; HTTP/1.0 gets the events without chunks around them.
//     On Linux the engine's shard writes to the socket itself, without
//     blocking; one epoll set for all connections says when a full socket takes more and when a peer hangs up. An
//     idle stream has no goroutine, timer or buffer.
//   - HTTP/1 over TLS is hijacked as well. The TLS library can only block, so a goroutine writes from a bounded
//     buffer while there is something to write. Where there is no epoll, plain TCP is served the same way,
//     and a second goroutine per stream reads to notice the peer's hanging up.
//   - HTTP/2, and servers that cannot hijack, are written to by the handler's own goroutine, from a
//     bounded buffer.
//
// It does not decide what is written or when a stream ends: that is package hub. It does not parse requests
// or choose headers: that is package hubhttp.
//
// # Invariants
//
// No method of a sink blocks. Every byte that a sink took reaches the peer before a stream that ends by
// Finish is closed, unless the peer takes longer than [Options.Linger]: the last chunk, where there are chunks, is written, the writing side is
// closed, what the peer may still send is read away, and only then is the socket closed. A socket closed with
// unread data in it would be reset, and the tail of the stream lost.
//
// A peer that closes its writing side counts as one that has left, as it does for Go's HTTP server. One that is silent because
// its packets are lost has left when it has acknowledged nothing of what was sent for [Options.PeerTimeout].
//
// After a hijack nothing refers to the request, its context or the response writer. Descriptors are used
// through syscall.RawConn only, which knows whether they are still open; epoll is given numbers of its own, never
// descriptors, so that an event for a closed connection cannot reach another.
//
// # Concurrency
//
// A Set is safe for concurrent use. Run and Close have one owner, which stops the engine first.
//
// References: RFC 9112 sections 7.1 and 9.6; RFC 9113 section 8.1; epoll(7); tcp(7).
package sink
