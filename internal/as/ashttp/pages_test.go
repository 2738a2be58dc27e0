package ashttp_test

import (
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"
	"golang.org/x/net/html"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/account"
	"github.com/cinnabar-hub/cinnabar/internal/as/ashttp"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

var update = flag.Bool("update", false, "write the golden files")

var secrets = regexp.MustCompile(`(u_[a-z2-7]{26})|([A-Za-z0-9_-]{43})`)

// golden compares a page with the one on file.
func golden(t *testing.T, name, page string) {
	t.Helper()
	page = withoutRequestID(secrets.ReplaceAllString(page, "SECRET"))
	file := filepath.Join("testdata", "golden", name+".html")
	if *update {
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(page), 0o644))
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if diff := cmp.Diff(string(want), page); diff != "" {
		t.Errorf("%s page (-want +got, -update writes it):\n%s", name, diff)
	}
}

func TestPages(t *testing.T) {
	s := newServer(t, func(o *as.Options) {
		o.Dev, o.DemoUser = true, "demo"
		o.Clients[0].Name = `Ex<ample> "app"`
		o.Policies[0].Grant = append(o.Policies[0].Grant, rar.Detail{
			Actions: []rar.Action{rar.Subscribe, rar.Publish},
			Topics:  []rar.TopicMatcher{{Match: "*", MatchType: topic.Exact}},
			Payload: json.RawMessage(`{"name":"{{user.name}}","role":"<b>"}`),
		})
	})
	_, err := s.accounts.Add(t.Context(), account.Draft{Username: "demo", Demo: true})
	must(t, err)
	b := s.newBrowser()
	login := b.open(request(set("login_hint", `a"<nn>`)))
	failed := b.signIn(login, `ann"><script>`, "wrong")
	consent := b.signIn(login, "ann", password)
	form := formOf(consent.body)
	form.Set("answer", "allow")
	unconfirmed := b.post("/consent", form)
	if unconfirmed.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("everything, unconfirmed: %d", unconfirmed.StatusCode)
	}
	form.Set("confirmed", "yes")
	pages := map[string]reply{
		"login":        login,
		"login-failed": failed,
		"consent":      consent,
		"unconfirmed":  unconfirmed,
		"continue":     b.post("/consent", form),
		"error":        b.get("/authorize?client_id=" + url.QueryEscape("<script>")),
	}
	for name, r := range pages {
		t.Run(name, func(t *testing.T) {
			golden(t, name, r.body)
			checkHeaders(t, r.Header)
			checkStructure(t, r.body)
		})
	}
}

func checkHeaders(t *testing.T, h http.Header) {
	t.Helper()
	for name, want := range map[string]string{
		"Cache-Control":          "no-store",
		"Referrer-Policy":        "same-origin",
		"X-Content-Type-Options": "nosniff",
		"X-Frame-Options":        "DENY",
		"Content-Type":           "text/html; charset=UTF-8",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if h.Get("Access-Control-Allow-Origin") != "" {
		t.Error("a page is readable for other origins")
	}
	csp := h.Get("Content-Security-Policy")
	for _, directive := range []string{"default-src 'none'", "style-src 'self'", "base-uri 'none'", "frame-ancestors 'none'", "form-action '"} {
		if !strings.Contains(csp, directive) {
			t.Errorf("no %s in %q", directive, csp)
		}
	}
	if strings.Contains(csp, "script-src") || strings.Contains(csp, "unsafe") {
		t.Errorf("policy: %q", csp)
	}
}

// checkStructure checks what every page must have, however it looks (WCAG 2.2).
func checkStructure(t *testing.T, page string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	must(t, err)
	ids, labels, titles := map[string]bool{}, map[string]bool{}, 0
	var refs []string
	headings := 0
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		at := map[string]string{}
		for _, a := range n.Attr {
			at[a.Key] = a.Val
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
				t.Errorf("inline %s on <%s>", a.Key, n.Data)
			}
		}
		if id, ok := at["id"]; ok {
			if ids[id] {
				t.Errorf("id %q occurs twice", id)
			}
			ids[id] = true
		}
		for _, ref := range []string{"aria-describedby", "aria-labelledby"} {
			if at[ref] != "" {
				refs = append(refs, at[ref])
			}
		}
		switch n.Data {
		case "html":
			if at["lang"] == "" {
				t.Error("no lang")
			}
		case "title":
			titles++
		case "h1":
			headings++
		case "script", "style", "iframe", "img", "base", "object", "embed":
			t.Errorf("a <%s> on the page", n.Data)
		case "label":
			labels[at["for"]] = true
		case "form":
			if at["method"] != "post" || !strings.HasPrefix(at["action"], "/") {
				t.Errorf("form: %v", at)
			}
		case "input":
			if at["type"] != "hidden" {
				refs = append(refs, at["id"])
				if at["autocomplete"] == "" {
					t.Errorf("no autocomplete on %v", at)
				}
			}
		case "button":
			if at["type"] != "submit" || n.FirstChild == nil {
				t.Errorf("button: %v", at)
			}
		case "a":
			if fragment, ok := strings.CutPrefix(at["href"], "#"); ok {
				refs = append(refs, fragment)
			}
		}
	}
	if titles != 1 || headings != 1 {
		t.Errorf("%d titles, %d first headings", titles, headings)
	}
	for _, ref := range refs {
		if !ids[ref] {
			t.Errorf("nothing has the id %q", ref)
		}
	}
	for label := range labels {
		if !ids[label] {
			t.Errorf("the label for %q has no field", label)
		}
	}
}

