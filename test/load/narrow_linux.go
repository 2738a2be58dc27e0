package main

import (
	"errors"
	"syscall"
)

const (
	// narrowBuffer is the receive buffer of a subscriber that does not read.
	narrowBuffer = 4 << 10
	// narrowSegment is the largest segment that it takes, that of an Ethernet. The hub's kernel sizes its send buffer by it: with
	// the segments of the loopback device it would take in some megabytes before the hub noticed anything.
	narrowSegment = 1460
)

// narrow makes a connection take in little without being read. Both must be set before it is opened.
func narrow(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = errors.Join(
			syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, narrowBuffer),
			syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, narrowSegment),
		)
	})
	return errors.Join(err, failed)
}
