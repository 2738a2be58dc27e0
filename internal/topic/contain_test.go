package topic_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

func TestContains(t *testing.T) {
	const u, e = topic.URLPattern, topic.Exact
	const own = "https://example.com/users/42/*"
	cases := []struct {
		bt   topic.Type
		b    string
		at   topic.Type
		a    string
		want bool
		why  string
	}{
		// 1 to 8: exact topics are read by the URL parser.
		{u, own, e, "https://example.com/users/42/../43/x", false, "resolves to /users/43"},
		{u, own, e, "https://example.com/users/42/%2e%2e/43/x", false, "an encoded dot segment"},
		{u, own, e, "https://example.com/users/42", false, "the slash is missing"},
		{u, own, e, "https://example.com/users/42/", true, "a wildcard may be empty"},
		{u, own, e, "https://example.com/users/421/x", false, "no string prefixes"},
		{u, own, e, "https://EXAMPLE.com:443/users/42/x", true, "canonicalised"},
		{u, own, e, "https://example.com.evil.org/users/42/x", false, "the host is whole"},
		{u, own, e, `https:\\example.com\users\42\x`, true, "backslashes are slashes"},
		// 9 to 15: pattern against pattern.
		{u, own, u, "https://example.com/users/42/:any", true, "a segment is within a wildcard"},
		{u, "https://example.com/users/42/:any", u, own, false, "a wildcard crosses slashes"},
		{u, "https://example.com/users/:id/*", u, own, true, "a literal is within a segment"},
		{u, own, u, "https://example.com/users/42/:rest?", false, "the optional group drops the slash too"},
		{u, own, u, "https://example.com/users/(42|43)/*", false, "43 escapes"},
		{u, "https://example.com/*", u, "http{s}?://example.com/*", false, "http is not covered"},
		{u, "http{s}?://example.com/*", u, "https://example.com/*", true, "the reverse is"},
		{u, "https://:sub.example.com/x", u, "https://*.example.com/x", false, "a wildcard spans labels"},
		{u, "https://*.example.com/x", u, "https://:sub.example.com/x", true, "the reverse does"},
		// 16, 17: relative matchers.
		{u, "https://hub.example.com/users/42/*", u, "/users/42/*", true, "resolved against the hub URL"},
		{u, "/users/42/*", u, "https://hub.example.com/users/42/:x", true, "and back"},
		{u, "/users/42/*", e, "/users/42/x", true, "a relative topic"},
		{u, "/users/42/*", e, "users/42/x", false, "resolves beside the hub"},
		// 18: the wildcard.
		{u, "*://*/*", e, "*", false, "the wildcard covers topics that are no URLs"},
		{u, "*://*/*", u, "*", false, "whatever its type"},
		{e, "*", u, "*", true, "the wildcard contains itself"},
		{u, "*", e, "https://[bad/", true, "and everything"},
		// 19: pattern in exact.
		{e, "https://example.com/books/1", u, "https://example.com/books/1", false, "a pattern matches queries and spellings"},
		{u, "https://example.com/books/1", e, "https://example.com/books/1", true, "the reverse"},
		{e, "https://example.com/books/1", e, "https://example.com/books/1", true, "equal"},
		{e, "https://example.com/books/1", e, "https://example.com/books/2", false, "different"},
		// 20 to 22: spelling.
		{u, "https://example.com/x", u, "//example.com/x", false, "as a pattern, a path on the hub"},
		{u, "https://example.com/x", e, "//example.com/x", true, "as a topic, another host"},
		{u, "https://example.com/books/*?draft=1", e, "https://example.com/books/1?draft=1", false, "a modifier, no query"},
		{u, `https://example.com/books/*\?draft=1`, e, "https://example.com/books/1?draft=1", true, "escaped"},
		{u, `https://example.com/books/*\?draft=1`, e, "https://example.com/books/1?draft=0", false, "escaped, another value"},
		{u, "https://example.com/caf%C3%A9/*", u, "https://example.com/café/:x", true, "fixed text is canonical"},
		{u, "https://example.com/%61/*", u, "https://example.com/a/:x", false, "as far as the standard goes"},
		// 23 to 25.
		{u, "https://hub.example.com/*", u, "/.well-known/mercure/subscriptions/*", true, "a broad pattern includes the subscriptions"},
		{u, "https://example.com/a/*", u, "https://example.com/a/:id/../b", true, "the pattern is canonicalised"},
		{u, "https://example.com/((?i)abc)", u, "https://example.com/(abc)", false, "true, but case folding is not proved"},
		// Further.
		{u, `https://example.com/users/(4\d)/*`, u, "https://example.com/users/(42|43)/*", true, "regular expressions"},
		{u, own, u, "https://example.com/users/42{/*}?", false, "the slash is optional"},
		{u, "https://example.com/*/x", u, "https://example.com/:a/:b/x", true, "segments within a wildcard"},
		{u, "https://example.com:*/x", u, "https://example.com/x", true, "any port"},
		{u, "https://example.com/x", u, "https://example.com:443/x", true, "the default port"},
		{u, "https://example.com/x", u, "https://example.com:8443/x", false, "another port"},
		{u, "https://example.com/a(.*)", u, "https://example.com/a*", true, "two spellings of a wildcard"},
		{u, "https://example.com/a/:x+", u, "https://example.com/a/:y/:z", true, "two are one or more"},
		{u, "https://example.com/a/:x", u, "https://example.com/a/:y+", false, "one is not one or more"},
		{u, "https://example.com/a/*", u, "https://example.com/a/(x|y)+", true, "a repeated regular expression"},
		{u, "https://example.com/(^a)", u, "https://example.com/(a)", false, "true, but assertions are not proved"},
		{u, "*:*", e, "urn:isbn:123", true, "every URL"},
		{u, "urn:isbn:*", e, "urn:isbn:123", false, ":isbn is a name"},
		{u, `urn\:isbn\:*`, e, "urn:isbn:123", true, "escaped"},
		{u, "https://example.com/*", u, "https://example.com/a?q", true, "query and fragment are open"},
		{u, "https://example.com/*?q=1", u, "https://example.com/a", false, "the modifier makes another path"},
		{u, `https://example.com/*\?q=1`, u, "https://example.com/a", false, "an open query is wider"},
		{u, "https://example.com/x", u, "https://u@example.com/x", true, "userinfo is open"},
		{u, "https://u@example.com/x", u, "https://example.com/x", false, "the reverse is not"},
	}
	c := mustCompiler(t, hubURL)
	for _, tc := range cases {
		t.Run(fmt.Sprintf("%s %s in %s %s", tc.at, tc.a, tc.bt, tc.b), func(t *testing.T) {
			b, a := mustCompile(t, c, tc.bt, tc.b), mustCompile(t, c, tc.at, tc.a)
			if got := topic.Contains(b, a); got != tc.want {
				t.Errorf("Contains = %v, want %v: %s", got, tc.want, tc.why)
			}
		})
	}
}

