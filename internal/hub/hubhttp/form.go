package hubhttp

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
)

// minFormPairs is how many fields a form may have at least, whatever the limit of topics.
const minFormPairs = 4096

// Bounds of the buffer through which a body is read, in bytes. One of known length is read at once if it fits.
const (
	minReadBuffer = 512
	maxReadBuffer = 32 << 10
)

// readForm reads the body of c's request as a form of at most limit bytes (0: any number). It must be called before the connection is hijacked. The errors are
// errMediaType, errBodyTooLarge, errBodyTimeout, errBodyUnread, and the *mercure.FieldError of too many fields.
func (a *api) readForm(c echo.Context, limit int) ([]mercure.Pair, error) {
	r := c.Request()
	if !isForm(r.Header) {
		return nil, errMediaType
	}
	raw, err := a.readBody(c.Response().Writer, r, int64(limit))
	if err != nil {
		return nil, err
	}
	httpserver.BodyRead(c)
	return mercure.ParseForm(raw, a.formPairs())
}

// formPairs bounds the fields of a form well above what the limits of topics and matchers let through, so that those
// answer first and an adversary cannot make a megabyte of "&a" cost much more than itself.
func (a *api) formPairs() int {
	return max(minFormPairs, 4*a.options.Limits.Topics)
}

// readBody reads the body of r up to the limit (0: none). w must be the server's own writer: only that one learns from MaxBytesReader that
// the rest of the body is not worth waiting for.
func (a *api) readBody(w http.ResponseWriter, r *http.Request, limit int64) (string, error) {
	if limit > 0 && r.ContentLength > limit {
		return "", errBodyTooLarge
	}
	var b strings.Builder
	if r.ContentLength > 0 {
		b.Grow(int(min(r.ContentLength, 1<<20)))
	}
	body := r.Body
	if limit > 0 {
		body = http.MaxBytesReader(w, r.Body, limit)
	}
	// Most bodies are small: a buffer of io.Copy's own size would cost more than all else that is done with them.
	buf := make([]byte, min(max(r.ContentLength+1, minReadBuffer), maxReadBuffer))
	if _, err := io.CopyBuffer(&b, body, buf); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return "", errBodyTooLarge
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return "", errBodyTimeout
		}
		return "", errors.Join(errBodyUnread, err)
	}
	return b.String(), nil
}

// isForm reports whether h describes an uncompressed form: the media type in any case and with any parameters (PUB-03). A
// charset parameter says nothing, since forms are UTF-8 by definition.
func isForm(h http.Header) bool {
	types := h["Content-Type"]
	if len(types) != 1 {
		return false
	}
	if coding := h.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return false
	}
	mediaType, _, _ := strings.Cut(types[0], ";")
	return strings.EqualFold(strings.Trim(mediaType, " \t"), mercure.FormMediaType)
}
