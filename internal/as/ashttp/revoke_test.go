package ashttp_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

func TestRevoke_refreshToken(t *testing.T) {
	for _, client := range []string{"app", "web", "post"} {
		t.Run(client, func(t *testing.T) {
			s := tokenServer(t)
			b := s.newBrowser()
			first := s.loginIn(b, client)
			other := s.loginIn(b, client) // another grant in the same session
			claims := s.verify(first.AccessToken)
			r := s.revoke(client, first.Refresh, set("token_type_hint", "refresh_token"))
			if r.status != http.StatusOK || r.header.Get("Cache-Control") != "no-store" {
				t.Fatalf("got %+v\n%s", r, s.logs)
			}
			if s.works(client, first.Refresh) {
				t.Error("the token works")
			}
			if got := s.log(); !slices.Equal(got, []string{"grant:" + claims.GrantID}) || s.pokes.Load() != 1 {
				t.Errorf("log %v, %d pokes", got, s.pokes.Load())
			}
			if last := s.lastRecord(); last.Event != as.EventGrantRevoked || last.Actor != client || last.Details["grant_id"] != claims.GrantID {
				t.Errorf("audit record: %+v", last)
			}
			if !s.works(client, other.Refresh) {
				t.Error("another grant ended too")
			}
			if r := s.revoke(client, first.Refresh); r.status != http.StatusOK || s.pokes.Load() != 1 {
				t.Errorf("again: %+v, %d pokes", r, s.pokes.Load())
			}
		})
	}
	t.Run("one that was rotated takes its family with it", func(t *testing.T) {
		s := tokenServer(t)
		first := s.login("app")
		second := s.refresh("app", first.Refresh)
		if r := s.revoke("app", first.Refresh); r.status != http.StatusOK || s.works("app", second.Refresh) {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("one that is idle for too long takes its family with it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := tokenServer(t)
			first := s.login("app")
			sleep(25 * time.Hour)
			if r := s.revoke("app", first.Refresh); r.status != http.StatusOK || len(s.log()) != 1 {
				t.Errorf("got %+v, log %v", r, s.log())
			}
		})
	})
}

func TestRevoke_accessToken(t *testing.T) {
	s := tokenServer(t)
	first := s.login("web")
	claims := s.verify(first.AccessToken)
	t.Run("goes alone", func(t *testing.T) {
		if r := s.revoke("web", first.AccessToken, set("token_type_hint", "refresh_token")); r.status != http.StatusOK { // hints may be wrong
			t.Fatalf("got %+v", r)
		}
		if got := s.log(); !slices.Equal(got, []string{"jti:" + claims.ID}) || s.pokes.Load() != 1 || !s.works("web", first.Refresh) {
			t.Errorf("log %v, %d pokes", got, s.pokes.Load())
		}
		if r := s.revoke("web", first.AccessToken); r.status != http.StatusOK || s.pokes.Load() != 1 || len(s.log()) != 1 {
			t.Errorf("again: %+v", r)
		}
		issued, err := s.store.IssuedToken(t.Context(), claims.ID)
		if err != nil || issued.RevokedAt.IsZero() {
			t.Errorf("trace: %+v, %v", issued, err)
		}
	})
	t.Run("of client credentials", func(t *testing.T) {
		token := s.clientCredentials("backend").AccessToken
		if r := s.revoke("backend", token); r.status != http.StatusOK || !slices.Contains(s.log(), "jti:"+s.verify(token).ID) {
			t.Errorf("got %+v, log %v", r, s.log())
		}
	})
	t.Run("must be shown as it was issued", func(t *testing.T) {
		log := s.log()
		token := s.login("web").AccessToken
		parts := strings.Split(token, ".")
		for name, forged := range map[string]string{
			"another signature":   parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2])),
			"no signature":        parts[0] + "." + parts[1] + ".",
			"alg none":            "eyJhbGciOiJub25lIn0." + parts[1] + ".",
			"another key's":       assertion(t, clientKey(t), map[string]any{"jti": s.verify(token).ID}, nil),
			"two of the parts":    parts[0] + "." + parts[1],
			"of another issuer's": s.sibling("https://as2.example").clientCredentials("backend").AccessToken,
		} {
			if r := s.revoke("web", forged); r.status != http.StatusOK || len(s.log()) != len(log) {
				t.Errorf("%s: %+v, log %v", name, r, s.log())
			}
		}
	})
}

