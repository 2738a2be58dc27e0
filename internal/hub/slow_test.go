package hub_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/memory"
	"github.com/cinnabar-hub/cinnabar/internal/hub"
)

// filled returns the numbers from first to last, each followed by spaces up to n bytes.
func filled(first, last, n int) []string {
	out := sequence(first, last)
	for i, s := range out {
		out[i] = s + strings.Repeat(" ", n-len(s)) + "."
	}
	return out
}

func TestSlowReader(t *testing.T) {
	t.Run("goes on from the history when too much waits for it, and loses nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, func(o *hub.Options) { o.Backlog, o.WriteTimeout = 10_000, time.Hour })
			slow := attach(e.subscribe(hub.SubscribeRequest{Matchers: e.matchers("a")}), 1500)
			fast := e.stream(nil, "a")
			all := filled(1, 300, 1000)
			for _, d := range all[:100] {
				e.publish(d, "a")
			}
			fast.want(t, all[:100]...)
			if n := e.metrics.get(&e.metrics.dropped); n == 0 {
				t.Error("nothing left the slow reader's queue")
			}
			if got := e.hub.Waiting(); got > 2_000 {
				t.Errorf("bytes waiting = %d, want no more than the entry being written", got)
			}
			for _, d := range all[100:] {
				e.publish(d, "a")
				slow.take(700)
			}
			slow.take(-1)
			slow.want(t, all...)
			fast.want(t, all...)
			if got := e.metrics.reasons(); len(got) != 0 {
				t.Errorf("cuts = %q, want none", got)
			}
			e.publish("live", "a")
			slow.want(t, append(all, "live")...)
			if got := e.hub.Waiting(); got != 0 {
				t.Errorf("bytes waiting = %d, want 0", got)
			}
		})
	})
	t.Run("an entry beyond the limit alone is written", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, func(o *hub.Options) { o.Backlog = 10_000 })
			slow := attach(e.subscribe(hub.SubscribeRequest{Matchers: e.matchers("a")}), 300)
			big := strings.Repeat("x", 500_000)
			e.publish(big, "a")
			synctest.Wait()
			for range 10 {
				slow.take(60_000)
				synctest.Wait()
			}
			slow.want(t, big)
		})
	})
	t.Run("without a sink is no different", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, func(o *hub.Options) { o.Backlog = 10_000 })
			s := e.subscribe(hub.SubscribeRequest{Matchers: e.matchers("a")})
			all := filled(1, 100, 1000)
			for _, d := range all {
				e.publish(d, "a")
			}
			synctest.Wait()
			if got := e.hub.Waiting(); got > 2_000 {
				t.Errorf("bytes waiting = %d, want hardly any", got)
			}
			attach(s, -1).want(t, all...)
		})
	})
	t.Run("ends when the history no longer has what it lacks", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, func(o *hub.Options) {
				log, err := memory.Open(memory.Options{MaxEvents: 20})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = log.Close() })
				o.Log, o.Backlog = log, 10_000
			})
			slow := attach(e.subscribe(hub.SubscribeRequest{Matchers: e.matchers("a")}), 2500)
			all := filled(1, 100, 1000)
			for _, d := range all {
				e.publish(d, "a")
				synctest.Wait()
			}
			slow.take(-1)
			synctest.Wait()
			got := slow.data(t)
			if !slices.Equal(got, all[:len(got)]) || len(got) > 20 {
				t.Errorf("stream = %d events, want the first few", len(got))
			}
			if finished, _ := slow.ended(); !finished || !slices.Equal(e.metrics.reasons(), []string{"history_gone"}) {
				t.Errorf("finished = %v, cuts = %q, want a clean end for history_gone", finished, e.metrics.reasons())
			}
		})
	})
	t.Run("gives way when too much waits in the hub, the largest first", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			const limit = 400_000
			e := newEnv(t, func(o *hub.Options) { o.TotalBacklog, o.WriteTimeout, o.Shards = limit, time.Hour, 1 })
			small := attach(e.subscribe(hub.SubscribeRequest{Matchers: e.matchers("small")}), 0)
			var large []*memSink
			for range 10 {
				large = append(large, attach(e.subscribe(hub.SubscribeRequest{Matchers: e.matchers("large")}), 0))
			}
			e.publish("kept", "small")
			all := filled(1, 100, 1000)
			for _, d := range all {
				e.publish(d, "large")
				synctest.Wait()
				if got := e.hub.Waiting(); got > limit {
					t.Fatalf("bytes waiting = %d, want at most %d", got, limit)
				}
			}
			dropped := e.metrics.get(&e.metrics.dropped)
			if dropped == 0 {
				t.Error("nobody gave way")
			}
			replayed := e.metrics.get(&e.metrics.replayed)
			small.take(-1)
			small.want(t, "kept")
			if got := e.metrics.get(&e.metrics.replayed); got != replayed {
				t.Error("the smallest backlog gave way")
			}
			for _, k := range large {
				k.take(-1)
			}
			for _, k := range large {
				k.want(t, all...)
			}
		})
	})
	t.Run("completes the event it is in when the stream ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := newEnv(t, nil)
			p := e.reader("a")
			k := attach(e.subscribe(hub.SubscribeRequest{Principal: p, Matchers: e.matchers("a")}), 500)
			stuck := attach(e.subscribe(hub.SubscribeRequest{Principal: p, Matchers: e.matchers("a")}), 500)
			for _, d := range filled(1, 3, 1000) {
				e.publish(d, "a")
			}
			synctest.Wait()
			e.hub.CloseBy(func(q *hub.Principal) bool { return p == q })
			k.take(10_000)
			k.want(t, filled(1, 1, 1000)...)
			if finished, _ := k.ended(); !finished {
				t.Error("stream did not end cleanly")
			}
			elapse(2 * time.Second)
			if _, aborted := stuck.ended(); !aborted {
				t.Error("stream of a stuck reader goes on")
			}
		})
	})
}

