package sink

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
)

// directSink writes to the socket of a plain connection, without blocking and without a goroutine.
type directSink struct {
	set     *Set
	conn    net.Conn
	raw     syscall.RawConn
	framing hub.Framing
	notify  hub.Notify
	key     uint64 // in the poller
	head    []byte // what is left of the response's head

	// full says that the engine waits for Writable.
	full atomic.Bool

	// out, n and err are the arguments and results of attempt, which is made once: a closure per write would be
	// an allocation per write.
	out     []byte
	n       int
	err     error
	attempt func(fd uintptr) bool
}

func (s *Set) directSink(conn net.Conn, raw syscall.RawConn, head []byte, framing hub.Framing) hub.Sink {
	d := &directSink{set: s, conn: conn, raw: raw, head: head, framing: framing}
	d.attempt = d.writeOnce
	return d
}

// Framing implements [hub.Sink].
func (d *directSink) Framing() hub.Framing { return d.framing }

// Start implements [hub.Sink].
func (d *directSink) Start(n hub.Notify) {
	d.notify = n
	key, err := d.set.poller.add(d.raw, d)
	if err != nil {
		n.Gone()
		return
	}
	d.key = key
}

// writable implements watched.
func (d *directSink) writable() {
	if d.full.CompareAndSwap(true, false) {
		d.notify.Writable()
	}
}

// hungUp implements watched.
func (d *directSink) hungUp() { d.notify.Gone() }

// TryWrite implements [hub.Sink].
func (d *directSink) TryWrite(p []byte) (int, error) {
	if len(d.head) == 0 {
		return d.write(p)
	}
	// The head and the first bytes go out together.
	n, err := d.write(append(d.head, p...))
	if n < len(d.head) {
		d.head = d.head[n:]
		return 0, err
	}
	n -= len(d.head)
	d.head = nil
	return n, err
}

// write writes what fits.
func (d *directSink) write(p []byte) (int, error) {
	n, err := d.writeSome(p)
	if err != nil || n == len(p) {
		return n, err
	}
	// There may have been room again before full said that somebody waits for it, and the poller would have kept that to
	// itself. So it is said first, and tried once more. At worst Writable is called for nothing.
	d.full.Store(true)
	more, err := d.writeSome(p[n:])
	n += more
	if n == len(p) {
		d.full.Store(false)
	}
	return n, err
}

// writeSome makes one system call.
func (d *directSink) writeSome(p []byte) (int, error) {
	d.out = p
	err := d.raw.Write(d.attempt)
	d.out = nil
	if err != nil {
		return 0, err
	}
	return d.n, d.err
}

// writeOnce is what attempt does. It reports true always: nobody waits here.
func (d *directSink) writeOnce(fd uintptr) bool {
	d.n, d.err = 0, nil
	for {
		n, err := syscall.Write(int(fd), d.out)
		switch {
		case err == nil:
			d.n = n
		case errors.Is(err, syscall.EINTR):
			continue
		case !errors.Is(err, syscall.EAGAIN):
			d.err = err
		}
		return true
	}
}

// Finish implements [hub.Sink].
func (d *directSink) Finish() {
	d.set.poller.remove(d.raw, d.key)
	rest := d.head
	ending := d.set.spawn(func() {
		_ = d.conn.SetDeadline(d.set.lingerDeadline())
		finish(d.conn, rest, d.framing)
	})
	if !ending {
		reset(d.conn)
	}
}

// Abort implements [hub.Sink].
func (d *directSink) Abort() {
	d.set.poller.remove(d.raw, d.key)
	reset(d.conn)
}
