package hubapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/app"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/memory"
	"github.com/cinnabar-hub/cinnabar/internal/history/segments"
	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/hub/sink"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// minProcessors is how many processors a hub with a durable history schedules on at least, on machines with fewer too.
const minProcessors = 2

// EngineOptions says what an engine is built from.
type EngineOptions struct {
	// Config gives the history, the limits and the times; its public URL is what relative topics and patterns resolve against.
	Config config.Hub
	// Metrics counts; nil counts nothing.
	Metrics hub.Metrics
	// Logger is required.
	Logger *slog.Logger
}

// Engine is what the faces of one hub share: the history, the hub and the connections it writes to.
type Engine struct {
	Hub      *hub.Hub
	Sinks    *sink.Set
	Log      history.Log
	Compiler *topic.Compiler

	drain   time.Duration
	workers *app.Workers
	stack   app.Stack
}

// OpenEngine opens the history and builds the engine; nothing runs before Start. The caller closes it.
func OpenEngine(ctx context.Context, o EngineOptions) (_ *Engine, err error) {
	e := &Engine{drain: o.Config.Drain}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.stack.Close())
		}
	}()
	e.Compiler, err = topic.NewCompiler(o.Config.PublicURL, topic.Limits{PatternBytes: int(o.Config.Limits.Pattern)})
	if err != nil {
		return nil, fmt.Errorf("hub URL: %w", err)
	}
	if e.Log, err = openHistory(ctx, o.Config.History, o.Logger); err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	e.stack.Push("history", e.Log.Close)
	if e.Sinks, err = sink.NewSet(sink.Options{}); err != nil {
		return nil, fmt.Errorf("watch connections: %w", err)
	}
	e.stack.Push("connections", e.Sinks.Close)
	opts := hub.DefaultOptions()
	opts.Log, opts.Compiler, opts.Logger = e.Log, e.Compiler, o.Logger
	opts.Heartbeat, opts.MaxLifetime, opts.Retry = o.Config.Heartbeat, o.Config.MaxConnectionLifetime, o.Config.Retry
	opts.DrainWindow = o.Config.Drain
	opts.Backlog, opts.TotalBacklog = int(o.Config.Limits.Backlog), int64(o.Config.Limits.BacklogTotal)
	opts.Metrics = o.Metrics
	e.Hub, err = hub.New(opts)
	if err != nil {
		return nil, err
	}
	return e, nil
}

func openHistory(ctx context.Context, c config.History, logger *slog.Logger) (history.Log, error) {
	switch c.Driver {
	case "memory":
		o := memory.Options{MaxEvents: c.MaxEvents, MaxBytes: int64(c.MaxBytes), MaxAge: c.MaxAge}
		if o.MaxEvents == 0 {
			o.MaxEvents = -1 // the configuration's 0 is no limit, the driver's is its default
		}
		if o.MaxBytes == 0 {
			o.MaxBytes = -1
		}
		return memory.Open(o)
	case "segments":
		// Waiting for the disk holds a processor: with a single one, nothing would be delivered meanwhile.
		if runtime.GOMAXPROCS(0) < minProcessors {
			runtime.GOMAXPROCS(minProcessors)
		}
		return segments.Open(ctx, segments.Options{
			Dir: string(c.Path), MaxEvents: c.MaxEvents, MaxBytes: int64(c.MaxBytes), MaxAge: c.MaxAge, Logger: logger,
		})
	}
	return nil, fmt.Errorf("unknown driver %q", c.Driver)
}

// Start runs the engine until Stop. Its workers outlive ctx, which only gives them its values.
func (e *Engine) Start(ctx context.Context) {
	e.workers = app.NewWorkers(ctx)
	e.workers.Go("connections", e.Sinks.Run)
	e.workers.Go("hub", e.Hub.Run)
}

// Failed is closed when the engine cannot go on.
func (e *Engine) Failed() <-chan struct{} { return e.workers.Failed() }

// Drain refuses new streams and updates and ends the streams there are, spread over the drain time.
func (e *Engine) Drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.drain+time.Second)
	defer cancel()
	if err := e.Hub.Drain(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("drain streams: %w", err)
	}
	return nil
}

// Close stops what Start started and closes the history.
func (e *Engine) Close() error {
	var err error
	if e.workers != nil {
		err = e.workers.Stop()
	}
	return errors.Join(err, e.stack.Close())
}

// LastEventID gives the id of the newest update, or "" when there is none.
func (e *Engine) LastEventID(ctx context.Context) (string, error) {
	head, err := e.Log.Head(ctx)
	if err != nil {
		return "", fmt.Errorf("read history: %w", err)
	}
	return head.LastID, nil
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
