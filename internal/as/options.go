package as

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// Defaults of Options.
const (
	// DefaultAccessTokenTTL is how long an access token lives at most.
	DefaultAccessTokenTTL = 10 * time.Minute
	// DefaultInteractionTTL is how long a person may take to sign in and consent.
	DefaultInteractionTTL = 30 * time.Minute
	// DefaultBrowserSessionTTL is how long a browser stays signed in.
	DefaultBrowserSessionTTL = 12 * time.Hour
	// DefaultRefreshIdle is how long a refresh token may go unused.
	DefaultRefreshIdle = 24 * time.Hour
	// DefaultRefreshAbsolute is how long a grant can be refreshed at all.
	DefaultRefreshAbsolute = 14 * 24 * time.Hour
)

// ErrOptions is returned, wrapped with every fault found, for options that cannot work.
var ErrOptions = errors.New("as: bad options")

// Resource is a hub that tokens are issued for: an OAuth protected resource (RFC 8707, RFC 9728).
type Resource struct {
	// ID is the resource identifier: the value of the resource parameter and of the aud claim, byte for byte.
	ID string
	// Name is for people; it is shown on the consent page. Empty: the host of ID.
	Name string
	// HubURL is what relative topic patterns resolve against. Empty: ID.
	HubURL string
}

// Missing says what a policy gives to a request that names no authorization details and no known scope.
type Missing string

// The values of Missing. The zero value means MissingGrantAll for first-party clients (SkipConsent) and for clients that act for
// themselves (client_credentials), else MissingDeny.
const (
	MissingGrantAll Missing = "grant_all"
	MissingDeny     Missing = "deny"
)

// Excess says what happens to the part of a request that goes beyond what the person may have.
type Excess string

// The values of Excess. The zero value means ExcessDeny. Of several policies that apply, one that denies wins.
const (
	ExcessTrim Excess = "trim"
	ExcessDeny Excess = "deny"
)

// When is the condition of a policy. Every list that is not empty must match; an empty one matches everybody.
type When struct {
	// Clients lists client identifiers.
	Clients []string
	// Roles lists roles, of which the account needs one.
	Roles []string
	// Users lists user names.
	Users []string
	// Resources lists resource identifiers.
	Resources []string
}

// Policy says what may be granted to whom. All policies that apply are united; without one nothing is granted.
type Policy struct {
	// ID names the policy in logs and errors. It is required and unique.
	ID   string
	When When
	// Grant lists details, as templates: rar.Expand fills in {{sub}}, {{client_id}}, {{user.name}} and {{user.<attribute>}}.
	Grant []rar.Detail
	// OnMissingRequest applies to requests that ask for nothing in particular.
	OnMissingRequest Missing
	// OnExcess applies to requests that ask for more than the person may have. What the client may never
	// have, whoever signs in, is refused before sign-in whatever this says, and so is what a client that acts for itself may not have.
	OnExcess Excess
}

// Options configures a Server. The zero values of the durations mean their defaults.
type Options struct {
	// Issuer is the issuer identifier (RFC 8414 section 2): an https URL, or http on loopback, without query,
	// fragment or final slash, and with a path of plain segments, if any. Every endpoint stands under it, and nothing is derived from requests.
	Issuer string
	// Resources lists the hubs. A request that names none gets the only one, and is refused when there are several.
	Resources []Resource
	// Clients are set by configuration: New writes them into the store, marked Static, and deletes the static clients that are no longer
	// listed, with their grants and tokens. Servers that share a store must share this list.
	Clients []store.Client
	// Policies and Scopes decide what is granted. A scope stands for a list of details (templates too), for
	// clients that cannot send any; unknown scopes are ignored.
	Policies []Policy
	Scopes   map[string][]rar.Detail
	// Dev allows signing in as DemoUser without a password, by one click. Never outside development.
	Dev      bool
	DemoUser string
	// AccessTokenTTL is the longest life of an access token; each gets up to a tenth less, at random, so that
	// the streams that depend on them do not all reconnect at once.
	AccessTokenTTL    time.Duration
	InteractionTTL    time.Duration
	BrowserSessionTTL time.Duration
	// RefreshIdle is how long a refresh token may go unused; each use begins the time anew. RefreshAbsolute is when the grant
	// ends whatever was used: no token of it lives longer.
	RefreshIdle     time.Duration
	RefreshAbsolute time.Duration
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	set(&o.AccessTokenTTL, DefaultAccessTokenTTL)
	set(&o.InteractionTTL, DefaultInteractionTTL)
	set(&o.BrowserSessionTTL, DefaultBrowserSessionTTL)
	set(&o.RefreshIdle, DefaultRefreshIdle)
	set(&o.RefreshAbsolute, DefaultRefreshAbsolute)
	o.Resources = slices.Clone(o.Resources)
	for i := range o.Resources {
		r := &o.Resources[i]
		if r.HubURL == "" {
			r.HubURL = r.ID
		}
		if u, err := url.Parse(r.ID); err == nil && r.Name == "" {
			r.Name = u.Host
		}
	}
	return o
}

