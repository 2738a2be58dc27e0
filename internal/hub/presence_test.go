package hub_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/presence"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/sse"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
	"github.com/cinnabar-hub/cinnabar/test/bubble"
)

// everySubscription selects all subscription events.
const everySubscription = "~/.well-known/mercure/subscriptions/:type/:match/:subscriber"

// document is a subscription event as a reader sees it.
type document struct {
	ID         string          `json:"id"`
	Type       string          `json:"type"`
	MatchType  string          `json:"match_type"`
	Match      string          `json:"match"`
	Subscriber string          `json:"subscriber"`
	Active     bool            `json:"active"`
	Payload    json.RawMessage `json:"payload"`
}

func parseDocument(tb testing.TB, data string) document {
	tb.Helper()
	d := document{}
	if err := json.Unmarshal([]byte(data), &d); err != nil {
		tb.Fatalf("%q is no document: %v", data, err)
	}
	return d
}

// withSubscriptions starts a hub that announces subscriptions.
func withSubscriptions(tb testing.TB, change func(*hub.Options)) *env {
	tb.Helper()
	return newEnv(tb, func(o *hub.Options) {
		o.Subscriptions = true
		if change != nil {
			change(o)
		}
	})
}

// announced returns the subscription events in the history, oldest first.
func (e *env) announced() []document {
	e.t.Helper()
	var all []document
	for _, entry := range e.stored() {
		if entry.Subscription {
			ev, err := sse.NewDecoder(bytes.NewReader(entry.Event), 0).Next()
			if err != nil || ev.Type != mercure.ReservedEventType || ev.ID != entry.ID || !entry.Private {
				e.t.Errorf("event %q at %d: %+v, %v", entry.Event, entry.Position, ev, err)
			}
			all = append(all, parseDocument(e.t, ev.Data))
		}
	}
	return all
}

// stored returns what is in the history.
func (e *env) stored() []history.Entry {
	e.t.Helper()
	var all []history.Entry
	for after := history.Position(0); ; {
		page, err := e.log.Replay(context.Background(), history.Query{After: after})
		if err != nil {
			e.t.Fatal(err)
		}
		all = append(all, page.Entries...)
		if page.Through == after {
			return all
		}
		after = page.Through
	}
}

// summary is what happened, as words like "+exact:a" and "-urlpattern:/:x".
func summary(all []document) []string {
	words := make([]string, len(all))
	for i, d := range all {
		words[i] = map[bool]string{true: "+", false: "-"}[d.Active] + d.MatchType + ":" + d.Match
	}
	return words
}

func wantWords(tb testing.TB, what string, got []document, want ...string) {
	tb.Helper()
	if words := summary(got); !slices.Equal(words, want) {
		tb.Errorf("%s: %q, want %q", what, words, want)
	}
}

func TestSubscriptionEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := withSubscriptions(t, nil)
		watcher := e.stream(e.principal(grant(everySubscription[1:], topic.URLPattern, rar.Subscribe)), everySubscription)
		other := e.stream(e.reader("a"), everySubscription)
		synctest.Wait()
		bubble.Advance(time.Second)
		detail := grant("*", topic.Exact, rar.Subscribe)
		detail.Payload = json.RawMessage("{\"name\":\n \"alice\"}")
		s := e.stream(e.principal(detail), "https://e.example/a b%20c:é*", "~/books/:id")
		bubble.Advance(time.Second)
		s.sub.End()
		bubble.Advance(time.Second)

		var got []document
		ids := map[string]bool{}
		for _, ev := range watcher.events(t) {
			if ev.Type != "mercure" || ev.ID == "" || ids[ev.ID] {
				t.Errorf("ACT-21, ACT-22: event %+v", ev)
			}
			ids[ev.ID] = true
			got = append(got, parseDocument(t, ev.Data))
		}
		const match = "https://e.example/a b%20c:é*"
		wantWords(t, "ACT-02, ACT-03, ACT-23", got, "+urlpattern:"+everySubscription[1:], "+urlpattern:"+everySubscription[1:],
			"+exact:"+match, "+urlpattern:/books/:id", "-exact:"+match, "-urlpattern:/books/:id")
		for i, d := range got[2:] {
			want := document{
				ID: got[i+2].ID, Type: "subscription", MatchType: "exact", Match: match, Subscriber: s.sub.ID(), Active: i < 2,
			}
			segment := "exact/https%3A%2F%2Fe.example%2Fa%20b%2520c%3A%C3%A9%2A/"
			if i%2 == 1 {
				want.MatchType, want.Match, segment = "urlpattern", "/books/:id", "urlpattern/%2Fbooks%2F%3Aid/"
			}
			id := "/.well-known/mercure/subscriptions/" + segment + strings.ReplaceAll(s.sub.ID(), ":", "%3A")
			if string(d.Payload) != "{\"name\":\n \"alice\"}" || d.ID != id {
				t.Errorf("PAY-01, ACT-04 to ACT-07: document %+v, want the topic %s", d, id)
			}
			d.Payload = nil
			if fmt.Sprint(d) != fmt.Sprint(want) {
				t.Errorf("ACT-14 to ACT-18: document %+v, want %+v", d, want)
			}
		}
		if got[0].Subscriber == got[2].Subscriber || got[2].Subscriber != got[3].Subscriber {
			t.Error("ACT-10, ACT-12: an identifier belongs to one connection and all its subscriptions")
		}
		if events := other.events(t); len(events) > 0 {
			t.Errorf("ACT-20: a reader without a grant got %v", events)
		}
		if e.metrics.announced != 6 {
			t.Errorf("%d events were counted, want 6", e.metrics.announced)
		}
	})
}

