package hub_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

func TestHub_Publish(t *testing.T) {
	t.Run("PRIV-02 PRIV-03 PRIV-04 needs a grant for every topic", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			all := e.stream(e.root, "*")
			p := e.principal(grant("a", topic.Exact, rar.Publish), grant("b", topic.Exact, rar.Subscribe))
			for _, topics := range [][]string{{"b"}, {"a", "b"}, {"b", "a"}, {}} {
				for _, private := range []bool{false, true} {
					_, err := e.hub.Publish(t.Context(), p, &mercure.Update{Topics: topics, Private: private})
					if !errors.Is(err, hub.ErrForbidden) {
						t.Errorf("Publish(%q) = %v, want %v", topics, err, hub.ErrForbidden)
					}
				}
			}
			if _, err := e.hub.Publish(t.Context(), nil, &mercure.Update{Topics: []string{"a"}}); !errors.Is(err, hub.ErrForbidden) {
				t.Errorf("anonymous Publish = %v, want %v", err, hub.ErrForbidden)
			}
			if _, err := e.hub.Publish(t.Context(), p, &mercure.Update{Topics: []string{"a"}, Data: "ok"}); err != nil {
				t.Errorf("Publish = %v", err)
			}
			all.want(t, "ok")
		})
	})
	t.Run("refuses a reserved topic whatever the token", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			for _, p := range []*hub.Principal{nil, e.root, e.reader("a")} {
				_, err := e.hub.Publish(t.Context(), p, &mercure.Update{Topics: []string{"a", hubURL + "/subscriptions/x"}})
				if !errors.Is(err, hub.ErrReserved) {
					t.Errorf("Publish = %v, want %v", err, hub.ErrReserved)
				}
			}
		})
	})
	t.Run("finishes what it accepted when the publisher hangs up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			k := e.stream(nil, "a")
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := e.hub.Publish(ctx, e.root, &mercure.Update{Topics: []string{"a"}, Data: "1"}); err != nil {
				t.Errorf("Publish = %v", err)
			}
			k.want(t, "1")
		})
	})
	t.Run("says what a failing history means", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			stub := &stubLog{Log: openMemory(t)}
			e := newEnv(t, func(o *hub.Options) { o.Log = stub })
			other := errors.New("other")
			for cause, want := range map[error]error{
				history.ErrOverloaded: hub.ErrUnavailable,
				history.ErrReadOnly:   hub.ErrUnavailable,
				history.ErrNoSpace:    hub.ErrUnavailable,
				history.ErrClosed:     hub.ErrUnavailable,
				history.ErrTooLarge:   hub.ErrTooLarge,
				other:                 other,
			} {
				stub.set(&stub.appendErr, cause)
				_, err := e.hub.Publish(t.Context(), e.root, &mercure.Update{Topics: []string{"a"}})
				if !errors.Is(err, want) || !errors.Is(err, cause) {
					t.Errorf("Publish with %v = %v, want %v", cause, err, want)
				}
				if n := strings.Count(err.Error(), "hub: ") + strings.Count(err.Error(), "history: "); n > 1 {
					t.Errorf("Publish = %q, which names %d packages", err, n)
				}
			}
			if n := e.metrics.get(&e.metrics.published); n != 0 {
				t.Errorf("published = %d, want 0", n)
			}
		})
	})
}
