package session

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
)

const (
	// csrfHeader must come with every request that changes a session. A form cannot send it, and a script of another origin only after
	// a preflight that allows it.
	csrfHeader = "X-Mercure-Session"
	csrfValue  = "1"
	// corsHeaders is what pages of the configured origins may send, corsExposed what they may read.
	corsHeaders = "x-mercure-session, content-type"
	corsExposed = "Retry-After, WWW-Authenticate"
	// corsMaxAge is what Chromium caps preflight results at, in seconds.
	corsMaxAge = "7200"
)

// guard refuses requests that another site's page could have caused (CSRF): the cookies alone are no proof that a person wants it.
// The page must be at the hub's own origin or a configured one, and say what it is doing.
func (b *broker) guard(r *http.Request) *httpserver.Problem {
	origin, ok := httpserver.SourceOrigin(r)
	if !ok || origin != b.origin && !slices.Contains(b.options.ReturnToOrigins, origin) {
		return &httpserver.Problem{
			Status: http.StatusForbidden, Title: "Origin refused",
			Detail: "This needs the Origin (or Referer) of a page that may change the session.",
			Hint:   "List the page's origin in session.return_to_origins.",
		}
	}
	if fields := r.Header[csrfHeader]; len(fields) != 1 || fields[0] != csrfValue {
		return &httpserver.Problem{
			Status: http.StatusForbidden, Title: "Header field missing",
			Detail: "This needs the header field " + csrfHeader + ": " + csrfValue + ".",
			Hint:   `Send it with fetch: { method: "POST", credentials: "include", headers: { "` + csrfHeader + `": "` + csrfValue + `" } }`,
		}
	}
	return nil
}

// preflight answers OPTIONS on an endpoint: a CORS preflight of a configured origin with what it may do, everything else with Allow
// alone.
func (b *broker) preflight(method string) echo.HandlerFunc {
	return func(c echo.Context) error {
		private(c)
		b.allowOrigin(c)
		h := c.Response().Header()
		h.Set(echo.HeaderAllow, strings.Join([]string{method, http.MethodOptions}, ", "))
		h.Add(echo.HeaderVary, echo.HeaderAccessControlRequestMethod)
		h.Add(echo.HeaderVary, echo.HeaderAccessControlRequestHeaders)
		if h.Get(echo.HeaderAccessControlAllowOrigin) != "" {
			h.Set(echo.HeaderAccessControlAllowMethods, method)
			h.Set(echo.HeaderAccessControlAllowHeaders, corsHeaders)
			h.Set(echo.HeaderAccessControlMaxAge, corsMaxAge)
		}
		return c.NoContent(http.StatusNoContent)
	}
}

// allowOrigin lets pages at the configured origins, spelled exactly so, read the answer with their cookies.
func (b *broker) allowOrigin(c echo.Context) {
	h := c.Response().Header()
	h.Add(echo.HeaderVary, echo.HeaderOrigin)
	fields := c.Request().Header[echo.HeaderOrigin]
	if len(fields) != 1 || !slices.Contains(b.options.ReturnToOrigins, fields[0]) {
		return
	}
	h.Set(echo.HeaderAccessControlAllowOrigin, fields[0])
	h.Set(echo.HeaderAccessControlAllowCredentials, "true")
	h.Set(echo.HeaderAccessControlExposeHeaders, corsExposed)
}
