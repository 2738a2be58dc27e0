package as

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/account"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// Browser is what the login cookie of a browser holds: two secrets. Binding ties interactions to the browser and lives as
// long as the cookie. Session is the login session, drawn anew at every sign-in, so that one that was planted before never
// becomes somebody's. The zero value is a browser without a cookie.
type Browser struct {
	Binding, Session string
}

// ParseBrowser reads a cookie value; anything unreadable counts as no cookie.
func ParseBrowser(value string) Browser {
	binding, session, _ := strings.Cut(value, ".")
	if !isSecret(binding) {
		return Browser{}
	}
	if !isSecret(session) {
		session = ""
	}
	return Browser{Binding: binding, Session: session}
}

// String returns the cookie value, which is secret.
func (b Browser) String() string {
	if b.Session == "" {
		return b.Binding
	}
	return b.Binding + "." + b.Session
}

// signedIn is who a browser belongs to.
type signedIn struct {
	session store.BrowserSession
	account store.Account
}

// signedIn returns who is signed in with this issuer; nil when nobody is.
func (s *Server) signedIn(ctx context.Context, b Browser) (*signedIn, error) {
	if b.Session == "" {
		return nil, nil //nolint:nilnil // nobody is signed in, which is no error
	}
	session, err := s.store.BrowserSession(ctx, hashSecret(b.Session))
	if errors.Is(err, store.ErrNotFound) || (err == nil && session.Issuer != s.options.Issuer) {
		return nil, nil //nolint:nilnil // as above
	}
	if err != nil {
		return nil, fmt.Errorf("read browser session: %w", err)
	}
	a, err := s.store.Account(ctx, session.AccountID)
	if errors.Is(err, store.ErrNotFound) || (err == nil && a.Disabled) {
		return nil, nil //nolint:nilnil // as above
	}
	if err != nil {
		return nil, fmt.Errorf("read account: %w", err)
	}
	return &signedIn{session: session, account: a}, nil
}

// signIn begins a login session for an account. The session the browser had is over; when the same person signs in again its
// identifier (sid) goes on, so that ending the session still reaches the tokens issued before. When somebody else does, the session of
// the one before ends as if they had signed out: a browser is one person at a time.
func (s *Server) signIn(ctx context.Context, b Browser, a store.Account) (Browser, store.BrowserSession, error) {
	fresh := Browser{Binding: b.Binding, Session: newSecret()}
	now := time.Now()
	session := store.BrowserSession{
		IDHash:    hashSecret(fresh.Session),
		SessionID: newID("s_"),
		AccountID: a.ID,
		Issuer:    s.options.Issuer,
		AuthTime:  now,
		ExpiresAt: now.Add(s.options.BrowserSessionTTL),
	}
	before, err := s.signedIn(ctx, b)
	if err != nil {
		return Browser{}, store.BrowserSession{}, err
	}
	switch {
	case before == nil:
	case before.account.ID == a.ID:
		session.SessionID = before.session.SessionID
		if err := s.store.DeleteBrowserSession(ctx, hashSecret(b.Session)); err != nil {
			return Browser{}, store.BrowserSession{}, fmt.Errorf("delete browser session: %w", err)
		}
	default:
		if err := s.signOut(ctx, b); err != nil {
			return Browser{}, store.BrowserSession{}, err
		}
	}
	err = s.store.CreateBrowserSession(ctx, session)
	if errors.Is(err, store.ErrRevoked) { // the session that was to go on has ended at this moment
		session.SessionID = newID("s_")
		err = s.store.CreateBrowserSession(ctx, session)
	}
	switch {
	case errors.Is(err, store.ErrRevoked): // the account was disabled at this moment
		return Browser{}, store.BrowserSession{}, account.ErrBadCredentials
	case err != nil:
		return Browser{}, store.BrowserSession{}, fmt.Errorf("create browser session: %w", err)
	}
	if err := s.unchanged(ctx, a, session); err != nil {
		return Browser{}, store.BrowserSession{}, err
	}
	return fresh, session, nil
}

// unchanged takes back the session of an account that has got another password since it was read. That signed out everybody there
// was; who came with the old password at that moment must not stay. It may also be that the same password was hashed anew, so they
// may try again.
func (s *Server) unchanged(ctx context.Context, a store.Account, session store.BrowserSession) error {
	now, err := s.store.Account(ctx, a.ID)
	if err != nil {
		return fmt.Errorf("read account: %w", err)
	}
	if now.PasswordHash == a.PasswordHash {
		return nil
	}
	if err := s.store.DeleteBrowserSession(ctx, session.IDHash); err != nil {
		return fmt.Errorf("delete browser session: %w", err)
	}
	return fmt.Errorf("as: the password was changed meanwhile: %w", account.ErrBusy)
}

// signOut ends the login session of a browser, and with it whatever was granted in it: the person is gone, and so must be what
// applications hold in their name.
func (s *Server) signOut(ctx context.Context, b Browser) error {
	who, err := s.signedIn(ctx, b)
	if err != nil || who == nil {
		return err
	}
	return s.endSession(ctx, who.session.SessionID, store.AuditRecord{Actor: who.account.ID, Subject: who.account.ID})
}

// mac authenticates a list of values for one purpose. A NUL, which none of them contains, separates them.
func (s *Server) mac(values ...string) string {
	m := hmac.New(sha256.New, s.formKey[:])
	_, _ = m.Write([]byte(strings.Join(values, "\x00"))) // never fails
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}
