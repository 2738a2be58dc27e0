package sink_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/hub/sink"
	"github.com/cinnabar-hub/cinnabar/test/needs"
)

// insideNetwork says that the test runs in a network namespace of its own, where it may do as it likes.
const insideNetwork = "CINNABAR_TEST_INSIDE_NETWORK"

// TestDeadPeer cuts readers off without a word: their packets, and those to them, are dropped. Their streams end when the peer time-out
// of the set has passed and not much later, though their sockets would take much more, and others go on.
func TestDeadPeer(t *testing.T) {
	if os.Getenv(insideNetwork) == "" {
		unshare := needs.Program(t, "unshare")
		needs.Program(t, "ip")
		args := append(needs.Namespaces(t, "-n"), os.Args[0], "-test.run", "^TestDeadPeer$", "-test.v")
		cmd := exec.CommandContext(t.Context(), unshare, args...)
		cmd.Env = append(os.Environ(), insideNetwork+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("in a network of its own: %v\n%s", err, out)
		}
		return
	}
	ip(t, "link", "set", "lo", "up")
	const alive, dead = "127.0.0.1", "127.0.0.2"
	for _, tr := range transports() {
		if tr.http2 || tr.proto == "HTTP/1.0" {
			continue // the HTTP server's own pings end the former, see package httpserver; the latter have the same sockets as HTTP/1.1
		}
		t.Run(tr.name, func(t *testing.T) {
			const peerTimeout = time.Second
			s := newServerWith(t, tr.encrypted, false, sink.Options{PeerTimeout: peerTimeout}, func(o *hub.Options) {
				o.WriteTimeout, o.Heartbeat = 0, 250*time.Millisecond // what is idle has to be said something to be noticed
			})
			open := func(from string) *client {
				s.dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
				return s.connect(tr.proto, "")
			}
			lost, other := open(dead), open(alive)
			s.publish("1")
			lost.want("1")
			other.want("1")
			ip(t, "route", "replace", "blackhole", dead+"/32", "table", "local")
			defer ip(t, "route", "del", "blackhole", dead+"/32", "table", "local")
			begin := time.Now()
			s.publish("2")
			lost.wantDone()
			if passed := time.Since(begin); passed < peerTimeout/2 {
				t.Errorf("the stream ended after %v, for another reason than that its peer is dead", passed)
			}
			s.publish("3")
			other.want("2", "3")
		})
	}
}

// ip changes the network of the namespace.
func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(context.Background(), "ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %v: %v: %s", args, err, out)
	}
}
