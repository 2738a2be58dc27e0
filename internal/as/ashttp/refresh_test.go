package ashttp_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

func TestRefresh_publicClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tokenServer(t)
		first := s.login("app")
		if !refreshToken.MatchString(first.Refresh) || first.ExpiresIn < 500 || len(first.Details) == 0 {
			t.Fatalf("first tokens: %+v", first)
		}
		before := s.verify(first.AccessToken)
		sleep(5 * time.Minute)
		second := s.refresh("app", first.Refresh)
		if second.status != http.StatusOK || second.TokenType != "Bearer" || second.header.Get("Cache-Control") != "no-store" {
			t.Fatalf("refresh: %+v\n%s", second, s.logs)
		}
		if second.Refresh == first.Refresh || !refreshToken.MatchString(second.Refresh) {
			t.Error("the refresh token of a public client stayed")
		}
		after := s.verify(second.AccessToken)
		if after.ID == before.ID || !after.IssuedAt.After(before.IssuedAt) || !after.ExpiresAt.After(before.ExpiresAt) {
			t.Errorf("the token is not a new one: %+v", after)
		}
		if after.GrantID != before.GrantID || after.SessionID != before.SessionID || after.Subject != before.Subject ||
			after.ClientID != "app" || after.Username != "ann" || string(second.Details) != string(first.Details) {
			t.Errorf("claims changed: %+v, were %+v", after, before)
		}

		sleep(30*time.Second - time.Millisecond)
		again := s.refresh("app", first.Refresh)
		if again.status != http.StatusOK || again.Refresh != second.Refresh || again.AccessToken == second.AccessToken {
			t.Errorf("a repeat at the end of the grace time: %+v", again)
		}
		if another := s.reload(func(*as.Options) {}).refresh("app", first.Refresh); another.Refresh != second.Refresh {
			t.Errorf("a repeat at another process: %+v", another)
		}
		third := s.refresh("app", second.Refresh)
		if third.status != http.StatusOK || third.Refresh == second.Refresh {
			t.Errorf("the successor: %+v", third)
		}
		sleep(time.Millisecond)
		pokes := s.pokes.Load()
		if r := s.refresh("app", first.Refresh); r.status != http.StatusBadRequest || r.Error != "invalid_grant" {
			t.Errorf("a repeat after it: %+v", r)
		}
		if s.works("app", third.Refresh) || s.works("app", second.Refresh) {
			t.Error("the family is alive")
		}
		if !slices.Contains(s.log(), "grant:"+after.GrantID) || s.pokes.Load() != pokes+1 {
			t.Errorf("log %v, %d pokes", s.log(), s.pokes.Load()-pokes)
		}
		for range 5 {
			s.refresh("app", first.Refresh)
		}
		if events := slices.DeleteFunc(s.events(), func(e string) bool { return e != as.EventRefreshReused }); len(events) != 1 {
			t.Errorf("%d records of one reuse", len(events))
		}
	})
}

func TestRefresh_confidentialClients(t *testing.T) {
	for _, client := range []string{"web", "post", "hub"} {
		t.Run(client, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := tokenServer(t)
				first := s.login(client)
				seen := map[string]bool{first.AccessToken: true}
				for range 5 { // 100 hours, longer than one idle time
					sleep(20 * time.Hour)
					r := s.refresh(client, first.Refresh)
					if r.status != http.StatusOK || r.Refresh != first.Refresh || seen[r.AccessToken] {
						t.Fatalf("got %+v\n%s", r, s.logs)
					}
					seen[r.AccessToken] = true
				}
				sleep(24*time.Hour - time.Second)
				if !s.works(client, first.Refresh) {
					t.Error("ended before its idle time")
				}
				sleep(24 * time.Hour)
				if s.works(client, first.Refresh) {
					t.Error("outlived its idle time")
				}
				if slices.ContainsFunc(s.log(), func(e string) bool { return strings.HasPrefix(e, "grant:") }) {
					t.Errorf("an expired token revoked something: %v", s.log())
				}
			})
		})
	}
}

func TestRefresh_absoluteEnd(t *testing.T) {
	for _, client := range []string{"app", "web"} {
		t.Run(client, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := tokenServer(t, func(o *as.Options) { o.RefreshAbsolute = 48 * time.Hour })
				r := s.login(client)
				for range 4 {
					sleep(11 * time.Hour)
					if r = s.refresh(client, r.Refresh); r.status != http.StatusOK {
						t.Fatalf("got %+v", r)
					}
				}
				sleep(4 * time.Hour)
				if r := s.refresh(client, r.Refresh); r.Error != "invalid_grant" {
					t.Errorf("after the end: %+v", r)
				}
			})
		})
	}
}

