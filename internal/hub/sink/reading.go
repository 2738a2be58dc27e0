package sink

import (
	"crypto/tls"
	"net"
)

// readBytes is what a goroutine that waits for a hang-up reads at a time. Nothing is expected.
const readBytes = 64

// watchByReading has w told when the peer hangs up, by a goroutine that reads from conn until it fails. That ends when
// conn is closed.
func (s *Set) watchByReading(conn net.Conn, w watched) (unwatch func(), err error) {
	if c, ok := conn.(*tls.Conn); ok {
		// Nothing that the peer says matters, only whether it is there.
		conn = c.NetConn()
	}
	started := s.spawn(func() {
		buf := make([]byte, readBytes)
		for {
			if _, err := conn.Read(buf); err != nil {
				w.hungUp()
				return
			}
		}
	})
	if !started {
		return nil, ErrClosed
	}
	return func() {}, nil
}
