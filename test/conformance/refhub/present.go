package refhub

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// authenticate gives the token of a request, verified for a role; nil when none is presented. The Authorization field
// counts alone when it is there (AUTH-16), else the cookie (AUTH-17). Nothing else counts (AUTH-12, AUTH-13).
func (h *Hub) authenticate(r *http.Request, role role) (*token, *refusal) {
	fields := r.Header.Values("Authorization")
	if f := h.datum().fields; f.change != nil {
		fields = f.change(fields)
	}
	values, presented := h.cookie(r, role)
	if h.fault("access-token-in-query-accepted") {
		if t := r.URL.Query().Get("access_token"); t != "" {
			return h.verify(t, role)
		}
	}
	switch {
	case len(fields) > 0 && presented && h.fault("two-mechanisms-refused"):
		return nil, mispresented()
	case presented && h.fault("cookie-wins"), len(fields) == 0 && presented:
		return h.fromCookie(values, role)
	case len(fields) == 0:
		return nil, nil // no token and no refusal: the caller decides
	}
	t, ref := h.fromHeader(fields, role)
	if ref != nil && presented && h.fault("cookie-is-fallback") {
		return h.fromCookie(values, role)
	}
	if ref != nil && h.fault("basic-falls-back-to-cookie") && presented && strings.HasPrefix(fields[0], "Basic ") {
		return h.fromCookie(values, role)
	}
	return t, ref
}

// fromHeader reads one Authorization field: the Bearer scheme, whose name has no case, and one token (AUTH-19 to
// AUTH-22, AUTH-25). A field of another scheme presents no token, and keeps the cookie out.
func (h *Hub) fromHeader(fields []string, role role) (*token, *refusal) {
	if len(fields) > 1 && !h.fault("first-authorization-used") {
		return nil, mispresented()
	}
	scheme, rest, _ := strings.Cut(fields[0], " ")
	compact := strings.TrimLeft(rest, " ")
	if strings.HasPrefix(compact, "{") && (h.fault("json-serialisation-accepted") || h.fault("general-json-accepted")) {
		return h.verify(h.flattened(compact), role)
	}
	switch {
	case h.fault("scheme-case-sensitive") && scheme != "Bearer":
		return nil, missing()
	case h.fault("scheme-upper-case-unknown") && scheme == "BEARER":
		return nil, missing()
	case !strings.EqualFold(scheme, "Bearer"):
		return nil, missing()
	case h.fault("extra-token-ignored"):
		compact, _, _ = strings.Cut(compact, " ")
	case h.fault("empty-bearer-is-none") && compact == "":
		return nil, nil // the fault: as if there was no field
	case h.fault("malformed-presentation-is-none") && !isBearerToken(compact):
		return nil, nil // the fault: as if there was no field
	case h.fault("malformed-presentation-is-invalid-token") && !isBearerToken(compact):
		return nil, bad()
	}
	if !isBearerToken(compact) {
		return nil, mispresented()
	}
	if h.fault("opaque-token-is-none") && strings.Count(compact, ".") != 2 {
		return nil, nil // the fault: as if there was no token
	}
	t, ref := h.verify(compact, role)
	if ref != nil && role == subscriber && h.opts.Anonymous && h.fault("invalid-token-is-anonymous") {
		return nil, nil // the fault: as if there was no token
	}
	return t, ref
}

// isBearerToken: the syntax b64token of RFC 6750 section 2.1.
func isBearerToken(s string) bool {
	s = strings.TrimRight(s, "=")
	for i := range len(s) {
		if !unreserved(s[i]) && s[i] != '+' && s[i] != '/' {
			return false
		}
	}
	return s != ""
}

// cookie gives the values of the hub's cookie, whose name is exact, and whether there are any (COOKIE-09, COOKIE-10).
func (h *Hub) cookie(r *http.Request, role role) ([]string, bool) {
	name := h.opts.CookieName
	if name == "" {
		return nil, false
	}
	switch {
	case h.fault("cookie-not-for-publishing") && role == publisher,
		h.fault("cookie-not-for-subscribing") && role == subscriber && r.URL.EscapedPath() == h.path,
		h.fault("cookie-not-for-api") && r.URL.EscapedPath() != h.path:
		return nil, false
	}
	var values []string
	for _, field := range r.Header.Values("Cookie") {
		for i, part := range strings.Split(field, ";") {
			n, value, found := strings.Cut(strings.TrimSpace(part), "=")
			if !found || i > 0 && h.fault("first-cookie-only") {
				continue
			}
			if n == name || h.fault("cookie-name-case-insensitive") && strings.EqualFold(n, name) ||
				h.fault("cookie-name-prefix") && strings.HasPrefix(n, name) ||
				h.fault("cookie-name-suffix") && strings.HasSuffix(n, name) {
				values = append(values, strings.TrimSpace(value))
			}
		}
	}
	return values, len(values) > 0
}

// fromCookie verifies the cookie's token. Equal values count once; different ones present two tokens.
func (h *Hub) fromCookie(values []string, role role) (*token, *refusal) {
	if len(slices.Compact(slices.Sorted(slices.Values(values)))) > 1 {
		return nil, mispresented()
	}
	t, ref := h.verify(values[0], role)
	if ref != nil && role == subscriber && h.fault("bad-cookie-is-anonymous") {
		return nil, nil // the fault: as if there was no cookie
	}
	if t != nil {
		t.fromCookie = true
	}
	return t, ref
}

// forged refuses publications with the cookie that do not come from a page we expect: the origin that Origin, or else
// Referer, tells must be the hub's own or a listed one; without either nothing is known (SEC-05 to SEC-07, SEC-13).
func (h *Hub) forged(r *http.Request) *refusal {
	ref := &refusal{status: http.StatusForbidden, detail: "Publications with the cookie are not accepted from this origin."}
	origin, told := r.Header.Get("Origin"), len(r.Header.Values("Origin")) > 0
	if len(r.Header.Values("Origin")) > 1 {
		return ref
	}
	if h.fault("origin-unchecked") || h.fault("csrf-origin-unchecked") && told || h.fault("null-origin-publishes") && origin == "null" {
		return nil
	}
	if !told {
		referer, err := url.Parse(r.Header.Get("Referer"))
		switch {
		case err != nil || referer.Host == "":
			if h.fault("missing-origin-publishes") {
				return nil
			}
			return ref
		case h.fault("referer-unchecked"):
			return nil
		case h.fault("referer-unread"):
			return ref
		}
		origin = referer.Scheme + "://" + referer.Host
	}
	if h.fault("own-origin-refused") {
		return ref
	}
	if origin == h.origin || slices.Contains(h.opts.PublishOrigins, origin) {
		return nil
	}
	if f := h.datum().page; f.same != nil {
		for _, allowed := range append([]string{h.origin}, h.opts.PublishOrigins...) {
			if f.same(origin, allowed) || f.same(r.Header.Get("Referer"), allowed) {
				return nil
			}
		}
	}
	return ref
}