// A reader of an event finds its effect in the list, whenever it asks.
func TestSubscriptionEvents_listFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e *env
		var lists []int
		log := &stubLog{Log: openMemory(t)}
		log.appending = func() {
			_, list, err := e.hub.ActiveSubscriptions(t.Context(), hub.SubscriptionQuery{})
			if err != nil {
				t.Error(err)
			}
			lists = append(lists, len(list))
		}
		e = withSubscriptions(t, func(o *hub.Options) { o.Log = log })
		s := e.stream(nil, "a", "b")
		bubble.Advance(time.Second)
		s.sub.End()
		bubble.Advance(time.Second)
		if !slices.Equal(lists, []int{2, 0}) {
			t.Errorf("lists had %v subscriptions when the events were stored, want 2 and 0", lists)
		}
	})
}

func TestActiveSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := withSubscriptions(t, nil)
		detail := grant("a", topic.Exact, rar.Subscribe)
		detail.Payload = json.RawMessage(`{"n":1}`)
		one := e.stream(e.principal(detail), "a", "b", "~a")
		two := e.stream(nil, "a", "*")
		three := e.stream(nil, "a", "~*")
		bubble.Advance(time.Second)
		last := e.stored()
		for _, tc := range []struct {
			name  string
			query hub.SubscriptionQuery
			want  []string
		}{
			{"ACT-39 all", hub.SubscriptionQuery{}, []string{"exact a 1", "exact b 1", "urlpattern a 1", "exact a 2", "exact * 2", "exact a 3", "urlpattern * 3"}},
			{"ACT-40 of a matcher", hub.SubscriptionQuery{MatchType: topic.Exact, Match: "a"}, []string{"exact a 1", "exact a 2", "exact a 3"}},
			{"ACT-40 of a wildcard, by its type", hub.SubscriptionQuery{MatchType: topic.URLPattern, Match: "*"}, []string{"urlpattern * 3"}},
			{"ACT-48 of no matcher", hub.SubscriptionQuery{MatchType: topic.Exact, Match: "c"}, nil},
			{"ACT-33 one", hub.SubscriptionQuery{MatchType: topic.Exact, Match: "a", Subscriber: two.sub.ID()}, []string{"exact a 2"}},
			{"ACT-34 none", hub.SubscriptionQuery{MatchType: topic.Exact, Match: "b", Subscriber: two.sub.ID()}, nil},
			{"one of many", hub.SubscriptionQuery{Subscriber: one.sub.ID()}, []string{"exact a 1", "exact b 1", "urlpattern a 1"}},
		} {
			cursor, list, err := e.hub.ActiveSubscriptions(t.Context(), tc.query)
			if err != nil || cursor != last[len(last)-1].ID {
				t.Fatalf("ActiveSubscriptions = %q, %v, want the last id %q", cursor, err, last[len(last)-1].ID)
			}
			numbers := map[string]string{one.sub.ID(): "1", two.sub.ID(): "2", three.sub.ID(): "3"}
			var got []string
			for _, s := range list {
				got = append(got, s.MatchType+" "+s.Match+" "+numbers[s.Subscriber])
				wantPayload := ""
				if s.Match == "a" && s.Subscriber == one.sub.ID() {
					wantPayload = `{"n":1}`
				}
				if string(s.Payload) != wantPayload || !s.Active || s.ID != mercure.SubscriptionsTopic(mercure.DefaultHubPath, s.MatchType, s.Match, s.Subscriber) {
					t.Errorf("%s: %+v", tc.name, s)
				}
			}
			slices.Sort(got)
			slices.Sort(tc.want)
			if !slices.Equal(got, tc.want) {
				t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
			}
		}
		for _, s := range []*memSink{two, one, three} {
			s.sub.End()
		}
		synctest.Wait()
		if _, list, _ := e.hub.ActiveSubscriptions(t.Context(), hub.SubscriptionQuery{}); len(list) > 0 {
			t.Errorf("subscriptions that have ended are listed: %+v", list)
		}
	})
}

