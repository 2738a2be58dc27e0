package ashttp_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/ashttp"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

func TestAuthorize_neverRedirectsToWhatIsNotProven(t *testing.T) {
	s := newServer(t, func(o *as.Options) {
		o.Clients = append(o.Clients, store.Client{
			ID: "native", AuthMethod: as.AuthNone,
			RedirectURIs: []string{"http://127.0.0.1/cb", "http://localhost:3000/cb?a=1", "com.example.app:/cb"},
		})
	})
	client := func(id, uri string) url.Values { return request(set("client_id", id), set("redirect_uri", uri)) }
	for name, q := range map[string]url.Values{
		"an unknown client":                 client("nobody", callback),
		"no client":                         request(del("client_id")),
		"two clients":                       request(add("client_id", "broker")),
		"two redirect URIs":                 request(add("redirect_uri", callback)),
		"another client's redirect URI":     client("stranger", callback),
		"a foreign redirect URI":            client("spa", "https://evil.example/callback"),
		"a final slash":                     client("spa", callback+"/"),
		"a query":                           client("spa", callback+"?x=1"),
		"a fragment":                        client("spa", callback+"#"),
		"another case of the host":          client("spa", "https://APP.example/callback"),
		"the default port":                  client("spa", "https://app.example:443/callback"),
		"http":                              client("spa", "http://app.example/callback"),
		"userinfo":                          client("spa", "https://app.example@evil.example/callback"),
		"two at signs":                      client("spa", "https://app.example@@evil.example/callback"),
		"dot segments":                      client("spa", "https://app.example/x/../callback"),
		"encoded dot segments":              client("spa", "https://app.example/x/%2e%2e/callback"),
		"path parameters":                   client("spa", "https://app.example/..;/callback"),
		"an encoded slash":                  client("spa", "https://app.example%2Fcallback"),
		"a backslash":                       client("spa", `https://app.example\callback`),
		"a line break":                      client("spa", callback+"\r\nX: y"),
		"javascript":                        client("spa", "javascript:alert(1)"),
		"no redirect URI of several":        request(set("client_id", "native"), del("redirect_uri")),
		"loopback as a label":               client("native", "http://127.0.0.1.evil.example/cb"),
		"loopback as a user":                client("native", "http://127.0.0.1@evil.example/cb"),
		"loopback as a user with a port":    client("native", "http://127.0.0.1:5000@evil.example/cb"),
		"loopback with a user":              client("native", "http://user:pw@127.0.0.1:5000/cb"),
		"loopback with another path":        client("native", "http://127.0.0.1:5000/cb/x"),
		"loopback with an encoded path":     client("native", "http://127.0.0.1:5000/c%62"),
		"loopback with a query":             client("native", "http://127.0.0.1:5000/cb?x=1"),
		"loopback with another query":       client("native", "http://localhost:5000/cb?a=2"),
		"another loopback address":          client("native", "http://127.0.0.2:5000/cb"),
		"another name of loopback":          client("native", "http://localhost:5000/cb"),
		"loopback with https":               client("native", "https://127.0.0.1:5000/cb"),
		"loopback with a port out of range": client("native", "http://127.0.0.1:70000/cb"),
		"loopback with an empty port":       client("native", "http://127.0.0.1:/cb"),
		"two slashes":                       client("native", "//127.0.0.1/cb"),
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			r := s.newBrowser().get(issuer + "/authorize?" + q.Encode())
			if r.StatusCode != http.StatusBadRequest || r.Header.Get("Location") != "" {
				t.Errorf("got %d to %q", r.StatusCode, r.Header.Get("Location"))
			}
			if strings.Contains(r.body, "evil") || !strings.Contains(r.body, "<title>Error: ") {
				t.Errorf("page:\n%s", r.body)
			}
		})
	}
	t.Run("malformed queries get the page too", func(t *testing.T) {
		for _, raw := range []string{"client_id=spa&%zz", "client_id=spa;redirect_uri=x", "", "client_id=" + strings.Repeat("a", 70000)} {
			if r := s.newBrowser().get(issuer + "/authorize?" + raw); r.StatusCode != http.StatusBadRequest {
				t.Errorf("query %.40q: %d", raw, r.StatusCode)
			}
		}
	})
	t.Run("unknown client and foreign redirect URI look alike", func(t *testing.T) {
		one := s.newBrowser().get(issuer + "/authorize?" + client("nobody", callback).Encode())
		two := s.newBrowser().get(issuer + "/authorize?" + client("spa", "https://evil.example/").Encode())
		if withoutRequestID(one.body) != withoutRequestID(two.body) {
			t.Error("the pages differ")
		}
	})
	for name, uri := range map[string]string{
		"any port of loopback":         "http://127.0.0.1:5000/cb",
		"loopback without port":        "http://127.0.0.1/cb",
		"any port of localhost":        "http://localhost:61234/cb?a=1",
		"a private-use scheme, as is":  "com.example.app:/cb",
		"the registered port, as well": "http://localhost:3000/cb?a=1",
	} {
		t.Run("accepts "+name, func(t *testing.T) {
			s.newBrowser().open(client("native", uri)).sent(t, uri)
		})
	}
}

