package topic_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

func mustCompile(tb testing.TB, c *topic.Compiler, typ topic.Type, pattern string) *topic.Matcher {
	tb.Helper()
	m, err := c.Compile(typ, pattern)
	if err != nil {
		tb.Fatalf("Compile(%s, %q): %v", typ, pattern, err)
	}
	return m
}

func TestParseType(t *testing.T) {
	for _, s := range []string{"exact", "urlpattern"} {
		if typ, err := topic.ParseType(s); err != nil || string(typ) != s {
			t.Errorf("MATCH-01 ParseType(%q) = %q, %v", s, typ, err)
		}
	}
	for _, s := range []string{"", "Exact", "URLPattern", "regex", "exact ", "urlpattern\x00"} {
		if _, err := topic.ParseType(s); !errors.Is(err, topic.ErrUnsupportedType) {
			t.Errorf("MATCH-04, MATCH-09 ParseType(%q) = %v, want ErrUnsupportedType", s, err)
		}
	}
}

func TestCompiler_Compile_limits(t *testing.T) {
	c, err := topic.NewCompiler(hubURL, topic.Limits{PatternBytes: 10})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compile(topic.Exact, strings.Repeat("a", 10)); err != nil {
		t.Errorf("a matcher of the limit: %v", err)
	}
	for _, typ := range []topic.Type{topic.Exact, topic.URLPattern} {
		if _, err := c.Compile(typ, strings.Repeat("a", 11)); !errors.Is(err, topic.ErrPatternTooLong) {
			t.Errorf("LIM-09 Compile(%s) beyond the limit = %v, want ErrPatternTooLong", typ, err)
		}
	}
	if _, err := c.Compile("regex", "*"); !errors.Is(err, topic.ErrUnsupportedType) {
		t.Errorf("MATCH-08 Compile(regex, *) = %v, want ErrUnsupportedType", err)
	}
	if _, err := mustCompiler(t, hubURL).Compile(topic.Exact, strings.Repeat("a", 4097)); !errors.Is(err, topic.ErrPatternTooLong) {
		t.Errorf("the default limit = %v, want ErrPatternTooLong", err)
	}
}

func TestMatcher_Match_wildcard(t *testing.T) {
	c := mustCompiler(t, hubURL)
	for _, typ := range []topic.Type{topic.Exact, topic.URLPattern} {
		m := mustCompile(t, c, typ, "*")
		for _, raw := range []string{"a", "", "https://example.com/", "https://[bad/x", "urn:x:1", "*", "\xff"} {
			if !m.Match(c.Topic(raw)) {
				t.Errorf("MATCH-05, MATCH-06 %s %q does not match %q", typ, "*", raw)
			}
		}
		if !m.Wildcard() || m.Key() != mustCompile(t, c, topic.Exact, "*").Key() {
			t.Errorf("the wildcard of type %s has a key of its own", typ)
		}
	}
	for _, p := range []string{"a*", "**"} {
		m := mustCompile(t, c, topic.Exact, p)
		if m.Wildcard() || !m.Match(c.Topic(p)) || m.Match(c.Topic("ab")) {
			t.Errorf("MATCH-07 exact %q is not literal", p)
		}
	}
}

func TestMatcher_Match_exact(t *testing.T) {
	c := mustCompiler(t, hubURL)
	cases := []struct{ id, matcher, topic string }{
		{"EXACT-02", "https://e.example/A", "https://e.example/a"},
		{"EXACT-02", "https://e.example/A", "HTTPS://e.example/A"},
		{"EXACT-02", "https://e.example/A", "https://e.example/A/"},
		{"EXACT-02", "https://e.example/A", "https://e.example/AB"},
		{"EXACT-03", "/x", "https://hub.example.com/x"},
		{"EXACT-03", "https://hub.example.com/x", "/x"},
		{"EXACT-04", "é", "e\u0301"},
		{"EXACT-04", "https://e.example/%7E", "https://e.example/~"},
		{"EXACT-04", "https://e.example:443/", "https://e.example/"},
		{"EXACT-04", "https://e.example/a/../b", "https://e.example/b"},
		{"EXACT-05", "https://e.example/:id", "https://e.example/1"},
	}
	for _, tc := range cases {
		m := mustCompile(t, c, topic.Exact, tc.matcher)
		if m.Match(c.Topic(tc.topic)) {
			t.Errorf("%s exact %q matches %q", tc.id, tc.matcher, tc.topic)
		}
		if !m.Match(c.Topic(tc.matcher)) {
			t.Errorf("%s exact %q does not match itself", tc.id, tc.matcher)
		}
	}
}

