package hub_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
)

// TestRace runs all methods of a hub and its subscribers against each other, for the race detector (I4).
func TestRace(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(o *hub.Options) {
		o.Backlog, o.TotalBacklog, o.Shards = 2000, 20_000, 3
		o.Heartbeat, o.MaxLifetime, o.WriteTimeout = 200*time.Millisecond, 300*time.Millisecond, 200*time.Millisecond
		o.DrainWindow, o.Subscriptions = 100*time.Millisecond, true
		o.Revoked = func(p *hub.Principal) bool { return p.TokenID == "revoked" }
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var work sync.WaitGroup
	repeat := func(n int, f func(i int)) {
		for i := range n {
			work.Go(func() {
				for ctx.Err() == nil {
					f(i)
				}
			})
		}
	}
	topics := []string{"a", "b", "https://e.example/c"}
	readers := []*hub.Principal{nil, e.reader("a"), e.reader("b", "*"), e.root}
	refused := e.named("revoked")
	repeat(2, func(int) {
		u := &mercure.Update{Topics: topics[rand.IntN(3):], Private: rand.IntN(2) == 0, Data: strconv.Itoa(rand.Int())}
		if _, err := e.hub.Publish(ctx, refused, u); !errors.Is(err, hub.ErrRevoked) {
			t.Errorf("Publish = %v, want %v", err, hub.ErrRevoked)
		}
		if _, err := e.hub.Publish(ctx, e.root, u); err != nil && !errors.Is(err, hub.ErrDraining) {
			t.Errorf("Publish = %v", err)
		}
	})
	repeat(4, func(int) {
		s, err := e.hub.Subscribe(ctx, hub.SubscribeRequest{
			Principal: readers[rand.IntN(4)], Matchers: e.matchers("a", "~https://e.example/:x")[rand.IntN(2):],
			Cursor: "earliest", HasCursor: rand.IntN(2) == 0,
		})
		if err != nil {
			if !errors.Is(err, hub.ErrDraining) && ctx.Err() == nil {
				t.Errorf("Subscribe = %v", err)
			}
			return
		}
		_, _ = s.ResumedFrom()
		_ = s.ID()
		if rand.IntN(5) == 0 {
			s.Discard()
			<-s.Done()
			return
		}
		k := attach(s, rand.IntN(3000)-1)
		for range rand.IntN(4) {
			k.take(rand.IntN(2000))
		}
		switch rand.IntN(4) {
		case 0:
			k.notify.Gone()
		case 1:
			k.notify.Writable()
		case 2:
			k.take(-1)
		}
	})
	repeat(1, func(int) {
		s, err := e.hub.Subscribe(ctx, hub.SubscribeRequest{
			Principal: refused, Matchers: e.matchers("a"), Cursor: "earliest", HasCursor: rand.IntN(2) == 0,
		})
		if s != nil || !errors.Is(err, hub.ErrRevoked) && !errors.Is(err, hub.ErrDraining) && ctx.Err() == nil {
			t.Errorf("Subscribe = %v, want %v", err, hub.ErrRevoked)
		}
	})
	repeat(2, func(int) {
		e.hub.CloseBy(func(p *hub.Principal) bool { return p == readers[rand.IntN(4)] })
		_ = e.hub.Ready(ctx)
		<-time.After(5 * time.Millisecond)
	})
	work.Go(func() {
		<-time.After(600 * time.Millisecond)
		if err := e.hub.Quiesce(t.Context()); err != nil {
			t.Errorf("Quiesce = %v", err)
		}
		<-time.After(100 * time.Millisecond)
		if err := e.hub.Drain(t.Context()); err != nil {
			t.Errorf("Drain = %v", err)
		}
	})
	work.Wait()
	if n := e.hub.Waiting(); n != 0 {
		t.Errorf("bytes waiting = %d, want 0", n)
	}
	if n := e.metrics.get(&e.metrics.subscribers); n != 0 {
		t.Errorf("subscribers = %d, want 0", n)
	}
}

// TestCloseBy_Race closes streams from several goroutines while they open, end by themselves and go on, and while the hub stops:
// every stream that was closed is counted by one call.
func TestCloseBy_Race(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(o *hub.Options) { o.Shards, o.Backlog, o.MaxLifetime = 3, 2000, 0 })
	for range 100 {
		e.secret("x", "a")
	}
	const streams = 600
	var opening, closing sync.WaitGroup
	var counted atomic.Int64
	stop := make(chan struct{})
	for range 3 {
		closing.Go(func() {
			for {
				counted.Add(int64(e.hub.CloseBy(hasToken("even"))))
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
	opened := make([]*hub.Subscriber, streams)
	for worker := range 4 {
		opening.Go(func() {
			for i := worker; i < streams; i += 4 {
				p := e.named([]string{"even", "odd"}[i%2])
				s, err := e.hub.Subscribe(context.Background(), hub.SubscribeRequest{
					Principal: p, Matchers: e.matchers("a"), Cursor: "earliest", HasCursor: rand.IntN(2) == 0,
				})
				if err != nil {
					t.Errorf("Subscribe = %v", err)
					continue
				}
				opened[i] = s
				k := attach(s, rand.IntN(3000)-1)
				if rand.IntN(3) == 0 {
					k.take(rand.IntN(2000))
				}
				if i%2 == 0 && rand.IntN(4) == 0 {
					k.notify.Gone()
				}
			}
		})
	}
	opening.Wait()
	counted.Add(int64(e.hub.CloseBy(hasToken("even"))))
	for i, s := range opened {
		if s == nil {
			continue
		}
		if i%2 == 0 {
			<-s.Done() // one that is finishing takes a second at most
		} else if isDone(s) {
			t.Errorf("stream %d is closed, which no call meant", i)
		}
	}
	closed := 0
	for _, reason := range e.metrics.reasons() {
		if reason == "closed" {
			closed++
		}
	}
	if n := counted.Load(); n != int64(closed) {
		t.Errorf("the calls of CloseBy counted %d streams, %d were closed", n, closed)
	}
	e.stop()
	<-e.stopped
	close(stop)
	closing.Wait()
}
