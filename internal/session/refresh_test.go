package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/session"
	"github.com/cinnabar-hub/cinnabar/internal/token"
	"github.com/cinnabar-hub/cinnabar/test/bubble"
)

// renewable signs a browser in at a server that gives refresh tokens: the same one each time, as a confidential client gets it.
func renewable(t *testing.T, change func(*session.Options)) (*fixture, *browser) {
	t.Helper()
	f, b := setup(t, change), &browser{}
	f.server.refresh = func() string { return "refresh-1" }
	number := 0
	f.server.mint = func(c *token.MintClaims) { number++; c.ID = fmt.Sprintf("jti-%d", number) }
	f.signIn(b, "")
	return f, b
}

// clone gives a browser with the same cookies, for requests that overlap.
func (b *browser) clone() *browser { return &browser{cookies: slices.Clone(b.cookies)} }

func (b *browser) drop(name string) {
	b.cookies = slices.DeleteFunc(b.cookies, func(c *http.Cookie) bool { return c.Name == name })
}

func (b *browser) set(name, value string) {
	for _, c := range b.cookies {
		if c.Name == name {
			c.Value = value
		}
	}
}

func document(t *testing.T, resp *http.Response) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRefresh_Life(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, b := renewable(t, nil)
		for n := range 400 { // more than two days: the idle time slides
			bubble.Advance(8 * time.Minute)
			before := b.value(hubCookie)
			resp := f.post(b, "refresh")
			if resp.StatusCode != http.StatusOK || b.value(hubCookie) == before {
				t.Fatalf("renewal %d = %d", n, resp.StatusCode)
			}
			now := time.Now().UTC()
			want := map[string]any{
				"active": true, "renewable": true, "sub": subject, "username": "demo", "now": now.Format("2006-01-02T15:04:05.000Z"),
				"expires_at":    now.Add(10 * time.Minute).Format(time.RFC3339),
				"refresh_after": now.Add(8 * time.Minute).Format(time.RFC3339),
			}
			if diff := cmp.Diff(want, document(t, resp)); diff != "" {
				t.Fatalf("renewal %d (-want +got):\n%s", n, diff)
			}
			if n > 0 {
				continue
			}
			cookies := []string{
				hubCookie + "=*; Path=/.well-known/mercure; Max-Age=86400; HttpOnly; Secure; SameSite=Strict",
				sessionCookie + "=*; Path=/; Max-Age=86400; HttpOnly; Secure; SameSite=Strict",
			}
			if diff := cmp.Diff(cookies, blank(resp)); diff != "" {
				t.Errorf("cookies (-want +got):\n%s", diff)
			}
		}
		if len(f.ended) > 0 {
			t.Errorf("renewing ended %v", f.ended)
		}
		f.noSecrets(b)
		f.post(b, "logout")
		want := []session.Ended{{Issuer: issuerID, SessionID: "sid-1", TokenIDs: []string{"jti-400", "jti-401"}}}
		if diff := cmp.Diff(want, f.ended); diff != "" {
			t.Errorf("DECISION-18 the last two tokens are known (-want +got):\n%s", diff)
		}
	})
}

func TestRefresh_AfterTheTokenExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, b := renewable(t, nil)
		bubble.Advance(12 * time.Hour) // the lid was closed
		if got := document(t, f.post(b, "refresh")); got["active"] != true {
			t.Errorf("refresh = %v", got)
		}
		if got := f.status(b); got["active"] != true {
			t.Errorf("status = %v", got)
		}
		b.drop(hubCookie)
		bubble.Advance(time.Minute)
		if got := document(t, f.post(b, "refresh")); got["active"] != true || b.value(hubCookie) == "" {
			t.Errorf("refresh without the hub cookie = %v", got)
		}
	})
}

