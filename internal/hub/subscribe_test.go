package hub_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history/memory"
	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
)

func TestResume(t *testing.T) {
	// Each case publishes 1 to 4 on a, with the ids i1 to i4, and b on b between 2 and 3.
	publish := func(e *env) {
		for _, d := range sequence(1, 4) {
			e.send(&mercure.Update{Topics: []string{"a", "alt"}, ID: "i" + d, Data: d})
			if d == "2" {
				e.send(&mercure.Update{Topics: []string{"b"}, ID: "ib", Data: "b"})
			}
		}
	}
	tests := []struct {
		name, cursor, from string
		matchers, want     []string
	}{
		{"REC-07 REC-15 sends what came after the cursor, then live", "i2", "i2", []string{"a"}, []string{"3", "4", "5"}},
		{"REC-08 obeys the matchers", "i1", "i1", []string{"b"}, []string{"b"}},
		{"REC-11 REC-16 earliest asks for everything", "earliest", "earliest", []string{"a"}, sequence(1, 5)},
		{"REC-17 an unknown id is earliest", "nonsense", "earliest", []string{"a"}, sequence(1, 5)},
		{"REC-19 an empty cursor is earliest", "", "earliest", []string{"a"}, sequence(1, 5)},
		{"REC-25 the newest id replays nothing", "i4", "i4", []string{"a"}, []string{"5"}},
		{"REC-27 alternates count, once", "i2", "i2", []string{"a", "alt", "*"}, []string{"b", "3", "4", "5"}},
		{"a cursor on another topic counts as well", "ib", "ib", []string{"a"}, []string{"3", "4", "5"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEnv(t, nil)
				publish(e)
				k := e.resume(nil, tt.cursor, tt.matchers...)
				if from, ok := k.sub.ResumedFrom(); !ok || from != tt.from {
					t.Errorf("ResumedFrom = %q, %v, want %q", from, ok, tt.from)
				}
				e.publish("5", "a")
				k.want(t, tt.want...)
			})
		})
	}
	t.Run("REC-18 without a cursor there is neither replay nor a start", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			publish(e)
			k := e.stream(nil, "*")
			if from, ok := k.sub.ResumedFrom(); ok {
				t.Errorf("ResumedFrom = %q, true, want false", from)
			}
			e.publish("5", "a")
			k.want(t, "5")
		})
	})
	t.Run("REC-12 a repeated id is its first occurrence", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			for _, id := range []string{"x", "y", "x", "z"} {
				e.send(&mercure.Update{Topics: []string{"a"}, ID: id, Data: id})
			}
			e.resume(nil, "x", "a").want(t, "y", "x", "z")
		})
	})
	t.Run("REC-09 REC-10 judges by the token of the new stream", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			e.secret("1", "a")
			e.publish("2", "a")
			e.secret("3", "b", "a")
			e.resume(nil, "earliest", "*").want(t, "2")
			e.resume(e.reader("a"), "earliest", "*").want(t, "1", "2", "3")
			e.resume(e.reader("b"), "earliest", "*").want(t, "2", "3")
			e.resume(e.reader("c"), "earliest", "a").want(t, "2")
		})
	})
	t.Run("REC-17 a trimmed id is earliest and everything kept follows", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, func(o *hub.Options) {
				log, err := memory.Open(memory.Options{MaxEvents: 2})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = log.Close() })
				o.Log = log
			})
			publish(e)
			k := e.resume(nil, "i1", "a")
			if from, _ := k.sub.ResumedFrom(); from != "earliest" {
				t.Errorf("ResumedFrom = %q, want earliest", from)
			}
			k.want(t, "3", "4")
		})
	})
	t.Run("an unknown cursor can be made live only", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, func(o *hub.Options) { o.LiveAfterUnknown = true })
			publish(e)
			unknown, earliest := e.resume(nil, "nonsense", "a"), e.resume(nil, "earliest", "a")
			if from, _ := unknown.sub.ResumedFrom(); from != "earliest" {
				t.Errorf("ResumedFrom = %q, want earliest", from)
			}
			e.publish("5", "a")
			unknown.want(t, "5")
			earliest.want(t, sequence(1, 5)...)
		})
	})
	t.Run("replays more than any page holds", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			for _, d := range sequence(1, 12_000) {
				e.publish(d, "a")
			}
			e.resume(nil, "earliest", "a").want(t, sequence(1, 12_000)...)
		})
	})
}

