package ashttp_test

import (
	"context"
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
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

func basic(user, password string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth(user, password) }
}

func TestToken_refusals(t *testing.T) {
	s := newServer(t, nil)
	// One code serves all: none of these may consume it.
	code := s.code(request())
	other := strings.Repeat("x", 43)
	for name, tc := range map[string]struct {
		form   url.Values
		status int
		want   string
	}{
		"a wrong verifier":          {exchange(code, set("code_verifier", other)), 400, "invalid_grant"},
		"no verifier":               {exchange(code, del("code_verifier")), 400, "invalid_grant"},
		"the challenge as verifier": {exchange(code, set("code_verifier", challenge(verifier))), 400, "invalid_grant"},
		"a short verifier":          {exchange(code, set("code_verifier", "x")), 400, "invalid_grant"},
		"another redirect URI":      {exchange(code, set("redirect_uri", "https://app.example/other")), 400, "invalid_grant"},
		"no redirect URI":           {exchange(code, del("redirect_uri")), 400, "invalid_grant"},
		"another client":            {exchange(code, set("client_id", "stranger")), 400, "invalid_grant"},
		"an unknown client":         {exchange(code, set("client_id", "nobody")), 401, "invalid_client"},
		"no client":                 {exchange(code, del("client_id")), 401, "invalid_client"},
		"a confidential client":     {exchange(code, set("client_id", "broker")), 401, "invalid_client"},
		"a secret of a public one":  {exchange(code, set("client_secret", "x")), 401, "invalid_client"},
		"an unknown code":           {exchange(other + "." + other), 400, "invalid_grant"},
		"half a code":               {exchange(strings.Split(code, ".")[0]), 400, "invalid_grant"},
		"the other half":            {exchange("x." + strings.Split(code, ".")[1]), 400, "invalid_grant"},
		"no code":                   {exchange("", del("code")), 400, "invalid_grant"},
		"no grant type":             {exchange(code, del("grant_type")), 400, "invalid_request"},
		"an unknown grant type":     {exchange(code, set("grant_type", "fly")), 400, "unsupported_grant_type"},
		"a grant type in two words": {exchange(code, set("grant_type", "authorization_code x")), 400, "unsupported_grant_type"},
		"the password grant":        {exchange(code, set("grant_type", "password")), 400, "unsupported_grant_type"},
		"client credentials":        {exchange(code, set("grant_type", "client_credentials")), 400, "unauthorized_client"},
		"a refresh token":           {exchange(code, set("grant_type", "refresh_token")), 400, "unauthorized_client"},
		"device codes":              {exchange(code, set("grant_type", "urn:ietf:params:oauth:grant-type:device_code")), 400, "unsupported_grant_type"},
		"two codes":                 {exchange(code, add("code", code)), 400, "invalid_request"},
		"two grant types":           {exchange(code, add("grant_type", "authorization_code")), 400, "invalid_request"},
		"two clients":               {exchange(code, add("client_id", "spa")), 400, "invalid_request"},
		"two verifiers":             {exchange(code, add("code_verifier", verifier)), 400, "invalid_request"},
		"another resource":          {exchange(code, set("resource", "https://other.example")), 400, "invalid_target"},
		"two resources":             {exchange(code, set("resource", hubURL), add("resource", "https://other.example")), 400, "invalid_target"},
		"malformed details":         {exchange(code, set("authorization_details", "{")), 400, "invalid_authorization_details"},
		"a foreign assertion type":  {exchange(code, set("client_assertion_type", "urn:x"), set("client_assertion", "a.b.c")), 400, "invalid_request"},
		"two methods in the body":   {exchange(code, set("client_secret", "x"), set("client_assertion", "a.b.c")), 400, "invalid_request"},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			r := s.token(tc.form)
			if r.status != tc.status || r.Error != tc.want || r.AccessToken != "" {
				t.Errorf("got %d %s, want %d %s", r.status, r.Error, tc.status, tc.want)
			}
			if r.header.Get("Cache-Control") != "no-store" {
				t.Error("the answer may be cached")
			}
			if strings.Contains(r.Description, "fly") || strings.Contains(r.Description, "nobody") {
				t.Errorf("quotes the request: %s", r.Description)
			}
		})
	}
	t.Run("refuses Basic beside another client or method", func(t *testing.T) {
		r := s.token(exchange(code), basic("stranger", ""))
		if r.Error != "invalid_request" {
			t.Errorf("mix-up: %+v", r)
		}
		r = s.token(exchange(code, set("client_secret", "x")), basic("spa", ""))
		if r.Error != "invalid_request" {
			t.Errorf("two methods: %+v", r)
		}
		r = s.token(brokerExchange(code, assertion(t, clientKey(t), nil, nil)), basic("broker", "x"))
		if r.Error != "invalid_request" {
			t.Errorf("two methods: %+v", r)
		}
	})
	t.Run("challenges only who tried Basic", func(t *testing.T) {
		r := s.token(exchange(code, del("client_id")), basic("nobody", "x"))
		if r.status != http.StatusUnauthorized || !strings.HasPrefix(r.header.Get("WWW-Authenticate"), "Basic ") {
			t.Errorf("got %d %q", r.status, r.header.Get("WWW-Authenticate"))
		}
	})
	t.Run("and then the code still works, with Basic and no password", func(t *testing.T) {
		if r := s.token(exchange(code, del("client_id")), basic("spa", "")); r.status != http.StatusOK {
			t.Errorf("token: %+v\n%s", r, s.logs)
		}
	})
}