func TestMatcher_Match_urlPattern(t *testing.T) {
	c := mustCompiler(t, hubURL)
	cases := []struct {
		id, pattern string
		yes, no     []string
	}{
		{"URLP-01 named group", "https://e.example/books/:id", []string{"https://e.example/books/1"}, []string{
			"https://e.example/books/1/x", "https://e.example/books/", "https://e.example/books",
		}},
		{"URLP-01 wildcard", "https://e.example/books/*", []string{
			"https://e.example/books/1", "https://e.example/books/1/x", "https://e.example/books/",
		}, []string{"https://e.example/books"}},
		{"URLP-01 regular expression", `https://e.example/:id(\d+)`, []string{"https://e.example/42"}, []string{"https://e.example/x"}},
		{"URLP-01 optional name", "https://e.example/a/:b?", []string{"https://e.example/a", "https://e.example/a/b"}, []string{
			"https://e.example/a/", "https://e.example/a/b/c",
		}},
		{"URLP-01 optional group", "https://e.example/a{/c}?", []string{"https://e.example/a", "https://e.example/a/c"}, []string{"https://e.example/a/"}},
		{"URLP-01 repeated group", "https://e.example/:x+", []string{"https://e.example/a", "https://e.example/a/b"}, []string{"https://e.example/"}},
		{"URLP-01 zero or more", "https://e.example/a/:x*", []string{"https://e.example/a", "https://e.example/a/b/c"}, []string{"https://e.example/b"}},
		{"URLP-02 relative pattern", "/books/:id", []string{"https://hub.example.com/books/1"}, []string{"https://other.example/books/1"}},
		{"URLP-03 relative topic", "/books/:id", []string{"/books/1"}, []string{"books/1"}},
		{"URLP-03 sibling of the hub", "/.well-known/sib/:id", []string{"sib/1", "./sib/1"}, nil},
		{"URLP-03 relative topic, absolute pattern", "https://hub.example.com/books/:id", []string{"/books/1"}, nil},
		{"URLP-04 case-sensitive path", "/Books/:id", nil, []string{"/books/1"}},
		{"URLP-04 case-sensitive query", "/b?q=A", []string{"/b?q=A"}, []string{"/b?q=a"}},
		{"URLP-05 canonical host", "https://EXAMPLE.com/x", []string{
			"https://example.com:443/x", "HTTPS://Example.COM/x",
		}, []string{"http://example.com/x", "https://example.com:8443/x"}},
		{"URLP-05 IDNA", "https://bücher.example/*", []string{"https://xn--bcher-kva.example/1", "https://BÜCHER.example/"}, nil},
		{"URLP-06 no URL", "*://*/*", []string{"https://e.example/"}, []string{"https://[bad/x", "https://h:99999/"}},
		{"URLP-06 no URL, every port", "*://*:*/*", []string{"https://e.example:1/"}, []string{"https://[bad/x", "https://h:99999/"}},
		{"URLP-10 open to the right", "https://e.example/x", []string{"https://e.example/x?q#f", "https://e.example/x"}, nil},
		{"URLP-10 a query that is asked for", "https://e.example/x?q=:v", []string{"https://e.example/x?q=1#f"}, []string{
			"https://e.example/x", "https://e.example/x?q=",
		}},
		{"URLP-11 canonical path", "https://e.example/caf%C3%A9", []string{"https://e.example/café"}, []string{"https://e.example/cafe"}},
		{"URLP-11 dot segments", "https://e.example/x", []string{"https://e.example/a/../x", `https:\\e.example\x`}, nil},
		{"URLP-11 userinfo", "https://e.example/x", []string{"https://u:p@e.example/x"}, nil},
		{"URLP-11 userinfo that is asked for", "https://u@e.example/x", []string{"https://u@e.example/x"}, []string{"https://e.example/x"}},
		{"URLP-12 names stop at dots", "https://:sub.e.example/x", []string{"https://a.e.example/x"}, []string{"https://a.b.e.example/x"}},
		{"URLP-12 the wildcard does not", "https://*.e.example/x", []string{"https://a.b.e.example/x"}, []string{"https://e.example/x"}},
		{"URLP-13 any scheme", "*:*", []string{"urn:x:1", "data:,x"}, nil},
		{"URLP-15 opaque path", `urn\:x\::y`, []string{"urn:x:1"}, []string{"urn:y:1", "urn:x:"}},
		{"URLP-15 data", "data\\:*", []string{"data:,x"}, []string{"https://e.example/"}},
		{"IPv6 host", `https://[\:\:1]/*`, []string{"https://[0:0:0:0:0:0:0:1]/x", "https://[::1]/"}, []string{"https://[::2]/"}},
		{"port", "https://e.example:8443/*", []string{"https://e.example:8443/"}, []string{"https://e.example/"}},
		{"any port", "https://e.example:*/x", []string{"https://e.example:1/x", "https://e.example/x"}, nil},
		{"a question mark after a wildcard is a modifier", "https://e.example/books/*?draft=1", nil, []string{"https://e.example/books/1?draft=1"}},
		{"an escaped question mark is a query", `https://e.example/books/*\?draft=1`, []string{"https://e.example/books/1?draft=1"}, nil},
		{"several wildcards", "https://e.example/*a*bc*d", []string{"https://e.example/xaxbcbcxd", "https://e.example/abcd"}, []string{"https://e.example/abc"}},
		{"no path given", "https://e.example", []string{"https://e.example/a/b?c#d"}, []string{"https://e.example.org/"}},
	}
	for _, tc := range cases {
		t.Run(tc.id, func(t *testing.T) {
			m := mustCompile(t, c, topic.URLPattern, tc.pattern)
			for _, raw := range tc.yes {
				if !m.Match(c.Topic(raw)) {
					t.Errorf("%q does not match %q", tc.pattern, raw)
				}
			}
			for _, raw := range tc.no {
				if m.Match(c.Topic(raw)) {
					t.Errorf("%q matches %q", tc.pattern, raw)
				}
			}
		})
	}
}

