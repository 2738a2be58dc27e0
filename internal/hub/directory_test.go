package hub_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/presence"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
	"github.com/cinnabar-hub/cinnabar/test/bubble"
)

// directory is a presence.Directory that outlives the hubs of a test.
type directory struct {
	mu       sync.Mutex
	mine     map[string]presence.Subscriber
	lapsed   map[string]presence.Subscriber
	reaped   map[string]bool
	err      error
	reapErr  error
	changing func() // called before each change
	putting  func([]presence.Subscriber)
}

func newDirectory() *directory { return &directory{mine: map[string]presence.Subscriber{}} }

// crash makes the subscribers of this process those of one that is gone.
func (d *directory) crash() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lapsed == nil {
		d.lapsed = map[string]presence.Subscriber{}
	}
	maps.Copy(d.lapsed, d.mine)
	d.mine, d.reaped = map[string]presence.Subscriber{}, map[string]bool{}
}

func (d *directory) change() error {
	if d.changing != nil {
		d.changing()
	}
	return d.err
}

func (d *directory) Put(_ context.Context, subscribers []presence.Subscriber) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.change(); err != nil {
		return err
	}
	if d.putting != nil {
		d.putting(subscribers)
	}
	for _, s := range subscribers {
		d.mine[s.ID] = s
	}
	return nil
}

func (d *directory) Remove(_ context.Context, ids []string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.change(); err != nil {
		return err
	}
	for _, id := range ids {
		delete(d.mine, id)
		delete(d.lapsed, id)
	}
	return nil
}

func (d *directory) Reap(_ context.Context, limit int) ([]presence.Subscriber, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := errors.Join(d.err, d.reapErr); err != nil {
		return nil, err
	}
	var all []presence.Subscriber
	for id, s := range d.lapsed {
		if !d.reaped[id] && len(all) < max(limit, 1) {
			d.reaped[id] = true
			all = append(all, s)
		}
	}
	return all, nil
}

func (d *directory) Close() error { return nil }

// watch has f called before each change from now on.
func (d *directory) watch(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changing = f
}

func (d *directory) open() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.mine) + len(d.lapsed)
}

func TestSubscriptionEvents_directory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDirectory()
		var stored, puts tally
		log := &stubLog{Log: openMemory(t), appending: func() { stored.add(d.open()) }}
		d.putting = func(subscribers []presence.Subscriber) { puts.add(len(subscribers)) }
		e := withSubscriptions(t, func(o *hub.Options) { o.Log, o.Directory = log, d })
		s := e.stream(nil, "a", "b")
		bubble.Advance(time.Second)
		s.sub.End()
		bubble.Advance(time.Second)
		if got := stored.list(); !slices.Equal(got, []int{1, 1}) || d.open() != 0 {
			t.Errorf("%v subscribers were kept while events were stored and %d afterwards, want 1, 1 and 0", got, d.open())
		}
		if puts.sum() != 1 {
			t.Errorf("a subscriber was put %d times", puts.sum())
		}
	})
}

