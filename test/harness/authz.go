package harness

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// Callback is the redirect URI of the clients that tests register: nobody listens there, a person stops before it.
const Callback = "http://127.0.0.1/callback"

// OAuthClient is a client of an authorization server, driven by hand.
type OAuthClient struct {
	Issuer   string
	Base     string // where the issuer's endpoints are asked; empty: at the issuer
	ID       string
	Secret   string // empty: a public client; else sent as client_secret_basic
	Resource string
	HTTP     *http.Client
}

// At is the same client asking another process that serves the issuer.
func (c OAuthClient) At(base string) OAuthClient {
	c.Base = base
	return c
}

func (c OAuthClient) base() string {
	if c.Base != "" {
		return c.Base
	}
	return c.Issuer
}

// Tokens is a response of the token endpoint.
type Tokens struct {
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
	ExpiresIn    int    `json:"expires_in"`
	Error        string `json:"error"`
}

// AuthorizeURL is where the client sends a person, with a verifier of PKCE that it keeps.
func (c OAuthClient) AuthorizeURL(verifier, details string) string {
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{
		"response_type": {"code"}, "client_id": {c.ID}, "redirect_uri": {Callback}, "resource": {c.Resource},
		"code_challenge_method": {"S256"}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "state": {"0123456789abcdef"},
	}
	if details != "" {
		q.Set("authorization_details", details)
	}
	return c.base() + "/authorize?" + q.Encode()
}

// TokenForm is the request to the token endpoint with these fields, and its header.
func (c OAuthClient) TokenForm(fields map[string]string) (url.Values, http.Header) {
	form, header := url.Values{}, http.Header{}
	for k, v := range fields {
		form.Set(k, v)
	}
	if c.Secret == "" {
		form.Set("client_id", c.ID)
	} else {
		basic := base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(c.ID) + ":" + url.QueryEscape(c.Secret)))
		header.Set("Authorization", "Basic "+basic)
	}
	return form, header
}

// Token asks the token endpoint and gives its answer with the status.
func (c OAuthClient) Token(tb testing.TB, fields map[string]string) (Tokens, int) {
	tb.Helper()
	answer, status, err := c.TryToken(tb.Context(), fields)
	if err != nil {
		tb.Fatal(err)
	}
	return answer, status
}

// TryToken is Token for other goroutines than the test's.
func (c OAuthClient) TryToken(ctx context.Context, fields map[string]string) (answer Tokens, status int, err error) {
	form, header := c.TokenForm(fields)
	resp, body, err := Try(ctx, c.HTTP, http.MethodPost, c.base()+"/token", form, header)
	if err != nil {
		return Tokens{}, 0, err
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		return Tokens{}, resp.StatusCode, fmt.Errorf("token endpoint: %d: %w", resp.StatusCode, err)
	}
	return answer, resp.StatusCode, nil
}

// Revoke asks the revocation endpoint to revoke a token.
func (c OAuthClient) Revoke(tb testing.TB, token string) {
	tb.Helper()
	form, header := c.TokenForm(map[string]string{"token": token})
	if resp, body := Do(tb, c.HTTP, http.MethodPost, c.base()+"/revoke", form, header); resp.StatusCode != http.StatusOK {
		tb.Fatalf("revoke = %d %s", resp.StatusCode, body)
	}
}

// CodeFields is the request that redeems a code.
func CodeFields(code, verifier string) map[string]string {
	return map[string]string{"grant_type": "authorization_code", "code": code, "code_verifier": verifier, "redirect_uri": Callback}
}

// RefreshFields is the request that uses a refresh token.
func RefreshFields(token string) map[string]string {
	return map[string]string{"grant_type": "refresh_token", "refresh_token": token}
}

// Code takes a person from the authorization endpoint through login and consent, and gives the code; a login that is still there
// and a consent that is not asked for are passed over.
func (c OAuthClient) Code(tb testing.TB, p Person, name, password, verifier, details string) string {
	tb.Helper()
	p.Stop = Callback
	at := p.Open(tb, c.AuthorizeURL(verifier, details))
	if at.Resp != nil && hasForm(at.Body, "password") {
		at = p.Login(tb, at, name, password)
	}
	if at.Resp != nil && hasForm(at.Body, "allow") {
		at = p.Press(tb, at, "allow")
	}
	code := at.URL.Query().Get("code")
	if at.Resp != nil || code == "" {
		tb.Fatalf("no code, but %s?error=%s: %s", at.URL.Path, at.URL.Query().Get("error"), Text(at.Body))
	}
	return code
}

// hasForm says whether a page has a form with something in it.
func hasForm(page, part string) bool {
	return slices.ContainsFunc(forms(page), func(f string) bool { return strings.Contains(f, part) })
}
