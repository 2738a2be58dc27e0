package ashttp_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

func TestFlow_publicClient(t *testing.T) {
	s := newServer(t, nil)
	b := s.newBrowser()

	login := b.open(request())
	if login.StatusCode != http.StatusOK || login.Request.URL.Path != "/login" {
		t.Fatalf("first page: %d %s", login.StatusCode, login.Request.URL.Path)
	}
	consent := b.signIn(login, "ann", password)
	if consent.Request.URL.Path != "/consent" {
		t.Fatalf("second page: %d %s\n%s", consent.StatusCode, consent.Request.URL.Path, s.logs)
	}
	answer := b.answer(consent, "allow").sent(t, callback+"?")
	if answer.Get("state") != "af0ifjsldkj" || answer.Get("iss") != issuer || answer.Get("code") == "" || len(answer) != 3 {
		t.Fatalf("answer to the client: %v", answer)
	}

	r := s.token(exchange(answer.Get("code")))
	if r.status != http.StatusOK || r.TokenType != "Bearer" || r.Scope != nil {
		t.Fatalf("token: %+v\n%s", r, s.logs)
	}
	if r.header.Get("Cache-Control") != "no-store" || r.header.Get("Content-Type") != "application/json" {
		t.Errorf("header fields: %v", r.header)
	}
	claims := s.verify(r.AccessToken)
	t.Run("TOK-20 says everything a token must say", func(t *testing.T) {
		if claims.Issuer != issuer || claims.Subject != s.ann.ID || claims.ClientID != "spa" || claims.ID == "" ||
			!slices.Equal(claims.Audience, []string{hubURL}) || claims.Username != "ann" || claims.SessionID == "" || claims.GrantID == "" {
			t.Errorf("claims: %+v", claims)
		}
		life := claims.ExpiresAt.Sub(claims.IssuedAt).Seconds()
		if life > 600 || life < 540 || r.ExpiresIn > 600 || r.ExpiresIn < 538 {
			t.Errorf("lives %v s, expires_in %d", life, r.ExpiresIn)
		}
	})
	t.Run("RFC 9396 section 7: echoes the details of the token", func(t *testing.T) {
		if string(rar.Encode(claims.Details)) != string(r.Details) {
			t.Errorf("token: %s\nanswer: %s", rar.Encode(claims.Details), r.Details)
		}
		if !strings.Contains(string(r.Details), "/users/"+s.ann.ID+"/*") {
			t.Errorf("details: %s", r.Details)
		}
	})
	want := []string{as.EventLogin, as.EventConsent, as.EventGrant, as.EventToken}
	if got := s.events(); !slices.Equal(got, want) {
		t.Errorf("audit trail: %v, want %v", got, want)
	}
}

func TestFlow_confidentialClient(t *testing.T) {
	s := newServer(t, nil)
	code := s.code(request(set("client_id", "broker"), set("scope", "openid live other")))
	r := s.token(brokerExchange(code, assertion(t, clientKey(t), nil, nil)))
	if r.status != http.StatusOK {
		t.Fatalf("token: %+v\n%s", r, s.logs)
	}
	if r.Scope == nil || *r.Scope != "live" {
		t.Errorf("scope: %v, want live", r.Scope)
	}
	claims := s.verify(r.AccessToken)
	if claims.ClientID != "broker" || claims.Grants.Actions() != rar.Actions(rar.Subscribe) {
		t.Errorf("claims: %+v", claims)
	}
	if !slices.Contains(s.events(), as.EventConsentSkipped) {
		t.Errorf("no audit record of the skipped consent: %v", s.events())
	}
}

func TestFlow_signedInAlready(t *testing.T) {
	s := newServer(t, nil)
	b := s.newBrowser()
	b.answer(b.signIn(b.open(request()), "ann", password), "allow")
	t.Run("consent is asked without sign-in", func(t *testing.T) {
		if r := b.open(request()); r.Request.URL.Path != "/consent" {
			t.Errorf("page: %s", r.Request.URL.Path)
		}
	})
	t.Run("a first-party client needs no page", func(t *testing.T) {
		b.open(request(set("client_id", "broker"))).sent(t, callback)
	})
	t.Run("a native client always asks", func(t *testing.T) {
		if r := b.open(request(set("client_id", "cli"), set("redirect_uri", "http://127.0.0.1:5000/cb"))); r.Request.URL.Path != "/consent" {
			t.Errorf("page: %s %s", r.Request.URL.Path, r.Header.Get("Location"))
		}
	})
}

