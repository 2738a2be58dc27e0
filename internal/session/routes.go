package session

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/clientassertion"
	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
)

// Paths below the hub's.
const (
	sessionPath  = "/session"
	loginPath    = sessionPath + "/login"
	callbackPath = sessionPath + "/callback"
	refreshPath  = sessionPath + "/refresh"
	logoutPath   = sessionPath + "/logout"
)

// broker holds what the handlers share. It is immutable after Register, and its parts are safe for
// concurrent use.
type broker struct {
	options     Options
	deps        Dependencies
	origin      string // the hub's
	redirectURI string
	loginURL    string
	returns     *returnPolicy
	cookies     *cookies
	issuer      *issuer
	asserter    *clientassertion.Asserter
	renewals    *renewals
	logins      *httpserver.AddressLimiter
	page        *lostPage
}

// Register adds the broker's endpoints to e, under the path of the hub URL. It reports options that cannot
// work and missing dependencies, and contacts nobody.
func Register(e *echo.Echo, o Options, d Dependencies) error {
	b, base, err := newBroker(o, d)
	if err != nil {
		return err
	}
	e.GET(base+loginPath, b.login)
	e.GET(base+callbackPath, b.callback)
	e.GET(base+sessionPath, b.status)
	e.POST(base+refreshPath, b.refresh)
	e.POST(base+logoutPath, b.logout)
	e.OPTIONS(base+sessionPath, b.preflight(http.MethodGet))
	e.OPTIONS(base+refreshPath, b.preflight(http.MethodPost))
	e.OPTIONS(base+logoutPath, b.preflight(http.MethodPost))
	return nil
}

// newBroker makes a broker and gives the path that its endpoints stand under.
func newBroker(o Options, d Dependencies) (b *broker, base string, err error) {
	if err := o.Validate(); err != nil {
		return nil, "", err
	}
	if err := d.validate(); err != nil {
		return nil, "", err
	}
	o = o.withDefaults()
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	if d.ClientIP == nil {
		d.ClientIP = httpserver.ClientIP(nil)
	}
	hub, err := parseEndpoint(o.HubURL)
	if err != nil {
		return nil, "", err
	}
	asserter, err := clientassertion.New(o.ClientID, o.Issuer, o.ClientKey)
	if err != nil {
		return nil, "", fmt.Errorf("session: client key: %w", err)
	}
	base = strings.TrimSuffix(hub.Pathname(), "/")
	origin := originOf(hub)
	b = &broker{
		options:     o,
		deps:        d,
		origin:      origin,
		redirectURI: origin + base + callbackPath,
		loginURL:    origin + base + loginPath,
		returns:     newReturnPolicy(origin, base+sessionPath, o.ReturnToOrigins),
		cookies:     newCookies(o, hub.Pathname()),
		issuer:      newIssuer(o.Issuer, d.HTTPClient),
		asserter:    asserter,
		renewals:    newRenewals(),
		logins:      httpserver.NewAddressLimiter(o.LoginsPerMinute),
	}
	if b.page, err = newLostPage(origin+"/", b.loginURL); err != nil {
		return nil, "", err
	}
	return b, base, nil
}

// one returns the only value of a query parameter. A repeated parameter is malformed (RFC 6749 section 3.1).
func one(r *http.Request, names ...string) (values map[string]string, ok bool) {
	query := r.URL.Query()
	values = make(map[string]string, len(names))
	for _, name := range names {
		given := query[name]
		if len(given) > 1 {
			return nil, false
		}
		if len(given) == 1 {
			values[name] = given[0]
		}
	}
	return values, true
}

// logger names the request that a line is about, never its parameters.
func (b *broker) logger(c echo.Context) *slog.Logger {
	return b.deps.Logger.With(slog.String("request_id", httpserver.RequestID(c)), slog.String("issuer", b.issuer.id))
}

// redirect answers 303. The address is absolute and was admitted by the return policy, or is the
// authorization server's own.
func redirect(c echo.Context, location string) error {
	private(c)
	return c.Redirect(http.StatusSeeOther, location)
}

// private keeps an answer out of caches, and its address, which may hold a code, out of Referer.
func private(c echo.Context) {
	h := c.Response().Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
}
