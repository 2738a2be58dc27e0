package token_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

const (
	metadataPath = "/.well-known/oauth-authorization-server"
	oidcPath     = "/.well-known/openid-configuration"
)

// server is an authorization server as far as discovery sees it.
type server struct {
	mu       sync.Mutex
	replies  map[string]reply // by path
	requests []string
}

type reply struct {
	status      int
	contentType string
	location    string
	body        string
}

func newServer(issuer string, keys []byte) *server {
	return &server{replies: map[string]reply{
		metadataPath: {body: fmt.Sprintf(`{"issuer":%q,"jwks_uri":%q,"x":[{"a":1,"a":2}]}`, issuer, issuer+"/jwks.json")},
		"/jwks.json": {body: string(keys)},
	}}
}

func (s *server) set(path string, r reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies[path] = r
}

func (s *server) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.URL.Path)
	answer, ok := s.replies[r.URL.EscapedPath()]
	if !ok {
		answer = reply{status: http.StatusNotFound}
	}
	if answer.contentType == "" {
		answer.contentType = "application/json; charset=utf-8"
	}
	w.Header().Set("Content-Type", answer.contentType)
	if answer.location != "" {
		w.Header().Set("Location", answer.location)
	}
	if answer.status != 0 {
		w.WriteHeader(answer.status)
	}
	_, _ = io.WriteString(w, answer.body)
}

// RoundTrip makes the server reachable without a network.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	s.ServeHTTP(recorder, r)
	return recorder.Result(), nil
}

func twoKeys() []byte {
	return set(ecJWK(ecKey(), object{"kid": `"as1"`}), ecJWK(ec2Key(), object{"kid": `"as2"`}))
}

func discover(t *testing.T, issuer string, transport http.RoundTripper, now func() time.Time) *token.Discovery {
	t.Helper()
	d, err := token.NewDiscovery(token.DiscoveryOptions{Issuer: issuer, HTTPClient: &http.Client{Transport: transport}, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func wantKeys(t *testing.T, d *token.Discovery, kid string, want ...string) {
	t.Helper()
	keys, err := d.Keys(t.Context(), kid)
	if err != nil {
		t.Errorf("Keys(%q) = %v, want %q", kid, err, want)
		return
	}
	var got []string
	for _, k := range keys {
		got = append(got, k.ID)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("Keys(%q) = %q, want %q", kid, got, want)
	}
}

func wantUnavailable(t *testing.T, d *token.Discovery, kid, hint string) {
	t.Helper()
	if keys, err := d.Keys(t.Context(), kid); !errors.Is(err, token.ErrUnavailable) || !strings.Contains(err.Error(), hint) {
		t.Errorf("Keys(%q) = %v, %v, want ErrUnavailable about %q", kid, keys, err, hint)
	}
}

func wantRequests(t *testing.T, s *server, want int) {
	t.Helper()
	if got := s.asked(); len(got) != want {
		t.Errorf("%d requests were made: %q, want %d", len(got), got, want)
	}
}

func TestDiscovery_Verifies(t *testing.T) {
	t.Parallel()
	s := newServer(asIssuer, twoKeys())
	o := options(t)
	o.CacheSize = 0
	o.Issuers = []token.Issuer{{ID: asIssuer, AuthorizationServer: true, Keys: discover(t, asIssuer, s, o.Now)}}
	v := newVerifier(t, o)
	for range 3 {
		_, err := v.Verify(t.Context(), good(), rar.Subscribe)
		wantCheck(t, err, "")
	}
	wantRequests(t, s, 2)
	_, err := v.Verify(t.Context(), compact(header().with(object{"kid": `"x"`}).String(), claims().String(), "ES256", ecKey()), rar.Subscribe)
	wantCheck(t, err, token.CheckKey) // TOK-27: unlike keys given by hand, published ones have names
	_, err = v.Verify(t.Context(), compact(header().with(object{"kid": ""}).String(), claims().String(), "ES256", ec2Key()), rar.Subscribe)
	wantCheck(t, err, "")
}

func TestDiscovery_MetadataLocation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, issuer, path string }{
		{"no path", "https://as.example", metadataPath},
		{"root path", "https://as.example/", metadataPath},
		{"RFC 8414 inserted path", "https://as.example/tenant/1", metadataPath + "/tenant/1"},
		{"trailing slash", "https://as.example/tenant/", metadataPath + "/tenant"},
		{"escaped path", "https://as.example/a%2Fb", metadataPath + "/a%2Fb"},
		{"OpenID Connect", "https://as.example", oidcPath},
		{"OpenID Connect appended path", "https://as.example/tenant/1", "/tenant/1" + oidcPath},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(c.issuer, twoKeys())
			delete(s.replies, metadataPath)
			s.set(c.path, reply{body: fmt.Sprintf(`{"issuer":%q,"jwks_uri":"https://as.example/jwks.json"}`, c.issuer)})
			wantKeys(t, discover(t, c.issuer, s, newClock().Now), "as1", "as1")
		})
	}
}

