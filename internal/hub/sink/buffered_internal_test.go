package sink

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
)

// opaque is a connection that has no descriptor to offer.
type opaque struct{ net.Conn }

// wrapped is a connection that says what is in it.
type wrapped struct{ net.Conn }

func (w wrapped) NetConn() net.Conn { return w.Conn }

// TestBufferedSink covers what the other systems do for plain connections, and Linux for those without a descriptor.
func TestBufferedSink(t *testing.T) {
	body := func(t *testing.T, c net.Conn) string {
		t.Helper()
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("body = %q, %v", b, err)
		}
		return string(b)
	}
	t.Run("writes and ends cleanly", func(t *testing.T) {
		server, client := pair(t)
		k := newSet(t).connSink(opaque{server}, headerBlock(http.Header{}, http.Header{}, hub.Chunked), hub.Chunked)
		k.Start(&notes{})
		if n, err := k.TryWrite([]byte("1\r\nx\r\n")); n != 6 || err != nil {
			t.Errorf("TryWrite = %d, %v", n, err)
		}
		k.Finish()
		if got := body(t, client); got != "x" {
			t.Errorf("body = %q, want x", got)
		}
	})
	t.Run("finds the descriptor in a wrapper", func(t *testing.T) {
		server, client := pair(t)
		k := newSet(t).connSink(wrapped{server}, headerBlock(http.Header{}, http.Header{}, hub.Chunked), hub.Chunked)
		k.Start(&notes{})
		k.Finish()
		if got := body(t, client); got != "" {
			t.Errorf("body = %q, want none", got)
		}
	})
	t.Run("takes no more than its buffer holds, and says when more fits", func(t *testing.T) {
		server, client := pair(t)
		k := newSet(t).connSink(opaque{server}, nil, hub.Chunked)
		var n notes
		k.Start(&n)
		p := make([]byte, 3000)
		sent, full := 0, false
		for !full {
			taken, err := k.TryWrite(p)
			if err != nil {
				t.Fatal(err)
			}
			sent += taken
			if full = taken < len(p); !full && sent > 64<<20 {
				t.Fatal("the sink never fills up")
			}
		}
		if _, err := io.CopyN(io.Discard, client, int64(sent)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "more fits", func() bool { return n.writable.Load() == 1 })
		k.Abort()
		if _, err := k.TryWrite(p); err == nil {
			t.Error("TryWrite after Abort = nil, want an error")
		}
	})
	t.Run("notices that the peer hangs up", func(t *testing.T) {
		server, client := pair(t)
		k := newSet(t).connSink(opaque{server}, nil, hub.Chunked)
		var n notes
		k.Start(&n)
		_ = client.Close()
		eventually(t, "the hang-up is noticed", func() bool { return n.gone.Load() > 0 })
		k.Abort()
	})
	t.Run("gives up on a peer that reads nothing", func(t *testing.T) {
		server, _ := pair(t)
		s := newSet(t)
		k := s.connSink(opaque{server}, nil, hub.Chunked)
		k.Start(&notes{})
		for range 100 {
			p := make([]byte, 1<<20)
			if _, err := k.TryWrite(p); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Millisecond)
		}
		k.Finish() // Close waits for it
	})
	t.Run("tells when a write takes too long, however little it is", func(t *testing.T) {
		server, _ := pair(t)
		s, err := NewSet(Options{PeerTimeout: 50 * time.Millisecond, BufferBytes: 64 << 20, Linger: 10 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		k := s.connSink(opaque{server}, nil, hub.Chunked)
		var n notes
		k.Start(&n)
		if taken, err := k.TryWrite(make([]byte, 32<<20)); taken != 32<<20 || err != nil {
			t.Fatalf("TryWrite = %d, %v", taken, err)
		}
		eventually(t, "the stall is noticed", func() bool { return n.gone.Load() > 0 })
		k.Abort()
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	t.Run("is closed at once when the set is closed", func(t *testing.T) {
		s, err := NewSet(Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		server, client := pair(t)
		k := s.connSink(opaque{server}, nil, hub.Chunked)
		var n notes
		k.Start(&n)
		if n.gone.Load() != 1 {
			t.Error("Start tells nothing")
		}
		k.Finish()
		if _, err := io.ReadAll(client); err == nil {
			t.Log("closed without an error") // which the system may do
		}
	})
}
