package hub_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
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
		var lists tally
		log := &stubLog{Log: openMemory(t)}
		log.appending = func() {
			_, list, err := e.hub.ActiveSubscriptions(t.Context(), hub.SubscriptionQuery{})
			if err != nil {
				t.Error(err)
			}
			lists.add(len(list))
		}
		e = withSubscriptions(t, func(o *hub.Options) { o.Log = log })
		s := e.stream(nil, "a", "b")
		bubble.Advance(time.Second)
		s.sub.End()
		bubble.Advance(time.Second)
		if got := lists.list(); !slices.Equal(got, []int{2, 0}) {
			t.Errorf("lists had %v subscriptions when the events were stored, want 2 and 0", got)
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
		var commits tally
		log := &stubLog{Log: openMemory(t), appending: func() { commits.add(1) }}
		e := withSubscriptions(t, func(o *hub.Options) { o.Log = log })
		bubble.Advance(time.Second)
		e.stream(nil, "first")
		synctest.Wait()
		wantWords(t, "at once", e.announced(), "+exact:first")
		for range 200 {
			e.stream(nil, "a")
		}
		synctest.Wait()
		if commits.sum() != 1 {
			t.Errorf("%d commits before the events were gathered, want 1", commits.sum())
		}
		bubble.Advance(50 * time.Millisecond)
		synctest.Wait()
		if n := len(e.announced()); n != 201 || commits.sum() != 2 {
			t.Errorf("%d events in %d commits after 50 ms, want 201 in 2", n, commits.sum())
		}
	})
}

func TestSubscriptionEvents_largeMatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var commits, sizes tally
		log := &stubLog{Log: openMemory(t), appending: func() { commits.add(1) }}
		log.refuse = func(r *history.Record) error { sizes.add(r.Size()); return nil }
		e := withSubscriptions(t, func(o *hub.Options) { o.Log = log })
		var patterns []string
		for n := range 256 {
			patterns = append(patterns, fmt.Sprint(n, strings.Repeat("é", 2000)))
		}
		e.stream(nil, patterns...)
		bubble.Advance(time.Second)
		if got := e.announced(); len(got) != 256 || got[255].Match != patterns[255] {
			t.Errorf("ACT-23: %d events of a reader with 256 large matchers", len(got))
		}
		if most := 2 + 2*sizes.sum()/history.MaxAppendBytes; commits.sum() > most {
			t.Errorf("%d commits of %d bytes, want at most %d", commits.sum(), sizes.sum(), most)
		}
	})
}

// Each subscription has the payload that its own matcher selects, in events and in the list (the rules are tested with the grants).
func TestSubscriptionEvents_payloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := withSubscriptions(t, nil)
		var details []rar.Detail
		for _, d := range []struct{ match, payload string }{{"b", `{"n":2}`}, {"a", `{"n":1}`}, {"c", ""}, {"b", `{"n":3}`}, {"*", `{"n":4}`}} {
			detail := grant(d.match, topic.Exact, rar.Subscribe)
			if d.payload != "" {
				detail.Payload = json.RawMessage(d.payload)
			}
			details = append(details, detail)
		}
		s := e.stream(e.principal(details...), "a", "b", "c", "d")
		e.stream(nil, "a")
		bubble.Advance(time.Second)
		_, list, err := e.hub.ActiveSubscriptions(t.Context(), hub.SubscriptionQuery{})
		if err != nil {
			t.Fatal(err)
		}
		s.sub.End()
		bubble.Advance(time.Second)
		want := map[string]string{"a": `{"n":1}`, "b": `{"n":2}`, "c": "", "d": `{"n":4}`}
		check := func(what, subscriber, match string, payload []byte) {
			if subscriber != s.sub.ID() {
				if payload != nil {
					t.Errorf("PAY-11: %s of a reader without a token has the payload %s", what, payload)
				}
				return
			}
			if string(payload) != want[match] {
				t.Errorf("PAY-10: %s has the payload %q of %s, want %q", what, payload, match, want[match])
			}
		}
		for _, l := range list {
			check("the list", l.Subscriber, l.Match, l.Payload)
		}
		all := e.announced()
		for _, d := range all {
			check(fmt.Sprint("the event with active=", d.Active), d.Subscriber, d.Match, d.Payload)
		}
		if len(list) != 5 || len(all) != 9 {
			t.Errorf("%d subscriptions and %d events, want 5 and 9", len(list), len(all))
		}
	})
}

// Wildcards of two types select the same, and are two subscriptions all the same.
func TestSubscriptionEvents_wildcards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := withSubscriptions(t, nil)
		s := e.stream(e.root, "*", "a", "~*", "*", "~*")
		bubble.Advance(time.Second)
		for _, typ := range []topic.Type{topic.Exact, topic.URLPattern} {
			_, list, err := e.hub.ActiveSubscriptions(t.Context(), hub.SubscriptionQuery{MatchType: typ, Match: "*", Subscriber: s.sub.ID()})
			if err != nil || len(list) != 1 {
				t.Errorf("ACT-40: ActiveSubscriptions of the wildcard of type %s = %v, %v", typ, list, err)
			}
		}
		e.publish("update", "a")
		synctest.Wait()
		s.sub.End()
		bubble.Advance(time.Second)
		wantWords(t, "ACT-23", e.announced(), "+exact:*", "+exact:a", "+urlpattern:*", "-exact:*", "-exact:a", "-urlpattern:*")
		if n := strings.Count(strings.Join(s.data(t), " "), "update"); n != 1 {
			t.Errorf("the reader got the update %d times", n)
		}
	})
}

// Nobody waits for a list any more whose request has ended.
func TestActiveSubscriptions_canceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &stubLog{Log: openMemory(t)}
		e := withSubscriptions(t, func(o *hub.Options) { o.Log = log })
		e.stream(nil, "a")
		ctx, cancel := context.WithCancel(t.Context())
		log.heading = cancel
		if _, list, err := e.hub.ActiveSubscriptions(ctx, hub.SubscriptionQuery{}); !errors.Is(err, context.Canceled) {
			t.Errorf("ActiveSubscriptions = %v, %v, want %v", list, err, context.Canceled)
		}
	})
}
