package hub_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
)

func TestHeartbeat(t *testing.T) {
	comments := func(t *testing.T, k *memSink) int {
		t.Helper()
		n := 0
		for line := range strings.Lines(k.text(t)) {
			if strings.HasPrefix(line, ":") {
				n++
			}
		}
		return n
	}
	t.Run("SSE-02 an idle stream gets a comment", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, func(o *hub.Options) { o.Heartbeat = 15 * time.Second })
			k := e.stream(nil, "a")
			elapse(14 * time.Second)
			if n := comments(t, k); n != 0 {
				t.Errorf("comments after 14 s = %d, want 0", n)
			}
			elapse(61*time.Second - 14*time.Second)
			if n := comments(t, k); n != 4 {
				t.Errorf("comments after 61 s = %d, want 4", n)
			}
		})
	})
	t.Run("a busy stream gets none", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			k := e.stream(nil, "a")
			for range 10 {
				elapse(10 * time.Second)
				e.publish("x", "a")
			}
			synctest.Wait()
			if n := comments(t, k); n != 0 {
				t.Errorf("comments = %d, want 0", n)
			}
		})
	})
	t.Run("SSE-18 a stream begins with a retry, or with a comment", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, func(o *hub.Options) { o.Retry, o.Heartbeat = 0, 0 })
			k := e.stream(nil, "a")
			synctest.Wait()
			if got := k.text(t); got != ":\n\n" {
				t.Errorf("stream = %q, want a comment", got)
			}
			elapse(10 * time.Minute)
			if n := comments(t, k); n != 1 {
				t.Errorf("comments = %d, want 1: heartbeats are off", n)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, func(o *hub.Options) { o.Retry = time.Second })
			seen := map[string]bool{}
			for range 20 {
				k := e.stream(nil, "a")
				synctest.Wait()
				text := strings.TrimSpace(k.text(t))
				ms, err := time.ParseDuration(strings.TrimPrefix(text, "retry: ") + "ms")
				if err != nil || ms < 800*time.Millisecond || ms > 1200*time.Millisecond {
					t.Errorf("stream = %q, want a retry of 800 to 1200", text)
				}
				seen[text] = true
			}
			if len(seen) < 2 {
				t.Error("the retry does not vary")
			}
		})
	})
}

// lasted returns how long the stream lasts from now on, at most limit.
func lasted(s *hub.Subscriber, limit time.Duration) time.Duration {
	start := time.Now()
	select {
	case <-s.Done():
	case <-time.After(limit):
	}
	return time.Since(start)
}

func TestStreamEnds(t *testing.T) {
	t.Run("PRIV-09 no later than the token expires", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			for _, life := range []time.Duration{3 * time.Second, 3*time.Second + 50*time.Millisecond, 20 * time.Minute} {
				p := e.reader("a")
				p.ExpiresAt = time.Now().Add(life)
				k := e.stream(p, "a")
				if got := lasted(k.sub, time.Hour); got > life || got < life-300*time.Millisecond {
					t.Errorf("stream of a token of %v lasted %v", life, got)
				}
				if finished, _ := k.ended(); !finished {
					t.Error("stream did not end cleanly")
				}
			}
		})
	})
	t.Run("PRIV-09 at once when the token has expired already", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			p := e.reader("a")
			p.ExpiresAt = time.Now().Add(-time.Second)
			e.secret("1", "a")
			k := e.resume(p, "earliest", "a")
			k.want(t)
			if finished, _ := k.ended(); !finished {
				t.Error("stream goes on")
			}
		})
	})
	t.Run("PRIV-09 no later also in the middle of an entry that the reader does not take", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			p := e.reader("a")
			p.ExpiresAt = time.Now().Add(3 * time.Second)
			k := attach(e.subscribe(hub.SubscribeRequest{Principal: p, Matchers: e.matchers("a")}), 100)
			e.publish(strings.Repeat("x", 200), "a")
			if got := lasted(k.sub, time.Hour); got > 3*time.Second {
				t.Errorf("stream of a token of 3 s lasted %v", got)
			}
			if _, aborted := k.ended(); !aborted {
				t.Error("a stream with a torn entry was not aborted")
			}
		})
	})
	t.Run("PRIV-10 at 80 to 100 % of the maximum lifetime", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, func(o *hub.Options) { o.MaxLifetime = time.Hour })
			shortest, longest := 2*time.Hour, time.Duration(0)
			for range 30 {
				got := lasted(e.stream(nil, "a").sub, 2*time.Hour)
				shortest, longest = min(shortest, got), max(longest, got)
			}
			if shortest < 47*time.Minute || longest > time.Hour || longest-shortest < time.Minute {
				t.Errorf("streams lasted %v to %v, want 48 to 60 minutes", shortest, longest)
			}
		})
	})
	t.Run("when a reader takes nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, func(o *hub.Options) { o.WriteTimeout = 30 * time.Second })
			k := attach(e.subscribe(hub.SubscribeRequest{Matchers: e.matchers("a")}), 100)
			e.publish(strings.Repeat("x", 200), "a")
			if got := lasted(k.sub, time.Hour); got > 30*time.Second || got < 29*time.Second {
				t.Errorf("stalled stream lasted %v, want 30 s", got)
			}
			if _, aborted := k.ended(); !aborted {
				t.Error("stalled stream was not aborted")
			}
			if got := e.metrics.reasons(); len(got) != 1 || got[0] != "write_timeout" {
				t.Errorf("cuts = %q, want one write_timeout", got)
			}
		})
	})
	t.Run("not while a slow reader takes something", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, func(o *hub.Options) { o.WriteTimeout = 30 * time.Second })
			k := attach(e.subscribe(hub.SubscribeRequest{Matchers: e.matchers("a")}), 100)
			e.publish(strings.Repeat("x", 200), "a")
			for range 10 {
				elapse(20 * time.Second)
				k.take(5)
			}
			k.take(-1)
			k.want(t, strings.Repeat("x", 200))
		})
	})
}