func TestRefresh_noTokenOutlivesTheGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tokenServer(t, func(o *as.Options) { o.RefreshAbsolute = time.Hour })
		start := time.Now()
		r := s.login("app")
		sleep(time.Until(start.Add(57 * time.Minute)))
		r = s.refresh("app", r.Refresh)
		if r.status != http.StatusOK {
			t.Fatalf("got %+v", r)
		}
		if end := s.verify(r.AccessToken).ExpiresAt; end.After(start.Add(time.Hour)) || r.ExpiresIn > 180 || r.ExpiresIn < 170 {
			t.Errorf("the token lives %d s, until %v after the login", r.ExpiresIn, end.Sub(start))
		}
		sleep(time.Until(start.Add(time.Hour + time.Second)))
		if s.works("app", r.Refresh) {
			t.Error("refreshed after the end")
		}
	})
}

func TestRefresh_narrowing(t *testing.T) {
	s := tokenServer(t)
	for _, client := range []string{"app", "web"} {
		t.Run(client, func(t *testing.T) {
			first := s.login(client, set("scope", "live"), set("authorization_details", detail("publish", "https://example.com/chat", "")))
			if first.Scope == nil || *first.Scope != "live" || !strings.Contains(string(first.Details), "publish") {
				t.Fatalf("first: %+v", first)
			}
			chat := detail("publish", "https://example.com/chat", "")
			narrow := s.refresh(client, first.Refresh, set("authorization_details", chat))
			if narrow.status != http.StatusOK || string(narrow.Details) != chat {
				t.Errorf("narrowed: %+v", narrow)
			}
			scoped := s.refresh(client, narrow.Refresh, set("scope", "live openid jobs"))
			if scoped.status != http.StatusOK || strings.Contains(string(scoped.Details), "publish") || scoped.Scope == nil || *scoped.Scope != "live" {
				t.Errorf("narrowed by scope: %+v", scoped)
			}
			both := s.refresh(client, scoped.Refresh, set("scope", "live"), set("authorization_details", chat))
			if both.status != http.StatusOK || !strings.Contains(string(both.Details), "publish") || !strings.Contains(string(both.Details), s.ann.ID) {
				t.Errorf("both: %+v", both)
			}
			for _, scope := range []string{"openid", "jobs", "jobs nonsense", " "} {
				if r := s.refresh(client, both.Refresh, set("scope", scope)); r.status != http.StatusOK || string(r.Details) != string(first.Details) {
					t.Errorf("scope %q, which is no part of the grant: %+v", scope, r)
				} else {
					both = r
				}
			}
			whole := s.refresh(client, both.Refresh)
			if string(whole.Details) != string(first.Details) {
				t.Errorf("the grant was narrowed for good: %s", whole.Details)
			}
			for name, wider := range map[string]string{
				"another topic":     detail("subscribe", "https://example.com/users/u_other/x", ""),
				"another action":    detail("publish", "https://example.com/users/"+s.ann.ID+"/x", ""),
				"everything":        detail("subscribe", "*", ""),
				"what policy gives": detail("subscribe", "https://example.com/chat", ""), // but the grant has not
			} {
				r := s.refresh(client, whole.Refresh, set("authorization_details", wider))
				if r.status != http.StatusBadRequest || r.Error != "invalid_authorization_details" {
					t.Errorf("%s: %+v", name, r)
				}
			}
			if r := s.refresh(client, whole.Refresh, set("resource", hubURL)); r.status != http.StatusOK {
				t.Errorf("refusals used the token up: %+v", r)
			}
		})
	}
}

