package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// HubEnvPrefix starts the names of the hub's environment variables.
const HubEnvPrefix = "CINNABAR_HUB_"

// ControlSocketName is the name of the control socket where none is configured.
const ControlSocketName = "hub.sock"

// Hub is the configuration of the hub (hub.yaml).
type Hub struct {
	// The hub URL that publishers and subscribers use: absolute, any path but the root. Nothing is derived from requests.
	PublicURL string `yaml:"public_url"`
	// The resource identifier that tokens must carry in aud. Empty: public_url.
	Resource string `yaml:"resource"`
	// A name for people, shown by authorization servers (resource_name of the metadata). Empty: not published.
	ResourceName string `yaml:"resource_name"`
	// The address to listen on.
	Listen string `yaml:"listen"`
	// How connections are secured.
	TLS TLS `yaml:"tls"`
	// Whether subscribers without a token get public updates. false: every subscriber needs a token.
	Anonymous bool `yaml:"anonymous"`
	// Active subscriptions: whether the hub publishes an event when a subscription begins or ends, and lists those that are active.
	Subscriptions bool `yaml:"subscriptions"`
	// Origins of pages on other sites that may use the hub: scheme://host[:port], compared exactly.
	CORSOrigins []string `yaml:"cors_origins"`
	// Origins that may publish with the cookie. Empty: cors_origins and the hub's own origin.
	PublishOrigins []string `yaml:"publish_origins"`
	// The cookie in which browsers present their token.
	Cookie Cookie `yaml:"cookie"`
	// Who may issue tokens for this hub.
	Issuers []Issuer `yaml:"issuers"`
	// The bundled authorization server.
	AuthorizationServer Bundled `yaml:"authorization_server"`
	// Where updates are kept for subscribers that reconnect.
	History History `yaml:"history"`
	// The socket through which commands reach the running hub. Empty: hub.sock beside the folder of history.path; none with the memory driver.
	ControlSocket File `yaml:"control_socket"`
	// How long a stream may be silent before a keep-alive comment is sent.
	Heartbeat time.Duration `yaml:"heartbeat"`
	// How long one connection may last, whatever its token says. The end is spread over the last fifth. 0s: no limit.
	MaxConnectionLifetime time.Duration `yaml:"max_connection_lifetime"`
	// The reconnection time suggested to subscribers when their stream starts, spread by a fifth. 0s: none.
	Retry time.Duration `yaml:"retry"`
	// How long streams may take to end when the hub stops.
	Drain time.Duration `yaml:"drain"`
	// Limits. A number of 0 means none where the key says so.
	Limits Limits `yaml:"limits"`
	// Peers (addresses or CIDR blocks) whose X-Forwarded-For gives the client address for limits; nothing else comes from headers.
	TrustedProxies []string `yaml:"trusted_proxies"`
	// The listener for operators.
	Ops Ops `yaml:"ops"`
	// Logging.
	Log Log `yaml:"log"`
	// Browser login: the session broker under the hub URL.
	Session Session `yaml:"session"`
}

// TLS says how a listener is secured.
type TLS struct {
	// files: with the certificate and key below; off: plain HTTP.
	Mode string `yaml:"mode"`
	// The certificate chain, PEM.
	CertFile File `yaml:"cert_file"`
	// The private key, PEM.
	KeyFile File `yaml:"key_file"`
	// With mode off: a proxy in front ends TLS. Without it, a plain hub outside loopback refuses tokens; authz ignores it.
	BehindTLSProxy bool `yaml:"behind_tls_proxy"`
}

// Cookie names the cookie that carries the access token.
type Cookie struct {
	// Its name; advertised as mercure_cookie.
	Name string `yaml:"name"`
	// Its Domain attribute, when the hub shares a registrable domain with the pages. Empty: host-only.
	Domain string `yaml:"domain"`
}

