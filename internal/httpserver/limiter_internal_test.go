package httpserver

import (
	"net/netip"
	"testing"
)

func TestAddressLimiter_Bounded(t *testing.T) {
	l := NewAddressLimiter(1)
	addr := func(i int) netip.Addr {
		return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
	}
	busy := netip.MustParseAddr("192.0.2.1")
	if !l.Allow(busy) {
		t.Fatal("the first request is refused")
	}
	for i := range 3 * maxTracked {
		l.Allow(addr(i))
		if i%1000 == 0 && l.Allow(busy) {
			t.Fatalf("an address in use lost its count after %d others", i)
		}
	}
	if n := len(l.young) + len(l.old); n > 2*maxTracked {
		t.Errorf("%d addresses are remembered, want at most %d", n, 2*maxTracked)
	}
}

func TestAddressLimiter_CountsNetworks(t *testing.T) {
	l := NewAddressLimiter(1)
	for _, tt := range []struct {
		addr string
		want bool
	}{
		{"192.0.2.1", true},
		{"::ffff:192.0.2.1", false},
		{"192.0.2.2", true},
		{"2001:db8::1", true},
		{"2001:db8::2", false},
		{"2001:db8:0:1::1", true},
		{"fe80::1%eth0", true},
		{"fe80::2%eth1", false},
	} {
		if got := l.Allow(netip.MustParseAddr(tt.addr)); got != tt.want {
			t.Errorf("Allow(%s) = %v, want %v", tt.addr, got, tt.want)
		}
	}
	if !l.Allow(netip.Addr{}) || l.Allow(netip.Addr{}) {
		t.Error("unknown addresses do not share one count")
	}
}
