package checks

import (
	"net/url"
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// urlpCase is a URL pattern, with topics that it matches and topics that it does not. In both, $F stands for a folder on
// https://example.com, $U for a name, both used by nobody else; $O for the hub's origin, $S for its scheme, $X for its
// origin with another port; $D for the hub's path up to the last slash, $E for the same as fixed text of a pattern.
type urlpCase struct {
	id, name string
	pattern  string
	yes, no  []string
}

func urlpChecks() []suite.Check {
	var checks []suite.Check
	for _, c := range slices.Concat(urlpSyntax(), urlpRelative(), urlpCaseSensitive(), urlpOrigins(), urlpDefaults(),
		urlpCanonical(), urlpDelimiters(), urlpProtocols(), urlpBase()) {
		checks = append(checks, one(c.id, c.name, func(t *suite.T) { urlpMatch(t, c) }))
	}
	return slices.Concat(checks, urlpForeignHost(), urlpUnparseable(), urlpIllFormed(), urlpCrafted())
}

// urlpNames gives what replaces the placeholders for one check.
func urlpNames(t *suite.T) *strings.Replacer {
	p := t.Target().Path()
	dir := p[:strings.LastIndexByte(p, '/')+1]
	escape := strings.NewReplacer("+", `\+`, "*", `\*`, "?", `\?`, ":", `\:`, "{", `\{`, "}", `\}`, "(", `\(`, ")", `\)`, `\`, `\\`)
	return strings.NewReplacer("$F", t.Folder(), "$U", t.Unique("u"), "$O", t.Target().Origin(), "$S", nsScheme(t),
		"$X", urlpOtherPort(t),
		"$D", dir, "$E", escape.Replace(dir))
}

// urlpOtherPort is the hub's origin with a port that it does not have.
func urlpOtherPort(t *suite.T) string {
	u, err := url.Parse(t.Target().Origin())
	if err != nil {
		t.Fail("the hub's origin is no URL: %v", err)
	}
	port := "8443"
	if u.Port() == port {
		port = "8444"
	}
	return strings.TrimSuffix(t.Target().Origin(), ":"+u.Port()) + ":" + port
}

// urlpMatch says that a stream of the pattern receives what is published on the topics that match, and nothing else.
func urlpMatch(t *suite.T, c urlpCase) {
	names := urlpNames(t)
	pattern := names.Replace(c.pattern)
	s := t.Listen(wire.Form("match_urlpattern", pattern))
	urlpCompare(t, s, names, c)
}

// urlpCompare publishes on the topics of a case and compares with what the stream receives. The pattern may match what
// others publish as well, so only updates that bear the mark of this check count.
func urlpCompare(t *suite.T, s *suite.Stream, names *strings.Replacer, c urlpCase) {
	mark := t.Unique("mark")
	topics := map[string]string{} // by event id
	var want []string
	for i := range max(len(c.yes), len(c.no)) {
		if i < len(c.no) {
			topic := names.Replace(c.no[i])
			topics[t.Publish("topic", topic, "data", mark)] = topic
		}
		if i < len(c.yes) {
			topic := names.Replace(c.yes[i])
			id := t.Publish("topic", topic, "data", mark)
			topics[id] = topic
			want = append(want, id)
		}
	}
	var got []string
	for _, e := range s.Events() {
		if e.Data == mark {
			got = append(got, e.ID)
		}
	}
	for _, id := range want {
		if !slices.Contains(got, id) {
			t.Fail("pattern %+q did not match topic %+q", names.Replace(c.pattern), topics[id])
		}
	}
	for _, id := range got {
		if !slices.Contains(want, id) {
			t.Fail("pattern %+q matched topic %+q", names.Replace(c.pattern), topics[id])
		}
	}
	if !slices.Equal(got, want) {
		t.Fail("pattern %+q: %d updates arrived in another order or number than %d were published", names.Replace(c.pattern), len(got), len(want))
	}
	t.Observed("pattern %+q matched %d of %d topics, as it should", names.Replace(c.pattern), len(want), len(topics))
}

// urlpSyntax is URLP-01: what patterns are made of.
func urlpSyntax() []urlpCase {
	c := func(name, pattern string, yes, no []string) urlpCase {
		return urlpCase{"URLP-01", name, pattern, yes, no}
	}
	return []urlpCase{
		c("fixed", "$F/books/1", []string{"$F/books/1"}, []string{"$F/books/2", "$F/books/1/", "$F/books/11", "$F/books"}),
		c("named-group", "$F/books/:id", []string{"$F/books/1", "$F/books/a-b.c"},
			[]string{"$F/books/1/x", "$F/books/", "$F/books", "$F/book/1", "$F/x/books/1"}),
		c("named-group-inside", "$F/:kind/of/:id", []string{"$F/a/of/b"}, []string{"$F/a/of/", "$F/a/b/of/c", "$F/a/in/b"}),
		c("named-group-with-affixes", "$F/img-:name.png", []string{"$F/img-a.png"}, []string{"$F/img-.png", "$F/img-a/b.png", "$F/img-a.jpg"}),
		c("wildcard", "$F/books/*", []string{"$F/books/1", "$F/books/1/x", "$F/books/"}, []string{"$F/books", "$F/book/1"}),
		c("wildcard-inside", "$F/*/end", []string{"$F/a/end", "$F/a/b/end", "$F//end"}, []string{"$F/end", "$F/a/end/x"}),
		c("two-wildcards", "$F/*/x/*", []string{"$F/a/x/b", "$F/a/b/x/c/d"}, []string{"$F/a/y/b"}),
		c("regexp-group", `$F/:id(\d+)`, []string{"$F/1", "$F/123"}, []string{"$F/a", "$F/1a", "$F/a1", "$F/", "$F/1/2"}),
		c("unnamed-regexp-group", `$F/([a-c]{2})`, []string{"$F/ab", "$F/cc"}, []string{"$F/a", "$F/abc", "$F/ad", "$F/AB"}),
		c("regexp-alternatives", "$F/(foo|ba[rz])/x", []string{"$F/foo/x", "$F/bar/x", "$F/baz/x"}, []string{"$F/fo/x", "$F/foobar/x"}),
		c("optional-named-group", "$F/a/:b?", []string{"$F/a", "$F/a/1"}, []string{"$F/a/1/2", "$F/a/", "$F/b"}),
		c("optional-group", "$F{/c}?", []string{"$F", "$F/c"}, []string{"$F/d", "$F/c/c", "$F/"}),
		c("optional-group-inside", "$F/a{/b}?/c", []string{"$F/a/c", "$F/a/b/c"}, []string{"$F/a/d/c", "$F/a/b/b/c"}),
		c("optional-regexp-group", `$F/x(\d+)?`, []string{"$F/x", "$F/x12"}, []string{"$F/xa", "$F/"}),
		c("repeated-named-group", "$F/:p+", []string{"$F/a", "$F/a/b", "$F/a/b/c"}, []string{"$F", "$F/", "$F/a/"}),
		c("any-number-of-named-groups", "$F/:p*", []string{"$F", "$F/a", "$F/a/b"}, []string{"$F/", "$F/a/"}),
		c("repeated-group", "$F{/c}+", []string{"$F/c", "$F/c/c"}, []string{"$F", "$F/c/d"}),
		c("any-number-of-groups", "$F{/c}*", []string{"$F", "$F/c", "$F/c/c/c"}, []string{"$F/d", "$F/cc"}),
		c("group-with-suffix", "$F/{x-:id}?-y", []string{"$F/x-1-y", "$F/-y"}, []string{"$F/x--y", "$F/y"}),
		c("escaped", `$F/\:id\*\(\)`, []string{"$F/:id*()"}, []string{"$F/1", "$F/:id", "$F/x*()"}),
		c("regexp-characters-are-fixed-text", "$F/a.b$|^c", []string{"$F/a.b$|^c"}, []string{"$F/axb$|^c", "$F/a.b", "$F/c"}),
		c("non-ASCII-name", "$F/:\u00e9t\u00e9", []string{"$F/1"}, []string{"$F/1/2"}),
		c("query", "$F/x?a=:a", []string{"$F/x?a=1"}, []string{"$F/x?b=1", "$F/x", "$F/y?a=1"}),
		c("fragment", "$F/x#:a", []string{"$F/x#1"}, []string{"$F/x", "$F/y#1"}),
		c("host", "https://*.example.com/$U", []string{"https://a.example.com/$U"}, []string{"https://example.com/$U", "https://a.example.org/$U"}),
		c("same-name-in-two-components", "https://:x.example.com/$U/:x", []string{"https://a.example.com/$U/b"}, []string{"https://a.example.com/$U/b/c", "https://example.com/$U/b"}),
		c("port", "https://example.com::port/$U", []string{"https://example.com:8443/$U"}, []string{"https://example.com/$U", "https://example.org:8443/$U"}),
		c("scheme", "http{s}?://example.com/$U", []string{"http://example.com/$U", "https://example.com/$U"}, []string{"ftp://example.com/$U"}),
	}
}

// urlpRelative is URLP-02 and URLP-03: relative patterns and relative topics are resolved against the hub URL.
func urlpRelative() []urlpCase {
	return []urlpCase{
		{
			"URLP-02", "path", "/$U/books/:id",
			[]string{"$O/$U/books/1"},
			[]string{"https://other.example/$U/books/1", "http://other.example/$U/books/1", "$O/$U/books/1/x", "$O/x/$U/books/1"},
		},
		{"URLP-02", "regexp", `/$U/:id(\d+)`, []string{"$O/$U/12"}, []string{"$O/$U/a", "https://other.example/$U/12"}},
		{"URLP-02", "other-port", "/$U/books/:id", []string{"$O/$U/books/1"}, []string{"$X/$U/books/1"}},
		{"URLP-02", "other-scheme", "/$U/:id", []string{"$O/$U/1"}, []string{"foo://example.com/$U/1", "ftp://example.com/$U/1", "foo:/$U/1"}},
		{"URLP-02", "sibling", "$U/:id", []string{"$O$D$U/1"}, []string{"$O/x/$U/1", "https://other.example$D$U/1", "$O$Dx/$U/1"}},
		{"URLP-02", "dot-slash", "./$U/:id", []string{"$O$D$U/1"}, []string{"https://other.example$D$U/1"}},
		{"URLP-02", "wildcard", "/$U/*", []string{"$O/$U/a/b", "$O/$U/"}, []string{"https://other.example/$U/a"}},
		{"URLP-02", "two-slashes", "//other.example/$U/:id", []string{"$O//other.example/$U/1"}, []string{"https://other.example/$U/1", "http://other.example/$U/1"}},
		{"URLP-02", "optional", "{/$U}/:id?", []string{"$O/$U/1", "$O/$U"}, []string{"https://other.example/$U/1"}},
		{"URLP-03", "relative-pattern", "/$U/:id", []string{"/$U/1"}, []string{"/$U/1/2", "/x/$U/1"}},
		{"URLP-03", "absolute-pattern", "$O/$U/:id", []string{"/$U/1"}, []string{"/$U/1/2"}},
		{"URLP-03", "other-origin", "https://other.example/$U/:id", []string{"https://other.example/$U/1"}, []string{"/$U/1"}},
		{"URLP-03", "other-port", "$X/$U/:id", []string{"$X/$U/1"}, []string{"/$U/1"}},
		{"URLP-03", "sibling", "$E$U/:id", []string{"$U/1", "./$U/1"}, []string{"$U/1/2", "/x/$U/1"}},
		{"URLP-03", "sibling-absolute-pattern", "$O$E$U/:id", []string{"$U/1"}, []string{"x/$U/1"}},
		{"URLP-03", "sibling-both", "$U/:id", []string{"$U/1", "./$U/2", "$D$U/3"}, []string{"x/$U/1"}},
		{"URLP-03", "up", "/$U/:id", []string{"../../../../../../$U/1"}, []string{"../../../../../../x/$U/1"}},
		{"URLP-03", "host", "$S://other.example/$U/:id", []string{"//other.example/$U/1"}, []string{"/other.example/$U/1", "//example.org/$U/1"}},
		{"URLP-03", "with-query", "/$U/x?a=:a", []string{"/$U/x?a=1"}, []string{"/$U/x"}},
		{"URLP-03", "no-scheme", "/$U/:id", []string{"/$U/a:b"}, []string{"urn:$U:1"}},
	}
}

// urlpCaseSensitive is URLP-04: everything but scheme and host.
func urlpCaseSensitive() []urlpCase {
	return []urlpCase{
		{"URLP-04", "path", "$F/Books/:id", []string{"$F/Books/1"}, []string{"$F/books/1", "$F/BOOKS/1"}},
		{"URLP-04", "fixed-path", "$F/Books", []string{"$F/Books"}, []string{"$F/books", "$F/bookS"}},
		{"URLP-04", "relative-path", "/$U/Books", []string{"/$U/Books"}, []string{"/$U/books"}},
		{"URLP-04", "regexp", "$F/([a-z]+)", []string{"$F/a"}, []string{"$F/A", "$F/aA"}},
		{"URLP-04", "query", "$F/x?Q=1", []string{"$F/x?Q=1"}, []string{"$F/x?q=1"}},
		{"URLP-04", "fragment", "$F/x#Part", []string{"$F/x#Part"}, []string{"$F/x#part", "$F/x#PART"}},
		{"URLP-04", "user", "https://User@example.com/$U", []string{"https://User@example.com/$U"}, []string{"https://user@example.com/$U", "https://example.com/$U"}},
		{"URLP-04", "password", `https://user\:Secret@example.com/$U`, []string{"https://user:Secret@example.com/$U"}, []string{"https://user:secret@example.com/$U"}},
		{"URLP-04", "other-scheme", "foo://h/Books/$U", []string{"foo://h/Books/$U"}, []string{"foo://h/books/$U"}},
		{"URLP-04", "non-ASCII", "$F/\u00c9", []string{"$F/\u00c9"}, []string{"$F/\u00e9"}},
	}
}

// urlpOrigins is URLP-05: scheme, host and port are compared in their canonical form.
func urlpOrigins() []urlpCase {
	return []urlpCase{
		{
			"URLP-05", "upper-case-host", "https://EXAMPLE.com/$U",
			[]string{"https://example.com/$U", "https://example.com:443/$U", "HTTPS://Example.COM/$U"},
			[]string{"http://example.com/$U", "http://example.com:443/$U", "https://example.org/$U"},
		},
		{"URLP-05", "upper-case-scheme", "HTTPS://example.com/$U", []string{"https://example.com/$U", "HtTpS://EXAMPLE.com/$U"}, []string{"http://example.com/$U"}},
		{"URLP-05", "lower-case", "https://example.com/$U", []string{"https://EXAMPLE.COM/$U", "HTTPS://example.com/$U"}, []string{"HTTP://example.com/$U"}},
		{
			"URLP-05", "default-port", "https://example.com:443/$U",
			[]string{"https://example.com/$U", "https://example.com:443/$U", "https://example.com:0443/$U"},
			[]string{"https://example.com:8443/$U", "http://example.com:443/$U"},
		},
		{"URLP-05", "default-http-port", "http://example.com/$U", []string{"http://example.com:80/$U"}, []string{"http://example.com:443/$U", "https://example.com:80/$U"}},
		{"URLP-05", "no-port", "https://example.com/$U", []string{"https://example.com:443/$U"}, []string{"https://example.com:8443/$U", "https://example.com:80/$U"}},
		{"URLP-05", "other-port", "https://example.com:8443/$U", []string{"https://example.com:8443/$U"}, []string{"https://example.com/$U", "https://example.com:8444/$U"}},
		{
			"URLP-05", "idn-pattern", "https://b\u00fccher.example/$U",
			[]string{"https://b\u00fccher.example/$U", "https://xn--bcher-kva.example/$U", "https://B\u00dcCHER.example/$U"},
			[]string{"https://bucher.example/$U"},
		},
		{"URLP-05", "punycode-pattern", "https://xn--bcher-kva.example/$U", []string{"https://b\u00fccher.example/$U", "https://XN--BCHER-KVA.example/$U"}, []string{"https://bucher.example/$U"}},
		{"URLP-05", "encoded-host", "https://example.com/$U", []string{"https://ex%61mple.com/$U", "https://\uff45xample.com/$U"}, []string{"https://ex%62mple.com/$U"}},
		{"URLP-05", "ipv4", "https://192.0.2.1/$U", []string{"https://0xC0.0.2.1/$U", "https://3221225985/$U"}, []string{"https://192.0.2.2/$U"}},
	}
}

// urlpDefaults is URLP-10: what stands right of the last component given is a wildcard, what stands left of the first
// one comes from the base.
func urlpDefaults() []urlpCase {
	c := func(name, pattern string, yes, no []string) urlpCase {
		return urlpCase{"URLP-10", name, pattern, yes, no}
	}
	return []urlpCase{
		c("path-given", "$F/x", []string{"$F/x", "$F/x?q", "$F/x#f", "$F/x?q#f"}, []string{"$F/y?q#f"}),
		c("query-given", "$F/x?q=:v", []string{"$F/x?q=1", "$F/x?q=1#f"}, []string{"$F/x", "$F/x?q=", "$F/x#q=1", "$F/x?p=1"}),
		c("query-after-a-group", `$F/:id\?q=:v`, []string{"$F/1?q=1"}, []string{"$F/1", "$F/1?p=1"}),
		c("empty-query", "$F/x?", []string{"$F/x", "$F/x#f"}, []string{"$F/x?q"}),
		c("fragment-given", "$F/x#f", []string{"$F/x#f"}, []string{"$F/x", "$F/x?q#f", "$F/x#g"}),
		c("query-and-fragment-given", "$F/x?q#f", []string{"$F/x?q#f"}, []string{"$F/x?q", "$F/x#f"}),
		c("host-given", "https://$U.example", []string{"https://$U.example/", "https://$U.example/a/b?q#f", "https://$U.example"},
			[]string{"https://a.$U.example/", "https://$U.example:8443/", "http://$U.example/"}),
		c("root-given", "https://$U.example/", []string{"https://$U.example/", "https://$U.example?q"}, []string{"https://$U.example/a"}),
		c("host-and-query-given", "https://$U.example?q", []string{"https://$U.example/?q", "https://$U.example?q"}, []string{"https://$U.example/a?q", "https://$U.example/"}),
		c("user-not-given", "https://example.com/$U", []string{"https://example.com/$U", "https://user@example.com/$U", "https://user:secret@example.com/$U"}, nil),
		c("relative-path-given", "/$U/x", []string{"/$U/x?q#f", "$O/$U/x?q"}, []string{"https://other.example/$U/x?q"}),
		c("relative-query-given", "/$U/x?q=:v", []string{"/$U/x?q=1"}, []string{"/$U/x", "/$U/x#q=1"}),
	}
}

// urlpCanonical is URLP-11: the URL parser makes fixed text and topics canonical before they are compared, and no more
// than it does: it decodes nothing.
func urlpCanonical() []urlpCase {
	c := func(name, pattern string, yes, no []string) urlpCase {
		return urlpCase{"URLP-11", name, pattern, yes, no}
	}
	return []urlpCase{
		c("encoded-pattern", "$F/caf%C3%A9", []string{"$F/caf\u00e9", "$F/caf%C3%A9"}, []string{"$F/cafe", "$F/cafe\u0301"}),
		c("non-ASCII-pattern", "$F/caf\u00e9", []string{"$F/caf%C3%A9", "$F/caf\u00e9"}, []string{"$F/caf%E9"}),
		c("relative", "/$U/caf\u00e9", []string{"/$U/caf%C3%A9", "/$U/caf\u00e9"}, nil),
		c("dots-in-topic", "$F/x", []string{"$F/a/../x", "$F/./x", "$F/a/%2e%2E/x"}, []string{"$F/a/x", "$F/../x"}),
		c("dots-in-pattern", "$F/a/../x", []string{"$F/x"}, []string{"$F/a/x"}),
		c("dots-and-group", "$F/:id", []string{"$F/a/../x"}, []string{"$F/a/..", "$F/a/../x/y"}),
		c("user-in-topic", "https://example.com/$U", []string{"https://user:secret@example.com/$U"}, []string{"https://example.com@example.org/$U"}),
		c("space", "$F/a b", []string{"$F/a b", "$F/a%20b"}, []string{"$F/a+b", "$F/ab"}),
		c("query", "$F/x?q=\u00e9", []string{"$F/x?q=%C3%A9", "$F/x?q=\u00e9"}, []string{"$F/x?q=e"}),
		c("fragment", "$F/x#\u00e9", []string{"$F/x#%C3%A9", "$F/x#\u00e9"}, []string{"$F/x#e"}),
		c("slashes-in-topic", "*://example.com/$U/x", []string{`https:\\example.com\$U\x`, "https:///example.com/$U/x"}, []string{`foo:\\example.com\$U\x`}),
		c("spaces-around-topic", "$F/x", []string{" $F/x", "$F/x "}, []string{"$F/ x"}),
		c("no-decoding", "$F/~a", []string{"$F/~a"}, []string{"$F/%7Ea"}),
		c("no-decoding-in-pattern", "$F/%7Ea", []string{"$F/%7Ea"}, []string{"$F/~a", "$F/%7ea"}),
		c("no-collapsing", "$F/a/b", []string{"$F/a/b"}, []string{"$F/a//b", "$F/a/b/"}),
		c("encoded-slash", "$F/:id", []string{"$F/a%2Fb"}, []string{"$F/a/b"}),
	}
}

// urlpDelimiters is URLP-12: named groups stop at the delimiter of their component, where it has one.
func urlpDelimiters() []urlpCase {
	c := func(name, pattern string, yes, no []string) urlpCase {
		return urlpCase{"URLP-12", name, pattern, yes, no}
	}
	return []urlpCase{
		c("host-group", "https://:sub.e.example/$U", []string{"https://a.e.example/$U"}, []string{"https://a.b.e.example/$U", "https://e.example/$U"}),
		c("host-wildcard", "https://*.e.example/$U", []string{"https://a.e.example/$U", "https://a.b.e.example/$U"}, []string{"https://e.example/$U"}),
		c("path-group", "$F/:id", []string{"$F/a", "$F/a.b"}, []string{"$F/a/b"}),
		c("path-wildcard", "$F/*", []string{"$F/a", "$F/a/b", "$F/a/b/"}, nil),
		c("path-group-before-text", "$F/:id/x", []string{"$F/a/x"}, []string{"$F/a/b/x"}),
		c("path-group-not-over-query", "$F/:id", []string{"$F/a?b/c"}, []string{"$F/a/b?c"}),
		c("query-group", "$F/x?q=:v", []string{"$F/x?q=a/b", "$F/x?q=a.b&c=d"}, nil),
		c("fragment-group", "$F/x#:f", []string{"$F/x#a/b.c"}, nil),
		c("regexp-over-slashes", "$F/(a.*z)", []string{"$F/az", "$F/a/b/z"}, []string{"$F/a/b"}),
	}
}

// urlpProtocols is URLP-13: wildcards for the scheme.
func urlpProtocols() []urlpCase {
	c := func(name, pattern string, yes, no []string) urlpCase {
		return urlpCase{"URLP-13", name, pattern, yes, no}
	}
	all := []string{"urn:x:$U", "data:,$U", "javascript:$U", "file:///$U", "mailto:$U@example.com", "foo:/$U", "foo://h/$U", "https://example.com/$U"}
	return []urlpCase{
		c("wildcard", "*:*", all, nil),
		c("named-group", ":scheme:*", all, nil),
		c("with-host", "*://example.com/$U", []string{"https://example.com/$U", "http://example.com/$U", "foo://example.com/$U", "ftp://example.com/$U"},
			[]string{"https://example.org/$U", "foo:/$U"}),
		c("named-group-with-host", ":scheme://example.com/$U", []string{"https://example.com/$U", "foo://example.com/$U"}, []string{"foo://example.org/$U"}),
		c("path-only", "*://*/*", []string{"https://example.com/$U", "foo://h/$U", "file:///$U", "foo:/$U"}, []string{"urn:x:$U", "data:,$U"}),
		c("hub-relative", "*://*:*/*", []string{"/$U"}, nil),
	}
}

// urlpBase is URLP-15 (reading 16): patterns that have a scheme need no base, and must not be changed by one.
func urlpBase() []urlpCase {
	c := func(name, pattern string, yes, no []string) urlpCase {
		return urlpCase{"URLP-15", name, pattern, yes, no}
	}
	return []urlpCase{
		c("urn", `urn\:$U\::y`, []string{"urn:$U:1"}, []string{"urn:x:1", "urx:$U:1"}),
		c("fixed-urn", `urn\:x\:$U`, []string{"urn:x:$U"}, []string{"urn:y:$U"}),
		c("any-urn", "urn:*", []string{"urn:x:$U"}, []string{"data:,$U", "urnx:$U"}),
		c("either-scheme", "(urn|data):*", []string{"urn:x:$U", "data:,$U"}, []string{"javascript:$U", "https://example.com/$U", "datax:$U"}),
		c("tag", `tag\:a.example,2026\:$U/*`, []string{"tag:a.example,2026:$U/x"}, []string{"tag:b.example,2026:$U/x"}),
		c("mailto", "mailto:*@$U.example", []string{"mailto:a@$U.example"}, []string{"mailto:a@x.example"}),
	}
}
