package devapp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cinnabar-hub/cinnabar/internal/app"
	"github.com/cinnabar-hub/cinnabar/internal/app/authzapp"
	"github.com/cinnabar-hub/cinnabar/internal/app/hubapp"
	"github.com/cinnabar-hub/cinnabar/internal/as/account"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/devcert"
	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/internal/obs"
	"github.com/cinnabar-hub/cinnabar/internal/revocation"
	"github.com/cinnabar-hub/cinnabar/internal/shell"
)

// App is the development server.
type App struct {
	options   Options
	hubConfig config.Hub
	folder    *folder
	tls       *tls.Config
	addresses [2]address // of the HTTPS face and of the plain one
	ops       string     // address of the listener for operators; empty: none
	sites     [2]*site
	registry  *prometheus.Registry
	metrics   *obs.Metrics
	core      *authzapp.Core
	engine    *hubapp.Engine
	revoked   *revocation.List
	servers   app.Servers
	stack     app.Stack
	ready     chan struct{} // closed once listening
}

// New opens the data folder and builds both faces. On an error everything it opened is closed.
func New(ctx context.Context, o Options) (_ *App, err error) {
	a := &App{options: o, registry: obs.NewRegistry(), ready: make(chan struct{})}
	if a.addresses[0], err = parseAddress("--listen", o.Listen); err != nil {
		return nil, err
	}
	if a.addresses[1], err = parseAddress("--http", o.HTTP); err != nil {
		return nil, err
	}
	if o.Ops != "" {
		at, err := parseAddress("--ops", o.Ops)
		if err != nil {
			return nil, err
		}
		a.ops = net.JoinHostPort(at.hosts[0], strconv.Itoa(at.port))
	}
	a.sites = [2]*site{newSite(a.addresses[0].origin("https", 443), false), newSite(a.addresses[1].origin("http", 80), true)}
	if a.metrics, err = obs.NewMetrics(a.registry); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.stack.Close())
		}
	}()
	if err := a.open(ctx); err != nil {
		return nil, err
	}
	return a, a.build(ctx)
}

// open opens what is on disk.
func (a *App) open(ctx context.Context) error {
	var err error
	if a.folder, err = openFolder(a.options.DataDir, a.options.Ephemeral); err != nil {
		return err
	}
	a.stack.Push("data folder", a.folder.close)
	cert, _, err := devcert.Certificate(a.folder.TLSDir(), time.Now())
	if err != nil {
		return err
	}
	a.tls = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	a.core, err = authzapp.OpenCore(ctx, authzapp.CoreOptions{
		StorePath: a.folder.StoreFile(), SecretPath: a.folder.SecretFile(), Serve: true, Logger: a.options.Logger,
	})
	if err != nil {
		return err
	}
	a.stack.Push("store", a.core.Close)
	a.hubConfig = config.DefaultHub()
	a.hubConfig.PublicURL, a.hubConfig.Resource, a.hubConfig.ResourceName = a.sites[0].hubURL, a.sites[0].hubURL, hubName
	a.hubConfig.Subscriptions = true
	a.hubConfig.Drain = time.Second // somebody waits at the terminal
	a.hubConfig.ControlSocket = config.File(a.folder.ControlSocket())
	a.hubConfig.History.Path = config.File(a.folder.HistoryDir())
	if a.options.Ephemeral {
		a.hubConfig.History.Driver = "memory"
	}
	a.engine, err = hubapp.OpenEngine(ctx, hubapp.EngineOptions{Config: a.hubConfig, Metrics: a.metrics, Logger: a.options.Logger})
	if err != nil {
		return err
	}
	a.stack.Push("hub", a.engine.Close)
	return nil
}

