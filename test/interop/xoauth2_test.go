package interop_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/cinnabar-hub/cinnabar/test/harness"
	"github.com/cinnabar-hub/cinnabar/test/secretwatch"
)

func details(action string) string {
	return `[{"type":"https://mercure.rocks/authorization-detail","actions":["` + action + `"],"topics":[{"match":"` + topic + `"}]}]`
}

// oauthContext makes the library use a client that trusts the site's certificate authority, and no other.
func (s *site) oauthContext(t *testing.T) context.Context {
	t.Helper()
	c := s.Client()
	c.CheckRedirect = nil
	return context.WithValue(t.Context(), oauth2.HTTPClient, c)
}

// endpoint is what the metadata of the authorization server says; the library does not read it by itself.
func (s *site) endpoint(t *testing.T) oauth2.Endpoint {
	t.Helper()
	issuer, err := url.Parse(s.Issuer)
	if err != nil {
		t.Fatal(err)
	}
	_, body := harness.Do(t, s.Client(), http.MethodGet, issuer.Scheme+"://"+issuer.Host+"/.well-known/oauth-authorization-server"+issuer.Path, nil, nil)
	var meta struct {
		Authorize string `json:"authorization_endpoint"`
		Token     string `json:"token_endpoint"`
	}
	if err := json.Unmarshal([]byte(body), &meta); err != nil || meta.Authorize == "" || meta.Token == "" {
		t.Fatalf("metadata: %v: %s", err, body)
	}
	return oauth2.Endpoint{AuthURL: meta.Authorize, TokenURL: meta.Token}
}

// publishWith publishes with a client of the library, which adds the token by itself.
func (s *site) publishWith(t *testing.T, c *http.Client, data string) {
	t.Helper()
	form := url.Values{"topic": {topic}, "data": {data}, "private": {"on"}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Hub(), strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Fatalf("publish = %d %s", resp.StatusCode, body)
	}
}

// worker is the library's client for the client credentials grant.
func (s *site) worker(t *testing.T, id string, style oauth2.AuthStyle) *http.Client {
	t.Helper()
	c := clientcredentials.Config{
		ClientID: id, ClientSecret: s.secrets[id], TokenURL: s.endpoint(t).TokenURL, AuthStyle: style,
		EndpointParams: url.Values{"authorization_details": {details("publish")}, "resource": {s.Hub()}},
	}
	return c.Client(s.oauthContext(t))
}

// TestXOAuth2_clientCredentials gets tokens with golang.org/x/oauth2 and publishes with them. Unless told how a client presents
// its secret, the library tries one way and, after any error, the other.
func TestXOAuth2_clientCredentials(t *testing.T) {
	s := startSite(t)
	for name, tc := range map[string]struct {
		id    string
		style oauth2.AuthStyle
	}{
		"header, detected": {"worker-client_secret_basic", oauth2.AuthStyleAutoDetect},
		"header":           {"worker-client_secret_basic", oauth2.AuthStyleInHeader},
		"body, detected":   {"worker-client_secret_post", oauth2.AuthStyleAutoDetect},
		"body":             {"worker-client_secret_post", oauth2.AuthStyleInParams},
	} {
		t.Run(name, func(t *testing.T) { s.publishWith(t, s.worker(t, tc.id, tc.style), name) })
	}
}

// TestXOAuth2_authorizationCode logs a person in with golang.org/x/oauth2 and PKCE, listens with the token, and lets the library's
// TokenSource refresh it.
func TestXOAuth2_authorizationCode(t *testing.T) {
	s := startSite(t)
	publisher := s.worker(t, "worker-client_secret_basic", oauth2.AuthStyleInHeader)
	for name, tc := range map[string]struct {
		id    string
		style oauth2.AuthStyle
	}{
		"public, detected":           {"app-none", oauth2.AuthStyleAutoDetect},
		"public":                     {"app-none", oauth2.AuthStyleInParams},
		"secret in header, detected": {"app-client_secret_basic", oauth2.AuthStyleAutoDetect},
		"secret in body, detected":   {"app-client_secret_post", oauth2.AuthStyleAutoDetect},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint := s.endpoint(t)
			endpoint.AuthStyle = tc.style
			conf := &oauth2.Config{ClientID: tc.id, ClientSecret: s.secrets[tc.id], Endpoint: endpoint, RedirectURL: harness.Callback}
			verifier := oauth2.GenerateVerifier()
			secretwatch.Add(t, verifier)
			start := conf.AuthCodeURL("a state of some length", oauth2.S256ChallengeOption(verifier),
				oauth2.SetAuthURLParam("authorization_details", details("subscribe")), oauth2.SetAuthURLParam("resource", s.Hub()))
			p := harness.Person{Client: s.Client(), Stop: harness.Callback}
			at := p.Press(t, p.Login(t, p.Open(t, start), "alice", s.password), "allow")
			if at.URL.Query().Get("code") == "" || at.URL.Query().Get("state") != "a state of some length" || at.URL.Query().Get("iss") != s.Issuer {
				t.Fatalf("the answer at %s: error %q", at.URL.Path, at.URL.Query().Get("error"))
			}
			ctx := s.oauthContext(t)
			first, err := conf.Exchange(ctx, at.URL.Query().Get("code"), oauth2.VerifierOption(verifier), oauth2.SetAuthURLParam("resource", s.Hub()))
			if err != nil {
				t.Fatal(err)
			}
			if first.RefreshToken == "" || first.Extra("authorization_details") == nil || first.Type() != "Bearer" || time.Until(first.Expiry) < time.Minute {
				t.Errorf("token: type %s, expires %v, details %v", first.Type(), first.Expiry, first.Extra("authorization_details"))
			}
			s.hears(t, conf.Client(ctx, first), publisher, name+", with the first token")

			stale := *first
			stale.Expiry = time.Now().Add(-time.Minute)
			source := conf.TokenSource(ctx, &stale)
			second, err := source.Token()
			if err != nil {
				t.Fatal(err)
			}
			if second.AccessToken == first.AccessToken || second.RefreshToken == "" {
				t.Error("the token was not refreshed")
			}
			if rotated := second.RefreshToken != first.RefreshToken; rotated != (tc.id == "app-none") {
				t.Errorf("rotated: %v", rotated)
			}
			s.hears(t, oauth2.NewClient(ctx, source), publisher, name+", with the second token")
		})
	}
}

// hears opens a stream with a client of the library, and wants to see what is published.
func (s *site) hears(t *testing.T, c, publisher *http.Client, data string) {
	t.Helper()
	stream := harness.Subscribe(t, c, s.Hub()+"?match="+url.QueryEscape(topic), nil)
	defer stream.Close()
	s.publishWith(t, publisher, data)
	if got := stream.Next(t); got != data {
		t.Errorf("event = %q, want %q", got, data)
	}
}
