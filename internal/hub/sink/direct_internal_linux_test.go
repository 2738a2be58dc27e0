package sink

import (
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
)

func direct(t *testing.T, s *Set, conn net.Conn) *directSink {
	t.Helper()
	d, ok := s.connSink(conn, headerBlock(http.Header{}, http.Header{}, hub.Chunked), hub.Chunked).(*directSink)
	if !ok {
		t.Fatal("a TCP connection is not written to directly")
	}
	return d
}

func TestDirectSink(t *testing.T) {
	t.Run("writes without allocating", func(t *testing.T) {
		s := newSet(t)
		server, client := pair(t)
		go func() { _, _ = io.Copy(io.Discard, client) }()
		d := direct(t, s, server)
		d.Start(&notes{})
		defer d.Abort()
		p := []byte("2\r\n:\n\r\n")
		if _, err := d.TryWrite(p); err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { _, _ = d.TryWrite(p) }); n > 0 {
			t.Errorf("allocations = %v, want 0", n)
		}
	})
	t.Run("says that more fits, whenever it was full", func(t *testing.T) {
		s := newSet(t)
		server, client := pair(t)
		d := direct(t, s, server)
		var n notes
		d.Start(&n)
		defer d.Abort()
		block := make([]byte, 64<<10)
		total, full, head, read := 0, int64(0), len(d.head), int64(0)
		for range 3 {
			for {
				taken, err := d.TryWrite(block)
				if err != nil {
					t.Fatal(err)
				}
				total += taken
				if taken < len(block) {
					break
				}
			}
			full++
			// The head of the response has gone before.
			if _, err := io.CopyN(io.Discard, client, int64(total+head)-read); err != nil {
				t.Fatal(err)
			}
			read = int64(total + head)
			eventually(t, "more fits", func() bool { return n.writable.Load() >= full })
		}
	})
	t.Run("an event of a connection that was let go reaches nobody", func(t *testing.T) {
		s := newSet(t)
		var stale, fresh notes
		server, client := pair(t)
		old := direct(t, s, server)
		old.Start(&stale)
		old.Abort()
		_ = client.Close()
		// The next connection gets the same descriptor.
		server, client = pair(t)
		d := direct(t, s, server)
		d.Start(&fresh)
		defer d.Abort()
		_ = client.Close()
		eventually(t, "the hang-up is noticed", func() bool { return fresh.gone.Load() > 0 })
		if n := stale.gone.Load(); n != 0 {
			t.Errorf("the old connection was told %d times", n)
		}
	})
	t.Run("a socket that was closed under it is an error, not somebody else's", func(t *testing.T) {
		s := newSet(t)
		server, _ := pair(t)
		d := direct(t, s, server)
		d.Start(&notes{})
		defer d.Abort()
		_ = server.Close()
		if _, err := d.TryWrite([]byte("x")); err == nil {
			t.Error("TryWrite = nil, want an error")
		}
	})
}
