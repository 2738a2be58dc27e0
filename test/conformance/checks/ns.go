package checks

import (
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// nsPath is the path of the hub URL, P in the matrix, with the parts that the spellings below are made of. It may be any
// path, so no spelling is written down: each is built from it.
type nsPath struct {
	whole string
	dir   string // up to the last slash, with it
	last  string // the last segment
}

func nsPathOf(t *suite.T) nsPath {
	p := t.Target().Path()
	i := strings.LastIndexByte(p, '/')
	return nsPath{whole: p, dir: p[:i+1], last: p[i+1:]}
}

// nsCase is a topic made of the hub's path.
type nsCase struct {
	id, name string
	topic    func(t *suite.T, p nsPath) string
}

func nsChecks() []suite.Check {
	var checks []suite.Check
	for _, c := range slices.Concat(nsPaths(), nsReferences(), nsSchemes(), nsAuthorities(), nsDots(), nsEncoded(), nsBackslashes(), nsSlashes()) {
		checks = append(checks, one(c.id, c.name, func(t *suite.T) { nsRefused(t, c.topic(t, nsPathOf(t))) }))
	}
	for _, c := range slices.Concat(nsLookAlikes(), nsOutside(), nsOpaque(), nsHarmless(), nsUnparseable()) {
		checks = append(checks, one(c.id, c.name, func(t *suite.T) { nsLegal(t, c.topic(t, nsPathOf(t))) }))
	}
	return slices.Concat(checks, nsAlternates(), nsOtherPath())
}

// nsRefused wants 400, although the token grants everything.
func nsRefused(t *suite.T, topic string) {
	t.Want(suite.Bearer(t.Post(wire.Form("topic", topic, "data", "x")), t.PublishAll()), 400)
}

// nsLegal wants the update to be taken and dispatched. The topic may be one that others use as well.
func nsLegal(t *suite.T, topic string) {
	mark := t.Unique("ns")
	s := t.ListenTo(topic)
	s.WantOwn(mark, t.Publish("topic", topic, "data", mark))
}

// nsAround is a case that only puts something around the hub's path.
func nsAround(id, name, before, after string) nsCase {
	return nsCase{id, name, func(_ *suite.T, p nsPath) string { return before + p.whole + after }}
}

// nsPaths are the path itself and what lies below (NS-01), with a query or a fragment (NS-05).
func nsPaths() []nsCase {
	return []nsCase{
		nsAround("NS-01", "path", "", ""),
		nsAround("NS-01", "slash", "", "/"),
		nsAround("NS-01", "below", "", "/x"),
		nsAround("NS-01", "far-below", "", "/a/b/c/d/e/f"),
		nsAround("NS-01", "empty-segment-below", "", "//x"),
		nsAround("NS-01", "collection", "", "/subscriptions"),
		nsAround("NS-01", "subscription", "", "/subscriptions/exact/a/b"),
		nsAround("NS-01", "encoded-below", "", "/%2F%20%C3%A9"),
		nsAround("NS-05", "query", "", "?x=1"),
		nsAround("NS-05", "fragment", "", "#x"),
		nsAround("NS-05", "empty-query", "", "?"),
		nsAround("NS-05", "empty-fragment", "", "#"),
		nsAround("NS-05", "query-and-fragment", "", "?x#y"),
		nsAround("NS-05", "below-with-query", "", "/x?y"),
		nsAround("NS-05", "dots-in-query", "", "?/../../x"),
		nsAround("NS-05", "dots-in-fragment", "", "#/../../x"),
		nsAround("NS-05", "absolute-with-query", "https://example.com", "?x=1"),
		nsAround("NS-05", "absolute-with-fragment", "https://example.com", "#x"),
	}
}

// nsReferences are relative references, and the hub URL itself: they address the hub only once they are resolved.
func nsReferences() []nsCase {
	fromRoot := func(p nsPath) string {
		return strings.Repeat("../", max(1, strings.Count(p.whole, "/")-1)) + p.whole[1:]
	}
	return []nsCase{
		{"NS-02", "segment", func(t *suite.T, p nsPath) string { return nsRelative(t, p) }},
		{"NS-02", "below-segment", func(t *suite.T, p nsPath) string { return nsRelative(t, p) + "/x" }},
		{"NS-02", "dot-slash", func(_ *suite.T, p nsPath) string { return "./" + p.last }},
		{"NS-02", "dot-slash-below", func(_ *suite.T, p nsPath) string { return "./" + p.last + "/x" }},
		{"NS-02", "up-and-down", func(_ *suite.T, p nsPath) string { return fromRoot(p) }},
		{"NS-02", "up-and-down-below", func(_ *suite.T, p nsPath) string { return fromRoot(p) + "/x" }},
		{"NS-02", "query-only", func(*suite.T, nsPath) string { return "?q" }},
		{"NS-02", "fragment-only", func(*suite.T, nsPath) string { return "#f" }},
		{"NS-02", "empty", func(*suite.T, nsPath) string { return "" }},
		{"NS-02", "hub-url", func(t *suite.T, _ nsPath) string { return t.Target().URL }},
		{"NS-02", "below-hub-url", func(t *suite.T, _ nsPath) string { return t.Target().URL + "/subscriptions/exact/a/b" }},
		{"NS-02", "segment-with-query", func(t *suite.T, p nsPath) string { return nsRelative(t, p) + "?x" }},
	}
}

// nsRelative is the last segment as a relative reference. Where it cannot be one, because it would be read as a scheme
// or is empty, there is nothing to check.
func nsRelative(t *suite.T, p nsPath) string {
	if p.last == "" || strings.ContainsRune(p.last, ':') {
		t.Skip("the last segment of the hub's path, %q, is no relative reference: it is empty, or its colon makes it read as a scheme (RFC 3986 section 4.2)", p.last)
	}
	return p.last
}

// nsSchemes are URLs of other schemes (NS-03). Those that the URL Standard calls special and those that it does not are
// parsed by different rules.
func nsSchemes() []nsCase {
	var cases []nsCase
	for _, scheme := range []string{"http", "https", "ftp", "ws", "wss", "file", "foo", "coap+tcp"} {
		cases = append(cases, nsAround("NS-03", scheme+"-host", scheme+"://h", ""),
			nsAround("NS-03", scheme+"-host-below", scheme+"://h", "/x"))
	}
	return append(cases,
		nsAround("NS-03", "foo-path", "foo:", ""),
		nsAround("NS-03", "foo-path-below", "foo:", "/x"),
		nsAround("NS-03", "urn-path", "urn:", ""),
		nsAround("NS-03", "mailto-path", "mailto:", "/x"),
		nsAround("NS-03", "foo-empty-host", "foo://", ""),
		nsAround("NS-03", "file-empty-host", "file://", ""),
		nsAround("NS-03", "file-path", "file:", ""),
		nsCase{"NS-03", "other-web-scheme", func(t *suite.T, p nsPath) string {
			return nsOtherScheme(t) + strings.TrimPrefix(t.Target().Origin(), nsScheme(t)) + p.whole
		}},
	)
}

// nsScheme is the hub URL's own scheme.
func nsScheme(t *suite.T) string {
	scheme, _, _ := strings.Cut(t.Target().URL, ":")
	return scheme
}

// nsOtherScheme is the special scheme that the hub URL does not have. A URL of the base's own scheme may be relative.
func nsOtherScheme(t *suite.T) string {
	if nsScheme(t) == "https" {
		return "http"
	}
	return "https"
}

// nsAuthorities are other hosts, ports and users (NS-04).
func nsAuthorities() []nsCase {
	return []nsCase{
		nsAround("NS-04", "host", "//any.example", ""),
		nsAround("NS-04", "host-below", "//any.example", "/x"),
		nsAround("NS-04", "port", "//any.example:8443", ""),
		nsAround("NS-04", "empty-port", "//any.example:", ""),
		nsAround("NS-04", "user", "//user@any.example", "/x"),
		nsAround("NS-04", "user-and-password", "//user:secret@any.example", ""),
		nsAround("NS-04", "user-and-port", "https://user:secret@any.example:8443", "/x"),
		nsAround("NS-04", "ipv4", "https://192.0.2.1", ""),
		nsAround("NS-04", "ipv6", "https://[2001:db8::1]:8443", "/x"),
		nsAround("NS-04", "idn", "https://b\u00fccher.example", ""),
		nsAround("NS-04", "upper-case-host", "https://ANY.EXAMPLE", ""),
		nsAround("NS-04", "single-label", "https://h", "/subscriptions"),
		{"NS-04", "hub-other-port", func(t *suite.T, p nsPath) string { return urlpOtherPort(t) + p.whole }},
		{"NS-04", "hub-with-user", func(t *suite.T, p nsPath) string {
			return strings.Replace(t.Target().Origin(), "://", "://user@", 1) + p.whole
		}},
	}
}

// nsDots are paths that only lead to the hub once their dot segments are removed (NS-06).
func nsDots() []nsCase {
	inside := func(name, dots string) nsCase {
		return nsCase{"NS-06", name, func(_ *suite.T, p nsPath) string { return p.dir + dots + p.last }}
	}
	return []nsCase{
		inside("up", "x/../"),
		inside("stay", "./"),
		inside("up-encoded", "x/%2e%2e/"),
		inside("up-encoded-upper", "x/%2E%2E/"),
		inside("up-half-encoded", "x/.%2E/"),
		inside("up-half-encoded-first", "x/%2e./"),
		inside("up-mixed-case", "x/%2e%2E/"),
		inside("stay-encoded", "%2e/"),
		inside("stay-encoded-upper", "%2E/"),
		inside("up-twice", "x/y/../../"),
		inside("up-and-stay", "./x/./../"),
		inside("up-from-empty-segment", "x//../../"),
		nsAround("NS-06", "from-elsewhere", "/x/..", ""),
		nsAround("NS-06", "from-elsewhere-encoded", "/x/%2e%2e", "/y"),
		nsAround("NS-06", "above-the-root", "/../..", ""),
		nsAround("NS-06", "absolute", "https://example.com/x/..", ""),
		nsAround("NS-06", "absolute-encoded", "https://example.com/x/%2e%2E", "/y"),
		nsAround("NS-06", "foo", "foo://example.com/x/..", ""),
		nsAround("NS-06", "foo-path", "foo:/x/%2e%2e", ""),
		nsAround("NS-06", "dot-at-the-end", "", "/."),
		nsAround("NS-06", "encoded-dot-at-the-end", "", "/%2e"),
		nsAround("NS-06", "up-at-the-end", "", "/x/.."),
		nsAround("NS-06", "encoded-up-at-the-end", "", "/x/%2E%2e"),
		{"NS-06", "out-and-in", func(_ *suite.T, p nsPath) string { return p.whole + "/../" + p.last }},
		{"NS-06", "out-and-in-below", func(_ *suite.T, p nsPath) string { return p.whole + "/../" + p.last + "/x" }},
	}
}

// nsEncoded are paths that spell unreserved characters as encoded octets (NS-07).
func nsEncoded() []nsCase {
	first := func(p nsPath) string {
		segment, rest, _ := strings.Cut(p.whole[1:], "/")
		encoded := "/" + nsEncode(segment, upperHex, nsUnreserved)
		if len(segment) < len(p.whole)-1 {
			encoded += "/" + rest
		}
		return encoded
	}
	return []nsCase{
		{"NS-07", "upper-hex", func(t *suite.T, p nsPath) string { return nsOneHex(t, p, upperHex) }},
		{"NS-07", "lower-hex", func(t *suite.T, p nsPath) string { return nsOneHex(t, p, lowerHex) }},
		{"NS-07", "upper-hex-below", func(t *suite.T, p nsPath) string { return nsOneHex(t, p, upperHex) + "/x" }},
		{"NS-07", "first-segment", func(_ *suite.T, p nsPath) string { return first(p) + "/x" }},
		{"NS-07", "marks", func(t *suite.T, p nsPath) string { return nsMarks(t, p, upperHex) + "/x" }},
		{"NS-07", "marks-lower-hex", func(t *suite.T, p nsPath) string { return nsMarks(t, p, lowerHex) }},
		{"NS-07", "all", func(_ *suite.T, p nsPath) string { return nsEncode(p.whole, upperHex, nsUnreserved) }},
		{"NS-07", "all-lower-hex", func(_ *suite.T, p nsPath) string { return nsEncode(p.whole, lowerHex, nsUnreserved) + "/x" }},
		{"NS-07", "absolute", func(_ *suite.T, p nsPath) string {
			return "https://example.com" + nsEncode(p.whole, upperHex, nsUnreserved)
		}},
		{"NS-07", "foo", func(_ *suite.T, p nsPath) string { return "foo://h" + nsEncode(p.whole, upperHex, nsUnreserved) + "/x" }},
		{"NS-07", "foo-path", func(_ *suite.T, p nsPath) string { return "foo:" + nsEncode(p.whole, lowerHex, nsUnreserved) }},
		{"NS-07", "relative", func(t *suite.T, p nsPath) string {
			return nsEncode(nsRelative(t, p), upperHex, nsUnreserved)
		}},
		{"NS-07", "with-dots", func(_ *suite.T, p nsPath) string {
			return p.dir + "%78/%2e%2e/" + nsEncode(p.last, upperHex, nsUnreserved)
		}},
		{"NS-07", "with-query", func(_ *suite.T, p nsPath) string { return nsEncode(p.whole, upperHex, nsUnreserved) + "?x" }},
	}
}

const (
	upperHex = "0123456789ABCDEF"
	lowerHex = "0123456789abcdef"
)

// nsUnreserved says whether an octet is unreserved (RFC 3986 section 2.3).
func nsUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// nsEncode encodes the octets that are chosen. What the path has encoded already stays as it is.
func nsEncode(path, digits string, chosen func(c byte) bool) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c == '%' && i+2 < len(path):
			b.WriteString(path[i : i+3])
			i += 2
		case chosen(c):
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// nsEncodeOne encodes the last of the chosen characters of the path that is not encoded already, behind a percent sign, which may be encoded
// itself; ok is false when there is none.
func nsEncodeOne(path, percent, digits string, chosen func(c byte) bool) (encoded string, ok bool) {
	for i := len(path) - 1; i >= 0; i-- {
		c := path[i]
		inTriplet := i >= 1 && path[i-1] == '%' || i >= 2 && path[i-2] == '%'
		if chosen(c) && !inTriplet {
			return path[:i] + percent + string([]byte{digits[c>>4], digits[c&15]}) + path[i+1:], true
		}
	}
	return path, false
}

// nsOneHex encodes one character of the path whose octet is written differently in the two cases of hexadecimal digits.
func nsOneHex(t *suite.T, p nsPath, digits string) string {
	encoded, ok := nsEncodeOne(p.whole, "%", digits, func(c byte) bool { return nsUnreserved(c) && upperHex[c&15] != lowerHex[c&15] })
	if !ok {
		t.Skip("no unreserved character of the hub's path, %q, has an octet with a hexadecimal letter: %%-encoding it in upper and in lower case gives the same text", p.whole)
	}
	return encoded
}

func nsMarks(t *suite.T, p nsPath, digits string) string {
	encoded := nsEncode(p.whole, digits, func(c byte) bool { return strings.IndexByte("-._~", c) >= 0 })
	if encoded == p.whole {
		t.Skip("the hub's path has none of the characters - . _ ~, whose encoding this case is about")
	}
	return encoded
}

// nsBack writes a path with backslashes.
func nsBack(path string) string { return strings.ReplaceAll(path, "/", `\`) }

// nsBackslashes are backslashes, which the URL parser takes for slashes where the scheme is special (NS-08).
func nsBackslashes() []nsCase {
	return []nsCase{
		{"NS-08", "backslashes", func(_ *suite.T, p nsPath) string { return nsBack(p.whole) }},
		{"NS-08", "backslashes-below", func(_ *suite.T, p nsPath) string { return nsBack(p.whole) + `\x` }},
		{"NS-08", "backslash-before-below", func(_ *suite.T, p nsPath) string { return p.whole + `\x` }},
		{"NS-08", "first-backslash", func(_ *suite.T, p nsPath) string { return `\` + p.whole[1:] }},
		{"NS-08", "last-backslash", func(_ *suite.T, p nsPath) string { return nsBack(p.dir) + p.last }},
		{"NS-08", "backslashes-absolute", func(_ *suite.T, p nsPath) string { return `https:\\h` + nsBack(p.whole) }},
		{"NS-08", "backslashes-http", func(_ *suite.T, p nsPath) string { return `http:\\h` + nsBack(p.whole) }},
		{"NS-08", "backslashes-ftp", func(_ *suite.T, p nsPath) string { return `ftp://h` + nsBack(p.whole) + `\x` }},
		{"NS-08", "backslashes-host", func(_ *suite.T, p nsPath) string { return `\\h` + nsBack(p.whole) }},
		{"NS-08", "slash-and-backslash-host", func(_ *suite.T, p nsPath) string { return `/\h` + p.whole }},
		{"NS-08", "backslash-dots", func(_ *suite.T, p nsPath) string { return nsBack(p.dir) + `x\..\` + p.last }},
		{"NS-08", "backslash-encoded-dots", func(_ *suite.T, p nsPath) string { return p.dir + `x\%2e%2E\` + p.last }},
	}
}

// nsSlashes are the URL parser's other leniencies (NS-08): slashes after the scheme, space around, upper case.
func nsSlashes() []nsCase {
	scheme := func(name string, scheme func(*suite.T) string, before, after string) nsCase {
		return nsCase{"NS-08", name, func(t *suite.T, p nsPath) string { return scheme(t) + before + p.whole + after }}
	}
	return []nsCase{
		scheme("one-slash", nsOtherScheme, ":/h.example", ""),
		scheme("no-slash", nsOtherScheme, ":h.example", "/x"),
		scheme("three-slashes", nsOtherScheme, ":///h.example", ""),
		scheme("many-slashes", nsOtherScheme, "://///h.example", "/x"),
		scheme("slashes-and-backslashes", nsOtherScheme, `:/\/\h.example`, ""),
		scheme("own-scheme-three-slashes", nsScheme, ":///h.example", ""),
		scheme("own-scheme-path", nsScheme, ":", ""), // no host: the base's
		{"NS-08", "own-scheme-relative", func(t *suite.T, p nsPath) string { return nsScheme(t) + ":" + nsRelative(t, p) + "/x" }},
		{"NS-08", "own-scheme-query", func(t *suite.T, _ nsPath) string { return nsScheme(t) + ":?x" }},
		nsAround("NS-08", "host-three-slashes", "///h.example", ""),
		nsAround("NS-08", "ftp-one-slash", "ftp:/h.example", ""),
		nsAround("NS-08", "spaces", " ", " "),
		nsAround("NS-08", "space-before", "   ", "/x"),
		nsAround("NS-08", "space-after", "", " "),
		nsAround("NS-08", "spaces-absolute", " https://h.example", "/x "),
		{"NS-08", "space-relative", func(t *suite.T, p nsPath) string { return " " + nsRelative(t, p) + " " }},
		{"NS-08", "space-only", func(*suite.T, nsPath) string { return " " }},
		nsAround("NS-08", "upper-case-scheme", "HTTPS://h.example", ""),
		nsAround("NS-08", "mixed-case-scheme", "hTtP://h.example", "/x"),
		nsAround("NS-08", "upper-case-other-scheme", "FOO:", ""),
		{"NS-08", "upper-case-hub-url", func(t *suite.T, p nsPath) string { return strings.ToUpper(t.Target().Origin()) + p.whole }},
	}
}