func TestToken_acceptsACharset(t *testing.T) {
	s := newServer(t, nil)
	r := s.token(exchange("x.y"), func(r *http.Request) {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=UTF-8")
	})
	if r.Error != "invalid_grant" {
		t.Errorf("got %+v", r)
	}
}

func TestToken_oneOfManyRedemptions(t *testing.T) {
	s := newServer(t, nil)
	code := s.code(request())
	const parallel = 50
	answers := make([]tokenReply, parallel)
	var wg sync.WaitGroup
	for i := range parallel {
		wg.Go(func() { answers[i] = s.token(exchange(code)) })
	}
	wg.Wait()
	tokens := 0
	for _, r := range answers {
		switch {
		case r.status == http.StatusOK:
			tokens++
		case r.status != http.StatusBadRequest || r.Error != "invalid_grant":
			t.Errorf("a loser got %d %s", r.status, r.Error)
		}
	}
	if tokens != 1 {
		t.Errorf("%d tokens for one code", tokens)
	}
	if revoked(t, s) {
		t.Error("the winner's grant was revoked")
	}
}

// revoked says whether the only grant of the server is revoked.
func revoked(t *testing.T, s *server) bool {
	t.Helper()
	grants, err := s.store.ListGrants(context.Background(), store.GrantFilter{})
	must(t, err)
	if len(grants) != 1 {
		t.Fatalf("%d grants", len(grants))
	}
	log, err := s.store.RevocationsSince(context.Background(), 0, 10)
	must(t, err)
	found := slices.ContainsFunc(log, func(r store.Revocation) bool {
		return r.Kind == store.RevokeGrant && r.Value == grants[0].ID && r.Issuer == issuer
	})
	if found == grants[0].RevokedAt.IsZero() {
		t.Errorf("grant and revocation log disagree")
	}
	return found
}

func TestToken_reusedCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, nil)
		code := s.code(request())
		if r := s.token(exchange(code)); r.status != http.StatusOK {
			t.Fatalf("token: %+v", r)
		}
		if r := s.token(exchange(code)); r.Error != "invalid_grant" || revoked(t, s) {
			t.Errorf("the same request again: %+v, revoked: %v", r, revoked(t, s))
		}
		<-time.After(9 * time.Second)
		if r := s.token(exchange(code)); r.Error != "invalid_grant" || revoked(t, s) {
			t.Errorf("after 9 s: %+v, revoked: %v", r, revoked(t, s))
		}
		<-time.After(2 * time.Second)
		if r := s.token(exchange(code)); r.Error != "invalid_grant" || !revoked(t, s) {
			t.Errorf("after 11 s: %+v, revoked: %v", r, revoked(t, s))
		}
		if !slices.Contains(s.events(), as.EventCodeReused) {
			t.Errorf("audit trail: %v", s.events())
		}
	})
}

func TestToken_expiredCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, nil)
		code := s.code(request())
		<-time.After(61 * time.Second)
		if r := s.token(exchange(code)); r.status != http.StatusBadRequest || r.Error != "invalid_grant" {
			t.Errorf("after 61 s: %+v", r)
		}
	})
}

