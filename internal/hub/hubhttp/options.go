package hubhttp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/hub/sink"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// InsecureCookieName is the default cookie name where the cookie cannot be Secure, which the usual prefix demands.
const InsecureCookieName = "mercure_access_token"

// Errors of Register, wrapped with the value that is wrong.
var (
	ErrPublicURL  = errors.New("hubhttp: not an absolute http or https URL with a path and without query, fragment or user")
	ErrResource   = errors.New("hubhttp: the resource identifier is not an absolute URL without fragment")
	ErrOrigin     = errors.New("hubhttp: not an origin")
	ErrCookieName = errors.New("hubhttp: not a cookie name")
	ErrIssuer     = errors.New("hubhttp: an authorization server is not an absolute URL")
	ErrDependency = errors.New("hubhttp: missing dependency")
)

// Options configures the edge of one hub. The zero value of every field but PublicURL is usable.
type Options struct {
	// PublicURL is the hub URL as clients use it, for example https://hub.example.com/.well-known/mercure. Routes,
	// metadata and challenges derive from it and from nothing in a request.
	PublicURL string
	// Resource is the resource identifier that tokens carry as audience; empty means PublicURL.
	Resource string
	// ResourceName is a name for people in the protected resource metadata; empty leaves it out.
	ResourceName string
	// Anonymous lets requests without a token subscribe to public updates.
	Anonymous bool
	// InsecureCookie says that this site's cookie is not Secure. It changes the default of CookieName alone.
	InsecureCookie bool
	// CookieName is the exact name of the cookie that carries the token; empty means mercure.DefaultCookieName, or
	// InsecureCookieName with InsecureCookie.
	CookieName string
	// CORSOrigins are the origins whose pages may use the hub, as browsers write them: scheme://host[:port], in lower
	// case, without a default port or a trailing slash.
	CORSOrigins []string
	// PublishOrigins are the origins whose pages may publish with the cookie; empty means CORSOrigins and the hub's own.
	PublishOrigins []string
	// AuthorizationServers are the issuer identifiers named in the protected resource metadata.
	AuthorizationServers []string
	// Subscriptions serves the API of active subscriptions, and announces it in the metadata; without it, its paths are 404 (ACT-01, ACT-47).
	// It goes with hub.Options.Subscriptions.
	Subscriptions bool
	// Limits bounds requests; the zero value means mercure.DefaultLimits.
	Limits mercure.Limits
	// DevHints puts the failed check of a token and advice into problem documents. It is for development listeners.
	DevHints bool
}

// Verifier validates access tokens. *token.Verifier is one.
type Verifier interface {
	// Verify returns the claims of compact if it is valid for endpoint, or an error: *token.InvalidError for an invalid
	// token, token.ErrUnavailable when that cannot be told.
	Verify(ctx context.Context, compact string, endpoint rar.Action) (*token.Claims, error)
}

// Metrics counts what the edge refuses. Implementations must be safe for concurrent use and must not block.
type Metrics interface {
	// RequestRefused counts an answer of status 400 or above. endpoint and reason come from small fixed sets.
	RequestRefused(endpoint, reason string, status int)
}

// Dependencies are what the edge works with. Metrics, ClientIP, Connections and Outdated may be nil.
type Dependencies struct {
	// Hub is the engine.
	Hub *hub.Hub
	// Sinks carries the streams.
	Sinks *sink.Set
	// Verifier judges tokens.
	Verifier Verifier
	// Compiler compiles the matchers of subscriptions; it is the one the engine uses.
	Compiler *topic.Compiler
	// Logger receives one line per refusal.
	Logger *slog.Logger
	// Metrics counts refusals; nil counts nothing.
	Metrics Metrics
	// ClientIP tells the address that connection limits count; nil means the peer of the connection.
	ClientIP func(*http.Request) netip.Addr
	// Connections counts the streams; nil sets no bound. An edge that takes the place of another one goes on with its count.
	Connections *Connections
	// Outdated tells whether another edge has taken this one's place and may judge a reader otherwise, nil being an anonymous one. It is
	// asked once Hub.CloseBy finds the stream, which then ends at once. Nil means never.
	Outdated func(*hub.Principal) bool
}

func (d *Dependencies) validate() error {
	for _, dep := range []struct {
		name    string
		missing bool
	}{
		{"Hub", d.Hub == nil},
		{"Sinks", d.Sinks == nil},
		{"Verifier", d.Verifier == nil},
		{"Compiler", d.Compiler == nil},
		{"Logger", d.Logger == nil},
	} {
		if dep.missing {
			return fmt.Errorf("%w: %s", ErrDependency, dep.name)
		}
	}
	return nil
}

// Validate reports what Register would refuse.
func (o Options) Validate() error {
	o, _, err := o.withDefaults()
	if err != nil {
		return err
	}
	for _, list := range [][]string{o.CORSOrigins, o.PublishOrigins} {
		if _, err := newOrigins(list); err != nil {
			return err
		}
	}
	return nil
}

// withDefaults returns o completed and checked, and the parsed hub URL.
func (o Options) withDefaults() (Options, *url.URL, error) {
	u, err := parseHubURL(o.PublicURL)
	if err != nil {
		return o, nil, err
	}
	if o.Resource == "" {
		o.Resource = o.PublicURL
	}
	if r, err := url.Parse(o.Resource); err != nil || !r.IsAbs() || strings.Contains(o.Resource, "#") {
		return o, nil, fmt.Errorf("%w: %q", ErrResource, o.Resource)
	}
	for _, issuer := range o.AuthorizationServers {
		if i, err := url.Parse(issuer); err != nil || i.Host == "" {
			return o, nil, fmt.Errorf("%w: %q", ErrIssuer, issuer)
		}
	}
	if o.CookieName == "" {
		o.CookieName = mercure.DefaultCookieName
		if o.InsecureCookie {
			o.CookieName = InsecureCookieName
		}
	}
	if !isToken(o.CookieName) {
		return o, nil, fmt.Errorf("%w: %q", ErrCookieName, o.CookieName)
	}
	if o.Limits == (mercure.Limits{}) {
		o.Limits = mercure.DefaultLimits()
	}
	return o, u, nil
}

// parseHubURL checks the configured hub URL. Its path may not hold a "*", which the router cannot match literally.
func parseHubURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.User != nil || u.Path == "" ||
		strings.ContainsAny(s, "?#*") {
		return nil, fmt.Errorf("%w: %q", ErrPublicURL, s)
	}
	return u, nil
}

// isToken reports whether s is a token of RFC 9110 section 5.6.2, which cookie and scheme names are.
func isToken(s string) bool {
	return s != "" && tokenLength(s) == len(s)
}

// tokenLength returns the length of the longest prefix of s that consists of token characters.
func tokenLength(s string) int {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return i
		}
	}
	return len(s)
}