func TestHistoryTrouble(t *testing.T) {
	t.Run("a failing tail is retried and shows in Ready", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			stub := &stubLog{Log: openMemory(t)}
			e := newEnv(t, func(o *hub.Options) { o.Log = stub })
			k := e.stream(nil, "a")
			e.publish("1", "a")
			k.want(t, "1")
			stub.set(&stub.headErr, errors.New("down"))
			stub.breakTail(errors.New("broken"))
			synctest.Wait()
			if err := e.hub.Ready(t.Context()); err == nil {
				t.Error("Ready = nil, want the reason")
			}
			e.publish("2", "a")
			elapse(time.Minute)
			stub.set(&stub.headErr, nil)
			elapse(5 * time.Second)
			if err := e.hub.Ready(t.Context()); err != nil {
				t.Errorf("Ready = %v, want nil", err)
			}
			e.publish("3", "a")
			k.want(t, "1", "2", "3")
		})
	})
	for name, cause := range map[string]struct {
		err   error
		epoch string
	}{
		"a position that is gone ends all streams": {history.ErrPositionGone, ""},
		"a new epoch ends all streams":             {errors.New("failover"), "new"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stub := &stubLog{Log: openMemory(t)}
				e := newEnv(t, func(o *hub.Options) { o.Log = stub })
				k, replaying := e.stream(nil, "a"), attach(e.subscribe(hub.SubscribeRequest{
					Matchers: e.matchers("a"), Cursor: "earliest", HasCursor: true,
				}), 0)
				e.publish("1", "a")
				k.want(t, "1")
				stub.mu.Lock()
				stub.epoch = cause.epoch
				stub.mu.Unlock()
				stub.breakTail(cause.err)
				elapse(time.Second)
				for _, k := range []*memSink{k, replaying} {
					if finished, _ := k.ended(); !finished {
						t.Error("stream goes on")
					}
				}
				again := e.stream(nil, "a")
				e.publish("2", "a")
				again.want(t, "2")
				e.resume(nil, "earliest", "a").want(t, "1", "2")
			})
		})
	}
	t.Run("a page that cannot be read ends the stream", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			stub := &stubLog{Log: openMemory(t)}
			e := newEnv(t, func(o *hub.Options) { o.Log, o.Backlog = stub, 10_000 })
			all := filled(1, 200, 1000)
			for _, d := range all {
				e.publish(d, "a")
			}
			k := attach(e.subscribe(hub.SubscribeRequest{
				Matchers: e.matchers("a"), Cursor: "earliest", HasCursor: true,
			}), 10)
			synctest.Wait()
			stub.set(&stub.replayErr, errors.New("down"))
			k.take(-1)
			synctest.Wait()
			if finished, _ := k.ended(); !finished {
				t.Error("stream goes on")
			}
			if got := k.data(t); len(got) == 0 || !slices.Equal(got, all[:len(got)]) {
				t.Errorf("stream = %d events, want the first page", len(got))
			}
		})
	})
}
