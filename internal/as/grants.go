package as

import (
	"context"
	"fmt"
	"net/url"

	"github.com/ory/fosite"
	"github.com/ory/fosite/handler/oauth2"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// ownGrants are the grants that fosite does not do for us: refresh_token and client_credentials. A grant is nothing but a proof:
// who acts, at which resource, under what. All the rest is the same for every grant and stands around it: client authentication
// before (Server.token), the rights of this moment, the resource and narrowing (detailsHandler), recording before hand-out
// (storage.Commit), and the audit record (Server.exchange). It is one handler, as fosite drops a second one of the same type.
type ownGrants struct {
	server  *Server
	storage storage
	tokens  oauth2.AccessTokenStrategy
}

var _ fosite.TokenEndpointHandler = ownGrants{}

// proof checks what a request presents and fills in the session.
type proof func(ctx context.Context, client store.Client, r fosite.AccessRequester, sess *session) error

func (g ownGrants) proof(r fosite.AccessRequester) (proof, bool) {
	switch types := r.GetGrantTypes(); {
	case types.ExactOne(GrantRefreshToken):
		return g.server.proveRefreshToken, true
	case types.ExactOne(GrantClientCredentials):
		return g.server.proveClientCredentials, true
	default:
		return nil, false
	}
}

// CanSkipClientAuth implements fosite.TokenEndpointHandler.
func (ownGrants) CanSkipClientAuth(context.Context, fosite.AccessRequester) bool { return false }

// CanHandleTokenEndpointRequest implements fosite.TokenEndpointHandler.
func (g ownGrants) CanHandleTokenEndpointRequest(_ context.Context, r fosite.AccessRequester) bool {
	_, ok := g.proof(r)
	return ok
}

// HandleTokenEndpointRequest proves the grant.
func (g ownGrants) HandleTokenEndpointRequest(ctx context.Context, r fosite.AccessRequester) error {
	prove, ok := g.proof(r)
	if !ok {
		return fosite.ErrUnknownRequest
	}
	sess, err := sessionOf(r)
	if err != nil {
		return err
	}
	client, err := clientOf(r)
	if err != nil {
		return err
	}
	return prove(ctx, client, r, sess)
}

// PopulateTokenEndpointResponse makes the token and records it.
func (g ownGrants) PopulateTokenEndpointResponse(ctx context.Context, r fosite.AccessRequester, resp fosite.AccessResponder) error {
	if _, ok := g.proof(r); !ok {
		return fosite.ErrUnknownRequest
	}
	compact, id, err := g.tokens.GenerateAccessToken(ctx, r)
	if err != nil {
		return fmt.Errorf("make token: %w", err)
	}
	if err := g.storage.CreateAccessTokenSession(ctx, id, r); err != nil {
		return err
	}
	if err := g.storage.Commit(ctx); err != nil {
		return err
	}
	resp.SetAccessToken(compact)
	resp.SetTokenType("Bearer")
	return nil
}

// proveClientCredentials has a client act for itself (RFC 6749 section 4.4). That it authenticated is all the proof there is.
func (s *Server) proveClientCredentials(_ context.Context, client store.Client, r fosite.AccessRequester, sess *session) error {
	if client.AuthMethod == AuthNone {
		return refuse(CodeUnauthorizedClient, "The client may not use this grant type.")
	}
	resource, err := s.target(r.GetRequestForm()["resource"])
	if err != nil {
		return err
	}
	sess.Subject, sess.Resource = client.ID, resource
	return nil
}

// grantParameters are the parameters that reach a grant, beside those that every grant has.
func grantParameters(grantType string) []string {
	switch grantType {
	case GrantAuthorizationCode:
		return []string{"code", "redirect_uri", "code_verifier"}
	case GrantRefreshToken:
		return []string{"refresh_token", "scope"}
	default:
		return []string{"scope"}
	}
}

// grantForm is the form that fosite gets, rebuilt from what the grant may read.
func grantForm(p params) url.Values {
	form := url.Values{}
	for _, name := range append(grantParameters(p.get("grant_type")), "grant_type", "authorization_details", "resource") {
		if v := p.values[name]; len(v) > 0 {
			form[name] = v
		}
	}
	return form
}

// clientOf returns the client that was authenticated.
func clientOf(r fosite.AccessRequester) (store.Client, error) {
	c, ok := r.GetClient().(fositeClient)
	if !ok {
		return store.Client{}, fmt.Errorf("as: client is a %T", r.GetClient())
	}
	return c.client, nil
}