// Validate reports every fault of the options at once, wrapped in ErrOptions.
func (o Options) Validate() error {
	var faults []error
	if err := checkIssuer(o.Issuer); err != nil {
		faults = append(faults, fmt.Errorf("issuer: %w", err))
	}
	for _, ttl := range []time.Duration{o.AccessTokenTTL, o.InteractionTTL, o.BrowserSessionTTL, o.RefreshIdle, o.RefreshAbsolute} {
		if ttl < 0 || (ttl > 0 && ttl < time.Second) {
			faults = append(faults, fmt.Errorf("lifetimes: %v is too short", ttl))
		}
	}
	if o.DemoUser != "" && !o.Dev {
		faults = append(faults, errors.New("demo user: only in development"))
	}
	faults = append(faults, checkResources(o.Resources)...)
	if resources, err := compileResources(o.withDefaults().Resources); err != nil {
		faults = append(faults, err)
	} else {
		faults = append(faults, checkTemplates(o, resources)...)
	}
	faults = append(faults, checkPolicies(o.Policies)...)
	faults = append(faults, checkClients(o.Clients)...)
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrOptions, errors.Join(faults...))
}

func checkResources(resources []Resource) []error {
	var faults []error
	if len(resources) == 0 {
		faults = append(faults, errors.New("resources: at least one is needed"))
	}
	seen := map[string]bool{}
	for i, r := range resources {
		if u, err := url.Parse(r.ID); err != nil || !u.IsAbs() || u.Host == "" || u.Fragment != "" {
			faults = append(faults, fmt.Errorf("resources[%d].id: %q is not an absolute URL without fragment", i, r.ID))
		}
		if seen[r.ID] {
			faults = append(faults, fmt.Errorf("resources[%d].id: %q is listed twice", i, r.ID))
		}
		seen[r.ID] = true
	}
	return faults
}

// compileResources prepares the hubs for judging topics. They have their defaults.
func compileResources(resources []Resource) ([]hubResource, error) {
	compiled := make([]hubResource, 0, len(resources))
	for _, r := range resources {
		compiler, err := topic.NewCompiler(r.HubURL, topic.Limits{})
		if err != nil {
			return nil, fmt.Errorf("resource %q: %w", r.ID, err)
		}
		compiled = append(compiled, hubResource{Resource: r, compiler: compiler})
	}
	return compiled, nil
}

func checkClients(clients []store.Client) []error {
	var faults []error
	seen := map[string]bool{}
	for _, c := range clients {
		if err := CheckClient(c); err != nil {
			faults = append(faults, fmt.Errorf("client %q: %w", c.ID, err))
		}
		if seen[c.ID] {
			faults = append(faults, fmt.Errorf("client %q: listed twice", c.ID))
		}
		seen[c.ID] = true
	}
	return faults
}

func checkPolicies(policies []Policy) []error {
	var faults []error
	ids := map[string]bool{}
	for i, p := range policies {
		switch {
		case p.ID == "":
			faults = append(faults, fmt.Errorf("policies[%d].id: is empty", i))
		case ids[p.ID]:
			faults = append(faults, fmt.Errorf("policies[%d].id: %q is listed twice", i, p.ID))
		}
		ids[p.ID] = true
		if !slices.Contains([]Missing{"", MissingGrantAll, MissingDeny}, p.OnMissingRequest) {
			faults = append(faults, fmt.Errorf("policy %q: unknown on_missing_request %q", p.ID, p.OnMissingRequest))
		}
		if !slices.Contains([]Excess{"", ExcessTrim, ExcessDeny}, p.OnExcess) {
			faults = append(faults, fmt.Errorf("policy %q: unknown on_excess %q", p.ID, p.OnExcess))
		}
	}
	return faults
}

func checkIssuer(issuer string) error {
	u, err := url.Parse(issuer)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Opaque != "":
		return fmt.Errorf("%q is not an absolute URL", issuer)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(issuer, "#"):
		return errors.New("has a query or fragment")
	case strings.HasSuffix(issuer, "/"):
		return errors.New("ends in a slash")
	case !plainPath(u.EscapedPath()):
		return errors.New("has a path with something else than letters, digits and -._~ between single slashes")
	case u.Scheme == "https" || (u.Scheme == "http" && isLoopbackHost(u.Hostname())):
		return nil
	default:
		return errors.New("is neither https nor http on loopback")
	}
}

// plainPath says whether an issuer's path can be a prefix of routes, which give : and * a meaning and know no percent-encoding, and
// of redirects, which "//" at the beginning would lead to another host.
func plainPath(path string) bool {
	if path == "" {
		return true
	}
	for segment := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if segment == "" || segment == "." || segment == ".." || strings.ContainsFunc(segment, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._~", r)
		}) {
			return false
		}
	}
	return true
}

func isLoopbackHost(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}
