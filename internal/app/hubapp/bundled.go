package hubapp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/cinnabar-hub/cinnabar/internal/app"
	"github.com/cinnabar-hub/cinnabar/internal/app/authzapp"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/session"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

const (
	bundledBrokerID   = "cinnabar-hub"
	bundledBrokerName = "Cinnabar hub"
)

// bundled is the authorization server in the hub's process. Hub and server still talk through formats alone: tokens, and HTTP
// that does not leave the process.
type bundled struct {
	core      *authzapp.Core
	issuer    *authzapp.Issuer
	session   *session.Options
	client    *http.Client
	transport *app.InMemory
}

func openBundled(ctx context.Context, c config.Hub, authz config.Authz, logger *slog.Logger) (_ *bundled, err error) {
	options, err := authzapp.ServerOptions(authz)
	if err != nil {
		return nil, err
	}
	b := &bundled{}
	b.core, err = authzapp.OpenCore(ctx, authzapp.CoreOptions{
		StorePath: string(authz.Store.Path), SecretPath: string(authz.Store.SecretFile), Serve: true, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.core.Close())
		}
	}()
	broker, err := b.core.Broker(bundledBrokerID)
	if err != nil {
		return nil, err
	}
	options.Clients = append(options.Clients, broker.Client(bundledBrokerName, true, c.PublicURL))
	if b.issuer, err = b.core.Issuer(ctx, options, authz.Keys.Algorithm); err != nil {
		return nil, err
	}
	b.session = sessionOptions(c)
	b.session.Issuer, b.session.ClientID, b.session.ClientKey = authz.Issuer, broker.ClientID, broker.ClientKey
	b.session.CookieKeys = [][]byte{broker.CookieKey}
	u, err := url.Parse(authz.Issuer)
	if err != nil {
		return nil, err
	}
	b.client, b.transport = authzapp.Transport(u.Scheme + "://" + u.Host)
	return b, nil
}

// join makes the hub trust the server and log people in through it.
func (b *bundled) join(o *FaceOptions) {
	id := b.issuer.Server.Issuer()
	o.Issuers = append(o.Issuers, token.Issuer{ID: id, Keys: b.issuer.Ring, AuthorizationServer: true})
	o.Hub.AuthorizationServers = append(o.Hub.AuthorizationServers, id)
	o.Session, o.SessionClient = b.session, b.client
}

// register mounts the server's endpoints beside the hub's.
func (b *bundled) register(e *echo.Echo, clientIP func(*http.Request) netip.Addr) error {
	b.transport.Handler = e
	return b.core.Register(e, b.issuer, authzapp.EdgeOptions{ClientIP: clientIP})
}