func TestRefresh_refusals(t *testing.T) {
	s := tokenServer(t)
	app, web := s.login("app"), s.login("web")
	other := "rt_" + strings.Repeat("x", 43)
	for name, tc := range map[string]struct {
		client string
		token  string
		change []func(url.Values)
		status int
		want   string
	}{
		"no token":                     {"app", "", nil, 400, "invalid_request"},
		"an unknown token":             {"app", other, nil, 400, "invalid_grant"},
		"half a token":                 {"app", app.Refresh[:20], nil, 400, "invalid_grant"},
		"a token with a tail":          {"app", app.Refresh + "x", nil, 400, "invalid_grant"},
		"an access token":              {"app", app.AccessToken, nil, 400, "invalid_grant"},
		"another public client":        {"spa", app.Refresh, nil, 400, "unauthorized_client"},
		"another client that may":      {"web", app.Refresh, nil, 400, "invalid_grant"},
		"another client's, the other":  {"app", web.Refresh, nil, 400, "invalid_grant"},
		"a client without the grant":   {"backend", web.Refresh, nil, 400, "unauthorized_client"},
		"an unknown client":            {"nobody", app.Refresh, nil, 401, "invalid_client"},
		"a confidential one unproven":  {"app", web.Refresh, []func(url.Values){set("client_id", "web")}, 401, "invalid_client"},
		"a token twice":                {"app", app.Refresh, []func(url.Values){add("refresh_token", app.Refresh)}, 400, "invalid_request"},
		"a scope twice":                {"app", app.Refresh, []func(url.Values){add("scope", "live"), add("scope", "live")}, 400, "invalid_request"},
		"another resource":             {"app", app.Refresh, []func(url.Values){set("resource", "https://other.example")}, 400, "invalid_target"},
		"two resources":                {"app", app.Refresh, []func(url.Values){set("resource", hubURL), add("resource", "https://other.example")}, 400, "invalid_target"},
		"malformed details":            {"app", app.Refresh, []func(url.Values){set("authorization_details", "{")}, 400, "invalid_authorization_details"},
		"details of an unknown type":   {"app", app.Refresh, []func(url.Values){set("authorization_details", `[{"type":"x"}]`)}, 400, "invalid_authorization_details"},
		"no details in the details":    {"app", app.Refresh, []func(url.Values){set("authorization_details", `[]`)}, 400, "invalid_authorization_details"},
		"details with unknown members": {"app", app.Refresh, []func(url.Values){set("authorization_details", `[{"type":"`+rar.DetailType+`","actions":["subscribe"],"topics":[{"match":"a"}],"x":1}]`)}, 400, "invalid_authorization_details"},
		"two credentials":              {"web", web.Refresh, []func(url.Values){set("client_secret", clientSecret)}, 400, "invalid_request"},
		"a mix-up":                     {"web", web.Refresh, []func(url.Values){set("client_id", "hub")}, 400, "invalid_request"},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			r := s.refresh(tc.client, tc.token, tc.change...)
			if r.status != tc.status || r.Error != tc.want || r.AccessToken != "" || r.Refresh != "" || r.header.Get("Cache-Control") != "no-store" {
				t.Errorf("got %d %s, want %d %s", r.status, r.Error, tc.status, tc.want)
			}
		})
	}
	t.Run("and none of it used the tokens up or revoked them", func(t *testing.T) {
		for client, first := range map[string]tokenReply{"app": app, "web": web} {
			if r := s.refresh(client, first.Refresh); r.status != http.StatusOK {
				t.Errorf("%s: %+v", client, r)
			}
		}
	})
	t.Run("another issuer on the same store does not know the token", func(t *testing.T) {
		if r := s.sibling("https://as2.example").refresh("web", web.Refresh); r.Error != "invalid_grant" {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("a client without the grant type gets no refresh token", func(t *testing.T) {
		if r := s.login("spa"); r.Refresh != "" {
			t.Errorf("got %+v", r)
		}
	})
}

// TestRefresh_looksAgain has the rights of the moment decide: reports 15, 16, 17 and 19 of other servers.
func TestRefresh_looksAgain(t *testing.T) {
	account := func(change func(*store.Account)) func(*testing.T, *server) *server {
		return func(t *testing.T, s *server) *server {
			t.Helper()
			_, err := s.accounts.Update(t.Context(), s.ann.ID, change)
			must(t, err)
			return s
		}
	}
	reload := func(change func(*as.Options)) func(*testing.T, *server) *server {
		return func(_ *testing.T, s *server) *server { return s.reload(change) }
	}
	for name, tc := range map[string]struct {
		change func(*testing.T, *server) *server
		want   string
	}{
		"a disabled account":             {account(func(a *store.Account) { a.Disabled = true }), "invalid_grant"},
		"an account that lost its role":  {account(func(a *store.Account) { a.Roles = nil }), "invalid_grant"},
		"a policy that is gone":          {reload(func(o *as.Options) { o.Policies = o.Policies[1:] }), "invalid_grant"},
		"a policy for others":            {reload(func(o *as.Options) { o.Policies[0].When.Clients = []string{"spa"} }), "invalid_grant"},
		"a resource that is gone":        {reload(func(o *as.Options) { o.Resources = []as.Resource{{ID: "https://new.example/hub"}} }), "invalid_grant"},
		"a client that is gone":          {reload(func(o *as.Options) { o.Clients = o.Clients[:4] }), "invalid_client"},
		"a client that lost the grant":   {reload(func(o *as.Options) { grantTypes(o, as.GrantAuthorizationCode) }), "unauthorized_client"},
		"a client with another secret":   {reload(func(o *as.Options) { secretHash(o, as.HashClientSecret("another")) }), "invalid_client"},
		"a revoked grant":                {func(t *testing.T, s *server) *server { t.Helper(); revokeAll(t, s); return s }, "invalid_grant"},
		"a login session that was ended": {func(t *testing.T, s *server) *server { t.Helper(); endSession(t, s); return s }, "invalid_grant"},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			s := tokenServer(t)
			first := s.login("web")
			if after := tc.change(t, s).refresh("web", first.Refresh); after.Error != tc.want || after.AccessToken != "" {
				t.Errorf("got %d %s, want %s", after.status, after.Error, tc.want)
			}
		})
	}
	t.Run("trims to the policy of the moment, and gives back what comes back", func(t *testing.T) {
		s := tokenServer(t)
		first := s.login("web")
		less := s.reload(func(o *as.Options) { o.Policies[0].Grant = o.Policies[0].Grant[:1] })
		r := less.refresh("web", first.Refresh)
		if r.status != http.StatusOK || strings.Contains(string(r.Details), "chat") || !strings.Contains(string(r.Details), s.ann.ID) {
			t.Errorf("trimmed: %+v", r)
		}
		if r := s.refresh("web", first.Refresh); string(r.Details) != string(first.Details) {
			t.Errorf("whole again: %+v", r)
		}
	})
	t.Run("more policy does not widen a grant", func(t *testing.T) {
		s := tokenServer(t)
		first := s.login("web")
		more := s.reload(func(o *as.Options) {
			o.Policies[0].Grant = append(slices.Clone(o.Policies[0].Grant), rar.Detail{
				Actions: []rar.Action{rar.Publish}, Topics: []rar.TopicMatcher{{Match: "https://example.com/new", MatchType: topic.Exact}},
			})
		})
		if r := more.refresh("web", first.Refresh); string(r.Details) != string(first.Details) {
			t.Errorf("got %s, had %s", r.Details, first.Details)
		}
	})
	t.Run("a new user name is what a token says", func(t *testing.T) {
		s := tokenServer(t)
		first := s.login("web")
		account(func(a *store.Account) { a.Username = "anne" })(t, s)
		if name := s.verify(s.refresh("web", first.Refresh).AccessToken).Username; name != "anne" {
			t.Errorf("got %q", name)
		}
	})
	t.Run("a public client that became a confidential one keeps its token", func(t *testing.T) {
		s := tokenServer(t)
		first := s.login("app")
		second := s.refresh("app", first.Refresh)
		now := s.reload(func(o *as.Options) {
			i := slices.IndexFunc(o.Clients, func(c store.Client) bool { return c.ID == "app" })
			o.Clients[i].AuthMethod, o.Clients[i].SecretHash = as.AuthSecretPost, as.HashClientSecret(clientSecret)
		})
		secret := set("client_secret", clientSecret)
		if r := now.refresh("app", first.Refresh, secret); r.Refresh != second.Refresh {
			t.Errorf("a repeat: %+v", r)
		}
		if r := now.refresh("app", second.Refresh, secret); r.status != http.StatusOK || r.Refresh != second.Refresh {
			t.Errorf("got %+v", r)
		}
	})
}

