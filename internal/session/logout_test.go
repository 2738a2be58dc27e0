package session_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/session"
	"github.com/cinnabar-hub/cinnabar/internal/token"
	"github.com/cinnabar-hub/cinnabar/test/bubble"
)

// signedOut is what the cookies are afterwards: an empty hub cookie for a minute, and no other.
func signedOut() []string {
	return []string{
		hubCookie + "=; Path=/.well-known/mercure; Max-Age=60; HttpOnly; Secure; SameSite=Strict",
		sessionCookie + "=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Strict",
	}
}

func TestLogout(t *testing.T) {
	session1 := []session.Ended{{Issuer: issuerID, SessionID: "sid-1", TokenIDs: []string{"jti-1"}}}
	tests := map[string]struct {
		arrange func(f *fixture, b *browser)
		revoked []string // what the authorization server was told
		told    bool
		ended   []session.Ended
	}{
		"DECISION-21 the whole session": {func(*fixture, *browser) {}, []string{"refresh_token refresh-1"}, true, session1},
		"only the session cookie": {
			func(_ *fixture, b *browser) { b.drop(hubCookie) }, []string{"refresh_token refresh-1"}, true, session1,
		},
		"only the hub cookie": {
			func(f *fixture, b *browser) { b.drop(sessionCookie) }, []string{"access_token *"}, true, session1,
		},
		"an unreadable session cookie": {
			func(_ *fixture, b *browser) { b.set(sessionCookie, "x") }, []string{"access_token *"}, true, session1,
		},
		"nothing readable": {
			func(_ *fixture, b *browser) { b.set(sessionCookie, "x"); b.set(hubCookie, "y") }, nil, false, nil,
		},
		"a session without refresh token": {func(f *fixture, b *browser) {
			b.cookies, f.server.refresh = nil, nil
			f.server.mint = func(c *token.MintClaims) { c.ID = "jti-1" }
			f.signIn(b, "")
		}, []string{"access_token *"}, true, session1},
		"the server is down": {func(f *fixture, _ *browser) { f.server.down = true }, nil, false, session1},
		"the server fails": {func(f *fixture, _ *browser) {
			f.server.revoke = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }
		}, []string{"refresh_token refresh-1"}, false, session1},
		"no revocation endpoint": {func(f *fixture, b *browser) {
			f.server.metadata = func(m map[string]any) { delete(m, "revocation_endpoint") }
			f.register()
		}, nil, false, session1},
		"keys that cannot be had": {func(f *fixture, _ *browser) {
			f.verify = func(context.Context, string) (*token.Claims, error) { return nil, token.ErrUnavailable }
		}, []string{"refresh_token refresh-1"}, true, session1},
		"a cookie that a backend set": {func(f *fixture, b *browser) {
			f.server.mint = func(c *token.MintClaims) { c.ID, c.ClientID, c.SessionID = "jti-b", "backend", "" }
			compact, err := f.server.issue()
			if err != nil {
				f.t.Fatal(err)
			}
			b.drop(sessionCookie)
			b.set(hubCookie, compact)
		}, nil, false, []session.Ended{{Issuer: issuerID, TokenIDs: []string{"jti-b"}}}},
		"a hub cookie of another login": {func(f *fixture, b *browser) {
			f.server.mint = func(c *token.MintClaims) { c.ID, c.SessionID = "jti-2", "sid-2" }
			compact, err := f.server.issue()
			if err != nil {
				f.t.Fatal(err)
			}
			b.set(hubCookie, compact)
		}, []string{"refresh_token refresh-1"}, true, append(session1, session.Ended{Issuer: issuerID, SessionID: "sid-2", TokenIDs: []string{"jti-2"}})},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, b := renewable(t, nil)
			tt.arrange(f, b)
			compact := b.value(hubCookie)
			copied := b.clone()
			resp := f.post(b, "logout")
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("logout = %d", resp.StatusCode)
			}
			want := map[string]any{"active": false, "renewable": false, "revoked": tt.told}
			if diff := cmp.Diff(want, document(t, resp)); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(signedOut(), blank(resp)); diff != "" {
				t.Errorf("cookies (-want +got):\n%s", diff)
			}
			told := slices.Clone(f.server.revoked)
			for i := range told {
				if compact != "" {
					told[i] = strings.Replace(told[i], compact, "*", 1)
				}
			}
			if diff := cmp.Diff(tt.revoked, told); diff != "" {
				t.Errorf("revoked (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.ended, f.ended); diff != "" {
				t.Errorf("ended (-want +got):\n%s", diff)
			}
			if resp := f.post(b, "logout"); resp.StatusCode != http.StatusOK {
				t.Errorf("a second time = %d", resp.StatusCode)
			}
			if resp := f.post(copied.clone(), "refresh"); resp.StatusCode == http.StatusOK {
				t.Error("a copy of the cookies renewed the session")
			}
			if f.post(copied, "logout"); tt.told && strings.HasPrefix(f.server.revoked[0], "refresh") && len(f.server.revoked) > 1 {
				t.Error("a copy of the cookies made the authorization server work again")
			}
			f.server.err = nil // what was arranged
			f.noSecrets(b)
		})
	}
}

