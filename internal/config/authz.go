package config

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// AuthzEnvPrefix starts the names of the authorization server's environment variables.
const AuthzEnvPrefix = "CINNABAR_AUTHZ_"

// Authz is the configuration of the authorization server (authz.yaml).
type Authz struct {
	// The issuer identifier: an https URL without query, fragment or final slash. All endpoints stand under it.
	Issuer string `yaml:"issuer"`
	// The address to listen on.
	Listen string `yaml:"listen"`
	// How connections are secured.
	TLS TLS `yaml:"tls"`
	// Where accounts, clients, grants and keys are kept.
	Store Store `yaml:"store"`
	// The hubs that tokens are issued for.
	Resources []Resource `yaml:"resources"`
	// Clients that are set here; they cannot be changed by command.
	Clients []Client `yaml:"clients"`
	// Who may be granted what. Without a policy nothing is granted.
	Policies []Policy `yaml:"policies"`
	// Named scopes for clients that cannot send authorization details: each stands for a list of them.
	Scopes map[string][]Detail `yaml:"scopes"`
	// Tokens.
	Tokens Tokens `yaml:"tokens"`
	// Signing keys.
	Keys Keys `yaml:"keys"`
	// How long requests may take to end when the server stops.
	Drain time.Duration `yaml:"drain"`
	// Peers (addresses or CIDR blocks) whose X-Forwarded-For gives the client address for throttles; nothing else comes from headers.
	TrustedProxies []string `yaml:"trusted_proxies"`
	// The listener for operators.
	Ops Ops `yaml:"ops"`
	// Logging.
	Log Log `yaml:"log"`
}

// Store says where the authorization server keeps its records.
type Store struct {
	// sqlite: a database file.
	Driver string `yaml:"driver"`
	// The database file; its folder must be closed to other users (0700).
	Path File `yaml:"path"`
	// The secret that seals signing keys at rest, made on first use. Without it the database's keys cannot be read.
	SecretFile File `yaml:"secret_file"`
}

// Resource is a hub that tokens are issued for (RFC 8707).
type Resource struct {
	// Its resource identifier: the aud claim.
	ID string `yaml:"id"`
	// A name for people, shown on the consent page. Empty: the host of its identifier.
	Name string `yaml:"name"`
	// Its hub URL, against which relative matchers resolve. Empty: its identifier.
	HubURL string `yaml:"hub_url"`
}

// Client is an OAuth client.
type Client struct {
	// Its client identifier; may not start with u_, which marks people.
	ID string `yaml:"id"`
	// A name for people, shown on the login and consent pages.
	Name string `yaml:"name"`
	// none (public client), private_key_jwt, client_secret_basic or client_secret_post.
	AuthMethod string `yaml:"auth_method"`
	// The public keys of a private_key_jwt client, a JSON Web Key Set.
	JWKSFile File `yaml:"jwks_file"`
	// The secret of a client_secret_basic or client_secret_post client: a file with one line of at least 32 bytes.
	SecretFile File `yaml:"secret_file"`
	// authorization_code, refresh_token, client_credentials. Empty: authorization_code and refresh_token.
	GrantTypes []string `yaml:"grant_types"`
	// Where codes may be sent: compared exactly, but for the port of loopback addresses. Not needed with client_credentials alone.
	RedirectURIs []string `yaml:"redirect_uris"`
	// Origins of pages that may call the endpoints for clients (token, par, revoke), besides those of the redirect URIs.
	Origins []string `yaml:"origins"`
	// A first-party client: consent is recorded, not asked.
	SkipConsent bool `yaml:"skip_consent"`
	// The session broker of a hub: may follow the revocations, and signing out there ends the login session here. Not for public clients.
	Broker bool `yaml:"broker"`
}

// Policy says who may be granted what. All policies that apply are united.
type Policy struct {
	// Its name in logs and errors.
	ID string `yaml:"id"`
	// Whom it applies to: every list that is given must match. Empty: everyone.
	When When `yaml:"when"`
	// What may be granted. Matchers may use {{sub}}, {{client_id}}, {{user.name}} and {{user.ATTRIBUTE}}.
	Grant []Detail `yaml:"grant"`
	// For a request that asks for nothing: grant_all or deny.
	OnMissingRequest string `yaml:"on_missing_request"`
	// For a request that asks for more than is allowed to the person: trim or deny.
	OnExcess string `yaml:"on_excess"`
}