// Issuer is a trusted issuer of tokens: an authorization server, or a publisher that signs its own.
type Issuer struct {
	// The iss claim, compared exactly.
	ID string `yaml:"id"`
	// An authorization server: named in the protected resource metadata; its keys are discovered unless given.
	AuthorizationServer bool `yaml:"authorization_server"`
	// Keys that sign tokens for publishing.
	Publisher IssuerRole `yaml:"publisher"`
	// Keys that sign tokens for subscribing.
	Subscriber IssuerRole `yaml:"subscriber"`
	// Keys that sign tokens for both.
	Keys []IssuerKey `yaml:"keys"`
	// The client that reads an authorization server's revocations. Without one, its revoked tokens are accepted until they expire.
	Revocations IssuerRevocations `yaml:"revocations"`
}

// IssuerRevocations is the client that reads an authorization server's revocations.
type IssuerRevocations struct {
	// A client of that server with broker: true. Empty: that of session, when it uses this issuer; otherwise none.
	ClientID string `yaml:"client_id"`
	// Its private key (JWK), for private_key_jwt.
	ClientKeyFile File `yaml:"client_key_file"`
}

// IssuerRole is a set of keys that serve one endpoint.
type IssuerRole struct {
	// Several at once for rotation.
	Keys []IssuerKey `yaml:"keys"`
}

// IssuerKey is one verification key, or a set of them.
type IssuerKey struct {
	// HS256, HS384, HS512, RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 or EdDSA. Not with jwks_file.
	Algorithm string `yaml:"alg"`
	// The key id that tokens name, optional.
	KeyID string `yaml:"kid"`
	// A file with a shared secret (HS algorithms), at least as long as the hash.
	SecretFile File `yaml:"secret_file"`
	// A file with a public key, PEM.
	PEMFile File `yaml:"pem_file"`
	// A file with a JSON Web Key.
	JWKFile File `yaml:"jwk_file"`
	// A file with a JSON Web Key Set; its members name their algorithms.
	JWKSFile File `yaml:"jwks_file"`
}

// Bundled runs the authorization server in the hub's process.
type Bundled struct {
	// Whether it runs here; its endpoints then stand under the path of its issuer, on the hub's listener, and it is trusted.
	Bundled bool `yaml:"bundled"`
	// Its configuration.
	ConfigFile File `yaml:"config_file"`
}

// History says where updates are kept.
type History struct {
	// segments: append-only files, durable, the fastest; bolt: one bbolt database, durable; memory: lost when the hub stops.
	Driver string `yaml:"driver"`
	// The folder of segments or of bolt. Each needs its own: hub history import moves updates from one to another.
	Path File `yaml:"path"`
	// How many updates are kept. 0: no limit by number.
	MaxEvents int `yaml:"max_events"`
	// How many events of active subscriptions are kept, beside the updates. 0: no limit by number.
	MaxSubscriptionEvents int `yaml:"max_subscription_events"`
	// How many bytes are kept. 0: no limit by size.
	MaxBytes ByteSize `yaml:"max_bytes"`
	// How long updates are kept. 0s: no limit by age.
	MaxAge time.Duration `yaml:"max_age"`
}

// HistoryDrivers are the values of history.driver, the default first.
func HistoryDrivers() []string { return []string{"segments", "bolt", "memory"} }

// Durable tells whether the driver keeps updates in a folder.
func (h History) Durable() bool { return h.Driver == "segments" || h.Driver == "bolt" }