func TestConsentPage_inWords(t *testing.T) {
	s := newServer(t, nil)
	b := s.newBrowser()
	page := b.signIn(b.open(request()), "ann", password)
	for _, want := range []string{
		"Read private updates about <strong>everything under users/(you)</strong> on example.com",
		"Read private updates about <strong>chat</strong> on example.com",
		"Send updates about <strong>chat</strong> on example.com",
		"asks for access to <strong>Example hub</strong>",
		"<code class=\"wrap\">app.example</code>",
		"each access lasts 10 minutes",
	} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if i, j := strings.Index(page.body, `value="allow"`), strings.Index(page.body, `value="deny"`); i < 0 || j < 0 {
		t.Error("an answer is missing")
	}
}

func TestConsentPage_saysHowLongItLasts(t *testing.T) {
	s := tokenServer(t)
	for client, want := range map[string]string{
		"spa": "each access lasts 10 minutes<", "app": "each access lasts 10 minutes, and can be renewed for 14 days<",
	} {
		b := s.newBrowser()
		page := b.signIn(b.open(request(set("client_id", client))), "ann", password)
		if !strings.Contains(page.body, want) {
			t.Errorf("%s:\n%s", client, page.body)
		}
	}
}

func TestMetadata(t *testing.T) {
	get := func(s *server, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.echo.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		return w
	}
	s := newServer(t, nil)
	t.Run("PRM-15 names issuer, keys and detail type", func(t *testing.T) {
		w := get(s, "/.well-known/oauth-authorization-server")
		var m map[string]any
		must(t, json.Unmarshal(w.Body.Bytes(), &m))
		if m["issuer"] != issuer || m["jwks_uri"] != issuer+"/jwks.json" || !slices.Equal(strings2(m["authorization_details_types_supported"]), []string{rar.DetailType}) {
			t.Errorf("metadata: %s", w.Body)
		}
		if w.Header().Get("Access-Control-Allow-Origin") != "*" || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Cache-Control") != "public, max-age=300" {
			t.Errorf("header fields: %v", w.Header())
		}
		goldenJSON(t, "metadata", w.Body.String())
		if same := get(s, "/.well-known/openid-configuration"); same.Body.String() != w.Body.String() {
			t.Error("the OpenID Connect path has another document")
		}
	})
	t.Run("the endpoints it names are there", func(t *testing.T) {
		var m map[string]any
		must(t, json.Unmarshal(s.as.Metadata(), &m))
		for _, name := range []string{"authorization_endpoint", "token_endpoint", "pushed_authorization_request_endpoint", "revocation_endpoint", "jwks_uri"} {
			target, ok := m[name].(string)
			if !ok || !strings.HasPrefix(target, issuer+"/") {
				t.Fatalf("%s: %v", name, m[name])
			}
			if w := get(s, strings.TrimPrefix(target, issuer)); w.Code == http.StatusNotFound {
				t.Errorf("%s is not found", target)
			}
		}
	})
	t.Run("the key set has no private part", func(t *testing.T) {
		w := get(s, "/jwks.json")
		var set struct {
			Keys []map[string]any `json:"keys"`
		}
		must(t, json.Unmarshal(w.Body.Bytes(), &set))
		if len(set.Keys) != 3 || w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%d keys, %v", len(set.Keys), w.Header())
		}
		for _, k := range set.Keys {
			if k["d"] != nil || k["kid"] == nil || k["alg"] != "ES256" || k["use"] != "sig" || k["mercure_actions"] == nil {
				t.Errorf("key: %v", k)
			}
		}
	})
	t.Run("an issuer with a path has its endpoints and documents in their places", func(t *testing.T) {
		s := newServer(t, func(o *as.Options) { o.Issuer = "https://app.example/auth" })
		for _, path := range []string{
			"/.well-known/oauth-authorization-server/auth", "/.well-known/openid-configuration/auth", "/auth/.well-known/openid-configuration",
		} {
			if w := get(s, path); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"issuer": "https://app.example/auth"`) {
				t.Errorf("%s: %d", path, w.Code)
			}
		}
		for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration", "/authorize", "/token"} {
			if w := get(s, path); w.Code != http.StatusNotFound {
				t.Errorf("%s: %d", path, w.Code)
			}
		}
		if w := get(s, "/auth/login"); !strings.Contains(w.Body.String(), `href="/auth/assets/app.css"`) {
			t.Errorf("page:\n%s", w.Body)
		}
	})
	t.Run("nothing comes from Host", func(t *testing.T) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/.well-known/oauth-authorization-server", http.NoBody)
		r.Host = "evil.example"
		r.Header.Set("X-Forwarded-Host", "evil.example")
		w := httptest.NewRecorder()
		s.echo.ServeHTTP(w, r)
		if strings.Contains(w.Body.String(), "evil") {
			t.Errorf("metadata: %s", w.Body)
		}
	})
	t.Run("pages of any origin may read the documents", func(t *testing.T) {
		for _, path := range []string{"/.well-known/oauth-authorization-server", "/jwks.json"} {
			for _, method := range []string{http.MethodOptions, http.MethodHead} {
				w := httptest.NewRecorder()
				s.echo.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody))
				if w.Code/100 != 2 || w.Header().Get("Access-Control-Allow-Origin") != "*" || w.Body.Len() != 0 {
					t.Errorf("%s %s: %d %v", method, path, w.Code, w.Header())
				}
			}
		}
	})
	t.Run("other methods are told which work", func(t *testing.T) {
		for path, allow := range map[string]string{
			"/.well-known/oauth-authorization-server": "GET, HEAD, OPTIONS",
			"/jwks.json": "GET, HEAD, OPTIONS",
			"/authorize": "GET, POST",
			"/login":     "GET, POST",
		} {
			w := httptest.NewRecorder()
			s.echo.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodDelete, path, http.NoBody))
			if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != allow {
				t.Errorf("%s: %d %q", path, w.Code, w.Header().Get("Allow"))
			}
		}
	})
	t.Run("assets are served", func(t *testing.T) {
		w := get(s, "/assets/app.css")
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/css") || w.Header().Get("ETag") == "" {
			t.Errorf("%d %v", w.Code, w.Header())
		}
		if w := get(s, "/assets/../templates/login.html"); w.Code != http.StatusNotFound {
			t.Errorf("a template: %d", w.Code)
		}
	})
}

func strings2(v any) []string {
	list, _ := v.([]any)
	out := make([]string, 0, len(list))
	for _, e := range list {
		if s, ok := e.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func goldenJSON(t *testing.T, name, document string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name+".json")
	if *update {
		must(t, os.WriteFile(file, []byte(document), 0o644))
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if diff := cmp.Diff(string(want), document); diff != "" {
		t.Errorf("%s (-want +got, -update writes it):\n%s", name, diff)
	}
}

func TestRegister(t *testing.T) {
	s := newServer(t, nil)
	if err := ashttp.Register(echo.New(), ashttp.Options{}, ashttp.Dependencies{}); err == nil {
		t.Error("no server: no error")
	}
	if err := ashttp.Register(echo.New(), ashttp.Options{CookieSuffix: "a;b"}, ashttp.Dependencies{Server: s.as}); err == nil {
		t.Error("bad suffix: no error")
	}
	e := echo.New()
	must(t, ashttp.Register(e, ashttp.Options{InsecureCookie: true, CookieSuffix: "plain"}, ashttp.Dependencies{Server: s.as}))
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/authorize?"+request().Encode(), http.NoBody))
	c := w.Result().Cookies()
	if len(c) != 1 || c[0].Name != "cinnabar_login_plain" || c[0].Secure || !c[0].HttpOnly {
		t.Errorf("cookies: %v", c)
	}
}