func TestRefresh_DeadGrant(t *testing.T) {
	for name, status := range map[string]int{"RFC 6749 section 5.2": 400, "another status": 401} {
		t.Run(name, func(t *testing.T) {
			f, b := renewable(t, func(o *session.Options) { o.CookieDomain = "example.com" })
			f.server.answer = func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, `{"error":"invalid_grant"}`)
			}
			copied := b.clone()
			resp := f.post(b, "refresh")
			if resp.StatusCode != http.StatusUnauthorized || len(b.cookies) != 0 {
				t.Errorf("refresh = %d, cookies %v", resp.StatusCode, b.names())
			}
			ended := slices.Clone(f.ended)
			if again := f.post(copied, "refresh"); again.StatusCode != http.StatusUnauthorized || f.server.renewals != 1 {
				t.Errorf("a copy of the cookies = %d after %d requests", again.StatusCode, f.server.renewals)
			}
			want := []string{
				hubCookie + "=; Path=/.well-known/mercure; Max-Age=0; HttpOnly; Secure; SameSite=Strict",
				hubCookie + "=; Path=/.well-known/mercure; Domain=example.com; Max-Age=0; HttpOnly; Secure; SameSite=Strict",
				sessionCookie + "=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Strict",
			}
			if diff := cmp.Diff(want, blank(resp)); diff != "" {
				t.Errorf("cookies (-want +got):\n%s", diff)
			}
			if got := resp.Header.Get("WWW-Authenticate"); got != `Cinnabar-Session login_uri="`+hubURL+`/session/login"` {
				t.Errorf("WWW-Authenticate = %q", got)
			}
			if diff := cmp.Diff([]session.Ended{{Issuer: issuerID, TokenIDs: []string{"jti-1"}}}, ended); diff != "" {
				t.Errorf("ended (-want +got):\n%s", diff)
			}
			f.noSecrets(b)
		})
	}
}

// TestRefresh_Interrupted has everything that is no verdict about the grant: nothing is taken away, and the next try succeeds.
func TestRefresh_Interrupted(t *testing.T) {
	answer := func(status int, body string) func(*fixture) {
		return func(f *fixture) {
			f.server.answer = func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body)
			}
		}
	}
	mint := func(change func(*token.MintClaims)) func(*fixture) {
		return func(f *fixture) { f.server.mint = change }
	}
	tests := map[string]func(*fixture){
		"no connection":           func(f *fixture) { f.server.down = true },
		"an internal error":       answer(500, `oops`),
		"too many requests":       answer(429, ``),
		"the client is refused":   answer(401, `{"error":"invalid_client"}`),
		"the request is refused":  answer(400, `{"error":"invalid_request"}`),
		"not JSON":                answer(200, `<html>`),
		"no token":                answer(200, `{"token_type":"Bearer"}`),
		"a token that is none":    answer(200, `{"access_token":"x","token_type":"Bearer"}`),
		"a foreign subject":       mint(func(c *token.MintClaims) { c.Subject = "u_other" }),
		"a foreign client":        mint(func(c *token.MintClaims) { c.ClientID = "spa" }),
		"a foreign login":         mint(func(c *token.MintClaims) { c.SessionID = "sid-2" }),
		"another hub":             mint(func(c *token.MintClaims) { c.Audience = "https://other.example" }),
		"nothing to read":         mint(func(c *token.MintClaims) { c.AuthorizationDetails = nil }),
		"a token that is too big": mint(func(c *token.MintClaims) { c.GrantID = strings.Repeat("g", 3000) }),
	}
	for name, arrange := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, b := renewable(t, nil)
				before := slices.Clone(b.cookies)
				mint := f.server.mint
				arrange(f)
				resp := f.post(b, "refresh")
				if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
					t.Errorf("refresh = %d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
				}
				if diff := cmp.Diff(before, b.cookies); diff != "" || len(f.ended) > 0 {
					t.Errorf("ended %v, cookies (-want +got):\n%s", f.ended, diff)
				}
				f.noSecrets(b)
				f.server.mint, f.server.answer, f.server.down = mint, nil, false
				bubble.Advance(5 * time.Second)
				if resp := f.post(b, "refresh"); resp.StatusCode != http.StatusOK {
					t.Errorf("the next try = %d", resp.StatusCode)
				}
			})
		})
	}
}

// TestRefresh_ForeignToken has the log name the claim that differs, and no value.
func TestRefresh_ForeignToken(t *testing.T) {
	for claim, change := range map[string]func(*token.MintClaims){
		"sub": func(c *token.MintClaims) { c.Subject = "u_other" },
		"sid": func(c *token.MintClaims) { c.SessionID = "sid-other" },
	} {
		t.Run(claim, func(t *testing.T) {
			f, b := renewable(t, nil)
			f.server.mint = change
			f.post(b, "refresh")
			if log := f.logs.String(); !strings.Contains(log, "its "+claim+" differs") || strings.Contains(log, "other") {
				t.Errorf("log = %s", log)
			}
		})
	}
}

