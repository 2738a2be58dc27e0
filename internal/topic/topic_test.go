package topic_test

import (
	"errors"
	"net/url"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

const hubURL = "https://hub.example.com/.well-known/mercure"

func mustCompiler(tb testing.TB, hub string) *topic.Compiler {
	tb.Helper()
	c, err := topic.NewCompiler(hub, topic.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func TestTopic_Reserved(t *testing.T) {
	const p = "/.well-known/mercure"
	cases := []struct {
		name string
		hub  string
		in   []string
		want bool
	}{
		{"NS-01 the path and below", hubURL, []string{p, p + "/", p + "/x", p + "/subscriptions/exact/a/b"}, true},
		{"NS-02 after resolving against the hub URL", hubURL, []string{
			"mercure", "./mercure/x", "../.well-known/mercure", "?q", "#f", "", hubURL,
		}, true},
		{"NS-03 whatever the scheme", hubURL, []string{
			"http://h" + p, "https://h" + p, "ftp://h" + p, "foo://h" + p, "foo:" + p, "file://" + p, "ws://h" + p + "/x",
		}, true},
		{"NS-04 whatever the authority", hubURL, []string{
			"//any.example" + p, "//any.example:81" + p, "//u:p@any.example" + p, "https://[::1]" + p,
		}, true},
		{"NS-05 whatever query and fragment", hubURL, []string{p + "?x=1", p + "#x", p + "/?x#y"}, true},
		{"NS-06 dot segments removed first", hubURL, []string{
			"/.well-known/x/../mercure", "/.well-known/./mercure", "/.well-known/x/%2e%2e/mercure", "/.well-known/x/.%2E/mercure",
			"/.well-known/%2e/mercure", "/x/../.well-known/mercure/y", p + "/x/../y",
		}, true},
		{"NS-06 dot segments that lead out", hubURL, []string{p + "/..", p + "/../x", p + "/%2e%2E/x"}, false},
		{"NS-07 unreserved characters decoded", hubURL, []string{
			"/.well-known/%6Dercure", "/.well-known/%6dercure", "/%2Ewell%2Dknown/mercure/x",
			"/%2e%77%65%6c%6c%2d%6b%6e%6f%77%6e/%6d%65%72%63%75%72%65", "foo:/.well-known/%6Dercure",
		}, true},
		{"NS-08 leniencies of the URL parser", hubURL, []string{
			`\.well-known\mercure`, `https:\\h\.well-known\mercure`, " " + p + " ", "HTTPS://h" + p, "https:///h" + p, "http:/h" + p,
			"/.well-known/mer\tcure", "/.well\n-known/mercure",
		}, true},
		{"NS-08 a missing slash names an authority for another scheme", "http://hub.example.com" + p, []string{"https:/h.example" + p}, true},
		{"NS-09 nothing else", hubURL, []string{
			p + "x", p + ";x", p + "%2Fx", "/.well-known/%256Dercure", "/.WELL-KNOWN/mercure", "/x" + p, "/.well-known//mercure",
			"https://example.com/books/1", "urn:x:1", "foo:.well-known/mercure", "*", "/.well-known/mercur", "/.well-known",
		}, false},
		{"NS-10 topics that are no URLs", hubURL, []string{"https://[bad" + p, "https://h:99999" + p}, false},
		{"NS-12 the hub's own path", "https://hub.example.com/live/hub", []string{"/live/hub", "/live/%68ub/x", "hub", "https://x.example/live/hub?q"}, true},
		{"NS-12 the default path of others", "https://hub.example.com/live/hub", []string{p, p + "/x", "mercure", "/live/hubs"}, false},
		{"NS-12 a hub path with needless encoding", "https://hub.example.com/%6cive/hub", []string{"/live/hub", "/%6Cive/hub/x"}, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			compiler := mustCompiler(t, c.hub)
			for _, in := range c.in {
				if got := compiler.Topic(in).Reserved(); got != c.want {
					t.Errorf("Topic(%q).Reserved() = %v, want %v", in, got, c.want)
				}
			}
		})
	}
}

func TestTopic_isBounded(t *testing.T) {
	const p = "/.well-known/mercure"
	c := mustCompiler(t, hubURL)
	every := mustCompile(t, c, topic.URLPattern, "*:*")
	for raw, excessive := range map[string]bool{
		"https://" + strings.Repeat("@", 8000) + "h/x":                           true,
		"https:" + strings.Repeat("a", 600) + "@h/x":                             true,
		"\t//\n" + strings.Repeat("a", 600) + "@h/x":                             true,
		"https://e.example" + strings.Repeat("/", 8000):                          true,
		"https://e.example" + strings.Repeat(`\a`, 300):                          true,
		"https://e.example/" + strings.Repeat("a", 8000) + "@?@/#@":              false,
		"https://" + strings.Repeat("a", 400) + "@e.example/x":                   false,
		"https://e.example/?q=" + strings.Repeat("a", 600) + "@":                 false,
		"https://e.example" + strings.Repeat("/a", 250):                          false,
		strings.Repeat("@", 256):                                                 false,
		"https://h" + p + "/" + strings.Repeat("/", 300):                         true,
		strings.Repeat("plain text without an address ", 200) + "but with no at": false,
	} {
		tp := c.Topic(raw)
		if tp.Reserved() != excessive || every.Match(tp) == excessive {
			t.Errorf("URLP-08 Topic(%.40q…): reserved %v, matched %v, want excessive %v", raw, tp.Reserved(), every.Match(tp), excessive)
		}
		if !mustCompile(t, c, topic.Exact, "*").Match(tp) || tp.Raw() != raw {
			t.Errorf("the wildcard does not match %.40q…", raw)
		}
	}
}

// FuzzReserved disguises a path below the hub's in ways that the rules undo, and plain text in front of it that they do
// not.
func FuzzReserved(f *testing.F) {
	f.Add("/x", uint64(0), "")
	f.Add("", ^uint64(0), "https://any.example:81")
	f.Add("/a/../b?q#f", uint64(0x5555), "foo://u:p@h")
	f.Add("/..", uint64(3), "")
	c := mustCompiler(f, hubURL)
	f.Fuzz(func(t *testing.T, below string, mask uint64, prefix string) {
		const hex = "0123456789abcdef"
		var b strings.Builder
		for i, ch := range []byte("/.well-known/mercure") {
			if ch != '/' && mask>>i&1 == 1 {
				digits := hex
				if mask>>(i+32)&1 == 1 {
					digits = strings.ToUpper(hex)
				}
				b.WriteString("%" + string(digits[ch>>4]) + string(digits[ch&15]))
				continue
			}
			b.WriteByte(ch)
		}
		disguised := b.String()
		if !c.Topic(disguised).Reserved() {
			t.Fatalf("Topic(%q).Reserved() = false", disguised)
		}
		// An independent reading, for the references that net/url parses without an authority, backslashes and odd bytes.
		raw := disguised + below
		if len(raw) > 256 {
			return // may be too expensive to tell
		}
		plain := !strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' })
		if u, err := url.Parse(raw); err == nil && plain && u.Scheme == "" && u.Host == "" && !strings.Contains(strings.ToLower(u.EscapedPath()), "%2f") {
			clean := path.Clean(u.Path)
			want := clean == "/.well-known/mercure" || strings.HasPrefix(clean, "/.well-known/mercure/")
			if !strings.Contains(u.Path, "//") && c.Topic(raw).Reserved() != want {
				t.Fatalf("Topic(%q).Reserved() = %v, want %v", raw, !want, want)
			}
		}
		_ = c.Topic(prefix + raw).Reserved() // must not panic
	})
}

func TestNewCompiler(t *testing.T) {
	for _, hub := range []string{
		"", "/.well-known/mercure", "hub.example.com", "ftp://hub.example.com/", "urn:x", "https://", "https://u:p@hub.example.com/m",
		"https://hub.example.com/m?q", "https://hub.example.com/m#f", "https://[bad/m",
	} {
		if _, err := topic.NewCompiler(hub, topic.Limits{}); !errors.Is(err, topic.ErrHubURL) {
			t.Errorf("NewCompiler(%q) = %v, want ErrHubURL", hub, err)
		}
	}
	c := mustCompiler(t, "http://localhost:8080/hub")
	if c.HubURL() != "http://localhost:8080/hub" || c.HubPath() != "/hub" {
		t.Errorf("HubURL, HubPath = %q, %q", c.HubURL(), c.HubPath())
	}
}

func TestTopic_isSafeForConcurrentUse(t *testing.T) {
	c := mustCompiler(t, hubURL)
	m, err := c.Compile(topic.URLPattern, "/books/:id")
	if err != nil {
		t.Fatal(err)
	}
	shared := c.Topic("/books/1")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if !m.Match(shared) || !m.Match(c.Topic("/books/2")) || shared.Reserved() {
					t.Error("a concurrent match went wrong")
					return
				}
			}
		})
	}
	wg.Wait()
}