func ofWeb(o *as.Options) *store.Client {
	return &o.Clients[slices.IndexFunc(o.Clients, func(c store.Client) bool { return c.ID == "web" })]
}

func grantTypes(o *as.Options, types ...string) { ofWeb(o).GrantTypes = types }
func secretHash(o *as.Options, hash []byte)     { ofWeb(o).SecretHash = hash }
func allGrants(t *testing.T, s *server) []store.Grant {
	t.Helper()
	grants, err := s.store.ListGrants(t.Context(), store.GrantFilter{})
	must(t, err)
	return grants
}

func revokeAll(t *testing.T, s *server) {
	t.Helper()
	for _, g := range allGrants(t, s) {
		must(t, s.store.RevokeGrant(t.Context(), g.ID, time.Now()))
	}
}

func endSession(t *testing.T, s *server) {
	t.Helper()
	_, err := s.store.EndSession(t.Context(), issuer, allGrants(t, s)[0].SessionID, time.Now())
	must(t, err)
}

func TestSignedOut(t *testing.T) {
	for name, leave := range map[string]func(*testing.T, *server, *browser){
		"another account at the consent page": func(t *testing.T, _ *server, b *browser) {
			t.Helper()
			b.answer(b.open(request(set("prompt", "consent"))), "switch")
		},
		"somebody else who signs in": func(t *testing.T, s *server, b *browser) {
			t.Helper()
			_, err := s.accounts.Create(t.Context(), "bob", password, []string{"user"})
			must(t, err)
			b.signIn(b.open(request(set("prompt", "login"))), "bob", password)
		},
	} {
		t.Run(name+" ends what was granted in the session, and nothing else", func(t *testing.T) {
			s := tokenServer(t)
			b := s.newBrowser()
			web, app := s.loginIn(b, "web"), s.loginIn(b, "app")
			elsewhere := s.login("web")
			leave(t, s, b)
			if s.works("web", web.Refresh) || s.works("app", app.Refresh) {
				t.Error("a session that ended can be refreshed")
			}
			if !s.works("web", elsewhere.Refresh) {
				t.Error("a session in another browser ended too")
			}
			if sid := s.verify(web.AccessToken).SessionID; !slices.Contains(s.log(), "sid:"+sid) || s.pokes.Load() == 0 {
				t.Errorf("log: %v", s.log())
			}
			if !slices.Contains(s.events(), as.EventSessionEnded) {
				t.Errorf("audit trail: %v", s.events())
			}
		})
	}
	t.Run("who signs in again goes on", func(t *testing.T) {
		s := tokenServer(t)
		b := s.newBrowser()
		web := s.loginIn(b, "web")
		page := b.open(request(set("client_id", "web"), set("prompt", "login")))
		code := b.signIn(page, "ann", password).sent(t, callback).Get("code")
		r := s.token(exchange(code, identity("web")), credentials("web"))
		if s.verify(r.AccessToken).SessionID != s.verify(web.AccessToken).SessionID || !s.works("web", web.Refresh) || len(s.log()) != 0 {
			t.Errorf("log %v, token %+v", s.log(), r)
		}
	})
	t.Run("a login session that merely expired does not end what was granted in it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := tokenServer(t)
			web := s.login("web")
			sleep(as.DefaultBrowserSessionTTL + time.Hour)
			if !s.works("web", web.Refresh) {
				t.Error("it did")
			}
		})
	})
}

