package e2e_test

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/devcert"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
	"github.com/cinnabar-hub/cinnabar/test/secretwatch"
)

// apart is a hub and an authorization server in two processes, as an operator runs them.
type apart struct {
	*dev // the hub: the helpers of the development server work on it

	issuer  string
	config  string // of the authorization server
	secret  []byte // of the self-issuing publisher
	servers []*process
}

func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func startApart(t *testing.T) *apart {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if _, _, err := devcert.Certificate(filepath.Join(dir, "tls"), time.Now()); err != nil {
		t.Fatal(err)
	}
	// Programs of Go trust the certificate authorities of this file.
	t.Setenv("SSL_CERT_FILE", filepath.Join(dir, "tls", "ca.crt"))
	ports := freePorts(t, 4)
	a := &apart{issuer: fmt.Sprintf("https://localhost:%d/auth", ports[1])}
	origin := fmt.Sprintf("https://localhost:%d", ports[0])

	key, err := token.Generate("ES256")
	if err != nil {
		t.Fatal(err)
	}
	private, err := key.PrivateJWK()
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.Public()
	if err != nil {
		t.Fatal(err)
	}
	publicJWK, err := public.PublicJWK()
	if err != nil {
		t.Fatal(err)
	}
	keySet, err := json.Marshal(map[string][]json.RawMessage{"keys": {publicJWK}})
	if err != nil {
		t.Fatal(err)
	}
	cookieKey, secret := make([]byte, 64), make([]byte, 32)
	_, _ = rand.Read(cookieKey)
	_, _ = rand.Read(secret)
	a.secret = []byte(base64.RawURLEncoding.EncodeToString(secret))
	secretwatch.Add(t, string(a.secret), base64.RawURLEncoding.EncodeToString(cookieKey))
	writeFile(t, dir, "broker.jwk", string(private))
	writeFile(t, dir, "broker.jwks", string(keySet))
	writeFile(t, dir, "session.keys", base64.RawURLEncoding.EncodeToString(cookieKey)+"\n")
	writeFile(t, dir, "publisher.secret", string(a.secret)+"\n")

	tls := "tls: { mode: files, cert_file: tls/server.crt, key_file: tls/server.key }\n"
	hub := writeFile(t, dir, "hub.yaml", tls+fmt.Sprintf(`
public_url: %[1]s/.well-known/mercure
listen: localhost:%[2]d
anonymous: false
issuers:
  - id: %[3]s
    authorization_server: true
  - id: https://backend.example
    publisher: { keys: [ { alg: HS256, secret_file: publisher.secret } ] }
history: { path: history }
session: { issuer: %[3]s, client_id: hub, client_key_file: broker.jwk, keys_file: session.keys, profiles: { default: { scope: live } } }
ops: { listen: 127.0.0.1:%[4]d }
log: { level: debug }
`, origin, ports[0], a.issuer, ports[2]))
	a.config = writeFile(t, dir, "authz.yaml", tls+fmt.Sprintf(`
issuer: %[3]s
listen: localhost:%[2]d
store: { path: authz.db, secret_file: authz.secret }
resources: [ { id: %[1]s/.well-known/mercure, name: Test hub } ]
clients:
  - id: hub
    name: Test app
    auth_method: private_key_jwt
    jwks_file: broker.jwks
    redirect_uris: [ %[1]s/.well-known/mercure/session/callback ]
    skip_consent: true
policies:
  - id: own
    when: { clients: [hub] }
    grant: [ { actions: [subscribe], topics: [ { match: "https://example.com/users/{{user.name}}/*", match_type: urlpattern } ] } ]
    on_missing_request: grant_all
    on_excess: trim
scopes: { live: [ { actions: [subscribe], topics: [ { match: "*" } ] } ] }
ops: { listen: 127.0.0.1:%[4]d }
log: { level: debug }
`, origin, ports[1], a.issuer, ports[3]))

	for _, c := range [][]string{{"hub", "config", "check", "--config", hub}, {"authz", "config", "check", "--config", a.config}} {
		if out, stderr, code := command(t, "", c[0], c[1:]...); code != 0 {
			t.Fatalf("%v = %d %s %s", c, code, out, stderr)
		}
	}
	as := start(t, "authz", "serve", "--config", a.config)
	as.waitFor("authorization server is ready")
	h := start(t, "hub", "serve", "--config", hub)
	h.waitFor("hub is ready")
	a.dev = &dev{process: h, data: dir, origin: origin}
	a.servers = []*process{as, h}
	for _, port := range []int{ports[2], ports[3]} {
		for _, path := range []string{"/livez", "/readyz", "/metrics"} {
			resp, body := do(t, a.client(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), nil, nil)
			if resp.StatusCode != http.StatusOK {
				t.Errorf("%s = %d %s", path, resp.StatusCode, body)
			}
		}
	}
	return a
}

