package hubhttp_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cinnabar-hub/cinnabar/internal/history/memory"
	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/hub/hubhttp"
	"github.com/cinnabar-hub/cinnabar/internal/hub/sink"
	"github.com/cinnabar-hub/cinnabar/internal/obs"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/sse"
	"github.com/cinnabar-hub/cinnabar/internal/token"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

const (
	hubURL      = "https://hub.example/.well-known/mercure"
	metadataURL = "https://hub.example/.well-known/oauth-protected-resource/.well-known/mercure"
	cookieName  = "__Secure-mercure_access_token"
	pageOrigin  = "https://app.example"
	issuer      = "https://app.example"
	authServer  = "https://auth.example"
	patience    = 5 * time.Second
)

// fixture is a hub behind real listeners, with its keys.
type fixture struct {
	tb        testing.TB
	hub       *hub.Hub
	sinks     *sink.Set
	closed    bool   // the sinks are
	base, tls string // URLs of the hub on the plain and the TLS listener
	metadata  string // URL of the metadata on the plain listener
	client    *http.Client
	h2        *http.Client
	address   string // of the plain listener
	log       *syncBuffer
	registry  *prometheus.Registry

	publisher, subscriber, combined token.SigningKey
}

// syncBuffer is a log that tests may read while the hub writes.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// settings are what a test changes before the hub starts.
type settings struct {
	options  hubhttp.Options
	engine   hub.Options
	verifier hubhttp.Verifier
	revoked  token.Revocations
	trusted  []netip.Prefix
	withTLS  bool
	logLevel slog.Level
	slowest  time.Duration // time for a body
	hosts    []string      // the only ones served
	streams  *hubhttp.Connections
}

func start(tb testing.TB, change func(*settings)) *fixture {
	tb.Helper()
	f := &fixture{tb: tb, log: &syncBuffer{}, registry: prometheus.NewRegistry()}
	s := &settings{options: hubhttp.Options{
		PublicURL:            hubURL,
		Anonymous:            true,
		CORSOrigins:          []string{pageOrigin},
		AuthorizationServers: []string{authServer},
	}, engine: hub.DefaultOptions(), logLevel: slog.LevelInfo}
	s.engine.DrainWindow = 0
	s.engine.Retry = 0
	if change != nil {
		change(s)
	}
	logger, err := obs.NewLogger(obs.LogOptions{Writer: f.log, Level: s.logLevel})
	must(tb, err)
	metrics, err := obs.NewMetrics(f.registry)
	must(tb, err)
	compiler, err := topic.NewCompiler(s.options.PublicURL, topic.Limits{})
	must(tb, err)
	if s.verifier == nil {
		s.verifier = f.newVerifier(compiler, s)
	}
	history, err := memory.Open(memory.Options{})
	must(tb, err)
	s.engine.Subscriptions = s.options.Subscriptions
	s.engine.Log, s.engine.Compiler, s.engine.Logger, s.engine.Metrics = history, compiler, logger, metrics
	f.hub, err = hub.New(s.engine)
	must(tb, err)
	sinks, err := sink.NewSet(sink.Options{})
	must(tb, err)
	f.sinks = sinks
	clientIP := httpserver.ClientIP(s.trusted)
	e, err := httpserver.NewEcho(httpserver.EchoOptions{Logger: logger, AccessLog: true, ClientIP: clientIP, HSTS: time.Hour, BodyTimeout: s.slowest, Hosts: s.hosts})
	must(tb, err)
	must(tb, hubhttp.Register(e, s.options, hubhttp.Dependencies{
		Hub: f.hub, Sinks: sinks, Verifier: s.verifier, Compiler: compiler, Logger: logger, Metrics: metrics, ClientIP: clientIP,
		Connections: s.streams,
	}))

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = f.hub.Run(ctx) })
	running.Go(func() { _ = sinks.Run(ctx) })
	plain := listen(tb, httpserver.ServerOptions{Handler: e, Logger: logger})
	servers := []*httpserver.Server{plain}
	u, err := url.Parse(s.options.PublicURL)
	must(tb, err)
	f.address = plain.Addr().String()
	f.base = "http://" + f.address + u.EscapedPath()
	f.metadata = "http://" + f.address + "/.well-known/oauth-protected-resource" + u.EscapedPath()
	f.client = &http.Client{Transport: &http.Transport{}, CheckRedirect: noRedirect}
	if s.withTLS {
		config, pool := certificate(tb)
		secure := listen(tb, httpserver.ServerOptions{Handler: e, Logger: logger, TLS: config})
		servers = append(servers, secure)
		f.tls = "https://" + secure.Addr().String() + u.EscapedPath()
		f.h2 = &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
		}}
	}
	tb.Cleanup(func() {
		ctx, done := context.WithTimeout(context.Background(), patience)
		defer done()
		if err := f.hub.Drain(ctx); err != nil {
			tb.Errorf("Drain = %v", err)
		}
		f.client.CloseIdleConnections()
		if f.h2 != nil {
			f.h2.CloseIdleConnections()
		}
		for _, server := range servers {
			if err := server.Shutdown(ctx); err != nil {
				tb.Errorf("Shutdown = %v", err)
			}
		}
		cancel()
		running.Wait()
		if err := sinks.Close(); err != nil && !f.closed {
			tb.Errorf("Close sinks = %v", err)
		}
		if err := history.Close(); err != nil {
			tb.Errorf("Close history = %v", err)
		}
	})
	return f
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func listen(tb testing.TB, o httpserver.ServerOptions) *httpserver.Server {
	tb.Helper()
	o.Addr = "127.0.0.1:0"
	s, err := httpserver.NewServer(o)
	must(tb, err)
	must(tb, s.Start(context.Background()))
	return s
}

