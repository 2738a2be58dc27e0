package as

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// StepKind is what a browser has to do next.
type StepKind uint8

// The steps.
const (
	// StepRedirect ends the request: the browser goes to Step.Location, which is the client's.
	StepRedirect StepKind = iota
	// StepLogin asks who it is.
	StepLogin
	// StepConsent asks whether they agree.
	StepConsent
)

// Step is the decision about a request: where the browser goes and what its cookie holds from now on.
type Step struct {
	Kind StepKind
	// Location is where StepRedirect goes.
	Location string
	// Interaction identifies the interaction of the other steps.
	Interaction string
	// Browser is what the cookie is to hold from now on. The zero value leaves it as it is.
	Browser Browser
}

// pending is a request that is being decided.
type pending struct {
	request authorization
	client  store.Client
	browser Browser
	// pushedHash is the pushed request that this one came as; empty: it came through the browser.
	pushedHash string
	// id and stored are the interaction, once there is one.
	id     string
	stored *store.Interaction
}

// resume goes on with an interaction that comes back from a step.
func (s *Server) resume(ctx context.Context, id string, browser Browser) (Step, error) {
	p, err := s.interaction(ctx, id, browser)
	if err != nil {
		return Step{}, err
	}
	return s.dispatch(ctx, p)
}

// dispatch is the only place that decides what comes next: sign-in, consent, or the end.
func (s *Server) dispatch(ctx context.Context, p pending) (Step, error) {
	if p.request.Denied {
		if err := s.finish(ctx, p); err != nil {
			return Step{}, err
		}
		return s.refused(ctx, p.request, refuse(CodeAccessDenied, "The request was denied."))
	}
	who, err := s.signedIn(ctx, p.browser)
	if err != nil {
		return Step{}, err
	}
	if who == nil || (p.request.PromptLogin && !p.signedInHere(who)) {
		if p.request.PromptNone {
			return s.refused(ctx, p.request, refuse(CodeLoginRequired, "Nobody is signed in."))
		}
		return s.ask(ctx, p, StepLogin)
	}
	granted, err := s.decidePending(ctx, p, who.account)
	if err != nil {
		return s.nothingToGrant(ctx, p, err)
	}
	switch {
	case p.consentedBy(who, granted):
		return s.issue(ctx, p, who, granted)
	case !mustAsk(p):
		s.audit(ctx, store.AuditRecord{
			Event: EventConsentSkipped, Actor: who.account.ID, Subject: who.account.ID, Client: p.client.ID,
		})
		return s.issue(ctx, p, who, granted)
	case p.request.PromptNone:
		return s.refused(ctx, p.request, refuse(CodeConsentRequired, "Consent has not been given."))
	default:
		return s.ask(ctx, p, StepConsent)
	}
}

// nothingToGrant ends a request that decide refused. After a failure of the server the interaction stays, for another try.
func (s *Server) nothingToGrant(ctx context.Context, p pending, err error) (Step, error) {
	if _, ok := errors.AsType[*OAuthError](err); ok {
		if err := s.finish(ctx, p); err != nil {
			return Step{}, err
		}
	}
	return s.refused(ctx, p.request, err)
}

// signedInHere says whether the person signed in during this interaction.
func (p pending) signedInHere(who *signedIn) bool {
	return p.stored != nil && !p.stored.AuthTime.IsZero() && p.stored.AccountID == who.account.ID
}

// consentedBy says whether this account agreed, in this interaction, to exactly these details.
func (p pending) consentedBy(who *signedIn, granted decision) bool {
	return p.stored != nil && !p.stored.ConsentedAt.IsZero() && p.stored.AccountID == who.account.ID &&
		bytes.Equal(p.request.Consented, rar.Encode(granted.details))
}

// mustAsk says whether consent is asked. First-party clients skip it, but not when anything on the person's machine could
// be the client: then the redirect URI proves nothing, and neither does a public client's id.
func mustAsk(p pending) bool {
	return !p.client.SkipConsent || p.request.PromptConsent ||
		(p.client.AuthMethod == AuthNone && isNativeRedirect(p.request.RegisteredURI))
}

// decision is what a request gets.
type decision struct {
	details []rar.Detail
	scopes  []string // the scopes that stand for some of it
}

// everything says whether something is about every topic there is.
func (d decision) everything() bool {
	return slices.ContainsFunc(d.details, func(d rar.Detail) bool {
		return slices.ContainsFunc(d.Topics, func(t rar.TopicMatcher) bool { return t.Match == topic.Wildcard })
	})
}

// fits refuses what is too long for a token.
func (d decision) fits() error {
	if len(rar.Encode(d.details)) > maxGrantBytes {
		return refuse(CodeInvalidDetails, "The authorization details are too long for a token; ask for fewer topics.")
	}
	return nil
}