func TestAuthorize_errorsGoToTheClient(t *testing.T) {
	s := newServer(t, nil)
	long := strings.Repeat("A", 43)
	for name, tc := range map[string]struct {
		change func(url.Values)
		want   string
	}{
		"a request object":                   {set("request", "e30.e30."), "request_not_supported"},
		"a request URI":                      {set("request_uri", "https://app.example/r"), "request_uri_not_supported"},
		"a registration":                     {set("registration", "{}"), "registration_not_supported"},
		"no response type":                   {del("response_type"), "invalid_request"},
		"the implicit grant":                 {set("response_type", "token"), "unsupported_response_type"},
		"a hybrid":                           {set("response_type", "code id_token"), "unsupported_response_type"},
		"response_mode=fragment":             {set("response_mode", "fragment"), "invalid_request"},
		"no PKCE":                            {func(q url.Values) { q.Del("code_challenge"); q.Del("code_challenge_method") }, "invalid_request"},
		"PKCE without method":                {del("code_challenge_method"), "invalid_request"},
		"PKCE plain":                         {set("code_challenge_method", "plain"), "invalid_request"},
		"a method without challenge":         {del("code_challenge"), "invalid_request"},
		"a short challenge":                  {set("code_challenge", long[1:]), "invalid_request"},
		"a long challenge":                   {set("code_challenge", long+"A"), "invalid_request"},
		"a padded challenge":                 {set("code_challenge", long[1:]+"="), "invalid_request"},
		"a challenge in base64":              {set("code_challenge", long[1:]+"+"), "invalid_request"},
		"two states":                         {add("state", "other"), "invalid_request"},
		"a state of 5,000 bytes":             {set("state", strings.Repeat("s", 5000)), "invalid_request"},
		"a state that is not UTF-8":          {set("state", "\xff"), "invalid_request"},
		"two challenges":                     {add("code_challenge", long), "invalid_request"},
		"two unknown parameters of one name": {func(q url.Values) { q["x"] = []string{"1", "2"} }, "invalid_request"},
		"an unknown resource":                {set("resource", "https://other.example/"), "invalid_target"},
		"a resource with a slash too many":   {set("resource", hubURL+"/"), "invalid_target"},
		"two resources":                      {add("resource", "https://other.example/"), "invalid_target"},
		"prompt none with another":           {set("prompt", "none login"), "invalid_request"},
		"a client without policy": {func(q url.Values) {
			q.Set("client_id", "stranger")
			q.Set("redirect_uri", "https://other.example/cb")
		}, "access_denied"},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			q := request(tc.change)
			answer := s.newBrowser().open(q).sent(t, q.Get("redirect_uri")+"?")
			if answer.Get("error") != tc.want || answer.Has("code") {
				t.Errorf("answer: %v, want %s", answer, tc.want)
			}
			if answer.Get("iss") != issuer {
				t.Errorf("RFC 9207: iss is %q", answer.Get("iss"))
			}
			if want := q.Get("state"); name != "two states" && answer.Get("state") != want {
				t.Errorf("state is %q, want %q", answer.Get("state"), want)
			}
			for _, r := range answer.Get("error_description") {
				if r < 0x20 || r > 0x7e || r == '"' || r == '\\' {
					t.Errorf("error_description has %q", r)
				}
			}
		})
	}
	t.Run("the same resource twice is one resource", func(t *testing.T) {
		if r := s.newBrowser().open(request(add("resource", hubURL))); r.Request.URL.Path != "/login" {
			t.Errorf("page: %s %s", r.Request.URL, r.Header.Get("Location"))
		}
	})
	t.Run("no resource means the only one", func(t *testing.T) {
		if r := s.newBrowser().open(request(del("resource"))); r.Request.URL.Path != "/login" {
			t.Errorf("page: %s %s", r.Request.URL, r.Header.Get("Location"))
		}
	})
}

