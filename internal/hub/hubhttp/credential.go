package hubhttp

import (
	"net/http"
	"strings"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
)

// carrier says how a request presents its credential.
type carrier uint8

const (
	carriedByNothing carrier = iota
	carriedByHeader
	carriedByCookie
)

// credential is the token a request presents, unjudged.
type credential struct {
	carrier carrier
	compact string // may be empty with carriedByCookie: an empty cookie is a presented credential
}

// presented finds the credential of r. An Authorization field hides the cookie whatever it holds (AUTH-16, AUTH-22); the query
// and the body are never looked at (AUTH-12, AUTH-13). The errors are errMalformedBearer, errTwoAuthorizations and
// errTwoCookies.
func (a *api) presented(r *http.Request) (credential, error) {
	fields := r.Header["Authorization"]
	switch len(fields) {
	case 0:
		return cookieCredential(r, a.options.CookieName)
	case 1:
		return headerCredential(fields[0])
	default:
		return credential{}, errTwoAuthorizations
	}
}

// headerCredential reads an Authorization field: "Bearer" 1*SP b64token (RFC 6750 section 2.1), the scheme in any case
// (AUTH-20). Another scheme carries no token for us. What starts like Bearer and goes on differently is malformed, never
// "another scheme": a client that meant to present a token must not be taken for an anonymous one.
func headerCredential(field string) (credential, error) {
	n := tokenLength(field)
	scheme, rest := field[:n], field[n:]
	if n == 0 {
		return credential{}, errMalformedBearer
	}
	if !strings.EqualFold(scheme, "Bearer") {
		if rest != "" && rest[0] != ' ' {
			return credential{}, errMalformedBearer
		}
		return credential{}, nil
	}
	compact := strings.TrimLeft(rest, " ")
	if len(compact) == len(rest) || !isB64Token(compact) {
		return credential{}, errMalformedBearer
	}
	return credential{carrier: carriedByHeader, compact: compact}, nil
}

// isB64Token reports whether s is 1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"=".
func isB64Token(s string) bool {
	s = strings.TrimRight(s, "=")
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("-._~+/", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

// cookieCredential finds the cookie called name, whose value counts as it is, even empty. Equal duplicates are one (a browser may
// hold a host-only and a domain cookie); different ones are refused, because which of them a sibling domain has planted cannot be told.
func cookieCredential(r *http.Request, name string) (credential, error) {
	values := httpserver.CookieValues(r, name)
	switch len(values) {
	case 0:
		return credential{}, nil
	case 1:
		return credential{carrier: carriedByCookie, compact: values[0]}, nil
	default:
		return credential{}, errTwoCookies
	}
}

// resumeHeader returns the Last-Event-ID field. Clients write it in UTF-8, as EventSource does; those that can only send
// Latin-1 (fetch) are understood as well, since such bytes are not UTF-8.
func resumeHeader(r *http.Request) (id string, ok bool) {
	fields := r.Header[http.CanonicalHeaderKey(mercure.HeaderLastEventID)]
	if len(fields) == 0 {
		return "", false
	}
	return latin1ToUTF8(fields[0]), true
}