func TestDiscovery_Refuses(t *testing.T) {
	t.Parallel()
	metadata := func(issuer, uri string) reply {
		return reply{body: fmt.Sprintf(`{"issuer":%q,"jwks_uri":%q}`, issuer, uri)}
	}
	for _, c := range []struct {
		name, path string
		reply      reply
		hint       string
	}{
		{"another issuer", metadataPath, metadata("https://evil.example", asIssuer+"/jwks.json"), "issuer is"},
		{"an issuer with a slash", metadataPath, metadata(asIssuer+"/", asIssuer+"/jwks.json"), "issuer is"},
		{"no jwks_uri", metadataPath, metadata(asIssuer, ""), "jwks_uri"},
		{"a jwks_uri that is no URL", metadataPath, metadata(asIssuer, "https://a b/"), "jwks_uri"},
		{"a jwks_uri over http", metadataPath, metadata(asIssuer, "http://as.example/jwks.json"), "https"},
		{"a jwks_uri over http on loopback", metadataPath, metadata(asIssuer, "http://localhost/jwks.json"), "https"},
		{"a jwks_uri of a file", metadataPath, metadata(asIssuer, "file:///etc/passwd"), "needs a host"},
		{"a jwks_uri with a user", metadataPath, metadata(asIssuer, "https://u:p@as.example/jwks.json"), "no user"},
		{"a relative jwks_uri", metadataPath, metadata(asIssuer, "/jwks.json"), "needs a host"},
		{"a repeated member", metadataPath, reply{body: `{"issuer":"a","issuer":"` + asIssuer + `"}`}, "twice"},
		{"an array", metadataPath, reply{body: `[]`}, "not a JSON object"},
		{"an issuer that is no string", metadataPath, reply{body: `{"issuer":1}`}, "not a string"},
		{"HTML", metadataPath, reply{contentType: "text/html", body: "<html>"}, "content type"},
		{"JSON as text", "/jwks.json", reply{contentType: "text/plain", body: string(twoKeys())}, "content type"},
		{"no content type", "/jwks.json", reply{contentType: ";", body: string(twoKeys())}, "content type"},
		{"a redirect of the metadata", metadataPath, reply{status: 302, location: asIssuer + "/other"}, "status 302"},
		{"a redirect of the key set", "/jwks.json", reply{status: 307, location: asIssuer + "/other"}, "status 307"},
		{"a server error", metadataPath, reply{status: 500}, "status 500"},
		{"nothing there", metadataPath, reply{status: 404}, "not found"},
		{"no key set there", "/jwks.json", reply{status: 404}, "not found"},
		{"oversized metadata", metadataPath, reply{body: strings.Repeat(" ", 1<<20) + "{}"}, "more than 1048576 bytes"},
		{"an oversized key set", "/jwks.json", reply{body: strings.Repeat(" ", 1<<20) + "{}"}, "more than 1048576 bytes"},
		{"a symmetric key", "/jwks.json", reply{body: `{"keys":[{"kty":"oct","k":"AA"}]}`}, "symmetric"},
		{"repeated kids", "/jwks.json", reply{body: string(set(ecJWK(ecKey(), nil), ecJWK(ec2Key(), nil)))}, "twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(asIssuer, twoKeys())
			s.set(c.path, c.reply)
			wantUnavailable(t, discover(t, asIssuer, s, newClock().Now), "", c.hint)
		})
	}
}

