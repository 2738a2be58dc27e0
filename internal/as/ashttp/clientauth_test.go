package ashttp_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// deletingStore deletes a client right before a token is recorded.
type deletingStore struct {
	store.Store

	s     *server
	armed bool
}

func (d *deletingStore) RecordToken(ctx context.Context, t store.IssuedToken) error {
	if d.armed {
		key := store.Key{ID: "k", Issuer: issuer, Algorithm: "ES256", Private: []byte("private")} // the log has entries for issuers with keys
		if err := d.SaveKeys(ctx, issuer, 0, []store.Key{key}); err != nil {
			return err
		}
		if err := d.DeleteClient(ctx, t.ClientID, time.Now()); err != nil {
			return err
		}
	}
	return d.Store.RecordToken(ctx, t)
}

func TestClientSecrets(t *testing.T) {
	s := tokenServer(t)
	form := func(change ...func(url.Values)) url.Values {
		f := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"rt_none"}}
		for _, c := range change {
			c(f)
		}
		return f
	}
	none := func(*http.Request) {}
	secret := set("client_secret", clientSecret)
	encoded := url.QueryEscape(clientSecret)
	for name, tc := range map[string]struct {
		form      url.Values
		header    func(*http.Request)
		want      string // invalid_grant: authenticated
		challenge bool
	}{
		"Basic, encoded":                     {form(), basic("web", encoded), "invalid_grant", false},
		"Basic, as it is":                    {form(), basic("web", clientSecret), "invalid_grant", false},
		"Basic beside its own client_id":     {form(set("client_id", "web")), basic("web", encoded), "invalid_grant", false},
		"Basic, wrong":                       {form(), basic("web", "wrong"), "invalid_client", true},
		"Basic, empty":                       {form(), basic("web", ""), "invalid_client", true},
		"Basic, a prefix of it":              {form(), basic("web", clientSecret[:30]), "invalid_client", true},
		"Basic, malformed escapes":           {form(), basic("web", "%zz"), "invalid_client", true},
		"Basic, a malformed client":          {form(), basic("%zz", "x"), "invalid_client", true},
		"Basic, the hash":                    {form(), basic("web", string(as.HashClientSecret(clientSecret))), "invalid_client", true},
		"Basic for a client of the body":     {form(), basic("post", encoded), "invalid_client", true},
		"Basic for a client with keys":       {form(), basic("broker", encoded), "invalid_client", true},
		"Basic for a public client":          {form(), basic("app", encoded), "invalid_client", true},
		"Basic beside another client_id":     {form(set("client_id", "hub")), basic("web", encoded), "invalid_request", false},
		"Basic beside a body secret":         {form(secret), basic("web", encoded), "invalid_request", false},
		"the body":                           {form(set("client_id", "post"), secret), none, "invalid_grant", false},
		"the body, wrong":                    {form(set("client_id", "post"), set("client_secret", "wrong")), none, "invalid_client", false},
		"the body, empty":                    {form(set("client_id", "post"), set("client_secret", "")), none, "invalid_client", false},
		"the body, encoded twice":            {form(set("client_id", "post"), set("client_secret", encoded)), none, "invalid_client", false},
		"the body, without client":           {form(secret), none, "invalid_client", false},
		"the body for a client of Basic":     {form(set("client_id", "web"), secret), none, "invalid_client", false},
		"the body twice":                     {form(set("client_id", "post"), secret, add("client_secret", clientSecret)), none, "invalid_request", false},
		"no secret at all":                   {form(set("client_id", "web")), none, "invalid_client", false},
		"a secret and an assertion":          {form(set("client_id", "post"), secret, set("client_assertion", "a.b.c")), none, "invalid_request", false},
		"a secret where there should be key": {form(set("client_id", "broker"), secret), none, "invalid_client", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.token(tc.form, tc.header)
			if r.Error != tc.want {
				t.Errorf("got %d %s, want %s", r.status, r.Error, tc.want)
			}
			if got := strings.HasPrefix(r.header.Get("WWW-Authenticate"), "Basic realm="); got != tc.challenge {
				t.Errorf("challenge: %q", r.header.Get("WWW-Authenticate"))
			}
			if want := map[string]int{"invalid_client": 401}[tc.want]; want != 0 && r.status != want {
				t.Errorf("status %d", r.status)
			}
		})
	}
	t.Run("an unknown client and a wrong secret look alike", func(t *testing.T) {
		a, b := s.token(form(), basic("web", "wrong")), s.token(form(), basic("nobody", "wrong"))
		if a.status != b.status || a.Description != b.Description || a.Error != b.Error {
			t.Errorf("%+v and %+v", a, b)
		}
	})
	t.Run("a machine-made secret is long, and works", func(t *testing.T) {
		made, hash := as.NewClientSecret()
		other, _ := as.NewClientSecret()
		if len(made) < 43 || made == other {
			t.Fatalf("secret of %d characters", len(made))
		}
		must(t, as.NewAdmin(s.store, as.AdminOptions{Issuer: issuer, Actor: "root"}).CreateClient(t.Context(), store.Client{
			ID: "made", AuthMethod: as.AuthSecretBasic, SecretHash: hash, GrantTypes: []string{as.GrantClientCredentials},
		}))
		if r := s.token(url.Values{"grant_type": {"client_credentials"}}, basic("made", made)); r.Error != "unauthorized_client" { // no policy
			t.Errorf("got %+v", r)
		}
	})
}

