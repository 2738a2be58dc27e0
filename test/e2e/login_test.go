package e2e_test

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/harness"
)

func TestDev_login(t *testing.T) {
	d := harness.StartDev(t, filepath.Join(t.TempDir(), "data"))
	c := d.Client()
	if s := d.Session(c); s.Active {
		t.Fatalf("session before login = %+v", s)
	}
	d.SignIn(c)
	s := d.Session(c)
	if !s.Active || s.Username != "demo" || !s.Renewable || time.Until(s.ExpiresAt) <= 0 || !s.RefreshAfter.Before(s.ExpiresAt) {
		t.Errorf("session = %+v", s)
	}
	topic := d.Origin + "/demo/books/1"
	events := harness.Subscribe(t, c, d.Hub()+"?match="+url.QueryEscape(topic), nil)
	d.Publish(c, topic, "for those who may read it", true)
	if got := events.Next(t); got != "for those who may read it" {
		t.Errorf("event = %q", got)
	}

	t.Run("a private update outside the grant does not come", func(t *testing.T) {
		all := harness.Subscribe(t, c, d.Hub()+"?match=*", nil)
		d.Publish(c, "https://example.com/other", "secret", true)
		d.Publish(c, "https://example.com/other", "public", false)
		if got := all.Next(t); got != "public" {
			t.Errorf("event = %q, want the public one", got)
		}
	})
	t.Run("the cookie publishes from the hub's own pages alone", func(t *testing.T) {
		for origin, want := range map[string]int{d.Origin: 200, "https://evil.example": 403, "null": 403, "": 403} {
			h := http.Header{}
			if origin != "" {
				h.Set("Origin", origin)
			}
			resp, body := harness.Do(t, c, http.MethodPost, d.Hub(), url.Values{"topic": {topic}, "data": {"from " + origin}}, h)
			if resp.StatusCode != want {
				t.Errorf("Origin %q: %d, want %d: %s", origin, resp.StatusCode, want, body)
			}
		}
	})
	t.Run("renewing gives a new token, and the streams of the old one go on", func(t *testing.T) {
		before := token(t, c, d.Hub())
		resp, body := harness.Do(t, c, http.MethodPost, d.Hub()+"/session/refresh", nil, sessionPost(d.Origin))
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("refresh = %d %s", resp.StatusCode, body)
		}
		if token(t, c, d.Hub()) == before {
			t.Error("the same token again")
		}
		d.Publish(c, topic, "after renewing", true)
		for got := ""; got != "after renewing"; {
			got = events.Next(t)
		}
	})
	t.Run("pages of other sites cannot sign anybody out", func(t *testing.T) {
		for name, header := range map[string]http.Header{
			"another origin": sessionPost("https://evil.example"), "no origin": sessionPost(""), "a form": {"Origin": {d.Origin}},
		} {
			if resp, _ := harness.Do(t, c, http.MethodPost, d.Hub()+"/session/logout", nil, header); resp.StatusCode != http.StatusForbidden {
				t.Errorf("%s: %d", name, resp.StatusCode)
			}
		}
	})
	t.Run("signing out ends the streams and the tokens", func(t *testing.T) {
		last := token(t, c, d.Hub())
		resp, body := harness.Do(t, c, http.MethodPost, d.Hub()+"/session/logout", nil, sessionPost(d.Origin))
		if resp.StatusCode != http.StatusOK || !strings.Contains(body, `"revoked":true`) {
			t.Fatalf("logout = %d %s", resp.StatusCode, body)
		}
		events.End(t)
		if s := d.Session(c); s.Active || s.Renewable {
			t.Errorf("session = %+v", s)
		}
		resp, _ = harness.Do(t, d.Client(), http.MethodGet, d.Hub()+"?match=*", nil, harness.Bearer(last))
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("the hub answers %d to the token", resp.StatusCode)
		}
	})
}

// sessionPost is the header of a page's POST to the session.
func sessionPost(origin string) http.Header {
	h := http.Header{"X-Mercure-Session": {"1"}}
	if origin != "" {
		h.Set("Origin", origin)
	}
	return h
}
