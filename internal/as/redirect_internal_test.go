package as

import (
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestCheckRedirectURI(t *testing.T) {
	for _, uri := range []string{
		"https://app.example/cb", "https://app.example", "https://app.example/cb?tenant=a", "https://app.example:8443/a;b/c",
		"http://127.0.0.1/cb", "http://127.0.0.1:3000/cb", "http://[::1]/cb", "http://localhost:5173/", "com.example.app:/cb",
		"http://LOCALHOST:5173/", "http://[::ffff:127.0.0.1]/cb",
	} {
		if err := CheckRedirectURI(uri); err != nil {
			t.Errorf("%s: %v", uri, err)
		}
	}
	for _, uri := range []string{
		"", "/cb", "//app.example/cb", "app.example/cb", "https://", "https:///cb", "http://app.example/cb",
		"http://localhost.evil.example/cb", "http://127.0.0.1.evil.example/cb", "https://app.example*/cb", "https://*.example/cb",
		"https://app.example/cb#", "https://app.example/cb#x", "https://user@app.example/cb", "https://app.example@@evil.example/cb",
		`https://app.example\cb`, "https://app.example/ cb", "https://app.example/cb\n", "https://app.example/é",
		"https://app.example/a/../cb", "https://app.example/a/%2e%2E/cb", "https://app.example/..;/cb", "https://app.example/./cb",
		"javascript:alert(1)", "javascript:/x", "data:text/html,x", "com.example.app:cb", "com.example.app", "app:/cb", "file:/etc/passwd",
		"ftp://app.example/cb", "https://app.example:99999999/cb%zz",
	} {
		if CheckRedirectURI(uri) == nil {
			t.Errorf("%q may be registered", uri)
		}
	}
}

// FuzzRedirectMatch checks that what is matched is what was registered, but for the port of a loopback address, and that an
// answer sent there stays at the host that was registered.
func FuzzRedirectMatch(f *testing.F) {
	registered := []string{"https://app.example/cb?a=1", "http://127.0.0.1/cb", "http://[::1]:80/cb", "http://localhost:3000/cb?x=y", "com.example.app:/cb"}
	for _, seed := range append(slices.Clone(registered), "http://127.0.0.1:5000/cb", "http://127.0.0.1:1@evil.example/cb", "http://localhost:3000#/cb?x=y",
		"http://127.0.0.1:08/cb", "http://[::1]@evil/cb", "http://127.0.0.1:5000\\@evil/cb") {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, requested string) {
		target, by, ok := matchRedirect(requested, registered)
		if !ok {
			return
		}
		if target != requested || !slices.Contains(registered, by) {
			t.Fatalf("%q gave %q by %q", requested, target, by)
		}
		got, err := url.Parse(target)
		if err != nil {
			t.Fatalf("%q does not parse: %v", target, err)
		}
		want, err := url.Parse(by)
		if err != nil {
			t.Fatal(err)
		}
		if got.Scheme != want.Scheme || got.Hostname() != want.Hostname() || got.User != nil || got.Fragment != "" ||
			got.EscapedPath() != want.EscapedPath() || got.RawQuery != want.RawQuery {
			t.Fatalf("%q is not %q", target, by)
		}
		if got.Host != want.Host && !isLoopbackHost(got.Hostname()) {
			t.Fatalf("%q has another port than %q", target, by)
		}
		answer := appendQuery(target, url.Values{"code": {"x&y"}})
		if !strings.HasPrefix(answer, target) {
			t.Fatalf("answer %q", answer)
		}
		if u, err := url.Parse(answer); err != nil || u.Query().Get("code") != "x&y" || u.Host != got.Host {
			t.Fatalf("answer %q", answer)
		}
	})
}

func TestIsNativeRedirect(t *testing.T) {
	for uri, want := range map[string]bool{
		"https://app.example/cb": false, "http://127.0.0.1/cb": true, "https://localhost:8443/cb": true, "com.example.app:/cb": true,
	} {
		if isNativeRedirect(uri) != want {
			t.Errorf("%s: %v", uri, !want)
		}
	}
}
