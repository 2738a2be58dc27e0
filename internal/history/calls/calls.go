package calls

import (
	"context"
	"sync"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// Running are the calls of one log that have begun and not ended. The zero value is a log that is open and idle. It must not be copied.
type Running struct {
	running sync.WaitGroup

	// mu protects the field below, and keeps calls from being counted in after it was set.
	mu     sync.RWMutex
	closed bool
}

// Begin counts a call in; the caller must call Done when it returns nil. Errors: history.ErrClosed as soon as Close has begun, and that of a
// context that has ended.
func (r *Running) Begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return history.ErrClosed
	}
	r.running.Add(1)
	return nil
}

// Done counts a call out.
func (r *Running) Done() { r.running.Done() }

// MayGoOn returns why a long call must end, history.ErrClosed or the context's error, or nil.
func (r *Running) MayGoOn(ctx context.Context) error {
	r.mu.RLock()
	closed := r.closed
	r.mu.RUnlock()
	if closed {
		return history.ErrClosed
	}
	return ctx.Err()
}

// Close refuses calls from now on, calls interrupt, which ends those that wait for something, and returns when no call is left. A call must
// not close its own log: it would wait for itself.
func (r *Running) Close(interrupt func()) {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	interrupt()
	r.running.Wait()
}
