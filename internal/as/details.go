package as

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/ory/fosite"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// detailsHandler is the last handler of a token request, whatever the grant. It decides what the token will say: the account and
// the policy are looked at again, the resource is checked, a request may narrow the grant (RFC 9396 section 6), and the
// lifetime is drawn. Nothing else fills in issuing.details, without which no token is made.
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
	client, err := clientOf(r)
	if err != nil {
		return err
	}
	form := r.GetRequestForm()
	for _, resource := range form["resource"] {
		if resource != "" && resource != sess.Resource {
			return refuse(CodeInvalidTarget, "The grant is for another resource.")
		}
	}
	hub, ok := h.server.resource(sess.Resource)
	if !ok {
		return badGrant().because(errors.New("as: resource is no longer served"))
	}
	asked, err := h.server.readWishes(form.Get("authorization_details"), form.Get("scope"), hub)
	if err != nil {
		return err
	}
	granted, err := h.server.grantedNow(ctx, client, hub, sess, asked)
	if err != nil {
		return err
	}
	sess.issuing.details, sess.issuing.scopes = granted.details, granted.scopes
	if sess.issuing.expiresAt, err = h.server.tokenEnd(time.Now(), sess); err != nil {
		return err
	}
	return fosite.ErrUnknownRequest
}

// PopulateTokenEndpointResponse has nothing to add: Server.exchange writes the answer.
func (h detailsHandler) PopulateTokenEndpointResponse(context.Context, fosite.AccessRequester, fosite.AccessResponder) error {
	return nil
}

// tokenEnd is when a token that is issued now ends: after a life of its own, but never after its grant.
func (s *Server) tokenEnd(now time.Time, sess *session) (time.Time, error) {
	now = now.UTC().Truncate(time.Second)
	end := now.Add(lifetime(s.options.AccessTokenTTL))
	if ends := sess.EndsAt.UTC().Truncate(time.Second); !sess.EndsAt.IsZero() && ends.Before(end) {
		end = ends
	}
	if !end.After(now) {
		return time.Time{}, badGrant().because(errors.New("as: the grant has ended"))
	}
	return end, nil
}

// wishes are what a request asks for; the zero value asks for nothing in particular.
type wishes struct {
	details []rar.Detail
	scopes  []string // known ones
}

func (w wishes) none() bool { return w.details == nil && len(w.scopes) == 0 }

// readWishes reads what a request asks for at a hub. Unknown scopes are ignored (RFC 6749 section 3.3).
func (s *Server) readWishes(details, scope string, hub hubResource) (wishes, error) {
	var w wishes
	for name := range strings.FieldsSeq(scope) {
		if _, known := s.options.Scopes[name]; known && !slices.Contains(w.scopes, name) {
			w.scopes = append(w.scopes, name)
		}
	}
	if details == "" {
		return w, nil
	}
	var err error
	if w.details, err = rar.ParseRequest([]byte(details), rar.DefaultRequestLimits(hub.compiler, hub.ID)); err != nil {
		return wishes{}, badDetails().because(err)
	}
	return w, nil
}

// grantedNow returns what a token gets at this moment.
func (s *Server) grantedNow(ctx context.Context, client store.Client, hub hubResource, sess *session, asked wishes) (decision, error) {
	var granted decision
	var err error
	if sess.granted() {
		granted, err = s.underGrant(ctx, client, hub, sess, asked)
	} else {
		granted, err = s.forItself(ctx, client, hub, asked)
	}
	if err != nil {
		return decision{}, err
	}
	return granted, granted.fits()
}

// underGrant returns what of a grant a token gets. The account may have been disabled, or have lost a role, since the grant was
// made; what the policy of this moment no longer allows is left out. A request may ask for less, never for more.
func (s *Server) underGrant(ctx context.Context, client store.Client, hub hubResource, sess *session, asked wishes) (decision, error) {
	account, err := s.store.Account(ctx, sess.Subject)
	if errors.Is(err, store.ErrNotFound) || (err == nil && account.Disabled) {
		return decision{}, badGrant().because(errors.New("as: account is gone or disabled"))
	}
	if err != nil {
		return decision{}, fmt.Errorf("read account: %w", err)
	}
	sess.Username = account.Username // a token says what they are called now
	granted, err := rar.Parse(sess.Granted, rar.DefaultLimits())
	if err != nil {
		return decision{}, fmt.Errorf("read grant: %w", err)
	}
	allowed, err := rar.Narrow(granted, s.ceiling(ctx, client, account, hub).details, hub.compiler, rar.Trim)
	if err != nil {
		return decision{}, badGrant().because(err)
	}
	// Of the scopes only those count that are part of the grant: clients send what they asked for in the beginning.
	asked.scopes = slices.DeleteFunc(asked.scopes, func(name string) bool { return !slices.Contains(sess.Scopes, name) })
	if asked.none() {
		return decision{details: allowed, scopes: sess.Scopes}, nil
	}
	var out decision
	if asked.details != nil {
		if out.details, err = rar.Narrow(asked.details, allowed, hub.compiler, rar.Deny); err != nil {
			return decision{}, excess().because(err)
		}
	}
	if err := s.addScopes(ctx, &out, asked.scopes, allowed, hub, variables(client, account)); err != nil {
		return decision{}, err
	}
	if len(out.details) == 0 {
		return decision{}, refuse(CodeInvalidScope, "Nothing of the scope may be granted.")
	}
	return out, nil
}

// forItself returns what a client may have for itself: policies that name people or roles do not apply. To the policy it is an
// account that has the client's identifier, and neither name nor attributes.
func (s *Server) forItself(ctx context.Context, client store.Client, hub hubResource, asked wishes) (decision, error) {
	granted, err := s.decide(ctx, client, store.Account{ID: client.ID}, hub, asked)
	if oe, ok := errors.AsType[*OAuthError](err); ok && oe.Code == CodeAccessDenied { // which the token endpoint does not know
		switch {
		case asked.details != nil:
			err = excess().because(err)
		case len(asked.scopes) > 0:
			err = refuse(CodeInvalidScope, "Nothing of the scope may be granted.").because(err)
		default:
			err = refuse(CodeUnauthorizedClient, "Nothing may be granted to this client for itself.").because(err)
		}
	}
	return granted, err
}

// addScopes adds what scopes stand for to a decision, as far as it is allowed. A scope is a name for what the server gives, so the
// account's part of it is the right answer (RFC 6749 section 3.3).
func (s *Server) addScopes(
	ctx context.Context, to *decision, scopes []string, allowed []rar.Detail, hub hubResource, v rar.Variables,
) error {
	for _, scope := range scopes {
		template := s.expand(ctx, s.options.Scopes[scope], v, slog.String("scope", scope))
		part, err := rar.Narrow(template, allowed, hub.compiler, rar.Trim)
		switch {
		case errors.Is(err, rar.ErrNothingLeft):
		case err != nil:
			return fmt.Errorf("narrow scope: %w", err)
		default:
			to.details = append(to.details, part...)
			to.scopes = append(to.scopes, scope)
		}
	}
	return nil
}