// selfIssued makes a token of the publisher that signs its own.
func (a *apart) selfIssued(t *testing.T, action rar.Action) string {
	t.Helper()
	compact, err := token.Mint(token.SigningKey{ID: "k", Algorithm: "HS256", Material: a.secret}, token.MintClaims{
		Issuer: "https://backend.example", Subject: "backend", Audience: a.hub(), ClientID: "backend",
		IssuedAt: time.Now(), ExpiresAt: time.Now().Add(time.Minute),
		AuthorizationDetails: json.RawMessage(`[{"type":"` + rar.DetailType + `","actions":["` + string(action) + `"],"topics":[{"match":"*"}]}]`),
	})
	if err != nil {
		t.Fatal(err)
	}
	secretwatch.Add(t, compact)
	return compact
}

func TestServe_apart(t *testing.T) {
	a := startApart(t)
	c := a.client()
	const password = "a password of some length"
	secretwatch.Add(t, password)
	if _, stderr, code := command(t, password+"\n", "authz", "user", "add", "--config", a.config, "--password-stdin", "Alice"); code != 0 {
		t.Fatalf("user add = %d %s", code, stderr)
	}

	t.Run("the stream is closed to the anonymous", func(t *testing.T) {
		resp, _ := do(t, c, http.MethodGet, a.hub()+"?match=*", nil, nil)
		if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != http.StatusUnauthorized || strings.Contains(got, "error=") {
			t.Errorf("status %d, challenge %q", resp.StatusCode, got)
		}
	})

	resp, body := do(t, c, http.MethodGet, a.hub()+"/session/login?return_to=%2F.well-known%2Foauth-protected-resource%2F.well-known%2Fmercure", nil, nil)
	resp, body = a.follow(c, resp, body)
	wrong := form(t, body, "password")
	wrong.Set("username", "alice")
	wrong.Set("password", "not this one, surely")
	a.origin, a.issuer = strings.TrimSuffix(a.issuer, "/auth"), a.origin // forms are posted from the issuer's pages
	resp, body = a.submit(c, resp, wrong)
	if !strings.Contains(body, "Error:") {
		t.Fatalf("a wrong password: %d %s", resp.StatusCode, body)
	}
	right := form(t, body, "password")
	right.Set("username", "alice")
	right.Set("password", password)
	resp, body = a.submit(c, resp, right)
	a.origin, a.issuer = a.issuer, a.origin+"/auth"
	if state := a.session(c); !state.Active || state.Username != "alice" {
		t.Fatalf("session %+v after login at %s: %s", state, resp.Request.URL, body)
	}

	t.Run("what the template of the policy grants arrives, and nothing else private", func(t *testing.T) {
		s := subscribe(t, c, a.hub()+"?match=*", nil)
		auth := http.Header{"Authorization": {"Bearer " + a.selfIssued(t, rar.Publish)}}
		for _, topic := range []string{"https://example.com/users/bob/1", "https://example.com/users/alice/1"} {
			resp, body := do(t, c, http.MethodPost, a.hub(), url.Values{"topic": {topic}, "data": {topic}, "private": {""}}, auth)
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("publish = %d %s", resp.StatusCode, body)
			}
		}
		if got := s.next(t); got != "https://example.com/users/alice/1" {
			t.Errorf("event = %q", got)
		}
	})
	t.Run("TOK-26 the publisher's key opens no stream, and signs no grant to read", func(t *testing.T) {
		for _, action := range []rar.Action{rar.Publish, rar.Subscribe} {
			resp, body := do(t, a.client(), http.MethodGet, a.hub()+"?match=*", nil, http.Header{"Authorization": {"Bearer " + a.selfIssued(t, action)}})
			if resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s: %d %s", action, resp.StatusCode, body)
			}
		}
	})
	t.Run("a minted token of the authorization server publishes", func(t *testing.T) {
		minted, stderr, code := command(t, "", "authz", "token", "mint", "--config", a.config, "--publish-pattern", "https://example.com/*")
		if code != 0 {
			t.Fatalf("mint = %d %s", code, stderr)
		}
		compact := strings.TrimSpace(minted)
		secretwatch.Add(t, compact)
		for topic, want := range map[string]int{"https://example.com/x": 200, "https://other.example/x": 403} {
			resp, body := do(t, c, http.MethodPost, a.hub(), url.Values{"topic": {topic}}, http.Header{"Authorization": {"Bearer " + compact}})
			if resp.StatusCode != want {
				t.Errorf("%s: %d %s", topic, resp.StatusCode, body)
			}
		}
	})
	t.Run("streams end when the hub stops, and it stops in time", func(t *testing.T) {
		s := subscribe(t, c, a.hub()+"?match=*", nil)
		a.stop()
		for range s.events { // ends with the stream
		}
		if a.err != nil {
			t.Errorf("exit: %v", a.err)
		}
	})
}

