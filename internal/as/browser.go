package as

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// secretBytes is the length of the random identifiers: 256 bits.
const secretBytes = 32

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
	account, err := s.store.Account(ctx, session.AccountID)
	if errors.Is(err, store.ErrNotFound) || (err == nil && account.Disabled) {
		return nil, nil //nolint:nilnil // as above
	}
	if err != nil {
		return nil, fmt.Errorf("read account: %w", err)
	}
	return &signedIn{session: session, account: account}, nil
}

// signIn begins a login session for an account. The session the browser had is over; when the same person signs in again its
// identifier (sid) goes on, so that ending the session still reaches the tokens issued before.
func (s *Server) signIn(ctx context.Context, b Browser, account store.Account) (Browser, store.BrowserSession, error) {
	fresh := Browser{Binding: b.Binding, Session: newSecret()}
	now := time.Now()
	session := store.BrowserSession{
		IDHash:    hashSecret(fresh.Session),
		SessionID: newID("s_"),
		AccountID: account.ID,
		Issuer:    s.options.Issuer,
		AuthTime:  now,
		ExpiresAt: now.Add(s.options.BrowserSessionTTL),
	}
	before, err := s.signedIn(ctx, b)
	if err != nil {
		return Browser{}, store.BrowserSession{}, err
	}
	if before != nil {
		if before.account.ID == account.ID {
			session.SessionID = before.session.SessionID
		}
		if err := s.signOut(ctx, b); err != nil {
			return Browser{}, store.BrowserSession{}, err
		}
	}
	if err := s.store.CreateBrowserSession(ctx, session); err != nil {
		return Browser{}, store.BrowserSession{}, fmt.Errorf("create browser session: %w", err)
	}
	return fresh, session, nil
}

// signOut ends the login session of a browser.
func (s *Server) signOut(ctx context.Context, b Browser) error {
	err := s.store.DeleteBrowserSession(ctx, hashSecret(b.Session))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("delete browser session: %w", err)
	}
	return nil
}

// newSecret returns 256 random bits in base64url.
func newSecret() string {
	var b [secretBytes]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// newID returns an identifier that need not be secret: a prefix and 128 random bits.
func newID(prefix string) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + base64.RawURLEncoding.EncodeToString(b[:])
}

func isSecret(s string) bool {
	return isBase64URL(s, base64.RawURLEncoding.EncodedLen(secretBytes))
}

// hashSecret is under which a secret is stored. It has the entropy of a key, so a plain hash is enough.
func hashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// mac authenticates a list of values for one purpose. A NUL, which none of them contains, separates them.
func (s *Server) mac(values ...string) string {
	m := hmac.New(sha256.New, s.formKey[:])
	_, _ = m.Write([]byte(strings.Join(values, "\x00"))) // never fails
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}
