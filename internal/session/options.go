package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/clientassertion"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

// Defaults of Options.
const (
	// DefaultIdle is how long a session lives unused.
	DefaultIdle = 24 * time.Hour
	// DefaultAbsolute is how long a session lives at most.
	DefaultAbsolute = 14 * 24 * time.Hour
	// DefaultLoginsPerMinute bounds the sign-ins that one client address may start.
	DefaultLoginsPerMinute = 30
	// DefaultProfile is the profile of a login that names none.
	DefaultProfile = "default"
	// CookieKeyBytes is the length of a sealing key: 32 bytes for HMAC-SHA256, then 32 for AES-256.
	CookieKeyBytes = 64
	// MaxTokenBytes bounds the access token. Browsers silently drop a cookie whose name and value exceed
	// 4,096 bytes, so a longer token would sign nobody in and say nothing.
	MaxTokenBytes = 3800
)

// Profile names what a login asks the authorization server for: a scope, authorization details (RFC 9396),
// both, or neither, which leaves it to the server's policy.
type Profile struct {
	Scope                string
	AuthorizationDetails json.RawMessage
}

// Options configures the broker. The zero values of Profiles, ReturnToOrigins, CookieDomain, Idle, Absolute,
// LoginsPerMinute and Resource are usable; the rest is required.
type Options struct {
	// HubURL is the hub's public URL. The endpoints are served under its path, and redirects to paths go to
	// its origin. Nothing is derived from requests.
	HubURL string
	// Resource is the resource indicator (RFC 8707) that tokens are asked for. Empty: HubURL.
	Resource string
	// Issuer identifies the authorization server. Its metadata is fetched when the first login needs it.
	Issuer string
	// ClientID and ClientKey (a private JWK with kid) are the broker's registration there, private_key_jwt.
	ClientID  string
	ClientKey json.RawMessage
	// CookieName is the hub cookie's name, and CookieDomain its Domain attribute. Empty: host-only.
	CookieName   string
	CookieDomain string
	// InsecureCookie leaves out Secure and the name prefixes that demand it. For plain HTTP on loopback only.
	InsecureCookie bool
	// CookieKeys seal the broker's cookies, CookieKeyBytes each. The first one seals, all of them open.
	CookieKeys [][]byte
	// Profiles are what login may ask for. Empty: DefaultProfile alone, asking for nothing in particular.
	Profiles map[string]Profile
	// ReturnToOrigins are the origins besides the hub's own that login may return to, and whose pages may read, renew
	// and end the session with credentials.
	ReturnToOrigins []string
	// Idle is how long the cookies live, Absolute how long a session lives at most.
	Idle, Absolute time.Duration
	// LoginsPerMinute bounds the sign-ins one client address may start, with as many at once. Negative: unlimited.
	LoginsPerMinute int
}

// Ended names a session that is over. Its streams are those whose principal has this issuer and either the
// session identifier, when it is not empty, or one of the token identifiers.
type Ended struct {
	Issuer    string
	SessionID string
	TokenIDs  []string
}

// Dependencies is what the broker needs from the rest of the program.
type Dependencies struct {
	// HTTPClient reaches the issuer. Redirects are never followed, whatever its policy. Nil is an error.
	HTTPClient *http.Client
	// Verify accepts a token exactly as the hub's subscribe endpoint does. Nil is an error.
	Verify func(ctx context.Context, compact string) (*token.Claims, error)
	// End closes the live streams of a session that is over. Nil: they end when their token expires.
	End func(ctx context.Context, ended Ended)
	// ClientIP gives the address that login starts are counted by. Nil: the connection's peer.
	ClientIP func(r *http.Request) netip.Addr
	// Logger gets refusals and failures without secrets. Nil: nothing is logged.
	Logger *slog.Logger
}

