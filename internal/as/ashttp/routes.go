package ashttp

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/web"
)

// Options configures the edge.
type Options struct {
	// InsecureCookie leaves out Secure and the __Host- prefix of the login cookie. For plain HTTP on loopback only.
	InsecureCookie bool
	// CookieSuffix tells apart the login cookies of several servers on one host: cookies do not know ports.
	// Letters, digits and dashes; empty for a server that is alone on its host.
	CookieSuffix string
	// RequestsPerMinute bounds the authorization requests of one client address, pushed ones included, with as many at once. 0:
	// DefaultRequestsPerMinute; negative: unlimited. Pushes of clients that authenticate are not counted: a session broker pushes
	// for everybody.
	RequestsPerMinute int
}

// DefaultRequestsPerMinute is generous: a company may sit behind one address.
const DefaultRequestsPerMinute = 120

// Dependencies is what the edge needs. Server is required.
type Dependencies struct {
	Server *as.Server
	// ClientIP gives the address that authorization requests and sign-in attempts are counted by. Nil: the connection's peer.
	ClientIP func(r *http.Request) netip.Addr
	// Logger gets failures. Nil: nothing is logged.
	Logger *slog.Logger
}

// pathAssets is where the pages' stylesheet and icon are, under the issuer's path.
const pathAssets = "/assets/"

// edge is the registered server. It is immutable, but for what its limiter counts.
type edge struct {
	server   *as.Server
	cookie   cookie
	clientIP func(r *http.Request) netip.Addr
	starts   *httpserver.AddressLimiter
	logger   *slog.Logger
	base     string
	pages    pages
	assets   *httpserver.Static
}

// Register mounts every endpoint of the server on e, under the path of its issuer, and its metadata at the well-known
// paths of the host (RFC 8414 section 3.1, OpenID Connect Discovery 1.0 section 4).
func Register(e *echo.Echo, o Options, d Dependencies) error {
	if d.Server == nil {
		return errors.New("ashttp: no server")
	}
	if !regexp.MustCompile(`^[A-Za-z0-9-]*$`).MatchString(o.CookieSuffix) {
		return fmt.Errorf("ashttp: cookie suffix %q is not letters, digits and dashes", o.CookieSuffix)
	}
	if o.RequestsPerMinute == 0 {
		o.RequestsPerMinute = DefaultRequestsPerMinute
	}
	h := &edge{
		server:   d.Server,
		cookie:   newCookie(o),
		clientIP: d.ClientIP,
		starts:   httpserver.NewAddressLimiter(o.RequestsPerMinute),
		logger:   d.Logger,
		base:     d.Server.BasePath(),
	}
	if h.clientIP == nil {
		h.clientIP = httpserver.ClientIP(nil)
	}
	if h.logger == nil {
		h.logger = slog.New(slog.DiscardHandler)
	}
	var err error
	if h.assets, err = httpserver.NewStatic(web.Static(), "public, max-age=3600", "app.css", "logo.svg"); err != nil {
		return err
	}
	if h.pages, err = newPages(web.Templates()); err != nil {
		return err
	}
	h.mount(e)
	return nil
}

// handlers maps methods to handlers.
type handlers map[string]echo.HandlerFunc

// mount is the only list of routes.
func (h *edge) mount(e *echo.Echo) {
	read := func(f echo.HandlerFunc) handlers {
		return handlers{http.MethodGet: f, http.MethodHead: f, http.MethodOptions: publicPreflight}
	}
	fromPages := func(f echo.HandlerFunc) handlers {
		post := func(c echo.Context) error {
			h.allowOrigin(c)
			return f(c)
		}
		return handlers{http.MethodPost: post, http.MethodOptions: h.clientPreflight}
	}
	routes := map[string]handlers{
		h.base + as.PathAuthorize: {http.MethodGet: h.authorize, http.MethodPost: h.authorizeForm},
		h.base + as.PathLogin:     {http.MethodGet: h.loginPage, http.MethodPost: h.login},
		h.base + as.PathConsent:   {http.MethodGet: h.consentPage, http.MethodPost: h.consent},
		h.base + as.PathToken:     fromPages(h.token),
		h.base + as.PathPush:      fromPages(h.push),
		h.base + as.PathRevoke:    fromPages(h.revoke),
		// Only hubs ask, never a page: no other origin may.
		h.base + as.PathRevocations: {http.MethodPost: h.revocations},
		h.base + as.PathJWKS:        read(h.jwks),
		h.base + pathAssets + "*":   {http.MethodGet: h.assets.Serve, http.MethodHead: h.assets.Serve},
	}
	for _, path := range h.server.MetadataPaths() {
		routes[path] = read(h.metadata)
	}
	for path, methods := range routes {
		mountPath(e, path, methods)
	}
}

// mountPath registers the methods of a path; all others get 405 with the list of those that work (RFC 9110 section 15.5.6).
func mountPath(e *echo.Echo, path string, methods handlers) {
	var allow []string
	for method, handler := range methods {
		e.Add(method, path, handler)
		allow = append(allow, method)
	}
	slices.Sort(allow)
	refuse := func(c echo.Context) error {
		c.Response().Header().Set(echo.HeaderAllow, strings.Join(allow, ", "))
		return &httpserver.Problem{Status: http.StatusMethodNotAllowed}
	}
	for _, method := range []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions, http.MethodTrace, http.MethodConnect, "QUERY",
	} {
		if _, ok := methods[method]; !ok {
			e.Add(method, path, refuse)
		}
	}
}
