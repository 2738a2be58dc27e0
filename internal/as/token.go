package as

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// TokenRequest is a request to the token endpoint (RFC 6749 section 3.2).
type TokenRequest struct {
	// Form is the body, application/x-www-form-urlencoded.
	Form string
	// Basic is the Authorization header, if there is one.
	Basic *Basic
}

// TokenResponse is a successful answer of the token endpoint (RFC 6749 section 5.1, RFC 9396 section 7).
type TokenResponse struct {
	AccessToken string          `json:"access_token"`
	TokenType   string          `json:"token_type"`
	ExpiresIn   int64           `json:"expires_in"`
	Scope       string          `json:"scope,omitempty"`
	Details     json.RawMessage `json:"authorization_details"`
}

// Token answers a token request. Every error is an *OAuthError.
func (s *Server) Token(ctx context.Context, r TokenRequest) (TokenResponse, error) {
	response, clientID, err := s.token(ctx, r)
	if err == nil {
		return response, nil
	}
	oe := tokenError(err)
	level := slog.LevelInfo
	if oe.Status() >= http.StatusInternalServerError {
		level = slog.LevelError
	}
	attrs := []slog.Attr{slog.String("client_id", clientID), slog.String("code", string(oe.Code))}
	if cause := oe.Unwrap(); cause != nil {
		attrs = append(attrs, slog.String("error", cause.Error()))
	}
	s.logger.LogAttrs(ctx, level, "token request refused", attrs...)
	return TokenResponse{}, oe
}

func (s *Server) token(ctx context.Context, r TokenRequest) (response TokenResponse, clientID string, err error) {
	p, err := parseParams(r.Form)
	if err != nil || len(p.repeated) > 0 {
		return TokenResponse{}, "", refuse(CodeInvalidRequest, "The body is malformed, too long, or repeats a parameter.").because(err)
	}
	grantType := p.get("grant_type")
	switch {
	case grantType == "":
		return TokenResponse{}, "", refuse(CodeInvalidRequest, "The grant_type parameter is missing.")
	case !slices.Contains(supportedGrants(), grantType):
		return TokenResponse{}, "", refuse(CodeUnsupportedGrantType, "The grant type is not supported.")
	}
	client, err := s.authenticate(ctx, p, r.Basic)
	if err != nil {
		return TokenResponse{}, "", err
	}
	if !mayUse(client, grantType) {
		return TokenResponse{}, client.ID, refuse(CodeUnauthorizedClient, "The client may not use this grant type.")
	}
	response, err = s.exchange(ctx, client, p)
	return response, client.ID, err
}

// exchange has fosite redeem a code.
func (s *Server) exchange(ctx context.Context, client store.Client, p params) (TokenResponse, error) {
	form := url.Values{}
	for _, name := range []string{"grant_type", "code", "redirect_uri", "code_verifier", "authorization_details", "resource"} {
		if v := p.values[name]; len(v) > 0 {
			form[name] = v
		}
	}
	ctx = withClient(ctx, s.fositeClient(client))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.endpoint(PathToken), strings.NewReader(form.Encode()))
	if err != nil {
		return TokenResponse{}, fmt.Errorf("rebuild request: %w", err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	ar, err := s.provider.NewAccessRequest(ctx, r, &session{})
	if err != nil {
		return TokenResponse{}, fmt.Errorf("check token request: %w", err)
	}
	answer, err := s.provider.NewAccessResponse(ctx, ar)
	if err != nil {
		return TokenResponse{}, fmt.Errorf("issue token: %w", err)
	}
	sess, err := sessionOf(ar)
	if err != nil {
		return TokenResponse{}, err
	}
	s.audit(ctx, store.AuditRecord{
		Event: EventToken, Actor: client.ID, Subject: sess.Subject, Client: client.ID,
		Details: map[string]string{"grant_id": ar.GetID(), "jti": sess.tokenID, "resource": sess.Resource},
	})
	return TokenResponse{
		AccessToken: answer.GetAccessToken(),
		TokenType:   "Bearer",
		ExpiresIn:   int64(time.Until(sess.expiresAt).Round(time.Second) / time.Second),
		Scope:       strings.Join(sess.Scopes, " "),
		Details:     rar.Encode(sess.effective),
	}, nil
}
