package hubapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/app"
	"github.com/cinnabar-hub/cinnabar/internal/app/historyapp"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/control"
	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/hub/hubhttp"
	"github.com/cinnabar-hub/cinnabar/internal/hub/sink"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/presence"
	"github.com/cinnabar-hub/cinnabar/internal/revocation"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// EngineOptions says what an engine is built from.
type EngineOptions struct {
	// Config gives the history, the limits and the times; its public URL is what relative topics and patterns resolve against.
	Config config.Hub
	// Metrics counts; nil counts nothing.
	Metrics EngineMetrics
	// Logger is required.
	Logger *slog.Logger
}

// Engine is what the faces of one hub share: the history, the hub and the connections it writes to.
type Engine struct {
	Hub      *hub.Hub
	Sinks    *sink.Set
	Log      history.Log
	Compiler *topic.Compiler

	drain         time.Duration
	controlSocket string
	control       *control.Server // nil: none
	revocations   *revocations
	connections   *hubhttp.Connections // of all faces, whatever takes their place
	metrics       EngineMetrics
	logger        *slog.Logger
	workers       *app.Workers
	stack         app.Stack
	closeStores   func() error // once: the directory of subscribers, and the history
}

// EngineMetrics counts what the engine and the revocation lists do.
type EngineMetrics interface {
	hub.Metrics
	revocation.Metrics
	// RevocationsLeft tells that a revocation log is followed no longer.
	RevocationsLeft(source string)
}

// OpenEngine opens the history and builds the engine; nothing runs before Start. The caller closes it.
func OpenEngine(ctx context.Context, o EngineOptions) (_ *Engine, err error) {
	e := &Engine{
		workers: app.NewWorkers(ctx), // they outlive ctx, which only gives them its values
		drain:   o.Config.Drain, controlSocket: string(o.Config.ControlSocket), revocations: &revocations{},
		connections: hubhttp.NewConnections(o.Config.Limits.ConnectionsPerAddress, o.Config.Limits.ConnectionsTotal), metrics: o.Metrics, logger: o.Logger,
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	if e.Compiler, err = newCompiler(o.Config); err != nil {
		return nil, err
	}
	// A predecessor on the same folder gives it back early in its drain.
	if e.Log, err = historyapp.Open(ctx, o.Config.History, o.Config.Drain+5*time.Second, o.Logger); err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	e.closeStores = sync.OnceValue(e.Log.Close)
	e.stack.Push("history", func() error { return e.closeStores() })
	directory, err := e.openDirectory(o)
	if err != nil {
		return nil, err
	}
	if e.Sinks, err = sink.NewSet(sink.Options{}); err != nil {
		return nil, fmt.Errorf("watch connections: %w", err)
	}
	e.stack.Push("connections", e.Sinks.Close)
	opts := hub.DefaultOptions()
	opts.Log, opts.Compiler, opts.Logger = e.Log, e.Compiler, o.Logger
	opts.Heartbeat, opts.MaxLifetime, opts.Retry = o.Config.Heartbeat, o.Config.MaxConnectionLifetime, o.Config.Retry
	opts.DrainWindow = o.Config.Drain
	opts.Backlog, opts.TotalBacklog = int(o.Config.Limits.Backlog), int64(o.Config.Limits.BacklogTotal)
	opts.Revoked = e.revocations.revokedPrincipal
	opts.Subscriptions, opts.Directory = o.Config.Subscriptions, directory
	opts.Metrics = o.Metrics
	e.Hub, err = hub.New(opts)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// openDirectory opens where the engine keeps which subscribers it has; nil when nobody asks. The lock of the history keeps the predecessor and the
// successor from it, so it is closed first.
func (e *Engine) openDirectory(o EngineOptions) (presence.Directory, error) {
	if !o.Config.Subscriptions {
		return nil, nil
	}
	d, err := historyapp.OpenDirectory(o.Config.History, o.Logger)
	if err != nil {
		return nil, fmt.Errorf("open directory of subscribers: %w", err)
	}
	if d != nil {
		e.closeStores = sync.OnceValue(func() error { return errors.Join(d.Close(), e.Log.Close()) })
	}
	return d, nil
}

// Start runs the engine until Close and serves the control socket.
func (e *Engine) Start(ctx context.Context) error {
	e.workers.Go("connections", e.Sinks.Run)
	e.workers.Go("hub", e.Hub.Run)
	e.workers.Go("memory", newCalm(e.Hub.Subscribers).run)
	return e.startControl(ctx)
}

// startControl serves the commands about the history that run beside the hub.
func (e *Engine) startControl(ctx context.Context) error {
	if e.controlSocket == "" {
		return nil
	}
	var err error
	if e.control, err = control.Listen(ctx, e.controlSocket, control.Service{History: e.Log, Logger: e.logger}); err != nil {
		return fmt.Errorf("control_socket: %w", err)
	}
	e.workers.Go("control socket", e.control.Serve)
	return nil
}

// Following is how a revocation log is followed. Source is required.
type Following struct {
	Source revocation.Source
	// Issuers are those whose tokens the log is about.
	Issuers []string
	// Every is how often it is asked; 0 means the list's default.
	Every time.Duration
	// Patient goes on when the log cannot be read at first: that is logged, and what was revoked is accepted until it can.
	Patient bool
}

// Follow has tokens judged by what a log says was revoked, until stop, which waits for what is under way, or Close. Unless it is
// patient, it has read all there is when it returns. What is judged by other lists of the same issuer stays so.
func (e *Engine) Follow(ctx context.Context, f Following) (list *revocation.List, stop func(), err error) {
	name := strings.Join(f.Issuers, ", ")
	list, err = revocation.New(revocation.Options{
		Source: f.Source, Name: name, Every: f.Every, Close: e.closeRevoked, Metrics: e.metrics, Logger: e.logger,
	})
	if err != nil {
		return nil, nil, err
	}
	// Judged by it before it is read: a stream that is opened meanwhile is either refused or closed.
	e.revocations.add(list, f.Issuers)
	if err := list.Load(ctx); err != nil {
		if !f.Patient {
			e.revocations.remove(list, f.Issuers)
			return nil, nil, fmt.Errorf("load revocations: %w", err)
		}
		if e.metrics != nil {
			e.metrics.RevocationsRead(name, time.Unix(0, 0))
		}
		e.logger.LogAttrs(ctx, slog.LevelWarn, "revocations not loaded yet: what was revoked is accepted until they are",
			slog.String("source", name), slog.String("error", err.Error()))
	}
	following, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	e.workers.Go("revocations", func(ctx context.Context) error {
		defer close(ended)
		defer context.AfterFunc(ctx, cancel)()
		return list.Run(following)
	})
	return list, func() {
		cancel()
		<-ended
		if others := e.revocations.remove(list, f.Issuers); !others && e.metrics != nil {
			e.metrics.RevocationsLeft(name)
		}
	}, nil
}

// closeRevoked ends the streams of tokens that were revoked.
func (e *Engine) closeRevoked(match func(revocation.Token) bool) int {
	return e.Hub.CloseBy(func(p *hub.Principal) bool { return match(tokenOf(p)) })
}

// Failed is closed when the engine cannot go on.
func (e *Engine) Failed() <-chan struct{} { return e.workers.Failed() }

// Drain stops in the order that lets a successor take over early: no more updates, those under way stored, the history given back,
// and then the streams ended, spread over the drain time. A disk that hangs does not keep the streams; Close waits for it.
func (e *Engine) Drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.drain+time.Second)
	defer cancel()
	err := e.Hub.Quiesce(ctx)
	given := make(chan error, 1)
	go func() { // Close waits for the same, and returns how closing the history went
		err := e.stopControl()
		_ = e.closeStores()
		given <- err
	}()
	select {
	case failed := <-given:
		err = errors.Join(err, failed)
	case <-ctx.Done():
		e.logger.LogAttrs(ctx, slog.LevelWarn, "the history does not close in time: the streams end all the same")
	}
	if drained := e.Hub.Drain(ctx); drained != nil && !errors.Is(drained, context.DeadlineExceeded) {
		err = errors.Join(err, fmt.Errorf("drain streams: %w", drained))
	}
	return err
}