// What a process had open when it was killed, or handed over, its successor ends.
func TestSubscriptionEvents_successor(t *testing.T) {
	for _, graceful := range []bool{false, true} {
		t.Run(fmt.Sprint("graceful=", graceful), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, log := newDirectory(), openMemory(t)
				e := withSubscriptions(t, func(o *hub.Options) { o.Log, o.Directory = log, d })
				detail := grant("*", topic.Exact, rar.Subscribe)
				detail.Payload = json.RawMessage(`{"n":1}`)
				p := e.principal(detail)
				for n := range 1000 {
					e.stream(p, fmt.Sprint("m", n), "~/:x")
				}
				gone := e.stream(p, "gone")
				bubble.Advance(time.Second)
				gone.sub.End()
				bubble.Advance(time.Second)
				before := len(e.announced())
				if graceful {
					if err := e.hub.Quiesce(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				var changes tally
				d.watch(func() { changes.add(1) })
				e.stop()
				<-e.stopped
				if changes.sum() > 0 && graceful {
					t.Error("the directory was changed after Quiesce")
				}
				d.watch(nil)
				if graceful && len(e.announced()) != before {
					t.Error("events were stored after Quiesce")
				}
				d.crash()
				next := withSubscriptions(t, func(o *hub.Options) { o.Log, o.Directory = log, d })
				next.stream(p, "new")
				bubble.Advance(time.Second)
				checkAnnounced(t, next.announced(), map[string]bool{"new": true})
				if n := d.open(); n != 1 {
					t.Errorf("%d subscribers are kept, want the one that is open", n)
				}
				_, list, err := next.hub.ActiveSubscriptions(t.Context(), hub.SubscriptionQuery{})
				if err != nil || len(list) != 1 {
					t.Errorf("ActiveSubscriptions = %v, %v, want the one that is open", list, err)
				}
			})
		})
	}
}

// checkAnnounced checks that every subscription began once, and ended once if its matcher is not among those that are open.
func checkAnnounced(tb testing.TB, all []document, open map[string]bool) {
	tb.Helper()
	active := map[string]string{}
	ended := map[string]bool{}
	for _, d := range all {
		_, known := active[d.ID]
		switch {
		case d.Active && known, !d.Active && !known, ended[d.ID]:
			tb.Errorf("active is %v of %s, which began %v and ended %v", d.Active, d.ID, known, ended[d.ID])
		case d.Active:
			active[d.ID] = d.Match + string(d.Payload)
		default:
			ended[d.ID] = true
			if active[d.ID] != d.Match+string(d.Payload) {
				tb.Errorf("%s ended with another document than it began: %+v", d.ID, d)
			}
		}
		if open[d.Match] && !d.Active {
			tb.Errorf("%s is open and has ended", d.ID)
		}
	}
	for id, match := range active {
		name, _, _ := strings.Cut(match, "{")
		if !ended[id] && !open[name] {
			tb.Errorf("%s (%s) never ended", id, match)
		}
	}
}

// quiesceMeanwhile quiesces the hub, closes the channel once that is done, and returns when it has begun.
func (e *env) quiesceMeanwhile(done chan<- struct{}) {
	go func() {
		defer close(done)
		if err := e.hub.Quiesce(context.Background()); err != nil {
			e.t.Errorf("Quiesce = %v", err)
		}
	}()
	for !errors.Is(e.hub.Ready(context.Background()), hub.ErrDraining) {
		runtime.Gosched()
	}
}

// Once the hub is quiesced, in the middle of whatever it is, it leaves the history and the directory to its successor.
func TestSubscriptionEvents_quiesced(t *testing.T) {
	large := grant("*", topic.Exact, rar.Subscribe)
	large.Payload = json.RawMessage(`{"x":"` + strings.Repeat("x", 700_000) + `"}`)
	for name, tc := range map[string]struct {
		left         []presence.Subscriber                      // by another process
		happens      func(e *env, d *directory, known *memSink) // in one round of the announcer
		kept, events int
	}{
		"before an end is forgotten": {
			happens: func(_ *env, _ *directory, known *memSink) { known.sub.End() },
			kept:    1, events: 2,
		},
		"before the rest is put": {
			happens: func(e *env, _ *directory, _ *memSink) {
				p := e.principal(large)
				e.stream(p, "large")
				e.stream(p, "larger")
			},
			kept: 2, events: 2,
		},
		"before those of another process are reaped": {
			left: []presence.Subscriber{{ID: "old", Subscriptions: []presence.Subscription{{MatchType: "exact", Match: "old"}}}},
			happens: func(e *env, d *directory, _ *memSink) {
				d.mu.Lock()
				d.reapErr = nil
				d.mu.Unlock()
				e.stream(nil, "a")
			},
			kept: 3, events: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, log := newDirectory(), &stubLog{Log: openMemory(t)}
				for _, s := range tc.left {
					d.mine[s.ID] = s
				}
				d.crash()
				d.reapErr = errors.New("not yet")
				var e *env
				var quiesce atomic.Bool
				quiesced := make(chan struct{})
				log.appending = func() {
					if quiesce.CompareAndSwap(true, false) {
						e.quiesceMeanwhile(quiesced)
					}
				}
				e = withSubscriptions(t, func(o *hub.Options) { o.Log, o.Directory = log, d })
				known := e.stream(nil, "known")
				bubble.Advance(60 * time.Millisecond) // what is next is gathered
				quiesce.Store(true)
				tc.happens(e, d, known)
				<-quiesced
				bubble.Advance(time.Minute)
				if n := len(e.announced()); n != tc.events || d.open() != tc.kept || len(d.reaped) > 0 {
					t.Errorf("%d events, %d subscribers are kept and %d were reaped, want %d, %d and none", n, d.open(), len(d.reaped), tc.events, tc.kept)
				}
			})
		})
	}
}

