package hub_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
)

// drain is a sink that counts events.
type drain struct{ events *atomic.Int64 }

func (drain) Framing() hub.Framing { return hub.Raw }
func (drain) Start(hub.Notify)     {}
func (drain) Finish()              {}
func (drain) Abort()               {}

func (k drain) TryWrite(p []byte) (int, error) {
	k.events.Add(int64(bytes.Count(p, []byte("\n\n"))))
	return len(p), nil
}

// BenchmarkDispatch measures the way of an update from Publish to the sinks, without sockets. One operation is one
// update; the time includes that of every delivery.
func BenchmarkDispatch(b *testing.B) {
	for _, subscribers := range []int{1, 1000, 10_000} {
		for _, matchers := range []string{"exact", "pattern"} {
			for _, private := range []bool{false, true} {
				b.Run(fmt.Sprintf("subs=%d/matchers=%s/private=%v", subscribers, matchers, private), func(b *testing.B) {
					benchmarkDispatch(b, subscribers, matchers, private)
				})
			}
		}
	}
}

func benchmarkDispatch(b *testing.B, subscribers int, matchers string, private bool) {
	b.Helper()
	const publishers = 16
	e := newEnv(b, func(o *hub.Options) { o.Metrics = nil; o.Retry = 0 })
	var events atomic.Int64
	pattern := "https://e.example/books/1"
	if matchers == "pattern" {
		pattern = "~https://e.example/books/:id"
	}
	for range subscribers {
		s := e.subscribe(hub.SubscribeRequest{Principal: e.root, Matchers: e.matchers(pattern)})
		s.Attach(drain{&events})
	}
	for events.Load() < int64(subscribers) { // the comments
		<-time.After(time.Millisecond)
	}
	events.Store(0)
	update := mercure.Update{Topics: []string{"https://e.example/books/1"}, Data: strings.Repeat("x", 200), Private: private}
	work := make(chan struct{})
	var done sync.WaitGroup
	for range publishers {
		done.Go(func() {
			for range work {
				u := update
				if _, err := e.hub.Publish(context.Background(), e.root, &u); err != nil {
					b.Error(err)
				}
			}
		})
	}
	b.ReportAllocs()
	n := int64(0)
	for b.Loop() {
		work <- struct{}{}
		n++
		for n*int64(subscribers)-events.Load() > int64(subscribers)*64 {
			<-time.After(50 * time.Microsecond)
		}
	}
	close(work)
	done.Wait()
	for events.Load() < n*int64(subscribers) {
		<-time.After(50 * time.Microsecond)
	}
	b.ReportMetric(float64(n*int64(subscribers))/b.Elapsed().Seconds(), "deliveries/s")
}

// BenchmarkConnect measures a stream that begins and ends, without sockets; with subscriptions, until both events are stored.
func BenchmarkConnect(b *testing.B) {
	for _, subscriptions := range []bool{false, true} {
		b.Run(fmt.Sprintf("subscriptions=%v", subscriptions), func(b *testing.B) {
			e := newEnv(b, func(o *hub.Options) { o.Retry, o.Subscriptions = 0, subscriptions })
			matchers := e.matchers("https://e.example/books/1")
			var events atomic.Int64
			b.ReportAllocs()
			for b.Loop() {
				s := e.subscribe(hub.SubscribeRequest{Principal: e.root, Matchers: matchers})
				s.Attach(drain{&events})
				s.End()
				<-s.Done()
			}
			for want := 2 * b.N; subscriptions && e.metrics.get(&e.metrics.announced) < want; {
				<-time.After(time.Millisecond)
			}
		})
	}
}