func TestFlow_stateIsTheClients(t *testing.T) {
	s := newServer(t, nil)
	b := s.newBrowser()
	b.answer(b.signIn(b.open(request()), "ann", password), "allow")
	broker := set("client_id", "broker")
	t.Run("none sent, none returned", func(t *testing.T) {
		if q := b.open(request(broker, del("state"))).sent(t, callback); q.Has("state") || q.Get("code") == "" {
			t.Errorf("answer: %v", q)
		}
		if q := b.open(request(broker, del("state"), set("response_type", "token"))).sent(t, callback); q.Has("state") {
			t.Errorf("error: %v", q)
		}
	})
	t.Run("short and odd ones come back as they were", func(t *testing.T) {
		for _, state := range []string{"x", "a b+c%20/&=é", strings.Repeat("s", 3000)} {
			if q := b.open(request(broker, set("state", state))).sent(t, callback); q.Get("state") != state {
				t.Errorf("state %q came back as %q", state, q.Get("state"))
			}
		}
	})
	t.Run("response_mode=query and POST work", func(t *testing.T) {
		b.open(request(broker, set("response_mode", "query"))).sent(t, callback)
		if q := b.follow(b.post("/authorize", request(broker))).sent(t, callback); q.Get("code") == "" {
			t.Errorf("answer: %v", q)
		}
	})
}

func TestFlow_redirectURIWithQuery(t *testing.T) {
	uri := "https://app.example/cb?tenant=a%2Fb"
	s := newServer(t, func(o *as.Options) { o.Clients[1].RedirectURIs = []string{uri} })
	b := s.newBrowser()
	broker := set("client_id", "broker")
	b.signIn(b.open(request(broker, set("redirect_uri", uri))), "ann", password)
	t.Run("keeps its own query as it is", func(t *testing.T) {
		b.open(request(broker, set("redirect_uri", uri))).sent(t, uri+"&code=")
	})
	t.Run("may be left out when it is the only one, and then is left out at redemption", func(t *testing.T) {
		code := b.open(request(broker, del("redirect_uri"))).sent(t, uri).Get("code")
		r := s.token(brokerExchange(code, assertion(t, clientKey(t), nil, nil), del("redirect_uri")))
		if r.status != http.StatusOK {
			t.Errorf("token: %+v", r)
		}
	})
}

func TestFlow_details(t *testing.T) {
	s := newServer(t, nil)
	broker := set("client_id", "broker")
	b := s.newBrowser()
	b.signIn(b.open(request(broker)), "ann", password)
	details := func(v string) url.Values { return request(broker, set("authorization_details", v)) }

	t.Run("a request within policy is granted as asked", func(t *testing.T) {
		own := detail("subscribe", "https://example.com/users/"+s.ann.ID+"/orders/1", "")
		code := b.open(details(own)).sent(t, callback).Get("code")
		r := s.token(brokerExchange(code, assertion(t, clientKey(t), nil, nil)))
		if string(r.Details) != own {
			t.Errorf("got %s\nwant %s", r.Details, own)
		}
	})
	for name, tc := range map[string]struct{ details, want string }{
		"what no user of the client may have": {detail("subscribe", "https://example.com/admin", ""), "invalid_authorization_details"},
		"an action the client has not":        {detail("publish", "https://example.com/users/"+s.ann.ID+"/x", ""), "invalid_authorization_details"},
		"the wildcard":                        {detail("subscribe", "*", ""), "invalid_authorization_details"},
		"another user's corner":               {detail("subscribe", "https://example.com/users/u_other/x", ""), "access_denied"},
		"an escape by dot segments":           {detail("subscribe", "https://example.com/users/"+s.ann.ID+"/../u_other/x", ""), "access_denied"},
		"an unknown type":                     {`[{"type":"x","actions":["subscribe"],"topics":[{"match":"a"}]}]`, "invalid_authorization_details"},
		"no JSON":                             {"{", "invalid_authorization_details"},
		"an unknown action":                   {detail("fly", "https://example.com/chat", ""), "invalid_authorization_details"},
		"a pattern that panics in a library":  {detail("subscribe", "https://example.com/*../..", "urlpattern"), "invalid_authorization_details"},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			q := b.open(details(tc.details)).sent(t, callback)
			if q.Get("error") != tc.want || q.Get("iss") != issuer || q.Get("state") == "" || q.Has("code") {
				t.Errorf("answer: %v, want %s", q, tc.want)
			}
		})
	}
	t.Run("what the client may never have is refused before anybody signs in", func(t *testing.T) {
		q := s.newBrowser().open(details(detail("subscribe", "https://example.com/admin", ""))).sent(t, callback)
		if q.Get("error") != "invalid_authorization_details" {
			t.Errorf("answer: %v", q)
		}
	})
	t.Run("what the person may not have is trimmed", func(t *testing.T) {
		spa := s.newBrowser()
		both := `[{"type":"` + rar.DetailType + `","actions":["subscribe"],"topics":[{"match":"https://example.com/chat"},{"match":"https://example.com/staff/1"}]}]`
		page := spa.signIn(spa.open(request(set("authorization_details", both))), "ann", password)
		if strings.Contains(page.body, "staff") || !strings.Contains(page.body, "chat") {
			t.Errorf("consent page:\n%s", page.body)
		}
	})
	t.Run("a token request may narrow the grant and not widen it", func(t *testing.T) {
		code := b.open(request(broker)).sent(t, callback).Get("code")
		wider := detail("subscribe", "https://example.com/users/u_other/x", "")
		r := s.token(brokerExchange(code, assertion(t, clientKey(t), nil, nil), set("authorization_details", wider)))
		if r.status != http.StatusBadRequest || r.Error != "invalid_authorization_details" {
			t.Errorf("wider: %+v", r)
		}
		narrow := detail("subscribe", "https://example.com/chat", "")
		r = s.token(brokerExchange(code, assertion(t, clientKey(t), nil, nil), set("authorization_details", narrow)))
		if r.status != http.StatusOK || string(r.Details) != narrow {
			t.Errorf("narrow: %+v", r)
		}
		if got := s.verify(r.AccessToken).Grants.Actions(); got != rar.Actions(rar.Subscribe) {
			t.Errorf("actions: %s", got)
		}
	})
}

