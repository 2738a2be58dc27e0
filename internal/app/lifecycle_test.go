package app_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/app"
)

func TestStack_closesLastFirstWhateverFails(t *testing.T) {
	var order []string
	fail := errors.New("fail")
	var s app.Stack
	s.Push("a", func() error { order = append(order, "a"); return nil })
	s.Push("b", func() error { order = append(order, "b"); return fail })
	s.Push("c", func() error { order = append(order, "c"); return nil })
	if err := s.Close(); !errors.Is(err, fail) {
		t.Errorf("Close = %v, want the failure of b", err)
	}
	if diff := cmp.Diff([]string{"c", "b", "a"}, order); diff != "" {
		t.Error(diff)
	}
	if err := s.Close(); err != nil || len(order) != 3 {
		t.Errorf("a second Close did something: %v, %v", err, order)
	}
}

func TestWorkers(t *testing.T) {
	t.Run("one failure stops all and is returned", func(t *testing.T) {
		fail := errors.New("fail")
		w := app.NewWorkers(t.Context())
		stopped := false
		w.Go("waits", func(ctx context.Context) error { <-ctx.Done(); stopped = true; return ctx.Err() })
		w.Go("fails", func(context.Context) error { return fail })
		<-w.Failed()
		if err := w.Stop(); !errors.Is(err, fail) || !stopped {
			t.Errorf("Stop = %v, other worker stopped: %v", err, stopped)
		}
	})
	t.Run("stopping is no failure, and the end of the outer context does not stop them", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w := app.NewWorkers(ctx)
		w.Go("waits", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		select {
		case <-w.Failed():
			t.Error("stopped with the outer context")
		default:
		}
		if err := w.Stop(); err != nil {
			t.Errorf("Stop = %v", err)
		}
	})
}
