package httpserver

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// A peer that has silently gone is found out by probes, so connections must have them.
func TestListenConfig_connectionsInheritKeepAlive(t *testing.T) {
	lc := listenConfig()
	if lc.MultipathTCP() {
		t.Error("the listener is one of multipath TCP, of which many kernels let nothing be inherited")
	}
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	var d net.Dialer
	client, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		for name, o := range map[string]struct{ level, option, want int }{
			"SO_KEEPALIVE":  {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
			"TCP_KEEPIDLE":  {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15},
			"TCP_KEEPINTVL": {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 15},
			"TCP_KEEPCNT":   {unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 9},
			"TCP_NODELAY":   {unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		} {
			if got, err := unix.GetsockoptInt(int(fd), o.level, o.option); err != nil || got != o.want {
				t.Errorf("%s is %d (%v), want %d", name, got, err, o.want)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
