package harness

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/devcert"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
	"github.com/cinnabar-hub/cinnabar/test/secretwatch"
)

// SelfIssuer is the issuer of tokens that a backend signs with a secret it shares with the hub.
const SelfIssuer = "https://backend.example"

// Apart is a hub and an authorization server in two processes, as an operator runs them.
type Apart struct {
	Site

	Server    *Process // the authorization server
	Issuer    string
	HubConfig string // the hub's configuration
	Config    string // the authorization server's configuration
	Secret    []byte // of the self-issuing publisher
}

// ApartOptions is what the two configurations say besides the usual. All are YAML.
type ApartOptions struct {
	Clients  string // items of a list with an indent of two spaces
	Policies string // likewise
	Authz    string // further keys of authz.yaml
	Hub      string // further keys of hub.yaml

	Prepare func(dir string) // writes the files that the rest names; may be nil
}

// WriteFile writes a private file and gives its path.
func WriteFile(tb testing.TB, dir, name, text string) string {
	tb.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// PrivateDir makes an empty folder that is closed to other users.
func PrivateDir(tb testing.TB) string {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// Folder makes a data folder with a certificate for localhost in it, and has the programs that the test starts trust it.
func Folder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if _, _, err := devcert.Certificate(filepath.Join(dir, "tls"), time.Now()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", CAFile(dir)) // programs of Go trust the certificate authorities of this file
	return dir
}

// RandomSecret gives a secret in base64url, and tells the checker of it.
func RandomSecret(tb testing.TB, bytes int) string {
	tb.Helper()
	raw := make([]byte, bytes)
	_, _ = rand.Read(raw)
	s := base64.RawURLEncoding.EncodeToString(raw)
	secretwatch.Add(tb, s)
	return s
}

// WriteKey writes a new private key to NAME.jwk and the set with its public key to NAME.jwks.
func WriteKey(tb testing.TB, dir, name string) {
	tb.Helper()
	key, err := token.Generate("ES256")
	if err != nil {
		tb.Fatal(err)
	}
	private, err := key.PrivateJWK()
	if err != nil {
		tb.Fatal(err)
	}
	keySet, err := key.PublicJWKSet()
	if err != nil {
		tb.Fatal(err)
	}
	WriteFile(tb, dir, name+".jwk", string(private))
	WriteFile(tb, dir, name+".jwks", string(keySet))
}

// StartApart writes both configurations, checks them with the programs' own command, and starts both servers.
func StartApart(t *testing.T, o ApartOptions) *Apart {
	t.Helper()
	dir := Folder(t)
	ports := FreePorts(t, 4)
	origin := fmt.Sprintf("https://localhost:%d", ports[0])
	a := &Apart{Site: Site{Data: dir, Origin: origin}, Issuer: fmt.Sprintf("https://localhost:%d/auth", ports[1])}
	a.Secret = []byte(RandomSecret(t, 32))
	WriteKey(t, dir, "broker")
	WriteFile(t, dir, "session.keys", RandomSecret(t, 64)+"\n")
	WriteFile(t, dir, "publisher.secret", string(a.Secret)+"\n")
	if o.Prepare != nil {
		o.Prepare(dir)
	}
	a.HubConfig = WriteFile(t, dir, "hub.yaml", fmt.Sprintf(`
public_url: %[1]s/.well-known/mercure
listen: localhost:%[2]d
tls: { mode: files, cert_file: tls/server.crt, key_file: tls/server.key }
anonymous: false
issuers:
  - id: %[3]s
    authorization_server: true
  - id: %[5]s
    publisher: { keys: [ { alg: HS256, secret_file: publisher.secret } ] }
history: { path: history }
session: { issuer: %[3]s, client_id: hub, client_key_file: broker.jwk, keys_file: session.keys, profiles: { default: { scope: live } } }
ops: { listen: 127.0.0.1:%[4]d }
log: { level: debug }
%[6]s
`, origin, ports[0], a.Issuer, ports[2], SelfIssuer, o.Hub))
	a.Config = WriteFile(t, dir, "authz.yaml", fmt.Sprintf(`
issuer: %[3]s
listen: localhost:%[2]d
tls: { mode: files, cert_file: tls/server.crt, key_file: tls/server.key }
store: { path: authz.db, secret_file: authz.secret }
resources: [ { id: %[1]s/.well-known/mercure, name: Test hub } ]
clients:
  - id: hub
    name: Test app
    auth_method: private_key_jwt
    jwks_file: broker.jwks
    redirect_uris: [ %[1]s/.well-known/mercure/session/callback ]
    skip_consent: true
    broker: true
%[5]s
policies:
  - id: own
    when: { clients: [hub] }
    grant: [ { actions: [subscribe], topics: [ { match: "https://example.com/users/{{user.name}}/*", match_type: urlpattern } ] } ]
    on_missing_request: grant_all
    on_excess: trim
%[6]s
scopes: { live: [ { actions: [subscribe], topics: [ { match: "*" } ] } ] }
ops: { listen: 127.0.0.1:%[4]d }
log: { level: debug }
%[7]s
`, origin, ports[1], a.Issuer, ports[3], o.Clients, o.Policies, o.Authz))
	Must(t, "", "hub", "config", "check", "--config", a.HubConfig)
	Must(t, "", "authz", "config", "check", "--config", a.Config)
	a.Server = Start(t, "authz", "serve", "--config", a.Config)
	a.Server.WaitFor("authorization server is ready")
	a.StartHub()
	for _, port := range ports[2:] {
		for _, path := range []string{"/livez", "/readyz", "/metrics"} {
			resp, body := Do(t, a.Client(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), nil, nil)
			if resp.StatusCode != http.StatusOK {
				t.Errorf("%s = %d %s", path, resp.StatusCode, body)
			}
		}
	}
	return a
}

// StartHub starts the hub, again when it has been stopped.
func (a *Apart) StartHub() {
	tb := a.Server.T
	tb.Helper()
	a.Process = Start(tb, "hub", "serve", "--config", a.HubConfig)
	a.WaitFor("hub is ready")
}

// AddUser makes an account with a password of some length, which it gives.
func (a *Apart) AddUser(tb testing.TB, name string) (password string) {
	tb.Helper()
	return AddUser(tb, name, "--config", a.Config)
}

// AddUser makes an account with 'authz user add' and gives its password; where says which store (--config FILE, --data DIR).
func AddUser(tb testing.TB, name string, where ...string) (password string) {
	tb.Helper()
	password = RandomSecret(tb, 18)
	Must(tb, password+"\n", "authz", append(append([]string{"user", "add"}, where...), "--password-stdin", name)...)
	return password
}

// SelfIssued makes a token of the publisher that signs its own.
func (a *Apart) SelfIssued(tb testing.TB, action rar.Action) string {
	tb.Helper()
	return SelfIssued(tb, a.Secret, a.Hub(), action)
}

// SelfIssued makes a token of SelfIssuer for everything, valid for ten minutes.
func SelfIssued(tb testing.TB, secret []byte, audience string, action rar.Action) string {
	tb.Helper()
	compact, err := token.Mint(token.SigningKey{ID: "k", Algorithm: "HS256", Material: secret}, token.MintClaims{
		Issuer: SelfIssuer, Subject: "backend", Audience: audience, ClientID: "backend",
		IssuedAt: time.Now(), ExpiresAt: time.Now().Add(10 * time.Minute),
		AuthorizationDetails: json.RawMessage(`[{"type":"` + rar.DetailType + `","actions":["` + string(action) + `"],"topics":[{"match":"*"}]}]`),
	})
	if err != nil {
		tb.Fatal(err)
	}
	secretwatch.Add(tb, compact)
	return compact
}
