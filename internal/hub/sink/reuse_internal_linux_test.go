package sink

import (
	"io"
	"net"
	"strings"
	"testing"
)

// descriptor gives the number of a connection's descriptor.
func descriptor(t *testing.T, c *net.TCPConn) (number uintptr) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { number = fd }); err != nil {
		t.Fatal(err)
	}
	return number
}

// TestDirectSink_reusedDescriptor closes a stream's connection under it and opens another with the same descriptor: what is still
// written to the old stream is an error and reaches nobody, and nothing that happens to the new one is told to the old.
func TestDirectSink_reusedDescriptor(t *testing.T) {
	s := newSet(t)
	server, client := pair(t)
	var stale notes
	old := direct(t, s, server)
	old.Start(&stale)
	if _, err := old.TryWrite([]byte("first")); err != nil {
		t.Fatal(err)
	}
	number := descriptor(t, server)
	_ = server.Close()
	_ = client.Close()

	// The kernel gives the lowest number that is free: somebody else of the process can be faster, but not for ever.
	var reused, peer *net.TCPConn
	for range 1000 {
		reused, peer = pair(t)
		t.Cleanup(func() { _ = reused.Close() })
		if descriptor(t, reused) == number {
			break
		}
	}
	if descriptor(t, reused) != number {
		t.Fatal("the descriptor was never used again")
	}
	told := stale.gone.Load()
	var fresh notes
	d := direct(t, s, reused)
	d.Start(&fresh)
	if n, err := old.TryWrite([]byte("stale")); n != 0 || err == nil {
		t.Errorf("TryWrite to the old stream = %d, %v, want an error", n, err)
	}
	if _, err := d.TryWrite([]byte("fresh")); err != nil {
		t.Fatal(err)
	}
	old.Abort()
	if _, err := d.TryWrite([]byte(" and alive")); err != nil {
		t.Errorf("the old stream's end has closed the new one: %v", err)
	}
	d.Finish()
	got, err := io.ReadAll(peer)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(got), "HTTP/1.1 200 OK\r\n") || !strings.HasSuffix(string(got), "\r\n\r\nfresh and alive"+lastChunk) {
		t.Errorf("the new stream carried %q", got)
	}
	_ = peer.Close()
	if n := stale.gone.Load(); n != told {
		t.Errorf("the old stream was told %d times that the new one is gone", n-told)
	}
}
