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
	pushed     map[string]url.Values // authorization requests by request_uri
	codes      map[string]url.Values // authorization requests by code
	refreshes  map[string]bool       // refresh tokens; false: revoked
	fetches    int                   // of the metadata
	exchanges  int
	renewals   int
	revoked    []string        // hint and token
	assertions map[string]bool // jti seen

	metadata  func(map[string]any)
	mint      func(*token.MintClaims)
	answer    http.HandlerFunc // instead of the token endpoint
	discovery http.HandlerFunc // instead of the metadata
	push      http.HandlerFunc // instead of the endpoint for pushed requests
	revoke    http.HandlerFunc // instead of the revocation endpoint
	refresh   func() string    // the refresh token that comes with a token; nil: none
	hold      chan struct{}    // what renewals wait for
	down      bool             // no connection at all
	err       error            // what a wrong request was
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.down {
		return nil, errors.New("connection refused")
	}
	if err := r.Context().Err(); err != nil { // as a connection would
		return nil, err
	}
	rec := httptest.NewRecorder()
	switch r.URL.Scheme + "://" + r.URL.Host + r.URL.Path {
	case "https://auth.example.com/.well-known/oauth-authorization-server/tenant":
		s.serveMetadata(rec, r)
	case "https://auth.example.com/tenant/token":
		s.serveToken(rec, r)
	case "https://auth.example.com/tenant/par":
		s.servePush(rec, r)
	case "https://auth.example.com/tenant/revoke":
		s.serveRevocation(rec, r)
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
		"issuer":                                         issuerID,
		"authorization_endpoint":                         issuerID + "/authorize?keep=1",
		"token_endpoint":                                 issuerID + "/token",
		"revocation_endpoint":                            issuerID + "/revoke",
		"pushed_authorization_request_endpoint":          issuerID + "/par",
		"code_challenge_methods_supported":               []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
	}
	if s.metadata != nil {
		s.metadata(m)
	}
	_ = json.NewEncoder(w).Encode(m)
}

func (s *server) serveToken(w http.ResponseWriter, r *http.Request) {
	err := s.checkClient(r)
	s.mu.Lock()
	renewal := r.PostForm.Get("grant_type") == "refresh_token"
	if renewal {
		s.renewals++
	} else {
		s.exchanges++
	}
	s.mu.Unlock()
	if renewal && s.hold != nil {
		<-s.hold
	}
	if s.answer != nil {
		s.answer(w, r)
		return
	}
	if err == nil && renewal {
		if !s.alive(r.PostForm) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"invalid_grant"}`)
			return
		}
	} else if err == nil {
		err = s.checkCode(r.PostForm)
	}
	if err != nil {
		s.err = err
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"invalid_request"}`)
		return
	}
	compact, err := s.issue()
	if err != nil {
		s.err = err
		http.Error(w, "", http.StatusInternalServerError)
		return
	}
	answer := map[string]any{
		"access_token": compact, "token_type": "bearer", "expires_in": 600, "authorization_details": json.RawMessage(details),
	}
	if s.refresh != nil {
		answer["refresh_token"] = s.addRefresh(s.refresh())
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *server) addRefresh(value string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refreshes[value] = true
	return value
}

// alive judges a renewal.
func (s *server) alive(f url.Values) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Get("resource") != hubURL || f.Get("scope") != "" || f.Get("authorization_details") != "" {
		s.err = errors.New("the renewal asks for something else")
	}
	return s.refreshes[f.Get("refresh_token")]
}

// checkClient is as strict as a real server about how the broker proves who it is.
func (s *server) checkClient(r *http.Request) error {
	if r.Method != http.MethodPost || r.Header.Get("Authorization") != "" || r.URL.RawQuery != "" {
		return errors.New("request is not a plain POST")
	}
	if err := r.ParseForm(); err != nil {
		return err
	}
	f := r.PostForm
	if f.Get("client_id") != clientID || f.Get("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" {
		return errors.New("wrong client or assertion type")
	}
	assertion, err := jwt.Parse([]byte(f.Get("client_assertion")), jwt.WithKey(jwa.ES256, s.client),
		jwt.WithIssuer(clientID), jwt.WithSubject(clientID), jwt.WithAudience(issuerID), jwt.WithRequiredClaim("exp"), jwt.WithRequiredClaim("jti"))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(assertion.Audience()) != 1 || time.Until(assertion.Expiration()) > time.Minute || s.assertions[assertion.JwtID()] {
		return errors.New("assertion is for others too, lives too long, or was used before")
	}
	s.assertions[assertion.JwtID()] = true
	return nil
}

// checkCode is as strict about a code.
func (s *server) checkCode(f url.Values) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	request, ok := s.codes[f.Get("code")]
	delete(s.codes, f.Get("code"))
	if !ok {
		return errors.New("unknown code")
	}
	challenge := sha256.Sum256([]byte(f.Get("code_verifier")))
	switch {
	case f.Get("grant_type") != "authorization_code":
		return errors.New("wrong grant type")
	case f.Get("redirect_uri") != request.Get("redirect_uri"), f.Get("resource") != request.Get("resource"):
		return errors.New("redirect_uri or resource differs")
	case base64.RawURLEncoding.EncodeToString(challenge[:]) != request.Get("code_challenge"), len(f.Get("code_verifier")) != 43:
		return errors.New("PKCE fails")
	}
	return nil
}

