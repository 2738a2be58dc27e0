package httpserver

import (
	"iter"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ClientIPFunc tells the address of the client that sent r. The zero address means that it is unknown.
type ClientIPFunc func(r *http.Request) netip.Addr

// maxForwardedHops bounds how many X-Forwarded-For entries are looked at, from the right.
const maxForwardedHops = 32

// ClientIP returns a function that tells the address a request came from, for limits and throttles and nothing else. With no
// trusted prefixes it is the peer of the connection. Otherwise X-Forwarded-For is read from right to left for as long
// as the address that added an entry is trusted: the first untrusted address is the client. An entry that is no
// address ends the walk at the last address that was one. The function is safe for concurrent use.
func ClientIP(trusted []netip.Prefix) ClientIPFunc {
	proxies := newPrefixes(trusted)
	return func(r *http.Request) netip.Addr {
		client, ok := parseAddress(r.RemoteAddr)
		if !ok || !proxies.contain(client) {
			return client
		}
		hops := 0
		for entry := range forwardedFor(r.Header["X-Forwarded-For"]) {
			address, ok := parseAddress(entry)
			if hops++; !ok || hops > maxForwardedHops {
				break
			}
			if client = address; !proxies.contain(client) {
				break
			}
		}
		return client
	}
}

// prefixes is a set of address blocks.
type prefixes []netip.Prefix

// newPrefixes brings blocks into the form in which addresses are compared: masked, and IPv4 where they are IPv4-mapped.
func newPrefixes(list []netip.Prefix) prefixes {
	set := make(prefixes, 0, len(list))
	for _, p := range list {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		set = append(set, p.Masked())
	}
	return set
}

func (s prefixes) contain(a netip.Addr) bool {
	return slices.ContainsFunc(s, func(p netip.Prefix) bool { return p.Contains(a) })
}

// forwardedFor yields the entries of X-Forwarded-For from the last to the first: several fields are one list.
func forwardedFor(fields []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, rest := range slices.Backward(fields) {
			for {
				i := strings.LastIndexByte(rest, ',')
				if !yield(rest[i+1:]) {
					return
				}
				if i < 0 {
					break
				}
				rest = rest[:i]
			}
		}
	}
}

// parseAddress reads an address with or without a port, brackets and zone, and returns it unmapped and without zone, so
// that one client has one spelling.
func parseAddress(s string) (netip.Addr, bool) {
	s = strings.Trim(s, " \t")
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone(""), true
	}
	if n := len(s); n > 2 && s[0] == '[' && s[n-1] == ']' {
		s = s[1 : n-1]
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}, false
	}
	return a.Unmap().WithZone(""), true
}
