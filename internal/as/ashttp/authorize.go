package ashttp

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/as"
)

// retryStarts is when somebody who sent too many authorization requests may send the next, in seconds.
const retryStarts = "10"

// errTooMany says that too many authorization requests came from one address.
var errTooMany = errors.New("ashttp: too many authorization requests from one address")

// authorize answers GET /authorize: an authorization request, or an interaction that comes back from a step.
func (h *edge) authorize(c echo.Context) error {
	// An interaction that comes back has been counted. A new request is counted before it costs anything: each may leave a
	// record in the database, and whoever sends it has proven nothing.
	if c.QueryParam(as.ParamInteraction) == "" && !h.starts.Allow(h.clientIP(c.Request())) {
		c.Response().Header().Set("Retry-After", retryStarts)
		return h.failed(c, errTooMany)
	}
	browser := h.cookie.read(c)
	step, err := h.server.Authorize(c.Request().Context(), c.Request().URL.RawQuery, browser)
	if err != nil {
		return h.failed(c, err)
	}
	if step.Browser != (as.Browser{}) {
		h.cookie.write(c, browser, step.Browser)
	}
	switch step.Kind {
	case as.StepRedirect:
		return seeOther(c, step.Location)
	case as.StepLogin:
		return seeOther(c, h.stepURL(as.PathLogin, step.Interaction))
	case as.StepConsent:
		return seeOther(c, h.stepURL(as.PathConsent, step.Interaction))
	default:
		return h.failed(c, as.ErrRequest)
	}
}

// authorizeForm answers POST /authorize by sending the browser to the same request as GET. A form from the client's site
// comes without our SameSite=Lax cookie: answered directly, it would look like a browser that was never here.
func (h *edge) authorizeForm(c echo.Context) error {
	body, err := readForm(c)
	if err != nil {
		return h.failed(c, err)
	}
	if _, err := url.ParseQuery(body); err != nil || c.Request().URL.RawQuery != "" {
		return h.failed(c, as.ErrRequest)
	}
	return seeOther(c, h.base+as.PathAuthorize+"?"+body)
}

// stepURL is the address of a step of an interaction.
func (h *edge) stepURL(path, interaction string) string {
	return h.base + path + "?" + url.Values{as.ParamInteraction: {interaction}}.Encode()
}

// seeOther redirects with 303, which turns every method into GET: a 307 would post a password to the client.
func seeOther(c echo.Context, location string) error {
	h := c.Response().Header()
	h.Set("Location", location)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	c.Response().WriteHeader(http.StatusSeeOther)
	return nil
}