// TestXOAuth2 has the client library of the Go project find out by itself how clients authenticate: it tries Basic, and after any
// refusal the body with the same code or token. What failed must not have used anything up.
func TestXOAuth2(t *testing.T) {
	s := tokenServer(t)
	ctx := context.WithValue(t.Context(), oauth2.HTTPClient, &http.Client{Transport: s})
	for client, secret := range map[string]string{"web": clientSecret, "post": clientSecret, "app": ""} {
		t.Run("authorization code and refresh of "+client, func(t *testing.T) {
			config := oauth2.Config{
				ClientID: client, ClientSecret: secret, RedirectURL: callback,
				Endpoint: oauth2.Endpoint{AuthURL: issuer + "/authorize", TokenURL: issuer + "/token"},
			}
			code := s.code(request(set("client_id", client)))
			got, err := config.Exchange(ctx, code, oauth2.VerifierOption(verifier))
			if err != nil {
				t.Fatalf("%v\n%s", err, s.logs)
			}
			if !got.Valid() || got.RefreshToken == "" || got.Extra("authorization_details") == nil {
				t.Errorf("token: %+v", got)
			}
			s.verify(got.AccessToken)
			got.Expiry = time.Now().Add(-time.Minute)
			renewed, err := config.TokenSource(ctx, got).Token()
			must(t, err)
			if renewed.AccessToken == got.AccessToken || (renewed.RefreshToken == got.RefreshToken) != (client != "app") {
				t.Errorf("renewed: %+v", renewed)
			}
		})
	}
	t.Run("client credentials", func(t *testing.T) {
		config := clientcredentials.Config{
			ClientID: "backend", ClientSecret: clientSecret, TokenURL: issuer + "/token",
			EndpointParams: url.Values{"authorization_details": {detail("publish", "https://example.com/jobs", "")}, "resource": {hubURL}},
		}
		got, err := config.Token(ctx)
		must(t, err)
		if s.verify(got.AccessToken).Subject != "backend" || got.RefreshToken != "" || !got.Valid() {
			t.Errorf("token: %+v", got)
		}
	})
	t.Run("and tells why it was refused", func(t *testing.T) {
		config := clientcredentials.Config{ClientID: "backend", ClientSecret: "wrong", TokenURL: issuer + "/token"}
		_, err := config.Token(ctx)
		if refused, ok := err.(*oauth2.RetrieveError); !ok || refused.ErrorCode != "invalid_client" { //nolint:errorlint // what the library returns
			t.Errorf("got %v", err)
		}
	})
}
