package hubhttp

import (
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/hub/sink"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// methodQuery is the QUERY method: a safe request with a body (SUB-02).
const methodQuery = "QUERY"

// What Allow says about each resource.
const (
	hubMethods           = "GET, HEAD, OPTIONS, POST, QUERY"
	subscriptionsMethods = "GET, HEAD, OPTIONS"
	metadataMethods      = "GET, HEAD, OPTIONS"
)

// Names of endpoints in logs and metrics.
const (
	endpointPublish       = "publish"
	endpointSubscribe     = "subscribe"
	endpointSubscriptions = "subscriptions"
	endpointMetadata      = "metadata"
	endpointOther         = "other"
)

// api is the edge of one hub. All fields are set once by Register.
type api struct {
	options        Options
	url            string // of the hub, as the URL parser writes it
	depth          int    // slashes in the path of the collection of subscriptions
	hub            *hub.Hub
	sinks          *sink.Set
	verifier       Verifier
	compiler       *topic.Compiler
	log            *slog.Logger
	metrics        Metrics
	clientIP       func(*http.Request) netip.Addr
	corsOrigins    origins
	publishOrigins origins
	challenges     challenges
	metadata       []byte
	rules          []rule
	connections    *Connections
	outdated       func(*hub.Principal) bool
	legacyCursor   onceLog
}

// Register mounts the hub on e: its URL's path for publishing and subscribing, and its metadata. The instance should come from
// httpserver.NewEcho, whose request ids and error documents it relies on. Everything that is wrong with the options is
// reported here, before anything listens.
func Register(e *echo.Echo, o Options, d Dependencies) error {
	if err := d.validate(); err != nil {
		return err
	}
	o, u, err := o.withDefaults()
	if err != nil {
		return err
	}
	a, err := newAPI(o, u, d)
	if err != nil {
		return err
	}
	a.routes(e, u)
	return nil
}

func newAPI(o Options, u *url.URL, d Dependencies) (*api, error) {
	corsOrigins, err := newOrigins(o.CORSOrigins)
	if err != nil {
		return nil, err
	}
	publishOrigins, err := newOrigins(o.PublishOrigins)
	if err != nil {
		return nil, err
	}
	if len(publishOrigins) == 0 {
		for origin := range corsOrigins {
			publishOrigins[origin] = struct{}{}
		}
		if own, ok := httpserver.SerialiseOrigin(o.PublicURL); ok {
			publishOrigins[own] = struct{}{}
		}
	}
	document, err := metadataDocument(o)
	if err != nil {
		return nil, err
	}
	if d.ClientIP == nil {
		d.ClientIP = httpserver.ClientIP(nil)
	}
	if d.Connections == nil {
		d.Connections = NewConnections(0, 0)
	}
	if d.Outdated == nil {
		d.Outdated = func(*hub.Principal) bool { return false }
	}
	return &api{
		options:        o,
		url:            u.String(),
		depth:          strings.Count(u.EscapedPath()+mercure.SubscriptionsPath, "/"),
		hub:            d.Hub,
		sinks:          d.Sinks,
		verifier:       d.Verifier,
		compiler:       d.Compiler,
		log:            d.Logger,
		metrics:        d.Metrics,
		clientIP:       d.ClientIP,
		corsOrigins:    corsOrigins,
		publishOrigins: publishOrigins,
		challenges:     newChallenges(metadataURL(u).String()),
		metadata:       document,
		rules:          table(),
		connections:    d.Connections,
		outdated:       d.Outdated,
	}, nil
}

// routes is the only list of the hub's routes.
func (a *api) routes(e *echo.Echo, u *url.URL) {
	path := routePath(u)
	e.Add(http.MethodGet, path, a.cors(a.endpoint(endpointSubscribe, a.subscribe)))
	e.Add(http.MethodHead, path, a.cors(a.endpoint(endpointSubscribe, a.subscribeHead)))
	e.Add(methodQuery, path, a.cors(a.endpoint(endpointSubscribe, a.subscribe)))
	e.Add(http.MethodPost, path, a.cors(a.endpoint(endpointPublish, a.publish)))
	e.Add(http.MethodOptions, path, a.cors(a.preflight(hubMethods, hubCORSMethods)))
	e.RouteNotFound(path, a.cors(a.endpoint(endpointOther, methodNotAllowed(hubMethods))))

	if a.options.Subscriptions {
		a.subscriptionRoutes(e, u)
	}

	path = routePath(metadataURL(u))
	e.Add(http.MethodGet, path, publicCORS(a.metadataHandler))
	e.Add(http.MethodHead, path, publicCORS(a.metadataHandler))
	e.Add(http.MethodOptions, path, publicCORS(publicPreflight))
	e.RouteNotFound(path, publicCORS(a.endpoint(endpointMetadata, methodNotAllowed(metadataMethods))))
}

// subscriptionRoutes is the list of the routes of active subscriptions. The router sees the path of a request decoded, unless that would lose
// something, such as a slash in a matcher: so a hub URL with characters that need encoding is there in both forms.
func (a *api) subscriptionRoutes(e *echo.Echo, u *url.URL) {
	paths := []string{routePath(u)}
	if encoded := literal(u.EscapedPath()); encoded != paths[0] {
		paths = append(paths, encoded)
	}
	for _, path := range paths {
		for _, path := range []string{path + mercure.SubscriptionsPath, path + mercure.SubscriptionsPath + "/*"} {
			e.Add(http.MethodGet, path, a.cors(a.endpoint(endpointSubscriptions, a.activeSubscriptions)))
			e.Add(http.MethodHead, path, a.cors(a.endpoint(endpointSubscriptions, a.activeSubscriptions)))
			e.Add(http.MethodOptions, path, a.cors(a.preflight(subscriptionsMethods, subscriptionsCORSMethods)))
			e.RouteNotFound(path, a.cors(a.endpoint(endpointSubscriptions, methodNotAllowed(subscriptionsMethods))))
		}
	}
}

// endpoint answers the errors of h.
func (a *api) endpoint(name string, h echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := h(c); err != nil {
			return a.refuse(c, name, err)
		}
		return nil
	}
}

// methodNotAllowed refuses what the routes of a path do not list (SUB-39). The router would do it as well, but its Allow has no
// fixed order, and its answer no CORS fields.
func methodNotAllowed(allow string) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Response().Header().Set(echo.HeaderAllow, allow)
		return errMethod
	}
}

// routePath returns the path of u as the router sees it in requests, with colons taken literally.
func routePath(u *url.URL) string {
	path := u.Path
	if u.RawPath != "" {
		path = u.RawPath
	}
	return literal(path)
}

// literal returns a path with colons that the router takes literally.
func literal(path string) string { return strings.ReplaceAll(path, ":", `\:`) }
