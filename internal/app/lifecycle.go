package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Stack closes what was opened, last first. It is not safe for concurrent use.
type Stack struct {
	steps []step
}

type step struct {
	name  string
	close func() error
}

// Push adds what has just been opened.
func (s *Stack) Push(name string, closeFunc func() error) {
	s.steps = append(s.steps, step{name: name, close: closeFunc})
}

// Close closes everything once, whatever fails, and returns all failures.
func (s *Stack) Close() error {
	var errs []error
	for _, v := range slices.Backward(s.steps) {
		if err := v.close(); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", v.name, err))
		}
	}
	s.steps = nil
	return errors.Join(errs...)
}

// Workers runs goroutines that belong together: when one fails, all are told to stop. It is safe for concurrent use.
type Workers struct {
	ctx    context.Context //nolint:containedctx // the workers' own life, which Go hands to each of them
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
}

// NewWorkers starts with none. The workers' context keeps the values of ctx, not its end: who stops, stops in order.
func NewWorkers(ctx context.Context) *Workers {
	w := &Workers{}
	w.ctx, w.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return w
}

// Go runs f until it returns. An error stops all workers and is what Stop returns.
func (w *Workers) Go(name string, f func(context.Context) error) {
	w.wg.Go(func() {
		if err := f(w.ctx); err != nil && !errors.Is(err, context.Canceled) {
			w.cancel(fmt.Errorf("%s: %w", name, err))
		}
	})
}

// Failed is closed when a worker has failed or Stop was called.
func (w *Workers) Failed() <-chan struct{} { return w.ctx.Done() }

// Stop tells all workers to stop, waits for them, and returns the first failure.
func (w *Workers) Stop() error {
	w.cancel(nil)
	w.wg.Wait()
	if err := context.Cause(w.ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
