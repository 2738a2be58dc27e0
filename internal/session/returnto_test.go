package session_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

const ownOrigin = "https://hub.example.com"

func TestLogin_ReturnTo(t *testing.T) {
	tests := map[string]struct {
		returnTo string
		want     string // "" is 400
	}{
		"nothing":                         {"", ownOrigin + "/"},
		"the root":                        {"/", ownOrigin + "/"},
		"a path":                          {"/app/page", ownOrigin + "/app/page"},
		"query and fragment":              {"/a?b=c&d=%20#e", ownOrigin + "/a?b=c&d=%20#e"},
		"a colon in the path":             {"/a:b@c", ownOrigin + "/a:b@c"},
		"a URL in the query":              {"/a?next=https://evil.example", ownOrigin + "/a?next=https://evil.example"},
		"dot segments":                    {"/a/../b/./c", ownOrigin + "/b/c"},
		"not ASCII":                       {"/café", ownOrigin + "/caf%C3%A9"},
		"the own origin":                  {ownOrigin + "/app", ownOrigin + "/app"},
		"the own origin alone":            {ownOrigin, ownOrigin + "/"},
		"the default port":                {"https://hub.example.com:443/x", ownOrigin + "/x"},
		"capitals":                        {"HTTPS://APP.Example.COM/x", "https://app.example.com/x"},
		"a listed origin":                 {"https://app.example.com/x?y#z", "https://app.example.com/x?y#z"},
		"a listed origin with a port":     {"http://localhost:5173/#/route", "http://localhost:5173/#/route"},
		"full-width letters":              {"https://ａpp.example.com/", "https://app.example.com/"},
		"an earlier outcome":              {"/a?session_error=login_failed&b=1#c", ownOrigin + "/a?b=1#c"},
		"an earlier outcome alone":        {"/?session_error=login_failed", ownOrigin + "/"},
		"the limit":                       {"/" + strings.Repeat("a", 511), ownOrigin + "/" + strings.Repeat("a", 511)},
		"one more":                        {"/" + strings.Repeat("a", 512), ""},
		"longer when encoded":             {"/" + strings.Repeat("é", 200), ""},
		"two slashes":                     {"//evil.example", ""},
		"three slashes":                   {"///evil.example", ""},
		"slash, backslash":                {`/\evil.example`, ""},
		"backslashes":                     {`\\evil.example`, ""},
		"a backslash later":               {`/a\b`, ""},
		"an encoded backslash":            {"/%5cevil.example", ""},
		"an encoded slash":                {"/%2fevil.example", ""},
		"an encoded slash in capitals":    {"/%2Fevil.example", ""},
		"dot segments to two slashes":     {"/a/..//evil.example", ""},
		"dot and slash":                   {"/.//evil.example", ""},
		"encoded dot segments":            {"/%2e%2e//evil.example", ""},
		"a tab":                           {"/\t/evil.example", ""},
		"a line feed":                     {"/\n/evil.example", ""},
		"a carriage return":               {"/a\r\nSet-Cookie: a=b", ""},
		"NUL":                             {"/\x00", ""},
		"DEL":                             {"/\x7f", ""},
		"a C1 control":                    {"/\u0085", ""},
		"an encoded line feed":            {"/%0a/evil.example", ""},
		"an encoded carriage return":      {"/a%0D%0ASet-Cookie:a=b", ""},
		"an encoded tab":                  {"/%09/evil.example", ""},
		"a space in front":                {" /app", ""},
		"a space in front of two slashes": {" //evil.example", ""},
		"a space inside":                  {"/a b", ""},
		"a no-break space":                {"\u00a0//evil.example", ""},
		"not UTF-8":                       {"/\xff", ""},
		"a stray percent sign":            {"/100%", ""},
		"half an escape":                  {"/a%4", ""},
		"no escape":                       {"/%zz", ""},
		"a relative path":                 {"app", ""},
		"a query alone":                   {"?a", ""},
		"a fragment alone":                {"#a", ""},
		"a host alone":                    {"app.example.com", ""},
		"another origin":                  {"https://evil.example/", ""},
		"a longer host":                   {"https://app.example.com.evil.example/", ""},
		"a host that ends the same":       {"https://evilapp.example.com/", ""},
		"a subdomain":                     {"https://x.app.example.com/", ""},
		"a trailing dot":                  {"https://app.example.com./", ""},
		"another port":                    {"https://app.example.com:8443/", ""},
		"another scheme":                  {"http://app.example.com/", ""},
		"credentials":                     {"https://app.example.com@evil.example/", ""},
		"credentials for a listed one":    {"https://user:pw@app.example.com/", ""},
		"two at signs":                    {"https://app.example.com@@evil.example/", ""},
		"a backslash after the host":      {`https://evil.example\@app.example.com/`, ""},
		"a fragment before the host":      {"https://evil.example#@app.example.com/", ""},
		"one slash":                       {"https:/evil.example", ""},
		"no slash":                        {"https:evil.example", ""},
		"no slash, own host":              {"https:hub.example.com", ""},
		"a script":                        {"javascript:alert(1)", ""},
		"a script in capitals":            {"JavaScript://app.example.com/%0aalert(1)", ""},
		"data":                            {"data:text/html,x", ""},
		"a file":                          {"file:///etc/passwd", ""},
		"an encoded host":                 {"https://%65vil.example/", ""},
		"another octet form":              {"http://0x7f.1:5173/", ""},
		"its own login":                   {hubPath + "/session/login", ""},
		"its own login, absolute":         {hubURL + "/session/login?return_to=/", ""},
		"its own callback":                {"/x/.." + hubPath + "/session/callback", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, b := setup(t, nil), &browser{}
			resp := f.signIn1(b, "?return_to="+url.QueryEscape(tt.returnTo))
			if tt.want == "" {
				if resp.StatusCode != http.StatusBadRequest || resp.Header.Get("Content-Type") != "application/problem+json" {
					t.Errorf("status = %d (%s), want a 400 problem", resp.StatusCode, resp.Header.Get("Location"))
				}
				if len(b.cookies) > 0 || f.server.fetches > 0 {
					t.Error("the refused sign-in left traces")
				}
				return
			}
			if got := resp.Header.Get("Location"); got != tt.want {
				t.Errorf("status %d, ends at %q, want %q", resp.StatusCode, got, tt.want)
			}
		})
	}
	t.Run("twice", func(t *testing.T) {
		f := setup(t, nil)
		if resp := f.get(&browser{}, hubURL+"/session/login?return_to=/a&return_to=/b"); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("status = %d, want 400", resp.StatusCode)
		}
	})
}

// signIn1 is signIn for a login that may be refused.
func (f *fixture) signIn1(b *browser, query string) *http.Response {
	f.t.Helper()
	resp := f.get(b, hubURL+"/session/login"+query)
	if resp.StatusCode != http.StatusSeeOther {
		return resp
	}
	return f.get(b, f.server.authorize(f.t, resp.Header.Get("Location")))
}
