package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

// retryAfter is when to ask again after a 503, in seconds.
const retryAfter = "5"

// errForeign says that a renewal brought a token that is not the session's.
var errForeign = errors.New("session: the renewed token is not this session's")

// refresh renews a session: POST {hub}/session/refresh (RFC 6749 section 6). It answers with the new state, with 401 when the session
// is over, which takes its cookies away, and with 503 when that cannot be told now, which leaves everything as it is.
func (b *broker) refresh(c echo.Context) error {
	private(c)
	b.allowOrigin(c)
	r := c.Request()
	if problem := b.guard(r); problem != nil {
		return problem
	}
	claims, reason, err := b.judge(r)
	if err != nil {
		return b.unjudged(c, err)
	}
	s, known := b.session(r)
	switch {
	case reason == reasonSeveral:
		return &httpserver.Problem{
			Status: http.StatusBadRequest, Title: "Several cookies",
			Detail: "There are several different hub cookies; the hub accepts none of them.",
			Hint:   "Another host of the site sets a cookie of this name.",
		}
	case reason == reasonSignedOut:
		return b.loginNeeded(c, s, reason)
	case known && s.over(time.Now()):
		return b.loginNeeded(c, s, "the session's absolute end has passed")
	case claims != nil && (!known || s.Refresh == "" || !b.same(s, claims)):
		return &httpserver.Problem{
			Status: http.StatusConflict, Title: "Not renewable",
			Detail: "This session works, but cannot be renewed without signing in again.",
			Hint:   "Ask for the state of the session first: its renewable member says so.",
		}
	case !known || s.Refresh == "":
		return b.loginNeeded(c, s, "there is no session that can be renewed")
	}
	return b.renewSession(c, s)
}

// same says whether a token is one of the session's, or of an earlier generation of it.
func (b *broker) same(s *sessionState, claims *token.Claims) bool {
	return s.owns(claims) || b.check(s, claims) == nil
}

// check refuses a token that is not for the session's person, from the session's login. The error names the claim, and no value.
func (b *broker) check(s *sessionState, claims *token.Claims) error {
	switch {
	case claims.Issuer != s.Issuer:
		return fmt.Errorf("%w: its iss differs", errForeign)
	case claims.Subject != s.Subject:
		return fmt.Errorf("%w: its sub differs", errForeign)
	case claims.ClientID != b.options.ClientID:
		return fmt.Errorf("%w: its client_id differs", errForeign)
	case claims.SessionID != s.SessionID:
		return fmt.Errorf("%w: its sid differs", errForeign)
	}
	return nil
}

// renewSession asks for a new token and puts it into the cookies.
func (b *broker) renewSession(c echo.Context, s *sessionState) error {
	ctx := c.Request().Context()
	t, err := b.renewals.do(ctx, keyOf(s.Refresh), func(ctx context.Context) (*tokens, error) { return b.renew(ctx, s.Refresh) })
	if errors.Is(err, errEnded) {
		if t != nil {
			b.revokeRenewed(ctx, c, t)
		}
		return b.loginNeeded(c, s, err.Error())
	}
	if refused, ok := errors.AsType[*oauthError](err); ok && refused.code == "invalid_grant" {
		b.renewals.told(keyOf(s.Refresh)) // a copy of the cookie need not ask again
		return b.loginNeeded(c, s, refused.Error())
	}
	if err != nil {
		return b.notRenewed(c, err)
	}
	next := *s
	if t.refresh != "" {
		next.Refresh = t.refresh
	}
	claims, err := b.acceptRenewed(ctx, s, t.access)
	if err == nil {
		state := next.with(claims.ID)
		state.Reads = reads(claims)
		if claims.Username != "" {
			state.Username = claims.Username
		}
		if state, err = b.setSession(c, state, t.access, claims); err == nil {
			b.logger(c).LogAttrs(ctx, slog.LevelDebug, "session renewed", slog.String("token_id", claims.ID))
			return c.JSON(http.StatusOK, b.describe(claims, state))
		}
	}
	if next.Refresh != s.Refresh {
		// The old refresh token may be used up. Losing the new one would end the session.
		if kept, err := b.cookies.setState(c.Response(), &next); err == nil {
			b.logNotKept(c, &next, kept)
		}
	}
	return b.notRenewed(c, err)
}

// acceptRenewed verifies a token as the hub will, and that it is of the same session. One that may read nothing any more, where the
// one before could, is refused: the page would take the silence for a quiet day.
func (b *broker) acceptRenewed(ctx context.Context, s *sessionState, compact string) (*token.Claims, error) {
	claims, err := b.accept(ctx, compact)
	if err != nil {
		return nil, err
	}
	if err := b.check(s, claims); err != nil {
		return nil, err
	}
	if s.Reads && !reads(claims) {
		return nil, fmt.Errorf("%w: it may read nothing", errForeign)
	}
	return claims, nil
}

// notRenewed answers for a session that could not be renewed now. It may live, so nothing is taken away.
func (b *broker) notRenewed(c echo.Context, err error) error {
	b.logger(c).LogAttrs(c.Request().Context(), slog.LevelError, "session not renewed", slog.String("error", err.Error()))
	c.Response().Header().Set(echo.HeaderRetryAfter, retryAfter)
	return &httpserver.Problem{
		Status: http.StatusServiceUnavailable,
		Detail: "The session cannot be renewed at the moment. It lives on; try again shortly.",
	}
}

// loginNeeded answers for a session that is over: its streams end, and its cookies go. s may be nil.
func (b *broker) loginNeeded(c echo.Context, s *sessionState, reason string) error {
	r := c.Request()
	b.logger(c).LogAttrs(r.Context(), slog.LevelInfo, "session is over", slog.String("reason", reason))
	if s != nil {
		b.endTokens(r.Context(), s)
	}
	if b.cookies.presented(r) {
		b.cookies.expireSession(c.Response())
	}
	c.Response().Header().Set(echo.HeaderWWWAuthenticate, `Cinnabar-Session login_uri="`+b.loginURL+`"`)
	return &httpserver.Problem{
		Status: http.StatusUnauthorized, Title: "Signing in is needed",
		Detail: "There is no session, or it is over.",
		Hint:   "Send the browser to " + b.loginURL + ", with return_to.",
	}
}
