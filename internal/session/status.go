package session

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

// Status is the JSON document of GET {hub}/session. It never contains a token.
//
//	{"active": true, "expires_at": "2026-01-02T15:04:05Z", "refresh_after": "2026-01-02T15:02:05Z",
//	 "renewable": false, "sub": "u_9f2k…", "username": "demo"}
//	{"active": false, "renewable": false}
type Status struct {
	// Active says that the hub accepts this browser's cookie now.
	Active bool `json:"active"`
	// ExpiresAt is when the hub stops accepting it, RFC 3339 in UTC. Streams close by then.
	ExpiresAt string `json:"expires_at,omitempty"`
	// RefreshAfter is from when the page should renew the session or, when it is not renewable, ask to sign in again.
	RefreshAfter string `json:"refresh_after,omitempty"`
	// Renewable says whether the session can be renewed without a person.
	Renewable bool `json:"renewable"`
	// Subject identifies the person to programs, Username to people. Username may be absent.
	Subject  string `json:"sub,omitempty"`
	Username string `json:"username,omitempty"`
}

// status answers GET {hub}/session. What counts is the hub cookie, judged as the hub would judge it; the session
// cookie adds what only the broker knows. Cookies of a session that is over are expired, so that the next
// stream is an anonymous one on purpose and not a refused one.
func (b *broker) status(c echo.Context) error {
	private(c)
	b.allowOrigin(c)
	r := c.Request()
	values := distinct(r.CookiesNamed(b.cookies.hubName))
	if len(values) == 0 {
		return c.JSON(http.StatusOK, Status{})
	}
	if len(values) > 1 {
		return b.over(c, "several different hub cookies")
	}
	claims, err := b.deps.Verify(r.Context(), values[0])
	if errors.Is(err, token.ErrUnavailable) {
		b.logger(c).LogAttrs(c.Request().Context(), slog.LevelError, "session not judged", slog.String("error", err.Error()))
		c.Response().Header().Set("Retry-After", "5")
		return &httpserver.Problem{Status: http.StatusServiceUnavailable, Detail: "The session cannot be judged at the moment."}
	}
	if err != nil {
		return b.over(c, err.Error())
	}
	expires := claims.ExpiresAt
	answer := Status{Active: true, Subject: claims.Subject, Username: claims.Username}
	if s, ok := b.cookies.session(r); ok && s.Issuer == claims.Issuer && slices.Contains(s.TokenIDs, claims.ID) {
		ends := time.Unix(s.Ends, 0)
		if !time.Now().Before(ends) {
			return b.over(c, "the session's absolute end has passed")
		}
		if ends.Before(expires) {
			expires = ends
		}
		answer.Username = s.Username
	}
	answer.ExpiresAt = expires.UTC().Format(time.RFC3339)
	answer.RefreshAfter = refreshAfter(claims.IssuedAt, expires).UTC().Format(time.RFC3339)
	return c.JSON(http.StatusOK, answer)
}

// over answers for a session that is dead and expires its cookies.
func (b *broker) over(c echo.Context, reason string) error {
	b.logger(c).LogAttrs(c.Request().Context(), slog.LevelDebug, "session is over", slog.String("reason", reason))
	b.cookies.expireSession(c.Response())
	return c.JSON(http.StatusOK, Status{})
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

// distinct gives the different values of equally named cookies: equal duplicates count once.
func distinct(cookies []*http.Cookie) []string {
	var values []string
	for _, cookie := range cookies {
		if !slices.Contains(values, cookie.Value) {
			values = append(values, cookie.Value)
		}
	}
	return values
}

// preflight answers OPTIONS {hub}/session. The document needs none, but scripts may add header fields.
func (b *broker) preflight(c echo.Context) error {
	b.allowOrigin(c)
	h := c.Response().Header()
	h.Set("Allow", "GET, OPTIONS")
	if h.Get(echo.HeaderAccessControlAllowOrigin) != "" {
		h.Set(echo.HeaderAccessControlAllowMethods, "GET")
	}
	return c.NoContent(http.StatusNoContent)
}

// allowOrigin lets pages at the configured origins, spelled exactly so, read the answer with their cookies.
func (b *broker) allowOrigin(c echo.Context) {
	h := c.Response().Header()
	h.Add(echo.HeaderVary, "Origin")
	origin := c.Request().Header.Get("Origin")
	if origin == "" || !slices.Contains(b.options.ReturnToOrigins, origin) {
		return
	}
	h.Set(echo.HeaderAccessControlAllowOrigin, origin)
	h.Set(echo.HeaderAccessControlAllowCredentials, "true")
	h.Set(echo.HeaderAccessControlExposeHeaders, "Retry-After")
}