func TestActiveSubscriptions_nothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &stubLog{Log: openMemory(t)}
		e := newEnv(t, func(o *hub.Options) { o.Log = log })
		e.stream(nil, "a")
		bubble.Advance(time.Second)
		cursor, list, err := e.hub.ActiveSubscriptions(t.Context(), hub.SubscriptionQuery{})
		if err != nil || cursor != mercure.Earliest || len(list) != 0 || len(e.stored()) != 0 {
			t.Errorf("ACT-42, ACT-47: ActiveSubscriptions = %q, %v, %v", cursor, list, err)
		}
		log.set(&log.headErr, errors.New("no disk"))
		if _, _, err := e.hub.ActiveSubscriptions(t.Context(), hub.SubscriptionQuery{}); !errors.Is(err, hub.ErrUnavailable) {
			t.Errorf("ActiveSubscriptions without a history = %v, want ErrUnavailable", err)
		}
	})
}

// A stream without a cursor begins after the events that were stored before it was opened, even if nobody has got them yet.
func TestSubscriptionEvents_startLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		log := &stubLog{Log: openMemory(t), tailing: func() { <-held }}
		e := withSubscriptions(t, func(o *hub.Options) { o.Log = log })
		e.stream(nil, "before")
		bubble.Advance(time.Second)
		wantWords(t, "stored", e.announced(), "+exact:before")
		watcher := e.stream(e.root, everySubscription, "~/.well-known/mercure/subscriptions/exact/*")
		close(held)
		bubble.Advance(time.Second)
		for _, data := range watcher.data(t) {
			if d := parseDocument(t, data); d.Match == "before" {
				t.Errorf("got %+v, which was stored before the stream was opened", d)
			}
		}
		if n := len(watcher.data(t)); n != 2 {
			t.Errorf("got %d events, want its own two", n)
		}
	})
}

// A storm of readers costs few commits, and the first is announced at once.
func TestSubscriptionEvents_gathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		commits := 0
		log := &stubLog{Log: openMemory(t), appending: func() { commits++ }}
		e := withSubscriptions(t, func(o *hub.Options) { o.Log = log })
		bubble.Advance(time.Second)
		e.stream(nil, "first")
		synctest.Wait()
		wantWords(t, "at once", e.announced(), "+exact:first")
		for range 200 {
			e.stream(nil, "a")
		}
		synctest.Wait()
		if commits != 1 {
			t.Errorf("%d commits before the events were gathered, want 1", commits)
		}
		bubble.Advance(50 * time.Millisecond)
		synctest.Wait()
		if n := len(e.announced()); n != 201 || commits != 2 {
			t.Errorf("%d events in %d commits after 50 ms, want 201 in 2", n, commits)
		}
	})
}

func TestSubscriptionEvents_largeMatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := withSubscriptions(t, nil)
		var patterns []string
		for n := range 256 {
			patterns = append(patterns, fmt.Sprint(n, strings.Repeat("é", 2000)))
		}
		e.stream(nil, patterns...)
		bubble.Advance(time.Second)
		if got := e.announced(); len(got) != 256 || got[255].Match != patterns[255] {
			t.Errorf("ACT-23: %d events of a reader with 256 large matchers", len(got))
		}
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

// directory is a presence.Directory that outlives the hubs of a test.
type directory struct {
	mu       sync.Mutex
	mine     map[string]presence.Subscriber
	lapsed   map[string]presence.Subscriber
	reaped   map[string]bool
	err      error
	changing func() // called before each change
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
	if d.err != nil {
		return nil, d.err
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

func (d *directory) open() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.mine) + len(d.lapsed)
}

func TestSubscriptionEvents_directory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDirectory()
		log := &stubLog{Log: openMemory(t)}
		e := withSubscriptions(t, func(o *hub.Options) { o.Log, o.Directory = log, d })
		var stored []int
		log.appending = func() { stored = append(stored, d.open()) }
		s := e.stream(nil, "a", "b")
		bubble.Advance(time.Second)
		s.sub.End()
		bubble.Advance(time.Second)
		if !slices.Equal(stored, []int{1, 1}) || d.open() != 0 {
			t.Errorf("%v subscribers were kept while events were stored and %d afterwards, want 1, 1 and 0", stored, d.open())
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
				changed := false
				d.changing = func() { changed = true }
				e.stop()
				<-e.stopped
				if changed && graceful {
					t.Error("the directory was changed after Quiesce")
				}
				d.changing = nil
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
		if n := strings.Count(out.String(), "level=ERROR"); n != 1 || !strings.Contains(out.String(), "is stored again") {
			t.Errorf("the operator was told %d times:\n%s", n, out.String())
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
