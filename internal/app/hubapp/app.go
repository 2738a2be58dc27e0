package hubapp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cinnabar-hub/cinnabar/internal/app"
	"github.com/cinnabar-hub/cinnabar/internal/app/authzapp"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/internal/obs"
)

// App is the process of 'hub serve'.
type App struct {
	config   config.Hub // that of the start, for what cannot be reloaded
	logger   *slog.Logger
	registry *prometheus.Registry
	metrics  *obs.Metrics
	engine   *Engine
	tls      *tls.Config
	bundled  *bundled // nil: the authorization server runs elsewhere
	handler  *httpserver.Swap
	servers  app.Servers
	stack    app.Stack

	verdicts verdicts

	reloading sync.Mutex // protects the fields below
	site      *site
	followed  map[string]followed // authorization servers elsewhere, by issuer
	ended     bool
}

// New builds the hub of a validated configuration. authz is the configuration of the bundled authorization server (LoadBundled),
// nil when there is none. On an error everything it opened is closed.
func New(ctx context.Context, c config.Hub, authz *config.Authz, logger *slog.Logger) (_ *App, err error) {
	a := &App{config: c, logger: logger, registry: obs.NewRegistry()}
	if a.metrics, err = obs.NewMetrics(a.registry); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	if a.tls, err = app.TLSConfig(c.TLS, logger); err != nil {
		return nil, err
	}
	plan, err := planSite(c, authz, nil, logger) // before anything is made
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.stack.Close())
		}
	}()
	// This waits for a predecessor. While that serves, the store is its own: it must not be migrated, nor its clients exchanged.
	if a.engine, err = OpenEngine(ctx, EngineOptions{Config: c, Metrics: a.metrics, Logger: logger}); err != nil {
		return nil, err
	}
	if authz != nil {
		if a.bundled, err = openBundled(ctx, *authz, logger); err != nil {
			return nil, errors.Join(err, a.engine.Close())
		}
		a.stack.Push("authorization server", a.bundled.core.Close) // the engine reads its log until it is closed
	}
	a.stack.Push("hub", a.engine.Close)
	if authz != nil {
		if a.bundled.revoked, err = a.engine.FollowStore(ctx, a.bundled.core.Store, authz.Issuer); err != nil {
			return nil, err
		}
	}
	if a.followed, err = a.followRemotes(ctx, plan.remotes); err != nil {
		return nil, err
	}
	if a.site, err = a.build(ctx, plan); err != nil {
		return nil, err
	}
	a.warnOfClearText(ctx)
	a.handler = httpserver.NewSwap(a.site.face.Echo)
	return a, nil
}

// warnOfClearText says why every token is refused, when it is.
func (a *App) warnOfClearText(ctx context.Context) {
	if a.site.options.RefuseTokens {
		a.logger.LogAttrs(ctx, slog.LevelWarn, clearTextWarning)
	}
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
	plan, err := planSite(c, authz, nil, logger)
	if err == nil && plan.options.RefuseTokens {
		logger.Warn(clearTextWarning)
	}
	return err
}

// Run serves until ctx ends or something fails, then drains and closes everything. It is called once.
func (a *App) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, a.stack.Close()) }()
	defer a.endReloads()
	workers := app.NewWorkers(ctx)
	defer func() { err = errors.Join(err, workers.Stop()) }()
	checks := []obs.ReadyCheck{{Name: "history", Check: a.engine.Log.Ready}, {Name: "hub", Check: a.engine.Hub.Ready}}
	if a.bundled != nil {
		workers.Go("authorization server", a.bundled.issuer.Run)
		checks = append(checks, obs.ReadyCheck{Name: "store", Check: a.bundled.core.Store.Ready})
	}
	if err := a.engine.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.servers.Shutdown(ctx, app.ShutdownGrace)) }()
	c := a.config
	srv, err := a.servers.Start(ctx, httpserver.ServerOptions{Addr: c.Listen, Handler: a.handler, TLS: a.tls, Logger: a.logger})
	if err != nil {
		return app.Busy(err, "listen")
	}
	if err := a.servers.StartOps(ctx, c.Ops, a.registry, a.logger, checks...); err != nil {
		return app.Busy(err, "ops.listen")
	}
	a.logger.LogAttrs(ctx, slog.LevelInfo, "hub is ready",
		slog.String("listen", srv.Addr().String()), slog.String("public_url", c.PublicURL), slog.String("history", c.History.Driver))
	select {
	case <-ctx.Done():
	case <-a.engine.Failed():
	case <-workers.Failed():
	case err := <-a.servers.Failed():
		return err
	}
	a.logger.LogAttrs(ctx, slog.LevelInfo, "hub is stopping")
	retired := a.servers.Retire(ctx, c.Drain+app.ShutdownGrace)
	return errors.Join(a.engine.Drain(context.WithoutCancel(ctx)), retired())
}

// endReloads waits for a reload that is under way, and refuses others.
func (a *App) endReloads() {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	a.ended = true
}
