package session_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/lestrrat-go/jwx/v2/jwk"

	"github.com/cinnabar-hub/cinnabar/internal/session"
	"github.com/cinnabar-hub/cinnabar/internal/token"
	"github.com/cinnabar-hub/cinnabar/test/bubble"
)

const (
	hubCookie     = "__Secure-mercure_access_token"
	sessionCookie = "__Host-cinnabar_session"
	loginCookie   = "__Host-cinnabar_login_"
)

func TestLogin_AuthorizationRequest(t *testing.T) {
	for name, metadata := range map[string]func(map[string]any){
		"RFC 9126 pushed": nil,
		"in the address":  func(m map[string]any) { delete(m, "pushed_authorization_request_endpoint") },
	} {
		t.Run(name, func(t *testing.T) {
			f, b := setup(t, nil), &browser{}
			f.server.metadata = metadata
			resp := f.get(b, hubURL+"/session/login?return_to=/app")
			location, err := url.Parse(resp.Header.Get("Location"))
			if err != nil || resp.StatusCode != http.StatusSeeOther {
				t.Fatalf("login = %d, %v", resp.StatusCode, err)
			}
			if got := location.Scheme + "://" + location.Host + location.Path; got != issuerID+"/authorize" {
				t.Errorf("authorization endpoint = %s", got)
			}
			want := url.Values{
				"response_type": {"code"}, "client_id": {clientID}, "redirect_uri": {hubURL + "/session/callback"},
				"code_challenge_method": {"S256"}, "resource": {hubURL}, "scope": {"live"},
			}
			if metadata == nil {
				names := slices.Sorted(maps.Keys(location.Query()))
				if !slices.Equal(names, []string{"client_id", "keep", "request_uri"}) {
					t.Errorf("the address says %v", names)
				}
			} else {
				want.Set("keep", "1")
			}
			q := f.server.request(t, location)
			for _, name := range []string{"state", "code_challenge"} {
				if !regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`).MatchString(q.Get(name)) {
					t.Errorf("%s = %q", name, q.Get(name))
				}
				f.secrets = append(f.secrets, q.Get(name))
				q.Del(name)
			}
			if diff := cmp.Diff(want, q); diff != "" {
				t.Errorf("authorization request (-want +got):\n%s", diff)
			}
			f.noSecrets(b)
		})
	}
}

func TestLogin_Profiles(t *testing.T) {
	f := setup(t, nil)
	location, err := url.Parse(f.get(&browser{}, hubURL+"/session/login?profile=editor").Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	q := f.server.request(t, location)
	if got := q.Get("authorization_details"); got != details {
		t.Errorf("authorization_details = %s", got)
	}
	if q.Has("scope") {
		t.Errorf("scope = %q, want none", q.Get("scope"))
	}
	resp := f.get(&browser{}, hubURL+"/session/login?profile=other")
	if resp.StatusCode != http.StatusBadRequest || len(resp.Header["Set-Cookie"]) > 0 {
		t.Errorf("unknown profile = %d", resp.StatusCode)
	}
}

func TestLogin_PushRefused(t *testing.T) {
	tests := map[string]struct {
		status int
		body   string
		want   string
	}{
		"the client is not known":        {401, `{"error":"invalid_client"}`, session.ErrorFailed},
		"the details are too much":       {400, `{"error":"invalid_authorization_details"}`, session.ErrorFailed},
		"a policy refuses":               {400, `{"error":"access_denied"}`, session.ErrorDenied},
		"the server is busy":             {400, `{"error":"temporarily_unavailable"}`, session.ErrorUnavailable},
		"too many requests":              {429, ``, session.ErrorUnavailable},
		"the server fails":               {500, `oops`, session.ErrorUnavailable},
		"a redirect":                     {302, ``, session.ErrorFailed},
		"the wrong status":               {200, `{"request_uri":"urn:x","expires_in":90}`, session.ErrorFailed},
		"no request_uri":                 {201, `{"expires_in":90}`, session.ErrorFailed},
		"a huge request_uri":             {201, `{"request_uri":"` + strings.Repeat("u", 600) + `"}`, session.ErrorFailed},
		"not JSON":                       {201, `<html>`, session.ErrorFailed},
		"an error that is no error code": {400, `{"error":"<script>alert(1)</script>"}`, session.ErrorFailed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, b := setup(t, nil), &browser{}
			f.server.push = func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			}
			resp := f.get(b, hubURL+"/session/login?return_to=/app")
			want := "https://hub.example.com/app?session_error=" + tt.want
			if got := resp.Header.Get("Location"); resp.StatusCode != http.StatusSeeOther || got != want {
				t.Errorf("login = %d to %q, want %q", resp.StatusCode, got, want)
			}
			if len(b.cookies) > 0 {
				t.Errorf("cookies of a sign-in that did not start: %v", b.names())
			}
			f.noSecrets(b)
		})
	}
}

func TestSignIn(t *testing.T) {
	f, b := setup(t, nil), &browser{}
	resp := f.signIn(b, "?return_to=/app%3Fa%3D1%23top")
	if got := resp.Header.Get("Location"); resp.StatusCode != http.StatusSeeOther || got != "https://hub.example.com/app?a=1#top" {
		t.Fatalf("callback = %d to %q", resp.StatusCode, got)
	}
	if got := b.names(); !slices.Equal(got, []string{hubCookie, sessionCookie}) {
		t.Errorf("cookies = %v", got)
	}
	claims, err := f.verify(t.Context(), b.value(hubCookie))
	if err != nil || claims.Subject != subject {
		t.Errorf("the hub cookie is no usable token: %v", err)
	}
	if f.server.exchanges != 1 {
		t.Errorf("%d token requests, want 1", f.server.exchanges)
	}
	f.noSecrets(b)
}

// TestCookies_Attributes compares every Set-Cookie byte by byte, with the values blanked.
func TestCookies_Attributes(t *testing.T) {
	const hubAttributes = "; Path=/.well-known/mercure; Max-Age=86400; HttpOnly; Secure; SameSite=Strict"
	const gone = "; Max-Age=0; HttpOnly; Secure; SameSite=Strict"
	tests := map[string]struct {
		change          func(*session.Options)
		login, callback []string
		dead            []string // of GET {hub}/session for a session that is over
	}{
		"COOKIE-06 COOKIE-07 COOKIE-08 the default": {
			login: []string{"__Host-cinnabar_login_*=*; Path=/; Max-Age=600; HttpOnly; Secure; SameSite=Lax"},
			callback: []string{
				"__Host-cinnabar_login_*=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax",
				hubCookie + "=*" + hubAttributes,
				"__Host-cinnabar_session=*; Path=/; Max-Age=86400; HttpOnly; Secure; SameSite=Strict",
			},
			dead: []string{hubCookie + "=; Path=/.well-known/mercure" + gone, "__Host-cinnabar_session=; Path=/" + gone},
		},
		"COOKIE-05 a domain": {
			change: func(o *session.Options) { o.CookieDomain = "example.com" },
			login:  []string{"__Host-cinnabar_login_*=*; Path=/; Max-Age=600; HttpOnly; Secure; SameSite=Lax"},
			callback: []string{
				"__Host-cinnabar_login_*=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax",
				hubCookie + "=; Path=/.well-known/mercure" + gone,
				hubCookie + "=*; Path=/.well-known/mercure; Domain=example.com; Max-Age=86400; HttpOnly; Secure; SameSite=Strict",
				"__Host-cinnabar_session=*; Path=/; Max-Age=86400; HttpOnly; Secure; SameSite=Strict",
			},
			dead: []string{
				hubCookie + "=; Path=/.well-known/mercure" + gone,
				hubCookie + "=; Path=/.well-known/mercure; Domain=example.com" + gone,
				"__Host-cinnabar_session=; Path=/" + gone,
			},
		},
		"a second hub on the host": {
			change: func(o *session.Options) { o.CookieName = "__Secure-mercure_access_token-b" },
			login:  []string{"__Host-cinnabar_login-b_*=*; Path=/; Max-Age=600; HttpOnly; Secure; SameSite=Lax"},
			callback: []string{
				"__Host-cinnabar_login-b_*=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax",
				"__Secure-mercure_access_token-b=*" + hubAttributes,
				"__Host-cinnabar_session-b=*; Path=/; Max-Age=86400; HttpOnly; Secure; SameSite=Strict",
			},
		},
		"a name of its own and other lifetimes": {
			change: func(o *session.Options) {
				o.CookieName, o.Idle, o.Absolute = "live", 10*time.Minute, time.Hour
			},
			login: []string{"__Host-cinnabar_login-live_*=*; Path=/; Max-Age=600; HttpOnly; Secure; SameSite=Lax"},
			callback: []string{
				"__Host-cinnabar_login-live_*=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax",
				"live=*; Path=/.well-known/mercure; Max-Age=4200; HttpOnly; Secure; SameSite=Strict", // exp and an hour
				"__Host-cinnabar_session-live=*; Path=/; Max-Age=600; HttpOnly; Secure; SameSite=Strict",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // so that lifetimes are whole
				f, b := setup(t, tt.change), &browser{}
				resp := f.get(b, hubURL+"/session/login")
				if diff := cmp.Diff(tt.login, blank(resp)); diff != "" {
					t.Errorf("login cookies (-want +got):\n%s", diff)
				}
				resp = f.get(b, f.server.authorize(t, resp.Header.Get("Location")))
				if diff := cmp.Diff(tt.callback, blank(resp)); diff != "" {
					t.Errorf("callback cookies (-want +got):\n%s", diff)
				}
				if tt.dead == nil {
					return
				}
				bubble.Advance(10 * time.Minute)
				if diff := cmp.Diff(tt.dead, blank(f.get(b, hubURL+"/session"))); diff != "" {
					t.Errorf("cookies of a dead session (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// blank gives the Set-Cookie lines with their values and the random part of names replaced.
func blank(resp *http.Response) []string {
	names := regexp.MustCompile(`^(__Host-cinnabar_login[^=]*_|cinnabar_login_)[A-Za-z0-9_-]{11}=`)
	values := regexp.MustCompile(`^([^=]+)=[^;]+`)
	var out []string
	for _, line := range resp.Header["Set-Cookie"] {
		out = append(out, values.ReplaceAllString(names.ReplaceAllString(line, "$1*="), "$1=*"))
	}
	return out
}

func TestCookies_Insecure(t *testing.T) {
	f := newFixture(t)
	f.options.HubURL, f.options.Resource = "http://localhost:8080"+hubPath, hubURL
	f.options.CookieName, f.options.InsecureCookie = "mercure_access_token", true
	f.register()
	b := &browser{}
	resp := f.get(b, "http://localhost:8080"+hubPath+"/session/login")
	got := blank(resp)
	resp = f.get(b, f.server.authorize(t, resp.Header.Get("Location")))
	want := []string{
		"cinnabar_login_*=*; Path=/; Max-Age=600; HttpOnly; SameSite=Lax",
		"cinnabar_login_*=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax",
		"mercure_access_token=*; Path=/.well-known/mercure; Max-Age=86400; HttpOnly; SameSite=Strict",
		"cinnabar_session=*; Path=/; Max-Age=86400; HttpOnly; SameSite=Strict",
	}
	if diff := cmp.Diff(want, append(got, blank(resp)...)); diff != "" {
		t.Errorf("cookies (-want +got):\n%s", diff)
	}
}

func TestCallback_Errors(t *testing.T) {
	answer := func(status int, body string) func(*fixture, url.Values) {
		return func(f *fixture, _ url.Values) {
			f.server.answer = func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body)
			}
		}
	}
	mint := func(change func(*token.MintClaims)) func(*fixture, url.Values) {
		return func(f *fixture, _ url.Values) { f.server.mint = change }
	}
	set := func(pairs ...string) func(*fixture, url.Values) {
		return func(_ *fixture, q url.Values) {
			for i := 0; i+1 < len(pairs); i += 2 {
				q.Set(pairs[i], pairs[i+1])
			}
		}
	}
	tests := map[string]struct {
		arrange   func(*fixture, url.Values)
		want      string
		exchanges int
	}{
		"the person declines":        {set("error", "access_denied"), session.ErrorDenied, 0},
		"the server is busy":         {set("error", "temporarily_unavailable"), session.ErrorUnavailable, 0},
		"the server fails":           {set("error", "server_error"), session.ErrorUnavailable, 0},
		"details are refused":        {set("error", "invalid_authorization_details"), session.ErrorFailed, 0},
		"an error nobody knows":      {set("error", "<script>"), session.ErrorFailed, 0},
		"RFC 9207: no iss":           {func(_ *fixture, q url.Values) { q.Del("iss") }, session.ErrorFailed, 0},
		"RFC 9207: another iss":      {set("iss", "https://evil.example"), session.ErrorFailed, 0},
		"RFC 9207: iss with a slash": {set("iss", issuerID+"/"), session.ErrorFailed, 0},
		"RFC 9207: iss of an error":  {set("iss", "https://evil.example", "error", "access_denied"), session.ErrorFailed, 0},
		"no code":                    {func(_ *fixture, q url.Values) { q.Del("code") }, session.ErrorFailed, 0},
		"a huge code":                {set("code", strings.Repeat("c", 5000)), session.ErrorFailed, 0},
		"a code that is refused":     {answer(400, `{"error":"invalid_grant"}`), session.ErrorFailed, 1},
		"a client that is refused":   {answer(401, `{"error":"invalid_client"}`), session.ErrorFailed, 1},
		"too many requests":          {answer(429, ``), session.ErrorUnavailable, 1},
		"an internal error":          {answer(500, `oops`), session.ErrorUnavailable, 1},
		"a redirect":                 {answer(302, ``), session.ErrorFailed, 1},
		"not JSON":                   {answer(200, `<html>`), session.ErrorFailed, 1},
		"another token type":         {answer(200, `{"access_token":"x","token_type":"DPoP"}`), session.ErrorFailed, 1},
		"no token":                   {answer(200, `{"token_type":"Bearer"}`), session.ErrorFailed, 1},
		"no usable token":            {answer(200, `{"access_token":"x","token_type":"Bearer"}`), session.ErrorFailed, 1},
		"an endless answer":          {answer(200, strings.Repeat(" ", 70<<10)), session.ErrorUnavailable, 1},
		"no connection":              {func(f *fixture, _ url.Values) { f.server.down = true }, session.ErrorUnavailable, 0},
		"a token for another hub":    {mint(func(c *token.MintClaims) { c.Audience = "https://other.example" }), session.ErrorFailed, 1},
		"a token of another client":  {mint(func(c *token.MintClaims) { c.ClientID = "spa" }), session.ErrorFailed, 1},
		"a token of another issuer":  {mint(func(c *token.MintClaims) { c.Issuer = "https://evil.example" }), session.ErrorFailed, 1},
		"a token that does not fit":  {mint(func(c *token.MintClaims) { c.GrantID = strings.Repeat("g", 3000) }), session.ErrorTokenTooLarge, 1},
		"a session that does not fit": {mint(func(c *token.MintClaims) {
			c.Subject, c.Username = strings.Repeat("s", 1100), strings.Repeat("n", 1100)
		}), session.ErrorTokenTooLarge, 1},
		"keys that cannot be had": {unavailableKeys, session.ErrorUnavailable, 1},
		"an issuer that is not the broker's": {func(f *fixture, _ url.Values) {
			f.verify = func(context.Context, string) (*token.Claims, error) {
				return &token.Claims{Issuer: "https://evil.example", ClientID: clientID}, nil
			}
		}, session.ErrorFailed, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, b := setup(t, nil), &browser{}
			resp := f.get(b, hubURL+"/session/login?return_to=/app%3Fx%3D1%23here")
			callback, err := url.Parse(f.server.authorize(t, resp.Header.Get("Location")))
			if err != nil {
				t.Fatal(err)
			}
			q := callback.Query()
			f.secrets = append(f.secrets, q.Get("state"), q.Get("code"))
			tt.arrange(f, q)
			callback.RawQuery = q.Encode()
			resp = f.get(b, callback.String())
			want := "https://hub.example.com/app?x=1&session_error=" + tt.want + "#here"
			if got := resp.Header.Get("Location"); resp.StatusCode != http.StatusSeeOther || got != want {
				t.Errorf("callback = %d to %q, want %q", resp.StatusCode, got, want)
			}
			if f.server.exchanges != tt.exchanges {
				t.Errorf("%d token requests, want %d", f.server.exchanges, tt.exchanges)
			}
			if len(b.cookies) > 0 {
				t.Errorf("cookies after a failed sign-in: %v", b.names())
			}
			f.noSecrets(b)
		})
	}
}

// TestCallback_AnotherIssuersLogin has a sign-in end at a broker that has another issuer by now: what one server said must not be taken to
// another (RFC 9700 section 4.4).
func TestCallback_AnotherIssuersLogin(t *testing.T) {
	f, b := setup(t, nil), &browser{}
	callback := f.server.authorize(t, f.get(b, hubURL+"/session/login").Header.Get("Location"))
	f.options.Issuer = "https://other.example"
	f.register()
	fetches := f.server.fetches
	resp := f.get(b, callback)
	if got := resp.Header.Get("Location"); got != "https://hub.example.com/?session_error="+session.ErrorFailed {
		t.Errorf("callback to %q", got)
	}
	if f.server.fetches != fetches || f.server.exchanges != 0 || b.value(hubCookie) != "" {
		t.Errorf("%d fetches and %d exchanges", f.server.fetches-fetches, f.server.exchanges)
	}
}

func TestCallback_TooLargeIsLoud(t *testing.T) {
	f := setup(t, nil)
	f.server.mint = func(c *token.MintClaims) { c.GrantID = strings.Repeat("g", 3000) }
	f.signIn(&browser{}, "")
	log := f.logs.String()
	for _, want := range []string{"level=ERROR", "session does not fit into cookies", "token_bytes=", "max_token_bytes=3800", "advice="} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not say %q", want)
		}
	}
}

// TestCallback_Lost covers callbacks that belong to no sign-in of this browser: a page, no redirect, no exchange.
func TestCallback_Lost(t *testing.T) {
	started := func(f *fixture, b *browser) string {
		return f.server.authorize(f.t, f.get(b, hubURL+"/session/login?return_to=/app").Header.Get("Location"))
	}
	tests := map[string]func(f *fixture, b *browser) string{
		"no parameters": func(*fixture, *browser) string { return hubURL + "/session/callback" },
		"another state": func(f *fixture, b *browser) string {
			return change(f.t, started(f, b), "state", "other")
		},
		"a huge state": func(f *fixture, b *browser) string {
			return change(f.t, started(f, b), "state", strings.Repeat("s", 200))
		},
		"a second state": func(f *fixture, b *browser) string { return started(f, b) + "&state=x" },
		"a second code":  func(f *fixture, b *browser) string { return started(f, b) + "&code=x" },
		"another browser": func(f *fixture, b *browser) string {
			return started(f, &browser{})
		},
		"used before": func(f *fixture, b *browser) string {
			callback := started(f, b)
			f.get(b, callback)
			f.server.exchanges = 0
			return callback
		},
		"the cookie of another sign-in under this one's name": func(f *fixture, b *browser) string {
			callback := started(f, b)
			other := &browser{}
			started(f, other)
			b.cookies[0].Value = other.cookies[0].Value
			return callback
		},
		"a cookie that was changed": func(f *fixture, b *browser) string {
			callback := started(f, b)
			b.cookies[0].Value = "A" + b.cookies[0].Value[1:]
			return callback
		},
		"eleven minutes later": func(f *fixture, b *browser) string {
			callback := started(f, b)
			bubble.Advance(11 * time.Minute)
			return callback
		},
	}
	for name, arrange := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, b := setup(t, nil), &browser{}
				resp := f.get(b, arrange(f, b))
				if resp.StatusCode != http.StatusBadRequest || resp.Header.Get("Location") != "" {
					t.Errorf("callback = %d to %q, want 400 and no redirect", resp.StatusCode, resp.Header.Get("Location"))
				}
				if got := resp.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/html") {
					t.Errorf("Content-Type = %q", got)
				}
				if got := resp.Header.Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none'; style-src 'sha256-") {
					t.Errorf("Content-Security-Policy = %q", got)
				}
				if f.server.exchanges != 0 {
					t.Error("a code was redeemed")
				}
			})
		})
	}
}

func TestCallback_PageStyleIsAllowed(t *testing.T) {
	f := setup(t, nil)
	resp := f.get(&browser{}, hubURL+"/session/callback")
	body := f.bodies.String()
	_, rest, _ := strings.Cut(body, "<style>")
	style, _, ok := strings.Cut(rest, "</style>")
	sum := sha256.Sum256([]byte(style))
	want := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	if !ok || !strings.Contains(resp.Header.Get("Content-Security-Policy"), want) {
		t.Errorf("the policy does not allow the page's style:\n%s", body)
	}
	for _, want := range []string{`<html lang="en">`, `href="https://hub.example.com/.well-known/mercure/session/login"`, "<h1>"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestLogin_ParallelKeepsThree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, b := setup(t, nil), &browser{}
		b.cookies = append(b.cookies,
			&http.Cookie{Name: loginCookie + "AAAAAAAAAAA", Value: "unreadable", Path: "/", SameSite: http.SameSiteLaxMode},
			&http.Cookie{Name: loginCookie + "somebody-elses-cookie", Value: "x", Path: "/", SameSite: http.SameSiteLaxMode})
		var callbacks []string
		for range 4 {
			resp := f.get(b, hubURL+"/session/login")
			callbacks = append(callbacks, f.server.authorize(t, resp.Header.Get("Location")))
			bubble.Advance(time.Millisecond)
		}
		if got := len(b.cookies); got != 4 { // three, and the one that is not ours
			t.Errorf("%d cookies: %v", got, b.names())
		}
		if resp := f.get(b, callbacks[0]); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("the oldest sign-in = %d, want it dropped", resp.StatusCode)
		}
		for i, callback := range callbacks[1:] {
			if resp := f.get(b, callback); resp.StatusCode != http.StatusSeeOther || strings.Contains(resp.Header.Get("Location"), "session_error") {
				t.Errorf("sign-in %d = %d to %q", i+2, resp.StatusCode, resp.Header.Get("Location"))
			}
		}
	})
}

func TestCallback_EndsThePreviousSession(t *testing.T) {
	f, b := setup(t, nil), &browser{}
	ids := []string{}
	mint := func(id, sid string) {
		ids = append(ids, id)
		f.server.mint = func(c *token.MintClaims) { c.ID, c.SessionID = id, sid }
	}
	mint("jti-1", "sid-1")
	f.signIn(b, "")
	if len(f.ended) != 0 {
		t.Fatalf("the first sign-in ended %v", f.ended)
	}
	mint("jti-2", "sid-1") // the same login session at the authorization server: only the token is over
	f.signIn(b, "")
	mint("jti-3", "sid-3")
	f.signIn(b, "")
	want := []session.Ended{
		{Issuer: issuerID, TokenIDs: []string{"jti-1"}},
		{Issuer: issuerID, SessionID: "sid-1", TokenIDs: []string{"jti-2"}},
	}
	if diff := cmp.Diff(want, f.ended); diff != "" {
		t.Errorf("ended (-want +got):\n%s", diff)
	}
	f.server.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }
	f.signIn(b, "")
	if len(f.ended) != 2 || b.value(hubCookie) == "" {
		t.Error("a sign-in that failed ended the session")
	}
}

// TestCallback_RevokesThePreviousSession has somebody who took a copy of the session's cookie before.
func TestCallback_RevokesThePreviousSession(t *testing.T) {
	for name, tt := range map[string]struct {
		sid     string
		revoked []string
	}{
		"another login":            {"sid-2", []string{"refresh_token refresh-1"}},
		"the same login once more": {"sid-1", nil}, // to revoke its token would end the new session too
	} {
		t.Run(name, func(t *testing.T) {
			f, b := setup(t, nil), &browser{}
			number := 0
			f.server.refresh = func() string { return fmt.Sprintf("refresh-%d", number) }
			sign := func(sid string) {
				number++
				f.server.mint = func(c *token.MintClaims) { c.ID, c.SessionID = fmt.Sprintf("jti-%d", number), sid }
				f.signIn(b, "")
			}
			sign("sid-1")
			copied := b.clone()
			sign(tt.sid)
			if diff := cmp.Diff(tt.revoked, f.server.revoked); diff != "" {
				t.Errorf("DECISION-21 revoked (-want +got):\n%s", diff)
			}
			want := http.StatusOK
			if tt.revoked != nil {
				want = http.StatusUnauthorized
			}
			if resp := f.post(copied, "refresh"); resp.StatusCode != want {
				t.Errorf("a copy of the session before is renewed with %d, want %d", resp.StatusCode, want)
			}
			if resp := f.post(b, "refresh"); resp.StatusCode != http.StatusOK {
				t.Errorf("the new session is renewed with %d", resp.StatusCode)
			}
			f.noSecrets(b)
		})
	}
	t.Run("a server that cannot be told stops nobody", func(t *testing.T) {
		f, b := renewable(t, nil)
		f.server.revoke = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
		f.server.mint = func(c *token.MintClaims) { c.ID, c.SessionID = "jti-new", "sid-new" }
		if resp := f.signIn(b, ""); strings.Contains(resp.Header.Get("Location"), "session_error") || f.status(b)["active"] != true {
			t.Errorf("signed in to %s", resp.Header.Get("Location"))
		}
	})
}

func TestLogin_Navigation(t *testing.T) {
	tests := map[string]struct {
		header []string
		want   int
	}{
		"a navigation":                {[]string{"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Sec-Fetch-Site", "none"}, 303},
		"a browser that says nothing": {nil, 303},
		"a script":                    {[]string{"Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"}, 403},
		"an image":                    {[]string{"Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, 403},
		"a frame":                     {[]string{"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		"an object":                   {[]string{"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "object"}, 403},
		"a prefetch":                  {[]string{"Sec-Purpose", "prefetch", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
		"a prerendering":              {[]string{"Sec-Purpose", "prefetch;prerender"}, 403},
		"an old prefetch":             {[]string{"Purpose", "prefetch"}, 403},
		"an older prefetch":           {[]string{"X-Moz", "prefetch"}, 403},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := setup(t, nil)
			resp := f.get(&browser{}, hubURL+"/session/login", tt.header...)
			if resp.StatusCode != tt.want {
				t.Errorf("login = %d, want %d", resp.StatusCode, tt.want)
			}
			if tt.want == 403 && (len(resp.Header["Set-Cookie"]) > 0 || f.server.fetches > 0) {
				t.Error("the refused sign-in left traces")
			}
		})
	}
}

func TestLogin_RateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, func(o *session.Options) { o.LoginsPerMinute = 2 })
		statuses := func(n int) (out []int) {
			for range n {
				out = append(out, f.get(&browser{}, hubURL+"/session/login").StatusCode)
			}
			return out
		}
		if got := statuses(3); !slices.Equal(got, []int{303, 303, 429}) {
			t.Errorf("statuses = %v", got)
		}
		bubble.Advance(30 * time.Second)
		if got := statuses(2); !slices.Equal(got, []int{303, 429}) {
			t.Errorf("half a minute later = %v", got)
		}
	})
}

func TestLogin_Metadata(t *testing.T) {
	change := func(name string, value any) func(*server) {
		return func(s *server) { s.metadata = func(m map[string]any) { m[name] = value } }
	}
	tests := map[string]func(*server){
		"another issuer":                 change("issuer", "https://auth.example.com"),
		"no PKCE":                        change("code_challenge_methods_supported", nil),
		"plain PKCE only":                change("code_challenge_methods_supported", []string{"plain"}),
		"no iss parameter":               change("authorization_response_iss_parameter_supported", false),
		"no authorization endpoint":      change("authorization_endpoint", ""),
		"a relative token endpoint":      change("token_endpoint", "/token"),
		"plain HTTP for an https issuer": change("token_endpoint", "http://auth.example.com/token"),
		"plain HTTP for pushed requests": change("pushed_authorization_request_endpoint", "http://auth.example.com/par"),
		"no URL for revocations":         change("revocation_endpoint", "/revoke"),
		"a script as endpoint":           change("authorization_endpoint", "javascript:alert(1)"),
		"too long":                       change("padding", strings.Repeat("x", 70<<10)),
		"no connection":                  func(s *server) { s.down = true },
		"not JSON": func(s *server) {
			s.discovery = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<") }
		},
		"not found": func(s *server) { s.discovery = http.NotFound },
		"a redirect": func(s *server) {
			s.discovery = func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://evil.example/", http.StatusFound)
			}
		},
	}
	for name, arrange := range tests {
		t.Run(name, func(t *testing.T) {
			f, b := setup(t, nil), &browser{}
			arrange(f.server)
			resp := f.get(b, hubURL+"/session/login?return_to=/app")
			want := "https://hub.example.com/app?session_error=temporarily_unavailable"
			if got := resp.Header.Get("Location"); resp.StatusCode != http.StatusSeeOther || got != want {
				t.Errorf("login = %d to %q, want %q", resp.StatusCode, got, want)
			}
			if len(b.cookies) > 0 {
				t.Errorf("cookies: %v", b.names())
			}
			if f.server.err != nil {
				t.Errorf("the broker went elsewhere: %v", f.server.err)
			}
			f.server.down, f.server.metadata, f.server.discovery = false, nil, nil
			if got := f.signIn(b, "?return_to=/app").Header.Get("Location"); got != "https://hub.example.com/app" {
				t.Errorf("after it came back, sign-in ends at %q", got)
			}
		})
	}
}

func TestLogin_MetadataIsCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, nil)
		if f.server.fetches != 0 {
			t.Error("fetched before anybody signs in")
		}
		for range 3 {
			f.signIn(&browser{}, "")
		}
		if f.server.fetches != 1 {
			t.Errorf("%d fetches, want 1", f.server.fetches)
		}
		bubble.Advance(10 * time.Minute)
		f.signIn(&browser{}, "")
		if f.server.fetches != 2 {
			t.Errorf("%d fetches after ten minutes, want 2", f.server.fetches)
		}
	})
}

func TestCookies_KeysRotate(t *testing.T) {
	f, b := setup(t, nil), &browser{}
	resp := f.get(b, hubURL+"/session/login")
	callback := f.server.authorize(t, resp.Header.Get("Location"))
	old := f.options.CookieKeys[0]
	f.options.CookieKeys = [][]byte{[]byte(strings.Repeat("n", session.CookieKeyBytes)), old}
	f.register()
	if resp := f.get(b, callback); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("callback after a rotation = %d", resp.StatusCode)
	}
	f.options.CookieKeys = f.options.CookieKeys[:1]
	f.register()
	f.signIn(b, "")
	if len(f.ended) != 1 {
		t.Error("the session sealed with the new key was not recognised")
	}
}

func TestRegister_RefusesWhatCannotWork(t *testing.T) {
	_, rsaLess := newKey(t, "x")
	tests := map[string]func(*session.Options){
		"no hub URL":              func(o *session.Options) { o.HubURL = "" },
		"hub URL without path":    func(o *session.Options) { o.HubURL = "https://hub.example.com" },
		"hub URL with query":      func(o *session.Options) { o.HubURL += "?a" },
		"hub URL with a colon":    func(o *session.Options) { o.HubURL += "/:id" },
		"issuer with fragment":    func(o *session.Options) { o.Issuer += "#a" },
		"no client":               func(o *session.Options) { o.ClientID = "" },
		"no client key":           func(o *session.Options) { o.ClientKey = nil },
		"a secret as key":         func(o *session.Options) { o.ClientKey = json.RawMessage(`{"kty":"oct","k":"c2VjcmV0"}`) },
		"a public key":            func(o *session.Options) { o.ClientKey = publicOf(t, rsaLess) },
		"no cookie name":          func(o *session.Options) { o.CookieName = "" },
		"a strange cookie name":   func(o *session.Options) { o.CookieName = "a;b" },
		"a __Host- hub cookie":    func(o *session.Options) { o.CookieName = "__Host-token" },
		"insecure over https":     func(o *session.Options) { o.CookieName, o.InsecureCookie = "token", true },
		"insecure and prefixed":   func(o *session.Options) { o.HubURL, o.InsecureCookie = "http://localhost/hub", true },
		"no cookie keys":          func(o *session.Options) { o.CookieKeys = nil },
		"a short cookie key":      func(o *session.Options) { o.CookieKeys = [][]byte{make([]byte, 32)} },
		"absolute before idle":    func(o *session.Options) { o.Absolute = time.Hour },
		"an origin with a path":   func(o *session.Options) { o.ReturnToOrigins = []string{"https://app.example.com/"} },
		"an origin with capitals": func(o *session.Options) { o.ReturnToOrigins = []string{"https://App.example.com"} },
		"an origin pattern":       func(o *session.Options) { o.ReturnToOrigins = []string{"https://*.example.com"} },
		"the null origin":         func(o *session.Options) { o.ReturnToOrigins = []string{"null"} },
		"no default profile":      func(o *session.Options) { o.Profiles = map[string]session.Profile{"a": {}} },
		"details that are none": func(o *session.Options) {
			o.Profiles = map[string]session.Profile{"default": {AuthorizationDetails: json.RawMessage(`{}`)}}
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			change(&f.options)
			if err := f.options.Validate(); err == nil || !strings.HasPrefix(err.Error(), "session: ") {
				t.Errorf("Validate = %v, want an error", err)
			}
		})
	}
}

func TestRegister_HubURLWithSlash(t *testing.T) {
	f := newFixture(t)
	f.options.HubURL, f.options.Resource = "https://hub.example.com/hub/", hubURL
	f.register()
	b := &browser{}
	resp := f.get(b, "https://hub.example.com/hub/session/login?return_to=/app")
	callback := f.server.authorize(t, resp.Header.Get("Location"))
	if !strings.HasPrefix(callback, "https://hub.example.com/hub/session/callback?") {
		t.Errorf("callback = %q", callback)
	}
	resp = f.get(b, callback)
	if got := blank(resp)[1]; !strings.Contains(got, "; Path=/hub/; ") {
		t.Errorf("hub cookie = %q", got)
	}
}

// change sets one query parameter of an address.
func change(t *testing.T, address, name, value string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}

func publicOf(t *testing.T, private json.RawMessage) json.RawMessage {
	t.Helper()
	key, err := jwk.ParseKey(private)
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(public)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func unavailableKeys(f *fixture, _ url.Values) {
	f.verify = func(context.Context, string) (*token.Claims, error) { return nil, token.ErrUnavailable }
}
