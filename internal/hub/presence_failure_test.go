package hub_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/memory"
	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/test/bubble"
)

// An event that the history cannot hold keeps no other from being stored.
func TestSubscriptionEvents_tooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := &stubLog{Log: openMemory(t), refuse: func(r *history.Record) error {
			if strings.Contains(r.Topics[0], "/large/") {
				return history.ErrTooLarge
			}
			return nil
		}}
		e := withSubscriptions(t, func(o *hub.Options) { o.Log, o.Logger = log, slog.New(slog.NewTextHandler(&out, nil)) })
		e.stream(nil, "first", "large", "last")
		bubble.Advance(time.Second)
		wantWords(t, "events", e.announced(), "+exact:first", "+exact:last")
		e.stream(nil, "large")
		bubble.Advance(time.Second)
		e.stream(nil, "brief").sub.End()
		bubble.Advance(time.Second)
		wantWords(t, "events afterwards", e.announced(), "+exact:first", "+exact:last", "+exact:brief", "-exact:brief")
		if n := strings.Count(out.String(), "level=ERROR"); n != 2 || e.metrics.announced != 4 {
			t.Errorf("the operator was told %d times and counts %d, want 2 and 4:\n%s", n, e.metrics.announced, out.String())
		}
	})
}

// A history that neither stores nor refuses bounds what waits as well, and nobody waits for it.
func TestSubscriptionEvents_stalledHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 1 << 16
		stalled := make(chan struct{})
		all, err := memory.Open(memory.Options{MaxSubscriptionEvents: -1, MaxBytes: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer all.Close()
		log := &stubLog{Log: all, appending: func() { <-stalled }}
		e := withSubscriptions(t, func(o *hub.Options) { o.Log, o.MaxLifetime = log, 0 })
		var patterns []string
		for n := range 256 {
			patterns = append(patterns, fmt.Sprint("m", n))
		}
		matchers := e.matchers(patterns...)
		known := e.stream(nil, "known")
		bubble.Advance(time.Second)
		for range 1000 {
			s := e.subscribe(hub.SubscribeRequest{Matchers: matchers})
			s.Discard()
			<-s.Done()
		}
		during := e.stream(nil, "during")
		known.sub.End()
		synctest.Wait()
		if n := e.hub.Unannounced(); n > 2*most/256+10 {
			t.Errorf("%d changes wait", n)
		}
		close(stalled)
		bubble.Advance(time.Minute)
		events := e.announced()
		checkAnnounced(t, events, map[string]bool{"during": true})
		n := len(events)
		if n < most || n > 2*most+1000 {
			t.Errorf("%d events, want twice %d or some more", n, most)
		}
		wantWords(t, "at last, of those who are known or open", events[n-2:], "+exact:during", "-exact:known")
		during.sub.End()
	})
}

// While nothing can be stored, what is to be announced waits; readers that come and go meanwhile are not among it.
func TestSubscriptionEvents_noHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := &stubLog{Log: openMemory(t)}
		e := withSubscriptions(t, func(o *hub.Options) {
			o.Log, o.Logger, o.MaxLifetime = log, slog.New(slog.NewTextHandler(&out, nil)), 0
		})
		known := e.stream(nil, "known")
		bubble.Advance(time.Second)
		log.set(&log.appendErr, history.ErrNoSpace)
		during := e.stream(nil, "during")
		bubble.Advance(10 * time.Second)
		for range 10_000 {
			e.stream(nil, "brief").sub.End()
		}
		synctest.Wait()
		if n := e.hub.Unannounced(); n > 10 {
			t.Errorf("%d changes wait although nobody needs to hear of them", n)
		}
		known.sub.End()
		log.set(&log.appendErr, nil)
		bubble.Advance(time.Minute)
		wantWords(t, "afterwards", e.announced(), "+exact:known", "+exact:during", "-exact:known")
		during.sub.End()
		bubble.Advance(time.Second)
		if got := e.announced(); len(got) != 4 {
			t.Errorf("events: %q", summary(got))
		}
		if n := strings.Count(out.String(), "level=ERROR"); n != 1 || !strings.Contains(out.String(), "are stored again") {
			t.Errorf("the operator was told %d times:\n%s", n, out.String())
		}
	})
}

// What waits for a history that takes nothing is not appended any more once the hub is quiesced, and what comes then does not wait.
func TestSubscriptionEvents_quiescedWhileFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := &stubLog{Log: openMemory(t)}
		e := withSubscriptions(t, func(o *hub.Options) { o.Log, o.Logger = log, slog.New(slog.NewTextHandler(&out, nil)) })
		log.set(&log.appendErr, history.ErrNoSpace)
		var open []*memSink
		for range 10 {
			open = append(open, e.stream(nil, "a"))
		}
		bubble.Advance(time.Second)
		if err := e.hub.Quiesce(t.Context()); err != nil {
			t.Fatal(err)
		}
		log.set(&log.appendErr, nil)
		bubble.Advance(time.Minute)
		for _, s := range open {
			s.sub.End()
		}
		bubble.Advance(time.Minute)
		if n := len(e.announced()); n != 0 || e.hub.Unannounced() != 0 {
			t.Errorf("%d events after Quiesce, and %d changes wait for nobody", n, e.hub.Unannounced())
		}
		if n := strings.Count(out.String(), "level="); n != 1 {
			t.Errorf("the operator was told %d times, want once:\n%s", n, out.String())
		}
	})
}

// A hub that is told to end while it stores something says nothing of a failure.
func TestSubscriptionEvents_stopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := &stubLog{Log: openMemory(t)}
		e := withSubscriptions(t, func(o *hub.Options) { o.Log, o.Logger = log, slog.New(slog.NewTextHandler(&out, nil)) })
		log.refuse = func(*history.Record) error {
			e.stop()
			return context.Canceled
		}
		e.stream(nil, "a")
		<-e.stopped
		if out.Len() > 0 {
			t.Errorf("the operator was told:\n%s", out.String())
		}
	})
}
