package calls_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/calls"
)

func TestRunning(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var r calls.Running
	if err := r.Begin(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Begin() = %v, want the context's error", err)
	}
	if err := r.MayGoOn(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("MayGoOn() = %v, want the context's error", err)
	}
	r.Close(func() {}) // neither has counted
	if err := r.Begin(t.Context()); !errors.Is(err, history.ErrClosed) {
		t.Errorf("Begin() = %v, want ErrClosed", err)
	}
	if err := r.MayGoOn(ended); !errors.Is(err, history.ErrClosed) {
		t.Errorf("MayGoOn() = %v, want ErrClosed", err)
	}
}

func TestRunning_closeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r calls.Running
		for range 2 {
			if err := r.Begin(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.MayGoOn(t.Context()); err != nil {
			t.Errorf("MayGoOn() = %v", err)
		}
		var refused error // what a call meets while the others are interrupted
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			r.Close(func() { refused = errors.Join(r.Begin(t.Context()), r.MayGoOn(t.Context())) })
		}()
		synctest.Wait()
		r.Done()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close() has returned before the last call")
		default:
		}
		r.Done()
		<-closed
		if !errors.Is(refused, history.ErrClosed) {
			t.Errorf("%v while it closes, want ErrClosed", refused)
		}
	})
}
