package token

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Timing of a Discovery.
const (
	// refreshAfter is how long a key set is used without asking again. An issuer that publishes a key ten minutes before
	// it signs with it is always followed in time.
	refreshAfter = 5 * time.Minute
	// unknownKidEvery bounds the fetches that tokens with unknown kids can cause.
	unknownKidEvery = 30 * time.Second
	// backoffFirst and backoffMost bound the pause after failed fetches, which doubles each time.
	backoffFirst = time.Second
	backoffMost  = time.Minute
	// staleMost is how long the last good set is used while no new one can be had. Beyond it a withdrawn key could live
	// on for as long as somebody keeps us from the issuer.
	staleMost = 24 * time.Hour
)

var errInterrupted = errors.New("fetch interrupted")

// DiscoveryOptions configures a Discovery.
type DiscoveryOptions struct {
	// Issuer is the issuer identifier of the authorization server, an https URL without query and fragment.
	Issuer string
	// AllowLoopbackHTTP also allows http for issuers and key sets on this machine.
	AllowLoopbackHTTP bool
	// HTTPClient replaces the client's transport, for servers in the same process and for proxies. The guard against
	// private addresses then is the transport's own business. Nil means a transport of our own.
	HTTPClient *http.Client
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Logger gets failures of fetches that an older key set hides; nil means none.
	Logger *slog.Logger
}

// Discovery is the KeySource of an authorization server: its metadata (RFC 8414 section 3) names the key set (TOK-27). It
// starts no goroutine. The first caller that finds the set missing, old or lacking a kid fetches, bounded to five
// seconds; meanwhile others go on with the set there is, or wait for it when there is none.
// It is safe for concurrent use.
type Discovery struct {
	issuer string
	parsed *url.URL
	fetch  fetcher
	now    func() time.Time
	logger *slog.Logger

	mu          sync.Mutex
	keys        []Key
	version     uint64        // 0: never had a set
	fetched     time.Time     // when the set arrived
	next        time.Time     // when to ask again, after success or failure
	nextUnknown time.Time     // when an unknown kid may ask
	failures    int           // in a row
	lastErr     error         // of the last fetch
	inflight    chan struct{} // closed when the fetch under way has ended; nil when there is none
}

// NewDiscovery returns a Discovery that has not fetched anything yet, or an error about the issuer identifier.
func NewDiscovery(o DiscoveryOptions) (*Discovery, error) {
	u, err := url.Parse(o.Issuer)
	if err != nil {
		return nil, fmt.Errorf("token: issuer %s is not a URL", shown(o.Issuer))
	}
	d := &Discovery{
		issuer: o.Issuer,
		parsed: u,
		fetch:  fetcher{client: o.HTTPClient, allowHTTP: o.AllowLoopbackHTTP},
		now:    o.Now,
		logger: o.Logger,
	}
	if u.RawQuery != "" || u.ForceQuery || strings.Contains(o.Issuer, "#") {
		return nil, fmt.Errorf("token: issuer %s must have neither query nor fragment", shown(o.Issuer))
	}
	if err := d.fetch.checkURL(u); err != nil {
		return nil, fmt.Errorf("token: issuer: %w", err)
	}
	if d.now == nil {
		d.now = time.Now
	}
	if d.logger == nil {
		d.logger = slog.New(slog.DiscardHandler)
	}
	return d, nil
}

// Keys implements KeySource. For an unknown kid it asks the issuer again, at most every 30 seconds; a token without a kid
// may be signed by any key, and a kid that stays unknown by a key without one.
func (d *Discovery) Keys(ctx context.Context, kid string) ([]Key, error) {
	for {
		keys, wait, mine, err := d.look(kid)
		switch {
		case mine:
			d.refresh(ctx)
		case wait != nil:
			select {
			case <-wait:
			case <-ctx.Done():
				return nil, fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
			}
		default:
			return keys, err
		}
	}
}

// KeysVersion implements VersionedSource. It is 0 when the issuer should be asked again.
func (d *Discovery) KeysVersion() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := d.now(); !now.Before(d.next) || !d.have(now) {
		return 0
	}
	return d.version
}

// have says whether there is a set that may be used. The caller holds mu.
func (d *Discovery) have(now time.Time) bool { return d.version != 0 && now.Sub(d.fetched) < staleMost }

