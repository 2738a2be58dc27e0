package sink

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// notes counts what a sink tells the engine.
type notes struct{ writable, gone atomic.Int64 }

func (n *notes) Writable() { n.writable.Add(1) }
func (n *notes) Gone()     { n.gone.Add(1) }

// newSet returns a set that runs until the test ends.
func newSet(t *testing.T) *Set {
	t.Helper()
	s, err := NewSet(Options{Linger: 100 * time.Millisecond, BufferBytes: 4096})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return s
}

// pair returns the two ends of a connection.
func pair(t *testing.T) (server, client *net.TCPConn) {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	client, err = net.DialTCP("tcp", nil, l.Addr().(*net.TCPAddr)) //nolint:forcetypeassert // it is one
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return server, client
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
		<-time.After(time.Millisecond)
	}
}