func TestHub_Drain(t *testing.T) {
	t.Run("spreads the ends over the window", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, func(o *hub.Options) { o.DrainWindow = 10 * time.Second })
			var streams []*memSink
			for range 200 {
				streams = append(streams, e.stream(nil, "a"))
			}
			unattached := e.subscribe(hub.SubscribeRequest{Matchers: e.matchers("a")})
			synctest.Wait()
			begin := time.Now()
			result := make(chan error, 1)
			go func() { result <- e.hub.Drain(context.Background()) }()
			synctest.Wait()
			if _, err := e.hub.Subscribe(t.Context(), hub.SubscribeRequest{Matchers: e.matchers("a")}); !errors.Is(err, hub.ErrDraining) {
				t.Errorf("Subscribe = %v, want %v", err, hub.ErrDraining)
			}
			if _, err := e.hub.Publish(t.Context(), e.root, &mercure.Update{Topics: []string{"a"}}); !errors.Is(err, hub.ErrDraining) {
				t.Errorf("Publish = %v, want %v", err, hub.ErrDraining)
			}
			if err := e.hub.Ready(t.Context()); !errors.Is(err, hub.ErrDraining) {
				t.Errorf("Ready = %v, want %v", err, hub.ErrDraining)
			}
			elapse(5 * time.Second)
			open := 0
			for _, k := range streams {
				if !isDone(k.sub) {
					open++
				}
			}
			if open < 50 || open > 150 {
				t.Errorf("open streams after half the window = %d, want about 100", open)
			}
			if err := <-result; err != nil {
				t.Errorf("Drain = %v", err)
			}
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("Drain took %v, want at most 10 s", took)
			}
			for _, k := range streams {
				if finished, _ := k.ended(); !finished {
					t.Fatal("stream did not end cleanly")
				}
			}
			if !isDone(unattached) {
				t.Error("stream without a sink goes on")
			}
		})
	})
	t.Run("ends before the deadline of its context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, func(o *hub.Options) { o.DrainWindow = time.Hour })
			for range 50 {
				e.stream(nil, "a")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := e.hub.Drain(ctx); err != nil {
				t.Errorf("Drain = %v", err)
			}
		})
	})
	t.Run("ends the rest when its context ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, func(o *hub.Options) { o.DrainWindow = time.Hour })
			k := e.stream(nil, "a")
			torn := attach(e.subscribe(hub.SubscribeRequest{Matchers: e.matchers("a")}), 30)
			e.publish("1", "a")
			k.want(t, "1")
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			if err := e.hub.Drain(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("Drain = %v, want %v", err, context.Canceled)
			}
			synctest.Wait()
			if finished, _ := k.ended(); !finished {
				t.Error("stream goes on")
			}
			if _, aborted := torn.ended(); !aborted {
				t.Error("stream with half an event goes on")
			}
		})
	})
	t.Run("without streams returns at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			if err := e.hub.Drain(t.Context()); err != nil {
				t.Errorf("Drain = %v", err)
			}
		})
	})
}