func TestRefresh_Unjudged(t *testing.T) {
	f, b := renewable(t, nil)
	f.verify = func(context.Context, string) (*token.Claims, error) { return nil, token.ErrUnavailable }
	resp := f.post(b, "refresh")
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || len(b.cookies) != 2 || f.server.renewals > 0 {
		t.Errorf("refresh = %d, cookies %v, %d requests", resp.StatusCode, b.names(), f.server.renewals)
	}
}

func TestRefresh_RotatedToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, b := renewable(t, nil)
		number := 1
		f.server.refresh = func() string { number++; return fmt.Sprintf("refresh-%d", number) }
		rotate := func() int {
			bubble.Advance(time.Minute)
			old := number
			resp := f.post(b, "refresh")
			f.server.mu.Lock()
			f.server.refreshes[fmt.Sprintf("refresh-%d", old)] = false // used up
			f.server.mu.Unlock()
			return resp.StatusCode
		}
		for range 3 {
			if got := rotate(); got != http.StatusOK {
				t.Fatalf("refresh = %d", got)
			}
		}
		good := f.verify
		calls := 0
		f.verify = func(ctx context.Context, compact string) (*token.Claims, error) {
			if calls++; calls == 2 { // the first judges the cookie
				return nil, token.ErrUnavailable
			}
			return good(ctx, compact)
		}
		before := b.value(hubCookie)
		if got := rotate(); got != http.StatusServiceUnavailable || b.value(hubCookie) != before {
			t.Errorf("refresh with keys that cannot be had = %d", got)
		}
		f.verify = good
		if got := rotate(); got != http.StatusOK {
			t.Errorf("the next refresh = %d: the new refresh token was lost", got)
		}
		f.noSecrets(b)
	})
}

func TestRefresh_AbsoluteEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, b := renewable(t, func(o *session.Options) { o.Idle, o.Absolute = 15*time.Minute, 15*time.Minute })
		bubble.Advance(8 * time.Minute)
		resp := f.post(b, "refresh")
		if got, want := document(t, resp)["expires_at"], time.Now().UTC().Add(7*time.Minute).Format(time.RFC3339); got != want {
			t.Errorf("expires_at = %v, want the absolute end %v", got, want)
		}
		if got := blank(resp)[1]; !strings.Contains(got, "Max-Age=420;") {
			t.Errorf("session cookie = %s, want it to end with the session", got)
		}
		kept := b.clone()
		bubble.Advance(7 * time.Minute)
		renewals := f.server.renewals
		if resp := f.post(kept, "refresh"); resp.StatusCode != http.StatusUnauthorized || f.server.renewals != renewals || len(kept.cookies) != 0 {
			t.Errorf("after the end = %d, cookies %v", resp.StatusCode, kept.names())
		}
		if got := f.status(b); got["active"] != false || got["renewable"] != false || len(b.cookies) != 0 {
			t.Errorf("status = %v, cookies %v", got, b.names())
		}
		ended := session.Ended{Issuer: issuerID, TokenIDs: []string{"jti-1", "jti-2"}}
		if diff := cmp.Diff([]session.Ended{ended, ended}, f.ended); diff != "" {
			t.Errorf("ended (-want +got):\n%s", diff)
		}
	})
}

// TestRefresh_OneInFlight has many tabs ask at once, and again while the answer is fresh.
func TestRefresh_OneInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, b := renewable(t, nil)
		f.server.hold = make(chan struct{})
		var wg sync.WaitGroup
		tabs := make([]*browser, 50)
		for i := range tabs {
			tabs[i] = b.clone()
			wg.Go(func() {
				if resp := f.post(tabs[i], "refresh"); resp.StatusCode != http.StatusOK {
					t.Errorf("tab %d = %d", i, resp.StatusCode)
				}
			})
		}
		synctest.Wait()
		close(f.server.hold)
		wg.Wait()
		for i := range tabs {
			if tabs[i].value(hubCookie) != tabs[0].value(hubCookie) || tabs[i].value(hubCookie) == b.value(hubCookie) {
				t.Fatalf("tab %d has another token", i)
			}
		}
		requests := f.server.renewals
		f.post(b.clone(), "refresh") // its answer was lost
		if f.server.renewals != requests {
			t.Error("a repeated renewal went to the authorization server")
		}
		bubble.Advance(2 * time.Second)
		f.post(tabs[0], "refresh")
		if f.server.renewals != requests+1 || tabs[0].value(hubCookie) == tabs[1].value(hubCookie) {
			t.Errorf("%d requests two seconds later, want one more", f.server.renewals-requests)
		}
	})
}