func TestCompiler_Compile_refusesIllFormedPatterns(t *testing.T) {
	c := mustCompiler(t, hubURL)
	for _, p := range []string{
		"(", "{a", ":x/:x", "/+", "/(?=a)", "https://e.example/(", "/{{sub}}/*", "/(?<=a)b", `/(\Qa)`, `/(\Q)b(x\E)`, "/([)](])", "/\xff",
		// The library panics on these.
		"https://example.com/*../..", "/:a../..", "/*x/../..", "/{x}?../..", "/:a./..", "urn:a:b../..", "https://example.com/(a)../../..",
	} {
		_, err := c.Compile(topic.URLPattern, p)
		if !errors.Is(err, topic.ErrPattern) {
			t.Errorf("URLP-14 Compile(%q) = %v, want ErrPattern", p, err)
		} else if err.Error() != topic.ErrPattern.Error() {
			t.Errorf("URLP-14 Compile(%q) says %q, which is not the fixed text", p, err)
		}
	}
}

func TestCompiler_Compile_boundsRegularExpressions(t *testing.T) {
	c := mustCompiler(t, hubURL)
	for _, p := range []string{
		"https://e.example/" + strings.Repeat("(a{999})", 500),
		"https://e.example/((?:(?:a{31}){32}))((?:(?:a{31}){32}))",
		"https://e.example/" + strings.Repeat(`(\pL)`, 800),
	} {
		if _, err := c.Compile(topic.URLPattern, p); !errors.Is(err, topic.ErrPattern) {
			t.Errorf("URLP-07 Compile(%.40q…) = %v, want ErrPattern", p, err)
		}
	}
	const uuid = "/:id([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
	if !mustCompile(t, c, topic.URLPattern, uuid).Match(c.Topic("/0190d3a8-7f0a-7cc2-9d2a-0123456789ab")) {
		t.Error("an ordinary regular expression is refused")
	}
}

