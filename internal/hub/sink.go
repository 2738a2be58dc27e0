package hub

// Framing says how the bytes of a stream are framed on the wire.
type Framing uint8

const (
	// Raw takes events as they are: HTTP/1.0, and HTTP/2 where the library frames.
	Raw Framing = iota
	// Chunked takes events framed as HTTP/1.1 chunks (RFC 9112 section 7.1).
	Chunked
)

// Sink is the writing end of one stream. Package sink has the implementations for sockets.
//
// The engine calls the methods of a Sink from one goroutine at a time and calls none after Finish or
// Abort, of which it calls exactly one, exactly once. No method blocks.
type Sink interface {
	// Framing tells how the bytes given to TryWrite have to be framed. It never changes.
	Framing() Framing
	// Start hands over n, once, before the first TryWrite.
	Start(n Notify)
	// TryWrite takes as much of p as fits now and returns how much that was. After n < len(p)
	// the engine writes no more until the sink has called Notify.Writable, which the sink does after
	// each such result; calling it for nothing does no harm. The sink keeps no reference to p. An error is final.
	TryWrite(p []byte) (n int, err error)
	// Finish ends the stream cleanly once everything that was taken has been sent.
	Finish()
	// Abort ends the stream at once; what was taken may be lost.
	Abort()
}

// Notify is how a sink calls back. The methods may be called from any goroutine, even
// from within Start, and do not block.
type Notify interface {
	// Writable says that more fits now.
	Writable()
	// Gone says that the peer is no longer there. The engine aborts the sink.
	Gone()
}
