package hubhttp_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/hub/hubhttp"
)

func TestMetadata(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*hubhttp.Options)
		want   map[string]any
	}{
		{"PRM-02 PRM-05 PRM-06 PRM-07 PRM-08 minimal", func(o *hubhttp.Options) { o.AuthorizationServers = nil }, map[string]any{
			"resource":                              hubURL,
			"bearer_methods_supported":              []any{"header"},
			"authorization_details_types_supported": []any{"https://mercure.rocks/authorization-detail"},
			"mercure_cookie":                        cookieName,
			"mercure_matcher_types_supported":       []any{"exact", "urlpattern"},
		}},
		{"PRM-04 PRM-09 everything", func(o *hubhttp.Options) {
			o.ResourceName, o.CookieName, o.Subscriptions = "Live", "t", true
		}, map[string]any{
			"resource":                              hubURL,
			"resource_name":                         "Live",
			"authorization_servers":                 []any{authServer},
			"bearer_methods_supported":              []any{"header"},
			"authorization_details_types_supported": []any{"https://mercure.rocks/authorization-detail"},
			"mercure_cookie":                        "t",
			"mercure_matcher_types_supported":       []any{"exact", "urlpattern"},
			"mercure_subscriptions":                 true,
		}},
		{"insecure cookie", func(o *hubhttp.Options) { o.AuthorizationServers, o.InsecureCookie = nil, true }, map[string]any{
			"resource":                              hubURL,
			"bearer_methods_supported":              []any{"header"},
			"authorization_details_types_supported": []any{"https://mercure.rocks/authorization-detail"},
			"mercure_cookie":                        "mercure_access_token",
			"mercure_matcher_types_supported":       []any{"exact", "urlpattern"},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := start(t, func(s *settings) { tc.change(&s.options) })
			resp := f.do(request{method: http.MethodGet, url: f.metadata, headers: []string{"Origin: https://anybody.example"}})
			if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/json" {
				t.Fatalf("PRM-01 PRM-10 GET = %d %q", resp.StatusCode, resp.Header.Get("Content-Type"))
			}
			var got map[string]any
			must(t, json.Unmarshal([]byte(resp.body), &got))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("document differs (-want +got):\n%s", diff)
			}
			if resp.Header.Get("Access-Control-Allow-Origin") != "*" || resp.Header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("PRM-13 %v", resp.Header)
			}
		})
	}
}

func TestMetadata_resource(t *testing.T) {
	f := start(t, func(s *settings) {
		s.options.PublicURL = "https://hub.example/live/hub"
		s.options.Resource = hubURL
	})
	resp := f.do(request{method: http.MethodGet, url: f.metadata})
	if !strings.Contains(resp.body, `"resource":"`+hubURL+`"`) {
		t.Errorf("document = %s", resp.body)
	}
	challenge := f.post("topic=T", formType).Header.Get("WWW-Authenticate")
	if want := `Bearer resource_metadata="https://hub.example/.well-known/oauth-protected-resource/live/hub"`; challenge != want {
		t.Errorf("PRM-11 challenge = %q, want %q", challenge, want)
	}
}

func TestMetadata_nothingComesFromTheRequest(t *testing.T) {
	f := start(t, nil)
	resp := f.exchange(t, "GET /.well-known/oauth-protected-resource/.well-known/mercure HTTP/1.1", "Host: evil.example",
		"X-Forwarded-Host: evil.example", "X-Forwarded-Proto: http")
	var document map[string]any
	must(t, json.NewDecoder(resp.Body).Decode(&document))
	if document["resource"] != hubURL {
		t.Errorf("T28 resource = %v, want %s", document["resource"], hubURL)
	}
	resp = f.exchange(t, "POST /.well-known/mercure HTTP/1.1", "Host: evil.example", "Content-Length: 0")
	if got := resp.Header.Get("WWW-Authenticate"); strings.Contains(got, "evil") {
		t.Errorf("T28 challenge = %q", got)
	}
}

func TestMetadata_methods(t *testing.T) {
	f := start(t, nil)
	root := strings.TrimSuffix(f.metadata, "/.well-known/mercure")
	for _, tc := range []struct {
		name, method, url string
		status            int
		allow             string
	}{
		{"T36 no root alias", "GET", root, 404, ""},
		{"head", "HEAD", f.metadata, 200, ""},
		{"preflight", "OPTIONS", f.metadata, 204, "GET, HEAD, OPTIONS"},
		{"other methods", "POST", f.metadata, 405, "GET, HEAD, OPTIONS"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			resp := f.do(request{method: tc.method, url: tc.url, headers: []string{
				"Origin: https://anybody.example", "Access-Control-Request-Method: GET",
			}})
			if resp.StatusCode != tc.status || resp.Header.Get("Allow") != tc.allow {
				t.Errorf("%s = %d, Allow %q, want %d, %q", tc.method, resp.StatusCode, resp.Header.Get("Allow"), tc.status, tc.allow)
			}
			if tc.status != 404 && resp.Header.Get("Access-Control-Allow-Origin") != "*" {
				t.Errorf("PRM-13 Access-Control-Allow-Origin = %q, want *", resp.Header.Get("Access-Control-Allow-Origin"))
			}
		})
	}
}

func TestMetadata_oddHubPaths(t *testing.T) {
	for _, tc := range []struct{ public, hub, metadata, elsewhere string }{
		{"https://h.example/", "/", "/.well-known/oauth-protected-resource", "/x"},
		{"https://h.example/a:b/:c", "/a:b/:c", "/.well-known/oauth-protected-resource/a:b/:c", "/axb/yc"},
		{"https://h.example/hub/", "/hub/", "/.well-known/oauth-protected-resource/hub/", "/hub"},
		{"https://h.example/caf%C3%A9", "/caf%C3%A9", "/.well-known/oauth-protected-resource/caf%C3%A9", "/cafe"},
		{"https://h.example/a%2Fb", "/a%2Fb", "/.well-known/oauth-protected-resource/a%2Fb", "/a/b"},
	} {
		t.Run(tc.public, func(t *testing.T) {
			f := newBare(t)
			must(t, hubhttp.Register(f.echo, hubhttp.Options{PublicURL: tc.public}, f.dependencies))
			for target, want := range map[string]int{tc.hub: 401, tc.metadata: 200, tc.elsewhere: 404} {
				if got := f.status(t, target); got != want {
					t.Errorf("GET %s = %d, want %d", target, got, want)
				}
			}
		})
	}
}
