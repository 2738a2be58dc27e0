package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxRequestURIBytes bounds what the server calls a pushed request: it travels in a URL.
const maxRequestURIBytes = 512

var (
	// errUnavailable marks failures that may pass: the issuer cannot be reached or says so.
	errUnavailable = errors.New("session: authorization server unavailable")
	// errRefused marks answers that will not get better by asking again.
	errRefused = errors.New("session: authorization server refused")
)

// oauthError is an error answer of an endpoint that the broker posts to (RFC 6749 section 5.2).
type oauthError struct {
	status int
	code   string
}

// Error names the code only: the description is the other side's free text.
func (e *oauthError) Error() string {
	return fmt.Sprintf("authorization server answered %d %s", e.status, e.code)
}

// Unwrap sorts the error into those that may pass and those that will not.
func (e *oauthError) Unwrap() error {
	if e.status >= http.StatusInternalServerError || e.status == http.StatusTooManyRequests || e.code == "temporarily_unavailable" {
		return errUnavailable
	}
	return errRefused
}

// tokens is what a token response gives (RFC 6749 section 5.1), as far as the broker uses it.
type tokens struct {
	access  string // in compact form
	refresh string // empty: none
}

// exchange redeems a code (RFC 6749 section 4.1.3). Its errors contain no secret.
func (b *broker) exchange(ctx context.Context, login *loginState, code string) (*tokens, error) {
	return b.requestTokens(ctx, url.Values{
		"grant_type":    {"authorization_code"},
		"code":          {code},
		"redirect_uri":  {b.redirectURI},
		"code_verifier": {login.Verifier},
	})
}

// renew asks for a new access token (RFC 6749 section 6). Scope and details are those of the grant, since it names none.
func (b *broker) renew(ctx context.Context, refreshToken string) (*tokens, error) {
	return b.requestTokens(ctx, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refreshToken}})
}

// requestTokens makes one token request for the hub's resource. Its errors are errUnavailable or errRefused.
func (b *broker) requestTokens(ctx context.Context, form url.Values) (*tokens, error) {
	m, err := b.issuer.metadata(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnavailable, err)
	}
	form.Set("resource", b.options.Resource)
	status, body, err := b.post(ctx, m.TokenEndpoint, form)
	if err != nil {
		return nil, fmt.Errorf("token request: %w", err)
	}
	return readTokenResponse(status, body)
}

// push leaves an authorization request at the server (RFC 9126 section 2) and returns the request_uri that stands for it.
func (b *broker) push(ctx context.Context, endpoint string, request url.Values) (string, error) {
	status, body, err := b.post(ctx, endpoint, request)
	if err != nil {
		return "", fmt.Errorf("pushed authorization request: %w", err)
	}
	var answer struct {
		RequestURI string `json:"request_uri"`
	}
	if status != http.StatusCreated {
		return "", fmt.Errorf("pushed authorization request: %w", readError(status, body))
	}
	if json.Unmarshal(body, &answer) != nil || answer.RequestURI == "" || len(answer.RequestURI) > maxRequestURIBytes {
		return "", fmt.Errorf("%w: answer to the pushed request holds no usable request_uri", errRefused)
	}
	return answer.RequestURI, nil
}

// revoke takes a token back (RFC 7009 section 2.1). A server that knows no such token answers like one that does.
func (b *broker) revoke(ctx context.Context, endpoint, value, hint string) error {
	status, body, err := b.post(ctx, endpoint, url.Values{"token": {value}, "token_type_hint": {hint}})
	if err != nil {
		return fmt.Errorf("revocation request: %w", err)
	}
	if status != http.StatusOK {
		return fmt.Errorf("revocation request: %w", readError(status, body))
	}
	return nil
}

// post sends form to an endpoint of the issuer as the client that the broker is.
func (b *broker) post(ctx context.Context, endpoint string, form url.Values) (status int, body []byte, err error) {
	if err := b.asserter.Authenticate(form, time.Now()); err != nil {
		return 0, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	return b.issuer.do(req)
}

// readTokenResponse reads a token response.
func readTokenResponse(status int, body []byte) (*tokens, error) {
	if status != http.StatusOK {
		return nil, readError(status, body)
	}
	var answer struct {
		AccessToken  string `json:"access_token"`
		TokenType    string `json:"token_type"`
		RefreshToken string `json:"refresh_token"`
	}
	if json.Unmarshal(body, &answer) != nil {
		// The decoder's text may quote the body, which holds a token.
		return nil, fmt.Errorf("%w: token response is not JSON", errRefused)
	}
	if !strings.EqualFold(answer.TokenType, "Bearer") || answer.AccessToken == "" {
		return nil, fmt.Errorf("%w: token response holds no bearer token", errRefused)
	}
	return &tokens{access: answer.AccessToken, refresh: answer.RefreshToken}, nil
}

// readError reads an error answer. It keeps the error code alone.
func readError(status int, body []byte) *oauthError {
	var answer struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &answer) != nil {
		answer.Error = ""
	}
	return &oauthError{status: status, code: errorToken(answer.Error)}
}

// errorToken makes an error code of the other side fit for a log line.
func errorToken(code string) string {
	const limit = 64
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r == '_' {
			return r
		}
		return -1
	}, code)
	if clean == "" || len(code) > limit {
		return "unnamed_error"
	}
	return clean
}
