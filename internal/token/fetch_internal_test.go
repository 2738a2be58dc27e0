package token

import (
	"net/netip"
	"testing"
)

func TestIsPublic(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"93.184.215.14": true, "1.1.1.1": true, "223.255.255.255": true, "2606:2800:21f:cb07::1": true, "2a00:1450::1": true,
		"0.0.0.0": false, "10.1.2.3": false, "100.64.0.1": false, "127.0.0.1": false, "169.254.169.254": false,
		"172.16.0.1": false, "172.31.255.255": false, "192.168.0.1": false, "198.18.0.1": false, "203.0.113.9": false,
		"224.0.0.1": false, "255.255.255.255": false, "192.0.0.192": false,
		"::": false, "::1": false, "::127.0.0.1": false, "::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false,
		"fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false, "fec0::1": false,
		"64:ff9b::7f00:1": false, "64:ff9b:1::1": false, "100::1": false, "2001::1": false, "2001:db8::1": false,
		"2002:7f00:1::": false, "3fff::1": false, "4000::1": false,
	} {
		if got := reachPublic.allows(netip.MustParseAddr(address)); got != want {
			t.Errorf("PRM-14: %s is public: %v, want %v", address, got, want)
		}
	}
	for address, want := range map[string]bool{"127.0.0.2": true, "::1": true, "::ffff:127.0.0.1": true, "10.0.0.1": false, "1.1.1.1": false} {
		if got := reachLoopback.allows(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is loopback: %v, want %v", address, got, want)
		}
	}
}
