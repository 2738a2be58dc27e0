package session_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/session"
	"github.com/cinnabar-hub/cinnabar/internal/token"
	"github.com/cinnabar-hub/cinnabar/test/bubble"
)

// status reads GET {hub}/session as raw members, so that nothing can hide in it.
func (f *fixture) status(b *browser, header ...string) map[string]any {
	f.t.Helper()
	f.bodies.Reset()
	resp := f.get(b, hubURL+"/session", header...)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/json" {
		f.t.Fatalf("status = %d %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	var out map[string]any
	if err := json.Unmarshal(f.bodies.Bytes(), &out); err != nil {
		f.t.Fatal(err)
	}
	return out
}

func inactive() map[string]any { return map[string]any{"active": false, "renewable": false} }

func TestStatus_Life(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, b := setup(t, nil), &browser{}
		if diff := cmp.Diff(inactive(), f.status(b)); diff != "" {
			t.Errorf("before (-want +got):\n%s", diff)
		}
		f.signIn(b, "")
		start := time.Now().UTC()
		want := map[string]any{
			"active": true, "renewable": false, "sub": subject, "username": "demo",
			"expires_at":    start.Add(10 * time.Minute).Format(time.RFC3339),
			"refresh_after": start.Add(8 * time.Minute).Format(time.RFC3339),
			"now":           start.Format("2006-01-02T15:04:05.000Z"),
		}
		if diff := cmp.Diff(want, f.status(b)); diff != "" {
			t.Errorf("signed in (-want +got):\n%s", diff)
		}
		f.noSecrets(b)
		bubble.Advance(10 * time.Minute)
		if len(b.cookies) != 2 {
			t.Errorf("cookies at the token's expiry: %v; they must outlive it", b.names())
		}
		if diff := cmp.Diff(inactive(), f.status(b)); diff != "" {
			t.Errorf("after the token's expiry (-want +got):\n%s", diff)
		}
		if len(b.cookies) != 0 {
			t.Errorf("cookies of a dead session: %v", b.names())
		}
	})
}

func TestStatus_AbsoluteEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, func(o *session.Options) { o.Idle, o.Absolute = 2*time.Minute, 2*time.Minute })
		b := &browser{}
		f.signIn(b, "")
		if got, want := f.status(b)["expires_at"], time.Now().UTC().Add(2*time.Minute).Format(time.RFC3339); got != want {
			t.Errorf("expires_at = %v, want the absolute end %v", got, want)
		}
		bubble.Advance(2 * time.Minute)
		if got := f.status(b); got["active"] != false {
			t.Errorf("after the absolute end: %v", got)
		}
	})
}

func TestStatus_HubCookieDecides(t *testing.T) {
	tests := map[string]struct {
		arrange func(f *fixture, b *browser)
		want    map[string]any
		cookies int
	}{
		"a revoked token": {
			func(f *fixture, _ *browser) {
				f.verify = func(context.Context, string) (*token.Claims, error) {
					return nil, &token.InvalidError{Check: "revocation", Reason: "revoked"}
				}
			}, map[string]any{"active": false}, 0,
		},
		"DECISION-19 an empty hub cookie": {
			func(_ *fixture, b *browser) { b.cookies[0].Value = "" }, map[string]any{"active": false}, 0,
		},
		"no hub cookie": {
			func(_ *fixture, b *browser) { b.cookies = b.cookies[1:] }, map[string]any{"active": false}, 1,
		},
		"an unreadable session cookie": {
			func(_ *fixture, b *browser) { b.cookies[1].Value = "x" }, map[string]any{"active": true, "username": "demo"}, 2,
		},
		"a cookie that a backend set": {
			func(f *fixture, b *browser) {
				f.server.mint = func(c *token.MintClaims) { c.Subject, c.Username, c.ClientID = "u_other", "", "backend" }
				compact, err := f.server.issue()
				if err != nil {
					f.t.Fatal(err)
				}
				b.cookies[0].Value = compact
			}, map[string]any{"active": true, "renewable": false, "sub": "u_other", "username": nil}, 2,
		},
		"two equal hub cookies": {
			func(_ *fixture, b *browser) {
				twin := *b.cookies[0]
				twin.Domain = "example.com"
				b.cookies = append(b.cookies, &twin)
			}, map[string]any{"active": true}, 3,
		},
		"DECISION-19 two different hub cookies": {
			func(_ *fixture, b *browser) { b.plant("x") }, map[string]any{"active": false, "renewable": false}, 3, // nothing is taken away
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, b := setup(t, nil), &browser{}
			f.signIn(b, "")
			tt.arrange(f, b)
			got := f.status(b)
			for member, want := range tt.want {
				if got[member] != want {
					t.Errorf("%s = %v, want %v", member, got[member], want)
				}
			}
			if len(b.cookies) != tt.cookies {
				t.Errorf("cookies = %v, want %d", b.names(), tt.cookies)
			}
		})
	}
}

