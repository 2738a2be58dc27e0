package topic

import (
	"slices"
	"strings"
	"testing"

	"github.com/nlnwa/whatwg-url/url"
	"pgregory.net/rapid"
)

func TestNormal(t *testing.T) {
	for raw, want := range map[string]bool{
		"https://example.com/":                    true,
		"https://example.com/books/1?q=1&r=%20#f": true,
		"http://localhost:8080/a//b":              true,
		"http://127.0.0.1:8080/a":                 true,
		"https://a-b.example.com/a.b/..c/.d/e..":  true,
		"https://example.com/@a:b!$&'()*+,;=|^[]": true,
		"urn:isbn:1":           true,
		"urn:isbn:1?q#f":       true,
		"mailto:a@example.com": true,
		"wss://h/":             true,

		"/":        true,
		"/books/1": true,
		"/.well-known/mercure/subscriptions/exact/https%3A%2F%2Fe.example%2F1/urn%3Auuid%3A1": true,
		"/a//b?q#f": true,

		"":                               false,
		"//books/1":                      false,
		"/\\books":                       false,
		"/a/../b":                        false,
		"/.":                             false,
		"/é":                             false,
		"books":                          false,
		":x":                             false,
		"1a:x":                           false,
		"https://example.com":            false,
		"https://example.com?q":          false,
		"https:/example.com/":            false,
		"https:example.com/":             false,
		"HTTPS://example.com/":           false,
		"https://Example.com/":           false,
		"https://example.com./":          false,
		"https://ex..ample.com/":         false,
		"https://u@example.com/":         false,
		"https://u:p@example.com/":       false,
		"https://example.com:443/":       false,
		"https://example.com:/":          false,
		"https://example.com:080/":       false,
		"https://example.com:65536/":     false,
		"https://example.com:0/":         false,
		"https://[::1]/":                 false,
		"https://1.2.3/":                 false,
		"https://1.2.3.256/":             false,
		"https://1.2.3.4.5/":             false,
		"https://example.0x1/":           false,
		"https://xn--bcher-kva.example/": false,
		"https://bücher.example/":        false,
		"https://example.com/é":          false,
		"https://example.com/a b":        false,
		"https://example.com/a\\b":       false,
		"https://example.com/a/../b":     false,
		"https://example.com/./b":        false,
		"https://example.com/b/.":        false,
		"https://example.com/b/..":       false,
		"https://example.com/%2e%2E/b":   false,
		"https://example.com/%":          false,
		"https://example.com/%2":         false,
		"https://example.com/{a}":        false,
		"https://example.com/\x00":       false,
		"https://example.com/?a'b":       false,
		"https://example.com/#a`b":       false,
		" https://example.com/":          false,
		"file:///a":                      false,
		"urn:":                           false,
		"urn:/a":                         false,
		"foo://host/a":                   false,
		"urn:a ":                         false,
		"urn:é":                          false,
		"https://-a.example.com/":        false,
		"https://" + strings.Repeat("a", 64) + ".example.com/": false,
		"https://" + strings.Repeat("a.", 140) + "com/":        false,
	} {
		if got := Normal(raw); got != want {
			t.Errorf("Normal(%q) = %v, want %v", raw, got, want)
		}
		checkNormal(t, raw)
	}
}