// build builds both faces and what they share.
func (a *App) build(ctx context.Context) error {
	_, err := a.core.Accounts.Add(ctx, account.Draft{Username: demoUser, Demo: true, Roles: []string{demoUser}})
	if err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("make demo user: %w", err)
	}
	broker, err := a.core.Broker(brokerID)
	if err != nil {
		return err
	}
	if err := a.folder.WriteFile(brokerKeySet, broker.KeySet); err != nil {
		return err
	}
	if a.revoked, err = a.engine.FollowStore(ctx, a.core.Store, a.sites[0].origin, a.sites[1].origin); err != nil {
		return err
	}
	for _, s := range a.sites {
		if err := a.buildSite(ctx, s, broker); err != nil {
			return fmt.Errorf("%s face: %w", s.name(), err)
		}
	}
	for _, s := range a.sites {
		if err := a.registerDemo(s); err != nil {
			return err
		}
	}
	if err := a.writeConfig(); err != nil {
		return err
	}
	return a.writeHeaders(ctx)
}

// Info is what the banner says.
type Info struct {
	HubURL, Issuer, StartPage, PlainStartPage string
	DemoUser, DataDir                         string
	Ephemeral                                 bool
	// Trust is the command line that makes this machine trust the certificate.
	Trust    string
	Commands []Command
}

// Info describes the server.
func (a *App) Info() Info {
	return Info{
		HubURL: a.sites[0].hubURL, Issuer: a.sites[0].origin,
		StartPage: a.sites[0].origin + "/", PlainStartPage: a.sites[1].origin + "/",
		DemoUser: demoUser, DataDir: a.folder.Path(), Ephemeral: a.options.Ephemeral,
		Trust:    shell.Line(a.options.Executable, "dev", "--trust", "--data", a.folder.Path()),
		Commands: a.commands(),
	}
}

// Ready is closed once both faces listen.
func (a *App) Ready() <-chan struct{} { return a.ready }

// Run serves until ctx ends or something fails, then drains and closes everything. It is called once.
func (a *App) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, a.stack.Close()) }()
	workers := app.NewWorkers(ctx)
	defer func() { err = errors.Join(err, workers.Stop()) }()
	for _, s := range a.sites {
		workers.Go("authorization server of the "+s.name()+" face", s.issuer.Run)
	}
	workers.Go("credentials", a.keepHeaders)
	if err := a.engine.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.servers.Shutdown(ctx, app.ShutdownGrace)) }()
	if err := a.listen(ctx); err != nil {
		return err
	}
	close(a.ready)
	select {
	case <-ctx.Done():
	case <-a.engine.Failed():
	case <-workers.Failed():
	case err := <-a.servers.Failed():
		return err
	}
	retired := a.servers.Retire(ctx, a.hubConfig.Drain+app.ShutdownGrace)
	return errors.Join(a.engine.Drain(context.WithoutCancel(ctx)), retired())
}

func (a *App) listen(ctx context.Context) error {
	for i, flag := range []string{"--listen", "--http"} {
		config := a.tls
		if a.sites[i].plain {
			config = nil
		}
		if err := a.listenFace(ctx, a.addresses[i], a.sites[i].face.Echo, config); err != nil {
			return app.Busy(err, flag)
		}
	}
	checks := []obs.ReadyCheck{
		{Name: "history", Check: a.engine.Log.Ready}, {Name: "hub", Check: a.engine.Hub.Ready}, {Name: "store", Check: a.core.Store.Ready},
	}
	err := a.servers.StartOps(ctx, config.Ops{Listen: a.ops}, a.registry, a.options.Logger, checks...)
	return app.Busy(err, "--ops")
}

func (a *App) listenFace(ctx context.Context, at address, handler *echo.Echo, tlsConfig *tls.Config) error {
	for _, host := range at.hosts {
		_, err := a.servers.Start(ctx, httpserver.ServerOptions{
			Addr: net.JoinHostPort(host, strconv.Itoa(at.port)), Handler: handler, TLS: tlsConfig, Logger: a.options.Logger,
		})
		if err != nil {
			return err
		}
	}
	a.options.Logger.LogAttrs(ctx, slog.LevelDebug, "face listens", slog.Int("port", at.port), slog.Bool("tls", tlsConfig != nil))
	return nil
}
