package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

// Values of session_error: what a page at return_to learns of a sign-in that failed.
const (
	// ErrorDenied says that the person or a policy refused.
	ErrorDenied = "login_denied"
	// ErrorFailed says that the sign-in failed and that trying again as it is will not help for certain; the
	// server's log says why.
	ErrorFailed = "login_failed"
	// ErrorUnavailable says that the authorization server could not be used; trying again later may help.
	ErrorUnavailable = "temporarily_unavailable"
	// ErrorTokenTooLarge says that the access token does not fit into a cookie: fewer or wider topic matchers
	// are needed.
	ErrorTokenTooLarge = "token_too_large"
)

// ErrorCodes lists every value of session_error.
func ErrorCodes() []string {
	return []string{ErrorDenied, ErrorFailed, ErrorUnavailable, ErrorTokenTooLarge}
}

const (
	maxStateBytes = 128
	maxCodeBytes  = 4096
	// expiryMargin is how much longer than its token the hub cookie lives at least.
	expiryMargin = time.Hour
)

// errTokenTooLarge says that browsers would drop a cookie of the session.
var errTokenTooLarge = errors.New("session: token or its subject exceeds what a cookie holds")

// callback ends a sign-in: GET {hub}/session/callback (RFC 6749 section 4.1.2). It is reached with the
// browser of whoever follows a link to it, so nothing is believed before a login cookie of this browser
// matches the state.
func (b *broker) callback(c echo.Context) error {
	private(c)
	values, ok := one(c.Request(), "state", "code", "iss", "error")
	if !ok || values["state"] == "" || len(values["state"]) > maxStateBytes {
		return b.page.write(c)
	}
	login, ok := b.cookies.login(c.Request(), values["state"])
	if !ok {
		return b.page.write(c)
	}
	b.cookies.expireLogin(c.Response(), b.cookies.loginName(login.State))
	// Admitted once already; the configuration may have changed since.
	returnTo, err := b.returns.resolve(login.ReturnTo)
	if err != nil {
		return b.page.write(c)
	}
	if code := b.finish(c, login, values); code != "" {
		return redirect(c, withError(returnTo, code))
	}
	return redirect(c, returnTo)
}

// finish takes the authorization response to its end and returns "" or the value of session_error.
func (b *broker) finish(c echo.Context, login *loginState, values map[string]string) string {
	ctx, log := c.Request().Context(), b.logger(c)
	if login.Issuer != b.issuer.id || values["iss"] != login.Issuer {
		log.LogAttrs(ctx, slog.LevelWarn, "authorization response does not name its issuer")
		return ErrorFailed
	}
	if refused := values["error"]; refused != "" {
		log.LogAttrs(ctx, slog.LevelInfo, "sign-in refused", slog.String("error_code", errorToken(refused)))
		return outcomeOf(refused)
	}
	code := values["code"]
	if code == "" || len(code) > maxCodeBytes {
		log.LogAttrs(ctx, slog.LevelWarn, "authorization response without a usable code")
		return ErrorFailed
	}
	t, err := b.exchange(ctx, login, code)
	if err != nil {
		return failure(ctx, log.With(slog.String("profile", login.Profile)), err)
	}
	claims, err := b.accept(ctx, t.access)
	if err == nil {
		err = b.establish(c, login, t, claims)
	}
	if err != nil {
		return failure(ctx, log.With(slog.String("profile", login.Profile), slog.Int("token_bytes", len(t.access))), err)
	}
	log.LogAttrs(ctx, slog.LevelInfo, "signed in", slog.String("token_id", claims.ID))
	return ""
}

// failure logs why a sign-in failed and returns the value of session_error.
func failure(ctx context.Context, log *slog.Logger, err error) string {
	reason := slog.String("error", err.Error())
	switch {
	case errors.Is(err, errTokenTooLarge):
		log.LogAttrs(ctx, slog.LevelError, "session does not fit into cookies", reason, slog.Int("max_token_bytes", MaxTokenBytes),
			slog.String("advice", "grant fewer or wider topic matchers, or a smaller payload"))
		return ErrorTokenTooLarge
	case errors.Is(err, errUnavailable), errors.Is(err, token.ErrUnavailable):
		log.LogAttrs(ctx, slog.LevelError, "sign-in interrupted", reason)
		return ErrorUnavailable
	}
	log.LogAttrs(ctx, slog.LevelError, "sign-in failed", reason)
	return ErrorFailed
}

