package suite

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
)

// ErrTarget means that the description of the hub is incomplete or contradicts itself.
var ErrTarget = errors.New("suite: description of the hub")

// DefaultPath is where a hub should stand (DISC-01).
const DefaultPath = "/.well-known/mercure"

// DetailType is the type of the protocol's authorization details.
const DetailType = "https://mercure.rocks/authorization-detail"

// Target describes the hub under test. It is not changed while checks run.
type Target struct {
	URL      string // the hub URL
	Resource string // the resource identifier; empty: the hub URL
	Issuers  []Issuer

	CookieName    string // empty: the one that the metadata names, if any
	CORSOrigin    string // an origin that is allowed to use the hub; empty: unknown
	PublishOrigin string // an origin that may publish with the cookie; empty: that of the hub URL

	AuthorizationServer *AuthorizationServer // nil: none that we could ask

	Features map[Feature]bool // the Choices; a missing one is off
	observed map[Feature]bool // what the hub has shown when the run began

	KeepAlive time.Duration // how long a stream may be idle before a keep-alive comment is due; 0: unknown
	Lifetime  time.Duration // the maximum lifetime of a connection; 0: unknown

	Address  string         // host:port to connect to instead of the URL's
	Roots    *x509.CertPool // whom to trust; nil: the system's
	Insecure bool           // trust any certificate

	Patience time.Duration // how long something that must happen may take; 0: 20 s
}

// Issuer is a trusted issuer with the keys that we sign with in its name.
type Issuer struct {
	ID        string
	Publish   jose.Key
	Subscribe jose.Key
}

// AuthorizationServer is one that the hub trusts, with a client of it that may have any grant (client_credentials with
// client_secret_basic).
type AuthorizationServer struct {
	Issuer       string
	ClientID     string
	ClientSecret string
}

// Longest waits for what only time brings.
const (
	maxKeepAlive = 30 * time.Second
	maxLifetime  = 30 * time.Second
)

// Complete fills in what follows from the rest and says what is missing.
func (t *Target) Complete() error {
	u, err := url.Parse(t.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return fmt.Errorf("%w: the hub URL (-hub) %q is not an absolute http or https URL without query", ErrTarget, t.URL)
	}
	if u.Path == "" || u.Path == "/" {
		return fmt.Errorf("%w: hub URL %q has no path", ErrTarget, t.URL)
	}
	if t.Features == nil {
		t.Features = map[Feature]bool{}
	}
	if len(t.Issuers) == 0 {
		return fmt.Errorf("%w: no issuer (-issuer), so no token can be made", ErrTarget)
	}
	for _, i := range t.Issuers {
		if i.ID == "" || i.Publish.Zero() || i.Subscribe.Zero() {
			return fmt.Errorf("%w: issuer %q has no key for each role (-issuer with role=both, or twice)", ErrTarget, i.ID)
		}
	}
	if t.Resource == "" {
		t.Resource = t.URL
	}
	for _, origin := range []string{t.CORSOrigin, t.PublishOrigin} {
		if u, err := url.Parse(origin); origin != "" && (err != nil || origin != u.Scheme+"://"+u.Host || u.Host == "" || origin != strings.ToLower(origin)) {
			return fmt.Errorf("%w: %q is no origin as browsers write it: scheme and host in lower case, and perhaps a port (-cors-origin, -publish-origin)", ErrTarget, origin)
		}
	}
	if t.PublishOrigin == "" {
		t.PublishOrigin = t.Origin()
	}
	if t.Patience <= 0 {
		t.Patience = 20 * time.Second
	}
	if t.Features[Cookie] && t.CookieName == "" {
		return fmt.Errorf("%w: the cookie feature needs the name of the cookie", ErrTarget)
	}
	return nil
}

func (t *Target) url() *url.URL {
	u, err := url.Parse(t.URL)
	if err != nil {
		return &url.URL{} // Complete has refused it
	}
	return u
}

// Path is the path of the hub URL, P in the matrix.
func (t *Target) Path() string { return t.url().EscapedPath() }

// Origin is scheme://host[:port] of the hub URL, without a default port, as browsers send it.
func (t *Target) Origin() string {
	u := t.url()
	host := u.Host
	if u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80" {
		host = strings.TrimSuffix(host, ":"+u.Port())
	}
	return u.Scheme + "://" + host
}

// MetadataURL is where the protected resource metadata is, by RFC 9728 section 3.1: derived from the hub URL (PRM-01).
func (t *Target) MetadataURL() string {
	return t.Origin() + "/.well-known/oauth-protected-resource" + t.Path()
}

// Has says whether the hub has a feature, as far as is known.
func (t *Target) Has(f Feature) bool {
	first := t.Issuers[0]
	switch f {
	case Closed:
		return !t.Features[Anonymous]
	case NoSubscriptions:
		return !t.Features[Subscriptions]
	case CORS:
		return t.CORSOrigin != ""
	case SubscriptionAPI:
		return t.Features[Subscriptions] && t.observed[f]
	case HTTP2:
		return t.observed[f]
	case TLS:
		return strings.HasPrefix(t.URL, "https:")
	case OneKey:
		return first.Publish.Same(first.Subscribe)
	case SeparateKeys:
		return !first.Publish.Same(first.Subscribe)
	case AsymmetricKey:
		return t.Asymmetric() >= 0
	case TwoIssuers:
		return len(t.Issuers) > 1
	case TrustedServer:
		return t.AuthorizationServer != nil
	case OtherPath:
		return t.Path() != DefaultPath
	case ShortLifetime:
		return t.Lifetime > 0 && t.Lifetime <= maxLifetime
	case KeepAlive:
		return t.KeepAlive > 0 && t.KeepAlive <= maxKeepAlive
	default:
		return t.Features[f]
	}
}

// Asymmetric gives the index of the first issuer whose publisher key is asymmetric, or -1.
func (t *Target) Asymmetric() int {
	for i, issuer := range t.Issuers {
		if !issuer.Publish.Symmetric() {
			return i
		}
	}
	return -1
}

// Known lists the features that the hub is known to have.
func (t *Target) Known() []Feature {
	all := []Feature{
		Anonymous, Closed, Cookie, CORS, QueryMethod, History, Subscriptions, SubscriptionAPI, NoSubscriptions, Metadata, TLS, HTTP2, OneKey, SeparateKeys,
		AsymmetricKey, TwoIssuers, TrustedServer, OtherPath, ShortLifetime, KeepAlive,
	}
	var known []Feature
	for _, f := range all {
		if t.Has(f) {
			known = append(known, f)
		}
	}
	return known
}