// decidePending returns what an authorization request gets for this account, or why it gets nothing, as an *OAuthError.
func (s *Server) decidePending(ctx context.Context, p pending, account store.Account) (decision, error) {
	hub, ok := s.resource(p.request.Resource)
	if !ok {
		return decision{}, badTarget()
	}
	asked := wishes{scopes: p.request.Scopes}
	if p.request.Details != nil {
		var err error
		if asked.details, err = rar.Parse(p.request.Details, rar.DefaultLimits()); err != nil {
			return decision{}, fmt.Errorf("read stored details: %w", err)
		}
	}
	granted, err := s.decide(ctx, p.client, account, hub, asked)
	if err != nil {
		return decision{}, err
	}
	return granted, granted.fits()
}

// decide returns what wishes are granted to an account through a client, or why nothing is, as an *OAuthError.
func (s *Server) decide(ctx context.Context, client store.Client, account store.Account, hub hubResource, asked wishes) (decision, error) {
	c := s.ceiling(ctx, client, account, hub)
	var granted decision
	if asked.details != nil {
		var err error
		if granted.details, err = rar.Narrow(asked.details, c.details, hub.compiler, c.excess); err != nil {
			return decision{}, accessDenied().because(err)
		}
	}
	if err := s.addScopes(ctx, &granted, asked.scopes, c.details, hub, variables(client, account)); err != nil {
		return decision{}, err
	}
	if asked.none() {
		granted.details = c.unasked
	}
	if len(granted.details) == 0 {
		return decision{}, accessDenied()
	}
	return granted, nil
}

func accessDenied() *OAuthError {
	return refuse(CodeAccessDenied, "Nothing of this may be granted.")
}

// refused turns an error into the redirect that tells the client. What is not the client's fault is logged and becomes
// server_error: redirecting is safe, as client and redirect URI are proven.
func (s *Server) refused(ctx context.Context, a authorization, err error) (Step, error) {
	oe, ok := errors.AsType[*OAuthError](err)
	if !ok {
		oe = refuse(CodeServerError, "The server could not complete the request.").because(err)
		if errors.Is(err, store.ErrUnavailable) {
			oe = refuse(CodeTemporarilyUnavailable, "The server is busy; try again.").because(err)
		}
		s.logger.LogAttrs(ctx, slog.LevelError, "authorization failed",
			slog.String("client_id", a.ClientID), slog.String("error", causes(err)))
	} else {
		attrs := []slog.Attr{slog.String("client_id", a.ClientID), slog.String("oauth_error", string(oe.Code))}
		if oe.cause != nil {
			attrs = append(attrs, slog.String("error", causes(oe.cause)))
		}
		s.logger.LogAttrs(ctx, slog.LevelInfo, "authorization refused", attrs...)
	}
	return s.answer(a, url.Values{"error": {string(oe.Code)}, "error_description": {oe.Description}}), nil
}

// ask stores the request, unless it is stored already, and sends the browser to a step.
func (s *Server) ask(ctx context.Context, p pending, kind StepKind) (Step, error) {
	if p.stored == nil {
		var err error
		if p, err = s.begin(ctx, p); err != nil {
			return Step{}, err
		}
	}
	return Step{Kind: kind, Interaction: p.id, Browser: p.browser}, nil
}

// finish takes the interaction, and the pushed request it came from, out of the store. Of two requests that end the same one, the
// second gets ErrInteraction.
func (s *Server) finish(ctx context.Context, p pending) error {
	var err error
	switch {
	case p.stored != nil:
		err = s.store.FinishInteraction(ctx, p.stored.IDHash)
	case p.pushedHash != "":
		err = s.store.UsePushedRequest(ctx, p.pushedHash)
	}
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrConsumed):
		return ErrInteraction
	case err != nil:
		return fmt.Errorf("finish interaction: %w", err)
	}
	return nil
}

// begin stores a request as a new interaction of the browser.
func (s *Server) begin(ctx context.Context, p pending) (pending, error) {
	if p.browser.Binding == "" {
		p.browser.Binding = newSecret()
	}
	p.id = newSecret()
	now := time.Now()
	encoded, err := encodeAuthorization(p.request)
	if err != nil {
		return pending{}, err
	}
	p.stored = &store.Interaction{
		IDHash:      hashSecret(p.id),
		BindingHash: hashSecret(p.browser.Binding),
		Issuer:      s.options.Issuer,
		ClientID:    p.client.ID,
		PushedHash:  p.pushedHash,
		Request:     encoded,
		CreatedAt:   now,
		ExpiresAt:   now.Add(s.options.InteractionTTL),
	}
	if err := s.store.CreateInteraction(ctx, *p.stored); err != nil {
		return pending{}, fmt.Errorf("create interaction: %w", err)
	}
	return p, nil
}