// Limits bounds what clients can ask for. Requests beyond a limit get the status in brackets.
type Limits struct {
	// Length of the request target (400).
	URL ByteSize `yaml:"url"`
	// Topic matchers of a subscription (400).
	Matchers int `yaml:"matchers"`
	// Length of a topic matcher (400; in a token 401).
	Pattern ByteSize `yaml:"pattern"`
	// Size of a publication (413).
	Body ByteSize `yaml:"body"`
	// Topics of a publication (413).
	Topics int `yaml:"topics"`
	// Length of a topic (413).
	Topic ByteSize `yaml:"topic"`
	// Length of an event id (413).
	ID ByteSize `yaml:"id"`
	// Length of an event type (413).
	Type ByteSize `yaml:"type"`
	// Authorization details of a token (401).
	Details int `yaml:"details"`
	// Topics of one authorization detail (401).
	TopicsPerDetail int `yaml:"topics_per_detail"`
	// Streams of one client address (429). 0: no limit.
	ConnectionsPerAddress int `yaml:"connections_per_address"`
	// Streams in total (429). 0: no limit.
	ConnectionsTotal int `yaml:"connections_total"`
	// What may wait for one slow reader beyond the update being written, before its stream ends.
	Backlog ByteSize `yaml:"backlog"`
	// What may wait for all slow readers together; the largest are cut first.
	BacklogTotal ByteSize `yaml:"backlog_total"`
}

// Ops is the listener for operators: /livez, /readyz, /metrics.
type Ops struct {
	// Its address. Empty: no such listener.
	Listen string `yaml:"listen"`
	// Whether it also serves Go's profiles under /debug/pprof/.
	Pprof bool `yaml:"pprof"`
}

// Log says what is logged and how.
type Log struct {
	// debug, info, warn or error. Topics and subjects appear at debug only; tokens, cookies and payloads never.
	Level string `yaml:"level"`
	// text or json.
	Format string `yaml:"format"`
}

// Session is the browser session broker, served under the hub URL. It is off without an issuer, unless the authorization
// server is bundled: then it is on, and registers itself.
type Session struct {
	// The authorization server that logs people in.
	Issuer string `yaml:"issuer"`
	// The broker's client identifier there.
	ClientID string `yaml:"client_id"`
	// The broker's private key there (JWK), for private_key_jwt.
	ClientKeyFile File `yaml:"client_key_file"`
	// The keys that seal its cookies: one base64url line of 64 bytes each, the newest first.
	KeysFile File `yaml:"keys_file"`
	// What login asks for, by name; "default" is used when a page names none.
	Profiles map[string]Profile `yaml:"profiles"`
	// Origins that login may return to, besides the hub's own.
	ReturnToOrigins []string `yaml:"return_to_origins"`
	// Clients whose tokens may be traded for the cookie. Not available in this version: must be empty.
	AdoptClients []string `yaml:"adopt_clients"`
	// How long a session lives unused.
	Idle time.Duration `yaml:"idle"`
	// How long a session lives at most.
	Absolute time.Duration `yaml:"absolute"`
}

// Profile is one thing that login can ask for.
type Profile struct {
	// A scope that the authorization server maps to authorization details.
	Scope string `yaml:"scope"`
	// Authorization details (RFC 9396), as JSON text, instead of a scope.
	AuthorizationDetails string `yaml:"authorization_details"`
}

// DefaultHub gives the defaults of every key.
func DefaultHub() Hub {
	return Hub{
		Listen:                ":8443",
		TLS:                   TLS{Mode: "files"},
		Anonymous:             true,
		Cookie:                Cookie{Name: "__Secure-mercure_access_token"},
		History:               History{Driver: "segments", Path: "data/history", MaxEvents: 1_000_000, MaxSubscriptionEvents: 100_000, MaxBytes: 1 << 30},
		Heartbeat:             15 * time.Second,
		MaxConnectionLifetime: time.Hour,
		Retry:                 2 * time.Second,
		Drain:                 10 * time.Second,
		Limits: Limits{
			URL: 16 << 10, Matchers: 256, Pattern: 4096,
			Body: 1 << 20, Topics: 1000, Topic: 8 << 10, ID: 1 << 10, Type: 1 << 10,
			Details: 128, TopicsPerDetail: 256,
			ConnectionsPerAddress: 4096,
			Backlog:               1 << 20, BacklogTotal: 256 << 20,
		},
		Ops:     Ops{Listen: "127.0.0.1:9090"},
		Log:     Log{Level: "info", Format: "text"},
		Session: Session{Idle: 24 * time.Hour, Absolute: 14 * 24 * time.Hour},
	}
}

