package authzapp

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cinnabar-hub/cinnabar/internal/app"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/internal/keyring"
	"github.com/cinnabar-hub/cinnabar/internal/obs"
)

// App is the process of 'authz serve'.
type App struct {
	logger   *slog.Logger
	registry *prometheus.Registry
	core     *Core
	ring     *keyring.Ring
	issuer   *Issuer // the first one: what it runs serves those that a reload makes as well
	tls      *tls.Config
	handler  *httpserver.Swap
	clientIP httpserver.ClientIPFunc
	servers  app.Servers

	reloading sync.Mutex // protects config
	config    config.Authz
}

// New builds the authorization server of a validated configuration. On an error everything it opened is closed.
func New(ctx context.Context, c config.Authz, logger *slog.Logger) (_ *App, err error) {
	a := &App{config: c, logger: logger, registry: obs.NewRegistry()}
	prefixes, err := app.Prefixes(c.TrustedProxies)
	if err != nil {
		return nil, err
	}
	a.clientIP = httpserver.ClientIP(prefixes)
	if a.tls, err = app.TLSConfig(c.TLS, logger); err != nil {
		return nil, err
	}
	if _, err := ServerOptions(c); err != nil { // before anything is made
		return nil, err
	}
	a.core, err = OpenCore(ctx, CoreOptions{
		StorePath: string(c.Store.Path), SecretPath: string(c.Store.SecretFile), Serve: true, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.core.Close())
		}
	}()
	if a.ring, err = a.core.OpenRing(ctx, c.Issuer, c.Keys.Algorithm); err != nil {
		return nil, err
	}
	issuer, web, err := a.build(ctx, c)
	if err != nil {
		return nil, err
	}
	a.issuer, a.handler = issuer, httpserver.NewSwap(web)
	return a, nil
}

// build builds what a reload replaces.
func (a *App) build(ctx context.Context, c config.Authz) (*Issuer, *echo.Echo, error) {
	options, err := ServerOptions(c)
	if err != nil {
		return nil, nil, err
	}
	echoOptions := httpserver.EchoOptions{Logger: a.logger, AccessLog: a.logger.Enabled(ctx, slog.LevelDebug), ClientIP: a.clientIP}
	if a.tls != nil {
		echoOptions.HSTS = app.HSTSAge
	}
	web, err := httpserver.NewEcho(echoOptions)
	if err != nil {
		return nil, nil, err
	}
	issuer, err := a.core.Issuer(ctx, options, a.ring, nil)
	if err != nil {
		return nil, nil, err
	}
	return issuer, web, a.core.Register(web, issuer, EdgeOptions{ClientIP: a.clientIP})
}

// Check builds what New builds, but opens no store: it finds what is wrong with the files and policies of a configuration.
func Check(c config.Authz, logger *slog.Logger) error {
	options, err := ServerOptions(c)
	if err != nil {
		return err
	}
	if _, err := app.Prefixes(c.TrustedProxies); err != nil {
		return err
	}
	if _, err := app.TLSConfig(c.TLS, logger); err != nil {
		return err
	}
	return options.Validate()
}

// Reload takes over what may change while the server runs (Reloadable): its requests from now on are answered by it. A
// configuration that does not work changes nothing, and its error is returned. What else differs is logged: it needs a
// restart. It is safe for concurrent use.
func (a *App) Reload(ctx context.Context, c config.Authz) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	next := Reloadable(a.config, c)
	_, web, err := a.build(ctx, next)
	if err != nil {
		return err
	}
	a.handler.Replace(web)
	a.config = next
	LogReload(ctx, a.logger, config.Changed(next, c))
	return nil
}

// Reloadable gives the old configuration with what a running server takes over from the next one: clients, policies, scopes,
// resources and the lifetimes of tokens.
func Reloadable(old, next config.Authz) config.Authz {
	merged := old
	merged.Clients, merged.Policies, merged.Scopes = next.Clients, next.Policies, next.Scopes
	merged.Resources, merged.Tokens = next.Resources, next.Tokens
	return merged
}

// LogReload tells of a reload, and of the keys that differ and need a restart.
func LogReload(ctx context.Context, logger *slog.Logger, left []string) {
	logger.LogAttrs(ctx, slog.LevelInfo, "configuration reloaded")
	if len(left) > 0 {
		logger.LogAttrs(ctx, slog.LevelWarn, "these changes need a restart", slog.String("keys", strings.Join(left, ", ")))
	}
}

// Run serves until ctx ends or something fails, then finishes and closes everything. It is called once.
func (a *App) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, a.core.Close()) }()
	workers := app.NewWorkers(ctx)
	workers.Go("authorization server", a.issuer.Run)
	defer func() { err = errors.Join(err, workers.Stop()) }()
	a.reloading.Lock()
	c := a.config // what follows cannot be reloaded
	a.reloading.Unlock()
	defer func() { err = errors.Join(err, a.servers.Shutdown(ctx, c.Drain)) }()
	srv, err := a.servers.Start(ctx, httpserver.ServerOptions{Addr: c.Listen, Handler: a.handler, TLS: a.tls, Logger: a.logger})
	if err != nil {
		return app.Busy(err, "listen")
	}
	check := obs.ReadyCheck{Name: "store", Check: a.core.Store.Ready}
	if err := a.servers.StartOps(ctx, c.Ops, a.registry, a.logger, check); err != nil {
		return app.Busy(err, "ops.listen")
	}
	a.logger.LogAttrs(ctx, slog.LevelInfo, "authorization server is ready",
		slog.String("listen", srv.Addr().String()), slog.String("issuer", c.Issuer))
	select {
	case <-ctx.Done():
	case <-workers.Failed():
	case err := <-a.servers.Failed():
		return err
	}
	a.logger.LogAttrs(ctx, slog.LevelInfo, "authorization server is stopping")
	return nil
}
