package devapp

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/app/authzapp"
	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

const (
	// headerLife is how long the tokens of the header files live, headerRefresh how often they are replaced, and keysRefresh how soon
	// after a change of the keys: it may be that their tokens are refused from then on.
	headerLife    = 10 * time.Minute
	headerRefresh = 4 * time.Minute
	keysRefresh   = time.Second
)

// writeConfig writes the effective configuration of the HTTPS face, which other commands read through --data.
func (a *App) writeConfig() error {
	s := a.sites[0]
	h := a.hubConfig
	h.Listen, h.TLS = a.options.Listen, a.faceTLS()
	h.Issuers = []config.Issuer{{ID: s.origin, AuthorizationServer: true}}
	text, err := config.Print(&config.Loaded[config.Hub]{Value: h})
	if err != nil {
		return fmt.Errorf("write hub configuration: %w", err)
	}
	if err := a.folder.WriteFile("hub.yaml", []byte(text)); err != nil {
		return err
	}
	text, err = config.Print(&config.Loaded[config.Authz]{Value: a.authzConfig(s)})
	if err != nil {
		return fmt.Errorf("write authorization server configuration: %w", err)
	}
	return a.folder.WriteFile("authz.yaml", []byte(text))
}

func (a *App) faceTLS() config.TLS {
	return config.TLS{Mode: "files", CertFile: config.File(a.folder.Join("tls", "server.crt")), KeyFile: config.File(a.folder.Join("tls", "server.key"))}
}

// authzConfig is the configuration of a face's authorization server. A person or a client may be granted what it asks for, on this
// machine alone; the start page asks for the demo's topics.
func (a *App) authzConfig(s *site) config.Authz {
	c := config.DefaultAuthz()
	c.Issuer, c.Listen, c.TLS = s.origin, a.options.Listen, a.faceTLS()
	c.Store.Path, c.Store.SecretFile = config.File(a.folder.StoreFile()), config.File(a.folder.SecretFile())
	c.Resources = []config.Resource{{ID: s.hubURL, Name: hubName, HubURL: a.sites[0].hubURL}}
	client := config.Client{
		ID: brokerID, Name: brokerName, AuthMethod: as.AuthPrivateKeyJWT, JWKSFile: config.File(a.folder.Join(brokerKeySet)),
		GrantTypes: authzapp.BrokerGrants(), Broker: true,
	}
	for _, each := range a.sites {
		client.RedirectURIs = append(client.RedirectURIs, each.hubURL+authzapp.CallbackPath)
	}
	c.Clients = []config.Client{client}
	actions := []string{string(rar.Publish), string(rar.Subscribe)}
	demo := config.Detail{Actions: actions, Topics: []config.Topic{{Match: a.topicBase() + "/*", MatchType: string(topic.URLPattern)}}}
	everything := config.Detail{Actions: actions, Topics: []config.Topic{{Match: topic.Wildcard, MatchType: string(topic.Exact)}}}
	c.Policies = []config.Policy{
		{
			ID: "demo", When: config.When{Clients: []string{brokerID}}, Grant: []config.Detail{demo},
			OnMissingRequest: string(as.MissingGrantAll), OnExcess: string(as.ExcessTrim),
		},
		{
			ID: "development", Grant: []config.Detail{everything},
			OnMissingRequest: string(as.MissingDeny), OnExcess: string(as.ExcessDeny),
		},
	}
	c.Scopes = map[string][]config.Detail{scopeLive: {demo}}
	return c
}

// keepHeaders keeps the credentials of the printed commands fresh until ctx ends.
func (a *App) keepHeaders(ctx context.Context) error {
	tick := time.NewTicker(keysRefresh)
	defer tick.Stop()
	ring := a.sites[0].issuer.Ring
	keys, due := ring.KeysVersion(), time.Now().Add(headerRefresh)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		version := ring.KeysVersion()
		if version == keys && time.Now().Before(due) {
			continue
		}
		if err := a.writeHeaders(ctx); err != nil {
			a.options.Logger.LogAttrs(ctx, slog.LevelError, "credentials of the printed commands are not renewed", slog.String("error", err.Error()))
		}
		keys, due = version, time.Now().Add(headerRefresh)
	}
}

// writeHeaders writes an Authorization header for each printed command, readable by the user alone.
func (a *App) writeHeaders(ctx context.Context) error {
	s := a.sites[0]
	for action, name := range map[rar.Action]string{rar.Publish: a.folder.PublishHeaderFile(), rar.Subscribe: a.folder.SubscribeHeaderFile()} {
		compact, err := as.MintOffline(ctx, a.core.Store, s.issuer.Ring, as.OfflineRequest{
			Issuer: s.origin, Resource: as.Resource{ID: s.hubURL, HubURL: s.hubURL},
			Subject: "hub-dev", Actor: "hub dev", TTL: headerLife,
			Details: []rar.Detail{{Actions: []rar.Action{action}, Topics: []rar.TopicMatcher{{Match: topic.Wildcard, MatchType: topic.Exact}}}},
		})
		if err != nil {
			return err
		}
		if err := a.folder.WriteFile(filepath.Base(name), []byte("Authorization: Bearer "+compact+"\n")); err != nil {
			return err
		}
	}
	return nil
}
