package httpserver

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// What Go sets for every connection that it accepts: probes after 15 s of silence, nine of them, 15 s apart.
const (
	keepAlivePause  = 15 * time.Second
	keepAliveProbes = 9
)

// listenConfig has connections inherit their keep-alive probes from the listener. Setting them on each connection takes
// four system calls, which is a good part of what a subscriber that connects costs.
func listenConfig() net.ListenConfig {
	lc := net.ListenConfig{KeepAlive: -1, Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			pause := int(keepAlivePause / time.Second)
			// Whatever the system refuses, a stream notices a dead peer by what it writes.
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, pause)
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, pause)
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPCNT, keepAliveProbes)
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
		})
	}}
	// Go would listen with multipath TCP where there is any, and its sockets do not take these options on many kernels.
	lc.SetMultipathTCP(false)
	return lc
}