// newVerifier makes a self-issuer with a key per role, and an authorization server with one for both.
func (f *fixture) newVerifier(c *topic.Compiler, s *settings) *token.Verifier {
	f.tb.Helper()
	resource := s.options.Resource
	if resource == "" {
		resource = s.options.PublicURL
	}
	key := func(actions rar.ActionSet) (token.SigningKey, token.Key) {
		private, err := token.Generate("ES256")
		must(f.tb, err)
		private.Actions = actions
		public, err := private.Public()
		must(f.tb, err)
		return private, public
	}
	var publisher, subscriber, combined token.Key
	f.publisher, publisher = key(rar.Actions(rar.Publish))
	f.subscriber, subscriber = key(rar.Actions(rar.Subscribe))
	f.combined, combined = key(0)
	v, err := token.NewVerifier(token.Options{
		Resource:    resource,
		Compiler:    c,
		Revocations: s.revoked,
		Issuers: []token.Issuer{
			{ID: issuer, Keys: token.Static(publisher, subscriber)},
			{ID: authServer, Keys: token.Static(combined), AuthorizationServer: true},
		},
	})
	must(f.tb, err)
	return v
}

// grant is one authorization detail.
func grant(action rar.Action, matches ...string) rar.Detail {
	d := rar.Detail{Actions: []rar.Action{action}}
	for _, m := range matches {
		typ := topic.Exact
		if pattern, ok := strings.CutPrefix(m, "pattern:"); ok {
			m, typ = pattern, topic.URLPattern
		}
		d.Topics = append(d.Topics, rar.TopicMatcher{Match: m, MatchType: typ})
	}
	return d
}

// mint signs a token of the self-issuer, or of the authorization server when the key is the combined one.
func (f *fixture) mint(k token.SigningKey, change func(*token.MintClaims), details ...rar.Detail) string {
	f.tb.Helper()
	claims := token.MintClaims{
		Issuer: issuer, Subject: "alice", Audience: hubURL, ClientID: "test",
		IssuedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour),
	}
	if k.ID == f.combined.ID {
		claims.Issuer = authServer
	}
	if len(details) > 0 {
		claims.AuthorizationDetails = rar.Encode(details)
	}
	if change != nil {
		change(&claims)
	}
	compact, err := token.Mint(k, claims)
	must(f.tb, err)
	return compact
}

func (f *fixture) publishToken(matches ...string) string {
	return f.mint(f.publisher, nil, grant(rar.Publish, matches...))
}

func (f *fixture) subscribeToken(matches ...string) string {
	return f.mint(f.subscriber, nil, grant(rar.Subscribe, matches...))
}

// request is one HTTP exchange, and header pairs "Name: value".
type request struct {
	method, url, body string
	headers           []string
	client            *http.Client
}

// response is an answer read to its end.
type response struct {
	*http.Response
	body string
}

// problem decodes the answer's problem document.
func (r response) problem(tb testing.TB) httpserver.Problem {
	tb.Helper()
	var p httpserver.Problem
	if got := r.Header.Get("Content-Type"); got != httpserver.ProblemMediaType {
		tb.Errorf("Content-Type = %q, want %q", got, httpserver.ProblemMediaType)
	}
	if err := json.Unmarshal([]byte(r.body), &p); err != nil {
		tb.Fatalf("problem %q: %v", r.body, err)
	}
	return p
}

func (f *fixture) send(q request) *http.Response {
	f.tb.Helper()
	if q.client == nil {
		q.client = f.client
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	f.tb.Cleanup(cancel)
	var body io.Reader
	if q.body != "" {
		body = strings.NewReader(q.body)
	}
	req, err := http.NewRequestWithContext(ctx, q.method, q.url, body)
	must(f.tb, err)
	for _, h := range q.headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header[http.CanonicalHeaderKey(name)] = append(req.Header[http.CanonicalHeaderKey(name)], value)
	}
	resp, err := q.client.Do(req)
	must(f.tb, err)
	return resp
}

