package session

import (
	"strings"
	"testing"

	"github.com/nlnwa/whatwg-url/url"
)

// FuzzReturnTo holds every address that a sign-in may end at against the WHATWG parser: it never leaves the listed
// origins, with and without an outcome, whatever it is resolved against.
func FuzzReturnTo(f *testing.F) {
	for _, seed := range []string{
		"", "/", "/a?b#c", "//evil", `/\evil`, "/%2f/evil", "/\t/evil", "/.//evil", "https://app.example.com/", "https:evil", `HTTP:/\evil`,
		"https://app.example.com@evil/", "http://localhost:5173", "/a?session_error=1&b", "javascript:alert(1)", "/café",
		"https://ａpp.example.com", "/%5c", "/a/..//x", "https://app.example.com:443:80/", "https://[::1]/", `/#/\x`, `/?\`, "/%",
		"https://app.example.com?x", "https://app.example.com#x", "/?session_error=1#/x?session_error=2", "/??&&session_error", "/#?",
		"https://@app.example.com/", "https://app.example.com:/x", "/.well-known/mercure/session", "/x:/y", "/..;/", "/\u2028", "/\ufeff",
	} {
		f.Add(seed)
	}
	const own = "https://hub.example.com"
	p := newReturnPolicy(own, "/.well-known/mercure/session", []string{"https://app.example.com", "http://localhost:5173"})
	f.Fuzz(func(t *testing.T, returnTo string) {
		admitted, err := p.admit(returnTo)
		if err != nil {
			return
		}
		if again, err := p.resolve(admitted); err != nil || again != admitted {
			t.Fatalf("%q is admitted as %q, and that as %q (%v)", returnTo, admitted, again, err)
		}
		if len(admitted) > maxReturnBytes+len("https://app.example.com") {
			t.Fatalf("%q is admitted with %d bytes", returnTo, len(admitted))
		}
		for _, location := range []string{admitted, withError(admitted, ErrorDenied)} {
			if strings.ContainsFunc(location, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }) {
				t.Fatalf("%q ends at %q, which needs parsing to be understood", returnTo, location)
			}
			for _, base := range []string{own + "/.well-known/mercure/session/callback", "https://elsewhere.example/"} {
				u, err := url.ParseRef(base, location)
				if err != nil {
					t.Fatalf("%q ends at %q, which is no URL: %v", returnTo, location, err)
				}
				if !p.allowed[originOf(u)] || u.Username() != "" || strings.HasPrefix(u.Pathname(), "//") || u.Href(false) != location {
					t.Fatalf("%q ends at %q", returnTo, location)
				}
			}
			u, err := url.Parse(location)
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			if location != admitted {
				want = ErrorDenied
			}
			if got := outcomes(u.Query()); got != want {
				t.Fatalf("%q ends at %q with outcome %q, want %q", returnTo, location, got, want)
			}
		}
	})
}

// outcomes joins the values of every session_error in a raw query.
func outcomes(query string) string {
	var values []string
	for pair := range strings.SplitSeq(query, "&") {
		if name, value, _ := strings.Cut(pair, "="); name == errorParam {
			values = append(values, value)
		}
	}
	return strings.Join(values, ",")
}
