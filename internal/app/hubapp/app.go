package hubapp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cinnabar-hub/cinnabar/internal/app"
	"github.com/cinnabar-hub/cinnabar/internal/app/authzapp"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/internal/hub/hubhttp"
	"github.com/cinnabar-hub/cinnabar/internal/obs"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// App is the process of 'hub serve'.
type App struct {
	config   config.Hub
	logger   *slog.Logger
	registry *prometheus.Registry
	engine   *Engine
	face     *Face
	tls      *tls.Config
	bundled  *bundled // nil: the authorization server runs elsewhere
	servers  app.Servers
	stack    app.Stack
}

// New builds the hub of a validated configuration. authz is the configuration of the bundled authorization server (LoadBundled),
// nil when there is none. On an error everything it opened is closed.
func New(ctx context.Context, c config.Hub, authz *config.Authz, logger *slog.Logger) (_ *App, err error) {
	a := &App{config: c, logger: logger, registry: obs.NewRegistry()}
	metrics, err := obs.NewMetrics(a.registry)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	if a.tls, err = app.TLSConfig(c.TLS, logger); err != nil {
		return nil, err
	}
	options, err := faceOptions(c, logger)
	if err != nil {
		return nil, err
	}
	options.Metrics = metrics
	defer func() {
		if err != nil {
			err = errors.Join(err, a.stack.Close())
		}
	}()
	if authz != nil {
		if a.bundled, err = openBundled(ctx, c, *authz, logger); err != nil {
			return nil, err
		}
		a.stack.Push("authorization server", a.bundled.core.Close)
		a.bundled.join(&options)
	}
	if a.engine, err = OpenEngine(ctx, EngineOptions{Config: c, Metrics: metrics, Logger: logger}); err != nil {
		return nil, err
	}
	a.stack.Push("hub", a.engine.Close)
	if a.face, err = a.engine.Face(options); err != nil {
		return nil, err
	}
	if a.bundled != nil {
		err = a.bundled.register(a.face.Echo, options.ClientIP)
	}
	return a, err
}

// Check builds what New builds, but opens no store: it finds what is wrong with the files that a configuration names.
func Check(c config.Hub, authz *config.Authz, logger *slog.Logger) error {
	if _, err := app.TLSConfig(c.TLS, logger); err != nil {
		return err
	}
	if authz != nil {
		if err := authzapp.Check(*authz, logger); err != nil {
			return fmt.Errorf("authorization_server.config_file: %w", err)
		}
	}
	_, err := faceOptions(c, logger)
	return err
}

func faceOptions(c config.Hub, logger *slog.Logger) (FaceOptions, error) {
	issuers, err := TrustedIssuers(c.Issuers, logger)
	if err != nil {
		return FaceOptions{}, err
	}
	prefixes, err := app.Prefixes(c.TrustedProxies)
	if err != nil {
		return FaceOptions{}, err
	}
	sess, client, err := broker(c)
	if err != nil {
		return FaceOptions{}, err
	}
	o := FaceOptions{
		Hub:           hubOptions(c),
		Issuers:       issuers,
		DetailLimits:  rar.DefaultLimits(),
		Session:       sess,
		SessionClient: client,
		RefuseTokens:  c.TLS.Mode == "off" && !c.TLS.BehindTLSProxy && !isLoopback(c.Listen),
		ClientIP:      httpserver.ClientIP(prefixes),
		Logger:        logger,
	}
	if o.RefuseTokens {
		logger.Warn("tokens are refused: this hub speaks plain HTTP outside loopback; use TLS, or set tls.behind_tls_proxy when a proxy in front ends it")
	}
	o.DetailLimits.Details, o.DetailLimits.TopicsPerDetail = c.Limits.Details, c.Limits.TopicsPerDetail
	o.DetailLimits.PatternBytes = int(c.Limits.Pattern)
	if c.TLS.Mode != "off" {
		o.HSTS = app.HSTSAge
	}
	return o, nil
}

func hubOptions(c config.Hub) hubhttp.Options {
	o := hubhttp.Options{
		PublicURL: c.PublicURL, Resource: c.Resource, ResourceName: c.ResourceName,
		Anonymous: c.Anonymous, CookieName: c.Cookie.Name,
		CORSOrigins: c.CORSOrigins, PublishOrigins: c.PublishOrigins,
		Limits:                limits(c.Limits),
		ConnectionsPerAddress: c.Limits.ConnectionsPerAddress, ConnectionsTotal: c.Limits.ConnectionsTotal,
	}
	for _, is := range c.Issuers {
		if is.AuthorizationServer {
			o.AuthorizationServers = append(o.AuthorizationServers, is.ID)
		}
	}
	return o
}

// Run serves until ctx ends or something fails, then drains and closes everything. It is called once.
func (a *App) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, a.stack.Close()) }()
	workers := app.NewWorkers(ctx)
	defer func() { err = errors.Join(err, workers.Stop()) }()
	checks := []obs.ReadyCheck{{Name: "history", Check: a.engine.Log.Ready}, {Name: "hub", Check: a.engine.Hub.Ready}}
	if a.bundled != nil {
		workers.Go("authorization server", a.bundled.issuer.Run)
		checks = append(checks, obs.ReadyCheck{Name: "store", Check: a.bundled.core.Store.Ready})
	}
	a.engine.Start(ctx)
	defer func() { err = errors.Join(err, a.servers.Shutdown(ctx, app.ShutdownGrace)) }()
	srv, err := a.servers.Start(ctx, httpserver.ServerOptions{Addr: a.config.Listen, Handler: a.face.Echo, TLS: a.tls, Logger: a.logger})
	if err != nil {
		return app.Busy(err, "listen")
	}
	if err := a.servers.StartOps(ctx, a.config.Ops, a.registry, a.logger, checks...); err != nil {
		return app.Busy(err, "ops.listen")
	}
	a.logger.LogAttrs(ctx, slog.LevelInfo, "hub is ready",
		slog.String("listen", srv.Addr().String()), slog.String("public_url", a.config.PublicURL), slog.String("history", a.config.History.Driver))
	select {
	case <-ctx.Done():
	case <-a.engine.Failed():
	case <-workers.Failed():
	case err := <-a.servers.Failed():
		return err
	}
	a.logger.LogAttrs(ctx, slog.LevelInfo, "hub is stopping")
	return a.engine.Drain(context.WithoutCancel(ctx))
}