func (f *fixture) do(q request) response {
	f.tb.Helper()
	resp := f.send(q)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	must(f.tb, err)
	return response{Response: resp, body: string(body)}
}

// status opens what may be a stream, and returns the status alone.
func (f *fixture) status(q request) int {
	f.tb.Helper()
	resp := f.send(q)
	_ = resp.Body.Close()
	return resp.StatusCode
}

const formType = "Content-Type: application/x-www-form-urlencoded"

func bearer(compact string) string { return "Authorization: Bearer " + compact }

func cookie(compact string) string { return "Cookie: " + cookieName + "=" + compact }

// post publishes a raw body with a token for every topic, unless headers say otherwise.
func (f *fixture) post(body string, headers ...string) response {
	f.tb.Helper()
	if len(headers) == 0 {
		headers = []string{formType, bearer(f.publishToken("*"))}
	}
	return f.do(request{method: http.MethodPost, url: f.base, body: body, headers: headers})
}

// publish publishes fields given as name, value, name, value… and returns the id.
func (f *fixture) publish(fields ...string) string {
	f.tb.Helper()
	var b strings.Builder
	for i := 0; i < len(fields); i += 2 {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(url.QueryEscape(fields[i]) + "=" + url.QueryEscape(fields[i+1]))
	}
	resp := f.post(b.String())
	if resp.StatusCode != http.StatusOK {
		f.tb.Fatalf("publish %q = %d %s", b.String(), resp.StatusCode, resp.body)
	}
	return resp.body
}

// stream is an open subscription.
type stream struct {
	tb   testing.TB
	resp *http.Response
	dec  *sse.Decoder
}

func (f *fixture) open(q request) *stream {
	f.tb.Helper()
	if q.method == "" {
		q.method = http.MethodGet
	}
	resp := f.send(q)
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<12))
		_ = resp.Body.Close()
		f.tb.Fatalf("%s %s = %d %s", q.method, q.url, resp.StatusCode, body)
	}
	f.tb.Cleanup(func() { _ = resp.Body.Close() })
	return &stream{tb: f.tb, resp: resp, dec: sse.NewDecoder(resp.Body, 1<<20)}
}

// subscribe opens the query with a token for every topic, unless headers say otherwise.
func (f *fixture) subscribe(query string, headers ...string) *stream {
	f.tb.Helper()
	if len(headers) == 0 {
		headers = []string{bearer(f.subscribeToken("*"))}
	}
	return f.open(request{url: f.base + "?" + query, headers: headers})
}

// next reads the next event; the request's context ends a wait that is too long.
func (s *stream) next() sse.Event {
	s.tb.Helper()
	ev, err := s.dec.Next()
	if err != nil {
		s.tb.Fatalf("next event: %v", err)
	}
	return ev
}

// wantData fails unless the next events carry the given data, in order.
func (s *stream) wantData(want ...string) {
	s.tb.Helper()
	for _, w := range want {
		if ev := s.next(); ev.Data != w {
			s.tb.Fatalf("event data = %q, want %q", ev.Data, w)
		}
	}
}

// ended fails unless the stream ends without another event.
func (s *stream) ended() {
	s.tb.Helper()
	if ev, err := s.dec.Next(); !errors.Is(err, io.EOF) {
		s.tb.Fatalf("next = %+v, %v, want the end of the stream", ev, err)
	}
}

// mintExpired mints a subscriber's token that ended a minute ago.
func (f *fixture) mintExpired() string {
	return f.mint(f.subscriber, func(c *token.MintClaims) {
		c.IssuedAt, c.ExpiresAt = time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
	}, grant(rar.Subscribe, "*"))
}

// mintFor mints a subscriber's token that ends within ttl: exp counts whole seconds.
func (f *fixture) mintFor(ttl time.Duration) string {
	return f.mint(f.subscriber, func(c *token.MintClaims) { c.ExpiresAt = time.Now().Add(ttl) }, grant(rar.Subscribe, "*"))
}

// gauge returns the value of a metric without labels.
func (f *fixture) gauge(name string) float64 {
	f.tb.Helper()
	families, err := f.registry.Gather()
	must(f.tb, err)
	for _, family := range families {
		if family.GetName() == name {
			m := family.GetMetric()[0]
			return m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	f.tb.Fatalf("no metric %s", name)
	return 0
}

// eventually waits for what another goroutine is about to do.
func (f *fixture) eventually(what string, ok func() bool) {
	f.tb.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			f.tb.Fatalf("waited for %s in vain", what)
		case <-tick.C:
		}
	}
}

func loopback() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} }
