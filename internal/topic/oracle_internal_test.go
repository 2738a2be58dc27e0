package topic

import (
	"errors"
	"strings"
	"testing"

	urlpattern "github.com/dunglas/go-urlpattern"
	"pgregory.net/rapid"
)

const testHub = "https://hub.example.com/.well-known/mercure"

// oraclePattern is the library's own compilation of pattern; nil if it refuses or panics.
func oraclePattern(pattern, hub string) (p *urlpattern.URLPattern) {
	defer func() {
		if recover() != nil {
			p = nil
		}
	}()
	p, err := urlpattern.New(pattern, "", nil)
	if errors.Is(err, urlpattern.ErrNoBaseURL) {
		p, err = urlpattern.New(pattern, hub, nil)
	}
	if err != nil {
		return nil
	}
	return p
}

// agree fails the test if our matcher for pattern and the library differ about any of topics.
func agree(tb rapid.TB, c *Compiler, pattern string, topics ...string) {
	tb.Helper()
	if pattern == Wildcard || len(pattern) > c.limits.PatternBytes {
		return
	}
	lib := oraclePattern(pattern, c.HubURL())
	m, err := c.Compile(URLPattern, pattern)
	switch {
	case err != nil && !errors.Is(err, ErrPattern):
		tb.Fatalf("Compile(%q) = %v, want ErrPattern", pattern, err)
	case err != nil && lib != nil && Check(pattern) == nil && affordable(pattern):
		tb.Fatalf("Compile(%q) refuses a pattern that the library accepts", pattern)
	case err != nil:
		return
	case lib == nil:
		tb.Fatalf("Compile(%q) accepts a pattern that the library refuses", pattern)
	}
	for _, raw := range topics {
		if got, want := m.Match(c.Topic(raw)), lib.Test(raw, c.HubURL()); got != want {
			tb.Fatalf("Compile(%q).Match(%q) = %v, the library says %v (components %q)", pattern, raw, got, want, m.url.components)
		}
	}
}

func pieces(t *rapid.T, label string, maximum int, from []string) string {
	var s strings.Builder
	for range rapid.IntRange(0, maximum).Draw(t, label+" length") {
		s.WriteString(rapid.SampledFrom(from).Draw(t, label))
	}
	return s.String()
}

func drawPattern(t *rapid.T) string {
	head := rapid.SampledFrom([]string{
		"https://example.com/", "https://example.com/", "https://:sub.example.com/", "https://*.example.com/", "/", "/", "",
		"http{s}?://example.com/", "https://example.com", "*://*/", "*:*", ":p://:h/", "(https|urn)://example.com/",
		"https://example.com:8443/", "https://example.com:443/", "https://example.com:*/", "https://example.com::port/",
		"https://:u:*@example.com/", "https://u\\:p@example.com/", "https://u:p@example.com/", "https://*@example.com/",
		`https://[\:\:1]/`, `https://[\:\:*]/`, "https://{a.}?example.com/", "HTTPS://EXAMPLE.com/", "https://bücher.example/",
		`urn\:`, `data\:`, "urn:", "foo://a/", "?", "#", "https://example.com?", "https://example.com/#", "../", "./", "{/a}",
		"https://example.com/users/42/", "/users/", "https://example.:tld/", "ftp://example.com/", "file:///", "https:*",
	}).Draw(t, "head")
	return head + pieces(t, "piece", 7, []string{
		"a", "b", "ab", "1", "/", "/", "/", "*", ":x", ":y", ":z", "/:v", "/*", "{", "}", "?", "+", "(a|b)", "([ab]+)", "(.*)",
		`([^\/]+?)`, `(\d+)`, `\*`, `\:`, `\?`, ".", "%2e", "..", "{/a}?", "{/:w}*", "{a:s/}+", "{/a}*", "{:t}", "{a:q-b}?",
		"é", ":é", "%C3%A9", "\\.", "?q=", "?q=:n", "&b=*", "#", "#f", "-", "_", "{x}", "{}", "{b*}", "(?:a)", "((?i)a)", "((?:ab)+)",
		"[", "]", "@", ":", "$", "~", " ", "\\{", "'", `\\`, ":x(a+)", ":x(.*)?", "**", "*?", "*+", "\\/", "😀", "{.}?",
	})
}