// Validate checks what the types cannot say and completes derived values. Its errors name the key.
func (h *Hub) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	if u, err := absoluteURL(h.PublicURL); err != nil {
		errs = append(errs, fmt.Errorf("public_url: %w", err))
	} else {
		check(u.Path != "" && u.Path != "/" && u.RawQuery == "" && u.Fragment == "" && u.User == nil,
			"public_url: needs a path, and no query, fragment or user, for example https://hub.example.com/.well-known/mercure")
	}
	if h.Resource == "" {
		h.Resource = h.PublicURL
	}
	check(len(h.Session.AdoptClients) == 0, "session.adopt_clients: not available in this version; leave the key out")
	check(h.Cookie.Name != "", "cookie.name: must not be empty")
	check(slices.Contains(HistoryDrivers(), h.History.Driver), "history.driver: %q is not %s", h.History.Driver, strings.Join(HistoryDrivers(), ", "))
	check(!h.History.Durable() || h.History.Path != "", "history.path: needed by the %s driver", h.History.Driver)
	check(h.History.MaxEvents >= 0 && h.History.MaxSubscriptionEvents >= 0 && h.History.MaxBytes >= 0 && h.History.MaxAge >= 0,
		"history.max_events, history.max_subscription_events, history.max_bytes, history.max_age: must not be negative; 0 means no limit")
	if h.ControlSocket == "" && h.History.Durable() && h.History.Path != "" {
		h.ControlSocket = File(filepath.Join(filepath.Dir(string(h.History.Path)), ControlSocketName))
	}
	check(h.Heartbeat >= time.Second, "heartbeat: must be at least 1s")
	check(h.MaxConnectionLifetime >= 0 && h.Retry >= 0 && h.Drain >= 0, "max_connection_lifetime, retry, drain: must not be negative")
	errs = append(errs, h.TLS.validate(), h.Log.validate(), h.Limits.validate(), h.validateIssuers(), h.Session.validate())
	return errors.Join(errs...)
}

func (h *Hub) validateIssuers() error {
	var errs []error
	if len(h.Issuers) == 0 && !h.AuthorizationServer.Bundled {
		errs = append(errs, errors.New("issuers: at least one is needed, since publishing needs a token"))
	}
	seen := map[string]bool{}
	for i, is := range h.Issuers {
		at := fmt.Sprintf("issuers[%d]", i)
		if is.ID == "" {
			errs = append(errs, fmt.Errorf("%s.id: must not be empty", at))
		}
		if seen[is.ID] {
			errs = append(errs, fmt.Errorf("%s.id: %q is listed twice; put all keys of an issuer in one entry", at, is.ID))
		}
		seen[is.ID] = true
		errs = append(errs, is.validate(at))
	}
	if h.AuthorizationServer.Bundled && h.AuthorizationServer.ConfigFile == "" {
		errs = append(errs, errors.New("authorization_server.config_file: needed when bundled"))
	}
	if s := h.Session; h.AuthorizationServer.Bundled && (s.Issuer != "" || s.ClientID != "" || s.ClientKeyFile != "" || s.KeysFile != "") {
		errs = append(errs, errors.New("session: issuer, client_id, client_key_file and keys_file are not used with a bundled authorization server, which registers the broker itself"))
	}
	return errors.Join(errs...)
}

