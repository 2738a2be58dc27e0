package hub_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
)

func TestReplayLimit(t *testing.T) {
	t.Run("some replays run at a time, the others wait and are kept alive", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			const streams, allowed = 8, 2
			stub := &stubLog{Log: openMemory(t)}
			e := newEnv(t, func(o *hub.Options) { o.Log, o.Replays = stub, allowed })
			all := filled(1, 300, 1000)
			for _, d := range all {
				e.publish(d, "a")
			}
			synctest.Wait()
			var sinks []*memSink
			for range streams {
				// The first page is read by Subscribe, and the sink takes it only later.
				s := e.subscribe(hub.SubscribeRequest{Matchers: e.matchers("a"), Cursor: "earliest", HasCursor: true})
				sinks = append(sinks, attach(s, 0))
			}
			var calls, running, most atomic.Int64
			gate := make(chan struct{})
			stub.replaying = func() {
				if calls.Add(1) > allowed {
					return
				}
				most.Store(max(most.Load(), running.Add(1)))
				<-gate
				running.Add(-1)
			}
			for _, k := range sinks {
				k.take(-1)
			}
			elapse(31 * time.Second)
			if got := calls.Load(); got != allowed || most.Load() != allowed {
				t.Errorf("replays running = %d, want %d", got, allowed)
			}
			for _, k := range sinks {
				if n := strings.Count(k.text(t), "\n:\n"); n != 2 {
					t.Errorf("keep-alives of a waiting stream = %d, want 2", n)
				}
			}
			close(gate)
			for _, k := range sinks {
				k.want(t, all...)
			}
		})
	})
	t.Run("a stream that ends leaves the line", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			stub := &stubLog{Log: openMemory(t)}
			e := newEnv(t, func(o *hub.Options) { o.Log, o.Replays = stub, 1 })
			for _, d := range filled(1, 300, 1000) {
				e.publish(d, "a")
			}
			synctest.Wait()
			first, second := e.blockedReplay(), e.blockedReplay()
			gate := make(chan struct{})
			var calls atomic.Int64
			stub.replaying = func() {
				calls.Add(1)
				<-gate
			}
			first.take(-1)
			synctest.Wait()
			second.take(-1)
			synctest.Wait()
			first.notify.Gone()
			second.notify.Gone()
			synctest.Wait()
			close(gate)
			synctest.Wait()
			if n := calls.Load(); n != 2 {
				t.Errorf("the log was asked %d times, want before and after one page", n)
			}
		})
	})
}

// blockedReplay opens a stream that has more to replay than its first page, with a sink that takes nothing yet.
func (e *env) blockedReplay() *memSink {
	e.t.Helper()
	s := e.subscribe(hub.SubscribeRequest{Matchers: e.matchers("a"), Cursor: "earliest", HasCursor: true})
	return attach(s, 0)
}

func TestReplay_passesOverMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, nil)
		first := e.publish("first", "a")
		filling := strings.Repeat("x", 64<<10)
		for range 200 { // more than the pages of a replay pass over
			e.publish(filling, "b")
		}
		e.publish("last", "a")
		k := e.resume(nil, first, "a")
		if id, _ := k.sub.ResumedFrom(); id != first {
			t.Errorf("REC-15 resumed from %q, want %q", id, first)
		}
		all := e.resume(nil, "earliest", "a", "~/none/:x")
		e.publish("live", "a")
		k.want(t, "last", "live")
		all.want(t, "first", "last", "live")
	})
}
