package ashttp_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/ashttp"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// pushed is an answer of the endpoint for pushed requests.
type pushed struct {
	tokenReply

	RequestURI string
}

// push sends an authorization request of a client to the endpoint for them.
func (s *server) push(client string, change ...func(url.Values)) pushed {
	s.t.Helper()
	form := request(append([]func(url.Values){identity(client)}, change...)...)
	w := s.send("/par", form, credentials(client))
	var answer struct {
		RequestURI string `json:"request_uri"`
	}
	must(s.t, json.Unmarshal(w.Body.Bytes(), &answer))
	return pushed{tokenReply: s.answer(w), RequestURI: answer.RequestURI}
}

// pushed is the authorization request that names a pushed one.
func (p pushed) request(client string, change ...func(url.Values)) url.Values {
	q := url.Values{"client_id": {client}, "request_uri": {p.RequestURI}}
	for _, c := range change {
		c(q)
	}
	return q
}

func TestPush(t *testing.T) {
	s := tokenServer(t)
	for _, client := range []string{"app", "web", "post", "spa"} {
		t.Run("then authorize, for "+client, func(t *testing.T) {
			p := s.push(client, set("scope", "live"))
			if p.status != http.StatusCreated || p.ExpiresIn != 90 || p.header.Get("Cache-Control") != "no-store" ||
				!strings.HasPrefix(p.RequestURI, "urn:ietf:params:oauth:request_uri:") || len(p.RequestURI) != 34+43 {
				t.Fatalf("got %+v\n%s", p, s.logs)
			}
			b := s.newBrowser()
			page := b.signIn(b.open(p.request(client)), "ann", password)
			if page.StatusCode == http.StatusOK {
				page = b.answer(page, "allow")
			}
			q := page.sent(t, callback)
			if q.Get("state") != "af0ifjsldkj" || q.Get("iss") != issuer {
				t.Errorf("answer: %v", q)
			}
			r := s.token(exchange(q.Get("code"), identity(client)), credentials(client))
			if r.status != http.StatusOK || r.Scope == nil || *r.Scope != "live" {
				t.Errorf("token: %+v", r)
			}
			if again := b.open(p.request(client)); again.StatusCode != http.StatusBadRequest || again.Header.Get("Location") != "" {
				t.Errorf("used again: %d", again.StatusCode)
			}
		})
	}
	if !slices.Contains(s.events(), as.EventPushed) {
		t.Errorf("audit trail: %v", s.events())
	}
	t.Run("nothing of it is in a URL or cookie", func(t *testing.T) {
		p := s.push("web", set("state", "the-state-of-the-client"), set("login_hint", "somebody"))
		b := s.newBrowser()
		page := b.open(p.request("web"))
		at, err := url.Parse(issuer)
		must(t, err)
		var seen strings.Builder
		seen.WriteString(page.Request.URL.String())
		for _, c := range b.client.Jar.Cookies(at) {
			seen.WriteString(" " + c.Value)
		}
		for _, secret := range []string{"the-state-of-the-client", "somebody", challenge(verifier), p.RequestURI} {
			if strings.Contains(seen.String(), secret) {
				t.Errorf("%s is in %s", secret, &seen)
			}
		}
	})
	t.Run("no credentials are kept", func(t *testing.T) {
		p := s.push("post")
		stored, err := s.store.PushedRequest(t.Context(), hashOf(p.RequestURI))
		must(t, err)
		if strings.Contains(string(stored.Request), "secret") || strings.Contains(string(stored.Request), "32") || stored.ClientID != "post" {
			t.Errorf("stored: %s", stored.Request)
		}
	})
	t.Run("a client that is signed in already gets its code at once, for one request", func(t *testing.T) {
		b := s.newBrowser()
		s.loginIn(b, "web")
		p := s.push("web")
		if q := b.open(p.request("web")).sent(t, callback); q.Get("code") == "" {
			t.Errorf("answer: %v", q)
		}
		if r := b.open(p.request("web")); r.StatusCode != http.StatusBadRequest {
			t.Errorf("again: %d %s", r.StatusCode, r.Header.Get("Location"))
		}
	})
	t.Run("the prompt counts", func(t *testing.T) {
		p := s.push("web", set("prompt", "none"))
		if q := s.newBrowser().open(p.request("web")).sent(t, callback); q.Get("error") != "login_required" {
			t.Errorf("answer: %v", q)
		}
	})
}