func TestAuthorize_severalResources(t *testing.T) {
	s := newServer(t, func(o *as.Options) {
		o.Resources = append(o.Resources, as.Resource{ID: "https://hub2.example/.well-known/mercure"})
	})
	if q := s.newBrowser().open(request(del("resource"))).sent(t, callback); q.Get("error") != "invalid_target" {
		t.Errorf("no resource of several: %v", q)
	}
	code := s.code(request())
	if r := s.token(exchange(code, set("resource", "https://hub2.example/.well-known/mercure"))); r.Error != "invalid_target" {
		t.Errorf("another resource at redemption: %+v", r)
	}
	if r := s.token(exchange(code, set("resource", hubURL))); r.status != http.StatusOK {
		t.Errorf("the same resource at redemption: %+v", r)
	}
}

func TestAuthorize_prompt(t *testing.T) {
	s := newServer(t, nil)
	broker := set("client_id", "broker")
	t.Run("none shows no page", func(t *testing.T) {
		b := s.newBrowser()
		if q := b.open(request(broker, set("prompt", "none"))).sent(t, callback); q.Get("error") != "login_required" || q.Get("iss") != issuer {
			t.Errorf("answer: %v", q)
		}
		b.signIn(b.open(request(broker)), "ann", password).sent(t, callback)
		if q := b.open(request(set("prompt", "none"))).sent(t, callback); q.Get("error") != "consent_required" {
			t.Errorf("answer: %v", q)
		}
		if q := b.open(request(broker, set("prompt", "none"))).sent(t, callback); q.Get("code") == "" {
			t.Errorf("answer: %v", q)
		}
	})
	t.Run("login signs in again", func(t *testing.T) {
		b := s.newBrowser()
		b.signIn(b.open(request(broker)), "ann", password).sent(t, callback)
		page := b.open(request(broker, set("prompt", "login")))
		if page.Request.URL.Path != "/login" {
			t.Fatalf("page: %s", page.Request.URL)
		}
		t.Run("and going around the page does not help", func(t *testing.T) {
			r := b.open(url.Values{as.ParamInteraction: {page.Request.URL.Query().Get(as.ParamInteraction)}})
			if r.Request.URL.Path != "/login" {
				t.Errorf("page: %s %s", r.Request.URL, r.Header.Get("Location"))
			}
		})
		if q := b.signIn(page, "ann", password).sent(t, callback); q.Get("code") == "" {
			t.Errorf("answer: %v", q)
		}
	})
	t.Run("consent asks even where it is skipped otherwise", func(t *testing.T) {
		b := s.newBrowser()
		page := b.signIn(b.open(request(broker, set("prompt", "consent"))), "ann", password)
		if page.Request.URL.Path != "/consent" {
			t.Fatalf("page: %s", page.Request.URL)
		}
		if q := b.answer(page, "allow").sent(t, callback); q.Get("code") == "" {
			t.Errorf("answer: %v", q)
		}
	})
}

func TestAuthorize_isCountedPerAddress(t *testing.T) {
	s := newServer(t, nil)
	const limit = 3
	e := echo.New()
	must(t, ashttp.Register(e, ashttp.Options{RequestsPerMinute: limit}, ashttp.Dependencies{Server: s.as}))
	from := func(address, query string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/authorize?"+query, http.NoBody)
		r.RemoteAddr = address
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		return w
	}
	const flood = "192.0.2.1:1234"
	var first *httptest.ResponseRecorder
	for range limit {
		w := from(flood, request().Encode())
		if w.Code != http.StatusSeeOther {
			t.Fatalf("got %d", w.Code)
		}
		if first == nil {
			first = w
		}
	}
	for _, query := range []string{request().Encode(), request().Encode() + "&interaction=", "x=%"} {
		if w := from(flood, query); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "Too many sign-ins") {
			t.Errorf("%s: got %d\n%s", query, w.Code, w.Body)
		}
	}
	if w := from("192.0.2.2:1234", request().Encode()); w.Code != http.StatusSeeOther {
		t.Errorf("another address: %d", w.Code)
	}
	t.Run("an interaction under way goes on", func(t *testing.T) {
		_, query, _ := strings.Cut(first.Header().Get("Location"), "?")
		if w := from(flood, query); w.Code != http.StatusForbidden { // this request has no cookie
			t.Errorf("got %d", w.Code)
		}
	})
}
