package hub

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestWheel compares the wheel with a list of appointments.
func TestWheel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w wheel
		now := instant(0)
		due := map[*Subscriber]int64{}
		subs := make([]*Subscriber, rapid.IntRange(1, 8).Draw(t, "subscribers"))
		for i := range subs {
			subs[i] = &Subscriber{}
		}
		sub := rapid.SampledFrom(subs)
		spans := rapid.Custom(func(t *rapid.T) time.Duration {
			limit := rapid.SampledFrom([]time.Duration{wheelTick, time.Second, time.Minute, 3 * time.Minute}).Draw(t, "limit")
			return time.Duration(rapid.Int64Range(0, int64(limit)).Draw(t, "span"))
		})
		t.Repeat(map[string]func(*rapid.T){
			"schedule": func(t *rapid.T) {
				s, at := sub.Draw(t, "subscriber"), now+spans.Draw(t, "in")
				tick := min(max(int64(at/wheelTick), w.tick+1), w.tick+wheelSlots-1)
				w.schedule(s, at)
				if old, ok := due[s]; !ok || tick < old {
					due[s] = tick
				}
			},
			"remove": func(t *rapid.T) {
				s := sub.Draw(t, "subscriber")
				w.remove(s)
				delete(due, s)
			},
			"advance": func(t *rapid.T) {
				now += spans.Draw(t, "by")
				got := map[*Subscriber]bool{}
				for _, s := range w.advance(now, nil) {
					got[s] = true
				}
				for s, tick := range due {
					if want := tick <= int64(now/wheelTick); want != got[s] {
						t.Fatalf("due at tick %d, now %v: brought up = %v, want %v", tick, now, got[s], want)
					}
					if got[s] {
						delete(due, s)
					}
				}
			},
			"": func(t *rapid.T) {
				at, ok := w.next()
				if ok != (len(due) > 0) || w.linked != len(due) {
					t.Fatalf("next = %v, linked = %d, want %d appointments", ok, w.linked, len(due))
				}
				for _, tick := range due {
					if at > instant(tick)*wheelTick {
						t.Fatalf("next = %v, want at most %v", at, instant(tick)*wheelTick)
					}
				}
			},
		})
	})
}