// TestPush_refusals sends what RFC 9126 section 2.3 and RFC 9396 section 5 have refused, in the same words as at /authorize.
func TestPush_refusals(t *testing.T) {
	s := tokenServer(t)
	for name, tc := range map[string]struct {
		client string
		change []func(url.Values)
		status int
		want   string
	}{
		"another client's id":           {"web", []func(url.Values){set("client_id", "hub")}, 400, "invalid_request"},
		"no client":                     {"app", []func(url.Values){del("client_id")}, 401, "invalid_client"},
		"an unknown client":             {"app", []func(url.Values){set("client_id", "nobody")}, 401, "invalid_client"},
		"a client that proves nothing":  {"app", []func(url.Values){set("client_id", "web")}, 401, "invalid_client"},
		"a request_uri":                 {"app", []func(url.Values){set("request_uri", "urn:ietf:params:oauth:request_uri:x")}, 400, "invalid_request"},
		"a request object":              {"app", []func(url.Values){set("request", "x.y.z")}, 400, "request_not_supported"},
		"a registration":                {"app", []func(url.Values){set("registration", "{}")}, 400, "registration_not_supported"},
		"a foreign redirect URI":        {"app", []func(url.Values){set("redirect_uri", "https://evil.example/cb")}, 400, "invalid_request"},
		"a longer redirect URI":         {"app", []func(url.Values){set("redirect_uri", callback+"/x")}, 400, "invalid_request"},
		"a parameter twice":             {"app", []func(url.Values){add("state", "another")}, 400, "invalid_request"},
		"a client twice":                {"app", []func(url.Values){add("client_id", "app")}, 400, "invalid_request"},
		"no response type":              {"app", []func(url.Values){del("response_type")}, 400, "invalid_request"},
		"another response type":         {"app", []func(url.Values){set("response_type", "token")}, 400, "unsupported_response_type"},
		"another response mode":         {"app", []func(url.Values){set("response_mode", "fragment")}, 400, "invalid_request"},
		"no challenge":                  {"app", []func(url.Values){del("code_challenge")}, 400, "invalid_request"},
		"no challenge, confidential":    {"web", []func(url.Values){del("code_challenge")}, 400, "invalid_request"},
		"a plain challenge":             {"app", []func(url.Values){set("code_challenge_method", "plain")}, 400, "invalid_request"},
		"a short challenge":             {"app", []func(url.Values){set("code_challenge", "x")}, 400, "invalid_request"},
		"prompts that contradict":       {"app", []func(url.Values){set("prompt", "none login")}, 400, "invalid_request"},
		"another resource":              {"app", []func(url.Values){set("resource", "https://other.example")}, 400, "invalid_target"},
		"two resources":                 {"app", []func(url.Values){add("resource", "https://other.example")}, 400, "invalid_target"},
		"malformed details":             {"app", []func(url.Values){set("authorization_details", "{")}, 400, "invalid_authorization_details"},
		"details of an unknown type":    {"app", []func(url.Values){set("authorization_details", `[{"type":"x"}]`)}, 400, "invalid_authorization_details"},
		"what the client may not have":  {"app", []func(url.Values){set("authorization_details", detail("subscribe", "https://example.com/admin", ""))}, 400, "invalid_authorization_details"},
		"a client without policy":       {"stranger", []func(url.Values){set("redirect_uri", "https://other.example/cb")}, 400, "access_denied"},
		"a client without the grant":    {"backend", []func(url.Values){del("redirect_uri")}, 400, "invalid_request"}, // it has no redirect URI
		"a state that JSON cannot hold": {"app", []func(url.Values){set("state", "\xff")}, 400, "invalid_request"},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			r := s.push(tc.client, tc.change...)
			if r.status != tc.status || r.Error != tc.want || r.RequestURI != "" || r.header.Get("Cache-Control") != "no-store" {
				t.Errorf("got %d %s, want %d %s", r.status, r.Error, tc.status, tc.want)
			}
		})
	}
	if slices.Contains(s.events(), as.EventPushed) {
		t.Error("a refused request was recorded as pushed")
	}
}

