package session

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/cinnabar-hub/cinnabar/test/bubble"
)

func renewedAs(value string) func(context.Context) (*tokens, error) {
	return func(context.Context) (*tokens, error) { return &tokens{access: value}, nil }
}

func TestRenewals_Bounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRenewals()
		for i := range 3 * maxRenewals {
			if _, err := r.do(t.Context(), keyOf(strconv.Itoa(i)), renewedAs("a")); err != nil {
				t.Fatal(err)
			}
			r.end(keyOf(fmt.Sprint("x", i)))
		}
		if n := len(r.landed.young) + len(r.landed.old); n > 2*maxRenewals || len(r.running) > 0 {
			t.Errorf("%d answers are kept", n)
		}
		if n := len(r.ended.young) + len(r.ended.old); n > 2*maxRenewals {
			t.Errorf("%d ends are kept", n)
		}
		if !r.over(keyOf(fmt.Sprint("x", 3*maxRenewals-1))) || !r.over(keyOf(fmt.Sprint("x", 2*maxRenewals))) {
			t.Error("a recent end is forgotten")
		}
		for range 2 {
			bubble.Advance(renewalReuse)
			if _, err := r.do(t.Context(), keyOf("new"), renewedAs("a")); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(r.landed.young) + len(r.landed.old); n != 2 {
			t.Errorf("%d answers are kept after their time, want those of the last two", n)
		}
	})
}

func TestRenewals_FailuresAreNotKept(t *testing.T) {
	r := newRenewals()
	failed := errors.New("failed")
	if _, err := r.do(t.Context(), keyOf("a"), func(context.Context) (*tokens, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Fatalf("err = %v", err)
	}
	if got, err := r.do(t.Context(), keyOf("a"), renewedAs("b")); err != nil || got.access != "b" {
		t.Errorf("after a failure: %v, %v", got, err)
	}
}

// TestRenewals_WhoWaits has one that waits give up, and the one that all wait for go away.
func TestRenewals_WhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRenewals()
		hold, done := make(chan struct{}), make(chan error, 2)
		leader, leave := context.WithCancel(t.Context())
		go func() {
			_, err := r.do(leader, keyOf("a"), func(ctx context.Context) (*tokens, error) {
				<-hold
				return &tokens{access: "b"}, ctx.Err()
			})
			done <- err
		}()
		synctest.Wait()
		impatient, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.do(impatient, keyOf("a"), renewedAs("c")); !errors.Is(err, context.Canceled) {
			t.Errorf("the impatient one got %v", err)
		}
		go func() {
			got, err := r.do(t.Context(), keyOf("a"), renewedAs("c"))
			if err == nil && got.access != "b" {
				err = errors.New("another answer: " + got.access)
			}
			done <- err
		}()
		synctest.Wait()
		leave()
		close(hold)
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestRenewals_Panic leaves nobody waiting.
func TestRenewals_Panic(t *testing.T) {
	r := newRenewals()
	func() {
		defer func() { _ = recover() }()
		_, _ = r.do(t.Context(), keyOf("a"), func(context.Context) (*tokens, error) { panic("broken") })
	}()
	if got, err := r.do(t.Context(), keyOf("a"), renewedAs("b")); err != nil || got.access != "b" {
		t.Errorf("afterwards: %v, %v", got, err)
	}
}
