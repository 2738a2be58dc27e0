package authzcli_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/cli/authzcli"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/token"
	"github.com/cinnabar-hub/cinnabar/test/needs"
)

type clientJSON struct {
	ID              string    `json:"id"`
	Name            string    `json:"name"`
	AuthMethod      string    `json:"auth_method"`
	GrantTypes      []string  `json:"grant_types"`
	RedirectURIs    []string  `json:"redirect_uris"`
	Origins         []string  `json:"origins"`
	SkipConsent     bool      `json:"skip_consent"`
	Broker          bool      `json:"broker"`
	Static          bool      `json:"static"`
	Disabled        bool      `json:"disabled"`
	CreatedAt       time.Time `json:"created_at"`
	Issuer          string    `json:"issuer"`
	Secret          string    `json:"client_secret"`
	KeyFile         string    `json:"key_file"`
	SessionKeysFile string    `json:"session_keys_file"`
}

func TestClientCreate_secret(t *testing.T) {
	p := serve(t)
	r := p.run(t, "client", "create", "--id", "worker", "--grant-type", "client_credentials")
	secret := strings.TrimSuffix(r.stdout, "\n")
	if r.code != cli.ExitOK || len(secret) < 43 || strings.ContainsAny(secret, " \n") {
		t.Fatalf("code %d, stdout %q, stderr %q; want the secret alone on standard output", r.code, r.stdout, r.stderr)
	}
	if strings.Contains(r.stderr, secret) || !strings.Contains(r.stderr, "worker") || strings.Contains(r.stderr, "policy") {
		t.Errorf("standard error is %q, want it to name the client, and neither the secret nor a missing policy", r.stderr)
	}
	c, err := p.core.Store.Client(t.Context(), "worker")
	if err != nil {
		t.Fatal(err)
	}
	if c.AuthMethod != as.AuthSecretBasic || !bytes.Equal(c.SecretHash, as.HashClientSecret(secret)) || c.Static || c.Name != "worker" || c.CreatedAt.IsZero() {
		t.Errorf("the server has %+v, want a client with the hash of the secret", c)
	}
	for _, args := range [][]string{{"client", "list"}, {"client", "list", "--json"}} {
		if out := p.ok(t, args...); strings.Contains(out, secret) || !strings.Contains(out, "worker") {
			t.Errorf("the list shows %q", out)
		}
	}
	if diff := cmp.Diff([]string{as.EventClientCreated}, p.audited(t)); diff != "" {
		t.Errorf("audit trail: %s", diff)
	}
	records, err := p.core.Store.ListAudit(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(records); err != nil || bytes.Contains(text, []byte(secret)) {
		t.Errorf("the audit trail holds the secret (%v)", err)
	}
}

func TestClientCreate_public(t *testing.T) {
	p := serve(t)
	r := p.run(t, "client", "create", "--redirect-uri", "http://localhost:5173/callback", "--origin", "http://localhost:5174", "--name", "An app")
	id := strings.TrimSpace(r.stdout)
	if r.code != cli.ExitOK || !strings.HasPrefix(id, "c_") || !strings.Contains(r.stderr, "no policy") {
		t.Fatalf("code %d, stdout %q, stderr %q; want the id alone, and a note that no policy applies", r.code, r.stdout, r.stderr)
	}
	got := decode[clientJSON](t, p.ok(t, "client", "create", "--id", "second", "--redirect-uri", "https://app.example.com/callback", "--skip-consent", "--json"))
	want := clientJSON{
		ID: "second", Name: "second", AuthMethod: "none", GrantTypes: []string{"authorization_code", "refresh_token"},
		RedirectURIs: []string{"https://app.example.com/callback"}, Origins: []string{}, SkipConsent: true, Issuer: issuer, CreatedAt: got.CreatedAt,
	}
	if diff := cmp.Diff(want, got); diff != "" || got.CreatedAt.IsZero() {
		t.Errorf("client create --json differs (-want +got):\n%s", diff)
	}
	list := decode[[]clientJSON](t, p.ok(t, "client", "list", "--json"))
	var ids []string
	for _, c := range list {
		ids = append(ids, c.ID)
		if c.Static != (c.ID == "spa") {
			t.Errorf("client %s: static is %t", c.ID, c.Static)
		}
	}
	if diff := cmp.Diff([]string{id, "second", "spa"}, ids); diff != "" {
		t.Errorf("client list differs (-want +got):\n%s", diff)
	}
}

func TestClientCreate_refuses(t *testing.T) {
	p := serve(t)
	uri := []string{"--redirect-uri", "https://app.example.com/callback"}
	p.ok(t, append([]string{"client", "create", "--id", "taken"}, uri...)...)
	for name, c := range map[string]struct {
		code int
		want string
		args []string
	}{
		"no redirect URI":           {cli.ExitUsage, "redirect URIs", []string{"--id", "x"}},
		"a redirect URI that is no": {cli.ExitUsage, "redirect URI", []string{"--redirect-uri", "/callback"}},
		"an id of a person":         {cli.ExitUsage, "u_", append([]string{"--id", "u_1"}, uri...)},
		"an odd method":             {cli.ExitUsage, "magic", append([]string{"--auth-method", "magic"}, uri...)},
		"an odd grant type":         {cli.ExitUsage, "password", append([]string{"--grant-type", "password"}, uri...)},
		"credentials of nobody":     {cli.ExitUsage, "client_credentials", []string{"--auth-method", "none", "--grant-type", "client_credentials"}},
		"keys without a file":       {cli.ExitUsage, "--key-file", append([]string{"--auth-method", "private_key_jwt"}, uri...)},
		"a file without keys":       {cli.ExitUsage, "private_key_jwt", append([]string{"--auth-method", "none", "--key-file", "k"}, uri...)},
		"two sources of keys":       {cli.ExitUsage, "jwks-file", append([]string{"--key-file", "k", "--jwks-file", "j"}, uri...)},
		"a missing key set":         {cli.ExitUsage, "nosuch", append([]string{"--jwks-file", filepath.Join(p.dir, "nosuch")}, uri...)},
		"a key set that is none":    {cli.ExitUsage, "keys", append([]string{"--jwks-file", p.config}, uri...)},
		"an id that is taken":       {cli.ExitFailure, "already", append([]string{"--id", "taken"}, uri...)},
		"one of the configuration":  {cli.ExitRefused, "configuration", append([]string{"--id", "spa"}, uri...)},
		"a broker without a key":    {cli.ExitUsage, "--key-file", []string{"--broker", hubURL}},
		"a broker of no hub":        {cli.ExitUsage, "not a hub URL", []string{"--broker", "hub.example.com", "--key-file", "k"}},
		"a broker of another hub":   {cli.ExitUsage, hubURL, []string{"--broker", "https://other.example/hub", "--key-file", "k"}},
		"a broker with URIs":        {cli.ExitUsage, "leave out", append([]string{"--broker", hubURL, "--key-file", "k"}, uri...)},
		"session keys of no broker": {cli.ExitUsage, "--broker", append([]string{"--session-keys-file", "k"}, uri...)},
		"an argument":               {cli.ExitUsage, "spare", append([]string{"spare"}, uri...)},
	} {
		t.Run(name, func(t *testing.T) {
			p.fails(t, c.code, c.want, append([]string{"client", "create"}, c.args...)...)
		})
	}
	if list := decode[[]clientJSON](t, p.ok(t, "client", "list", "--json")); len(list) != 2 {
		t.Errorf("%d clients are there, want the two that were before", len(list))
	}
}

func TestClientCreate_broker(t *testing.T) {
	p := serve(t)
	key, cookies := filepath.Join(p.dir, "broker.jwk"), filepath.Join(p.dir, "session.keys")
	create := []string{"client", "create", "--id", "hub", "--broker", hubURL, "--key-file", key, "--session-keys-file", cookies}
	lines := p.ok(t, create...)

	// The lines make a hub's configuration whole.
	path := filepath.Join(p.dir, "hub.yaml")
	base := "public_url: " + hubURL + "\ntls: { mode: off }\nissuers: [ { id: " + issuer + ", authorization_server: true } ]\n"
	if err := os.WriteFile(path, []byte(base+lines), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := config.LoadHub(config.Source{Path: path})
	if err != nil {
		t.Fatalf("%v in\n%s", err, base+lines)
	}
	s := l.Value.Session
	if s.Issuer != issuer || s.ClientID != "hub" || string(s.ClientKeyFile) != key || string(s.KeysFile) != cookies {
		t.Errorf("the hub's session is %+v", s)
	}

	// The private key belongs to what the server has.
	c, err := p.core.Store.Client(t.Context(), "hub")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{hubURL + "/session/callback"}, c.RedirectURIs); diff != "" || !c.Broker || c.AuthMethod != as.AuthPrivateKeyJWT {
		t.Errorf("the server has %+v", c)
	}
	raw, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := token.ParseSigningKey(raw)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := token.ParseJWKSet(c.JWKS, 0)
	if err != nil || len(keys) != 1 || keys[0].ID != private.ID {
		t.Errorf("the server has the keys %v (%v), want the one of the file", keys, err)
	}
	if strings.Contains(string(c.JWKS), `"d"`) {
		t.Error("the server has the private key")
	}
	sealing, err := os.ReadFile(cookies)
	if err != nil {
		t.Fatal(err)
	}
	if k, err := base64.RawURLEncoding.DecodeString(strings.TrimSpace(string(sealing))); err != nil || len(k) != 64 {
		t.Errorf("session keys: %d bytes, %v; want 64", len(k), err)
	}

	t.Run("replaces no key", func(t *testing.T) {
		p.fails(t, cli.ExitUsage, "never replaced", "client", "create", "--id", "hub2", "--broker", hubURL, "--key-file", key)
		if again, err := os.ReadFile(key); err != nil || !bytes.Equal(again, raw) {
			t.Errorf("the key file changed (%v)", err)
		}
		if _, err := p.core.Store.Client(t.Context(), "hub2"); err == nil {
			t.Error("the client was made without its key")
		}
	})
	t.Run("leaves session keys alone", func(t *testing.T) {
		made := decode[clientJSON](t, p.ok(t, "client", "create", "--broker", hubURL, "--key-file", filepath.Join(p.dir, "second.jwk"),
			"--session-keys-file", cookies, "--json"))
		if made.SessionKeysFile != cookies || made.KeyFile != filepath.Join(p.dir, "second.jwk") || made.Secret != "" {
			t.Errorf("client create --json = %+v", made)
		}
		if again, err := os.ReadFile(cookies); err != nil || !bytes.Equal(again, sealing) {
			t.Errorf("the session keys changed (%v)", err)
		}
	})
	t.Run("leaves no files behind", func(t *testing.T) {
		stray, strayKeys := filepath.Join(p.dir, "stray.jwk"), filepath.Join(p.dir, "stray.keys")
		p.fails(t, cli.ExitFailure, "already", "client", "create", "--id", "hub", "--broker", hubURL, "--key-file", stray, "--session-keys-file", strayKeys)
		for _, path := range []string{stray, strayKeys} {
			if _, err := os.Stat(path); err == nil {
				t.Errorf("%s stayed behind", path)
			}
		}
	})
	t.Run("files are closed to others", func(t *testing.T) {
		needs.PermissionBits(t)
		for _, path := range []string{key, cookies} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v (%v), want 0600", path, info.Mode(), err)
			}
		}
	})
}

