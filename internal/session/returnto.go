package session

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nlnwa/whatwg-url/url"
)

const (
	// maxReturnBytes bounds return_to: it travels in a cookie.
	maxReturnBytes = 512
	// errorParam carries the outcome of a sign-in that failed, in the query of the return address.
	errorParam = "session_error"
)

// Reasons why a return address is refused. Their texts are shown to clients.
var (
	errReturnLength    = errors.New("it is longer than 512 bytes")
	errReturnCharacter = errors.New("it contains a space, a backslash, a control character (plain or encoded) or a stray percent sign, or it is not UTF-8")
	errReturnForm      = errors.New("it is neither a path that starts with one slash nor an absolute http or https URL")
	errReturnOrigin    = errors.New("its origin is neither the hub's own nor one of the configured return_to origins")
	errReturnLoop      = errors.New("it is one of the session endpoints themselves")
)

// returnPolicy decides where a sign-in may end. It is immutable.
type returnPolicy struct {
	own       string          // the hub's origin
	allowed   map[string]bool // own and the configured ones
	endpoints string          // path prefix of the session endpoints
}

func newReturnPolicy(own, endpoints string, origins []string) *returnPolicy {
	p := &returnPolicy{own: own, allowed: map[string]bool{own: true}, endpoints: endpoints}
	for _, origin := range origins {
		p.allowed[origin] = true
	}
	return p
}

// admit turns return_to, as a page wrote it, into the absolute URL that the sign-in ends at. Empty means the
// root of the hub's origin.
func (p *returnPolicy) admit(raw string) (string, error) {
	if len(raw) > maxReturnBytes {
		return "", errReturnLength
	}
	if raw == "" {
		raw = "/"
	}
	return p.resolve(raw)
}

// resolve checks a return address. The result is the parser's own serialisation and starts with an allowed
// origin and a slash, so that a browser cannot read another origin into it, whatever the two parsers disagree
// on. Resolving a result gives the same again, unless the policy is another one by then.
func (p *returnPolicy) resolve(raw string) (string, error) {
	if !cleanURL(raw) {
		return "", errReturnCharacter
	}
	u, err := p.parse(raw)
	if err != nil {
		return "", err
	}
	origin := originOf(u)
	location := dropError(u.Href(false))
	if !p.allowed[origin] || u.Username() != "" || u.Password() != "" || !strings.HasPrefix(location, origin+"/") {
		return "", errReturnOrigin
	}
	path := u.Pathname()
	if strings.HasPrefix(path, "//") || strings.HasPrefix(strings.ToLower(path), "/%2f") {
		// It stays at this origin, but a server there that redirects to its own path would leave it.
		return "", errReturnForm
	}
	if len(location)-len(origin) > maxReturnBytes {
		return "", errReturnLength
	}
	if origin == p.own && strings.HasPrefix(path, p.endpoints) {
		return "", errReturnLoop
	}
	return location, nil
}

func (p *returnPolicy) parse(raw string) (*url.Url, error) {
	if strings.HasPrefix(raw, "/") {
		if strings.HasPrefix(raw, "//") {
			return nil, errReturnForm
		}
		u, err := url.ParseRef(p.own+"/", raw)
		if err != nil {
			return nil, errReturnForm
		}
		return u, nil
	}
	lower := strings.ToLower(raw)
	if !strings.HasPrefix(lower, "https://") && !strings.HasPrefix(lower, "http://") {
		return nil, errReturnForm
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errReturnForm
	}
	return u, nil
}

// cleanURL refuses what URL parsers strip, translate or trip over, plain and percent-encoded.
func cleanURL(raw string) bool {
	if !utf8.ValidString(raw) {
		return false
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) || r == '\\' }) {
		return false
	}
	for i := range len(raw) {
		if raw[i] != '%' {
			continue
		}
		if i+2 >= len(raw) {
			return false
		}
		hi, lo := unhex(raw[i+1]), unhex(raw[i+2])
		if hi < 0 || lo < 0 {
			return false
		}
		if b := hi<<4 | lo; b < 0x20 || b == 0x7f || b == '\\' {
			return false
		}
	}
	return true
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// withError adds the outcome to a return address.
func withError(location, code string) string {
	rest, fragment, hasFragment := strings.Cut(location, "#")
	path, query, _ := strings.Cut(rest, "?")
	if query != "" {
		query += "&"
	}
	out := path + "?" + query + errorParam + "=" + code
	if hasFragment {
		out += "#" + fragment
	}
	return out
}

// dropError removes the outcome of an earlier sign-in, which a page that passes its own address along would
// otherwise be shown again.
func dropError(location string) string {
	rest, fragment, hasFragment := strings.Cut(location, "#")
	path, query, hasQuery := strings.Cut(rest, "?")
	if !strings.Contains(query, errorParam) {
		return location
	}
	var kept []string
	for pair := range strings.SplitSeq(query, "&") {
		if name, _, _ := strings.Cut(pair, "="); name != errorParam {
			kept = append(kept, pair)
		}
	}
	out := path
	if hasQuery && len(kept) > 0 {
		out += "?" + strings.Join(kept, "&")
	}
	if hasFragment {
		out += "#" + fragment
	}
	return out
}

// originOf is the tuple origin of an http or https URL, serialised.
func originOf(u *url.Url) string {
	return u.Protocol() + "//" + u.Host()
}

// parseOrigin gives the canonical form of an origin.
func parseOrigin(raw string) (string, error) {
	u, err := parseEndpoint(raw)
	if err != nil {
		return "", err
	}
	if u.Pathname() != "/" || u.Search() != "" || strings.Contains(u.Host(), "*") {
		return "", errors.New("it has a path, a query or a wildcard")
	}
	return originOf(u), nil
}

// parseEndpoint parses an absolute http or https URL without credentials and fragment.
func parseEndpoint(raw string) (*url.Url, error) {
	u, err := url.Parse(raw)
	if err != nil || !cleanURL(raw) {
		return nil, errors.New("it is not a URL")
	}
	if u.Scheme() != "https" && u.Scheme() != "http" {
		return nil, errors.New("it is not an absolute http or https URL")
	}
	if u.Username() != "" || u.Password() != "" || u.Fragment() != "" {
		return nil, errors.New("it has credentials or a fragment")
	}
	return u, nil
}