func TestNewDiscovery_Refuses(t *testing.T) {
	t.Parallel()
	for _, issuer := range []string{
		"", "as.example", "http://as.example", "http://localhost:8080", "ftp://as.example", "https://", "https://as.example?x=1",
		"https://as.example?", "https://as.example#x", "https://u@as.example", "https://as.example/%zz",
	} {
		if _, err := token.NewDiscovery(token.DiscoveryOptions{Issuer: issuer}); err == nil {
			t.Errorf("NewDiscovery(%q) accepts the issuer, want an error", issuer)
		}
	}
	if _, err := token.NewDiscovery(token.DiscoveryOptions{Issuer: "http://as.example", AllowLoopbackHTTP: true}); err == nil {
		t.Error("NewDiscovery() allows http beyond loopback")
	}
}

func TestDiscovery_Rotation(t *testing.T) {
	t.Parallel()
	s, c := newServer(asIssuer, twoKeys()), newClock()
	d := discover(t, asIssuer, s, c.Now)
	if v := d.KeysVersion(); v != 0 {
		t.Errorf("KeysVersion() = %d before the first fetch, want 0", v)
	}
	wantKeys(t, d, "", "as1", "as2")
	first := d.KeysVersion()
	s.set("/jwks.json", reply{contentType: "application/jwk-set+json", body: string(set(ecJWK(ec2Key(), object{"kid": `"as3"`})))})

	// A flood of unknown kids causes one fetch in 30 seconds.
	for range 10 {
		wantKeys(t, d, "as3")
	}
	wantRequests(t, s, 2)
	c.Advance(30 * time.Second)
	for range 10 {
		wantKeys(t, d, "as3", "as3")
		wantKeys(t, d, "as1")
	}
	wantRequests(t, s, 4)
	second := d.KeysVersion()
	if first == 0 || second == 0 || first == second {
		t.Errorf("KeysVersion() = %d, then %d, want two versions", first, second)
	}

	// Without unknown kids the set is read again after five minutes, and an equal one is no change.
	c.Advance(5*time.Minute - time.Second)
	wantKeys(t, d, "as3", "as3")
	wantRequests(t, s, 4)
	c.Advance(time.Second)
	if v := d.KeysVersion(); v != 0 {
		t.Errorf("KeysVersion() = %d when a fetch is due, want 0", v)
	}
	wantKeys(t, d, "as3", "as3")
	wantRequests(t, s, 6)
	if v := d.KeysVersion(); v != second {
		t.Errorf("KeysVersion() = %d after an equal set, want %d", v, second)
	}
}

func TestDiscovery_KeysWithoutKid(t *testing.T) {
	t.Parallel()
	s := newServer(asIssuer, set(ecJWK(ecKey(), object{"kid": ""}), ecJWK(ec2Key(), object{"kid": `"as2"`})))
	d := discover(t, asIssuer, s, newClock().Now)
	wantKeys(t, d, "", "", "as2")
	wantKeys(t, d, "as2", "as2")
	wantKeys(t, d, "as1", "") // a kid nobody bears may be that of a key which does not say
}

func TestDiscovery_Outage(t *testing.T) {
	t.Parallel()
	s, c := newServer(asIssuer, twoKeys()), newClock()
	s.set(metadataPath, reply{status: 503})
	d := discover(t, asIssuer, s, c.Now)

	// Never had a set: unavailable, and asked again after 1, 2, 4 … 60 seconds only.
	made := 0
	for _, seconds := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		pause := time.Duration(seconds) * time.Second
		made++
		wantUnavailable(t, d, "as1", "status 503")
		wantUnavailable(t, d, "", "status 503")
		c.Advance(pause - time.Nanosecond)
		wantUnavailable(t, d, "as1", "status 503")
		wantRequests(t, s, made)
		c.Advance(time.Nanosecond)
	}

	// Back: everything is as if nothing had been.
	s.set(metadataPath, newServer(asIssuer, nil).replies[metadataPath])
	wantKeys(t, d, "as1", "as1")
	version := d.KeysVersion()

	// Down again: the last good set serves, unknown kids are unavailable rather than refused.
	s.set("/jwks.json", reply{body: `{"keys":`})
	c.Advance(5 * time.Minute)
	wantKeys(t, d, "as1", "as1")
	wantKeys(t, d, "", "as1", "as2")
	wantUnavailable(t, d, "as9", "key set")
	if v := d.KeysVersion(); v != version {
		t.Errorf("KeysVersion() = %d during an outage, want %d", v, version)
	}

	// But not for ever.
	c.Advance(24*time.Hour - 5*time.Minute)
	wantUnavailable(t, d, "as1", "key set")
	if v := d.KeysVersion(); v != 0 {
		t.Errorf("KeysVersion() = %d of a set too old to use, want 0", v)
	}
}