func (e *Engine) stopControl() error {
	if e.control == nil {
		return nil
	}
	return e.control.Close()
}

// Close stops what was started and closes the history.
func (e *Engine) Close() error {
	return errors.Join(e.stopControl(), e.workers.Stop(), e.stack.Close())
}

// LastEventID gives the id of the newest update, or "" when there is none.
func (e *Engine) LastEventID(ctx context.Context) (string, error) {
	head, err := e.Log.Head(ctx)
	if err != nil {
		return "", fmt.Errorf("read history: %w", err)
	}
	return head.LastID, nil
}

// newCompiler makes what topics and matchers are compiled with.
func newCompiler(c config.Hub) (*topic.Compiler, error) {
	compiler, err := topic.NewCompiler(c.PublicURL, topic.Limits{PatternBytes: int(c.Limits.Pattern)})
	if err != nil {
		return nil, fmt.Errorf("hub URL: %w", err)
	}
	return compiler, nil
}

// limits gives the limits of requests. Its strings are bounded by configuration, so the conversions cannot overflow.
func limits(c config.Limits) mercure.Limits {
	l := mercure.DefaultLimits()
	l.BodyBytes, l.Topics, l.TopicBytes = int(c.Body), c.Topics, int(c.Topic)
	l.IDBytes, l.TypeBytes = int(c.ID), int(c.Type)
	l.Matchers, l.PatternBytes, l.URLBytes = c.Matchers, int(c.Pattern), int(c.URL)
	return l
}

// isLoopback says whether an address to listen on is one of this machine alone.
func isLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
