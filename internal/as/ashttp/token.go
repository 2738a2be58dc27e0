package ashttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/as"
)

// oauthError is an error response of the token endpoint (RFC 6749 section 5.2).
type oauthError struct {
	Code        as.Code `json:"error"`
	Description string  `json:"error_description,omitempty"`
}

// token answers POST /token.
func (h *edge) token(c echo.Context) error {
	h.allowOrigin(c)
	r := c.Request()
	if r.URL.RawQuery != "" {
		return refuseToken(c, http.StatusBadRequest, "Parameters belong into the body.")
	}
	body, err := readForm(c)
	switch {
	case errors.Is(err, errMediaType):
		return refuseToken(c, http.StatusUnsupportedMediaType, "The body must be "+formMediaType+".")
	case errors.Is(err, errTooLarge):
		return refuseToken(c, http.StatusRequestEntityTooLarge, "The body is too large.")
	case err != nil:
		return refuseToken(c, http.StatusBadRequest, "The body could not be read.")
	}
	request := as.TokenRequest{Form: body}
	if user, password, ok := r.BasicAuth(); ok {
		request.Basic = &as.Basic{User: user, Password: password}
	} else if r.Header.Get(echo.HeaderAuthorization) != "" {
		return refuseToken(c, http.StatusBadRequest, "The Authorization header is not of the Basic scheme.")
	}
	response, err := h.server.Token(r.Context(), request)
	if err == nil {
		return writeJSON(c, http.StatusOK, response)
	}
	oe, ok := errors.AsType[*as.OAuthError](err)
	if !ok {
		return fmt.Errorf("token request: %w", err)
	}
	if oe.BasicChallenge && oe.Code == as.CodeInvalidClient {
		c.Response().Header().Set("WWW-Authenticate", `Basic realm="token endpoint", charset="UTF-8"`)
	}
	if oe.Code == as.CodeTemporarilyUnavailable {
		c.Response().Header().Set("Retry-After", "1")
	}
	return writeJSON(c, oe.Status(), oauthError{Code: oe.Code, Description: oe.Description})
}

func refuseToken(c echo.Context, status int, description string) error {
	return writeJSON(c, status, oauthError{Code: as.CodeInvalidRequest, Description: description})
}

// writeJSON writes an answer that no cache may keep (RFC 6749 section 5.1).
func writeJSON(c echo.Context, status int, body any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	c.Response().Header().Set("Pragma", "no-cache")
	return c.Blob(status, echo.MIMEApplicationJSON, encoded)
}

// tokenPreflight answers the OPTIONS request that browsers send before a POST with an Authorization header.
func (h *edge) tokenPreflight(c echo.Context) error {
	if h.allowOrigin(c) {
		header := c.Response().Header()
		header.Set(echo.HeaderAccessControlAllowMethods, http.MethodPost)
		header.Set(echo.HeaderAccessControlAllowHeaders, "Authorization, Content-Type")
		header.Set(echo.HeaderAccessControlMaxAge, "600")
	}
	c.Response().Header().Set(echo.HeaderAllow, "OPTIONS, POST")
	return c.NoContent(http.StatusNoContent)
}

// allowOrigin lets pages of the clients' origins read the answer. Credentials are not allowed: no cookie matters here.
func (h *edge) allowOrigin(c echo.Context) bool {
	c.Response().Header().Add(echo.HeaderVary, echo.HeaderOrigin)
	origin := c.Request().Header.Get(echo.HeaderOrigin)
	if origin == "" {
		return false
	}
	ok, err := h.server.OriginAllowed(c.Request().Context(), origin)
	if err != nil {
		h.logger.LogAttrs(c.Request().Context(), slog.LevelError, "origin not checked", slog.String("error", err.Error()))
	}
	if ok {
		c.Response().Header().Set(echo.HeaderAccessControlAllowOrigin, origin)
		c.Response().Header().Set(echo.HeaderAccessControlExposeHeaders, "WWW-Authenticate, Retry-After")
	}
	return ok
}
