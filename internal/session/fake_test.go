package session_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jwt"

	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/session"
	"github.com/cinnabar-hub/cinnabar/internal/token"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

const (
	hubURL   = "https://hub.example.com/.well-known/mercure"
	hubPath  = "/.well-known/mercure"
	issuerID = "https://auth.example.com/tenant"
	clientID = "hub"
	subject  = "u_5t0ne"
	details  = `[{"type":"https://mercure.rocks/authorization-detail","actions":["subscribe"],"topics":[{"match":"*"}]}]`
)

// server is an authorization server, as far as the broker sees one. Its fields change what it does; they are
// set before the request that they are for.
type server struct {
	signing token.SigningKey
	client  jwk.Key // the public key of the broker

	mu         sync.Mutex
	codes      map[string]url.Values // authorization requests by code
	fetches    int                   // of the metadata
	exchanges  int
	assertions map[string]bool // jti seen

	metadata  func(map[string]any)
	mint      func(*token.MintClaims)
	answer    http.HandlerFunc // instead of the token endpoint
	discovery http.HandlerFunc // instead of the metadata
	down      bool             // no connection at all
	err       error            // what a wrong request was
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.down {
		return nil, errors.New("connection refused")
	}
	rec := httptest.NewRecorder()
	switch r.URL.Scheme + "://" + r.URL.Host + r.URL.Path {
	case "https://auth.example.com/.well-known/oauth-authorization-server/tenant":
		s.serveMetadata(rec, r)
	case "https://auth.example.com/tenant/token":
		s.serveToken(rec, r)
	default:
		s.err = fmt.Errorf("request for %s", r.URL)
		http.NotFound(rec, r)
	}
	return rec.Result(), nil
}

func (s *server) serveMetadata(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.fetches++
	s.mu.Unlock()
	if s.discovery != nil {
		s.discovery(w, r)
		return
	}
	m := map[string]any{
		"issuer":                           issuerID,
		"authorization_endpoint":           issuerID + "/authorize?keep=1",
		"token_endpoint":                   issuerID + "/token",
		"code_challenge_methods_supported": []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
	}
	if s.metadata != nil {
		s.metadata(m)
	}
	_ = json.NewEncoder(w).Encode(m)
}

