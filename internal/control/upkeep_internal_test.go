package control

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/test/bubble"
)

// slow is a log whose upkeep takes as long as a test wants.
type slow struct {
	history.Log

	outcome chan error
}

func (s slow) Verify(ctx context.Context) (history.Verification, error) {
	select {
	case err := <-s.outcome:
		return history.Verification{Events: 7}, err
	case <-ctx.Done():
		return history.Verification{}, ctx.Err()
	}
}

// client is the other side of an answer.
type client struct {
	*httptest.ResponseRecorder

	gone bool
}

func (c *client) SetWriteDeadline(time.Time) error { return nil }

func (c *client) Write(p []byte) (int, error) {
	if c.gone {
		return 0, errors.New("gone")
	}
	return c.ResponseRecorder.Write(p)
}

// A hub that works for long says something from time to time, so that its client does not take it for dead.
func TestWork_talks(t *testing.T) {
	for name, c := range map[string]struct {
		err          error
		body, status string
	}{
		"and succeeds": {nil, "\n\n" + `{"events":7,"bytes":0,"segments":0,"indexes":0}` + "\n", "complete"},
		"and fails":    {errors.New("bad\nluck"), "\n\n\n", "bad luck"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := slow{outcome: make(chan error, 1)}
				v := &Server{service: Service{History: log, Logger: slog.New(slog.DiscardHandler)}, working: make(chan struct{}, 1)}
				w := &client{ResponseRecorder: httptest.NewRecorder()}
				done := make(chan struct{})
				go func() {
					defer close(done)
					v.verify(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, verifyPath, nil))
				}()
				bubble.Advance(2*talkInterval + time.Second)
				log.outcome <- c.err
				<-done
				answer := w.Result()
				if got := w.Body.String(); got != c.body || answer.Trailer.Get(statusTrailer) != c.status {
					t.Errorf("the hub says %q, %q, want %q, %q", got, answer.Trailer.Get(statusTrailer), c.body, c.status)
				}
				_ = answer.Body.Close()
			})
		})
	}
}

// Work for a client that has gone ends.
func TestWork_clientGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &Server{service: Service{History: slow{}, Logger: slog.New(slog.DiscardHandler)}, working: make(chan struct{}, 1)}
		w := &client{ResponseRecorder: httptest.NewRecorder(), gone: true}
		v.verify(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, verifyPath, nil)) // returns when the clock has moved
		if len(v.working) != 0 {
			t.Error("others are kept from work")
		}
	})
}
