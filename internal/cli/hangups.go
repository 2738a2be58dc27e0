package cli

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// Hangups are the SIGHUPs that the process gets. They are caught before a server is built, since one that comes meanwhile would end the
// process: who asks for a reload cannot know how far it is.
type Hangups struct{ caught chan os.Signal }

// CatchHangups catches SIGHUP until Release. On systems without the signal there is nothing to catch.
func CatchHangups() *Hangups {
	h := &Hangups{caught: make(chan os.Signal, 1)} // a second one while one waits says nothing new
	signal.Notify(h.caught, syscall.SIGHUP)
	return h
}

// Release leaves SIGHUP to the system again.
func (h *Hangups) Release() { signal.Stop(h.caught) }

// Serve runs a server until run returns, and has it reloaded for each SIGHUP meanwhile, and for one that has been caught before;
// reload reports what went wrong itself. What comes while a reload is under way causes one more.
func (h *Hangups) Serve(ctx context.Context, run func(context.Context) error, reload func(context.Context)) error {
	following, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { // ends with Serve, which waits for it
		defer close(done)
		for {
			select {
			case <-following.Done():
				return
			case <-h.caught:
				reload(following)
			}
		}
	}()
	defer func() { stop(); <-done }()
	return run(ctx)
}

// ReloadRefused tells the log why a reload changed nothing, if err says so.
func ReloadRefused(ctx context.Context, logger *slog.Logger, err error) {
	if err != nil {
		logger.LogAttrs(ctx, slog.LevelError, "configuration not reloaded; the old one stays in effect", slog.String("error", err.Error()))
	}
}
