package token

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// Bounds of fetching.
const (
	fetchTimeout     = 5 * time.Second // of all that one refresh reads
	fetchMaxBytes    = 1 << 20
	fetchHeaderBytes = 64 << 10
)

// reach says which addresses a fetch may connect to.
type reach uint8

const (
	// reachAny is for URLs the operator configured.
	reachAny reach = iota
	// reachPublic is for URLs found in documents: whoever wrote one must not make us ask machines it cannot reach itself.
	reachPublic
	// reachLoopback is for plain HTTP, which is allowed on this machine alone.
	reachLoopback
)

var (
	errAddress  = errors.New("address not allowed")
	errNotFound = errors.New("not found")
)

// fetcher reads small JSON documents without following anybody anywhere: no redirects, no proxies, no cookies, no
// compression, one connection per fetch, bounded in size; the context bounds the time.
type fetcher struct {
	client    *http.Client // nil: a client of our own for each reach
	allowHTTP bool
}

// fetch returns the body of a JSON document; errNotFound for a 404.
func (f fetcher) fetch(ctx context.Context, u *url.URL, r reach) ([]byte, error) {
	if err := f.checkURL(u); err != nil {
		return nil, err
	}
	if u.Scheme == "http" {
		r = reachLoopback
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	request.Header.Set("Accept", "application/json, application/jwk-set+json")
	response, err := f.clientFor(r).Do(request)
	if err != nil {
		return nil, fmt.Errorf("fetch: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	switch {
	case response.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("fetch %s: %w", u.Redacted(), errNotFound)
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("fetch %s: status %d", u.Redacted(), response.StatusCode)
	case !isJSON(response.Header.Get("Content-Type")):
		return nil, fmt.Errorf("fetch %s: content type is not JSON", u.Redacted())
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, fetchMaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", u.Redacted(), err)
	}
	if len(body) > fetchMaxBytes {
		return nil, fmt.Errorf("fetch %s: more than %d bytes", u.Redacted(), fetchMaxBytes)
	}
	return body, nil
}

// checkURL wants https, or plain http on loopback where that is allowed.
func (f fetcher) checkURL(u *url.URL) error {
	switch {
	case u.Host == "" || u.User != nil:
		return fmt.Errorf("URL %s: needs a host and no user", u.Redacted())
	case u.Scheme == "https":
		return nil
	case u.Scheme == "http" && f.allowHTTP && isLoopbackHost(u.Hostname()):
		return nil
	}
	return fmt.Errorf("URL %s: must use https", u.Redacted())
}

// clientFor is the given client, or one that dials only what r allows; redirects are never followed.
func (f fetcher) clientFor(r reach) *http.Client {
	c := &http.Client{Transport: transportFor(r)}
	if f.client != nil {
		c.Transport = f.client.Transport
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}

// transportFor checks the address after name resolution, on the connection that is about to be made, so that a name cannot
// resolve to one address for the check and to another for the connection.
func transportFor(r reach) *http.Transport {
	dialer := &net.Dialer{
		Timeout: fetchTimeout,
		Control: func(_, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("%w: %s", errAddress, address)
			}
			if !r.allows(ap.Addr()) {
				return fmt.Errorf("%w: %s", errAddress, ap.Addr())
			}
			return nil
		},
	}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: fetchHeaderBytes,
	}
}

func (r reach) allows(a netip.Addr) bool {
	a = a.Unmap()
	switch r {
	case reachAny:
		return true
	case reachLoopback:
		return a.IsLoopback()
	case reachPublic:
		return isPublic(a)
	}
	return false
}

// isPublic says whether an address is reachable from anywhere by the IANA special-purpose registries (RFC 6890). For
// IPv6 it is an allow-list: 2000::/3 less what embeds other addresses or is reserved.
func isPublic(a netip.Addr) bool {
	for _, p := range specialPrefixes() {
		if p.Contains(a) {
			return false
		}
	}
	if a.Is4() {
		return true
	}
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20}), 3).Contains(a)
}

func specialPrefixes() []netip.Prefix {
	var all []netip.Prefix
	for _, text := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
		"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
		"224.0.0.0/4", "240.0.0.0/4",
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	} {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func isLoopbackHost(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// isJSON accepts application/json and types with the suffix +json, such as application/jwk-set+json.
func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" ||
		strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json"))
}