// transport is a RoundTripper of one function.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestDiscovery_OneFetchForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(asIssuer, twoKeys())
		release := make(chan struct{})
		var flights atomic.Int32
		d := discover(t, asIssuer, transport(func(r *http.Request) (*http.Response, error) {
			flights.Add(1)
			select {
			case <-release:
				return s.RoundTrip(r)
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}), nil)
		leader, cancel := context.WithCancel(t.Context())
		results := make(chan error, 20)
		ask := func(ctx context.Context) {
			_, err := d.Keys(ctx, "as1")
			results <- err
		}
		go ask(leader)
		synctest.Wait()
		for range 18 {
			go ask(t.Context())
		}
		impatient, giveUp := context.WithCancel(t.Context())
		go ask(impatient)
		synctest.Wait()
		giveUp()
		synctest.Wait()
		if err := <-results; !errors.Is(err, context.Canceled) || !errors.Is(err, token.ErrUnavailable) {
			t.Errorf("Keys() of the impatient = %v, want ErrUnavailable and Canceled", err)
		}
		cancel() // the one whose request makes the fetch goes away: the others must not lose it
		synctest.Wait()
		if n := flights.Load(); n != 1 {
			t.Errorf("%d requests are under way, want 1", n)
		}
		close(release)
		for range 19 {
			if err := <-results; err != nil {
				t.Errorf("Keys() = %v, want the keys", err)
			}
		}
	})
}

func TestDiscovery_Timeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := discover(t, asIssuer, transport(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}), nil)
		begin := time.Now()
		wantUnavailable(t, d, "", "deadline exceeded")
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("the fetch was given up after %s, want 5s", took)
		}
	})
}

func TestDiscovery_SurvivesPanic(t *testing.T) {
	t.Parallel()
	s := newServer(asIssuer, twoKeys())
	c := newClock()
	broken := true
	d := discover(t, asIssuer, transport(func(r *http.Request) (*http.Response, error) {
		if broken {
			panic("transport")
		}
		return s.RoundTrip(r)
	}), c.Now)
	func() {
		defer func() { _ = recover() }()
		_, _ = d.Keys(t.Context(), "")
	}()
	wantUnavailable(t, d, "", "interrupted")
	broken = false
	c.Advance(time.Second)
	wantKeys(t, d, "as1", "as1")
}

// TestDiscovery_RealConnections uses sockets, to see what the transport of our own does.
func TestDiscovery_RealConnections(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(secure.Close)
	s := newServer("", twoKeys())
	plain := httptest.NewServer(s)
	t.Cleanup(plain.Close)
	port := plain.URL[strings.LastIndexByte(plain.URL, ':'):]
	open := func(issuer, jwksURI string) *token.Discovery {
		s.set(metadataPath, reply{body: fmt.Sprintf(`{"issuer":%q,"jwks_uri":%q}`, issuer, jwksURI)})
		d, err := token.NewDiscovery(token.DiscoveryOptions{Issuer: issuer, AllowLoopbackHTTP: true})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	issuer := "http://127.0.0.1" + port
	wantKeys(t, open(issuer, issuer+"/jwks.json"), "as1", "as1")
	wantKeys(t, open("http://localhost"+port, "http://localhost"+port+"/jwks.json"), "as1", "as1")

	// PRM-14: a document must not send us to a machine of ours; on the issuer's own host it may.
	wantUnavailable(t, open("http://localhost"+port, secure.URL), "", "address not allowed")
	if n := reached.Load(); n != 0 {
		t.Errorf("PRM-14: %d requests reached a private address named by a document", n)
	}
	wantUnavailable(t, open(issuer, secure.URL), "", "certificate") // same host: dialled, and TLS is checked
	wantUnavailable(t, open(issuer, "https://169.254.169.254/latest/meta-data"), "", "address not allowed")
	wantUnavailable(t, open(issuer, "https://[::ffff:10.0.0.1]/"), "", "address not allowed")

	// Redirects are not followed, whatever the client.
	s.set("/jwks.json", reply{status: 302, location: secure.URL})
	wantUnavailable(t, open(issuer, issuer+"/jwks.json"), "", "status 302")
	if n := reached.Load(); n != 0 {
		t.Errorf("%d requests followed the redirect", n)
	}
}
