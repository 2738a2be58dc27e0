package session

import (
	"net/netip"
	"sync"

	"golang.org/x/time/rate"
)

// maxTracked bounds the addresses that a limiter remembers, in each of its two generations.
const maxTracked = 4096

// limiter counts login starts per client address. It remembers two generations of addresses: when the young
// one is full, the old one is forgotten, so that memory is bounded and an address in use keeps its count. It
// is safe for concurrent use.
type limiter struct {
	perMinute int

	mu         sync.Mutex // protects the fields below
	young, old map[netip.Addr]*rate.Limiter
}

// newLimiter makes a limiter; a negative number limits nothing.
func newLimiter(perMinute int) *limiter {
	return &limiter{perMinute: perMinute, young: map[netip.Addr]*rate.Limiter{}}
}

// allow says whether addr may start one more login now.
func (l *limiter) allow(addr netip.Addr) bool {
	if l.perMinute < 0 {
		return true
	}
	addr = network(addr)
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

// network is what one client is counted by: an IPv4 address, or the /64 that an IPv6 host can roam in.
func network(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if !addr.Is6() {
		return addr
	}
	prefix, err := addr.Prefix(64)
	if err != nil {
		return addr
	}
	return prefix.Addr()
}
