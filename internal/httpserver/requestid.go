package httpserver

import (
	"crypto/rand"
	"encoding/hex"

	"github.com/labstack/echo/v4"
)

const (
	requestIDBytes    = 12 // 96 random bits: unique in any log that is kept
	maxRequestIDBytes = 64
)

// RequestID returns the id of the request that c serves, or "" when the instance has no request id middleware.
func RequestID(c echo.Context) string {
	return c.Response().Header().Get(echo.HeaderXRequestID)
}

// requestID gives every response an X-Request-Id. An incoming id is taken over only when it is a short plain token, so
// that a proxy can correlate its log with ours while nobody can write into it.
func requestID(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id := c.Request().Header.Get(echo.HeaderXRequestID)
		if !saneRequestID(id) {
			id = newRequestID()
		}
		c.Response().Header().Set(echo.HeaderXRequestID, id)
		return next(c)
	}
}

func newRequestID() string {
	var b [requestIDBytes]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand crashes the process instead
	return hex.EncodeToString(b[:])
}

func saneRequestID(id string) bool {
	if id == "" || len(id) > maxRequestIDBytes {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}