// TestPush_atTheBrowser is what may not come of a pushed request.
func TestPush_atTheBrowser(t *testing.T) {
	s := tokenServer(t)
	for name, change := range map[string]func(url.Values){
		"another client":         set("client_id", "web"),
		"a client without it":    set("client_id", "spa"),
		"an unknown client":      set("client_id", "nobody"),
		"no client":              del("client_id"),
		"a client twice":         add("client_id", "app"),
		"details beside it":      set("authorization_details", detail("publish", "https://example.com/chat", "")),
		"a resource beside it":   set("resource", hubURL),
		"a prompt beside it":     set("prompt", "none"),
		"a state beside it":      set("state", "injected"),
		"a redirect URI with it": set("redirect_uri", callback),
		"an empty one beside it": set("scope", ""),
		"another request URI":    add("request_uri", "urn:ietf:params:oauth:request_uri:x"),
		"an unknown request URI": set("request_uri", "urn:ietf:params:oauth:request_uri:"+strings.Repeat("x", 43)),
		"a longer request URI":   func(q url.Values) { q.Set("request_uri", q.Get("request_uri")+"x") },
		"a shorter request URI":  set("request_uri", "urn:ietf:params:oauth:request_uri:"),
	} {
		t.Run("refuses "+name+", and the request stays good", func(t *testing.T) {
			p := s.push("app")
			r := s.newBrowser().open(p.request("app", change))
			if r.StatusCode != http.StatusBadRequest || r.Header.Get("Location") != "" || strings.Contains(r.body, p.RequestURI) {
				t.Errorf("got %d %s", r.StatusCode, r.Header.Get("Location"))
			}
			if r := s.newBrowser().open(p.request("app")); r.Request.URL.Path != "/login" {
				t.Errorf("the request was used up: %d", r.StatusCode)
			}
		})
	}
	t.Run("other request URIs are not supported", func(t *testing.T) {
		q := s.newBrowser().open(request(set("request_uri", "https://app.example/request"))).sent(t, callback)
		if q.Get("error") != "request_uri_not_supported" {
			t.Errorf("answer: %v", q)
		}
	})
	t.Run("another issuer on the same store does not know it", func(t *testing.T) {
		p := s.push("app")
		two := s.sibling("https://as2.example")
		w := httptest.NewRecorder()
		two.echo.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/authorize?"+p.request("app").Encode(), http.NoBody))
		if w.Code != http.StatusBadRequest {
			t.Errorf("got %d", w.Code)
		}
	})
	t.Run("belongs to the browser that brings it first", func(t *testing.T) {
		p := s.push("app")
		victim, thief := s.newBrowser(), s.newBrowser()
		page := victim.open(p.request("app"))
		if r := thief.open(p.request("app")); r.StatusCode != http.StatusForbidden {
			t.Errorf("another browser: %d", r.StatusCode)
		}
		if r := victim.open(p.request("app")); r.Request.URL.Path != "/login" {
			t.Errorf("loaded again: %d", r.StatusCode)
		}
		if q := victim.answer(victim.signIn(page, "ann", password), "allow").sent(t, callback); q.Get("code") == "" {
			t.Errorf("answer: %v", q)
		}
	})
	t.Run("belongs to its browser also when nothing is asked", func(t *testing.T) {
		p := s.push("app", set("prompt", "none"))
		b := s.newBrowser()
		for range 2 {
			if q := b.open(p.request("app")).sent(t, callback); q.Get("error") != "login_required" {
				t.Errorf("answer: %v", q)
			}
		}
	})
	t.Run("of two tabs one gets the code", func(t *testing.T) {
		p := s.push("app")
		b := s.newBrowser()
		one, two := b.open(p.request("app")), b.open(p.request("app"))
		asked := b.signIn(one, "ann", password)
		if q := b.answer(asked, "allow").sent(t, callback); q.Get("code") == "" {
			t.Fatalf("answer: %v", q)
		}
		r := b.signIn(two, "ann", password)
		if r.StatusCode == http.StatusOK {
			r = b.answer(r, "allow")
		}
		if r.StatusCode != http.StatusBadRequest || !strings.Contains(r.body, "no longer valid") {
			t.Errorf("the other tab: %d %s", r.StatusCode, r.Header.Get("Location"))
		}
	})
	t.Run("of many at once one gets the code", func(t *testing.T) {
		b := s.newBrowser()
		s.loginIn(b, "web")
		p := s.push("web")
		codes := make([]string, 20)
		var wg sync.WaitGroup
		for i := range codes {
			wg.Go(func() {
				r := b.get("/authorize?" + p.request("web").Encode())
				if at, err := url.Parse(r.Header.Get("Location")); err == nil {
					codes[i] = at.Query().Get("code")
				}
				if r.StatusCode >= http.StatusInternalServerError {
					t.Errorf("got %d", r.StatusCode)
				}
			})
		}
		wg.Wait()
		if n := len(slices.DeleteFunc(codes, func(c string) bool { return c == "" })); n != 1 {
			t.Errorf("%d codes", n)
		}
	})
	t.Run("a denial uses it up", func(t *testing.T) {
		p := s.push("app")
		b := s.newBrowser()
		if q := b.answer(b.signIn(b.open(p.request("app")), "ann", password), "deny").sent(t, callback); q.Get("error") != "access_denied" {
			t.Errorf("answer: %v", q)
		}
		if r := b.open(p.request("app")); r.StatusCode != http.StatusBadRequest {
			t.Errorf("again: %d", r.StatusCode)
		}
	})
	t.Run("is judged again by the policy of the moment", func(t *testing.T) {
		p := s.push("app", set("authorization_details", detail("publish", "https://example.com/chat", "")))
		now := s.reload(func(o *as.Options) { o.Policies[0].Grant = o.Policies[0].Grant[:1] })
		if q := now.newBrowser().open(p.request("app")).sent(t, callback); q.Get("error") != "invalid_authorization_details" {
			t.Errorf("answer: %v", q)
		}
	})
	t.Run("and by the redirect URIs of the moment", func(t *testing.T) {
		p := s.push("app")
		now := s.reload(func(o *as.Options) {
			i := slices.IndexFunc(o.Clients, func(c store.Client) bool { return c.ID == "app" })
			o.Clients[i].RedirectURIs = []string{"https://new.example/cb"}
		})
		if r := now.newBrowser().open(p.request("app")); r.StatusCode != http.StatusBadRequest || r.Header.Get("Location") != "" {
			t.Errorf("got %d %s", r.StatusCode, r.Header.Get("Location"))
		}
	})
}