func TestMatcher_Match_isBounded(t *testing.T) {
	c := mustCompiler(t, hubURL)
	m := mustCompile(t, c, topic.URLPattern, "/((?:a+)+b)")
	if m.Match(c.Topic("/" + strings.Repeat("a", 5000))) {
		t.Error("URLP-07 matches without the b")
	}
	if !m.Match(c.Topic("/" + strings.Repeat("a", 5000) + "b")) {
		t.Error("URLP-07 a long topic is not matched by a small pattern")
	}
	wide := mustCompile(t, c, topic.URLPattern, "/"+strings.Repeat(":x?a", 1)+strings.Repeat("(a*)", 300))
	if !wide.Match(c.Topic("/xaaa")) {
		t.Error("URLP-07 a short topic is not matched by a large pattern")
	}
	if wide.Match(c.Topic("/xa" + strings.Repeat("a", 8000))) {
		t.Error("URLP-08 a match beyond the evaluation limit was made")
	}
}

func TestMatcher_Cost(t *testing.T) {
	c := mustCompiler(t, hubURL)
	for p, want := range map[string]struct{ least, most int }{
		"*":                             {0, 0},
		"https://e.example/books/:id":   {0, 0},
		"https://:sub.e.example/a/*":    {0, 0},
		`/books/:id(\d+)`:               {1, 20},
		"/:id([0-9a-f]{8}-[0-9a-f]{4})": {12, 60},
		"*://*/([^b]{0,150}[^c]{0,150}[^d]{0,150})": {450, 1100},
	} {
		if got := mustCompile(t, c, topic.URLPattern, p).Cost(); got < want.least || got > want.most {
			t.Errorf("URLP-07 Cost of %q = %d, want %d to %d", p, got, want.least, want.most)
		}
	}
	if got := mustCompile(t, c, topic.Exact, "/books/:id(a{9})").Cost(); got != 0 {
		t.Errorf("Cost of an exact matcher = %d, want 0", got)
	}
}

func TestMatcher_HasRegexpGroups(t *testing.T) {
	c := mustCompiler(t, hubURL)
	for pattern, want := range map[string]bool{"/a/:b/*": false, "/(a|b)": true, "/(.*)": false, "*": false, "https://(a|b).example/": true} {
		if got := mustCompile(t, c, topic.URLPattern, pattern).HasRegexpGroups(); got != want {
			t.Errorf("HasRegexpGroups(%q) = %v, want %v", pattern, got, want)
		}
	}
	if mustCompile(t, c, topic.Exact, "/(a|b)").HasRegexpGroups() {
		t.Error("an exact matcher has regexp groups")
	}
}

func TestMatcher_Key(t *testing.T) {
	c := mustCompiler(t, hubURL)
	a, b := mustCompile(t, c, topic.Exact, "/x"), mustCompile(t, c, topic.Exact, "/x")
	if a.Key() != b.Key() {
		t.Error("equal matchers have different keys")
	}
	if a.Key() == mustCompile(t, c, topic.URLPattern, "/x").Key() {
		t.Error("matchers of different types share a key")
	}
	if a.Type() != topic.Exact || a.Pattern() != "/x" {
		t.Errorf("Type, Pattern = %q, %q", a.Type(), a.Pattern())
	}
}

func TestMatcher_Match_doesNotAllocate(t *testing.T) {
	c := mustCompiler(t, hubURL)
	topics := []*topic.Topic{c.Topic("https://example.com/users/42/books/1?x=1"), c.Topic("/a"), c.Topic("urn:x:1")}
	for _, p := range []string{
		"https://example.com/users/42/*", "https://example.com/users/:id/books/:book", "https://:sub.com/*", "https://example.com/(users|books)/*",
	} {
		m := mustCompile(t, c, topic.URLPattern, p)
		match := func() {
			for _, tp := range topics {
				m.Match(tp)
			}
		}
		match()
		if n := testing.AllocsPerRun(200, match); n != 0 {
			t.Errorf("Match(%q) allocates %v times, want 0", p, n)
		}
	}
}