func TestContains_differentHubs(t *testing.T) {
	here, there := mustCompiler(t, hubURL), mustCompiler(t, "https://other.example/hub")
	if topic.Contains(mustCompile(t, there, topic.URLPattern, "/a/*"), mustCompile(t, here, topic.URLPattern, "/a/*")) {
		t.Error("equal relative patterns of different hubs contain each other")
	}
	if topic.Contains(mustCompile(t, there, topic.URLPattern, "https://hub.example.com/a/*"), mustCompile(t, here, topic.Exact, "/a/1")) {
		t.Error("a relative topic was read against the wrong hub")
	}
}

func TestProver_isBounded(t *testing.T) {
	c := mustCompiler(t, hubURL)
	b := mustCompile(t, c, topic.URLPattern, "https://example.com/(.*a.{14})")
	a := mustCompile(t, c, topic.URLPattern, "https://example.com/(.*a.{14}|.*a.{14})")
	if topic.Contains(b, a) {
		t.Error("an exponential proof was made within the budget")
	}
	p := topic.NewProver(3000)
	wide := mustCompile(t, c, topic.URLPattern, "https://example.com/users/:id/x/*")
	narrow := mustCompile(t, c, topic.URLPattern, "https://example.com/users/:id/x/:y")
	if !p.Contains(wide, narrow) {
		t.Fatal("an ordinary proof does not fit 3000 steps")
	}
	for range 1000 {
		if !p.Contains(wide, narrow) {
			return
		}
	}
	t.Error("the budget is not shared by the proofs of a prover")
}

func FuzzContains(f *testing.F) {
	for _, s := range [][3]string{
		{"https://example.com/users/42/*", "https://example.com/users/42/:any", "https://example.com/users/42/x"},
		{"https://example.com/users/42/*", "https://example.com/users/42/:rest?", "https://example.com/users/42"},
		{"http{s}?://example.com/*", "https://example.com/(a|b)+", "https://example.com/ab"},
		{"https://:sub.example.com/x", "https://*.example.com/x", "https://a.b.example.com/x"},
		{"/a/:x+", "/a/:y/:z", "/a/b/c"},
		{"*:*", `urn\:x\::y`, "urn:x:1"},
		{"/([^b]*)", "/(a*)", "/aaa"},
	} {
		f.Add(s[0], s[1], s[2])
	}
	c, err := topic.NewCompiler(hubURL, topic.Limits{PatternBytes: 512})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, outer, inner, raw string) {
		a, err := c.Compile(topic.URLPattern, inner)
		if err != nil {
			return
		}
		b, err := c.Compile(topic.URLPattern, outer)
		if err != nil || len(raw) > 256 || !topic.NewProver(1<<16).Contains(b, a) {
			return
		}
		for _, s := range []string{raw, inner, strings.ReplaceAll(inner, "*", raw), strings.ReplaceAll(inner, ":x", "x")} {
			if tp := c.Topic(s); a.Match(tp) && !b.Match(tp) {
				t.Fatalf("%q is proved to contain %q, but %q matches the latter alone", outer, inner, s)
			}
		}
	})
}