// hubCompilers returns compilers for hubs of all kinds: what is normal, and begins with what, must not depend on where the hub is.
func hubCompilers(tb rapid.TB) []*Compiler {
	tb.Helper()
	var all []*Compiler
	for _, hub := range []string{
		testHub, "http://localhost:8080/a/b", "https://[2001:db8::1]:8443/hub", "http://127.0.0.1/hub/", "https://bücher.example/é", "HTTP://A.b:80/%7e",
	} {
		c, err := NewCompiler(hub, Limits{PatternBytes: 512})
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// checkNormal fails the test when a topic counts as normal that the parser would change.
func checkNormal(tb rapid.TB, raw string) {
	tb.Helper()
	if !Normal(raw) {
		return
	}
	for _, c := range hubCompilers(tb) {
		hub, want := c.HubURL(), raw
		if raw[0] == '/' {
			want = c.origin() + raw
		}
		u, err := url.NewParser().Parse(want)
		if err != nil {
			tb.Fatalf("Normal(%q) = true of what is no URL: %v", raw, err)
		}
		if got := u.Href(false); got != want || u.Username() != "" || u.Password() != "" {
			tb.Fatalf("Normal(%q) = true of what the parser writes as %q", raw, got)
		}
		u, ok := c.resolve(raw)
		if !ok || u.Href(false) != want {
			tb.Fatalf("Normal(%q) = true of what becomes %v beside %s", raw, u, hub)
		}
		if got, want := c.normalComponents(raw), componentsOf(u); got != want {
			tb.Fatalf("normalComponents(%q) = %q, want what the parser finds: %q", raw, got, want)
		}
	}
}

// checkPrefix fails the test when the matcher selects a normal topic that begins with none of its prefixes.
func checkPrefix(tb rapid.TB, c *Compiler, pattern, raw string) {
	tb.Helper()
	m, err := c.Compile(URLPattern, pattern)
	if err != nil || !Normal(raw) || !m.Match(c.Topic(raw)) {
		return
	}
	begins := func(prefix string) bool { return strings.HasPrefix(raw, prefix) }
	if prefixes := m.Prefixes(); prefixes != nil && !slices.ContainsFunc(prefixes, begins) {
		tb.Fatalf("Compile(%q).Prefixes() = %q, and it selects %q", pattern, prefixes, raw)
	}
}

func TestPrefixes(t *testing.T) {
	c, err := NewCompiler(testHub, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string]string{
		"https://example.com/books/:id":  "https://example.com/books/",
		"https://example.com/books/*":    "https://example.com/books/",
		"https://example.com/books":      "https://example.com/books",
		"https://example.com:8443/a/*":   "https://example.com:8443/a/",
		"https://example.com:*/a/*":      "https://example.com",
		"https://hub.example.com:*/a/*":  "https://hub.example.com /",
		"https://example.com/a/(b|c)":    "https://example.com/a/",
		"https://example.com/{a/}?b":     "https://example.com/",
		"https://:sub.example.com/a":     "https:// /",
		"https://api.:x.example.com/a":   "https://api.",
		"http{s}?://example.com/a":       "http /",
		"/books/:id":                     "https://hub.example.com/books/ /books/",
		"https://hub.example.com/*":      "https://hub.example.com/ /",
		"https://hub.example.com:1/*":    "https://hub.example.com:1/",
		"https://hub.example.:tld/a":     "https://hub.example. /",
		"https://hub.:x/a":               "https://hub. /",
		`urn\:isbn\::x`:                  "urn:isbn:",
		"*://example.com/a":              "",
		"*":                              "",
		":p://example.com/a":             "",
		"https://example.com/:x([a-z]+)": "https://example.com/",
	} {
		m, err := c.Compile(URLPattern, pattern)
		if err != nil {
			t.Fatalf("Compile(%q) = %v", pattern, err)
		}
		if got := m.Prefixes(); strings.Join(got, " ") != want {
			t.Errorf("Compile(%q).Prefixes() = %q, want %q", pattern, got, want)
		}
	}
	m, err := c.Compile(Exact, "anything")
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Prefixes(); !slices.Equal(got, []string{"anything"}) {
		t.Errorf("Prefixes() = %q of an exact matcher, want the topic", got)
	}
}

func TestNormal_allocations(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { Normal("https://sub.example.com:8443/books/1/a%20b?q=1#f") }); n > 0 {
		t.Errorf("Normal() allocates %v times", n)
	}
}

func TestNormal_random(t *testing.T) {
	compilers := hubCompilers(t)
	rapid.Check(t, func(rt *rapid.T) {
		raw := drawTopic(rt)
		checkNormal(rt, raw)
		c := rapid.SampledFrom(compilers).Draw(rt, "hub")
		for range 10 {
			checkPrefix(rt, c, drawPattern(rt), raw)
		}
	})
}

func FuzzNormal(f *testing.F) {
	for _, raw := range []string{
		"https://example.com/books/1?q=1#f", "http://127.0.0.1:80/", "urn:isbn:1", "https://a.b-c.example/%20/..", "ws://h:1/", "ftp://h/a;b",
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if len(raw) <= 512 {
			checkNormal(t, raw)
		}
	})
}

func FuzzPrefix(f *testing.F) {
	for _, s := range [][2]string{
		{"https://example.com/books/:id", "https://example.com/books/1"},
		{"https://example.com/{a/}?*", "https://example.com/a/b"},
		{`urn\:x\::y`, "urn:x:1"},
		{"https://*.example.com:*/a", "https://b.example.com:81/a"},
		{"/a?q=*#f", "https://hub.example.com/a?q=1#f"},
	} {
		f.Add(s[0], s[1])
	}
	for _, s := range [][2]string{
		{"https://[2001:db8::1]:8443/a/:x", "/a/1"}, {"http://127.0.0.1:*/:x", "/a"}, {"//:h.example/*", "/a"}, {"?q=:x", "/hub?q=1"}, {"http://a.b/*", "/"},
	} {
		f.Add(s[0], s[1])
	}
	compilers := hubCompilers(f)
	f.Fuzz(func(t *testing.T, pattern, raw string) {
		if len(raw) > 256 {
			return
		}
		for _, c := range compilers {
			checkPrefix(t, c, pattern, raw)
			checkPrefix(t, c, pattern, "/"+raw)
		}
		checkPrefix(t, compilers[0], pattern, "https://example.com/"+raw)
	})
}
