package as

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ory/fosite"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// detailsHandler is the last handler of a token request. It decides what the token will say: the account and the policy are
// looked at again, a request may narrow the grant (RFC 9396 section 6), and the lifetime is drawn.
type detailsHandler struct {
	server *Server
}

var _ fosite.TokenEndpointHandler = detailsHandler{}

// CanSkipClientAuth implements fosite.TokenEndpointHandler.
func (detailsHandler) CanSkipClientAuth(context.Context, fosite.AccessRequester) bool { return false }

// CanHandleTokenEndpointRequest implements fosite.TokenEndpointHandler.
func (detailsHandler) CanHandleTokenEndpointRequest(context.Context, fosite.AccessRequester) bool {
	return true
}

// HandleTokenEndpointRequest fills in the session. It never claims the request for itself: with ErrUnknownRequest fosite goes
// on, and a grant type that no other handler knows stays unknown.
func (h detailsHandler) HandleTokenEndpointRequest(ctx context.Context, r fosite.AccessRequester) error {
	sess, err := sessionOf(r)
	if err != nil {
		return err
	}
	client, ok := r.GetClient().(fositeClient)
	if !ok {
		return fmt.Errorf("as: client is a %T", r.GetClient())
	}
	for _, resource := range r.GetRequestForm()["resource"] {
		if resource != "" && resource != sess.Resource {
			return refuse(CodeInvalidTarget, "The grant is for another resource.")
		}
	}
	allowed, err := h.server.stillAllowed(ctx, client.client, sess)
	if err != nil {
		return err
	}
	if sess.effective, err = h.server.narrowRequest(sess.Resource, r.GetRequestForm().Get("authorization_details"), allowed); err != nil {
		return err
	}
	sess.expiresAt = time.Now().UTC().Truncate(time.Second).Add(lifetime(h.server.options.AccessTokenTTL))
	return fosite.ErrUnknownRequest
}

// PopulateTokenEndpointResponse adds the details as granted to this token (RFC 9396 section 7).
func (h detailsHandler) PopulateTokenEndpointResponse(_ context.Context, r fosite.AccessRequester, resp fosite.AccessResponder) error {
	sess, err := sessionOf(r)
	if err != nil {
		return err
	}
	resp.SetExtra("authorization_details", rar.Encode(sess.effective))
	return nil
}

// stillAllowed returns what of a grant the policy of this moment allows. The account may have been disabled, or have lost a
// role, since the grant was made.
func (s *Server) stillAllowed(ctx context.Context, client store.Client, sess *session) ([]rar.Detail, error) {
	account, err := s.store.Account(ctx, sess.Subject)
	if errors.Is(err, store.ErrNotFound) || (err == nil && account.Disabled) {
		return nil, badCode().because(errors.New("as: account is gone or disabled"))
	}
	if err != nil {
		return nil, fmt.Errorf("read account: %w", err)
	}
	hub, ok := s.resource(sess.Resource)
	if !ok {
		return nil, badCode().because(errors.New("as: resource is no longer served"))
	}
	granted, err := rar.Parse(sess.Granted, rar.DefaultLimits())
	if err != nil {
		return nil, fmt.Errorf("read grant: %w", err)
	}
	left, err := rar.Narrow(granted, s.ceiling(ctx, client, account, hub).details, hub.compiler, rar.Trim)
	if err != nil {
		return nil, badCode().because(err)
	}
	return left, nil
}

// narrowRequest returns what a token request asks of a grant, all of it when it asks for nothing in particular.
func (s *Server) narrowRequest(resource, raw string, allowed []rar.Detail) ([]rar.Detail, error) {
	if raw == "" {
		return allowed, nil
	}
	hub, ok := s.resource(resource)
	if !ok {
		return nil, badTarget()
	}
	wanted, err := rar.ParseRequest([]byte(raw), rar.DefaultRequestLimits(hub.compiler, hub.ID))
	if err != nil {
		return nil, badDetails().because(err)
	}
	narrowed, err := rar.Narrow(wanted, allowed, hub.compiler, rar.Deny)
	if err != nil {
		return nil, excess().because(err)
	}
	return narrowed, nil
}
