package sink

import (
	"net/http"
	"sync"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
)

// streamSink hands what the engine writes to the goroutine of the request's handler, which writes it to the response.
type streamSink struct {
	set    *Set
	notify hub.Notify
	// wake has capacity 1 and is never closed; a token in it says that something has changed.
	wake chan struct{}

	mu    sync.Mutex
	buf   *[]byte // nil when empty
	owed  bool    // the engine waits for Writable
	state streamState
	// cut ends the write that is under way, if it can be ended; nil once the handler is about to return.
	cut   func()
	timer *time.Timer // bounds Finish
}

// streamState is what becomes of a streamSink.
type streamState uint8

const (
	streaming streamState = iota
	finishing             // write what is left, then return
	gone                  // return
)

// serveStream serves a stream from the handler's goroutine, until it has ended or hangUp is closed.
func (s *Set) serveStream(w http.ResponseWriter, hangUp <-chan struct{}, attach func(hub.Sink)) {
	control := http.NewResponseController(w)
	// Time-outs that the server has for ordinary requests would end the stream; not every writer has them.
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(time.Time{})
	k := &streamSink{set: s, wake: make(chan struct{}, 1)}
	k.cut = func() { _ = control.SetWriteDeadline(time.Unix(1, 0)) }
	defer k.leave()
	attach(k)
	for {
		select {
		case <-k.wake:
		case <-hangUp:
			k.hangUp()
			return
		}
		buf, owed, last := k.next()
		if owed {
			k.notify.Writable()
		}
		if buf != nil {
			// The engine sees a reader stall when the buffer is full, which little traffic never makes it.
			stalled := time.AfterFunc(s.opts.PeerTimeout, k.cutOff)
			_, err := w.Write(*buf)
			if err == nil {
				err = control.Flush()
			}
			stalled.Stop()
			s.release(buf)
			if err != nil {
				k.hangUp()
				return
			}
		}
		if last {
			return
		}
	}
}

// next takes the buffer and tells whether the engine waits for that and whether it is the last.
func (k *streamSink) next() (buf *[]byte, owed, last bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state == gone {
		return nil, false, true
	}
	buf, owed, last = k.buf, k.owed, k.state == finishing
	k.buf, k.owed = nil, false
	return buf, owed, last
}

// hangUp tells the engine that the peer is gone.
func (k *streamSink) hangUp() {
	k.mu.Lock()
	tell := k.state == streaming
	k.state = gone
	k.mu.Unlock()
	if tell {
		k.notify.Gone()
	}
}

// leave forgets the response, which is void once the handler has returned.
func (k *streamSink) leave() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state, k.cut, k.buf = gone, nil, nil
	if k.timer != nil {
		k.timer.Stop()
	}
}

func (k *streamSink) signal() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Framing implements [hub.Sink].
func (k *streamSink) Framing() hub.Framing { return hub.Raw }

// Start implements [hub.Sink].
func (k *streamSink) Start(n hub.Notify) { k.notify = n }

// TryWrite implements [hub.Sink].
func (k *streamSink) TryWrite(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state != streaming {
		return 0, ErrClosed
	}
	if k.buf == nil {
		k.buf = k.set.buffer()
	}
	n := min(len(p), max(k.set.opts.BufferBytes-len(*k.buf), 0))
	*k.buf = append(*k.buf, p[:n]...)
	k.owed = k.owed || n < len(p)
	k.signal()
	return n, nil
}

// Finish implements [hub.Sink].
func (k *streamSink) Finish() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state != streaming {
		return
	}
	k.state = finishing
	k.timer = time.AfterFunc(k.set.opts.Linger, k.cutOff)
	k.signal()
}

// Abort implements [hub.Sink].
func (k *streamSink) Abort() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state == gone {
		return
	}
	k.state = gone
	k.signal()
	// Of its own goroutine, for it may wait for the connection's: HTTP/2 resets the stream.
	k.timer = time.AfterFunc(0, k.cutOff)
}

// cutOff ends a write that takes too long. The handler cannot return meanwhile.
func (k *streamSink) cutOff() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cut != nil {
		k.cut()
	}
}
