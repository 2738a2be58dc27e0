package e2e_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/test/harness"
)

// metadataPath is a page of the hub's own origin to come back to after login.
const metadataPath = "/.well-known/oauth-protected-resource/.well-known/mercure"

func TestServe_apart(t *testing.T) {
	a := harness.StartApart(t, harness.ApartOptions{})
	c := a.Client()
	password := a.AddUser(t, "Alice")

	t.Run("the stream is closed to the anonymous", func(t *testing.T) {
		resp, _ := harness.Do(t, c, http.MethodGet, a.Hub()+"?match=*", nil, nil)
		if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != http.StatusUnauthorized || strings.Contains(got, "error=") {
			t.Errorf("status %d, challenge %q", resp.StatusCode, got)
		}
	})

	p := harness.Person{Client: c}
	at := p.Open(t, a.LoginURL(metadataPath))
	at = p.Login(t, at, "alice", "not this one, surely")
	if !strings.Contains(at.Body, "Error:") {
		t.Fatalf("a wrong password: %d %s", at.Resp.StatusCode, harness.Text(at.Body))
	}
	at = p.Login(t, at, "alice", password)
	if state := a.Session(c); !state.Active || state.Username != "alice" {
		t.Fatalf("session %+v after login at %s: %s", state, at.URL.Path, harness.Text(at.Body))
	}

	t.Run("what the template of the policy grants arrives, and nothing else private", func(t *testing.T) {
		s := harness.Subscribe(t, c, a.Hub()+"?match=*", nil)
		auth := harness.Bearer(a.SelfIssued(t, rar.Publish))
		for _, topic := range []string{"https://example.com/users/bob/1", "https://example.com/users/alice/1"} {
			resp, body := harness.Do(t, c, http.MethodPost, a.Hub(), url.Values{"topic": {topic}, "data": {topic}, "private": {""}}, auth)
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("publish = %d %s", resp.StatusCode, body)
			}
		}
		if got := s.Next(t); got != "https://example.com/users/alice/1" {
			t.Errorf("event = %q", got)
		}
	})
	t.Run("TOK-26 the publisher's key opens no stream, and signs no grant to read", func(t *testing.T) {
		for _, action := range []rar.Action{rar.Publish, rar.Subscribe} {
			resp, body := harness.Do(t, a.Client(), http.MethodGet, a.Hub()+"?match=*", nil, harness.Bearer(a.SelfIssued(t, action)))
			if resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s: %d %s", action, resp.StatusCode, body)
			}
		}
	})
	t.Run("a minted token of the authorization server publishes", func(t *testing.T) {
		compact := harness.Mint(t, "--config", a.Config, "--publish-pattern", "https://example.com/*")
		for topic, want := range map[string]int{"https://example.com/x": 200, "https://other.example/x": 403} {
			resp, body := harness.Do(t, c, http.MethodPost, a.Hub(), url.Values{"topic": {topic}}, harness.Bearer(compact))
			if resp.StatusCode != want {
				t.Errorf("%s: %d %s", topic, resp.StatusCode, body)
			}
		}
	})
	t.Run("streams end when the hub stops, and it stops in time", func(t *testing.T) {
		s := harness.Subscribe(t, c, a.Hub()+"?match=*", nil)
		a.Stop()
		s.End(t)
		if a.Err != nil {
			t.Errorf("exit: %v", a.Err)
		}
	})
}

// TestServe_bundled runs both in one process, as a small site does: one binary, one configuration for each.
func TestServe_bundled(t *testing.T) {
	b := harness.StartBundled(t, harness.BundledOptions{})
	c := b.Client()
	password := harness.AddUser(t, "alice", "--config", b.Config)
	p := harness.Person{Client: c}
	p.Login(t, p.Open(t, b.LoginURL(metadataPath)), "alice", password) // the broker is a first-party client: no consent is asked
	if state := b.Session(c); !state.Active || state.Username != "alice" {
		t.Fatalf("session = %+v", state)
	}
	minted := harness.Mint(t, "--config", b.Config, "--publish", "*")
	s := harness.Subscribe(t, c, b.Hub()+"?match=*", nil)
	for _, topic := range []string{"https://example.com/users/bob/1", "https://example.com/users/alice/1"} {
		b.PublishAs(c, minted, topic, topic, true)
	}
	if got := s.Next(t); got != "https://example.com/users/alice/1" {
		t.Errorf("event = %q", got)
	}
}