// TestRevoke_broker is what signing out is: report 16 of other servers.
func TestRevoke_broker(t *testing.T) {
	for name, pick := range map[string]func(tokenReply) string{
		"a refresh token": func(r tokenReply) string { return r.Refresh },
		"an access token": func(r tokenReply) string { return r.AccessToken },
	} {
		t.Run(name+" ends the login session", func(t *testing.T) {
			s := tokenServer(t)
			b, second := s.newBrowser(), s.newBrowser()
			hub, web := s.loginIn(b, "hub"), s.loginIn(b, "web")
			elsewhere := s.loginIn(second, "hub")
			sid := s.verify(hub.AccessToken).SessionID
			if r := s.revoke("hub", pick(hub)); r.status != http.StatusOK {
				t.Fatalf("got %+v\n%s", r, s.logs)
			}
			if s.works("hub", hub.Refresh) || s.works("web", web.Refresh) {
				t.Error("something of the session works")
			}
			if got := s.log(); !slices.Equal(got, []string{"sid:" + sid}) || s.pokes.Load() != 1 {
				t.Errorf("log %v, %d pokes", got, s.pokes.Load())
			}
			if last := s.lastRecord(); last.Event != as.EventSessionEnded || last.Subject != s.ann.ID || last.Details["sid"] != sid {
				t.Errorf("audit record: %+v", last)
			}
			if r := b.open(request(set("client_id", "web"))); r.Request.URL.Path != "/login" {
				t.Errorf("the browser is signed in: %s", r.Request.URL)
			}
			if !s.works("hub", elsewhere.Refresh) {
				t.Error("another browser's session ended too")
			}
			if r := s.loginIn(b, "hub"); s.verify(r.AccessToken).SessionID == sid || !s.works("hub", r.Refresh) {
				t.Error("a new session does not work")
			}
			events, pokes := s.events(), s.pokes.Load()
			if r := s.revoke("hub", pick(hub)); r.status != http.StatusOK || len(s.log()) != 1 {
				t.Errorf("again: %+v, log %v", r, s.log())
			}
			if got := s.events(); !slices.Equal(got, events) || s.pokes.Load() != pokes {
				t.Errorf("again: events %v, %d pokes", got, s.pokes.Load())
			}
		})
	}
	t.Run("a session whose grant was revoked before ends all the same", func(t *testing.T) {
		s := tokenServer(t)
		b := s.newBrowser()
		hub := s.loginIn(b, "hub")
		revokeAll(t, s)
		if r := s.revoke("hub", hub.Refresh); r.status != http.StatusOK {
			t.Errorf("got %+v", r)
		}
		if r := b.open(request(set("client_id", "web"))); r.Request.URL.Path != "/login" {
			t.Error("the browser is signed in")
		}
	})
}

