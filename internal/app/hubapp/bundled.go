package hubapp

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/app/authzapp"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/keyring"
	"github.com/cinnabar-hub/cinnabar/internal/revocation"
	"github.com/cinnabar-hub/cinnabar/internal/session"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

const (
	bundledBrokerID   = "cinnabar-hub"
	bundledBrokerName = "Cinnabar hub"
)

// bundled is what stays of the authorization server in the hub's process when its configuration is reloaded. Hub and server still
// talk through formats alone: tokens, and HTTP that does not leave the process.
type bundled struct {
	core    *authzapp.Core
	ring    *keyring.Ring
	broker  authzapp.Broker
	revoked *revocation.List
	issuer  *authzapp.Issuer // the first one: what it runs serves those that a reload makes as well
}

func openBundled(ctx context.Context, authz config.Authz, logger *slog.Logger) (*bundled, error) {
	core, err := authzapp.OpenCore(ctx, authzapp.CoreOptions{
		StorePath: string(authz.Store.Path), SecretPath: string(authz.Store.SecretFile), Serve: true, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	b := &bundled{core: core}
	if b.broker, err = core.Broker(bundledBrokerID); err == nil {
		b.ring, err = core.OpenRing(ctx, authz.Issuer, authz.Keys.Algorithm)
	}
	if err != nil {
		_ = core.Close() // the error that matters is the first
		return nil, err
	}
	return b, nil
}

// join makes the hub trust the server and log people in through it. The transport gets its handler before the first request.
func (b *bundled) join(o *FaceOptions, c config.Hub, authz config.Authz) (*bundledTransport, error) {
	u, err := url.Parse(authz.Issuer)
	if err != nil {
		return nil, err
	}
	client, transport := authzapp.Transport(u.Scheme + "://" + u.Host)
	o.Session, o.SessionClient = bundledSession(c, authz, b.broker), client
	o.Issuers = append(o.Issuers, token.Issuer{ID: authz.Issuer, Keys: b.ring, AuthorizationServer: true})
	o.Hub.AuthorizationServers = append(o.Hub.AuthorizationServers, authz.Issuer)
	return &bundledTransport{set: func(h http.Handler) { transport.Handler = h }}, nil
}

// bundledSession gives the options of the session broker that logs people in through a bundled server.
func bundledSession(c config.Hub, authz config.Authz, broker authzapp.Broker) *session.Options {
	o := sessionOptions(c)
	o.Issuer, o.ClientID, o.ClientKey, o.CookieKeys = authz.Issuer, broker.ClientID, broker.ClientKey, [][]byte{broker.CookieKey}
	return o
}

// anyBroker stands for the broker while there is no store to derive it from.
func anyBroker() (authzapp.Broker, error) {
	key, err := token.Generate("EdDSA")
	if err != nil {
		return authzapp.Broker{}, err
	}
	private, err := key.PrivateJWK()
	return authzapp.Broker{ClientID: bundledBrokerID, ClientKey: private, CookieKey: make([]byte, session.CookieKeyBytes)}, err
}

// bundledTransport is the way of the broker's requests to the server of the same process.
type bundledTransport struct{ set func(http.Handler) }

// register builds the server and mounts its endpoints beside the hub's.
func (b *bundled) register(ctx context.Context, e *echo.Echo, c config.Hub, authz config.Authz, clientIP func(*http.Request) netip.Addr) error {
	options, err := authzapp.ServerOptions(authz)
	if err != nil {
		return err
	}
	options.Clients = append(options.Clients, b.broker.Client(bundledBrokerName, true, c.PublicURL))
	issuer, err := b.core.Issuer(ctx, options, b.ring, b.revoked.Poke)
	if err != nil {
		return err
	}
	if b.issuer == nil {
		b.issuer = issuer
	}
	return b.core.Register(e, issuer, authzapp.EdgeOptions{ClientIP: clientIP})
}