func TestLogout_WithoutSession(t *testing.T) {
	f := setup(t, nil)
	resp := f.post(&browser{}, "logout")
	if resp.StatusCode != http.StatusOK || len(resp.Header["Set-Cookie"]) > 0 || len(f.ended) > 0 || f.server.fetches > 0 {
		t.Errorf("logout = %d, %v", resp.StatusCode, resp.Header["Set-Cookie"])
	}
}

func TestLogout_Domain(t *testing.T) {
	f, b := renewable(t, func(o *session.Options) { o.CookieDomain = "example.com" })
	want := []string{
		hubCookie + "=; Path=/.well-known/mercure; Max-Age=0; HttpOnly; Secure; SameSite=Strict",
		hubCookie + "=; Path=/.well-known/mercure; Domain=example.com; Max-Age=60; HttpOnly; Secure; SameSite=Strict",
		sessionCookie + "=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Strict",
	}
	if diff := cmp.Diff(want, blank(f.post(b, "logout"))); diff != "" {
		t.Errorf("DECISION-19 cookies (-want +got):\n%s", diff)
	}
}

func TestLogout_ExpiredSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, age := range map[string]time.Duration{"the token": time.Hour, "the idle time": 25 * time.Hour, "the absolute end": 15 * 24 * time.Hour} {
			f, b := renewable(t, func(o *session.Options) {
				if name == "the absolute end" {
					o.Idle = 14 * 24 * time.Hour
				}
			})
			bubble.Advance(age)
			resp := f.post(b, "logout")
			if resp.StatusCode != http.StatusOK || cmp.Diff(signedOut(), blank(resp)) != "" {
				t.Errorf("after %s: logout = %d, %v", name, resp.StatusCode, blank(resp))
			}
			if told := len(f.server.revoked) > 0; told != (name == "the token") {
				t.Errorf("after %s: revoked %v", name, f.server.revoked)
			}
		}
	})
}

// TestLogout_SlowServer waits for the authorization server only so long.
func TestLogout_SlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, b := renewable(t, nil)
		f.server.revoke = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		start := time.Now()
		resp := f.post(b, "logout")
		if waited := time.Since(start); resp.StatusCode != http.StatusOK || waited != 3*time.Second || len(f.ended) != 1 {
			t.Errorf("logout = %d after %v", resp.StatusCode, waited)
		}
	})
}

// TestLogout_ClosedPage has the page go away before the answer.
func TestLogout_ClosedPage(t *testing.T) {
	f, b := renewable(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, hubURL+"/session/logout", http.NoBody)
	r.Header.Set("Origin", "https://hub.example.com")
	r.Header.Set("X-Mercure-Session", "1")
	b.send(r)
	f.echo.ServeHTTP(httptest.NewRecorder(), r)
	if len(f.server.revoked) != 1 || len(f.ended) != 1 {
		t.Errorf("revoked %v, ended %v", f.server.revoked, f.ended)
	}
}

// TestLogout_DuringRefresh has a tab sign out while another renews: the renewal must not bring the session back.
func TestLogout_DuringRefresh(t *testing.T) {
	for name, rotates := range map[string]bool{"the same refresh token": false, "a rotated refresh token": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, b := renewable(t, nil)
				if rotates {
					f.server.refresh = func() string { return "refresh-2" }
				}
				f.server.hold = make(chan struct{})
				other := b.clone()
				done := make(chan int)
				go func() { done <- f.post(other, "refresh").StatusCode }()
				synctest.Wait()
				if resp := f.post(b, "logout"); resp.StatusCode != http.StatusOK {
					t.Errorf("logout = %d", resp.StatusCode)
				}
				f.server.mu.Lock()
				f.server.refreshes["refresh-1"] = true // a server that does not see the connection
				f.server.mu.Unlock()
				close(f.server.hold)
				if got := <-done; got != http.StatusUnauthorized || len(other.cookies) != 0 {
					t.Errorf("refresh = %d, cookies %v", got, other.names())
				}
				if got := slices.Contains(f.server.revoked, "refresh_token refresh-2"); got != rotates {
					t.Errorf("revoked %v", f.server.revoked)
				}
			})
		})
	}
}

func TestMetadata_OutlivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, b := renewable(t, nil)
		bubble.Advance(11 * time.Minute)
		f.server.discovery = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
		for range 3 {
			bubble.Advance(3 * time.Second)
			if resp := f.post(b, "refresh"); resp.StatusCode != http.StatusOK {
				t.Errorf("refresh = %d", resp.StatusCode)
			}
		}
		if f.server.fetches != 2 {
			t.Errorf("%d fetches, want 2: the failed one is not repeated at once", f.server.fetches)
		}
		bubble.Advance(time.Minute)
		f.post(b, "refresh")
		if f.server.fetches != 3 {
			t.Errorf("%d fetches a minute later, want 3", f.server.fetches)
		}
		f.noSecrets(b)
	})
}
