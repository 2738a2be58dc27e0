package sink

import (
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
)

// bufferedSink writes to a connection that can only be written to by blocking. A goroutine does so while there is
// something to write.
type bufferedSink struct {
	set     *Set
	conn    net.Conn
	raw     syscall.RawConn // nil: hang-ups are noticed by reading
	framing hub.Framing
	notify  hub.Notify
	unwatch func()

	mu        sync.Mutex
	buf       *[]byte // what the goroutine takes next; nil when empty
	writing   bool    // the goroutine runs
	owed      bool    // the engine waits for Writable
	finishing bool
	err       error // sticky
}

func (s *Set) bufferedSink(conn net.Conn, raw syscall.RawConn, head []byte, framing hub.Framing) *bufferedSink {
	b := &bufferedSink{set: s, conn: conn, raw: raw, framing: framing, unwatch: func() {}}
	b.buf = &head
	return b
}

// Framing implements [hub.Sink].
func (b *bufferedSink) Framing() hub.Framing { return b.framing }

// Start implements [hub.Sink].
func (b *bufferedSink) Start(n hub.Notify) {
	b.notify = n
	unwatch, err := b.set.watch(b.conn, b.raw, b)
	if err != nil {
		n.Gone()
		return
	}
	b.unwatch = unwatch
}

// writable implements watched. The goroutine knows by itself.
func (b *bufferedSink) writable() {}

// hungUp implements watched.
func (b *bufferedSink) hungUp() { b.notify.Gone() }

// TryWrite implements [hub.Sink].
func (b *bufferedSink) TryWrite(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	if b.buf == nil {
		b.buf = b.set.buffer()
	}
	n := min(len(p), max(b.set.opts.BufferBytes-len(*b.buf), 0))
	*b.buf = append(*b.buf, p[:n]...)
	b.owed = b.owed || n < len(p)
	return n, b.writeOn()
}

// writeOn sees to it that the goroutine runs. The caller holds mu.
func (b *bufferedSink) writeOn() error {
	if b.writing {
		return nil
	}
	b.writing = b.set.spawn(b.write)
	if !b.writing {
		b.err = ErrClosed
	}
	return b.err
}

// write writes until there is nothing left, and ends the stream where it should.
func (b *bufferedSink) write() {
	for {
		buf, owed, last := b.next()
		switch {
		case last:
			finish(b.conn, *buf, b.framing)
			return
		case buf == nil:
			return
		}
		if owed {
			b.notify.Writable()
		}
		_, err := b.conn.Write(*buf)
		b.set.release(buf)
		if err != nil {
			b.fail(err)
			return
		}
	}
}

// next takes the buffer, and tells whether the engine waits for that, and whether it is the last. The buffer is nil when
// there is nothing to do.
func (b *bufferedSink) next() (buf *[]byte, owed, last bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	buf, owed, last = b.buf, b.owed, b.finishing
	b.buf, b.owed = nil, false
	if !last {
		// The engine sees a reader stall when the buffer is full, which little traffic never makes it.
		_ = b.conn.SetWriteDeadline(time.Now().Add(b.set.opts.PeerTimeout))
	}
	switch {
	case b.err != nil:
		b.writing = false
		return nil, false, false
	case last && buf == nil:
		buf = new([]byte)
	case buf == nil:
		b.writing = false
	}
	return buf, owed, last
}

// fail ends the goroutine after a failed write.
func (b *bufferedSink) fail(err error) {
	b.mu.Lock()
	ending := b.finishing || b.err != nil
	b.err, b.writing, b.buf = err, false, nil
	b.mu.Unlock()
	if ending {
		reset(b.conn)
		return
	}
	b.notify.Gone()
}

// Finish implements [hub.Sink].
func (b *bufferedSink) Finish() {
	b.unwatch()
	b.mu.Lock()
	failed := b.err != nil
	b.finishing = true
	// It bounds a write that is under way as well.
	_ = b.conn.SetDeadline(b.set.lingerDeadline())
	if !failed {
		failed = b.writeOn() != nil
	}
	b.mu.Unlock()
	if failed {
		reset(b.conn)
	}
}

// Abort implements [hub.Sink].
func (b *bufferedSink) Abort() {
	b.unwatch()
	b.mu.Lock()
	if b.err == nil {
		b.err = net.ErrClosed
	}
	b.mu.Unlock()
	reset(b.conn)
}
