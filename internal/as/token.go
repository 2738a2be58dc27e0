package as

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// TokenResponse is a successful answer of the token endpoint (RFC 6749 section 5.1, RFC 9396 section 7).
type TokenResponse struct {
	AccessToken  string          `json:"access_token"`
	TokenType    string          `json:"token_type"`
	ExpiresIn    int64           `json:"expires_in"` // seconds
	RefreshToken string          `json:"refresh_token,omitempty"`
	Scope        string          `json:"scope,omitempty"`
	Details      json.RawMessage `json:"authorization_details"`
}

// Token answers a token request. Every error is an *OAuthError.
func (s *Server) Token(ctx context.Context, r ClientRequest) (TokenResponse, error) {
	response, clientID, err := s.token(ctx, r)
	if err != nil {
		return TokenResponse{}, s.clientError(ctx, PathToken, clientID, err)
	}
	return response, nil
}

func (s *Server) token(ctx context.Context, r ClientRequest) (response TokenResponse, clientID string, err error) {
	p, err := readClientForm(r.Form)
	if err != nil {
		return TokenResponse{}, "", err
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

// exchange has fosite redeem what the request presents. The client was authenticated; fosite runs the handlers of provider.go.
func (s *Server) exchange(ctx context.Context, client store.Client, p params) (TokenResponse, error) {
	ctx, w := withWork(withClient(ctx, s.fositeClient(client)))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.endpoint(PathToken), strings.NewReader(grantForm(p).Encode()))
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
	if !w.recorded || w.token.ID != sess.issuing.tokenID {
		return TokenResponse{}, errors.New("as: token was not recorded")
	}
	if first, ok := answer.GetExtra("refresh_token").(string); ok { // fosite makes the one that comes with a code
		sess.issuing.refreshToken = first
	}
	s.auditToken(ctx, p.get("grant_type"), w.token, sess)
	return TokenResponse{
		AccessToken:  answer.GetAccessToken(),
		TokenType:    "Bearer",
		ExpiresIn:    int64(time.Until(sess.issuing.expiresAt).Round(time.Second) / time.Second),
		RefreshToken: sess.issuing.refreshToken,
		Scope:        strings.Join(sess.issuing.scopes, " "),
		Details:      rar.Encode(sess.issuing.details),
	}, nil
}

func (s *Server) auditToken(ctx context.Context, grantType string, t store.IssuedToken, sess *session) {
	record := store.AuditRecord{
		Event: EventToken, Actor: t.ClientID, Subject: t.Subject, Client: t.ClientID,
		Details: map[string]string{"grant_type": grantType, "jti": t.ID, "resource": sess.Resource},
	}
	if t.GrantID != "" {
		record.Details["grant_id"] = t.GrantID
	}
	s.audit(ctx, record)
}
