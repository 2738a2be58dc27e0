package ashttp

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/as"
)

// cookieName is the login cookie of a server that is alone on its host.
const cookieName = "cinnabar_login"

// cookie knows the login cookie. Its value is two random identifiers, of which the store has hashes, so it needs no seal.
type cookie struct {
	name   string
	secure bool
}

func newCookie(o Options) cookie {
	c := cookie{name: cookieName, secure: !o.InsecureCookie}
	if o.CookieSuffix != "" {
		c.name += "_" + o.CookieSuffix
	}
	if c.secure {
		c.name = "__Host-" + c.name
	}
	return c
}

// read returns the browser of a request. Of several cookies of the name the first counts; with the prefix there can be
// only one, as neither Domain nor another Path is possible.
func (k cookie) read(c echo.Context) as.Browser {
	sent, err := c.Request().Cookie(k.name)
	if err != nil {
		return as.Browser{}
	}
	return as.ParseBrowser(sent.Value)
}

// write sets the cookie if its value has changed. SameSite is Lax: requests begin at the client's site.
func (k cookie) write(c echo.Context, before, after as.Browser) {
	if before == after {
		return
	}
	http.SetCookie(c.Response(), &http.Cookie{ //nolint:gosec // Secure is left out on loopback alone, see Options
		Name:     k.name,
		Value:    after.String(),
		Path:     "/",
		Secure:   k.secure,
		HttpOnly: true,
		SameSite: http.SameSiteLaxMode,
	})
}
