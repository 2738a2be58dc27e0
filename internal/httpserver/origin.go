package httpserver

import (
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// SourceOrigin tells which origin a request says it comes from: its Origin field, or else the origin of its Referer, which is an http
// or https URL (SEC-06). An opaque origin ("null"), several fields and an unreadable Referer yield none (SEC-07, SEC-13).
func SourceOrigin(r *http.Request) (string, bool) {
	if fields, ok := r.Header["Origin"]; ok {
		if len(fields) != 1 || fields[0] == "null" || fields[0] == "" {
			return "", false
		}
		return fields[0], true
	}
	fields := r.Header["Referer"]
	if len(fields) != 1 {
		return "", false
	}
	origin, ok := SerialiseOrigin(fields[0])
	if !ok || !strings.HasPrefix(origin, "https://") && !strings.HasPrefix(origin, "http://") {
		return "", false
	}
	return origin, true
}

// SerialiseOrigin returns the ASCII serialisation of the origin of rawURL (HTML, "Origin"). URLs without a host, such as
// data: and file: ones, have an opaque origin, and so none that could be listed.
func SerialiseOrigin(rawURL string) (string, bool) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme == "" || u.Host == "" || u.Opaque != "" {
		return "", false
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if !validHost(host) {
		return "", false
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	scheme := strings.ToLower(u.Scheme)
	switch {
	case port == "", scheme == "https" && port == "443", scheme == "http" && port == "80":
		return scheme + "://" + host, true
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "", false
	}
	return scheme + "://" + host + ":" + port, true
}

// validHost accepts host names in ASCII (an international one is listed in its xn-- form, as browsers send it), and
// addresses in the spelling that browsers use.
func validHost(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if strings.Contains(host, ":") || last != "" && strings.Trim(last, "0123456789") == "" {
		a, err := netip.ParseAddr(host)
		return err == nil && a.Zone() == "" && a.String() == host
	}
	for i := range len(host) {
		switch c := host[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '.', c == '_':
		default:
			return false
		}
	}
	return host != ""
}
