package sink

import (
	"crypto/tls"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
)

// lastChunk ends a chunked body (RFC 9112 section 7.1).
const lastChunk = "0\r\n\r\n"

// drainBytes bounds what is read away from a peer whose stream has ended.
const drainBytes = 64 << 10

// connSink returns the sink of a hijacked connection. head is written before everything else.
func (s *Set) connSink(conn net.Conn, head []byte, framing hub.Framing) hub.Sink {
	_, encrypted := conn.(*tls.Conn)
	raw := rawConn(conn)
	if raw != nil {
		tune(raw, s.opts.PeerTimeout)
	}
	if raw != nil && !encrypted {
		if direct := s.directSink(conn, raw, head, framing); direct != nil {
			return direct
		}
	}
	return s.bufferedSink(conn, raw, head, framing)
}

// rawConn returns the descriptor below conn, or nil where there is none to be had. Wrappers of connections say what is in
// them by a method NetConn.
func rawConn(conn net.Conn) syscall.RawConn {
	for {
		if c, ok := conn.(syscall.Conn); ok {
			raw, err := c.SyscallConn()
			if err != nil {
				return nil
			}
			return raw
		}
		w, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		conn = w.NetConn()
	}
}

// reset closes the connection at once and gives up what has not been sent: a peer that reads nothing would keep it in
// the kernel otherwise.
func reset(conn net.Conn) {
	if c, ok := conn.(*tls.Conn); ok {
		// Its own Close would try to say goodbye first, and block.
		conn = c.NetConn()
	}
	if c, ok := conn.(interface{ SetLinger(int) error }); ok {
		_ = c.SetLinger(0)
	}
	_ = conn.Close()
}

// finish ends the stream on conn cleanly. rest is what has not been written of it yet. The caller has set a deadline.
func finish(conn net.Conn, rest []byte, framing hub.Framing) {
	if framing == hub.Chunked {
		rest = append(rest, lastChunk...)
	}
	if len(rest) > 0 {
		if _, err := conn.Write(rest); err != nil {
			reset(conn)
			return
		}
	}
	inner := conn
	if c, ok := conn.(*tls.Conn); ok {
		if c.CloseWrite() != nil {
			reset(conn)
			return
		}
		inner = c.NetConn()
	}
	if c, ok := inner.(interface{ CloseWrite() error }); ok && c.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, inner, drainBytes)
	}
	_ = inner.Close()
}

// lingerDeadline bounds everything that ending a stream takes.
func (s *Set) lingerDeadline() time.Time { return time.Now().Add(s.opts.Linger) }
