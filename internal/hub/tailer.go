package hub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

const (
	// tailRetryMin and tailRetryMax bound the pause after a failure of the log.
	tailRetryMin = 50 * time.Millisecond
	tailRetryMax = 5 * time.Second
)

// tailer follows the log for the dispatcher and starts over when that fails.
type tailer struct {
	log        history.Log
	dispatcher *dispatcher
	mark       *watermark
	gate       *gate
	logger     *slog.Logger

	position history.Position
	epoch    string
	// positioned is closed when the log has been reached for the first time.
	positioned chan struct{}
	started    bool

	mu      sync.Mutex
	failure error
}

// run works until ctx ends.
func (t *tailer) run(ctx context.Context) {
	pause := tailRetryMin
	gone := false
	for {
		progress, err := t.follow(ctx, gone)
		if ctx.Err() != nil {
			return
		}
		gone = errors.Is(err, history.ErrPositionGone)
		t.fail(err)
		if t.gate.isShut() && errors.Is(err, history.ErrClosed) {
			<-ctx.Done() // as it should be: nothing is appended here any more
			return
		}
		t.logger.LogAttrs(ctx, slog.LevelWarn, "following the history failed", slog.Any("error", err))
		if progress {
			pause = tailRetryMin
		}
		timer := time.NewTimer(pause/2 + jitter(pause/2))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		pause = min(2*pause, tailRetryMax)
	}
}

// follow reads the log until that fails, and tells whether there was progress. gone says that the position where it
// stopped last cannot be read any more.
func (t *tailer) follow(ctx context.Context, gone bool) (progress bool, err error) {
	head, err := t.log.Head(ctx)
	if err != nil {
		return false, fmt.Errorf("read head: %w", err)
	}
	if !t.started || gone || head.Epoch != t.epoch {
		if t.started {
			t.logger.LogAttrs(ctx, slog.LevelWarn, "the history cannot be continued: all streams end and resume by their cursors")
		}
		t.position, t.epoch = head.Last, head.Epoch
		r := reset{position: t.position, generation: t.mark.next()}
		if err := t.dispatcher.reposition(ctx, r); err != nil {
			return false, err
		}
	}
	if !t.started {
		t.started = true
		close(t.positioned)
	}
	t.fail(nil)
	err = t.log.Tail(ctx, t.position, func(entries []history.Entry) error {
		if len(entries) == 0 {
			return nil
		}
		progress = true
		t.position = entries[len(entries)-1].Position
		return t.dispatcher.deliver(ctx, entries)
	})
	if err == nil {
		err = history.ErrClosed
	}
	return progress, fmt.Errorf("tail: %w", err)
}

func (t *tailer) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failure = err
}

// ready returns why the log is not being followed, if it is not.
func (t *tailer) ready() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failure
}

// watermark is the newest position that this process has published. A stream without a cursor starts after it, even
// where the dispatcher has not got there yet. A new generation begins whenever positions lose their meaning.
type watermark struct {
	mu         sync.Mutex
	generation uint64
	position   history.Position
}

// raise notes a position published in the generation.
func (w *watermark) raise(generation uint64, p history.Position) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if generation == w.generation {
		w.position = max(w.position, p)
	}
}

// next starts a generation.
func (w *watermark) next() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.generation++
	w.position = 0
	return w.generation
}

func (w *watermark) current() (generation uint64, p history.Position) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.generation, w.position
}
