package sink

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
)

// ErrClosed says that the set serves no more streams.
var ErrClosed = errors.New("sink: closed")

// Options configures a Set. Zero values are the defaults.
type Options struct {
	// Linger bounds how long the end of a stream may take; 0 means 1 second.
	Linger time.Duration
	// PeerTimeout is how long a write may wait for the peer, and how long the peer may acknowledge nothing that was sent,
	// before the connection counts as broken; 0 means 30 seconds.
	PeerTimeout time.Duration
	// BufferBytes bounds the buffers of streams that are not written to directly; 0 means 64 KiB.
	BufferBytes int
}

// unsentBytes bounds what the kernel keeps for a peer that it has not sent yet (TCP_NOTSENT_LOWAT).
const unsentBytes = 256 << 10

// Set makes sinks and owns what they share. It is safe for concurrent use.
type Set struct {
	opts    Options
	poller  *poller
	buffers sync.Pool // of *[]byte

	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup
}

// NewSet returns a set. It notices nothing of its connections before [Set.Run], and has to be closed.
func NewSet(o Options) (*Set, error) {
	if o.Linger < 0 || o.PeerTimeout < 0 || o.BufferBytes < 0 {
		return nil, errors.New("sink: options must not be negative")
	}
	if o.Linger == 0 {
		o.Linger = time.Second
	}
	if o.PeerTimeout == 0 {
		o.PeerTimeout = 30 * time.Second
	}
	if o.BufferBytes == 0 {
		o.BufferBytes = 64 << 10
	}
	p, err := newPoller()
	if err != nil {
		return nil, fmt.Errorf("sink: %w", err)
	}
	return &Set{opts: o, poller: p}, nil
}

// Run watches the connections until ctx ends. That should be after the engine has stopped: without it no full
// socket is written to again.
func (s *Set) Run(ctx context.Context) error { return s.poller.run(ctx) }

// Close waits until every stream that ends has ended, which takes as long as Options.Linger at most, and releases the set.
// The engine has to have finished or aborted all its sinks.
func (s *Set) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.work.Wait()
	return s.poller.close()
}

// Serve answers r with status 200 as an event stream, and gives the stream's sink to attach. The response has the fields that
// middleware has put into w's header, and those of header, which win.
//
// On HTTP/1 Serve takes the connection over and returns at once; the handler must not touch w any more. The body of r must have
// been read. Otherwise Serve returns when the stream has ended.
//
// A HEAD request gets the header and no stream: attach is not called. Neither is it when Serve returns an error,
// of which nothing has been sent.
func (s *Set) Serve(w http.ResponseWriter, r *http.Request, header http.Header, attach func(hub.Sink)) error {
	if s.isClosed() {
		return ErrClosed
	}
	if r.Method == http.MethodHead {
		writeHeader(w, header)
		return nil
	}
	if r.ProtoMajor == 1 {
		framing := hub.Chunked
		if r.ProtoMinor == 0 {
			framing = hub.Raw
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		switch {
		case err == nil:
			attach(s.connSink(conn, headerBlock(w.Header(), header, framing), framing))
			return nil
		case !errors.Is(err, http.ErrNotSupported):
			return fmt.Errorf("sink: hijack: %w", err)
		}
	}
	writeHeader(w, header)
	s.serveStream(w, r.Context().Done(), attach)
	return nil
}

func (s *Set) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// spawn runs f in a goroutine that Close waits for, or reports false when the set is closed.
func (s *Set) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Go(f)
	return true
}

// buffer returns an empty buffer.
func (s *Set) buffer() *[]byte {
	if b, ok := s.buffers.Get().(*[]byte); ok {
		return b
	}
	return new([]byte)
}

// release takes a buffer back.
func (s *Set) release(b *[]byte) {
	*b = (*b)[:0]
	s.buffers.Put(b)
}
