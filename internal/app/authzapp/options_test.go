package authzapp_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/app/authzapp"
	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

func configuration() config.Authz {
	c := config.DefaultAuthz()
	c.Issuer, c.TLS.Mode = "https://auth.example.com", "off"
	c.Resources = []config.Resource{{ID: "https://hub.example.com/hub", Name: "Hub", HubURL: "https://hub.example.com/hub"}}
	c.Clients = []config.Client{{ID: "spa", AuthMethod: as.AuthNone, RedirectURIs: []string{"https://app.example.com/callback"}}}
	grant := []config.Detail{{
		Actions: []string{"publish", "subscribe"},
		Topics:  []config.Topic{{Match: "*"}, {Match: "/u/{{sub}}/*", MatchType: "urlpattern"}},
		Payload: map[string]any{"team": "red"},
	}}
	c.Policies = []config.Policy{{
		ID: "own", When: config.When{Clients: []string{"spa"}}, Grant: grant,
		OnMissingRequest: string(as.MissingGrantAll), OnExcess: string(as.ExcessTrim),
	}}
	c.Scopes = map[string][]config.Detail{"live": {{Actions: []string{"subscribe"}, Topics: []config.Topic{{Match: "*"}}}}}
	return c
}

func TestServerOptions(t *testing.T) {
	o, err := authzapp.ServerOptions(configuration())
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Validate(); err != nil {
		t.Errorf("Validate = %v", err)
	}
	wild := rar.TopicMatcher{Match: "*", MatchType: topic.Exact}
	want := []rar.Detail{{
		Actions: []rar.Action{rar.Publish, rar.Subscribe},
		Topics:  []rar.TopicMatcher{wild, {Match: "/u/{{sub}}/*", MatchType: topic.URLPattern}},
		Payload: []byte(`{"team":"red"}`),
	}}
	if diff := cmp.Diff(want, o.Policies[0].Grant); diff != "" {
		t.Errorf("grant (-want +got):\n%s", diff)
	}
	scope := map[string][]rar.Detail{"live": {{Actions: []rar.Action{rar.Subscribe}, Topics: []rar.TopicMatcher{wild}}}}
	if diff := cmp.Diff(scope, o.Scopes); diff != "" {
		t.Errorf("scopes (-want +got):\n%s", diff)
	}
	client := o.Clients[0]
	if client.Name != "spa" || !client.Static || client.SkipConsent {
		t.Errorf("client = %+v, want a static one that is named by its id and asks for consent", client)
	}
	again, err := authzapp.ServerOptions(configuration())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(client, again.Clients[0]); diff != "" {
		t.Errorf("a client differs between two starts:\n%s", diff)
	}
}

func TestCheck_refuses(t *testing.T) {
	large := filepath.Join(t.TempDir(), "large.jwks")
	if err := os.WriteFile(large, make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*config.Authz){
		"client spa: read key set": func(c *config.Authz) { c.Clients[0].JWKSFile = "missing" },
		"is larger than":           func(c *config.Authz) { c.Clients[0].JWKSFile = config.File(large) },
		"policy own: action":       func(c *config.Authz) { c.Policies[0].Grant[0].Actions[0] = "delete" },
		"policy own: ":             func(c *config.Authz) { c.Policies[0].Grant[0].Topics[0].MatchType = "regexp" },
		"scope live: a detail":     func(c *config.Authz) { c.Scopes["live"][0].Topics = nil },
		"trusted_proxies: ":        func(c *config.Authz) { c.TrustedProxies = []string{"proxy"} },
		"tls: ": func(c *config.Authz) {
			c.TLS = config.TLS{Mode: "files", CertFile: "missing.crt", KeyFile: "missing.key"}
		},
	} {
		c := configuration()
		change(&c)
		if err := authzapp.Check(c, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check = %v, want %q", err, want)
		}
	}
	if err := authzapp.Check(configuration(), slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("Check of a right configuration = %v", err)
	}
}