func TestRefresh_Refused(t *testing.T) {
	tests := map[string]struct {
		arrange func(f *fixture, b *browser)
		want    int
		cookies int // left
	}{
		"no cookies": {func(_ *fixture, b *browser) { b.cookies = nil }, 401, 0},
		"a session cookie that cannot be read": {func(f *fixture, b *browser) {
			b.set(sessionCookie, "x")
			b.set(hubCookie, "y")
		}, 401, 0},
		"a session cookie of another issuer": {func(f *fixture, b *browser) {
			f.options.Issuer = "https://other.example"
			f.register()
			b.set(hubCookie, "y")
		}, 401, 0},
		"DECISION-21 a cookie that a backend set": {func(f *fixture, b *browser) {
			f.server.mint = func(c *token.MintClaims) { c.Subject, c.ClientID = "u_other", "backend" }
			compact, err := f.server.issue()
			if err != nil {
				f.t.Fatal(err)
			}
			b.set(hubCookie, compact)
			b.drop(sessionCookie)
		}, 409, 1},
		"a hub cookie of somebody else": {func(f *fixture, b *browser) {
			f.server.mint = func(c *token.MintClaims) { c.Subject = "u_other" }
			compact, err := f.server.issue()
			if err != nil {
				f.t.Fatal(err)
			}
			b.set(hubCookie, compact)
		}, 409, 2},
		"no refresh token": {func(f *fixture, b *browser) {
			b.cookies = nil
			f.server.refresh = nil
			f.signIn(b, "")
		}, 409, 2},
		"no refresh token, and the token is over": {func(f *fixture, b *browser) {
			b.cookies = nil
			f.server.refresh = nil
			f.signIn(b, "")
			f.verify = func(context.Context, string) (*token.Claims, error) {
				return nil, &token.InvalidError{Check: token.CheckExp, Reason: "expired"}
			}
		}, 401, 0},
		"DECISION-19 signed out meanwhile": {func(_ *fixture, b *browser) { b.set(hubCookie, "") }, 401, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, b := renewable(t, nil)
			tt.arrange(f, b)
			resp := f.post(b, "refresh")
			if resp.StatusCode != tt.want || len(b.cookies) != tt.cookies {
				t.Errorf("refresh = %d, cookies %v; want %d and %d", resp.StatusCode, b.names(), tt.want, tt.cookies)
			}
			if f.server.renewals != 0 {
				t.Error("the authorization server was asked")
			}
			if resp.StatusCode == http.StatusUnauthorized && !strings.HasPrefix(resp.Header.Get("WWW-Authenticate"), "Cinnabar-Session ") {
				t.Errorf("WWW-Authenticate = %q", resp.Header.Get("WWW-Authenticate"))
			}
		})
	}
}

func TestRefresh_TokenThatDoesNotFit(t *testing.T) {
	for name, value := range map[string]string{
		"beside the rest": strings.Repeat("r", 2000), "at all": strings.Repeat("r", 5000),
	} {
		t.Run(name, func(t *testing.T) {
			f, b := setup(t, nil), &browser{}
			f.server.refresh = func() string { return value }
			f.server.mint = func(c *token.MintClaims) { c.Username = strings.Repeat("n", 500) }
			resp := f.signIn(b, "?return_to=/app")
			if got := resp.Header.Get("Location"); got != "https://hub.example.com/app" {
				t.Fatalf("sign-in ends at %q", got)
			}
			if got := f.status(b); got["active"] != true || got["renewable"] != false {
				t.Errorf("status = %v", got)
			}
			if log := f.logs.String(); !strings.Contains(log, "level=WARN") || !strings.Contains(log, "session cannot be renewed") {
				t.Error("nothing was logged")
			}
			f.noSecrets(b)
		})
	}
}

// TestRefresh_RenewedTokenDoesNotFit has the answer describe the session as its cookie has it.
func TestRefresh_RenewedTokenDoesNotFit(t *testing.T) {
	f, b := renewable(t, nil)
	f.server.refresh = func() string { return strings.Repeat("r", 5000) }
	resp := f.post(b, "refresh")
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || !strings.Contains(string(body), `"renewable":false`) {
		t.Errorf("refresh = %d %s", resp.StatusCode, body)
	}
	if got := f.status(b); got["active"] != true || got["renewable"] != false {
		t.Errorf("status = %v", got)
	}
}

