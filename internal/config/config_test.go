package config_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/config"
)

var update = flag.Bool("update", false, "rewrite configs/*.yaml from the types")

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hub.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const minimal = `
public_url: https://hub.example.com/.well-known/mercure
tls: { mode: off }
issuers:
  - id: https://app.example.com
    keys: [ { alg: HS256, secret_file: pub.secret } ]
`

func TestLoadHub(t *testing.T) {
	path := write(t, minimal)
	l, err := config.LoadHub(config.Source{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	h := l.Value
	if h.Resource != h.PublicURL {
		t.Errorf("resource = %q, want the hub URL", h.Resource)
	}
	if got, want := string(h.Issuers[0].Keys[0].SecretFile), filepath.Join(filepath.Dir(path), "pub.secret"); got != want {
		t.Errorf("secret_file = %q, want it beside the configuration: %q", got, want)
	}
	if h.Heartbeat != 15*time.Second || h.Limits.Matchers != 256 {
		t.Errorf("defaults are lost: heartbeat %v, matchers %d", h.Heartbeat, h.Limits.Matchers)
	}
	if l.Origins["public_url"] != config.FromFile || l.Origins["heartbeat"] != "" {
		t.Errorf("origins = %v", l.Origins)
	}
}

func TestLoadHub_environment(t *testing.T) {
	l, err := config.LoadHub(config.Source{Path: write(t, minimal), Environ: []string{
		"CINNABAR_HUB_TLS_MODE=off", "CINNABAR_HUB_HEARTBEAT=3s", "CINNABAR_HUB_LIMITS_BODY=2MiB",
		"CINNABAR_HUB_CORS_ORIGINS=[https://a.example, https://b.example]", "CINNABAR_HUB_ANONYMOUS=false", "OTHER=1",
	}})
	if err != nil {
		t.Fatal(err)
	}
	h := l.Value
	if h.Heartbeat != 3*time.Second || h.Limits.Body != 2<<20 || h.Anonymous {
		t.Errorf("heartbeat %v, body %v, anonymous %v", h.Heartbeat, h.Limits.Body, h.Anonymous)
	}
	if diff := cmp.Diff([]string{"https://a.example", "https://b.example"}, h.CORSOrigins); diff != "" {
		t.Errorf("cors_origins: %s", diff)
	}
	if l.Origins["heartbeat"] != config.FromEnvironment {
		t.Errorf("origin of heartbeat = %q", l.Origins["heartbeat"])
	}
}

func TestLoadHub_refuses(t *testing.T) {
	for name, tc := range map[string]struct {
		text    string
		environ []string
		want    []string
	}{
		"an unknown key with line and nearest name":    {text: minimal + "heartbeet: 3s\n", want: []string{"line 7", `"heartbeet"`, `"heartbeat"`}},
		"an unknown history driver":                    {text: minimal + "history: { driver: mongo }\n", want: []string{`history.driver: "mongo" is not segments, bolt, memory`}},
		"a history driver without its folder":          {text: minimal + "history: { driver: bolt, path: '' }\n", want: []string{"history.path: needed by the bolt driver"}},
		"an unknown nested key":                        {text: minimal + "history: { drivr: memory }\n", want: []string{"history.drivr", `"driver"`}},
		"an unknown key in a list":                     {text: strings.Replace(minimal, "alg:", "algo:", 1), want: []string{"issuers[0].keys[0].algo", `"alg"`}},
		"a repeated key":                               {text: minimal + "anonymous: true\nanonymous: false\n", want: []string{"repeated"}},
		"an unknown variable":                          {text: minimal, environ: []string{"CINNABAR_HUB_HEARTBEET=3s"}, want: []string{"CINNABAR_HUB_HEARTBEAT"}},
		"a bad value in a variable":                    {text: minimal, environ: []string{"CINNABAR_HUB_HEARTBEAT=soon"}, want: []string{"CINNABAR_HUB_HEARTBEAT"}},
		"a second document":                            {text: minimal + "---\nlisten: x\n", want: []string{"more than one"}},
		"no issuer":                                    {text: "public_url: https://h.example/hub\ntls: { mode: off }\n", want: []string{"issuers"}},
		"a hub URL without a path":                     {text: strings.Replace(minimal, "/.well-known/mercure", "/", 1), want: []string{"public_url"}},
		"a number of kept events which is less than 0": {text: minimal + "history: { max_subscription_events: -1 }\n", want: []string{"history.max_subscription_events", "must not be negative"}},
		"two sources for one key":                      {text: strings.Replace(minimal, "secret_file: pub.secret", "secret_file: a, pem_file: b", 1), want: []string{"exactly one"}},
		"half a client for revocations":                {text: minimal + "  - { id: https://as.example, authorization_server: true, revocations: { client_id: hub } }\n", want: []string{"issuers[1].revocations", "go together"}},
		"revocations of a self-issuer":                 {text: strings.Replace(minimal, "keys:", "revocations: { client_id: hub, client_key_file: k }\n    keys:", 1), want: []string{"issuers[0].revocations", "authorization_server"}},
		"a duration without a unit":                    {text: minimal + "heartbeat: 15\n", want: []string{"line 7: heartbeat must be a duration, such as 30s"}},
		"a duration without a unit in a variable":      {text: minimal, environ: []string{"CINNABAR_HUB_DRAIN=5"}, want: []string{"CINNABAR_HUB_DRAIN", "must be a duration, such as 30s"}},
		"a text in place of a list":                    {text: minimal + "cors_origins: https://a.example\n", want: []string{"line 7: cors_origins must be a list"}},
		"a list in place of a text":                    {text: minimal + "listen: [a]\n", want: []string{"line 7: listen must be one value"}},
		"a text in place of keys":                      {text: minimal + "history: memory\n", want: []string{"line 7: history must be keys with values"}},
		"a word in place of a number":                  {text: minimal + "limits: { topics: many }\n", want: []string{"line 7: limits.topics must be a number"}},
		"a word in place of a truth":                   {text: minimal + "anonymous: perhaps\n", want: []string{"line 7: anonymous must be true or false"}},
		"something else than keys":                     {text: "- a\n", want: []string{"line 1: must be keys with values"}},
		"an odd size":                                  {text: minimal + "limits: { body: 1 megabyte }\n", want: []string{"KiB"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.LoadHub(config.Source{Path: write(t, tc.text), Environ: tc.environ})
			if !errors.Is(err, config.ErrInvalid) {
				t.Fatalf("err = %v, want ErrInvalid", err)
			}
			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("err = %q, want it to contain %q", err, w)
				}
			}
		})
	}
}

