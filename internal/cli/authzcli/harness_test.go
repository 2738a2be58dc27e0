package authzcli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/app/authzapp"
	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/cli/authzcli"
	"github.com/cinnabar-hub/cinnabar/internal/config"
)

const (
	issuer = "https://auth.example.com"
	hubURL = "https://hub.example.com/.well-known/mercure"
)

const configuration = `
issuer: ` + issuer + `
tls: { mode: off }
store: { path: data/authz.db, secret_file: data/authz.secret }
resources: [ { id: ` + hubURL + `, name: Hub } ]
clients: [ { id: spa, name: App, redirect_uris: [ https://app.example.com/callback ] } ]
policies: [ { id: own, when: { clients: [ spa, worker ] }, grant: [ { actions: [ subscribe ], topics: [ { match: "*" } ] } ] } ]
`

// place is an authorization server in a folder, as a running server keeps it.
type place struct {
	dir    string
	config string
	core   *authzapp.Core
	issuer *authzapp.Issuer
}

// serve starts a server on a new store. Nothing runs in the background: the commands must work without its help.
func serve(t *testing.T) *place {
	t.Helper()
	dir := t.TempDir()
	p := &place{dir: dir, config: filepath.Join(dir, "authz.yaml")}
	if err := os.WriteFile(p.config, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	p.core, p.issuer = open(t, p.config)
	return p
}

// open opens the store of a configuration as a server does.
func open(t *testing.T, path string) (*authzapp.Core, *authzapp.Issuer) {
	t.Helper()
	l, err := config.LoadAuthzOffline(config.Source{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	options, err := authzapp.ServerOptions(l.Value)
	if err != nil {
		t.Fatal(err)
	}
	core, err := authzapp.OpenCore(t.Context(), authzapp.CoreOptions{
		StorePath: string(l.Value.Store.Path), SecretPath: string(l.Value.Store.SecretFile), Serve: true, Logger: cli.Quiet(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := core.Close(); err != nil {
			t.Error(err)
		}
	})
	ring, err := core.OpenRing(t.Context(), l.Value.Issuer, l.Value.Keys.Algorithm)
	if err != nil {
		t.Fatal(err)
	}
	is, err := core.Issuer(t.Context(), options, ring, nil)
	if err != nil {
		t.Fatal(err)
	}
	return core, is
}

// result is what a shell sees of a command.
type result struct {
	code           int
	stdout, stderr string
}

// run runs a command with the configuration of the place.
func (p *place) run(t *testing.T, args ...string) result {
	t.Helper()
	return p.feed(t, "", args...)
}

func (p *place) feed(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return execute(t, stdin, append(args, "--config", p.config)...)
}

func execute(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return executeIn(t.Context(), cli.Env{Args: args, Stdin: strings.NewReader(stdin)})
}

func executeIn(ctx context.Context, env cli.Env) result {
	var stdout, stderr bytes.Buffer
	env.Stdout, env.Stderr, env.Version = &stdout, &stderr, "test"
	code := authzcli.Main(ctx, env)
	return result{code, stdout.String(), stderr.String()}
}

// ok runs a command that succeeds and returns its standard output.
func (p *place) ok(t *testing.T, args ...string) string {
	t.Helper()
	r := p.run(t, args...)
	if r.code != cli.ExitOK {
		t.Fatalf("authz %s: code %d, %s", strings.Join(args, " "), r.code, r.stderr)
	}
	return r.stdout
}

// fails runs a command that must end with a code, nothing on standard output, and a message.
func (p *place) fails(t *testing.T, code int, message string, args ...string) {
	t.Helper()
	r := p.run(t, args...)
	if r.code != code || r.stdout != "" || !strings.Contains(r.stderr, message) {
		t.Errorf("authz %s: code %d, stdout %q, stderr %q; want %d about %q", strings.Join(args, " "), r.code, r.stdout, r.stderr, code, message)
	}
}

// decode reads the JSON a command printed.
func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// audited returns the events of the audit trail, oldest first, and fails for one that names no user of the operating system.
func (p *place) audited(t *testing.T) []string {
	t.Helper()
	records, err := p.core.Store.ListAudit(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	for _, r := range records {
		events = append([]string{r.Event}, events...)
		if !strings.HasPrefix(r.Actor, "os:") || r.Issuer != issuer || r.At.IsZero() {
			t.Errorf("audit record %+v names no user, issuer or time", r)
		}
	}
	return events
}
