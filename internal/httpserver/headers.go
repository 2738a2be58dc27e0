package httpserver

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// PagePolicy describes what a page may do beyond showing itself; see SetPageHeaders.
type PagePolicy struct {
	// Scripts allows script files of the page's own origin. Inline script is never allowed.
	Scripts bool
	// Connect lists further origins the page's scripts may connect to, beside its own. It is ignored without Scripts.
	Connect []string
	// Forms allows forms that post to the page's own origin.
	Forms bool
}

// SetPageHeaders writes the header fields of an HTML page into h: a strict Content-Security-Policy without inline script
// or style, no framing, no sniffing, no caching, and a Referrer-Policy under which the page's own forms still send their
// Origin ("same-origin": with "no-referrer" browsers post forms with "Origin: null"). It replaces what the middleware of
// NewEcho had set.
func SetPageHeaders(h http.Header, p PagePolicy) {
	var csp strings.Builder
	csp.WriteString("default-src 'none'; style-src 'self'; img-src 'self' data:; font-src 'self'")
	if p.Scripts {
		csp.WriteString("; script-src 'self'; connect-src 'self'")
		for _, origin := range p.Connect {
			csp.WriteByte(' ')
			csp.WriteString(origin)
		}
	}
	if p.Forms {
		csp.WriteString("; form-action 'self'")
	} else {
		csp.WriteString("; form-action 'none'")
	}
	csp.WriteString("; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Content-Security-Policy", csp.String())
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
}

// defaultHeaders sets what fits every response: JSON, problem documents, redirects and streams. Pages replace it with
// SetPageHeaders. HSTS is sent only when hsts is positive, and never by development listeners.
func defaultHeaders(hsts time.Duration) echo.MiddlewareFunc {
	transport := ""
	if hsts > 0 {
		transport = "max-age=" + strconv.FormatInt(int64(hsts/time.Second), 10)
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			h := c.Response().Header()
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set("Referrer-Policy", "no-referrer")
			h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
			if transport != "" {
				h.Set("Strict-Transport-Security", transport)
			}
			return next(c)
		}
	}
}