// TestServe_bundled runs both in one process, as a small site does: one binary, one configuration for each.
func TestServe_bundled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if _, _, err := devcert.Certificate(filepath.Join(dir, "tls"), time.Now()); err != nil {
		t.Fatal(err)
	}
	ports := freePorts(t, 2)
	origin := fmt.Sprintf("https://localhost:%d", ports[0])
	hub := writeFile(t, dir, "hub.yaml", fmt.Sprintf(`
public_url: %[1]s/.well-known/mercure
listen: localhost:%[2]d
tls: { mode: files, cert_file: tls/server.crt, key_file: tls/server.key }
authorization_server: { bundled: true, config_file: authz.yaml }
history: { path: history }
session: { profiles: { default: { scope: live } } }
ops: { listen: 127.0.0.1:%[3]d }
log: { level: debug }
`, origin, ports[0], ports[1]))
	authz := writeFile(t, dir, "authz.yaml", fmt.Sprintf(`
issuer: %[1]s/auth
store: { path: authz.db, secret_file: authz.secret }
resources: [ { id: %[1]s/.well-known/mercure, name: Test hub } ]
policies:
  - id: own
    grant: [ { actions: [subscribe], topics: [ { match: "https://example.com/users/{{user.name}}/*", match_type: urlpattern } ] } ]
scopes: { live: [ { actions: [subscribe], topics: [ { match: "*" } ] } ] }
`, origin))
	if out, stderr, code := command(t, "", "hub", "config", "check", "--config", hub); code != 0 {
		t.Fatalf("config check = %d %s %s", code, out, stderr)
	}
	h := start(t, "hub", "serve", "--config", hub)
	h.waitFor("hub is ready")
	d := &dev{process: h, data: dir, origin: origin}
	c := d.client()
	const password = "another password of some length"
	secretwatch.Add(t, password)
	if _, stderr, code := command(t, password+"\n", "authz", "user", "add", "--config", authz, "--password-stdin", "alice"); code != 0 {
		t.Fatalf("user add = %d %s", code, stderr)
	}
	resp, body := do(t, c, http.MethodGet, d.hub()+"/session/login?return_to=%2F.well-known%2Foauth-protected-resource%2F.well-known%2Fmercure", nil, nil)
	resp, body = d.follow(c, resp, body)
	login := form(t, body, "password")
	login.Set("username", "alice")
	login.Set("password", password)
	d.submit(c, resp, login) // the broker is a first-party client: no consent is asked
	if state := d.session(c); !state.Active || state.Username != "alice" {
		t.Fatalf("session = %+v", state)
	}
	minted, stderr, code := command(t, "", "authz", "token", "mint", "--config", authz, "--publish", "*")
	if code != 0 {
		t.Fatalf("mint = %d %s", code, stderr)
	}
	secretwatch.Add(t, strings.TrimSpace(minted))
	s := subscribe(t, c, d.hub()+"?match=*", nil)
	for _, topic := range []string{"https://example.com/users/bob/1", "https://example.com/users/alice/1"} {
		resp, body := do(t, c, http.MethodPost, d.hub(), url.Values{"topic": {topic}, "data": {topic}, "private": {"on"}},
			http.Header{"Authorization": {"Bearer " + strings.TrimSpace(minted)}})
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("publish = %d %s", resp.StatusCode, body)
		}
	}
	if got := s.next(t); got != "https://example.com/users/alice/1" {
		t.Errorf("event = %q", got)
	}
}