func TestLoadHub_controlSocket(t *testing.T) {
	for name, tc := range map[string]struct {
		text    string
		environ []string
		want    string
	}{
		"beside the history":      {text: minimal, want: "data/hub.sock"},
		"beside a moved history":  {text: minimal + "history: { path: /var/lib/hub/history }\n", want: "/var/lib/hub/hub.sock"},
		"given":                   {text: minimal + "control_socket: run/hub.sock\n", want: "run/hub.sock"},
		"given in a variable":     {text: minimal, environ: []string{"CINNABAR_HUB_CONTROL_SOCKET=/run/hub.sock"}, want: "/run/hub.sock"},
		"beside bolt's folder":    {text: minimal + "history: { driver: bolt, path: /var/lib/h/bolt }\n", want: "/var/lib/h/hub.sock"},
		"none without a folder":   {text: minimal + "history: { driver: memory }\n"},
		"given without a history": {text: minimal + "history: { driver: memory }\ncontrol_socket: /run/hub.sock\n", want: "/run/hub.sock"},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, tc.text)
			l, err := config.LoadHub(config.Source{Path: path, Environ: tc.environ})
			if err != nil {
				t.Fatal(err)
			}
			want := tc.want
			if want != "" && !filepath.IsAbs(want) {
				want = filepath.Join(filepath.Dir(path), want)
			}
			if got := string(l.Value.ControlSocket); got != want {
				t.Errorf("control_socket = %q, want %q", got, want)
			}
		})
	}
}

const minimalAuthz = `
issuer: https://auth.example.com
tls: { mode: off }
resources: [ { id: https://hub.example.com/.well-known/mercure } ]
`

func TestLoadAuthz_clients(t *testing.T) {
	load := func(t *testing.T, client string) (config.Client, error) {
		t.Helper()
		l, err := config.LoadAuthz(config.Source{Path: write(t, minimalAuthz+"clients: [ { id: c, "+client+" } ]\n")})
		if err != nil {
			return config.Client{}, err
		}
		return l.Value.Clients[0], nil
	}
	const uri = "redirect_uris: [ https://app.example.com/cb ]"
	for name, client := range map[string]string{
		"public":             uri,
		"a key pair":         uri + ", auth_method: private_key_jwt, jwks_file: k.jwks, broker: true",
		"a secret":           uri + ", auth_method: client_secret_post, secret_file: s",
		"without a person":   "auth_method: client_secret_basic, secret_file: s, grant_types: [ client_credentials ]",
		"both ways":          uri + ", auth_method: client_secret_basic, secret_file: s, grant_types: [ client_credentials, authorization_code ]",
		"codes without more": uri + ", grant_types: [ authorization_code ]",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := load(t, client)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(client, "grant_types") {
				if diff := cmp.Diff([]string{"authorization_code", "refresh_token"}, c.GrantTypes); diff != "" {
					t.Errorf("grant_types: %s", diff)
				}
			}
			if c.SecretFile != "" && !filepath.IsAbs(string(c.SecretFile)) {
				t.Errorf("secret_file = %q, want it beside the configuration", c.SecretFile)
			}
		})
	}
	for name, tc := range map[string]struct{ client, want string }{
		"an odd method":                  {uri + ", auth_method: magic", "auth_method"},
		"a method without its key set":   {uri + ", auth_method: private_key_jwt", "jwks_file"},
		"a key set without its method":   {uri + ", jwks_file: k", "jwks_file"},
		"a method without its secret":    {uri + ", auth_method: client_secret_basic", "secret_file"},
		"a secret without its method":    {uri + ", secret_file: s", "secret_file"},
		"an odd grant type":              {uri + ", grant_types: [ password ]", "grant_types"},
		"a grant type twice":             {uri + ", grant_types: [ authorization_code, authorization_code ]", "twice"},
		"credentials of a public client": {uri + ", grant_types: [ authorization_code, client_credentials ]", "public"},
		"refresh tokens from nowhere":    {"auth_method: client_secret_basic, secret_file: s, grant_types: [ client_credentials, refresh_token ]", "authorization_code"},
		"codes that go nowhere":          {"name: x", "redirect_uris"},
		"a public broker":                {uri + ", broker: true", "broker"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := load(t, tc.client); !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), "clients[0]") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("err = %v, want ErrInvalid about clients[0] and %s", err, tc.want)
			}
		})
	}
}

