package hubhttp

import (
	"net/netip"
	"sync"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
)

// Connections counts open streams per client address and in total (LIM-04), and bounds what lists of subscriptions take. Its memory is bounded by
// the open streams. It is safe for concurrent use.
type Connections struct {
	perAddress, total int // 0: no bound
	lists             *lists

	mu        sync.Mutex
	open      int
	byAddress map[netip.Addr]int
}

// NewConnections bounds the open streams of one client address, an IPv6 client being its /64, and those of all clients; 0 means no
// bound.
func NewConnections(perAddress, total int) *Connections {
	return &Connections{perAddress: perAddress, total: total, lists: newLists(), byAddress: make(map[netip.Addr]int)}
}

// acquire takes a place for a stream of address. The caller calls release exactly once after success; the errors are
// errTooManyConnections and errAddressConnections. An unknown address counts in total only.
func (c *Connections) acquire(address netip.Addr) (release func(), err error) {
	client := httpserver.ClientNetwork(address)
	counted := c.perAddress > 0 && client.IsValid()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total > 0 && c.open >= c.total {
		return nil, errTooManyConnections
	}
	if counted {
		if c.byAddress[client] >= c.perAddress {
			return nil, errAddressConnections
		}
		c.byAddress[client]++
	}
	c.open++
	return func() { c.release(client, counted) }, nil
}

func (c *Connections) release(client netip.Addr, counted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if !counted {
		return
	}
	if c.byAddress[client]--; c.byAddress[client] <= 0 {
		delete(c.byAddress, client)
	}
}
