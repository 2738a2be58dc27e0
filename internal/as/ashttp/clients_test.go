package ashttp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/ashttp"
)

const urlencoded = "application/x-www-form-urlencoded"

// clientEndpoints are the endpoints that clients post to, with the methods they have.
func clientEndpoints() map[string]string {
	return map[string]string{"/token": "OPTIONS, POST", "/par": "OPTIONS, POST", "/revoke": "OPTIONS, POST", "/revocations": "POST"}
}

// TestClientEndpoints_transport checks what all of them have in common.
func TestClientEndpoints_transport(t *testing.T) {
	s := tokenServer(t)
	form := exchange("x.y").Encode()
	for path, allow := range clientEndpoints() {
		send := func(method, target, contentType, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(context.Background(), method, target, strings.NewReader(body))
			r.Header.Set("Content-Type", contentType)
			for _, c := range change {
				c(r)
			}
			w := httptest.NewRecorder()
			s.echo.ServeHTTP(w, r)
			return w
		}
		for name, tc := range map[string]struct {
			method, target, contentType, body string
			status                            int
		}{
			"GET":                     {"GET", path + "?" + form, urlencoded, "", 405},
			"HEAD":                    {"HEAD", path, urlencoded, "", 405},
			"PUT":                     {"PUT", path, urlencoded, form, 405},
			"DELETE":                  {"DELETE", path, urlencoded, "", 405},
			"QUERY":                   {"QUERY", path, urlencoded, form, 405},
			"parameters in the query": {"POST", path + "?" + form, urlencoded, "", 400},
			"a parameter in each":     {"POST", path + "?client_id=spa", urlencoded, form, 400},
			"JSON":                    {"POST", path, "application/json", `{"grant_type":"authorization_code"}`, 415},
			"multipart":               {"POST", path, "multipart/form-data; boundary=x", "--x--", 415},
			"no content type":         {"POST", path, "", form, 415},
			"a malformed body":        {"POST", path, urlencoded, "a=%zz", 400},
			"a separator of old":      {"POST", path, urlencoded, "a=b;c=d", 400},
			"a large body":            {"POST", path, urlencoded, strings.Repeat("a=b&", 20000), 413},
		} {
			t.Run(path+" refuses "+name, func(t *testing.T) {
				w := send(tc.method, tc.target, tc.contentType, tc.body)
				if w.Code != tc.status {
					t.Errorf("got %d, want %d: %s", w.Code, tc.status, w.Body)
				}
				if tc.status == 405 {
					if w.Header().Get("Allow") != allow {
						t.Errorf("Allow: %q", w.Header().Get("Allow"))
					}
					return
				}
				var answer struct{ Error string }
				if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Error != "invalid_request" || w.Header().Get("Content-Type") != "application/json" {
					t.Errorf("answer: %s", w.Body)
				}
				if w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Pragma") != "no-cache" {
					t.Errorf("header fields: %v", w.Header())
				}
			})
		}
		t.Run(path+" refuses a Bearer header", func(t *testing.T) {
			w := send("POST", path, urlencoded, form, func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") })
			if w.Code != http.StatusBadRequest || w.Header().Get("WWW-Authenticate") != "" {
				t.Errorf("got %d %v", w.Code, w.Header())
			}
		})
		t.Run(path+" challenges who tried Basic, and nobody else", func(t *testing.T) {
			for _, tc := range []struct {
				form      string
				change    func(*http.Request)
				challenge bool
			}{
				{"grant_type=refresh_token", basic("web", "wrong"), true},
				{"grant_type=refresh_token", basic("nobody", ""), true},
				{"grant_type=refresh_token&client_id=web", func(*http.Request) {}, false},
				{"grant_type=refresh_token&client_id=post&client_secret=x", func(*http.Request) {}, false},
			} {
				w := send("POST", path, urlencoded, tc.form, tc.change)
				if w.Code != http.StatusUnauthorized || (w.Header().Get("WWW-Authenticate") == `Basic realm="clients", charset="UTF-8"`) != tc.challenge {
					t.Errorf("%s: %d %v", tc.form, w.Code, w.Header())
				}
			}
		})
		t.Run(path+" may be called by pages of the clients' origins, unless only hubs do", func(t *testing.T) {
			const origin = "https://app.example"
			from := func(r *http.Request) { r.Header.Set("Origin", origin) }
			preflight := send("OPTIONS", path, "", "", from, func(r *http.Request) { r.Header.Set("Access-Control-Request-Method", "POST") })
			answer := send("POST", path, urlencoded, form, from)
			for name, h := range map[string]http.Header{"preflight": preflight.Header(), "answer": answer.Header()} {
				if got := h.Get("Access-Control-Allow-Origin"); (got == origin) != (path != "/revocations") || h.Get("Access-Control-Allow-Credentials") != "" {
					t.Errorf("%s: %v", name, h)
				}
			}
			foreign := send("POST", path, urlencoded, form, func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") })
			if foreign.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("a foreign origin: %v", foreign.Header())
			}
		})
	}
}

