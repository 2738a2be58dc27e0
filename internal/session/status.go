package session

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

// Status is the JSON document of GET {hub}/session and of POST {hub}/session/refresh. It never contains a token.
//
//	{"active": true, "expires_at": "2026-01-02T15:04:05Z", "refresh_after": "2026-01-02T15:02:05Z",
//	 "now": "2026-01-02T14:54:05.250Z", "renewable": true, "sub": "u_9f2k…", "username": "demo"}
//	{"active": false, "renewable": true}
//	{"active": false, "renewable": false}
type Status struct {
	// Active says that the hub accepts this browser's cookie now.
	Active bool `json:"active"`
	// ExpiresAt is when the hub stops accepting it, RFC 3339 in UTC. Streams close by then.
	ExpiresAt string `json:"expires_at,omitempty"`
	// RefreshAfter is from when the page should renew the session or, when it is not renewable, ask to sign in again.
	RefreshAfter string `json:"refresh_after,omitempty"`
	// Now is the server's clock, to the millisecond. Pages take the differences to the other times, so that the browser's own
	// clock does not matter.
	Now string `json:"now,omitempty"`
	// Renewable says whether the session can be renewed without a person. When it is not active, renewing makes it so, or tells
	// that it is over.
	Renewable bool `json:"renewable"`
	// Subject identifies the person to programs, Username to people. Username may be absent.
	Subject  string `json:"sub,omitempty"`
	Username string `json:"username,omitempty"`
}

// status answers GET {hub}/session. What counts is the hub cookie, judged as the hub would judge it; the session
// cookie adds what only the broker knows. A session whose token is over, but which can be renewed, is left as it is. Cookies of a
// session that is over are expired, so that the next stream is an anonymous one on purpose and not a refused one. Of several different
// hub cookies none is: the one that is left would be a session that another host of the site has chosen.
func (b *broker) status(c echo.Context) error {
	private(c)
	b.allowOrigin(c)
	r := c.Request()
	s, known := b.session(r)
	renewable := known && s.Refresh != ""
	claims, reason, err := b.judge(r)
	switch {
	case reason == reasonSeveral:
		return c.JSON(http.StatusOK, Status{})
	case known && s.over(time.Now()):
		b.endTokens(r.Context(), s)
		return b.over(c, "the session's absolute end has passed")
	case err != nil:
		return b.unjudged(c, err)
	case claims != nil:
		return c.JSON(http.StatusOK, b.describe(claims, s))
	case renewable && reason != reasonSignedOut:
		return c.JSON(http.StatusOK, Status{Renewable: true})
	case reason != "":
		return b.over(c, reason)
	}
	return c.JSON(http.StatusOK, Status{})
}

// Reasons of judge that call for more than asking again.
const (
	reasonSeveral   = "several different hub cookies"
	reasonSignedOut = "signed out"
)

// judge says what the hub would make of the hub cookie of r: its claims, or the reason why it refuses it. Both are empty when there
// is no cookie. The error says that it cannot be judged now.
func (b *broker) judge(r *http.Request) (claims *token.Claims, reason string, err error) {
	values := b.cookies.hubValues(r)
	switch {
	case len(values) == 0:
		return nil, "", nil
	case len(values) > 1:
		return nil, reasonSeveral, nil
	case values[0] == "":
		return nil, reasonSignedOut, nil
	}
	claims, err = b.deps.Verify(r.Context(), values[0])
	switch {
	case err == nil:
		return claims, "", nil
	case errors.Is(err, token.ErrUnavailable):
		return nil, "", err
	default:
		reason = err.Error()
	}
	return nil, reason, nil
}

// session opens the session cookie of a session with this issuer.
func (b *broker) session(r *http.Request) (*sessionState, bool) {
	s, ok := b.cookies.session(r)
	if !ok || s.Issuer != b.issuer.id {
		return nil, false
	}
	return s, true
}

// describe makes the document for a token that the hub accepts. s may be nil, or another session.
func (b *broker) describe(claims *token.Claims, s *sessionState) Status {
	expires := claims.ExpiresAt
	answer := Status{Active: true, Subject: claims.Subject, Username: claims.Username}
	if s != nil && b.same(s, claims) {
		if ends := time.Unix(s.Ends, 0); ends.Before(expires) {
			expires = ends
		}
		answer.Username = s.Username
		answer.Renewable = s.Refresh != ""
	}
	answer.ExpiresAt = expires.UTC().Format(time.RFC3339)
	answer.RefreshAfter = refreshAfter(claims.IssuedAt, expires).UTC().Format(time.RFC3339)
	answer.Now = time.Now().UTC().Format(rfc3339Milli)
	return answer
}

// rfc3339Milli is RFC 3339 with milliseconds, which tells a page where within its second the server's clock is.
const rfc3339Milli = "2006-01-02T15:04:05.000Z07:00"

// unjudged answers when a token cannot be judged at the moment.
func (b *broker) unjudged(c echo.Context, err error) error {
	b.logger(c).LogAttrs(c.Request().Context(), slog.LevelError, "session not judged", slog.String("error", err.Error()))
	c.Response().Header().Set(echo.HeaderRetryAfter, retryAfter)
	return &httpserver.Problem{Status: http.StatusServiceUnavailable, Detail: "The session cannot be judged at the moment."}
}

// over answers for a session that is dead and expires its cookies.
func (b *broker) over(c echo.Context, reason string) error {
	b.logger(c).LogAttrs(c.Request().Context(), slog.LevelDebug, "session is over", slog.String("reason", reason))
	b.cookies.expireSession(c.Response())
	return c.JSON(http.StatusOK, Status{})
}

// endTokens closes the streams of a session's tokens. The login session at the authorization server is left alone: other grants may
// live on in it.
func (b *broker) endTokens(ctx context.Context, s *sessionState) {
	b.end(ctx, Ended{Issuer: s.Issuer, TokenIDs: s.TokenIDs})
}

// end closes the streams of a session, or of nobody when it names none.
func (b *broker) end(ctx context.Context, ended Ended) {
	if b.deps.End != nil && (ended.SessionID != "" || len(ended.TokenIDs) > 0) {
		b.deps.End(ctx, ended)
	}
}

// refreshAfter leaves the larger of a minute and a fifth of the token's life for renewing it, and at most half
// of its life.
func refreshAfter(issued, expires time.Time) time.Time {
	if issued.IsZero() { // a self-issued token need not say
		issued = time.Now()
	}
	life := expires.Sub(issued)
	return expires.Add(-min(max(time.Minute, life/5), life/2))
}