// When is a condition of a policy.
type When struct {
	// Client identifiers.
	Clients []string `yaml:"clients"`
	// Roles, of which the person needs one.
	Roles []string `yaml:"roles"`
	// User names.
	Users []string `yaml:"users"`
	// Resource identifiers.
	Resources []string `yaml:"resources"`
}

// Detail is a Mercure authorization detail.
type Detail struct {
	// publish, subscribe.
	Actions []string `yaml:"actions"`
	// The topics, each a matcher.
	Topics []Topic `yaml:"topics"`
	// What other watchers of a subscription are told, an object.
	Payload map[string]any `yaml:"payload"`
}

// Topic is a topic matcher.
type Topic struct {
	// The topic, the pattern, or *.
	Match string `yaml:"match"`
	// exact (default) or urlpattern.
	MatchType string `yaml:"match_type"`
}

// Tokens says how access tokens are made.
type Tokens struct {
	// How long an access token lives; each is made up to a tenth shorter, so that not all expire together.
	Lifetime time.Duration `yaml:"lifetime"`
	// How long a refresh token lives unused.
	RefreshIdle time.Duration `yaml:"refresh_idle"`
	// How long a grant can be refreshed at most, counted from the login.
	RefreshAbsolute time.Duration `yaml:"refresh_absolute"`
}

// Keys says how tokens are signed.
type Keys struct {
	// ES256, EdDSA or RS256, for keys made from now on.
	Algorithm string `yaml:"algorithm"`
}

// DefaultAuthz gives the defaults of every key.
func DefaultAuthz() Authz {
	return Authz{
		Listen: ":9443",
		TLS:    TLS{Mode: "files"},
		Store:  Store{Driver: "sqlite", Path: "data/authz.db", SecretFile: "data/authz.secret"}, //nolint:gosec // the name of a file, not a secret
		Tokens: Tokens{Lifetime: 10 * time.Minute, RefreshIdle: 24 * time.Hour, RefreshAbsolute: 14 * 24 * time.Hour},
		Keys:   Keys{Algorithm: "ES256"},
		Drain:  10 * time.Second,
		Ops:    Ops{Listen: "127.0.0.1:9091"},
		Log:    Log{Level: "info", Format: "text"},
	}
}

// Validate checks what the types cannot say and completes derived values. Its errors name the key.
func (a *Authz) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	if u, err := absoluteURL(a.Issuer); err != nil {
		errs = append(errs, fmt.Errorf("issuer: %w", err))
	} else {
		check(u.RawQuery == "" && u.Fragment == "" && u.User == nil && !strings.HasSuffix(a.Issuer, "/"),
			"issuer: must have no query, fragment, user or final slash")
	}
	check(a.Store.Driver == "sqlite", "store.driver: %q is not sqlite", a.Store.Driver)
	check(a.Store.Path != "" && a.Store.SecretFile != "", "store: path and secret_file are needed")
	check(len(a.Resources) > 0, "resources: at least one hub is needed")
	for i := range a.Resources {
		r := &a.Resources[i]
		_, err := absoluteURL(r.ID)
		check(err == nil, "resources[%d].id: %v", i, err)
		if r.HubURL == "" {
			r.HubURL = r.ID
		}
	}
	check(a.Tokens.Lifetime >= 10*time.Second && a.Tokens.Lifetime <= 24*time.Hour, "tokens.lifetime: must be between 10s and 24h")
	check(a.Tokens.RefreshIdle >= a.Tokens.Lifetime, "tokens.refresh_idle: must be at least tokens.lifetime, or nobody could refresh in time")
	check(a.Tokens.RefreshAbsolute >= a.Tokens.RefreshIdle, "tokens.refresh_absolute: must be at least tokens.refresh_idle")
	switch a.Keys.Algorithm {
	case "ES256", "EdDSA", "RS256":
	default:
		check(false, "keys.algorithm: %q is not ES256, EdDSA or RS256", a.Keys.Algorithm)
	}
	check(a.Drain >= 0, "drain: must not be negative")
	errs = append(errs, a.TLS.validate(), a.Log.validate(), a.validateClients(), a.validatePolicies())
	return errors.Join(errs...)
}

