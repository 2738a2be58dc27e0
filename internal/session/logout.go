package session

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/token"
)

// errNoRevocation says that the authorization server offers no way to revoke a token.
var errNoRevocation = errors.New("session: the metadata names no revocation endpoint")

// revokeTimeout bounds how long a sign-out waits for the authorization server: a person is waiting too.
const revokeTimeout = 3 * time.Second

// SignedOut is the JSON document of POST {hub}/session/logout: the state of no session, and how far the word has got.
//
//	{"active": false, "renewable": false, "revoked": true}
type SignedOut struct {
	Status

	// Revoked says that the authorization server knows and has revoked what the session had. It is false when there was nothing
	// to revoke, and when the server could not be told: tokens then end at their own time.
	Revoked bool `json:"revoked"`
}

// logout ends a session: POST {hub}/session/logout. Whatever is left of one is enough, and it succeeds whatever state the
// authorization server is in: what counts is that this browser holds nothing afterwards.
func (b *broker) logout(c echo.Context) error {
	private(c)
	b.allowOrigin(c)
	r := c.Request()
	if problem := b.guard(r); problem != nil {
		return problem
	}
	if !b.cookies.presented(r) {
		return c.JSON(http.StatusOK, SignedOut{})
	}
	// A page that is closed meanwhile does not keep the session alive.
	ctx := context.WithoutCancel(r.Context())
	s, known := b.session(r)
	claims, _, err := b.judge(r)
	if err != nil {
		b.logger(c).LogAttrs(ctx, slog.LevelWarn, "signed out without judging the hub cookie", slog.String("error", err.Error()))
	}
	// First the tokens, then the streams: one that is closed cannot come back with the cookie it had.
	answer := SignedOut{}
	switch {
	case known && s.Refresh != "":
		answer.Revoked = b.revokeSession(ctx, c, s.Refresh)
	case claims != nil && claims.Issuer == b.issuer.id && claims.ClientID == b.options.ClientID:
		answer.Revoked = b.revokeToken(ctx, c, b.cookies.hubValues(r)[0], hintAccess)
	}
	for _, ended := range endedBy(s, claims) {
		b.end(ctx, ended)
	}
	b.cookies.signOut(c.Response())
	b.logger(c).LogAttrs(ctx, slog.LevelInfo, "signed out", slog.Bool("revoked", answer.Revoked))
	return c.JSON(http.StatusOK, answer)
}

// endedBy names what a sign-out ends: the session, and what the hub cookie is of when that is another one. Either may be nil.
func endedBy(s *sessionState, claims *token.Claims) (all []Ended) {
	if s != nil {
		all = append(all, Ended{Issuer: s.Issuer, SessionID: s.SessionID, TokenIDs: s.TokenIDs})
	}
	if claims != nil && (s == nil || !s.owns(claims)) {
		ended := Ended{Issuer: claims.Issuer, SessionID: claims.SessionID}
		if claims.ID != "" {
			ended.TokenIDs = []string{claims.ID}
		}
		all = append(all, ended)
	}
	return all
}

// Values of token_type_hint (RFC 7009 section 2.1).
const (
	hintRefresh = "refresh_token"
	hintAccess  = "access_token"
)

// revokeSession revokes a refresh token, once: a copy of the cookie that is sent again costs the authorization server nothing. In
// this process the token renews nothing from here on, also if the server cannot be told.
func (b *broker) revokeSession(ctx context.Context, c echo.Context, refreshToken string) bool {
	key := keyOf(refreshToken)
	if b.renewals.end(key) {
		return true
	}
	if !b.revokeToken(ctx, c, refreshToken, hintRefresh) {
		return false
	}
	b.renewals.told(key)
	return true
}

// revokeRenewed revokes what a renewal brought after its session was signed out of.
func (b *broker) revokeRenewed(ctx context.Context, c echo.Context, t *tokens) {
	ctx = context.WithoutCancel(ctx)
	if t.refresh != "" {
		b.revokeSession(ctx, c, t.refresh)
		return
	}
	b.revokeToken(ctx, c, t.access, hintAccess)
}

// revokeToken has the authorization server revoke a token, and says whether it did.
func (b *broker) revokeToken(ctx context.Context, c echo.Context, value, hint string) bool {
	ctx, cancel := context.WithTimeout(ctx, revokeTimeout)
	defer cancel()
	m, err := b.issuer.known(ctx)
	if err == nil && m.RevocationEndpoint == "" {
		err = errNoRevocation
	}
	if err == nil {
		err = b.revoke(ctx, m.RevocationEndpoint, value, hint)
	}
	if err != nil {
		b.logger(c).LogAttrs(ctx, slog.LevelWarn, "token not revoked at the authorization server",
			slog.String("token_type", hint), slog.String("error", err.Error()))
	}
	return err == nil
}
