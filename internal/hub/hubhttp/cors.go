package hubhttp

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// What cross-origin pages may send and read. The lists are fixed: an allowed origin gets all of them.
const (
	hubCORSMethods           = "GET, HEAD, POST, QUERY"
	subscriptionsCORSMethods = "GET, HEAD"

	corsHeaders = "authorization, content-type, last-event-id, cache-control, x-mercure-session, mcp-protocol-version"
	corsExposed = "Link, Mercure-Last-Event-ID, WWW-Authenticate, Retry-After"
	// corsMaxAge is what Chromium caps preflight results at, in seconds.
	corsMaxAge = "7200"
)

// cors adds the header fields of the CORS protocol to every answer of the hub, refusals included: a page that cannot read a
// 401 cannot tell it from a network failure (CORS-11). Origins that are not listed get nothing, and the answer says that
// it depends on the origin (CORS-09).
func (a *api) cors(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Add(echo.HeaderVary, echo.HeaderOrigin)
		if origin, ok := a.corsOrigin(c.Request()); ok {
			h.Set(echo.HeaderAccessControlAllowOrigin, origin)
			h.Set(echo.HeaderAccessControlAllowCredentials, "true")
			h.Set(echo.HeaderAccessControlExposeHeaders, corsExposed)
		}
		return next(c)
	}
}

func (a *api) corsOrigin(r *http.Request) (string, bool) {
	fields := r.Header[echo.HeaderOrigin]
	if len(fields) != 1 || !a.corsOrigins.has(fields[0]) {
		return "", false
	}
	return fields[0], true
}

// preflight answers OPTIONS: a CORS preflight of a listed origin with what it may do, everything else with Allow alone.
func (a *api) preflight(allow, corsMethods string) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set(echo.HeaderAllow, allow)
		h.Add(echo.HeaderVary, echo.HeaderAccessControlRequestMethod)
		h.Add(echo.HeaderVary, echo.HeaderAccessControlRequestHeaders)
		if _, ok := a.corsOrigin(c.Request()); ok && c.Request().Header.Get(echo.HeaderAccessControlRequestMethod) != "" {
			h.Set(echo.HeaderAccessControlAllowMethods, corsMethods)
			h.Set(echo.HeaderAccessControlAllowHeaders, corsHeaders)
			h.Set(echo.HeaderAccessControlMaxAge, corsMaxAge)
		}
		return c.NoContent(http.StatusNoContent)
	}
}

// publicCORS is the CORS protocol of metadata documents: anybody may read them, without credentials (PRM-13).
func publicCORS(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Response().Header().Set(echo.HeaderAccessControlAllowOrigin, "*")
		return next(c)
	}
}

// publicPreflight answers OPTIONS on metadata documents.
func publicPreflight(c echo.Context) error {
	h := c.Response().Header()
	h.Set(echo.HeaderAllow, metadataMethods)
	if c.Request().Header.Get(echo.HeaderAccessControlRequestMethod) != "" {
		h.Set(echo.HeaderAccessControlAllowMethods, "GET, HEAD")
		h.Set(echo.HeaderAccessControlAllowHeaders, corsHeaders)
		h.Set(echo.HeaderAccessControlMaxAge, corsMaxAge)
	}
	return c.NoContent(http.StatusNoContent)
}