func (a *Authz) validateClients() error {
	var errs []error
	seen := map[string]bool{}
	for i := range a.Clients {
		c := &a.Clients[i]
		at := fmt.Sprintf("clients[%d]", i)
		if c.ID == "" || strings.HasPrefix(c.ID, "u_") {
			errs = append(errs, fmt.Errorf("%s.id: must not be empty or start with u_", at))
		}
		if seen[c.ID] {
			errs = append(errs, fmt.Errorf("%s.id: %q is listed twice", at, c.ID))
		}
		seen[c.ID] = true
		if c.AuthMethod == "" {
			c.AuthMethod = "none"
		}
		if len(c.GrantTypes) == 0 {
			c.GrantTypes = []string{"authorization_code", "refresh_token"}
		}
		if err := c.validate(); err != nil {
			errs = append(errs, fmt.Errorf("%s%w", at, err))
		}
	}
	return errors.Join(errs...)
}

// validate checks one client. Its errors begin with the rest of the key.
func (c Client) validate() error {
	switch c.AuthMethod {
	case "none", "private_key_jwt", "client_secret_basic", "client_secret_post":
	default:
		return fmt.Errorf(".auth_method: %q is not none, private_key_jwt, client_secret_basic or client_secret_post", c.AuthMethod)
	}
	seen := map[string]bool{}
	for _, g := range c.GrantTypes {
		if seen[g] {
			return fmt.Errorf(".grant_types: %q is listed twice", g)
		}
		seen[g] = true
		switch g {
		case "authorization_code", "refresh_token", "client_credentials":
		default:
			return fmt.Errorf(".grant_types: %q is not authorization_code, refresh_token or client_credentials", g)
		}
	}
	bySecret := strings.HasPrefix(c.AuthMethod, "client_secret_")
	switch {
	case (c.AuthMethod == "private_key_jwt") != (c.JWKSFile != ""):
		return errors.New(": private_key_jwt and jwks_file go together")
	case bySecret != (c.SecretFile != ""):
		return errors.New(": client_secret_basic or client_secret_post and secret_file go together")
	case seen["client_credentials"] && c.AuthMethod == "none":
		return errors.New(".grant_types: client_credentials is not for public clients (auth_method none)")
	case seen["refresh_token"] && !seen["authorization_code"]:
		return errors.New(".grant_types: refresh_token needs authorization_code, which is how the first one is got")
	case seen["authorization_code"] && len(c.RedirectURIs) == 0:
		return errors.New(".redirect_uris: at least one is needed")
	case c.Broker && c.AuthMethod == "none":
		return errors.New(".broker: not for public clients (auth_method none)")
	}
	return nil
}

func (a *Authz) validatePolicies() error {
	var errs []error
	for i := range a.Policies {
		p := &a.Policies[i]
		at := fmt.Sprintf("policies[%d]", i)
		if p.ID == "" {
			errs = append(errs, fmt.Errorf("%s.id: must not be empty", at))
		}
		if p.OnMissingRequest == "" {
			p.OnMissingRequest = "deny"
		}
		if p.OnExcess == "" {
			p.OnExcess = "deny"
		}
		if p.OnMissingRequest != "grant_all" && p.OnMissingRequest != "deny" {
			errs = append(errs, fmt.Errorf("%s.on_missing_request: %q is not grant_all or deny", at, p.OnMissingRequest))
		}
		if p.OnExcess != "trim" && p.OnExcess != "deny" {
			errs = append(errs, fmt.Errorf("%s.on_excess: %q is not trim or deny", at, p.OnExcess))
		}
		if len(p.Grant) == 0 {
			errs = append(errs, fmt.Errorf("%s.grant: is empty", at))
		}
	}
	return errors.Join(errs...)
}