// look answers from the set there is. Otherwise it makes the caller fetch (mine) or wait for the fetch under way.
func (d *Discovery) look(kid string) (keys []Key, wait <-chan struct{}, mine bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	have := d.have(now)
	known := kid == "" || len(withID(d.keys, kid)) > 0
	due := !now.Before(d.next)
	if have && !known && d.failures == 0 && !now.Before(d.nextUnknown) {
		due = true
		d.nextUnknown = now.Add(unknownKidEvery)
	}
	switch {
	case d.inflight != nil && (!have || !known):
		return nil, d.inflight, false, nil
	case d.inflight == nil && due:
		d.inflight = make(chan struct{})
		return nil, nil, true, nil
	case d.failures > 0 && (!have || !known): // the key may be one that only the issuer can tell us about
		return nil, nil, false, fmt.Errorf("%w: %w", ErrUnavailable, d.lastErr)
	}
	return selectKeys(d.keys, kid), nil, false, nil
}

// selectKeys returns the keys that bear kid, else those that bear none; all for an empty kid.
func selectKeys(keys []Key, kid string) []Key {
	if kid == "" {
		return keys
	}
	if named := withID(keys, kid); len(named) > 0 {
		return named
	}
	var anonymous []Key
	for _, k := range keys {
		if k.ID == "" {
			anonymous = append(anonymous, k)
		}
	}
	return anonymous
}

// refresh fetches the set and ends the flight, come what may. A caller that goes away must not fail the fetch for those
// who wait.
func (d *Discovery) refresh(ctx context.Context) {
	var keys []Key
	err := errInterrupted
	defer func() { d.land(ctx, keys, err) }()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	keys, err = d.fetchKeys(bounded)
}

// land takes over the result of a fetch.
func (d *Discovery) land(ctx context.Context, keys []Key, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	d.lastErr = err
	if err != nil {
		pause := min(backoffFirst<<min(d.failures, 10), backoffMost)
		d.failures++
		d.next = now.Add(pause)
	} else {
		if d.version == 0 || !equalKeys(d.keys, keys) {
			d.keys = keys
			d.version++
		}
		d.failures = 0
		d.fetched, d.next = now, now.Add(refreshAfter)
		d.nextUnknown = now.Add(unknownKidEvery)
	}
	close(d.inflight)
	d.inflight = nil
	if err != nil && d.version != 0 {
		d.logger.WarnContext(ctx, "key set not refreshed", slog.String("issuer", d.issuer), slog.Any("error", err))
	}
}

func equalKeys(a, b []Key) bool {
	return slices.EqualFunc(a, b, func(x, y Key) bool { return x.ID == y.ID && x.Actions == y.Actions && x.same(y) })
}

// fetchKeys reads metadata and key set. Where the metadata of RFC 8414 is missing, that of OpenID Connect Discovery serves:
// many servers have only that, and the members are the same (RFC 8414 section 5).
func (d *Discovery) fetchKeys(ctx context.Context) ([]Key, error) {
	document, err := d.fetch.fetch(ctx, d.wellKnown("oauth-authorization-server", true), reachAny)
	if errors.Is(err, errNotFound) {
		document, err = d.fetch.fetch(ctx, d.wellKnown("openid-configuration", false), reachAny)
	}
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	location, err := d.keySetURL(document)
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	r := reachPublic
	if strings.EqualFold(location.Hostname(), d.parsed.Hostname()) {
		r = reachAny
	}
	set, err := d.fetch.fetch(ctx, location, r)
	if err != nil {
		return nil, fmt.Errorf("key set: %w", err)
	}
	keys, err := ParseJWKSet(set, 0)
	if err != nil {
		return nil, fmt.Errorf("key set: %w", err)
	}
	return keys, nil
}

// wellKnown is the metadata URL, the well-known part before the issuer's path (RFC 8414 section 3.1) or after it.
func (d *Discovery) wellKnown(name string, inserted bool) *url.URL {
	path := strings.TrimSuffix(d.parsed.EscapedPath(), "/")
	u := &url.URL{Scheme: d.parsed.Scheme, Host: d.parsed.Host}
	if inserted {
		return u.JoinPath("/.well-known/", name, path)
	}
	return u.JoinPath(path, "/.well-known/", name)
}

// keySetURL reads the two members that matter. The issuer must be the one asked, byte for byte (RFC 8414 section 3.3).
func (d *Discovery) keySetURL(document []byte) (*url.URL, error) {
	var issuer, location string
	err := readObject(document, func(name string, v jsontext.Value) (err error) {
		switch name {
		case "issuer":
			issuer, err = readString(v)
		case "jwks_uri":
			location, err = readString(v)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if issuer != d.issuer {
		return nil, fmt.Errorf("issuer is %s, asked for %s", shown(issuer), shown(d.issuer))
	}
	u, err := url.Parse(location)
	if err != nil || location == "" {
		return nil, fmt.Errorf("jwks_uri %s is not a URL", shown(location))
	}
	if u.Scheme == "http" && d.parsed.Scheme != "http" {
		return nil, fmt.Errorf("jwks_uri %s: must use https like the issuer", shown(location))
	}
	return u, nil
}