// TestClientEndpoints_mixUp authenticates as one client and names another: report 13 of other servers.
func TestClientEndpoints_mixUp(t *testing.T) {
	s := tokenServer(t)
	web := s.login("web")
	for path := range clientEndpoints() {
		form := request(set("client_id", "hub"), set("grant_type", "refresh_token"), set("refresh_token", web.Refresh), set("token", web.Refresh))
		if r := s.answer(s.send(path, form, credentials("web"))); r.status != http.StatusBadRequest || r.Error != "invalid_request" {
			t.Errorf("%s: %+v", path, r)
		}
	}
	if !s.works("web", web.Refresh) {
		t.Error("it did something")
	}
}

// FuzzClientEndpoints throws bodies at them: whatever they say, the answer is in terms of OAuth, nothing is granted, and nothing breaks.
func FuzzClientEndpoints(f *testing.F) {
	for _, seed := range []url.Values{
		exchange("x.y"), request(), request(set("authorization_details", `[{"type":"https://mercure.rocks/authorization-detail","actions":["subscribe"],"topics":[{"match":"*"}]}]`)),
		{"grant_type": {"refresh_token"}, "refresh_token": {"rt_" + strings.Repeat("x", 43)}, "client_id": {"app"}, "scope": {"live"}},
		{"grant_type": {"client_credentials"}, "client_id": {"post"}, "client_secret": {"x"}},
		{"token": {"a.b.c"}, "token_type_hint": {"access_token"}, "client_id": {"app"}},
		{"token": {"eyJhbGciOiJub25lIn0.e30."}, "client_id": {"app"}},
		{"token": {"rt_" + strings.Repeat("x", 43)}, "client_id": {"app"}},
		{"since": {"1"}, "limit": {"2"}, "client_id": {"hub"}},
		{"client_assertion": {"a.b.c"}, "client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"}},
		request(set("client_id", "app"), set("request_uri", "urn:ietf:params:oauth:request_uri:x")),
		request(set("client_id", "app"), set("code_challenge", "\x00\xff"), add("state", "x")),
	} {
		f.Add(seed.Encode())
	}
	f.Add("a=%zz&;")
	f.Add("client_id=app&token=" + strings.Repeat("%00", 100))
	f.Add("client_id=app&authorization_details=%5B%7B%22type%22%3A%22https%3A%2F%2Fmercure.rocks%2Fauthorization-detail%22%2C%22actions%22%3A%5B%22subscribe%22%5D%2C%22topics%22%3A%5B%7B%22match%22%3A%22https%3A%2F%2Fe%2F*..%2F..%22%2C%22match_type%22%3A%22urlpattern%22%7D%5D%7D%5D")
	s := tokenServer(f)
	s.edge(ashttp.Options{RequestsPerMinute: -1})
	known := []string{
		"invalid_request", "invalid_client", "invalid_grant", "invalid_scope", "invalid_target", "invalid_authorization_details", "unauthorized_client",
		"unsupported_grant_type", "unsupported_response_type", "request_not_supported", "registration_not_supported", "access_denied",
	}
	f.Fuzz(func(t *testing.T, body string) {
		for path := range clientEndpoints() {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
			r.Header.Set("Content-Type", urlencoded)
			s.echo.ServeHTTP(w, r)
			switch {
			case w.Code == http.StatusCreated && path == "/par", w.Code == http.StatusOK && path == "/revoke":
				continue
			case w.Code == http.StatusRequestEntityTooLarge && len(body) > as.MaxParameterBytes:
			case w.Code != http.StatusBadRequest && w.Code != http.StatusUnauthorized:
				t.Fatalf("%s answered %d: %s", path, w.Code, w.Body)
			}
			var answer map[string]string
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || !slices.Contains(known, answer["error"]) || len(answer) != 2 {
				t.Fatalf("%s answered %s", path, w.Body)
			}
		}
	})
}
