package as

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// errRedirectSyntax explains what a redirect URI must look like to be registered.
var errRedirectSyntax = errors.New("must be an https URL, an http URL on loopback, or a private-use scheme with ':/', " +
	"without fragment, user, wildcard, dot segments or control characters")

// CheckRedirectURI reports whether a redirect URI may be registered. Private-use schemes need a dot (RFC 8252 section 7.1),
// which also keeps out javascript, data and their like.
func CheckRedirectURI(uri string) error {
	u, err := url.Parse(uri)
	if err != nil || strings.ContainsAny(uri, "#*\\ ") || !printable(uri) || u.User != nil || u.Opaque != "" {
		return errRedirectSyntax
	}
	for segment := range strings.SplitSeq(strings.ToLower(u.EscapedPath()), "/") {
		segment, _, _ = strings.Cut(strings.ReplaceAll(segment, "%2e", "."), ";")
		if segment == "." || segment == ".." {
			return errRedirectSyntax
		}
	}
	switch {
	case u.Scheme == "https" && u.Hostname() != "":
		return nil
	case u.Scheme == "http" && isLoopbackHost(u.Hostname()):
		return nil
	case strings.Contains(u.Scheme, ".") && strings.HasPrefix(u.Path, "/"):
		return nil
	default:
		return errRedirectSyntax
	}
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// matchRedirect says whether the answer to a request may be sent to requested. URIs are compared as bytes (RFC 9700 section
// 4.1.3), but for the port of http URIs on loopback, which an operating system chooses (RFC 8252 section 7.3). No URI at
// all means the only registered one. It returns where the answer goes and which registered URI allows it.
func matchRedirect(requested string, registered []string) (target, by string, ok bool) {
	if requested == "" {
		if len(registered) == 1 {
			return registered[0], registered[0], true
		}
		return "", "", false
	}
	if slices.Contains(registered, requested) {
		return requested, requested, true
	}
	prefix, rest, ok := cutLoopback(requested)
	if !ok {
		return "", "", false
	}
	for _, r := range registered {
		if p, q, ok := cutLoopback(r); ok && p == prefix && q == rest {
			return requested, r, true
		}
	}
	return "", "", false
}

// cutLoopback splits an http URI on loopback around its port, by bytes: parsing and printing it again could change it. Of
// the spellings of a loopback host only the three usual ones are known.
func cutLoopback(uri string) (before, after string, ok bool) {
	for _, host := range []string{"http://127.0.0.1", "http://[::1]", "http://localhost"} {
		rest, found := strings.CutPrefix(uri, host)
		if !found {
			continue
		}
		if port, found := strings.CutPrefix(rest, ":"); found {
			digits := len(port) - len(strings.TrimLeft(port, "0123456789"))
			if _, err := netip.ParseAddrPort("127.0.0.1:" + port[:digits]); err != nil {
				return "", "", false
			}
			rest = port[digits:]
		}
		if rest != "" && rest[0] != '/' && rest[0] != '?' {
			return "", "", false
		}
		return host, rest, true
	}
	return "", "", false
}

// isNativeRedirect says whether any program on the person's machine could be behind a redirect URI, so that it proves
// nothing about the client.
func isNativeRedirect(uri string) bool {
	u, err := url.Parse(uri)
	return err != nil || (u.Scheme != "https" && u.Scheme != "http") || isLoopbackHost(u.Hostname())
}

// appendQuery adds parameters to a URI, whose own query stays as it is.
func appendQuery(uri string, add url.Values) string {
	separator := "?"
	if strings.Contains(uri, "?") {
		separator = "&"
	}
	return uri + separator + add.Encode()
}
