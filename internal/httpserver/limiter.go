package httpserver

import (
	"net/netip"
	"sync"

	"golang.org/x/time/rate"
)

// maxTracked bounds the addresses that a limiter remembers, in each of its two generations.
const maxTracked = 4096

// AddressLimiter counts requests per client address. It remembers two generations of addresses: when the young one is
// full, the old one is forgotten, so that memory is bounded and an address in use keeps its count. It is safe for
// concurrent use.
type AddressLimiter struct {
	perMinute int

	mu         sync.Mutex // protects the fields below
	young, old map[netip.Addr]*rate.Limiter
}

// NewAddressLimiter makes a limiter that allows each address this many requests a minute, with as many at once; a negative
// number limits nothing.
func NewAddressLimiter(perMinute int) *AddressLimiter {
	return &AddressLimiter{perMinute: perMinute, young: map[netip.Addr]*rate.Limiter{}}
}

// Allow says whether addr may make one more request now. The zero address is one address, and an IPv6 address counts with
// its /64 network.
func (l *AddressLimiter) Allow(addr netip.Addr) bool {
	if l.perMinute < 0 {
		return true
	}
	addr = ClientNetwork(addr)
	l.mu.Lock()
	bucket, ok := l.young[addr]
	if !ok {
		if bucket, ok = l.old[addr]; !ok {
			bucket = rate.NewLimiter(rate.Limit(float64(l.perMinute)/60), l.perMinute)
		}
		if len(l.young) >= maxTracked {
			l.old, l.young = l.young, map[netip.Addr]*rate.Limiter{}
		}
		l.young[addr] = bucket
	}
	l.mu.Unlock()
	return bucket.Allow()
}

// ipv6ClientBits is the part of an IPv6 address that names a client: one subscriber line has a /64 at least, and could
// otherwise take a new address for every request.
const ipv6ClientBits = 64

// ClientNetwork is what one client is counted by: an IPv4 address, or the /64 that an IPv6 host can roam in. The zero address is
// its own.
func ClientNetwork(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if !addr.Is6() {
		return addr
	}
	prefix, err := addr.Prefix(ipv6ClientBits)
	if err != nil {
		return addr
	}
	return prefix.Addr()
}