func TestFlow_nativeClients(t *testing.T) {
	for _, tc := range []struct{ registered, requested string }{
		{"http://127.0.0.1/cb", "http://127.0.0.1:5000/cb"},
		{"http://[::1]/cb", "http://[::1]:61234/cb"},
		{"http://localhost:3000/cb?a=1", "http://localhost:4000/cb?a=1"},
		{"com.example.app:/cb", "com.example.app:/cb"},
	} {
		t.Run(tc.requested, func(t *testing.T) {
			s := newServer(t, func(o *as.Options) { o.Clients[2].RedirectURIs = []string{tc.registered} })
			change := []func(url.Values){set("client_id", "cli"), set("redirect_uri", tc.requested)}
			code := s.code(request(change...))
			if tc.registered != tc.requested {
				if r := s.token(exchange(code, set("client_id", "cli"), set("redirect_uri", tc.registered))); r.Error != "invalid_grant" {
					t.Errorf("redeemed with the registered URI: %+v", r)
				}
			}
			if r := s.token(exchange(code, change...)); r.status != http.StatusOK {
				t.Errorf("token: %d %s\n%s", r.status, r.Error, s.logs)
			}
		})
	}
}

func TestFlow_scopes(t *testing.T) {
	s := newServer(t, func(o *as.Options) {
		o.Scopes["admin"] = []rar.Detail{{Actions: []rar.Action{rar.Publish}, Topics: []rar.TopicMatcher{{Match: "https://example.com/admin", MatchType: topic.Exact}}}}
	})
	broker := set("client_id", "broker")
	t.Run("one that gives this person nothing is not echoed", func(t *testing.T) {
		code := s.code(request(broker, set("scope", "admin live")))
		r := s.token(brokerExchange(code, assertion(t, clientKey(t), nil, nil)))
		if r.Scope == nil || *r.Scope != "live" || strings.Contains(string(r.Details), "admin") {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("alone it is refused", func(t *testing.T) {
		b := s.newBrowser()
		if q := b.signIn(b.open(request(broker, set("scope", "admin"))), "ann", password).sent(t, callback); q.Get("error") != "access_denied" {
			t.Errorf("answer: %v", q)
		}
	})
	t.Run("unknown ones alone are as none", func(t *testing.T) {
		code := s.code(request(broker, set("scope", "openid profile")))
		r := s.token(brokerExchange(code, assertion(t, clientKey(t), nil, nil)))
		if r.status != http.StatusOK || r.Scope != nil {
			t.Errorf("got %+v", r)
		}
	})
}