// TestPlantedCookie has another host of the site set a hub cookie with its Domain, which the broker cannot remove. It may keep the
// browser out, but must never become its session: that would be somebody else's.
func TestPlantedCookie(t *testing.T) {
	for name, known := range map[string]bool{"beside a session": true, "beside a cookie that a backend set": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, b := renewable(t, nil)
				own := b.value(hubCookie)
				if !known {
					b.drop(sessionCookie)
				}
				f.server.mint = func(c *token.MintClaims) { c.ID, c.Subject, c.SessionID = "planted", "u_attacker", "sid-planted" }
				theirs, err := f.server.issue()
				if err != nil {
					t.Fatal(err)
				}
				b.plant(theirs)
				renewals := f.server.renewals
				if got := f.status(b); got["active"] != false {
					t.Errorf("status = %v", got)
				}
				if resp := f.post(b, "refresh"); resp.StatusCode != http.StatusBadRequest || f.server.renewals != renewals {
					t.Errorf("refresh = %d after %d renewals", resp.StatusCode, f.server.renewals-renewals)
				}
				if got := b.value(hubCookie); got != own || len(f.ended) > 0 {
					t.Errorf("what is left is the planted cookie, and ended was %v", f.ended)
				}
			})
		})
	}
}

// plant adds a hub cookie that another host of the site set.
func (b *browser) plant(value string) {
	twin := *b.cookies[0]
	twin.Domain, twin.Value = "example.com", value
	b.cookies = append(b.cookies, &twin)
}

func TestStatus_Unavailable(t *testing.T) {
	f, b := setup(t, nil), &browser{}
	f.signIn(b, "")
	f.verify = func(context.Context, string) (*token.Claims, error) { return nil, token.ErrUnavailable }
	resp := f.get(b, hubURL+"/session")
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || len(b.cookies) != 2 {
		t.Errorf("status = %d with %d cookies, want 503 and nothing expired", resp.StatusCode, len(b.cookies))
	}
}

func TestStatus_Renewable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, b := setup(t, nil), &browser{}
		f.server.refresh = func() string { return "refresh-1" }
		f.signIn(b, "")
		if got := f.status(b); got["active"] != true || got["renewable"] != true {
			t.Errorf("signed in: %v", got)
		}
		bubble.Advance(11 * time.Minute)
		want := map[string]any{"active": false, "renewable": true}
		if diff := cmp.Diff(want, f.status(b)); diff != "" {
			t.Errorf("when the token has expired (-want +got):\n%s", diff)
		}
		if len(b.cookies) != 2 {
			t.Errorf("cookies of a session that can be renewed: %v", b.names())
		}
		bubble.Advance(24 * time.Hour)
		if diff := cmp.Diff(inactive(), f.status(b)); diff != "" {
			t.Errorf("unused for longer than the idle time (-want +got):\n%s", diff)
		}
	})
}

// TestStatus_AnyHubCookie has values that net/http drops when it parses cookies; the hub judges them.
func TestStatus_AnyHubCookie(t *testing.T) {
	f := setup(t, nil)
	for _, value := range []string{`a"b`, "a b", "\x80", `back\slash`} {
		resp := f.get(&browser{}, hubURL+"/session", "Cookie", "x=y; "+hubCookie+"="+value)
		if got := blank(resp); len(got) != 2 {
			t.Errorf("cookie %q: %v, want it expired", value, got)
		}
	}
}

func TestStatus_CORS(t *testing.T) {
	tests := map[string]bool{
		"https://app.example.com": true, "http://localhost:5173": true,
		"https://app.example.com.": false, "https://App.example.com": false, "http://app.example.com": false,
		"https://evil.example": false, "null": false, "": false,
	}
	f := setup(t, nil)
	for origin, allowed := range tests {
		t.Run(origin, func(t *testing.T) {
			want := ""
			if allowed {
				want = origin
			}
			for _, method := range []string{http.MethodGet, http.MethodOptions} {
				r := httptest.NewRequestWithContext(t.Context(), method, hubURL+"/session", http.NoBody)
				r.Header.Set("Origin", origin)
				rec := httptest.NewRecorder()
				f.echo.ServeHTTP(rec, r)
				h := rec.Result().Header
				if got := h.Get("Access-Control-Allow-Origin"); got != want {
					t.Errorf("%s: Access-Control-Allow-Origin = %q, want %q", method, got, want)
				}
				if got := h.Get("Access-Control-Allow-Credentials"); (got == "true") != allowed {
					t.Errorf("%s: Access-Control-Allow-Credentials = %q", method, got)
				}
				if !slices.Contains(h.Values("Vary"), "Origin") {
					t.Errorf("%s: Vary = %v", method, h.Values("Vary"))
				}
			}
		})
	}
}

func TestRoutes_Methods(t *testing.T) {
	f := setup(t, nil)
	for path, methods := range map[string][]string{
		"/session/login":    {http.MethodPost, http.MethodHead, http.MethodPut},
		"/session/callback": {http.MethodPost, http.MethodHead, http.MethodPut},
		"/session":          {http.MethodPost, http.MethodHead, http.MethodDelete},
		"/session/refresh":  {http.MethodGet, http.MethodHead, http.MethodPut},
		"/session/logout":   {http.MethodGet, http.MethodHead, http.MethodDelete},
	} {
		for _, method := range methods {
			rec := httptest.NewRecorder()
			f.echo.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), method, hubURL+path, http.NoBody))
			if rec.Code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s = %d, want 405", method, path, rec.Code)
			}
		}
	}
}

func TestStatus_IsPlainJSON(t *testing.T) {
	f := setup(t, nil)
	resp := f.get(&browser{}, hubURL+"/session")
	body, err := io.ReadAll(resp.Body)
	if err != nil || string(body) != `{"active":false,"renewable":false}`+"\n" {
		t.Errorf("body = %q, %v", body, err)
	}
	if got := resp.Header.Get("X-Content-Type-Options"); got != "nosniff" {
		t.Errorf("X-Content-Type-Options = %q", got)
	}
}