// A directory that fails keeps nobody from being told, and is used again when it works.
func TestSubscriptionEvents_brokenDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		d, log := newDirectory(), openMemory(t)
		d.mine["old"] = presence.Subscriber{ID: "old", Subscriptions: []presence.Subscription{{MatchType: "exact", Match: "old"}}}
		d.crash()
		d.err = errors.New("no disk")
		e := withSubscriptions(t, func(o *hub.Options) {
			o.Log, o.Directory, o.Logger = log, d, slog.New(slog.NewTextHandler(&out, nil))
		})
		e.stream(nil, "a")
		bubble.Advance(time.Second)
		e.stream(nil, "b").sub.End()
		bubble.Advance(time.Second)
		wantWords(t, "meanwhile", e.announced(), "+exact:a", "+exact:b", "-exact:b")
		d.mu.Lock()
		d.err = nil
		d.mu.Unlock()
		bubble.Advance(10 * time.Second)
		wantWords(t, "afterwards", e.announced(), "+exact:a", "+exact:b", "-exact:b", "-exact:old")
		e.stream(nil, "c")
		bubble.Advance(time.Second)
		if n := d.open(); n != 1 {
			t.Errorf("%d subscribers are kept, want 1", n)
		}
		for _, operation := range []string{"put", "remove", "reap"} {
			if n := strings.Count(out.String(), "operation="+operation); n != 2 {
				t.Errorf("the operator was told %d times of %s, want when it failed and when it worked again:\n%s", n, operation, out.String())
			}
		}
	})
}

// What fails alone, for ever, is told of once, and keeps nothing else from working.
func TestSubscriptionEvents_brokenReap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		d := newDirectory()
		d.reapErr = errors.New("a page is damaged")
		e := withSubscriptions(t, func(o *hub.Options) { o.Directory, o.Logger = d, slog.New(slog.NewTextHandler(&out, nil)) })
		for range 10 {
			s := e.stream(nil, "a")
			bubble.Advance(time.Second)
			s.sub.End()
			bubble.Advance(time.Second)
		}
		if got := e.announced(); len(got) != 20 || d.open() != 0 {
			t.Errorf("%d events, and %d subscribers are kept, want 20 and none", len(got), d.open())
		}
		if n := strings.Count(out.String(), "level="); n != 1 {
			t.Errorf("the operator was told %d times:\n%s", n, out.String())
		}
	})
}