func TestHub_CloseBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		stub := &stubLog{Log: openMemory(t)}
		e := newEnv(t, func(o *hub.Options) { o.Log = stub })
		e.publish("0", "a")
		named := func(session string) *hub.Principal {
			p := e.reader("a")
			p.SessionID = session
			return p
		}
		live, other, anonymous := e.stream(named("s1"), "a"), e.stream(named("s2"), "a"), e.stream(nil, "a")
		stalled := attach(e.subscribe(hub.SubscribeRequest{Principal: named("s1"), Matchers: e.matchers("a")}), 0)
		unattached := e.subscribe(hub.SubscribeRequest{Principal: named("s1"), Matchers: e.matchers("a")})
		// Still in Subscribe.
		stub.replaying = func() { <-gate }
		opening := make(chan *hub.Subscriber)
		go func() {
			s, err := e.hub.Subscribe(context.Background(), hub.SubscribeRequest{
				Principal: named("s1"), Matchers: e.matchers("a"), Cursor: "earliest", HasCursor: true,
			})
			if err != nil {
				t.Errorf("Subscribe = %v", err)
			}
			opening <- s
		}()
		synctest.Wait()
		n := e.hub.CloseBy(func(p *hub.Principal) bool { return p.SessionID == "s1" })
		if n != 4 {
			t.Errorf("CloseBy = %d, want 4", n)
		}
		close(gate)
		late := attach(<-opening, -1)
		synctest.Wait()
		for name, s := range map[string]*hub.Subscriber{
			"live": live.sub, "stalled": stalled.sub, "unattached": unattached, "opening": late.sub,
		} {
			if !isDone(s) {
				t.Errorf("%s stream goes on", name)
			}
		}
		late.want(t)
		e.publish("1", "a")
		other.want(t, "1")
		anonymous.want(t, "1")
		live.want(t)
		unattached.Discard()
	})
}

func TestHub_Run(t *testing.T) {
	t.Run("ends all streams when it ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			live := e.stream(nil, "a")
			torn := attach(e.subscribe(hub.SubscribeRequest{Matchers: e.matchers("a")}), 10)
			unattached := e.subscribe(hub.SubscribeRequest{Matchers: e.matchers("a")})
			e.publish("1", "a")
			live.want(t, "1")
			e.stop()
			<-e.stopped
			if finished, _ := live.ended(); !finished {
				t.Error("stream did not end cleanly")
			}
			if _, aborted := torn.ended(); !aborted {
				t.Error("stream with half an event was not aborted")
			}
			if k := attach(unattached, -1); !k.finished {
				t.Error("sink attached after the end goes on")
			}
			if _, err := e.hub.Subscribe(t.Context(), hub.SubscribeRequest{Matchers: e.matchers("a")}); !errors.Is(err, hub.ErrDraining) {
				t.Errorf("Subscribe = %v, want %v", err, hub.ErrDraining)
			}
			if n := e.hub.CloseBy(func(*hub.Principal) bool { return true }); n != 0 {
				t.Errorf("CloseBy = %d, want 0", n)
			}
			if n := e.metrics.get(&e.metrics.subscribers); n != 0 {
				t.Errorf("subscribers = %d, want 0", n)
			}
			if err := e.hub.Run(t.Context()); !errors.Is(err, hub.ErrRunning) {
				t.Errorf("second Run = %v, want %v", err, hub.ErrRunning)
			}
		})
	})
}

func TestOptions_Validate(t *testing.T) {
	e := newEnvironmentless(t)
	for name, change := range map[string]func(*hub.Options){
		"no log":            func(o *hub.Options) { o.Log = nil },
		"no compiler":       func(o *hub.Options) { o.Compiler = nil },
		"too many shards":   func(o *hub.Options) { o.Shards = 65 },
		"negative duration": func(o *hub.Options) { o.Heartbeat = -1 },
	} {
		o := e
		change(&o)
		if _, err := hub.New(o); err == nil {
			t.Errorf("New with %s = nil, want an error", name)
		}
	}
	if _, err := hub.New(e); err != nil {
		t.Errorf("New = %v", err)
	}
}
