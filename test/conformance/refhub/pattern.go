package refhub

import (
	"errors"

	urlpattern "github.com/dunglas/go-urlpattern"
	whatwg "github.com/nlnwa/whatwg-url/url"
)

// compile checks a URL pattern and keeps it compiled (URLP-14). The engine below is RE2, which is linear (URLP-07).
func (h *Hub) compile(where place, pattern string) error {
	h.patternsMu.Lock()
	defer h.patternsMu.Unlock()
	if _, ok := h.patterns[pattern]; ok {
		return nil
	}
	if len(h.patterns) >= maxPatterns {
		clear(h.patterns)
	}
	compiled, err := h.newPattern(where, pattern)
	if err != nil {
		return malformed("A URL pattern is not well formed.")
	}
	h.patterns[pattern] = compiled
	return nil
}

// newPattern compiles a pattern. The hub URL is the base of relative patterns only: handed to the library with an
// absolute one, it would be put before an opaque path (URLP-02, URLP-15).
func (h *Hub) newPattern(where place, pattern string) (compiled *urlpattern.URLPattern, err error) {
	defer func() {
		if recover() != nil { // the library panics on some ill-formed patterns
			err = errors.New("refhub: URL pattern")
		}
	}()
	f := h.datum().pattern
	if f.illFormed != nil && (f.where == "" || f.where == where) && f.illFormed(pattern) {
		return nil, nil // the fault: no error, and nothing that could match
	}
	if f.rewrite != nil {
		pattern = f.rewrite(pattern)
	}
	options := &urlpattern.Options{IgnoreCase: h.fault("ignore-case-on")}
	base := ""
	if h.fault("opaque-pattern-joined-to-base") {
		base = h.url
	}
	compiled, err = urlpattern.New(pattern, base, options)
	if errors.Is(err, urlpattern.ErrNoBaseURL) && !h.fault("relative-pattern-refused") {
		compiled, err = urlpattern.New(pattern, h.url, options)
	}
	if err != nil && h.fault("any-pattern-accepted") {
		return nil, nil // the fault: no error, and nothing that could match
	}
	return compiled, err
}

// patternMatches evaluates a pattern against a topic, resolved against the hub URL (URLP-03). A topic that cannot be
// parsed matches none (URLP-06).
func (h *Hub) patternMatches(pattern, topic string) bool {
	h.patternsMu.Lock()
	compiled, known := h.patterns[pattern]
	h.patternsMu.Unlock()
	if !known { // pushed out by too many others
		var err error
		if compiled, err = h.newPattern(inMatcher, pattern); err != nil {
			return false
		}
	}
	resolved := topic
	f := h.datum().pattern
	if f.topic != nil {
		resolved = f.topic(h, topic)
	}
	matched := compiled != nil && compiled.Test(resolved, h.url)
	if f.verdict != nil {
		return f.verdict(h, pattern, topic, matched)
	}
	return matched
}

// parses says whether a topic is a URL reference against the hub URL.
func (h *Hub) parses(topic string) bool {
	_, err := whatwg.ParseRef(h.url, topic)
	return err == nil
}

// reserved says whether a topic addresses the hub's own namespace: its path, resolved against the hub URL and freed of
// dot segments by the URL parser and of encoded unreserved octets here, is the hub's path or lies below it (NS-01 to
// NS-12). A topic that cannot be parsed addresses nothing.
func (h *Hub) reserved(topic string) bool {
	if h.fault("namespace-unchecked") {
		return false
	}
	u, err := whatwg.ParseRef(h.url, topic)
	if err != nil {
		return h.fault("unparseable-topic-refused")
	}
	own, path := decodeUnreserved(h.path), decodeUnreserved(u.Pathname())
	if f := h.datum().namespace; f.verdict != nil {
		return f.verdict(h, topic, path, below(path, own))
	}
	return below(path, own)
}

func below(path, own string) bool {
	return path == own || len(path) > len(own) && path[:len(own)+1] == own+"/"
}

// decodeUnreserved decodes the percent-encoded octets that RFC 3986 section 2.3 calls unreserved.
func decodeUnreserved(s string) string {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) && hex(s[i+1]) >= 0 && hex(s[i+2]) >= 0 {
			if c := byte(hex(s[i+1])<<4 | hex(s[i+2])); unreserved(c) {
				out = append(out, c)
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

// expand is simple expansion of RFC 6570: everything but the unreserved octets is encoded, once (ACT-06, ACT-07).
func expand(s string) string {
	const digits = "0123456789ABCDEF"
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		if unreserved(s[i]) {
			out = append(out, s[i])
		} else {
			out = append(out, '%', digits[s[i]>>4], digits[s[i]&15])
		}
	}
	return string(out)
}
