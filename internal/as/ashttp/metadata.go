package ashttp

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// publicCache is how long documents for everybody may be kept. A new signing key is published long before its first use.
const publicCache = "public, max-age=300"

// metadata answers the well-known paths.
func (h *edge) metadata(c echo.Context) error { return public(c, h.server.Metadata()) }

// jwks answers GET /jwks.json.
func (h *edge) jwks(c echo.Context) error { return public(c, h.server.JWKS()) }

// public writes a document that anybody may read, from any page.
func public(c echo.Context, document []byte) error {
	h := c.Response().Header()
	h.Set(echo.HeaderAccessControlAllowOrigin, "*")
	h.Set("Cache-Control", publicCache)
	if c.Request().Method == http.MethodHead {
		h.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
		return c.NoContent(http.StatusOK)
	}
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, document)
}

// publicPreflight answers OPTIONS for the public documents.
func publicPreflight(c echo.Context) error {
	h := c.Response().Header()
	h.Set(echo.HeaderAllow, "GET, HEAD, OPTIONS")
	h.Set(echo.HeaderAccessControlAllowOrigin, "*")
	h.Set(echo.HeaderAccessControlAllowMethods, "GET, HEAD")
	h.Set(echo.HeaderAccessControlAllowHeaders, "*")
	h.Set(echo.HeaderAccessControlMaxAge, "600")
	return c.NoContent(http.StatusNoContent)
}
