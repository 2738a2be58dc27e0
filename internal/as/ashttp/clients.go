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

// oauthError is an error response of the endpoints for clients (RFC 6749 section 5.2).
type oauthError struct {
	Code        as.Code `json:"error"`
	Description string  `json:"error_description,omitempty"`
}

// token answers POST /token.
func (h *edge) token(c echo.Context) error {
	request, ok, err := h.clientRequest(c)
	if !ok {
		return err
	}
	response, err := h.server.Token(c.Request().Context(), request)
	if err != nil {
		return refuseClient(c, err)
	}
	return writeJSON(c, http.StatusOK, response)
}

// push answers POST /par (RFC 9126 section 2). Who pushes without credentials has proven nothing, and leaves a record all the
// same: that is counted like the authorization request that it is.
func (h *edge) push(c echo.Context) error {
	request, ok, err := h.clientRequest(c)
	if !ok {
		return err
	}
	if !request.HasCredentials() && !h.starts.Allow(h.clientIP(c.Request())) {
		c.Response().Header().Set("Retry-After", retryStarts)
		return writeJSON(c, http.StatusTooManyRequests, oauthError{
			Code: as.CodeTemporarilyUnavailable, Description: "Too many authorization requests came from this address.",
		})
	}
	response, err := h.server.Push(c.Request().Context(), request)
	if err != nil {
		return refuseClient(c, err)
	}
	return writeJSON(c, http.StatusCreated, response)
}

// revoke answers POST /revoke (RFC 7009 section 2).
func (h *edge) revoke(c echo.Context) error {
	request, ok, err := h.clientRequest(c)
	if !ok {
		return err
	}
	if err := h.server.Revoke(c.Request().Context(), request); err != nil {
		return refuseClient(c, err)
	}
	noStore(c)
	return c.NoContent(http.StatusOK)
}

// revocations answers POST /revocations.
func (h *edge) revocations(c echo.Context) error {
	request, ok, err := h.clientRequest(c)
	if !ok {
		return err
	}
	page, err := h.server.Revocations(c.Request().Context(), request)
	if err != nil {
		return refuseClient(c, err)
	}
	return writeJSON(c, http.StatusOK, page)
}

// clientRequest reads what a client posted. When it cannot, ok is false and the answer is written.
func (h *edge) clientRequest(c echo.Context) (request as.ClientRequest, ok bool, err error) {
	r := c.Request()
	if r.URL.RawQuery != "" {
		return request, false, malformed(c, http.StatusBadRequest, "Parameters belong into the body.")
	}
	request.Form, err = readForm(c)
	switch {
	case errors.Is(err, errMediaType):
		return request, false, malformed(c, http.StatusUnsupportedMediaType, "The body must be "+formMediaType+".")
	case errors.Is(err, errTooLarge):
		return request, false, malformed(c, http.StatusRequestEntityTooLarge, "The body is too large.")
	case err != nil:
		return request, false, malformed(c, http.StatusBadRequest, "The body could not be read.")
	}
	if user, password, ok := r.BasicAuth(); ok {
		request.Basic = &as.Basic{User: user, Password: password}
	} else if r.Header.Get(echo.HeaderAuthorization) != "" {
		return request, false, malformed(c, http.StatusBadRequest, "The Authorization header is not of the Basic scheme.")
	}
	return request, true, nil
}

func malformed(c echo.Context, status int, description string) error {
	return writeJSON(c, status, oauthError{Code: as.CodeInvalidRequest, Description: description})
}

// refuseClient writes an error of the server's.
func refuseClient(c echo.Context, err error) error {
	oe, ok := errors.AsType[*as.OAuthError](err)
	if !ok {
		return fmt.Errorf("client request: %w", err)
	}
	if oe.BasicChallenge && oe.Code == as.CodeInvalidClient {
		c.Response().Header().Set("WWW-Authenticate", `Basic realm="clients", charset="UTF-8"`)
	}
	if oe.Code == as.CodeTemporarilyUnavailable {
		c.Response().Header().Set("Retry-After", "1")
	}
	return writeJSON(c, oe.Status(), oauthError{Code: oe.Code, Description: oe.Description})
}

// writeJSON writes an answer that no cache may keep.
func writeJSON(c echo.Context, status int, body any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	noStore(c)
	return c.Blob(status, echo.MIMEApplicationJSON, encoded)
}

// noStore keeps caches out, of HTTP/1.0 too (RFC 6749 section 5.1).
func noStore(c echo.Context) {
	c.Response().Header().Set("Cache-Control", "no-store")
	c.Response().Header().Set("Pragma", "no-cache")
}

// clientPreflight answers the OPTIONS request that browsers send before a POST with an Authorization header.
func (h *edge) clientPreflight(c echo.Context) error {
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
