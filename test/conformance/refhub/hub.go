package refhub

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	urlpattern "github.com/dunglas/go-urlpattern"
)

// ErrOptions means that a hub cannot be made of its options.
var ErrOptions = errors.New("refhub: options")

// Key verifies the tokens of one algorithm (TOK-05).
type Key struct {
	Alg string // HS256, RS256, PS256, ES256 (or 384, 512), or EdDSA
	Kid string // empty: none
	// Verify is a []byte secret, an *rsa.PublicKey, an *ecdsa.PublicKey or an ed25519.PublicKey.
	Verify any
}

// Issuer is a trusted issuer with the keys that verify its tokens for each role (TOK-12, TOK-26). A key may stand in both.
type Issuer struct {
	ID                 string
	Publish, Subscribe []Key
}

// AuthorizationServer describes the minimal authorization server that the hub trusts and serves. It makes its own ES256
// key, and gives its one client any grant.
type AuthorizationServer struct{ Issuer, ClientID, ClientSecret string }

// Options describe a hub.
type Options struct {
	URL      string // the public hub URL; its path is where the hub stands
	Resource string // the resource identifier; empty: URL
	Issuers  []Issuer
	// AuthorizationServer is trusted beside the issuers; nil: none. The hub's handler serves it as well: its metadata
	// where RFC 8414 wants it, and everything else under the path of its issuer URL.
	AuthorizationServer *AuthorizationServer
	CookieName          string        // empty: no cookies
	CORSOrigins         []string      // origins whose pages may read answers
	PublishOrigins      []string      // origins that may publish with the cookie, beside that of URL
	Anonymous           bool          // subscribers need no token
	Query               bool          // subscriptions by the QUERY method
	Subscriptions       bool          // active subscriptions: events and API
	KeepAlive           time.Duration // how long a stream may be idle; 0: 15 s
	Lifetime            time.Duration // of a stream; 0: 1 h
	Fault               string        // the name of one of [Faults]; empty: none
}

// Limits. They are generous enough for any reasonable client (LIM-12).
const (
	maxMatchers     = 256
	maxPattern      = 4096
	maxBody         = 4 << 20
	maxQueryBody    = 8 << 20
	maxTopics       = 1000
	maxTopic        = 8 << 10
	maxShortField   = 1 << 10
	maxDetails      = 128
	maxDetailTopics = 256
	maxHistory      = 100_000
	maxQueue        = 20_000
	maxPatterns     = 10_000
)

const (
	defaultKeepAlive = 15 * time.Second
	defaultLifetime  = time.Hour
	writeTimeout     = 30 * time.Second
)

// Hub is a Mercure hub. It is safe for concurrent use; Close it when no more requests come.
type Hub struct {
	opts   Options
	url    string // the base of relative topics and patterns
	origin string
	path   string // escaped
	as     *authServer

	faults, faultless planted

	published atomic.Int64 // updates of publishers

	ending chan struct{} // closed by the first Close; faults that take their time take it no longer than that
	once   sync.Once

	patternsMu sync.Mutex
	patterns   map[string]*urlpattern.URLPattern // compiled; nil: matches nothing

	mu      sync.Mutex // orders updates; guards everything below
	history []*update
	streams map[*stream]bool
	opened  int            // streams so far
	replays int            // so far
	ghosts  []subscription // ended, but still shown: a fault
	// What faults remember.
	seen     map[string]bool            // tokens that are not judged again
	payloads map[string]json.RawMessage // payloads by the matcher alone
	closed   bool
	running  sync.WaitGroup // of streams
}

// New makes a hub. The error is [ErrOptions].
func New(opts Options) (*Hub, error) {
	u, err := url.Parse(opts.URL)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%w: URL %q", ErrOptions, opts.URL)
	}
	h := &Hub{
		opts: opts, url: opts.URL, origin: u.Scheme + "://" + u.Host, path: u.EscapedPath(),
		patterns: map[string]*urlpattern.URLPattern{}, streams: map[*stream]bool{},
		seen: map[string]bool{}, payloads: map[string]json.RawMessage{}, ending: make(chan struct{}),
	}
	if h.faults, err = plant(opts.Fault); err != nil {
		return nil, err
	}
	if h.opts.Resource == "" {
		h.opts.Resource = opts.URL
	}
	if h.opts.KeepAlive <= 0 {
		h.opts.KeepAlive = defaultKeepAlive
	}
	if h.opts.Lifetime <= 0 {
		h.opts.Lifetime = defaultLifetime
	}
	for _, issuer := range opts.Issuers {
		for _, k := range append(append([]Key{}, issuer.Publish...), issuer.Subscribe...) {
			if !k.usable() {
				return nil, fmt.Errorf("%w: key of issuer %q for %q", ErrOptions, issuer.ID, k.Alg)
			}
		}
	}
	if opts.AuthorizationServer != nil {
		if h.as, err = newAuthServer(*opts.AuthorizationServer, h); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// Close ends all streams and waits for them. Streams that come later are refused.
func (h *Hub) Close() {
	h.once.Do(func() { close(h.ending) })
	h.mu.Lock()
	h.closed = true
	for s := range h.streams {
		s.cut()
	}
	h.mu.Unlock()
	h.running.Wait()
}

// ServeHTTP serves the hub, its metadata, its subscription API and its authorization server.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	if h.as != nil && h.as.serve(w, r, path) {
		return
	}
	h.cors(w, r, path)
	switch {
	case path == h.path:
		h.serveHub(w, r)
	case path == h.path+"/subscriptions" || strings.HasPrefix(path, h.path+"/subscriptions/"):
		h.serveSubscriptions(w, r, path)
	case path == h.metadataPath():
		h.serveMetadata(w, r)
	default:
		h.refuse(w, r, refusal{status: http.StatusNotFound, detail: "Nothing here."})
	}
}

// serveHub serves the hub URL by method (SUB-01, SUB-02, PUB-01, SUB-39).
func (h *Hub) serveHub(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodOptions && (isPreflight(r) || !h.fault("delete-opens-stream")):
		h.preflight(w, r)
	case r.Method == http.MethodGet && !h.fault("get-refused"):
		h.subscribe(w, r)
	case r.Method == http.MethodDelete && h.fault("delete-opens-stream"):
		h.subscribe(w, r)
	case r.Method == methodQuery && h.opts.Query:
		h.query(w, r)
	case r.Method == http.MethodPost && !h.fault("post-refused"):
		h.publish(w, r)
	default:
		if !h.fault("allow-missing") {
			w.Header().Set("Allow", strings.Join(h.methods(), ", "))
		}
		status := http.StatusMethodNotAllowed
		if h.fault("unknown-method-is-not-found") {
			status = http.StatusNotFound
		}
		h.refuse(w, r, refusal{status: status, detail: "This method is not supported."})
	}
}

const methodQuery = "QUERY"

func (h *Hub) methods() []string {
	methods := []string{http.MethodGet, http.MethodPost, http.MethodOptions}
	if h.opts.Query {
		methods = append(methods, methodQuery)
	}
	return methods
}