// outcomeOf translates an error of the authorization endpoint (RFC 6749 section 4.1.2.1).
func outcomeOf(code string) string {
	switch code {
	case "access_denied":
		return ErrorDenied
	case "server_error", "temporarily_unavailable":
		return ErrorUnavailable
	}
	return ErrorFailed
}

// accept verifies a token as the hub will, and that it was issued to the broker by its issuer.
func (b *broker) accept(ctx context.Context, compact string) (*token.Claims, error) {
	if len(compact) > MaxTokenBytes {
		return nil, errTokenTooLarge
	}
	claims, err := b.deps.Verify(ctx, compact)
	if err != nil {
		return nil, fmt.Errorf("verify access token: %w", err)
	}
	if claims.Issuer != b.issuer.id || claims.ClientID != b.options.ClientID {
		return nil, errors.New("session: access token is for another issuer or client")
	}
	return claims, nil
}

// establish ends the session that was there and sets the cookies of the new one.
func (b *broker) establish(c echo.Context, login *loginState, t *tokens, claims *token.Claims) error {
	state := (&sessionState{
		Issuer:    claims.Issuer,
		Profile:   login.Profile,
		Subject:   claims.Subject,
		Username:  claims.Username,
		SessionID: claims.SessionID,
		Ends:      time.Now().Add(b.options.Absolute).Unix(),
		Refresh:   t.refresh,
		Reads:     reads(claims),
	}).with(claims.ID)
	ended, refreshToken := b.previous(c, login, claims)
	if _, err := b.setSession(c, state, t.access, claims); err != nil {
		return err
	}
	ctx := context.WithoutCancel(c.Request().Context())
	if refreshToken != "" {
		b.revokeSession(ctx, c, refreshToken)
	}
	if len(ended.TokenIDs) > 0 {
		b.end(ctx, ended)
	}
	return nil
}

// setSession sets the cookies of a session that has got a token, and returns the session as its cookie has it.
func (b *broker) setSession(c echo.Context, s *sessionState, compact string, claims *token.Claims) (*sessionState, error) {
	lifetime := max(b.options.Idle, time.Until(claims.ExpiresAt)+expiryMargin)
	kept, err := b.cookies.setSession(c.Response(), s, compact, lifetime)
	if err != nil {
		return nil, err
	}
	b.logNotKept(c, s, kept)
	return kept, nil
}

// logNotKept says loudly that a session has lost its refresh token on the way into its cookie.
func (b *broker) logNotKept(c echo.Context, s, kept *sessionState) {
	if s.Refresh == kept.Refresh {
		return
	}
	b.logger(c).LogAttrs(c.Request().Context(), slog.LevelWarn, "session cannot be renewed: the refresh token does not fit into a cookie",
		slog.Int("max_cookie_bytes", maxCookieBytes), slog.String("advice", "let the authorization server issue shorter refresh tokens"))
}

// reads says whether a token may read anything that is private.
func reads(claims *token.Claims) bool {
	return claims.Grants != nil && len(claims.Grants.Matchers(rar.Subscribe)) > 0
}

// previous names the session that the new one replaces, and its refresh token: the one whose cookie came along, else the one noted
// when the sign-in started. A session identifier that the new session shares is left out, and the refresh token with it, since ending
// them would end the new session as well.
func (b *broker) previous(c echo.Context, login *loginState, claims *token.Claims) (ended Ended, refreshToken string) {
	ended = Ended{Issuer: b.issuer.id, SessionID: login.PreviousSession, TokenIDs: login.PreviousTokens}
	refreshToken = login.PreviousRefresh
	if s, ok := b.session(c.Request()); ok {
		ended.SessionID, ended.TokenIDs, refreshToken = s.SessionID, s.TokenIDs, s.Refresh
	}
	if ended.SessionID == claims.SessionID {
		ended.SessionID, refreshToken = "", ""
	}
	ended.TokenIDs = slices.DeleteFunc(slices.Clone(ended.TokenIDs), func(id string) bool { return id == claims.ID })
	return ended, refreshToken
}
