package hubhttp_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// tokens splits a list field into lower-case members.
func tokens(field string) []string {
	var list []string
	for member := range strings.SplitSeq(field, ",") {
		list = append(list, strings.ToLower(strings.TrimSpace(member)))
	}
	return list
}

func TestCORS_everyAnswer(t *testing.T) {
	f := start(t, nil)
	compact := f.publishToken("T")
	for _, tc := range []struct {
		name   string
		q      request
		status int
	}{
		{"stream", request{method: "GET", url: f.base + "?match=T"}, 200},
		{"head", request{method: "HEAD", url: f.base + "?match=T"}, 200},
		{"publish", request{method: "POST", url: f.base, body: "topic=T", headers: []string{formType, bearer(compact)}}, 200},
		{"400", request{method: "GET", url: f.base}, 400},
		{"401", request{method: "POST", url: f.base, body: "topic=T", headers: []string{formType}}, 401},
		{"403", request{method: "POST", url: f.base, body: "topic=U", headers: []string{formType, bearer(compact)}}, 403},
		{"405", request{method: "DELETE", url: f.base}, 405},
		{"413", request{method: "POST", url: f.base, body: strings.Repeat("topic=T&", 1001), headers: []string{formType, bearer(compact)}}, 413},
		{"415", request{method: "POST", url: f.base, body: "topic=T", headers: []string{bearer(compact)}}, 415},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, origin := range []string{
				pageOrigin, "https://evil.example", "null", "http://app.example", "https://app.example:8443",
				"https://app.example.evil.example", "https://x.app.example", "https://APP.example", "https://app.example/",
			} {
				q := tc.q
				q.headers = append(slices.Clone(q.headers), "Origin: "+origin, "Cookie: a=b")
				resp := f.send(q)
				_ = resp.Body.Close()
				if resp.StatusCode != tc.status {
					t.Fatalf("status = %d, want %d", resp.StatusCode, tc.status)
				}
				h := resp.Header
				if !slices.Contains(tokens(strings.Join(h.Values("Vary"), ",")), "origin") {
					t.Errorf("CORS-09 Vary = %q, want Origin in it", h.Values("Vary"))
				}
				if origin != pageOrigin {
					for name := range h {
						if strings.HasPrefix(name, "Access-Control-") {
							t.Errorf("CORS-03 CORS-04 %s got %s: %q", origin, name, h.Get(name))
						}
					}
					continue
				}
				if got := h.Values("Access-Control-Allow-Origin"); !slices.Equal(got, []string{pageOrigin}) {
					t.Errorf("CORS-01 CORS-02 Access-Control-Allow-Origin = %q", got)
				}
				if got := h.Values("Access-Control-Allow-Credentials"); !slices.Equal(got, []string{"true"}) {
					t.Errorf("CORS-05 Access-Control-Allow-Credentials = %q", got)
				}
				exposed := tokens(h.Get("Access-Control-Expose-Headers"))
				for _, want := range []string{"link", "mercure-last-event-id", "www-authenticate", "retry-after"} {
					if !slices.Contains(exposed, want) {
						t.Errorf("CORS-10 CORS-11 exposed = %q, want %s in it", exposed, want)
					}
				}
			}
		})
	}
}

func TestCORS_preflight(t *testing.T) {
	f := start(t, nil)
	preflight := func(origin, method, headers string) response {
		q := request{method: http.MethodOptions, url: f.base, headers: []string{
			"Origin: " + origin, "Access-Control-Request-Method: " + method,
		}}
		if headers != "" {
			q.headers = append(q.headers, "Access-Control-Request-Headers: "+headers)
		}
		return f.do(q)
	}
	t.Run("CORS-06 CORS-08", func(t *testing.T) {
		for _, method := range []string{"GET", "POST", "QUERY", "HEAD"} {
			resp := preflight(pageOrigin, method, "authorization")
			if resp.StatusCode != http.StatusNoContent || resp.Header.Get("Access-Control-Allow-Origin") != pageOrigin ||
				resp.Header.Get("Access-Control-Allow-Credentials") != "true" {
				t.Errorf("preflight of %s = %d %v", method, resp.StatusCode, resp.Header)
			}
			if got := tokens(resp.Header.Get("Access-Control-Allow-Methods")); !slices.Contains(got, strings.ToLower(method)) {
				t.Errorf("methods = %q, want %s in it", got, method)
			}
			allowed := tokens(resp.Header.Get("Access-Control-Allow-Headers"))
			for _, want := range []string{
				"authorization", "content-type", "last-event-id", "cache-control", "x-mercure-session", "mcp-protocol-version",
			} {
				if !slices.Contains(allowed, want) {
					t.Errorf("headers = %q, want %s in it", allowed, want)
				}
			}
			if got := resp.Header.Get("Access-Control-Max-Age"); got != "7200" {
				t.Errorf("max age = %q, want 7200", got)
			}
		}
	})
	t.Run("CORS-07", func(t *testing.T) {
		for _, origin := range []string{"https://evil.example", "null"} {
			resp := preflight(origin, "GET", "authorization")
			for name := range resp.Header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s got %s: %q", origin, name, resp.Header.Get(name))
				}
			}
		}
	})
	t.Run("OPTIONS that is no preflight", func(t *testing.T) {
		resp := f.do(request{method: http.MethodOptions, url: f.base})
		if resp.StatusCode != http.StatusNoContent || resp.Header.Get("Allow") == "" || resp.Header.Get("Access-Control-Allow-Methods") != "" {
			t.Errorf("OPTIONS = %d %v", resp.StatusCode, resp.Header)
		}
	})
}