// withDefaults fills what may be left out.
func (o Options) withDefaults() Options {
	if o.Resource == "" {
		o.Resource = o.HubURL
	}
	if o.Idle == 0 {
		o.Idle = DefaultIdle
	}
	if o.Absolute == 0 {
		o.Absolute = DefaultAbsolute
	}
	if o.LoginsPerMinute == 0 {
		o.LoginsPerMinute = DefaultLoginsPerMinute
	}
	if len(o.Profiles) == 0 {
		o.Profiles = map[string]Profile{DefaultProfile: {}}
	}
	return o
}

// Validate reports the first option that cannot work. It expects options as the caller wrote them.
func (o Options) Validate() error {
	o = o.withDefaults()
	hub, err := parseEndpoint(o.HubURL)
	if err != nil {
		return fmt.Errorf("session: hub URL: %w", err)
	}
	if hub.Search() != "" || hub.Pathname() == "/" || strings.ContainsAny(hub.Pathname(), ":*") {
		return errors.New("session: hub URL: needs a path without colon and asterisk, and no query")
	}
	if _, err := parseEndpoint(o.Issuer); err != nil {
		return fmt.Errorf("session: issuer: %w", err)
	}
	if o.ClientID == "" {
		return errors.New("session: client id is empty")
	}
	if _, err := clientassertion.New(o.ClientID, o.Issuer, o.ClientKey); err != nil {
		return fmt.Errorf("session: client key: %w", err)
	}
	if err := o.validateCookies(hub.Protocol() == "https:"); err != nil {
		return err
	}
	for _, origin := range o.ReturnToOrigins {
		if canonical, err := parseOrigin(origin); err != nil || canonical != origin {
			return fmt.Errorf("session: return_to origin %q is not an origin like https://app.example.com", origin)
		}
	}
	return o.validateProfiles()
}

func (o Options) validateCookies(https bool) error {
	if !validCookieName(o.CookieName) {
		return fmt.Errorf("session: cookie name %q is not a token (RFC 6265 section 4.1.1)", o.CookieName)
	}
	prefixed := strings.HasPrefix(o.CookieName, securePrefix) || strings.HasPrefix(o.CookieName, hostPrefix)
	switch {
	case strings.HasPrefix(o.CookieName, hostPrefix):
		return errors.New("session: the hub cookie's path is the hub's, which the __Host- prefix forbids; use __Secure-")
	case o.InsecureCookie && https:
		return errors.New("session: an insecure cookie is for plain HTTP only")
	case o.InsecureCookie && prefixed:
		return errors.New("session: browsers drop a cookie with a __Secure- name that lacks Secure")
	}
	if len(o.CookieKeys) == 0 {
		return errors.New("session: no cookie keys")
	}
	for i, key := range o.CookieKeys {
		if len(key) != CookieKeyBytes {
			return fmt.Errorf("session: cookie key %d has %d bytes, want %d", i+1, len(key), CookieKeyBytes)
		}
	}
	if o.Idle < time.Minute || o.Absolute < o.Idle {
		return errors.New("session: idle must be a minute at least, and absolute not shorter than idle")
	}
	return nil
}

func (o Options) validateProfiles() error {
	if _, ok := o.Profiles[DefaultProfile]; !ok {
		return fmt.Errorf("session: there is no profile named %q", DefaultProfile)
	}
	for name, p := range o.Profiles {
		if name == "" || len(name) > maxProfileBytes {
			return fmt.Errorf("session: a profile's name has 1 to %d bytes", maxProfileBytes)
		}
		if len(p.AuthorizationDetails) == 0 {
			continue
		}
		var details []json.RawMessage
		if err := json.Unmarshal(p.AuthorizationDetails, &details); err != nil || len(details) == 0 {
			return fmt.Errorf("session: profile %q: authorization details are not a JSON array with members", name)
		}
	}
	return nil
}

// validate reports a dependency that is missing.
func (d Dependencies) validate() error {
	switch {
	case d.HTTPClient == nil:
		return errors.New("session: no HTTP client")
	case d.Verify == nil:
		return errors.New("session: no verifier")
	}
	return nil
}
