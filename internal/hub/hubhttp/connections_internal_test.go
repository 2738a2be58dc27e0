package hubhttp

import (
	"errors"
	"net/netip"
	"sync"
	"testing"
)

func TestLimiter(t *testing.T) {
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	t.Run("LIM-04 per address", func(t *testing.T) {
		l := NewConnections(2, 0)
		first, err := l.acquire(a)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.acquire(netip.MustParseAddr("::ffff:192.0.2.1")); err != nil {
			t.Fatal(err)
		}
		if _, err := l.acquire(a); !errors.Is(err, errAddressConnections) {
			t.Errorf("third stream = %v, want %v", err, errAddressConnections)
		}
		if _, err := l.acquire(b); err != nil {
			t.Errorf("another address = %v, want nil", err)
		}
		first()
		if _, err := l.acquire(a); err != nil {
			t.Errorf("after a release = %v, want nil", err)
		}
	})
	t.Run("LIM-04 a /64 is one IPv6 client", func(t *testing.T) {
		l := NewConnections(1, 0)
		if _, err := l.acquire(netip.MustParseAddr("2001:db8:0:1::1")); err != nil {
			t.Fatal(err)
		}
		if _, err := l.acquire(netip.MustParseAddr("2001:db8:0:1:ffff::2")); !errors.Is(err, errAddressConnections) {
			t.Errorf("same /64 = %v, want %v", err, errAddressConnections)
		}
		if _, err := l.acquire(netip.MustParseAddr("2001:db8:0:2::1")); err != nil {
			t.Errorf("other /64 = %v, want nil", err)
		}
	})
	t.Run("LIM-04 in total", func(t *testing.T) {
		l := NewConnections(0, 2)
		release, err := l.acquire(netip.Addr{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.acquire(a); err != nil {
			t.Fatal(err)
		}
		if _, err := l.acquire(b); !errors.Is(err, errTooManyConnections) {
			t.Errorf("third stream = %v, want %v", err, errTooManyConnections)
		}
		release()
		if _, err := l.acquire(b); err != nil {
			t.Errorf("after a release = %v, want nil", err)
		}
	})
	t.Run("an unknown address is not one client", func(t *testing.T) {
		l := NewConnections(1, 0)
		for range 3 {
			if _, err := l.acquire(netip.Addr{}); err != nil {
				t.Errorf("acquire = %v, want nil", err)
			}
		}
	})
	t.Run("keeps nothing of who has left", func(t *testing.T) {
		l := NewConnections(10, 0)
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				release, err := l.acquire(netip.AddrFrom4([4]byte{10, 0, 0, byte(i % 50)}))
				if err == nil {
					release()
				}
			})
		}
		wg.Wait()
		if l.open != 0 || len(l.byAddress) != 0 {
			t.Errorf("open = %d, addresses = %d, want none", l.open, len(l.byAddress))
		}
	})
}
