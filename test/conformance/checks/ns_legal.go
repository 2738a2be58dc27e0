package checks

import (
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// nsLookAlikes are paths that resemble the hub's and are others (NS-09). What stands before or after is unique where
// the case allows it, so that nothing but the resemblance can be the reason for a refusal.
func nsLookAlikes() []nsCase {
	after := func(name, what string) nsCase {
		return nsCase{"NS-09", name, func(t *suite.T, p nsPath) string { return p.whole + what + t.Unique("x") }}
	}
	// A path that ends with a slash has an empty last segment, which these cases would only repeat.
	exactly := func(name string, topic func(p nsPath) string) nsCase {
		return nsCase{"NS-09", name, func(t *suite.T, p nsPath) string { nsRelative(t, p); return topic(p) }}
	}
	return []nsCase{
		after("longer", ""),
		after("hyphen", "-"),
		after("dot", "."),
		after("colon", ":"),
		after("semicolon", ";"),
		after("encoded-slash", "%2F"),
		after("encoded-slash-lower-hex", "%2f"),
		after("encoded-backslash", "%5C"),
		after("encoded-question-mark", "%3F"),
		after("encoded-hash", "%23"),
		after("encoded-space", "%20"),
		after("encoded-NUL", "%00"),
		after("encoded-letter", "%78"),
		after("space", " "),
		after("non-ASCII", "\u00e9"),
		exactly("dot-only", func(p nsPath) string { return p.whole + "." }),
		exactly("encoded-slash-only", func(p nsPath) string { return p.whole + "%2F" }),
		exactly("semicolon-only", func(p nsPath) string { return p.whole + ";" }),
		{"NS-09", "shorter", func(t *suite.T, p nsPath) string { return nsShorter(t, p) }},
		{"NS-09", "double-encoded", nsTwice},
		{"NS-09", "double-encoded-below", func(t *suite.T, p nsPath) string {
			return nsTwice(t, p) + "/" + t.Unique("x")
		}},
		{"NS-09", "upper-case", func(t *suite.T, p nsPath) string { return nsOtherCase(t, p.whole, "", len(p.dir)) }},
		{"NS-09", "upper-case-segment", func(t *suite.T, p nsPath) string { return nsOtherCase(t, p.last, p.dir, len(p.last)) }},
		{"NS-09", "full-width", func(t *suite.T, p nsPath) string { return nsFullWidth(t, p) }},
		{"NS-09", "encoded-inner-slashes", func(t *suite.T, p nsPath) string {
			if p.dir == "/" {
				t.Skip("the hub's path has one segment, so no slash between segments that could be encoded")
			}
			return "/" + strings.ReplaceAll(p.whole[1:], "/", "%2F")
		}},
		exactly("empty-segment", func(p nsPath) string { return p.dir + "/" + p.last }),
		exactly("empty-first-segment", func(p nsPath) string { return "https://example.com/" + p.whole }),
	}
}

// nsShorter is the path without its last character.
func nsShorter(t *suite.T, p nsPath) string {
	short := p.whole[:len(p.whole)-1]
	if len(p.last) < 2 || strings.LastIndexByte(short, '%') >= len(short)-2 {
		t.Skip("the last segment of the hub's path, %q, is one character or ends with an encoded octet: cutting its last character off leaves no path that is only shorter", p.last)
	}
	return short
}

// nsTwice is the path with one octet encoded twice. Encoded once, an unreserved character means the same (RFC 3986 section
// 6.2.2.2); any other one would make another path already.
func nsTwice(t *suite.T, p nsPath) string {
	encoded, ok := nsEncodeOne(p.whole, "%25", upperHex, nsUnreserved)
	if !ok {
		t.Skip("the hub's path, %q, has no unreserved character: nothing in it could be encoded, once or twice, and mean the same", p.whole)
	}
	return encoded
}

// nsOtherCase is before, and the first n characters of text with the other case for each letter, and the rest.
func nsOtherCase(t *suite.T, text, before string, n int) string {
	b := []byte(text)
	for i := 0; i < n; i++ {
		switch c := b[i]; {
		case c == '%':
			i += 2
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
			b[i] = c ^ 0x20
		}
	}
	if string(b) == text {
		t.Skip("this part of the hub's path, %q, has no letters: it has no other case", text[:n])
	}
	return before + string(b)
}

// nsFullWidth is the path with its first letter or digit of the last segment as a full-width one, which compatibility
// normalisation would make equal. The URL parser does not normalise paths.
func nsFullWidth(t *suite.T, p nsPath) string {
	if p.last == "" || !nsUnreserved(p.last[0]) {
		t.Skip("the last segment of the hub's path, %q, begins with no letter, digit or mark that has a full-width form", p.last)
	}
	return p.dir + string(rune(p.last[0])-0x20+0xFF00) + p.last[1:]
}

// nsOutside are topics that name the hub's path somewhere, and whose own path is another one (NS-09).
func nsOutside() []nsCase {
	unique := func(name, format string) nsCase {
		return nsCase{"NS-09", name, func(t *suite.T, p nsPath) string {
			return strings.NewReplacer("$P", p.whole, "$U", t.Unique("x")).Replace(format)
		}}
	}
	return []nsCase{
		nsAround("NS-09", "below-another", "/x", ""),
		unique("dots-lead-out", "$P/../$U"),
		unique("encoded-dots-lead-out", "$P/%2e%2E/$U"),
		unique("dots-lead-far-out", "$P/subscriptions/x/../../../$U"),
		unique("absolute-dots-lead-out", "https://example.com$P/../$U"),
		unique("backslash-dots-lead-out", `$P\..\$U`),
		{"NS-09", "parent", func(t *suite.T, p nsPath) string { nsRelative(t, p); return p.whole + "/.." }},
		{"NS-09", "directory", func(t *suite.T, p nsPath) string { nsRelative(t, p); return p.dir }},
		{"NS-09", "directory-reference", func(t *suite.T, p nsPath) string { nsRelative(t, p); return "." }},
		unique("in-query", "/$U?x=$P"),
		unique("in-query-dots", "/$U?/../..$P"),
		unique("in-fragment", "/$U#$P"),
		unique("hub-url-in-query", "https://example.com/$U?hub=https://h.example$P"),
		unique("beside", "$U"),
		unique("beside-dot-slash", "./$U"),
		unique("subscriptions-beside", "subscriptions/exact/a/$U"), // below the hub's directory, not below the hub
		nsAround("NS-09", "as-host", "/", ""),                      // its first segment is the host
		nsAround("NS-09", "empty-host-foo", "foo:///h.example", ""),
		{"NS-09", "own-scheme-one-slash", func(t *suite.T, p nsPath) string { return nsScheme(t) + ":/h.example" + p.whole }},
		{"NS-09", "backslashes-foo", func(_ *suite.T, p nsPath) string { return "foo:" + nsBack(p.whole) }},
		{"NS-09", "backslashes-foo-host", func(_ *suite.T, p nsPath) string { return "foo://h/x" + nsBack(p.whole) }},
	}
}

// nsOpaque are URLs whose path is opaque: it has no leading slash and no segments (NS-09).
func nsOpaque() []nsCase {
	return []nsCase{
		{"NS-09", "opaque", func(_ *suite.T, p nsPath) string { return "foo:" + p.whole[1:] }},
		{"NS-09", "opaque-below", func(_ *suite.T, p nsPath) string { return "urn:" + p.whole[1:] + "/x" }},
		nsAround("NS-09", "data-url", "data:,", ""),
		{"NS-09", "blob-url", func(t *suite.T, _ nsPath) string { return "blob:" + t.Target().URL }},
	}
}

// nsHarmless are the spellings that the refused topics use, for other paths: it is the path that is refused, not the
// spelling (NS-09).
func nsHarmless() []nsCase {
	unique := func(name, format string) nsCase {
		return nsCase{"NS-09", name, func(t *suite.T, _ nsPath) string { return strings.ReplaceAll(format, "$U", t.Unique("x")) }}
	}
	return []nsCase{
		unique("absolute-path-elsewhere", "/$U"),
		unique("dots-elsewhere", "/x/../y/./$U"),
		unique("encoded-dots-elsewhere", "/x/%2e%2E/$U"),
		unique("encoded-letters-elsewhere", "/%78/$U"),
		unique("backslashes-elsewhere", `\x\$U`),
		unique("backslashes-absolute-elsewhere", `https:\\example.com\$U`),
		unique("one-slash-elsewhere", "https:/example.com/$U"),
		unique("many-slashes-elsewhere", "https://///example.com/$U"),
		unique("spaces-elsewhere", " https://example.com/$U "),
		unique("upper-case-scheme-elsewhere", "HTTPS://example.com/$U"),
		unique("other-scheme-elsewhere", "foo://example.com/$U"),
		unique("other-scheme-path-elsewhere", "foo:/$U"),
		unique("host-elsewhere", "//example.com/$U"),
		unique("user-elsewhere", "https://user:secret@example.com:8443/$U"),
		unique("query-elsewhere", "/$U?x=1#y"),
		{"NS-09", "hub-origin-elsewhere", func(t *suite.T, _ nsPath) string { return t.Target().Origin() + "/" + t.Unique("x") }},
		{"NS-09", "root", func(*suite.T, nsPath) string { return "/" }},
		{"NS-09", "hub-origin", func(t *suite.T, _ nsPath) string { return t.Target().Origin() }},
	}
}

// nsUnparseable are topics that the URL parser fails on, so that they name no path (NS-10).
func nsUnparseable() []nsCase {
	return []nsCase{
		nsAround("NS-10", "open-bracket", "https://[bad", ""),
		nsAround("NS-10", "open-bracket-below", "https://[bad", "/x"),
		nsAround("NS-10", "port-too-large", "https://h:99999", ""),
		nsAround("NS-10", "port-too-large-foo", "foo://h:99999", "/x"),
		nsAround("NS-10", "port-no-number", "https://h:port", ""),
		nsAround("NS-10", "space-in-host", "https://a b", ""),
		nsAround("NS-10", "percent-in-host", "https://a%zz", ""),
		nsAround("NS-10", "user-without-host", "https://user@", ""),
		nsAround("NS-10", "ipv4-too-large", "https://192.0.2.256", ""),
		nsAround("NS-10", "ipv6-too-short", "//[::1", "/x"),
		nsAround("NS-10", "angle-bracket-in-host", "foo://h<", ""),
	}
}

// nsAlternates say that one reserved topic refuses the update, wherever it stands, and that nobody receives it (NS-11).
func nsAlternates() []suite.Check {
	const good = "" // stands for a topic that is not reserved
	check := func(name string, topics func(t *suite.T, p nsPath) []string) suite.Check {
		return one("NS-11", name, func(t *suite.T) {
			mine := t.Topic()
			s := t.ListenTo(mine)
			fields := []string{"data", "x"}
			for _, topic := range topics(t, nsPathOf(t)) {
				if topic == good {
					topic = mine
				}
				fields = append(fields, "topic", topic)
			}
			t.Want(suite.Bearer(t.Post(wire.Form(fields...)), t.PublishAll()), 400)
			s.Want()
		})
	}
	return []suite.Check{
		check("alternate", func(_ *suite.T, p nsPath) []string { return []string{good, p.whole + "/x"} }),
		check("alternate-path", func(_ *suite.T, p nsPath) []string { return []string{good, p.whole} }),
		check("canonical", func(_ *suite.T, p nsPath) []string { return []string{p.whole + "/x", good} }),
		check("third", func(t *suite.T, p nsPath) []string { return []string{good, t.Topic(), p.whole + "/x"} }),
		check("middle", func(t *suite.T, p nsPath) []string { return []string{good, p.whole + "/x", t.Topic()} }),
		check("tenth", func(_ *suite.T, p nsPath) []string { return append(slices.Repeat([]string{good}, 9), p.whole+"/x") }),
		check("absolute-alternate", func(_ *suite.T, p nsPath) []string { return []string{good, "https://h" + p.whole + "/x"} }),
		check("encoded-alternate", func(_ *suite.T, p nsPath) []string {
			return []string{good, nsEncode(p.whole, upperHex, nsUnreserved) + "/x"}
		}),
		check("relative-alternate", func(t *suite.T, p nsPath) []string { return []string{good, nsRelative(t, p)} }),
		one("NS-11", "good-alternates", func(t *suite.T) {
			mine, other := t.Topic(), t.Topic()
			s := t.ListenTo(other)
			s.Want(t.Publish("topic", mine, "topic", other, "topic", nsPathOf(t).whole+t.Unique("x"), "data", "x"))
		}),
	}
}

// nsOtherPath say that the rule follows the hub, not the default path (NS-12). Where the hub has the default path, it is
// the paths of other hubs that are legal.
func nsOtherPath() []suite.Check {
	refused := func(name, before, after string) suite.Check {
		return one("NS-12", name, func(t *suite.T) { nsRefused(t, before+t.Target().Path()+after) }, suite.OtherPath)
	}
	legal := func(name, before, after string) suite.Check {
		return one("NS-12", name, func(t *suite.T) {
			if strings.HasPrefix(suite.DefaultPath+"/", t.Target().Path()+"/") {
				t.Skip("the default path lies below the hub's, so it is in this hub's namespace and no path of another")
			}
			nsLegal(t, before+suite.DefaultPath+after)
		}, suite.OtherPath)
	}
	onDefault := func(name string, run func(t *suite.T)) suite.Check {
		return one("NS-12", name, func(t *suite.T) {
			if t.Target().Has(suite.OtherPath) {
				t.Skip("the hub's path is not the default one, on which this case is about; the others of NS-12 ask about other paths")
			}
			run(t)
		})
	}
	return []suite.Check{
		refused("own-path", "", ""),
		refused("below-own-path", "", "/subscriptions/exact/a/b"),
		refused("own-path-absolute", "https://example.com", "/x"),
		one("NS-12", "hub-url", func(t *suite.T) { nsRefused(t, t.Target().URL+"/x") }, suite.OtherPath),
		one("NS-12", "own-segment", func(t *suite.T) { nsRefused(t, nsRelative(t, nsPathOf(t))) }, suite.OtherPath),
		legal("default-path", "", ""),
		legal("below-default-path", "", "/subscriptions/exact/a/b"),
		legal("default-path-absolute", "https://example.com", "/x"),
		onDefault("on-default-path-refused", func(t *suite.T) { nsRefused(t, suite.DefaultPath+"/x") }),
		onDefault("on-default-path-others-legal", func(t *suite.T) {
			for _, path := range []string{"/hub", "/hubs/live", "/mercure", "/x" + suite.DefaultPath, "/subscriptions/exact/a/b"} {
				nsLegal(t, path)
			}
		}),
	}
}