// TestRefresh_parallel has many use one token at once: all succeed, and a public client's get one successor.
func TestRefresh_parallel(t *testing.T) {
	for _, client := range []string{"app", "web"} {
		t.Run(client, func(t *testing.T) {
			s := tokenServer(t)
			first := s.login(client)
			const parallel = 50
			answers := make([]tokenReply, parallel)
			var wg sync.WaitGroup
			for i := range parallel {
				wg.Go(func() { answers[i] = s.refresh(client, first.Refresh) })
			}
			wg.Wait()
			tokens, successors := map[string]bool{}, map[string]bool{}
			for _, r := range answers {
				if r.status != http.StatusOK {
					t.Fatalf("got %d %s\n%s", r.status, r.Error, s.logs)
				}
				tokens[s.verify(r.AccessToken).ID] = true
				successors[r.Refresh] = true
			}
			if len(tokens) != parallel || len(successors) != 1 || successors[first.Refresh] != (client == "web") {
				t.Errorf("%d tokens, %d successors", len(tokens), len(successors))
			}
			if len(s.log()) != 0 || !s.works(client, answers[0].Refresh) {
				t.Errorf("the family ended: %v", s.log())
			}
		})
	}
	t.Run("a code with a refresh token", func(t *testing.T) {
		s := tokenServer(t)
		code := s.code(request(set("client_id", "web")))
		answers := make([]tokenReply, 50)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() { answers[i] = s.token(exchange(code, identity("web")), credentials("web")) })
		}
		wg.Wait()
		winners := slices.DeleteFunc(answers, func(r tokenReply) bool {
			if r.status != http.StatusOK && (r.status != http.StatusBadRequest || r.Error != "invalid_grant") {
				t.Errorf("a loser got %d %s", r.status, r.Error)
			}
			return r.status != http.StatusOK
		})
		if len(winners) != 1 || !s.works("web", winners[0].Refresh) {
			t.Errorf("%d winners", len(winners))
		}
	})
}

func TestRefresh_reusedCodeEndsTheFamily(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tokenServer(t)
		code := s.code(request(set("client_id", "web")))
		redeem := func() tokenReply { return s.token(exchange(code, identity("web")), credentials("web")) }
		first := redeem()
		sleep(9 * time.Second)
		if r := redeem(); r.Error != "invalid_grant" || !s.works("web", first.Refresh) {
			t.Errorf("a double request: %+v", r)
		}
		sleep(2 * time.Second)
		if r := redeem(); r.Error != "invalid_grant" || s.works("web", first.Refresh) {
			t.Errorf("a replay: %+v", r)
		}
	})
}