func drawTopic(t *rapid.T) string {
	head := rapid.SampledFrom([]string{
		"https://example.com/", "https://example.com/", "https://example.com/", "https://x.example.com/", "https://x.y.example.com/",
		"/", "/", "", "http://example.com/", "https://example.com", "https://example.com:8443/", "https://example.com:443/",
		"https://u:p@example.com/", "https://u@example.com/", "https://[::1]/", "https://[0:0:0:0:0:0:0:1]/", "HTTPS://Example.COM/",
		"https://bücher.example/", "https://xn--bcher-kva.example/", "urn:", "data:", "foo://a/", "foo:/", "?", "#", "//example.com/",
		`https:\\example.com\`, "https:example.com/", "../", "./", " https://example.com/", "https://example.com/users/42/", "/users/",
		"ftp://example.com/", "file:///", "https://example.org/", "https://[bad/", "https://h:99999/", "ws://example.com/",
	}).Draw(t, "head")
	return head + pieces(t, "piece", 7, []string{
		"a", "b", "ab", "1", "/", "/", "a/b", "..", ".", "%2e", "%2E%2e", "é", "%C3%A9", "x", "?a", "#b", "?q=", "?q=1", "&b=2", "#f", "*", ":",
		"%", "%41", "'", "~", "_", "-", "@", "[", "\\", " ", "\t", "\n", "😀", "aab", "{", "|", "\x00", "\xff", "$",
	})
}

func TestMatcher_agreesWithLibrary(t *testing.T) {
	c, err := NewCompiler(testHub, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		topics := rapid.SliceOfN(rapid.Custom(drawTopic), 1, 4).Draw(rt, "topics")
		for range 10 {
			pattern := drawPattern(rt)
			agree(rt, c, pattern, append(topics, pattern)...)
		}
	})
}

// FuzzMatcher holds our matchers against the library's own.
func FuzzMatcher(f *testing.F) {
	for _, s := range [][2]string{
		{"https://example.com/books/:id", "https://example.com/books/1"},
		{"/a/:b?", "/a"},
		{"https://:sub.example.com/*", "https://x.example.com/y?q#f"},
		{"http{s}?://example.com:*/(a|b)+", "http://example.com:81/ab"},
		{`urn\:x\::y`, "urn:x:1"},
		{`https://[\:\:1]/{a/}*b`, "https://[::1]/a/a/b"},
		{"https://u:*@example.com/*?q=:v#:f", "https://u:p@example.com/x?q=1#2"},
		{"/{:a}b/{*}{:c/}*(.*)", "/xb/yz"},
		{"*:*", "data:,x"},
		{"/caf%C3%A9/:é/\\*", "/café/1/*"},
		{"/:a../..", "/"},
		{"{*00}\n*0", "0"},
		{"/([)](])", "/)"},
		{`/(\Q)b(x\E)`, "/)b(x"},
	} {
		f.Add(s[0], s[1], false)
		f.Add(s[0], s[1], true)
	}
	hubs := map[bool]*Compiler{}
	for plain, hub := range map[bool]string{false: testHub, true: "http://localhost:8080/a(b)/:hub*"} {
		c, err := NewCompiler(hub, Limits{PatternBytes: 512})
		if err != nil {
			f.Fatal(err)
		}
		hubs[plain] = c
	}
	f.Fuzz(func(t *testing.T, pattern, raw string, plain bool) {
		if len(raw) > 256 {
			return
		}
		agree(t, hubs[plain], pattern, raw, pattern, "/"+raw, "https://example.com/"+raw)
	})
}

func TestParseComponent_refusesWhatTheLibraryDoesNotWrite(t *testing.T) {
	for _, s := range []string{
		"}", ")", "?", "+", "{", "{a", "{*", "{a)}", "{a+}", "{:}", ":", ":1", "(a", "()", "()b(", `\`, `{\`, "{*b", "{*+}", "a?", "(a\\",
	} {
		if parts, err := parseComponent(s, componentOptions{delimiter: '/', prefix: '/'}); !errors.Is(err, errNotCanonical) {
			t.Errorf("parseComponent(%q) = %v, %v, want errNotCanonical", s, parts, err)
		}
	}
}

func TestNameRune_followsTheLibrary(t *testing.T) {
	for r, want := range map[rune]bool{
		'a': true, 'Z': true, '1': false, '_': false, '$': false, '-': false, 'é': true, '\u2118': true, '\u00b7': false, '\u3000': false, '\u2160': true,
	} {
		if got := nameRune(r, true); got != want {
			t.Errorf("nameRune(%q, first) = %v, want %v", r, got, want)
		}
	}
	for r, want := range map[rune]bool{'a': true, '1': true, '_': true, '$': false, '\u00b7': true, '\u0301': true, '\u0663': true, '\u203f': true, '\u2014': false} {
		if got := nameRune(r, false); got != want {
			t.Errorf("nameRune(%q) = %v, want %v", r, got, want)
		}
	}
}