// TestRevoke_refusals sends what RFC 7009 section 2.2.1 has refused, and what is none of the client's business.
func TestRevoke_refusals(t *testing.T) {
	s := tokenServer(t)
	web, app := s.login("web"), s.login("app")
	for name, tc := range map[string]struct {
		client, token string
		change        []func(url.Values)
		status        int
		want          string
	}{
		"no token":                      {"web", "", nil, 400, "invalid_request"},
		"a token twice":                 {"web", web.Refresh, []func(url.Values){add("token", web.Refresh)}, 400, "invalid_request"},
		"another client's id":           {"web", web.Refresh, []func(url.Values){set("client_id", "hub")}, 400, "invalid_request"},
		"an unknown client":             {"nobody", web.Refresh, nil, 401, "invalid_client"},
		"a client that proves nothing":  {"app", web.Refresh, []func(url.Values){set("client_id", "web")}, 401, "invalid_client"},
		"another's refresh token":       {"web", app.Refresh, nil, 400, "invalid_grant"},
		"another's, by a broker":        {"hub", web.Refresh, nil, 400, "invalid_grant"},
		"another's, by a public client": {"app", web.Refresh, nil, 400, "invalid_grant"},
		"another's access token":        {"web", app.AccessToken, nil, 400, "invalid_grant"},
		"another's, the other way":      {"app", web.AccessToken, nil, 400, "invalid_grant"},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			r := s.revoke(tc.client, tc.token, tc.change...)
			if r.status != tc.status || r.Error != tc.want || r.header.Get("Cache-Control") != "no-store" {
				t.Errorf("got %d %s, want %d %s", r.status, r.Error, tc.status, tc.want)
			}
		})
	}
	for name, token := range map[string]string{
		"an unknown refresh token": "rt_" + strings.Repeat("x", 43),
		"something else":           "x",
		"something like a token":   "a.b.c",
		"a long one":               strings.Repeat("x.", 10000) + "x",
		"bytes":                    "\xff\x00",
	} {
		t.Run("has nothing against "+name, func(t *testing.T) {
			if r := s.revoke("web", token, set("token_type_hint", "nonsense")); r.status != http.StatusOK {
				t.Errorf("got %+v", r)
			}
		})
	}
	if len(s.log()) != 0 || !s.works("web", web.Refresh) || !s.works("app", app.Refresh) {
		t.Errorf("something was revoked: %v", s.log())
	}
}

// TestRevoke_beside has tokens issued and revoked at once: none gets away.
func TestRevoke_beside(t *testing.T) {
	s := tokenServer(t)
	first := s.login("web")
	grant := s.verify(first.AccessToken).GrantID
	answers := make([]tokenReply, 30)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			if i == 10 {
				answers[i] = s.revoke("web", first.Refresh)
				return
			}
			answers[i] = s.refresh("web", first.Refresh)
		})
	}
	wg.Wait()
	entries, err := s.store.RevocationsSince(t.Context(), 0, 10)
	must(t, err)
	if len(entries) != 1 || entries[0].Value != grant {
		t.Fatalf("log: %v", entries)
	}
	for i, r := range answers {
		switch {
		case r.status == http.StatusOK && i == 10:
		case r.status == http.StatusOK:
			if c := s.verify(r.AccessToken); c.IssuedAt.After(entries[0].IssuedBefore) || c.ExpiresAt.After(entries[0].Until.Add(time.Millisecond)) {
				t.Errorf("a token got away: %+v, %+v", c, entries[0])
			}
		case r.Error != "invalid_grant":
			t.Errorf("got %+v", r)
		}
	}
}

// page reads the revocation log as a hub does.
func (s *server) page(client string, form url.Values) (as.RevocationsPage, tokenReply) {
	s.t.Helper()
	w := s.send("/revocations", form, credentials(client))
	var page as.RevocationsPage
	must(s.t, json.Unmarshal(w.Body.Bytes(), &page))
	return page, s.answer(w)
}