func TestPosts_CSRF(t *testing.T) {
	tests := map[string]struct {
		header []string
		want   bool
	}{
		"the hub's own page":                   {nil, true},
		"a configured origin":                  {[]string{"Origin", "https://app.example.com"}, true},
		"a Referer of the hub's own":           {[]string{"Origin", "", "Referer", "https://hub.example.com/a?b=%5C#c"}, true},
		"a Referer of a configured one":        {[]string{"Origin", "", "Referer", "http://localhost:5173/"}, true},
		"another origin":                       {[]string{"Origin", "https://evil.example"}, false},
		"a subdomain":                          {[]string{"Origin", "https://x.hub.example.com"}, false},
		"another scheme":                       {[]string{"Origin", "http://hub.example.com"}, false},
		"another port":                         {[]string{"Origin", "https://hub.example.com:8443"}, false},
		"an opaque origin":                     {[]string{"Origin", "null"}, false},
		"an opaque origin with a good Referer": {[]string{"Origin", "null", "Referer", "https://hub.example.com/"}, false},
		"another origin with a good Referer":   {[]string{"Origin", "https://evil.example", "Referer", "https://hub.example.com/"}, false},
		"neither Origin nor Referer":           {[]string{"Origin", ""}, false},
		"another Referer":                      {[]string{"Origin", "", "Referer", "https://evil.example/https://hub.example.com/"}, false},
		"a Referer with credentials":           {[]string{"Origin", "", "Referer", "https://hub.example.com@evil.example/"}, false},
		"a Referer that is no URL":             {[]string{"Origin", "", "Referer", "hub.example.com"}, false},
		"a Referer of another kind":            {[]string{"Origin", "", "Referer", "data:text/html,x"}, false},
		"no mark":                              {[]string{"X-Mercure-Session", ""}, false},
		"another mark":                         {[]string{"X-Mercure-Session", "true"}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, b := renewable(t, nil)
			for _, endpoint := range []string{"refresh", "logout"} {
				before := slices.Clone(b.cookies)
				resp := f.post(b, endpoint, tt.header...)
				if got := resp.StatusCode == http.StatusOK; got != tt.want {
					t.Errorf("%s = %d", endpoint, resp.StatusCode)
				}
				if !tt.want && (resp.StatusCode != http.StatusForbidden || cmp.Diff(before, b.cookies) != "" || len(f.ended)+len(f.server.revoked)+f.server.renewals > 0) {
					t.Errorf("%s = %d and left traces", endpoint, resp.StatusCode)
				}
			}
		})
	}
}

func TestPosts_CORS(t *testing.T) {
	f, b := renewable(t, nil)
	for _, endpoint := range []string{"refresh", "logout"} {
		for origin, allowed := range map[string]bool{"https://app.example.com": true, "https://evil.example": false, "null": false} {
			resp := f.send(&browser{}, http.MethodOptions, hubURL+"/session/"+endpoint,
				"Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "x-mercure-session")
			h := resp.Header
			if resp.StatusCode != http.StatusNoContent || h.Get("Allow") != "POST, OPTIONS" {
				t.Errorf("preflight of %s = %d, Allow %q", endpoint, resp.StatusCode, h.Get("Allow"))
			}
			if !allowed {
				if h.Get("Access-Control-Allow-Origin") != "" || h.Get("Access-Control-Allow-Headers") != "" {
					t.Errorf("%s may %v", origin, h)
				}
				continue
			}
			got := []string{h.Get("Access-Control-Allow-Origin"), h.Get("Access-Control-Allow-Credentials"), h.Get("Access-Control-Allow-Methods"), h.Get("Access-Control-Allow-Headers")}
			if diff := cmp.Diff([]string{origin, "true", "POST", "x-mercure-session, content-type"}, got); diff != "" {
				t.Errorf("preflight of %s (-want +got):\n%s", endpoint, diff)
			}
		}
		resp := f.post(b, endpoint, "Origin", "https://app.example.com")
		if resp.Header.Get("Access-Control-Allow-Origin") != "https://app.example.com" || !slices.Contains(resp.Header.Values("Vary"), "Origin") {
			t.Errorf("%s: the page may not read the answer", endpoint)
		}
		resp = f.post(b, endpoint, "Origin", "https://app.example.com", "X-Mercure-Session", "")
		if resp.StatusCode != http.StatusForbidden || resp.Header.Get("Access-Control-Allow-Origin") != "https://app.example.com" {
			t.Errorf("%s: the page may not read why it was refused", endpoint)
		}
	}
}