func TestClientCreate_keys(t *testing.T) {
	p := serve(t)
	key := filepath.Join(p.dir, "own.jwk")
	id := strings.TrimSpace(p.ok(t, "client", "create", "--key-file", key, "--redirect-uri", "https://app.example.com/callback"))
	c, err := p.core.Store.Client(t.Context(), id)
	if err != nil || c.AuthMethod != as.AuthPrivateKeyJWT {
		t.Fatalf("client %q = %+v, %v", id, c, err)
	}
	set := filepath.Join(p.dir, "own.jwks")
	if err := os.WriteFile(set, c.JWKS, 0o600); err != nil {
		t.Fatal(err)
	}
	other := strings.TrimSpace(p.ok(t, "client", "create", "--jwks-file", set, "--redirect-uri", "https://app.example.com/callback"))
	if d, err := p.core.Store.Client(t.Context(), other); err != nil || !bytes.Equal(d.JWKS, c.JWKS) || other == id {
		t.Errorf("client %q = %+v, %v; want the key set of the file", other, d, err)
	}
}

func TestClientDelete(t *testing.T) {
	p := serve(t)
	p.ok(t, "client", "create", "--id", "worker", "--grant-type", "client_credentials")
	if out := p.ok(t, "client", "delete", "worker"); out != "deleted client worker\n" {
		t.Errorf("client delete prints %q", out)
	}
	p.fails(t, cli.ExitFailure, `no client "worker"`, "client", "delete", "worker")
	log, err := p.core.Store.RevocationsSince(t.Context(), 0, 10)
	if err != nil || len(log) != 1 || log[0].Kind != store.RevokeClient || log[0].Value != "worker" {
		t.Errorf("the revocation log is %+v (%v), want an entry for the client", log, err)
	}
	p.fails(t, cli.ExitRefused, "belongs to the configuration", "client", "delete", "spa")
	if _, err := p.core.Store.Client(t.Context(), "spa"); err != nil {
		t.Errorf("the client of the configuration is gone: %v", err)
	}
	p.ok(t, "client", "create", "--id", "w2", "--grant-type", "client_credentials")
	got := decode[struct {
		Kind string `json:"kind"`
		ID   string `json:"id"`
	}](t, p.ok(t, "client", "delete", "w2", "--json"))
	if got.Kind != "client" || got.ID != "w2" {
		t.Errorf("client delete --json = %+v", got)
	}
	want := []string{as.EventClientCreated, as.EventClientDeleted, as.EventClientCreated, as.EventClientDeleted}
	if diff := cmp.Diff(want, p.audited(t)); diff != "" {
		t.Errorf("audit trail: %s", diff)
	}
}

func TestClientDelete_notReadYet(t *testing.T) {
	p := serve(t)
	text := strings.Replace(configuration, "clients: [", "clients: [ { id: fresh, redirect_uris: [ https://f.example.com/cb ] },", 1)
	if err := os.WriteFile(p.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.fails(t, cli.ExitRefused, "belongs to the configuration", "client", "delete", "fresh")
}

// fullDisk is standard output to a file on a disk that is full.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// A secret that could not be shown is lost, and the client with it: that must not go unsaid.
func TestClientCreate_secretLost(t *testing.T) {
	p := serve(t)
	var stderr bytes.Buffer
	code := authzcli.Main(t.Context(), cli.Env{
		Args:   []string{"client", "create", "--config", p.config, "--id", "worker", "--grant-type", "client_credentials"},
		Stdout: fullDisk{}, Stderr: &stderr,
	})
	if code != cli.ExitFailure || !strings.Contains(stderr.String(), "no space left") || !strings.Contains(stderr.String(), "authz client delete worker") {
		t.Errorf("code %d, %q", code, stderr.String())
	}
}