func TestLoadAuthz_tokens(t *testing.T) {
	l, err := config.LoadAuthz(config.Source{Path: write(t, minimalAuthz)})
	if err != nil {
		t.Fatal(err)
	}
	want := config.Tokens{Lifetime: 10 * time.Minute, RefreshIdle: 24 * time.Hour, RefreshAbsolute: 336 * time.Hour}
	if l.Value.Tokens != want {
		t.Errorf("tokens = %+v, want %+v", l.Value.Tokens, want)
	}
	for text, ok := range map[string]bool{
		"lifetime: 10s": true, "lifetime: 9s": false, "lifetime: 24h": true, "lifetime: 25h": false, "refresh_idle: 5m": false,
		"refresh_idle: 336h": true, "refresh_idle: 337h": false, "refresh_absolute: 23h": false, "refresh_absolute: 24h": true,
	} {
		_, err := config.LoadAuthz(config.Source{Path: write(t, minimalAuthz+"tokens: { "+text+" }\n")})
		if (err == nil) != ok {
			t.Errorf("tokens { %s }: err = %v, want accepted: %t", text, err, ok)
		}
	}
}

func TestLoadBundled_listeners(t *testing.T) {
	path := write(t, `
issuer: https://hub.example.com/auth
resources: [ { id: https://hub.example.com/hub, hub_url: https://hub.example.com/hub } ]
trusted_proxies: [ 10.0.0.0/8 ]
tls: { mode: files, cert_file: a.crt, key_file: a.key }
log: { level: debug, format: json }
listen: localhost:1
`)
	hub := config.Hub{PublicURL: "https://hub.example.com/hub", Resource: "https://hub.example.com/hub"}
	_, err := config.LoadBundled(config.Source{Path: path}, hub)
	if !errors.Is(err, config.ErrInvalid) {
		t.Fatalf("LoadBundled() = %v, want ErrInvalid", err)
	}
	_, text, _ := strings.Cut(err.Error(), path+": ")
	var want []string
	for _, key := range []string{"listen", "tls", "log", "trusted_proxies"} {
		want = append(want, key+": belongs to authz serve; a bundled server uses the hub's")
	}
	if diff := cmp.Diff(want, strings.Split(text, "\n")); diff != "" {
		t.Errorf("the errors differ (-want +got):\n%s", diff)
	}
}

func TestReference(t *testing.T) {
	for name, f := range map[string]func() (string, error){"hub.yaml": config.ReferenceHub, "authz.yaml": config.ReferenceAuthz} {
		t.Run(name, func(t *testing.T) {
			got, err := f()
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("..", "..", "configs", name)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("configs/%s is out of step with the types (run this test with -update): %s", name, diff)
			}
		})
	}
	t.Run("the reference loads and gives the example back", func(t *testing.T) {
		l, err := config.LoadHub(config.Source{Path: "../../configs/hub.yaml"})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := l.Value.Limits, config.ExampleHub().Limits; got != want {
			t.Errorf("limits = %+v, want %+v", got, want)
		}
		if _, err := config.LoadAuthz(config.Source{Path: "../../configs/authz.yaml"}); err != nil {
			t.Error(err)
		}
	})
}

func FuzzLoadHub(f *testing.F) {
	f.Add(minimal)
	f.Add("a: [1, {b: *x}]")
	f.Add("&a [*a]")
	f.Add("issuers: [[[]]]")
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "hub.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if l, err := config.LoadHub(config.Source{Path: path}); err == nil && l.Value.PublicURL == "" {
			t.Errorf("a configuration without a hub URL was accepted: %q", text)
		}
	})
}
