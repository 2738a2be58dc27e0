package hubapp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cinnabar-hub/cinnabar/internal/app"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/internal/hub/hubhttp"
	"github.com/cinnabar-hub/cinnabar/internal/obs"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// hstsAge is what browsers are told to remember of a hub that speaks TLS.
const hstsAge = 180 * 24 * time.Hour

// App is the process of 'hub serve'.
type App struct {
	config   config.Hub
	logger   *slog.Logger
	registry *prometheus.Registry
	engine   *Engine
	face     *Face
	tls      *tls.Config
	servers  app.Servers
	addr     net.Addr
	ready    chan struct{} // closed once listening
}

// New builds the hub of a validated configuration. On an error everything it opened is closed.
func New(ctx context.Context, c config.Hub, logger *slog.Logger) (_ *App, err error) {
	if c.AuthorizationServer.Bundled {
		return nil, errors.New("authorization_server.bundled: not available in this version; run authz serve beside the hub")
	}
	a := &App{config: c, logger: logger, registry: obs.NewRegistry(), ready: make(chan struct{})}
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
	if a.engine, err = OpenEngine(ctx, EngineOptions{Config: c, Metrics: metrics, Logger: logger}); err != nil {
		return nil, err
	}
	if a.face, err = a.engine.Face(options); err != nil {
		return nil, errors.Join(err, a.engine.Close())
	}
	return a, nil
}

// Check builds what New builds, but opens no store: it finds what is wrong with the files that a configuration names.
func Check(c config.Hub, logger *slog.Logger) error {
	if _, err := app.TLSConfig(c.TLS, logger); err != nil {
		return err
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
	clientIP := httpserver.ClientIP(prefixes)
	o := FaceOptions{
		Hub:           hubOptions(c),
		Issuers:       issuers,
		DetailLimits:  rar.DefaultLimits(),
		Session:       sess,
		SessionClient: client,
		RefuseTokens:  c.TLS.Mode == "off" && !c.TLS.BehindTLSProxy && !isLoopback(c.Listen),
		ClientIP:      func(r *http.Request) netip.Addr { return clientIP(r) },
		Logger:        logger,
	}
	if o.RefuseTokens {
		logger.Warn("tokens are refused: this hub speaks plain HTTP outside loopback; use TLS, or set tls.behind_tls_proxy when a proxy in front ends it")
	}
	o.DetailLimits.Details, o.DetailLimits.TopicsPerDetail = c.Limits.Details, c.Limits.TopicsPerDetail
	o.DetailLimits.PatternBytes = int(c.Limits.Pattern)
	if c.TLS.Mode != "off" {
		o.HSTS = hstsAge
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

// Ready is closed once the hub listens.
func (a *App) Ready() <-chan struct{} { return a.ready }

// Addr is where the hub listens, after Ready.
func (a *App) Addr() net.Addr { return a.addr }

// Run serves until ctx ends or something fails, then drains and closes everything. It is called once.
func (a *App) Run(ctx context.Context) (err error) {
	a.engine.Start(ctx)
	defer func() { err = errors.Join(err, a.engine.Close()) }()
	defer func() { err = errors.Join(err, a.servers.Shutdown(ctx)) }()
	srv, err := a.servers.Start(ctx, httpserver.ServerOptions{Addr: a.config.Listen, Handler: a.face.Echo, TLS: a.tls, Logger: a.logger})
	if err != nil {
		return app.Busy(err, "listen")
	}
	checks := []obs.ReadyCheck{{Name: "history", Check: a.engine.Log.Ready}, {Name: "hub", Check: a.engine.Hub.Ready}}
	if err := a.servers.StartOps(ctx, a.config.Ops, a.registry, a.logger, checks...); err != nil {
		return err
	}
	a.addr = srv.Addr()
	close(a.ready)
	a.logger.LogAttrs(ctx, slog.LevelInfo, "hub is ready",
		slog.String("listen", a.addr.String()), slog.String("public_url", a.config.PublicURL), slog.String("history", a.config.History.Driver))
	select {
	case <-ctx.Done():
	case <-a.engine.Failed():
	case err := <-a.servers.Failed():
		return err
	}
	a.logger.LogAttrs(ctx, slog.LevelInfo, "hub is stopping")
	return a.engine.Drain(context.WithoutCancel(ctx))
}