func TestRevocations(t *testing.T) {
	s := tokenServer(t)
	at := time.UnixMilli(1_900_000_000_123)
	entry := func(of, kind, value string) int64 {
		seq, err := s.store.Revoke(t.Context(), store.Revocation{
			Issuer: of, Kind: store.RevocationKind(kind), Value: value, IssuedBefore: at, Until: at.Add(10 * time.Minute),
		})
		must(t, err)
		return seq
	}
	first := entry(issuer, "jti", "a")
	entry("https://as2.example", "jti", "b")
	third := entry(issuer, "sid", "c")
	last := entry("https://as2.example", "sub", "d")
	want := func(seq int64, kind, value string) as.RevocationEntry {
		return as.RevocationEntry{Seq: seq, Kind: kind, Value: value, IssuedBefore: 1_900_000_000.123, Until: 1_900_000_600.123}
	}
	for name, tc := range map[string]struct {
		form url.Values
		want as.RevocationsPage
	}{
		"all":           {url.Values{}, as.RevocationsPage{Revocations: []as.RevocationEntry{want(first, "jti", "a"), want(third, "sid", "c")}, Last: last}},
		"since nothing": {url.Values{"since": {"0"}, "limit": {"1000"}}, as.RevocationsPage{Revocations: []as.RevocationEntry{want(first, "jti", "a"), want(third, "sid", "c")}, Last: last}},
		"one":           {url.Values{"limit": {"1"}}, as.RevocationsPage{Revocations: []as.RevocationEntry{want(first, "jti", "a")}, Last: first}},
		"after it":      {url.Values{"since": {strconv.FormatInt(first, 10)}}, as.RevocationsPage{Revocations: []as.RevocationEntry{want(third, "sid", "c")}, Last: last}},
		"after all":     {url.Values{"since": {strconv.FormatInt(last, 10)}}, as.RevocationsPage{Revocations: []as.RevocationEntry{}, Last: last}},
		"far ahead":     {url.Values{"since": {"9223372036854775807"}}, as.RevocationsPage{Revocations: []as.RevocationEntry{}, Last: 9223372036854775807}},
	} {
		t.Run(name, func(t *testing.T) {
			got, r := s.page("hub", tc.form)
			if diff := cmp.Diff(tc.want, got); diff != "" || r.status != http.StatusOK || r.header.Get("Cache-Control") != "no-store" {
				t.Errorf("got %d\n%s", r.status, diff)
			}
		})
	}
	t.Run("an empty page is a list", func(t *testing.T) {
		since := strconv.FormatInt(last, 10)
		w := s.send("/revocations", url.Values{"since": {since}}, credentials("hub"))
		if w.Body.String() != `{"revocations":[],"last":`+since+`}` {
			t.Errorf("got %s", w.Body)
		}
	})
	for name, tc := range map[string]struct {
		client string
		form   url.Values
		status int
		want   string
	}{
		"a client that is no broker": {"web", url.Values{}, 400, "unauthorized_client"},
		"a public client":            {"app", url.Values{"client_id": {"app"}}, 400, "unauthorized_client"},
		"nobody":                     {"app", url.Values{}, 401, "invalid_client"},
		"a broker that is not":       {"app", url.Values{"client_id": {"hub"}}, 401, "invalid_client"},
		"a negative number":          {"hub", url.Values{"since": {"-1"}}, 400, "invalid_request"},
		"no number":                  {"hub", url.Values{"since": {"x"}}, 400, "invalid_request"},
		"a number too many":          {"hub", url.Values{"since": {"1", "2"}}, 400, "invalid_request"},
		"too large a number":         {"hub", url.Values{"since": {"9223372036854775808"}}, 400, "invalid_request"},
		"no entries":                 {"hub", url.Values{"limit": {"0"}}, 400, "invalid_request"},
		"too many entries":           {"hub", url.Values{"limit": {"1001"}}, 400, "invalid_request"},
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			if _, r := s.page(tc.client, tc.form); r.status != tc.status || r.Error != tc.want {
				t.Errorf("got %d %s, want %d %s", r.status, r.Error, tc.status, tc.want)
			}
		})
	}
	for name, want := range map[string]string{
		"since": "The parameter since must be a whole number, 0 or more.",
		"limit": "The parameter limit must be a whole number, from 1 to 1000.",
	} {
		t.Run("says what is right for "+name, func(t *testing.T) {
			w := s.send("/revocations", url.Values{name: {"-1"}}, credentials("hub"))
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("got %s", w.Body)
			}
		})
	}
	t.Run("goes on behind many entries of others", func(t *testing.T) {
		for i := range 1010 {
			entry("https://as2.example", "jti", strconv.Itoa(i))
		}
		end := entry(issuer, "client", "e")
		got, _ := s.page("hub", url.Values{"since": {strconv.FormatInt(last, 10)}})
		if len(got.Revocations) != 1 || got.Revocations[0].Seq != end || got.Last != end {
			t.Errorf("got %+v", got)
		}
	})
}