func TestSubscribeRefuses(t *testing.T) {
	t.Run("SUB-38 a stream without a matcher", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			if _, err := e.hub.Subscribe(t.Context(), hub.SubscribeRequest{}); !errors.Is(err, hub.ErrNoMatcher) {
				t.Errorf("Subscribe = %v, want %v", err, hub.ErrNoMatcher)
			}
		})
	})
	t.Run("LIM-04 more streams than allowed, until one ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, func(o *hub.Options) { o.MaxSubscribers = 2 })
			k, discarded := e.stream(nil, "a"), e.subscribe(hub.SubscribeRequest{Matchers: e.matchers("a")})
			open := func() error {
				s, err := e.hub.Subscribe(t.Context(), hub.SubscribeRequest{Matchers: e.matchers("a")})
				if err == nil {
					s.Attach(&memSink{room: -1})
				}
				return err
			}
			if err := open(); !errors.Is(err, hub.ErrTooManySubscribers) {
				t.Errorf("Subscribe = %v, want %v", err, hub.ErrTooManySubscribers)
			}
			k.notify.Gone()
			discarded.Discard()
			discarded.Discard()
			synctest.Wait()
			if _, aborted := k.ended(); !aborted || !isDone(k.sub) || !isDone(discarded) {
				t.Errorf("streams did not end")
			}
			if err := errors.Join(open(), open()); err != nil {
				t.Errorf("Subscribe = %v, want nil", err)
			}
			if n := e.metrics.get(&e.metrics.subscribers); n != 2 {
				t.Errorf("subscribers = %d, want 2", n)
			}
		})
	})
	t.Run("the history is never reached", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, func(o *hub.Options) { o.Log = &stubLog{Log: openMemory(t), headErr: errors.New("down")} })
			_, err := e.hub.Subscribe(t.Context(), hub.SubscribeRequest{Matchers: e.matchers("a")})
			if !errors.Is(err, hub.ErrUnavailable) {
				t.Errorf("Subscribe = %v, want %v", err, hub.ErrUnavailable)
			}
			if err := e.hub.Ready(t.Context()); err == nil {
				t.Error("Ready = nil, want the reason")
			}
		})
	})
	t.Run("the history fails", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			stub := &stubLog{Log: openMemory(t)}
			e := newEnv(t, func(o *hub.Options) { o.Log = stub })
			synctest.Wait()
			stub.set(&stub.seekErr, errors.New("down"))
			request := hub.SubscribeRequest{Matchers: e.matchers("a"), Cursor: "x", HasCursor: true}
			if _, err := e.hub.Subscribe(t.Context(), request); !errors.Is(err, hub.ErrUnavailable) {
				t.Errorf("Subscribe = %v, want %v", err, hub.ErrUnavailable)
			}
			stub.set(&stub.seekErr, context.Canceled)
			if _, err := e.hub.Subscribe(t.Context(), request); errors.Is(err, hub.ErrUnavailable) || err == nil {
				t.Errorf("Subscribe = %v, want a cancelled context alone", err)
			}
			synctest.Wait()
			if n := e.metrics.get(&e.metrics.subscribers); n != 0 {
				t.Errorf("subscribers = %d, want 0", n)
			}
		})
	})
}

func TestSubscriber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, nil)
		first, second := e.stream(nil, "a"), e.stream(nil, "a")
		for _, k := range []*memSink{first, second} {
			if id := k.sub.ID(); len(id) != len("urn:uuid:")+36 || id[:9] != "urn:uuid:" {
				t.Errorf("ID = %q, want a urn:uuid", id)
			}
		}
		if first.sub.ID() == second.sub.ID() {
			t.Error("two subscribers share an id")
		}
		if late := attach(first.sub, -1); !late.finished {
			t.Error("a second sink is kept")
		}
		first.notify.Writable() // for nothing
		e.publish("1", "a")
		first.want(t, "1")
		if err := e.hub.Ready(t.Context()); err != nil {
			t.Errorf("Ready = %v, want nil", err)
		}
	})
	t.Run("Subscribe waits for its turn to read the history", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			stub := &stubLog{Log: openMemory(t)}
			e := newEnv(t, func(o *hub.Options) { o.Log, o.Replays = stub, 1 })
			gate := make(chan struct{})
			stub.replaying = func() { <-gate }
			open := func(ctx context.Context) error {
				s, err := e.hub.Subscribe(ctx, hub.SubscribeRequest{Matchers: e.matchers("a"), HasCursor: true})
				if err == nil {
					s.Discard()
				}
				return err
			}
			result := make(chan error, 1)
			go func() { result <- open(context.Background()) }()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := open(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Subscribe = %v, want %v", err, context.DeadlineExceeded)
			}
			close(gate)
			if err := errors.Join(<-result, open(t.Context())); err != nil {
				t.Errorf("Subscribe = %v, want nil", err)
			}
		})
	})
}
