package as

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// issue ends a request well: a grant and the code that redeems it, stored in one transaction.
func (s *Server) issue(ctx context.Context, p pending, who *signedIn, granted decision) (Step, error) {
	if err := s.finish(ctx, p); err != nil {
		return Step{}, err
	}
	now := time.Now()
	grant := store.Grant{
		ID:        newID("g_"),
		Issuer:    s.options.Issuer,
		ClientID:  p.client.ID,
		AccountID: who.account.ID,
		SessionID: who.session.SessionID,
		Resource:  p.request.Resource,
		Details:   rar.Encode(granted.details),
		CreatedAt: now,
		ExpiresAt: now.Add(s.grantTTL(p.client)),
	}
	code, err := s.newCode(ctx, p, who, grant, granted.scopes)
	if errors.Is(err, store.ErrRevoked) { // the client was deleted, the account disabled or the session ended at this moment
		return s.refused(ctx, p.request, accessDenied().because(err))
	}
	if err != nil {
		return s.refused(ctx, p.request, fmt.Errorf("issue code: %w", err))
	}
	s.audit(ctx, store.AuditRecord{
		Event: EventGrant, Actor: who.account.ID, Subject: who.account.ID, Client: p.client.ID,
		Details: map[string]string{"grant_id": grant.ID, "resource": grant.Resource},
	})
	return s.answer(p.request, url.Values{"code": {code}}), nil
}

// grantTTL is how long a grant lives. Without refresh tokens its last token begins, at the latest, when the code ends.
func (s *Server) grantTTL(client store.Client) time.Duration {
	if mayUse(client, GrantRefreshToken) {
		return s.options.RefreshAbsolute
	}
	return codeTTL + s.options.AccessTokenTTL
}

// newCode has fosite make the code. fosite judges the request once more, as a second pair of eyes; it gets the registered
// redirect URI, as its own rule for loopback is too wide, and a state of ours.
func (s *Server) newCode(ctx context.Context, p pending, who *signedIn, grant store.Grant, scopes []string) (string, error) {
	query := url.Values{
		"response_type":         {"code"},
		"client_id":             {p.client.ID},
		"redirect_uri":          {p.request.RegisteredURI},
		"state":                 {placeholderState},
		"code_challenge":        {p.request.Challenge},
		"code_challenge_method": {"S256"},
		"audience":              {p.request.Resource},
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.endpoint(PathAuthorize)+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return "", fmt.Errorf("rebuild request: %w", err)
	}
	ar, err := s.provider.NewAuthorizeRequest(ctx, r)
	if err != nil {
		return "", fmt.Errorf("check request: %w", err)
	}
	// The redemption must name the redirect URI exactly as this request did, and only if it did (RFC 6749 section 4.1.3).
	ar.GetRequestForm().Del("redirect_uri")
	if p.request.RedirectSent {
		ar.GetRequestForm().Set("redirect_uri", p.request.RedirectURI)
	}
	ar.SetID(grant.ID)
	ar.GrantAudience(p.request.Resource)
	ctx, w := withWork(ctx)
	response, err := s.provider.NewAuthorizeResponse(ctx, ar, &session{
		Subject:   who.account.ID,
		Username:  who.account.Username,
		SessionID: who.session.SessionID,
		Resource:  p.request.Resource,
		Scopes:    scopes,
		Granted:   grant.Details,
		EndsAt:    grant.ExpiresAt,
	})
	if err != nil {
		return "", fmt.Errorf("make code: %w", err)
	}
	if err := s.store.CreateGrant(ctx, grant, &w.code); err != nil {
		return "", fmt.Errorf("store grant: %w", err)
	}
	return response.GetCode(), nil
}

func (s *Server) fositeClient(c store.Client) fositeClient {
	resources := make([]string, 0, len(s.resources))
	for _, r := range s.resources {
		resources = append(resources, r.ID)
	}
	return fositeClient{client: c, resources: resources}
}
