package as

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// Answer is what a person does on the consent page.
type Answer string

// The answers.
const (
	Allow Answer = "allow"
	Deny  Answer = "deny"
	// SwitchAccount signs out and asks who it is again.
	SwitchAccount Answer = "switch"
)

// ConsentForm is a posted consent form.
type ConsentForm struct {
	Interaction string
	FormToken   string
	Answer      Answer
	// Confirmed says that the person has read that everything is asked for.
	Confirmed bool
}

// Errors of the consent step.
var (
	// ErrUnconfirmed says that somebody agreed to something about every topic without the confirmation that this takes.
	ErrUnconfirmed = errors.New("as: not confirmed")
	// ErrAnswer says that a consent form has no known answer.
	ErrAnswer = errors.New("as: unknown answer")
	// ErrSignedOut says that nobody is signed in any more, so that there is nobody to ask.
	ErrSignedOut = errors.New("as: nobody is signed in")
)

// ConsentView is what the consent page shows.
type ConsentView struct {
	Interaction string
	FormToken   string
	// Username is who is signed in, and AccountID their identifier, as topics may contain it.
	Username  string
	AccountID string
	// ClientName is the client's registered name and RedirectTarget where the answer goes: a host, or a scheme
	// for native clients. The name is the client's claim, the target is a fact.
	ClientName     string
	RedirectTarget string
	Resource       Resource
	// Details is what is granted when the person agrees, after policy.
	Details []rar.Detail
	// MustConfirm says that something about every topic is asked for, which takes a confirmation.
	MustConfirm bool
	// Lifetime is how long a token lives, and Renewable how long the client can renew it without asking again; 0: not at all.
	Lifetime  time.Duration
	Renewable time.Duration
}

// ConsentView returns the consent page of an interaction. Errors: those of LoginView; and, where
// Authorize knows what to do, ErrSignedOut or an *OAuthError.
func (s *Server) ConsentView(ctx context.Context, interaction string, browser Browser) (ConsentView, error) {
	p, err := s.interaction(ctx, interaction, browser)
	if err != nil {
		return ConsentView{}, err
	}
	who, granted, err := s.toConsent(ctx, p)
	if err != nil {
		return ConsentView{}, err
	}
	hub, _ := s.resource(p.request.Resource) // toConsent found it
	view := ConsentView{
		Interaction:    interaction,
		FormToken:      s.formToken(p),
		Username:       who.account.Username,
		AccountID:      who.account.ID,
		ClientName:     displayName(p.client),
		RedirectTarget: redirectTarget(p.request.RedirectURI),
		Resource:       hub.Resource,
		Details:        granted.details,
		MustConfirm:    granted.everything(),
		Lifetime:       s.options.AccessTokenTTL,
	}
	if mayUse(p.client, GrantRefreshToken) {
		view.Renewable = s.options.RefreshAbsolute
	}
	return view, nil
}

// Consent takes the answer of a posted form; what comes next, Authorize says. Errors: those of ConsentView, ErrFormToken,
// ErrAnswer, ErrUnconfirmed.
func (s *Server) Consent(ctx context.Context, form ConsentForm, browser Browser) (Browser, error) {
	p, err := s.postedTo(ctx, form.Interaction, browser, form.FormToken)
	if err != nil {
		return Browser{}, err
	}
	switch form.Answer {
	case Allow, Deny:
		return browser, s.answered(ctx, p, form)
	case SwitchAccount:
		if err := s.signOut(ctx, browser); err != nil {
			return Browser{}, err
		}
		p.stored.AccountID, p.stored.SessionID, p.stored.AuthTime = "", "", time.Time{}
		return Browser{Binding: browser.Binding}, s.save(ctx, p)
	default:
		return Browser{}, ErrAnswer
	}
}

func (s *Server) answered(ctx context.Context, p pending, form ConsentForm) error {
	who, granted, err := s.toConsent(ctx, p)
	if err != nil {
		return err
	}
	if form.Answer == Allow && granted.everything() && !form.Confirmed {
		return ErrUnconfirmed
	}
	record := store.AuditRecord{
		Event: EventConsent, Actor: who.account.ID, Subject: who.account.ID, Client: p.client.ID,
		Details: map[string]string{"resource": p.request.Resource},
	}
	if form.Answer == Allow {
		p.request.Consented = rar.Encode(granted.details)
		p.stored.AccountID = who.account.ID
		p.stored.SessionID = who.session.SessionID
		p.stored.ConsentedAt = time.Now()
	} else {
		record.Event = EventConsentDenied
		p.request.Denied = true
	}
	if err := s.save(ctx, p); err != nil {
		return err
	}
	s.audit(ctx, record)
	return nil
}

// toConsent returns who is asked, and about what.
func (s *Server) toConsent(ctx context.Context, p pending) (*signedIn, decision, error) {
	who, err := s.signedIn(ctx, p.browser)
	if err != nil {
		return nil, decision{}, err
	}
	if who == nil {
		return nil, decision{}, ErrSignedOut
	}
	granted, err := s.decidePending(ctx, p, who.account)
	return who, granted, err
}

// redirectTarget is the part of a redirect URI that tells people where an answer goes.
func redirectTarget(uri string) string {
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return ""
	case u.Host != "":
		return u.Host
	default:
		return u.Scheme + ":"
	}
}
