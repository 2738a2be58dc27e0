package as

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/account"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// LoginView is what the sign-in page shows.
type LoginView struct {
	Interaction string
	FormToken   string
	// ClientName is who asked for the sign-in, as registered.
	ClientName string
	// Username is what the client suggested; it is untrusted text.
	Username string
	// DemoUser is whom one click signs in; empty outside development.
	DemoUser string
}

// LoginForm is a posted sign-in form.
type LoginForm struct {
	Interaction string
	FormToken   string
	Username    string
	Password    string
	// Demo signs in as the demo account, without a password, in development.
	Demo bool
	// From is the client's address, for the throttle; the zero address is one address.
	From netip.Addr
}

// LoginView returns the sign-in page of an interaction. Errors: ErrInteraction, ErrForeignBrowser, ErrClient or ErrRedirectURI when the
// client has changed since, or a failure.
func (s *Server) LoginView(ctx context.Context, interaction string, browser Browser) (LoginView, error) {
	p, err := s.interaction(ctx, interaction, browser)
	if err != nil {
		return LoginView{}, err
	}
	v := LoginView{
		Interaction: interaction,
		FormToken:   s.formToken(p),
		ClientName:  displayName(p.client),
		Username:    p.request.LoginHint,
	}
	if s.options.Dev {
		v.DemoUser = s.options.DemoUser
	}
	return v, nil
}

// Login signs in the person who posted a form and returns the browser's new cookie; what comes next, Authorize says. Errors:
// those of LoginView and of account.Service.Authenticate, ErrFormToken, ErrDemo.
func (s *Server) Login(ctx context.Context, form LoginForm, browser Browser) (Browser, error) {
	p, err := s.postedTo(ctx, form.Interaction, browser, form.FormToken)
	if err != nil {
		return Browser{}, err
	}
	a, err := s.checkLogin(ctx, form)
	if err != nil {
		s.loginFailed(ctx, p.client, err)
		return Browser{}, err
	}
	fresh, session, err := s.signIn(ctx, browser, a)
	if err != nil {
		return Browser{}, err
	}
	p.stored.AccountID = a.ID
	p.stored.SessionID = session.SessionID
	p.stored.AuthTime = session.AuthTime
	// What was answered before was answered by whoever was signed in then.
	p.stored.ConsentedAt, p.request.Consented, p.request.Denied = time.Time{}, nil, false
	if err := s.save(ctx, p); err != nil {
		return Browser{}, err
	}
	method := "password"
	if form.Demo {
		method = "demo"
	}
	s.audit(ctx, store.AuditRecord{
		Event: EventLogin, Actor: a.ID, Subject: a.ID, Client: p.client.ID, Details: map[string]string{"method": method},
	})
	return fresh, nil
}

func (s *Server) checkLogin(ctx context.Context, form LoginForm) (store.Account, error) {
	if !form.Demo {
		return s.accounts.Authenticate(ctx, form.Username, form.Password, form.From)
	}
	if !s.options.Dev || s.options.DemoUser == "" {
		return store.Account{}, ErrDemo
	}
	name, err := account.NormalizeUsername(s.options.DemoUser)
	if err != nil {
		return store.Account{}, fmt.Errorf("demo user: %w", err)
	}
	a, err := s.store.AccountByUsername(ctx, name)
	if errors.Is(err, store.ErrNotFound) || (err == nil && (!a.Demo || a.Disabled)) {
		return store.Account{}, ErrDemo
	}
	if err != nil {
		return store.Account{}, fmt.Errorf("read demo account: %w", err)
	}
	return a, nil
}

// loginFailed records a failed sign-in. Neither the user name nor the password is in the record: people mistype one into the
// field of the other.
func (s *Server) loginFailed(ctx context.Context, client store.Client, err error) {
	reason := "server"
	_, throttled := errors.AsType[*account.ThrottledError](err)
	switch {
	case errors.Is(err, account.ErrBadCredentials):
		reason = "credentials"
	case throttled:
		reason = "throttled"
	case errors.Is(err, account.ErrBusy):
		reason = "busy"
	case errors.Is(err, ErrDemo):
		reason = "demo"
	}
	s.audit(ctx, store.AuditRecord{
		Event: EventLoginFailed, Client: client.ID, Details: map[string]string{"reason": reason},
	})
}