// validate checks one issuer, which stands at a key.
func (is Issuer) validate(at string) error {
	var errs []error
	keys := len(is.Keys) + len(is.Publisher.Keys) + len(is.Subscriber.Keys)
	if keys == 0 && !is.AuthorizationServer {
		errs = append(errs, fmt.Errorf("%s: needs keys, or authorization_server: true to discover them", at))
	}
	if r := is.Revocations; (r.ClientID == "") != (r.ClientKeyFile == "") {
		errs = append(errs, fmt.Errorf("%s.revocations: client_id and client_key_file go together", at))
	} else if r.ClientID != "" && !is.AuthorizationServer {
		errs = append(errs, fmt.Errorf("%s.revocations: only an authorization server (authorization_server: true) has any", at))
	}
	for _, k := range append(append(append([]IssuerKey{}, is.Keys...), is.Publisher.Keys...), is.Subscriber.Keys...) {
		if err := k.validate(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", at, err))
		}
	}
	return errors.Join(errs...)
}

func (k IssuerKey) validate() error {
	given := 0
	for _, f := range []File{k.SecretFile, k.PEMFile, k.JWKFile, k.JWKSFile} {
		if f != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return errors.New("a key needs exactly one of secret_file, pem_file, jwk_file, jwks_file")
	case k.JWKSFile != "" && (k.Algorithm != "" || k.KeyID != ""):
		return errors.New("a key with jwks_file takes alg and kid from the file")
	case (k.SecretFile != "" || k.PEMFile != "") && k.Algorithm == "":
		return errors.New("a key with secret_file or pem_file needs alg")
	}
	return nil
}

func (t TLS) validate() error {
	switch t.Mode {
	case "files":
		if t.CertFile == "" || t.KeyFile == "" {
			return errors.New("tls: mode files needs cert_file and key_file (or set mode: off)")
		}
	case "off":
	default:
		return fmt.Errorf("tls.mode: %q is not files or off", t.Mode)
	}
	return nil
}

func (l Log) validate() error {
	var errs []error
	switch l.Level {
	case "debug", "info", "warn", "error":
	default:
		errs = append(errs, fmt.Errorf("log.level: %q is not debug, info, warn or error", l.Level))
	}
	if l.Format != "text" && l.Format != "json" {
		errs = append(errs, fmt.Errorf("log.format: %q is not text or json", l.Format))
	}
	return errors.Join(errs...)
}

func (l Limits) validate() error {
	for _, v := range []struct {
		key   string
		value int64
	}{
		{"url", int64(l.URL)},
		{"matchers", int64(l.Matchers)},
		{"pattern", int64(l.Pattern)},
		{"body", int64(l.Body)},
		{"topics", int64(l.Topics)},
		{"topic", int64(l.Topic)},
		{"id", int64(l.ID)},
		{"type", int64(l.Type)},
		{"details", int64(l.Details)},
		{"topics_per_detail", int64(l.TopicsPerDetail)},
		{"backlog", int64(l.Backlog)},
		{"backlog_total", int64(l.BacklogTotal)},
	} {
		if v.value <= 0 {
			return fmt.Errorf("limits.%s: must be positive", v.key)
		}
	}
	if l.ConnectionsPerAddress < 0 || l.ConnectionsTotal < 0 {
		return errors.New("limits.connections_per_address, limits.connections_total: must not be negative; 0 means no limit")
	}
	return nil
}

func (s Session) validate() error {
	var errs []error
	if s.Issuer != "" && (s.ClientID == "" || s.ClientKeyFile == "" || s.KeysFile == "") {
		errs = append(errs, errors.New("session: an issuer needs client_id, client_key_file and keys_file"))
	}
	if s.Idle <= 0 || s.Absolute < s.Idle {
		errs = append(errs, errors.New("session: idle must be positive and absolute at least as long"))
	}
	for name, p := range s.Profiles {
		if (p.Scope == "") == (p.AuthorizationDetails == "") {
			errs = append(errs, fmt.Errorf("session.profiles.%s: give scope or authorization_details, one of them", name))
		}
	}
	return errors.Join(errs...)
}

func absoluteURL(s string) (*url.URL, error) {
	if s == "" {
		return nil, errors.New("must not be empty")
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, fmt.Errorf("%q is not an absolute http or https URL", s)
	}
	return u, nil
}
