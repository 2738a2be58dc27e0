//go:build !linux

package httpserver

import "net"

// listenConfig leaves it to Go to set keep-alive probes on each connection: not every system has connections inherit them.
func listenConfig() net.ListenConfig { return net.ListenConfig{} }
