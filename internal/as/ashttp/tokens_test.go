package ashttp_test

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// clientSecret is the secret of every client that has one. Characters that form-encoding changes are in it.
const clientSecret = "a secret + of 32 bytes, at least: ä%2B"

// withClients adds a client of each kind that gets more than a code's token.
func withClients(o *as.Options) {
	code := []string{as.GrantAuthorizationCode, as.GrantRefreshToken}
	o.Clients = append(
		o.Clients,
		store.Client{ID: "app", Name: "Renewing app", AuthMethod: as.AuthNone, RedirectURIs: []string{callback}, GrantTypes: code},
		store.Client{
			ID: "web", Name: "Web site", AuthMethod: as.AuthSecretBasic, SecretHash: as.HashClientSecret(clientSecret),
			RedirectURIs: []string{callback}, GrantTypes: code, SkipConsent: true,
		},
		store.Client{
			ID: "post", AuthMethod: as.AuthSecretPost, SecretHash: as.HashClientSecret(clientSecret),
			RedirectURIs: []string{callback}, GrantTypes: code, SkipConsent: true,
		},
		store.Client{
			ID: "hub", Name: "Session broker", AuthMethod: as.AuthSecretBasic, SecretHash: as.HashClientSecret(clientSecret),
			RedirectURIs: []string{callback}, GrantTypes: code, SkipConsent: true, Broker: true,
		},
		store.Client{
			ID: "backend", AuthMethod: as.AuthSecretBasic, SecretHash: as.HashClientSecret(clientSecret),
			GrantTypes: []string{as.GrantClientCredentials},
		},
		store.Client{
			ID: "stray", AuthMethod: as.AuthSecretBasic, SecretHash: as.HashClientSecret(clientSecret),
			GrantTypes: []string{as.GrantClientCredentials},
		},
	)
	o.Policies[0].When.Clients = append(o.Policies[0].When.Clients, "app", "web", "post", "hub", "backend")
	o.Policies = append(o.Policies, as.Policy{
		ID:   "backend",
		When: as.When{Clients: []string{"backend"}},
		Grant: []rar.Detail{
			{Actions: []rar.Action{rar.Publish}, Topics: []rar.TopicMatcher{{Match: "https://example.com/{{sub}}/*", MatchType: topic.URLPattern}}},
			{Actions: []rar.Action{rar.Publish, rar.Subscribe}, Topics: []rar.TopicMatcher{{Match: "https://example.com/jobs", MatchType: topic.Exact}}},
			{Actions: []rar.Action{rar.Subscribe}, Topics: []rar.TopicMatcher{{Match: "https://example.com/of/{{user.name}}", MatchType: topic.Exact}}},
		},
	})
	o.Scopes["jobs"] = []rar.Detail{{Actions: []rar.Action{rar.Publish}, Topics: []rar.TopicMatcher{{Match: "https://example.com/jobs", MatchType: topic.Exact}}}}
}

// tokenServer is a server with those clients.
func tokenServer(tb testing.TB, change ...func(*as.Options)) *server {
	tb.Helper()
	return newServer(tb, func(o *as.Options) {
		withClients(o)
		for _, c := range change {
			c(o)
		}
	})
}

// credentials adds what a client of withClients authenticates with.
func credentials(client string) func(*http.Request) {
	switch client {
	case "web", "hub", "backend", "stray":
		return basic(client, url.QueryEscape(clientSecret))
	default:
		return func(*http.Request) {}
	}
}

// identity adds what goes into the form.
func identity(client string) func(url.Values) {
	return func(form url.Values) {
		form.Set("client_id", client)
		if client == "post" {
			form.Set("client_secret", clientSecret)
		}
	}
}

// login signs ann in through a client, in a browser of her own, and returns the first tokens.
func (s *server) login(client string, change ...func(url.Values)) tokenReply {
	s.t.Helper()
	return s.loginIn(s.newBrowser(), client, change...)
}

func (s *server) loginIn(b *browser, client string, change ...func(url.Values)) tokenReply {
	s.t.Helper()
	page := b.open(request(append(change, set("client_id", client))...))
	if page.StatusCode == http.StatusOK && page.Request.URL.Path == "/login" {
		page = b.signIn(page, "ann", password)
	}
	if page.StatusCode == http.StatusOK {
		page = b.answer(page, "allow")
	}
	r := s.token(exchange(page.sent(s.t, callback).Get("code"), identity(client)), credentials(client))
	if r.status != http.StatusOK {
		s.t.Fatalf("login with %s: %+v\n%s", client, r, s.logs)
	}
	return r
}

// refresh uses a refresh token.
func (s *server) refresh(client, token string, change ...func(url.Values)) tokenReply {
	s.t.Helper()
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}}
	for _, c := range append([]func(url.Values){identity(client)}, change...) {
		c(form)
	}
	return s.token(form, credentials(client))
}

// revoke posts to the revocation endpoint and returns status and error code.
func (s *server) revoke(client, token string, change ...func(url.Values)) tokenReply {
	s.t.Helper()
	form := url.Values{"token": {token}}
	for _, c := range append([]func(url.Values){identity(client)}, change...) {
		c(form)
	}
	return s.answer(s.send("/revoke", form, credentials(client)))
}

// works says whether a refresh token still gives tokens.
func (s *server) works(client, token string) bool {
	s.t.Helper()
	r := s.refresh(client, token)
	if r.status != http.StatusOK && r.Error != "invalid_grant" {
		s.t.Errorf("refresh: %+v", r)
	}
	return r.status == http.StatusOK
}

// log is the revocation log as kind:value.
func (s *server) log() []string {
	s.t.Helper()
	entries, err := s.store.RevocationsSince(s.t.Context(), 0, 1000)
	must(s.t, err)
	out := make([]string, 0, len(entries))
	for _, e := range entries {
		out = append(out, string(e.Kind)+":"+e.Value)
	}
	return out
}

// detail is authorization details with one topic.
func detail(action rar.Action, match string, typ topic.Type) string {
	return string(rar.Encode([]rar.Detail{{
		Actions: []rar.Action{action}, Topics: []rar.TopicMatcher{{Match: match, MatchType: typ}},
	}}))
}

// sleep lets the time of a bubble pass.
func sleep(d time.Duration) { <-time.After(d) }

// hashOf is under which the store keeps a secret.
func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