func (s *server) servePush(w http.ResponseWriter, r *http.Request) {
	if s.push != nil {
		s.push(w, r)
		return
	}
	if err := s.checkClient(r); err != nil {
		s.err = err
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	f := r.PostForm
	f.Del("client_assertion")
	f.Del("client_assertion_type")
	s.mu.Lock()
	uri := fmt.Sprintf("urn:ietf:params:oauth:request_uri:%d", len(s.pushed))
	s.pushed[uri] = f
	s.mu.Unlock()
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"request_uri": uri, "expires_in": 90})
}

func (s *server) serveRevocation(w http.ResponseWriter, r *http.Request) {
	err := s.checkClient(r)
	s.mu.Lock()
	s.revoked = append(s.revoked, r.PostForm.Get("token_type_hint")+" "+r.PostForm.Get("token"))
	s.mu.Unlock()
	if s.revoke != nil {
		s.revoke(w, r)
		return
	}
	if err != nil {
		s.err = err
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refreshes[r.PostForm.Get("token")] = false
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
	q := s.request(t, u)
	code := "code-" + q.Get("state")[:8]
	s.mu.Lock()
	s.codes[code] = q
	s.mu.Unlock()
	return q.Get("redirect_uri") + "?" + url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {issuerID}}.Encode()
}

// request gives the authorization request of an address at the server, pushed or not.
func (s *server) request(t *testing.T, location *url.URL) url.Values {
	t.Helper()
	q := location.Query()
	uri := q.Get("request_uri")
	if uri == "" {
		return q
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pushed, ok := s.pushed[uri]
	delete(s.pushed, uri)
	if !ok || pushed.Get("client_id") != q.Get("client_id") {
		t.Errorf("request_uri %s is of nobody, or of another client", uri)
	}
	return pushed
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
	mu      sync.Mutex   // protects the fields below
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
			pushed: map[string]url.Values{}, refreshes: map[string]bool{},
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
		End: func(_ context.Context, ended session.Ended) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.ended = append(f.ended, ended)
		},
		Logger: logger,
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// get sends a request from a browser and checks what holds for every answer.
func (f *fixture) get(b *browser, address string, header ...string) *http.Response {
	f.t.Helper()
	return f.send(b, http.MethodGet, address, header...)
}

// post sends a request that changes the session, as a page at the hub's origin does, unless header says otherwise.
func (f *fixture) post(b *browser, endpoint string, header ...string) *http.Response {
	f.t.Helper()
	return f.send(b, http.MethodPost, hubURL+"/session/"+endpoint, append([]string{"Origin", "https://hub.example.com", "X-Mercure-Session", "1"}, header...)...)
}

// send sends a request. Header fields come as names and values; an empty value removes one.
func (f *fixture) send(b *browser, method, address string, header ...string) *http.Response {
	f.t.Helper()
	r := httptest.NewRequestWithContext(f.t.Context(), method, address, http.NoBody)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i+1] == "" {
			r.Header.Del(header[i])
		}
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
	f.mu.Lock()
	f.bodies.Write(rec.Body.Bytes())
	f.mu.Unlock()
	documented(f.t, method, r.URL.Path, resp.StatusCode)
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
	f.secrets = append(f.secrets, query1(f.t, callback, "state"), query1(f.t, callback, "code"))
	return resp
}

// noSecrets fails the test when a secret shows where it must not.
func (f *fixture) noSecrets(b *browser) {
	f.t.Helper()
	for _, c := range b.cookies {
		f.secrets = append(f.secrets, c.Value)
	}
	for value := range f.server.refreshes {
		f.secrets = append(f.secrets, value)
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
