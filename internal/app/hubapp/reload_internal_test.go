package hubapp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/config"
)

// served is an app that serves, and whose configuration a test changes.
type served struct {
	*App

	config config.Hub
	url    string
	log    *lockedBuffer
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func serve(t *testing.T, change ...func(*config.Hub)) *served {
	t.Helper()
	return serveBeside(t, nil, change...)
}

// serveBeside serves with a bundled authorization server, or without one.
func serveBeside(t *testing.T, authz *config.Authz, change ...func(*config.Hub)) *served {
	t.Helper()
	c := config.DefaultHub()
	c.Listen, c.TLS.Mode = "127.0.0.1:0", "off"
	c.PublicURL, c.Resource, c.History.Driver = testHub, testHub, "memory"
	c.Drain = 0
	c.CORSOrigins = []string{"https://old.example.com"}
	c.Issuers = []config.Issuer{{ID: testIssuer, Keys: []config.IssuerKey{{Algorithm: "HS256", SecretFile: write(t, "secret", sharedSecret)}}}}
	for _, f := range change {
		f(&c)
	}
	s := &served{config: c, log: &lockedBuffer{}}
	a, err := New(t.Context(), c, authz, slog.New(slog.NewTextHandler(s.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	s.App = a
	if err := a.engine.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(a.handler)
	t.Cleanup(func() {
		if err := a.stack.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
	})
	u, err := url.Parse(testHub)
	if err != nil {
		t.Fatal(err)
	}
	s.url = server.URL + u.Path
	return s
}

// stream opens a stream, and gives what reads it to its end, which must be a clean one.
func (s *served) stream(t *testing.T, bearer string) (rest func() string) {
	t.Helper()
	return stream(t, s.url, bearer)
}

func stream(t *testing.T, hub, bearer string) (rest func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, hub+"?match=https://example.com/1", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("subscribe = %d", resp.StatusCode)
	}
	body := bufio.NewReader(resp.Body)
	return func() string {
		t.Helper()
		var text strings.Builder
		if _, err := body.WriteTo(&text); err != nil {
			t.Errorf("the stream did not end cleanly: %v", err)
		}
		return text.String()
	}
}

func (s *served) publish(t *testing.T) int {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, testHub, strings.NewReader(url.Values{"topic": {"https://example.com/1"}, "data": {"x"}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "Bearer "+publishToken())
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w.Code
}

// allows says whether pages of an origin may use the hub.
func (s *served) allows(origin string) bool {
	r := httptest.NewRequest(http.MethodGet, testHub, http.NoBody)
	r.Header.Set("Origin", origin)
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w.Header().Get("Access-Control-Allow-Origin") == origin
}

func TestReload_originsAndWhatNeedsARestart(t *testing.T) {
	s := serve(t)
	rest := s.stream(t, "")
	next := s.config
	next.CORSOrigins, next.Heartbeat = []string{"https://new.example.com"}, 2*next.Heartbeat
	if err := s.Reload(t.Context(), next, nil); err != nil {
		t.Fatal(err)
	}
	if s.allows("https://old.example.com") || !s.allows("https://new.example.com") {
		t.Error("the origins are not those of the new configuration")
	}
	if text := s.log.String(); !strings.Contains(text, "these changes need a restart") || !strings.Contains(text, "keys=heartbeat\n") {
		t.Errorf("the log does not say that heartbeat alone needs a restart:\n%s", text)
	}
	if code := s.publish(t); code != http.StatusOK {
		t.Fatalf("publish after a reload = %d", code)
	}
	if err := s.engine.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	if text := rest(); !strings.Contains(text, "data: x") {
		t.Errorf("a stream that was open before the reload did not get the update after it: %q", text)
	}
}

func TestReload_keys(t *testing.T) {
	s := serve(t)
	own := s.stream(t, publishToken()) // of the issuer whose key changes
	other := s.stream(t, "")
	if err := os.WriteFile(string(s.config.Issuers[0].Keys[0].SecretFile), []byte("another "+sharedSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := s.publish(t); code != http.StatusOK {
		t.Fatalf("publish before the reload = %d", code)
	}
	if err := s.Reload(t.Context(), s.config, nil); err != nil {
		t.Fatal(err)
	}
	if code := s.publish(t); code != http.StatusUnauthorized {
		t.Errorf("publish with a token of the key that is gone = %d, want 401", code)
	}
	own()
	if strings.Contains(s.log.String(), "need a restart") {
		t.Errorf("a reload without a change of the configuration says that something needs a restart:\n%s", s.log)
	}
	if err := s.engine.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	if text := other(); !strings.Contains(text, "data: x") {
		t.Errorf("an anonymous stream got %q, want the update", text)
	}
}

func TestReload_anonymousReadersAreLetInNoMore(t *testing.T) {
	s := serve(t)
	own, other := s.stream(t, publishToken()), s.stream(t, "")
	next := s.config
	next.Anonymous = false
	if err := s.Reload(t.Context(), next, nil); err != nil {
		t.Fatal(err)
	}
	other()
	if code := s.publish(t); code != http.StatusOK {
		t.Fatalf("publish = %d", code)
	}
	if err := s.engine.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	if text := own(); !strings.Contains(text, "data: x") {
		t.Errorf("a stream with a token got %q, want the update", text)
	}
}

// A request that was judged before a reload may open its stream after it: then nobody would end a stream whose token is not good any more.
func TestReload_reachesStreamsThatAreBeingOpened(t *testing.T) {
	s := serve(t)
	underWay := httptest.NewServer(s.site.face.Echo)
	t.Cleanup(underWay.Close)
	hub := underWay.URL + strings.TrimPrefix(s.url, s.url[:strings.LastIndex(s.url, "/.well-known")])

	next := s.config
	next.CORSOrigins = nil
	if err := s.Reload(t.Context(), next, nil); err != nil { // concerns neither of them
		t.Fatal(err)
	}
	lasts := stream(t, hub, publishToken())
	next.Anonymous = false
	if err := os.WriteFile(string(s.config.Issuers[0].Keys[0].SecretFile), []byte("another "+sharedSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(t.Context(), next, nil); err != nil {
		t.Fatal(err)
	}
	lasts()
	for name, bearer := range map[string]string{"of a key that is gone": publishToken(), "anonymous": ""} {
		if text := stream(t, hub, bearer)(); strings.Contains(text, "data:") {
			t.Errorf("%s: the stream got %q", name, text)
		}
	}
}

func TestReload_countsTheStreamsThereAre(t *testing.T) {
	s := serve(t, func(c *config.Hub) { c.Limits.ConnectionsTotal = 1 })
	rest := s.stream(t, "")
	if err := s.Reload(t.Context(), s.config, nil); err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"?match=x", http.NoBody))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a second stream, where one is allowed = %d, want 429", resp.StatusCode)
	}
	if err := s.engine.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	rest()
}

func TestReload_refusesWhatDoesNotWork(t *testing.T) {
	s := serve(t)
	next := s.config
	next.CORSOrigins = []string{"https://new.example.com"}
	next.Issuers = []config.Issuer{{ID: testIssuer, Keys: []config.IssuerKey{{Algorithm: "HS256", SecretFile: "missing"}}}}
	if err := s.Reload(t.Context(), next, nil); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("Reload with a missing key = %v", err)
	}
	if s.allows("https://new.example.com") || s.publish(t) != http.StatusOK {
		t.Error("a refused configuration has changed something")
	}
}

// What changes beside keys that need a restart may be right together with them, and wrong without.
func TestReload_refusesWhatWorksOnlyAfterARestart(t *testing.T) {
	t.Run("issuers that the bundled server will replace", func(t *testing.T) {
		s := serve(t)
		next := s.config
		next.Issuers, next.AuthorizationServer = nil, config.Bundled{Bundled: true, ConfigFile: "authz.yaml"}
		authz := bundledConfig(t)
		err := s.Reload(t.Context(), next, authz)
		if err == nil || !strings.Contains(err.Error(), "authorization_server.bundled") || !strings.Contains(err.Error(), "issuers: ") {
			t.Errorf("Reload = %v", err)
		}
		if code := s.publish(t); code != http.StatusOK {
			t.Errorf("publish after the refusal = %d", code)
		}
	})
	t.Run("the resource of a hub with another URL", func(t *testing.T) {
		authz := bundledConfig(t)
		s := serveBeside(t, authz, bundle)
		next, nextAuthz := s.config, *authz
		next.PublicURL = strings.Replace(testHub, "mercure", "other", 1)
		next.Resource = next.PublicURL
		nextAuthz.Resources = []config.Resource{{ID: next.Resource, HubURL: next.PublicURL}}
		err := s.Reload(t.Context(), next, &nextAuthz)
		if err == nil || !strings.Contains(err.Error(), "public_url, resource: resources: ") {
			t.Errorf("Reload = %v", err)
		}
	})
}

func TestReload_bundled(t *testing.T) {
	authz := bundledConfig(t)
	s := serveBeside(t, authz, bundle)
	next, nextAuthz := s.config, *authz
	next.AuthorizationServer.ConfigFile = "elsewhere.yaml"
	nextAuthz.Clients = []config.Client{{ID: "novel", AuthMethod: "none", RedirectURIs: []string{"https://app.example.com/"}}}
	nextAuthz.Keys.Algorithm = "EdDSA"
	if err := s.Reload(t.Context(), next, &nextAuthz); err != nil {
		t.Fatal(err)
	}
	if _, err := s.bundled.core.Store.Client(t.Context(), "novel"); err != nil {
		t.Errorf("a client of the new configuration: %v", err)
	}
	if text := s.log.String(); !strings.Contains(text, `keys="authorization_server.config_file: keys.algorithm"`) {
		t.Errorf("the log does not say that the algorithm alone needs a restart:\n%s", text)
	}
	if err := s.Reload(t.Context(), s.config, authz); err != nil {
		t.Fatal(err)
	}
	if _, err := s.bundled.core.Store.Client(t.Context(), "novel"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a client that is listed no more: %v", err)
	}
}

func bundle(c *config.Hub) {
	c.AuthorizationServer = config.Bundled{Bundled: true, ConfigFile: "authz.yaml"}
	c.Session.Profiles = map[string]config.Profile{"default": {Scope: "live"}}
}

// bundledConfig is the configuration of an authorization server that is bundled with a hub.
func bundledConfig(t *testing.T) *config.Authz {
	t.Helper()
	c := config.DefaultAuthz()
	dir := filepath.Join(t.TempDir(), "data")
	c.Issuer, c.TLS.Mode = "https://hub.example.com/auth", "off"
	c.Store.Path, c.Store.SecretFile = config.File(filepath.Join(dir, "authz.db")), config.File(filepath.Join(dir, "authz.secret"))
	c.Resources = []config.Resource{{ID: testHub, HubURL: testHub}}
	return &c
}

// A reload that comes while the hub stops must not work with what is being closed.
func TestReload_afterTheEnd(t *testing.T) {
	c := config.DefaultHub()
	c.Listen, c.TLS.Mode, c.Ops.Listen, c.Drain, c.History.Driver = "127.0.0.1:0", "off", "", 0, "memory"
	c.PublicURL, c.Resource = testHub, testHub
	c.Issuers = []config.Issuer{{ID: testIssuer, Keys: []config.IssuerKey{{Algorithm: "HS256", SecretFile: write(t, "secret", sharedSecret)}}}}
	a, err := New(t.Context(), c, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := a.Run(ctx); err != nil {
		t.Fatal(err)
	}
	follows(t, "http://127.0.0.1:1", "hub")(&c)
	if err := a.Reload(t.Context(), c, nil); !errors.Is(err, errEnded) {
		t.Errorf("Reload = %v, want %v", err, errEnded)
	}
}
