package authzapp

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cinnabar-hub/cinnabar/internal/app"
	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/internal/obs"
)

// App is the process of 'authz serve'.
type App struct {
	config   config.Authz
	logger   *slog.Logger
	registry *prometheus.Registry
	core     *Core
	issuer   *Issuer
	echo     *echo.Echo
	tls      *tls.Config
	servers  app.Servers
}

// New builds the authorization server of a validated configuration. On an error everything it opened is closed.
func New(ctx context.Context, c config.Authz, logger *slog.Logger) (_ *App, err error) {
	a := &App{config: c, logger: logger, registry: obs.NewRegistry()}
	options, err := ServerOptions(c)
	if err != nil {
		return nil, err
	}
	prefixes, err := app.Prefixes(c.TrustedProxies)
	if err != nil {
		return nil, err
	}
	if a.tls, err = app.TLSConfig(c.TLS, logger); err != nil {
		return nil, err
	}
	echoOptions := httpserver.EchoOptions{Logger: logger, AccessLog: logger.Enabled(ctx, slog.LevelDebug), ClientIP: httpserver.ClientIP(prefixes)}
	if a.tls != nil {
		echoOptions.HSTS = app.HSTSAge
	}
	if a.echo, err = httpserver.NewEcho(echoOptions); err != nil {
		return nil, err
	}
	a.core, err = OpenCore(ctx, CoreOptions{
		StorePath: string(c.Store.Path), SecretPath: string(c.Store.SecretFile), Serve: true, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	if err = a.build(ctx, options, httpserver.ClientIP(prefixes)); err != nil {
		return nil, errors.Join(err, a.core.Close())
	}
	return a, nil
}

func (a *App) build(ctx context.Context, options as.Options, clientIP httpserver.ClientIPFunc) error {
	var err error
	if a.issuer, err = a.core.Issuer(ctx, options, a.config.Keys.Algorithm); err != nil {
		return err
	}
	return a.core.Register(a.echo, a.issuer, EdgeOptions{ClientIP: clientIP})
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

// Run serves until ctx ends or something fails, then finishes and closes everything. It is called once.
func (a *App) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, a.core.Close()) }()
	workers := app.NewWorkers(ctx)
	workers.Go("authorization server", a.issuer.Run)
	defer func() { err = errors.Join(err, workers.Stop()) }()
	defer func() { err = errors.Join(err, a.servers.Shutdown(ctx, a.config.Drain)) }()
	srv, err := a.servers.Start(ctx, httpserver.ServerOptions{Addr: a.config.Listen, Handler: a.echo, TLS: a.tls, Logger: a.logger})
	if err != nil {
		return app.Busy(err, "listen")
	}
	check := obs.ReadyCheck{Name: "store", Check: a.core.Store.Ready}
	if err := a.servers.StartOps(ctx, a.config.Ops, a.registry, a.logger, check); err != nil {
		return app.Busy(err, "ops.listen")
	}
	a.logger.LogAttrs(ctx, slog.LevelInfo, "authorization server is ready",
		slog.String("listen", srv.Addr().String()), slog.String("issuer", a.config.Issuer))
	select {
	case <-ctx.Done():
	case <-workers.Failed():
	case err := <-a.servers.Failed():
		return err
	}
	a.logger.LogAttrs(ctx, slog.LevelInfo, "authorization server is stopping")
	return nil
}