func (s *server) serveToken(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.exchanges++
	s.mu.Unlock()
	if s.answer != nil {
		s.answer(w, r)
		return
	}
	if err := s.checkToken(r); err != nil {
		s.err = err
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"invalid_grant"}`)
		return
	}
	compact, err := s.issue()
	if err != nil {
		s.err = err
		http.Error(w, "", http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"access_token": compact, "token_type": "bearer", "expires_in": 600, "authorization_details": json.RawMessage(details),
	})
}

// checkToken is as strict as a real server about what the broker sends.
func (s *server) checkToken(r *http.Request) error {
	if r.Method != http.MethodPost || r.Header.Get("Authorization") != "" || r.URL.RawQuery != "" {
		return errors.New("token request is not a plain POST")
	}
	if err := r.ParseForm(); err != nil {
		return err
	}
	f := r.PostForm
	s.mu.Lock()
	defer s.mu.Unlock()
	request, ok := s.codes[f.Get("code")]
	delete(s.codes, f.Get("code"))
	if !ok {
		return errors.New("unknown code")
	}
	challenge := sha256.Sum256([]byte(f.Get("code_verifier")))
	switch {
	case f.Get("grant_type") != "authorization_code", f.Get("client_id") != clientID:
		return errors.New("wrong grant type or client")
	case f.Get("redirect_uri") != request.Get("redirect_uri"), f.Get("resource") != request.Get("resource"):
		return errors.New("redirect_uri or resource differs")
	case base64.RawURLEncoding.EncodeToString(challenge[:]) != request.Get("code_challenge"), len(f.Get("code_verifier")) != 43:
		return errors.New("PKCE fails")
	case f.Get("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer":
		return errors.New("assertion type")
	}
	assertion, err := jwt.Parse([]byte(f.Get("client_assertion")), jwt.WithKey(jwa.ES256, s.client),
		jwt.WithIssuer(clientID), jwt.WithSubject(clientID), jwt.WithAudience(issuerID), jwt.WithRequiredClaim("exp"), jwt.WithRequiredClaim("jti"))
	if err != nil {
		return err
	}
	if len(assertion.Audience()) != 1 || time.Until(assertion.Expiration()) > time.Minute || s.assertions[assertion.JwtID()] {
		return errors.New("assertion is for others too, lives too long, or was used before")
	}
	s.assertions[assertion.JwtID()] = true
	return nil
}

// issue makes the token that the token endpoint gives out.
func (s *server) issue() (string, error) {
	now := time.Now()
	claims := token.MintClaims{
		Issuer: issuerID, Subject: subject, Audience: hubURL, ClientID: clientID, SessionID: "sid-1", Username: "demo",
		IssuedAt: now, ExpiresAt: now.Add(10 * time.Minute), AuthorizationDetails: json.RawMessage(details),
	}
	if s.mint != nil {
		s.mint(&claims)
	}
	return token.Mint(s.signing, claims)
}

// authorize plays the authorization endpoint and the person who agrees: it returns the address of the callback.
func (s *server) authorize(t *testing.T, location string) string {
	t.Helper()
	u, err := url.Parse(location)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	code := "code-" + q.Get("state")[:8]
	s.mu.Lock()
	s.codes[code] = q
	s.mu.Unlock()
	return q.Get("redirect_uri") + "?" + url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {issuerID}}.Encode()
}

// fixture is a broker with everything around it.
type fixture struct {
	t       *testing.T
	server  *server
	echo    *echo.Echo
	options session.Options
	logs    *bytes.Buffer
	ended   []session.Ended
	verify  func(context.Context, string) (*token.Claims, error)
	bodies  bytes.Buffer // of all answers
	secrets []string     // never to be found in logs or bodies
}

// setup makes a fixture. change may alter the options.
func setup(t *testing.T, change func(*session.Options)) *fixture {
	t.Helper()
	f := newFixture(t)
	if change != nil {
		change(&f.options)
	}
	f.register()
	return f
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	brokerKey, brokerJWK := newKey(t, "broker-1")
	public, err := jwk.FromRaw(brokerKey.Public())
	if err != nil {
		t.Fatal(err)
	}
	signing, _ := newKey(t, "as-1")
	f := &fixture{
		t:    t,
		logs: &bytes.Buffer{},
		server: &server{
			signing: token.SigningKey{ID: "as-1", Algorithm: "ES256", Material: signing},
			client:  public, codes: map[string]url.Values{}, assertions: map[string]bool{},
		},
		options: session.Options{
			HubURL: hubURL, Issuer: issuerID, ClientID: clientID, ClientKey: brokerJWK,
			CookieName:      "__Secure-mercure_access_token",
			CookieKeys:      [][]byte{bytes.Repeat([]byte{1}, session.CookieKeyBytes)},
			Profiles:        map[string]session.Profile{"default": {Scope: "live"}, "editor": {AuthorizationDetails: json.RawMessage(details)}},
			ReturnToOrigins: []string{"https://app.example.com", "http://localhost:5173"},
			LoginsPerMinute: -1,
		},
	}
	public256, err := f.server.signing.Public()
	if err != nil {
		t.Fatal(err)
	}
	compiler, err := topic.NewCompiler(hubURL, topic.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := token.NewVerifier(token.Options{
		Resource: hubURL, Compiler: compiler,
		Issuers: []token.Issuer{{ID: issuerID, Keys: token.Static(public256), AuthorizationServer: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.verify = func(ctx context.Context, compact string) (*token.Claims, error) {
		return verifier.Verify(ctx, compact, rar.Subscribe)
	}
	return f
}

func (f *fixture) register() {
	f.t.Helper()
	logger := slog.New(slog.NewTextHandler(f.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	e, err := httpserver.NewEcho(httpserver.EchoOptions{Logger: logger, AccessLog: true})
	if err != nil {
		f.t.Fatal(err)
	}
	f.echo = e
	err = session.Register(e, f.options, session.Dependencies{
		HTTPClient: &http.Client{Transport: f.server},
		Verify:     func(ctx context.Context, compact string) (*token.Claims, error) { return f.verify(ctx, compact) },
		End:        func(_ context.Context, ended session.Ended) { f.ended = append(f.ended, ended) },
		Logger:     logger,
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// get sends a request from a browser and checks what holds for every answer.
func (f *fixture) get(b *browser, address string, header ...string) *http.Response {
	f.t.Helper()
	r := httptest.NewRequestWithContext(f.t.Context(), http.MethodGet, address, http.NoBody)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	b.send(r)
	rec := httptest.NewRecorder()
	f.echo.ServeHTTP(rec, r)
	resp := rec.Result()
	b.receive(r.URL, resp)
	if got := resp.Header.Get("Cache-Control"); got != "no-store" {
		f.t.Errorf("Cache-Control of %s = %q, want no-store", r.URL.Path, got)
	}
	if got := resp.Header.Get("Referrer-Policy"); got != "no-referrer" {
		f.t.Errorf("Referrer-Policy of %s = %q, want no-referrer", r.URL.Path, got)
	}
	f.bodies.Write(rec.Body.Bytes())
	return resp
}

// signIn goes the whole way from login to return_to.
func (f *fixture) signIn(b *browser, query string) *http.Response {
	f.t.Helper()
	resp := f.get(b, hubURL+"/session/login"+query)
	if resp.StatusCode != http.StatusSeeOther {
		f.t.Fatalf("login answered %d: %s", resp.StatusCode, f.bodies.String())
	}
	location := resp.Header.Get("Location")
	if !strings.HasPrefix(location, issuerID+"/authorize?") {
		return resp
	}
	callback := f.server.authorize(f.t, location)
	b.crossSite = true
	resp = f.get(b, callback)
	b.crossSite = false
	f.secrets = append(f.secrets, query1(f.t, location, "state"), query1(f.t, callback, "code"))
	return resp
}

// noSecrets fails the test when a secret shows where it must not.
func (f *fixture) noSecrets(b *browser) {
	f.t.Helper()
	for _, c := range b.cookies {
		f.secrets = append(f.secrets, c.Value)
	}
	for _, secret := range f.secrets {
		if secret == "" {
			continue
		}
		if strings.Contains(f.logs.String(), secret) {
			f.t.Errorf("a secret of %d bytes is in the log", len(secret))
		}
		if strings.Contains(f.bodies.String(), secret) {
			f.t.Errorf("a secret of %d bytes is in a body", len(secret))
		}
	}
	if f.server.err != nil {
		f.t.Errorf("authorization server: %v", f.server.err)
	}
}

func query1(t *testing.T, address, name string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get(name)
}

func newKey(t *testing.T, kid string) (*ecdsa.PrivateKey, json.RawMessage) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := jwk.FromRaw(private)
	if err != nil {
		t.Fatal(err)
	}
	if err := key.Set(jwk.KeyIDKey, kid); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	return private, out
}

// browser keeps cookies as browsers do, including what they silently drop.
type browser struct {
	cookies   []*http.Cookie
	crossSite bool // the next request is a navigation that another site caused
}

func (b *browser) send(r *http.Request) {
	for _, c := range b.cookies {
		if b.crossSite && c.SameSite == http.SameSiteStrictMode {
			continue
		}
		if r.URL.Path == c.Path || strings.HasPrefix(r.URL.Path, strings.TrimSuffix(c.Path, "/")+"/") {
			r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
		}
	}
}

func (b *browser) receive(u *url.URL, resp *http.Response) {
	for _, c := range resp.Cookies() {
		if len(c.Name)+len(c.Value) > 4096 ||
			strings.HasPrefix(c.Name, "__") && (!c.Secure || u.Scheme != "https") ||
			strings.HasPrefix(c.Name, "__Host-") && (c.Path != "/" || c.Domain != "") {
			continue
		}
		b.cookies = slices.DeleteFunc(b.cookies, func(old *http.Cookie) bool {
			return old.Name == c.Name && old.Domain == c.Domain && old.Path == c.Path
		})
		if c.MaxAge >= 0 {
			b.cookies = append(b.cookies, c)
		}
	}
}

func (b *browser) value(name string) string {
	for _, c := range b.cookies {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

func (b *browser) names() []string {
	var names []string
	for _, c := range b.cookies {
		names = append(names, c.Name)
	}
	return names
}