func TestPush_expires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tokenServer(t)
		p, q := s.push("app"), s.push("app")
		b := s.newBrowser()
		sleep(89 * time.Second)
		page := b.open(p.request("app"))
		if page.Request.URL.Path != "/login" {
			t.Errorf("after 89 s: %d", page.StatusCode)
		}
		sleep(2 * time.Second)
		if r := s.newBrowser().open(q.request("app")); r.StatusCode != http.StatusBadRequest || !strings.Contains(r.body, "too long ago") {
			t.Errorf("after 91 s: %d\n%s", r.StatusCode, r.body)
		}
		sleep(10 * time.Minute) // what was begun in time goes on
		if q := b.answer(b.signIn(page, "ann", password), "allow").sent(t, callback); q.Get("code") == "" {
			t.Errorf("answer: %v", q)
		}
	})
}

func TestPush_isCountedPerAddress(t *testing.T) {
	s := tokenServer(t)
	s.edge(ashttp.Options{RequestsPerMinute: 3})
	for range 3 {
		if r := s.push("app"); r.status != http.StatusCreated {
			t.Fatalf("got %+v", r)
		}
	}
	for _, client := range []string{"app", "spa", "nobody"} {
		if r := s.push(client); r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") == "" || r.Error != "temporarily_unavailable" {
			t.Errorf("%s: %+v", client, r)
		}
	}
	for _, client := range []string{"web", "post"} { // who authenticates pushes for many people
		if r := s.push(client); r.status != http.StatusCreated {
			t.Errorf("%s: %+v", client, r)
		}
	}
	if r := s.push("app", set("client_secret", "x")); r.status != http.StatusUnauthorized {
		t.Errorf("a public client that claims a secret: %+v", r)
	}
}