// A payload counts for each subscription that it belongs to: what goes into the directory at a time is bounded by bytes.
func TestSubscriptionEvents_largePayloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		payload := json.RawMessage(`{"x":"` + strings.Repeat("x", 20_000) + `"}`)
		var sizes tally
		d := newDirectory()
		d.putting = func(subscribers []presence.Subscriber) {
			size := 0
			for _, s := range subscribers {
				size += len(s.Subscriptions) * len(payload)
			}
			sizes.add(size)
		}
		e := withSubscriptions(t, func(o *hub.Options) { o.Directory = d })
		var patterns []string
		for n := range 10 {
			patterns = append(patterns, fmt.Sprint("m", n))
		}
		detail := grant("*", topic.Exact, rar.Subscribe)
		detail.Payload = payload
		p := e.principal(detail)
		for range 100 {
			e.stream(p, patterns...)
		}
		bubble.Advance(time.Second)
		if len(e.announced()) != 1000 || d.open() != 100 {
			t.Errorf("%d events of %d subscribers, want 1000 of 100", len(e.announced()), d.open())
		}
		if puts := sizes.list(); slices.Max(puts) > 1<<20 || len(puts) > 25 {
			t.Errorf("%d bytes were put at once, in one of %d times; want at most 1 MiB in some 20", slices.Max(puts), len(puts))
		}
	})
}

// TestSubscriptionEvents_random has readers come and go under failures and restarts: everybody who was announced ends once, and nobody twice.
func TestSubscriptionEvents_random(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) [3]int {
			return [3]int{rapid.IntRange(0, 9).Draw(t, "action"), rapid.IntRange(0, 30).Draw(t, "n"), rapid.IntRange(0, 120).Draw(t, "ms")}
		}), 1, 40).Draw(rt, "steps")
		var failures recorder
		synctest.Test(t, func(t *testing.T) {
			failures.TB = t
			d, log := newDirectory(), &stubLog{Log: openMemory(t)}
			start := func() *env {
				return withSubscriptions(t, func(o *hub.Options) { o.Log, o.Directory, o.MaxLifetime, o.DrainWindow = log, d, 0, 0 })
			}
			e := start()
			var open []*memSink
			names := map[*memSink]string{}
			for number, step := range steps {
				switch action, n := step[0], step[1]; action {
				case 0, 1, 2, 3:
					name := fmt.Sprint("m", number)
					s := e.stream(nil, name, "~/:shared")
					open, names[s] = append(open, s), name
				case 4, 5, 6:
					if len(open) > 0 {
						i := n % len(open)
						open[i].sub.End()
						open = slices.Delete(open, i, i+1)
					}
				case 7:
					log.set(&log.appendErr, map[bool]error{true: history.ErrNoSpace}[n%2 == 0])
				case 8:
					e.subscribe(hub.SubscribeRequest{Matchers: e.matchers("discarded")}).Discard()
				case 9:
					log.set(&log.appendErr, nil)
					bubble.Advance(10 * time.Second)
					if n%2 == 0 {
						_ = e.hub.Quiesce(t.Context())
					}
					e.stop()
					<-e.stopped
					d.crash()
					e, open = start(), nil
				}
				bubble.Advance(time.Duration(step[2]) * time.Millisecond)
			}
			log.set(&log.appendErr, nil)
			bubble.Advance(time.Minute)
			want := map[string]bool{}
			for _, s := range open {
				want[names[s]] = true
			}
			all := slices.DeleteFunc(e.announced(), func(d document) bool { return d.Match == "/:shared" })
			checkAnnounced(&failures, all, want)
			began := map[string]bool{}
			for _, d := range all {
				began[d.Match] = true
			}
			for name := range want {
				if !began[name] {
					failures.Errorf("%s is open and was not announced", name)
				}
			}
			if n := d.open(); n != len(open) {
				failures.Errorf("%d subscribers are kept, want %d", n, len(open))
			}
			_, list, _ := e.hub.ActiveSubscriptions(t.Context(), hub.SubscriptionQuery{})
			if len(list) != 2*len(open) {
				failures.Errorf("%d subscriptions are listed, want %d", len(list), 2*len(open))
			}
		})
		if len(failures.found) > 0 {
			rt.Fatal(failures.found)
		}
	})
}

// recorder keeps what went wrong, for rapid to find the shortest way to it.
type recorder struct {
	testing.TB

	found []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.found = append(r.found, fmt.Sprintf(format, args...))
}
