package harness

import (
	"fmt"
	"testing"
)

// Bundled is a hub with the authorization server in its process, as a small site runs it.
type Bundled struct {
	Site

	Issuer    string
	HubConfig string // the hub's configuration
	Config    string // the authorization server's configuration
}

// BundledOptions is what the two configurations say besides the usual. All are YAML.
type BundledOptions struct {
	Policies string // items of a list with an indent of two spaces
	Authz    string // further keys of authz.yaml
	Hub      string // further keys of hub.yaml
	Pages    string // an origin whose pages use the hub; empty: none
}

// StartBundled writes both configurations, checks them with the program's own command, and starts the server.
func StartBundled(t *testing.T, o BundledOptions) *Bundled {
	t.Helper()
	dir := Folder(t)
	ports := FreePorts(t, 2)
	origin := fmt.Sprintf("https://localhost:%d", ports[0])
	pages := ""
	if o.Pages != "" {
		pages = fmt.Sprintf("%q", o.Pages)
	}
	b := &Bundled{Site: Site{Data: dir, Origin: origin}, Issuer: origin + "/auth"}
	b.HubConfig = WriteFile(t, dir, "hub.yaml", fmt.Sprintf(`
public_url: %[1]s/.well-known/mercure
listen: localhost:%[2]d
tls: { mode: files, cert_file: tls/server.crt, key_file: tls/server.key }
authorization_server: { bundled: true, config_file: authz.yaml }
history: { path: history }
session: { profiles: { default: { scope: live } }, return_to_origins: [ %[5]s ] }
cors_origins: [ %[5]s ]
ops: { listen: 127.0.0.1:%[3]d }
log: { level: debug }
%[4]s
`, origin, ports[0], ports[1], o.Hub, pages))
	b.Config = WriteFile(t, dir, "authz.yaml", fmt.Sprintf(`
issuer: %[1]s
store: { path: authz.db, secret_file: authz.secret }
resources: [ { id: %[2]s/.well-known/mercure, name: Test hub } ]
policies:
  - id: own
    grant: [ { actions: [subscribe], topics: [ { match: "https://example.com/users/{{user.name}}/*", match_type: urlpattern } ] } ]
%[3]s
scopes: { live: [ { actions: [subscribe], topics: [ { match: "*" } ] } ] }
%[4]s
`, b.Issuer, origin, o.Policies, o.Authz))
	Must(t, "", "hub", "config", "check", "--config", b.HubConfig)
	b.start(t)
	return b
}

func (b *Bundled) start(tb testing.TB) {
	tb.Helper()
	b.Process = Start(tb, "hub", "serve", "--config", b.HubConfig)
	b.WaitFor("hub is ready")
}

// Restart starts the server again after it has been stopped or killed.
func (b *Bundled) Restart() {
	tb := b.T
	tb.Helper()
	b.start(tb)
}
