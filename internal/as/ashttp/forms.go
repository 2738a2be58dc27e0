package ashttp

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/as"
)

// formMediaType is the only one the endpoints read. Multipart would spill files to disk, and JSON is not OAuth.
const formMediaType = "application/x-www-form-urlencoded"

// Errors of reading a form.
var (
	errMediaType = errors.New("ashttp: body is not " + formMediaType)
	errTooLarge  = errors.New("ashttp: body is too large")
	errOrigin    = errors.New("ashttp: form of another origin")
)

// readForm reads the body of a form.
func readForm(c echo.Context) (string, error) {
	r := c.Request()
	mediaType, _, err := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType))
	if err != nil || !strings.EqualFold(mediaType, formMediaType) {
		return "", errMediaType
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.Response(), r.Body, as.MaxParameterBytes))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return "", errTooLarge
	}
	if err != nil {
		return "", fmt.Errorf("read body: %w", err)
	}
	return string(body), nil
}

// ownForm reads a form that one of our pages posted. Browsers say with every POST where the page is from; a form that
// cannot say it is not one of ours.
func (h *edge) ownForm(c echo.Context) (url.Values, error) {
	if !h.sameOrigin(c.Request()) {
		return nil, errOrigin
	}
	body, err := readForm(c)
	if err != nil {
		return nil, err
	}
	values, err := url.ParseQuery(body)
	if err != nil {
		return nil, as.ErrRequest
	}
	return values, nil
}

// sameOrigin checks Origin, else Referer, against the issuer's origin. A missing or opaque ("null") one is foreign.
func (h *edge) sameOrigin(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		return origin == h.server.Origin()
	}
	referrer, err := url.Parse(r.Header.Get("Referer"))
	if err != nil || referrer.Host == "" {
		return false
	}
	return referrer.Scheme+"://"+referrer.Host == h.server.Origin()
}
