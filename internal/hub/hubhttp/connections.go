package hubhttp

import (
	"net/netip"
	"sync"
)

// ipv6ClientBits is the part of an IPv6 address that names a client: one subscriber line has a /64 at least, and could
// otherwise take a new address for every stream.
const ipv6ClientBits = 64

// Connections counts open streams per client address and in total (LIM-04). Its memory is bounded by the open streams. It is safe
// for concurrent use.
type Connections struct {
	perAddress, total int // 0: no bound

	mu        sync.Mutex
	open      int
	byAddress map[netip.Addr]int
}

// NewConnections bounds the open streams of one client address, an IPv6 client being its /64, and those of all clients; 0 means no
// bound.
func NewConnections(perAddress, total int) *Connections {
	return &Connections{perAddress: perAddress, total: total, byAddress: make(map[netip.Addr]int)}
}

// acquire takes a place for a stream of address. The caller calls release exactly once after success; the errors are
// errTooManyConnections and errAddressConnections. An unknown address counts in total only.
func (l *Connections) acquire(address netip.Addr) (release func(), err error) {
	client := clientOf(address)
	counted := l.perAddress > 0 && client.IsValid()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total > 0 && l.open >= l.total {
		return nil, errTooManyConnections
	}
	if counted {
		if l.byAddress[client] >= l.perAddress {
			return nil, errAddressConnections
		}
		l.byAddress[client]++
	}
	l.open++
	return func() { l.release(client, counted) }, nil
}

func (l *Connections) release(client netip.Addr, counted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if !counted {
		return
	}
	if l.byAddress[client]--; l.byAddress[client] <= 0 {
		delete(l.byAddress, client)
	}
}

// clientOf maps an address to the client it belongs to.
func clientOf(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if !a.Is6() {
		return a
	}
	p, err := a.Prefix(ipv6ClientBits)
	if err != nil {
		return a
	}
	return p.Addr()
}