func TestToken_looksAgain(t *testing.T) {
	change := func(t *testing.T, s *server, f func(*store.Account)) {
		t.Helper()
		_, err := s.accounts.Update(t.Context(), s.ann.ID, f)
		must(t, err)
	}
	t.Run("a disabled account gets no token", func(t *testing.T) {
		s := newServer(t, nil)
		code := s.code(request())
		change(t, s, func(a *store.Account) { a.Disabled = true })
		if r := s.token(exchange(code)); r.Error != "invalid_grant" {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("an account that lost its role gets no token", func(t *testing.T) {
		s := newServer(t, nil)
		code := s.code(request())
		change(t, s, func(a *store.Account) { a.Roles = nil })
		if r := s.token(exchange(code)); r.Error != "invalid_grant" {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("a disabled client gets no token", func(t *testing.T) {
		s := newServer(t, nil)
		code := s.code(request())
		c, err := s.store.Client(t.Context(), "spa")
		must(t, err)
		c.Disabled = true
		must(t, s.store.PutClient(t.Context(), c))
		if r := s.token(exchange(code)); r.Error != "invalid_client" {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("a revoked grant gives no token", func(t *testing.T) {
		s := newServer(t, nil)
		code := s.code(request())
		grants, err := s.store.ListGrants(t.Context(), store.GrantFilter{AccountID: s.ann.ID})
		must(t, err)
		must(t, s.store.RevokeGrant(t.Context(), grants[0].ID, time.Now()))
		if r := s.token(exchange(code)); r.status != http.StatusBadRequest || r.Error != "invalid_grant" {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("another issuer on the same store does not know the code", func(t *testing.T) {
		s := newServer(t, nil)
		code := s.code(request())
		if r := s.sibling("https://as2.example").token(exchange(code)); r.Error != "invalid_grant" {
			t.Errorf("got %+v", r)
		}
		if r := s.token(exchange(code)); r.status != http.StatusOK {
			t.Errorf("got %+v", r)
		}
	})
}

func TestToken_refusalsDoNotFillTheDatabase(t *testing.T) {
	s := newServer(t, nil)
	for range 300 {
		s.token(exchange("x.y", set("client_id", "nobody")))
	}
	if n := len(s.events()); n < 200 || n > 290 {
		t.Errorf("%d audit records of 300 refusals", n)
	}
	s.code(request())
	if !slices.Contains(s.events(), as.EventGrant) {
		t.Error("other events are left out too")
	}
}

func TestToken_cors(t *testing.T) {
	s := newServer(t, func(o *as.Options) { o.Clients[0].Origins = []string{"http://localhost:5173"} })
	preflight := func(origin string) http.Header {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodOptions, "/token", http.NoBody)
		r.Header.Set("Origin", origin)
		r.Header.Set("Access-Control-Request-Method", "POST")
		w := httptest.NewRecorder()
		s.echo.ServeHTTP(w, r)
		if w.Code != http.StatusNoContent {
			t.Errorf("preflight: %d", w.Code)
		}
		return w.Header()
	}
	for _, origin := range []string{"https://app.example", "http://localhost:5173"} {
		if h := preflight(origin); h.Get("Access-Control-Allow-Origin") != origin || h.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %v", origin, h)
		}
		r := s.token(exchange("x.y"), func(r *http.Request) { r.Header.Set("Origin", origin) })
		if r.header.Get("Access-Control-Allow-Origin") != origin || r.header.Get("Vary") != "Origin" {
			t.Errorf("%s: %v", origin, r.header)
		}
	}
	for _, origin := range []string{"https://evil.example", "null", "https://app.example.evil.example", "https://APP.example"} {
		if h := preflight(origin); h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", origin, h)
		}
	}
	t.Run("a client that is registered later counts at once", func(t *testing.T) {
		must(t, s.store.PutClient(t.Context(), store.Client{ID: "new", AuthMethod: as.AuthNone, RedirectURIs: []string{"https://new.example/cb"}}))
		if h := preflight("https://new.example"); h.Get("Access-Control-Allow-Origin") == "" {
			t.Error("not allowed")
		}
	})
}
