package checks

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// subRoutingChecks are about which updates a request selects.
func subRoutingChecks() []suite.Check {
	const digits = `/a(\d+)`
	checks := []suite.Check{
		one("SUB-13", "each-parameter", func(t *suite.T) {
			a, b, c := t.Topic(), t.Topic(), t.Folder()
			s := t.Listen(subMatch(a) + "&match_exact=" + wire.Escape(b) + "&match_urlpattern=" + wire.Escape(c+"/:x"))
			s.Want(subPublish(t, a), subPublish(t, b), subPublish(t, c+"/1"))
		}),
		// A hub that knows matchers by their value alone confuses these.
		one("SUB-13", "one-value-of-two-types", func(t *suite.T) {
			f := t.Folder()
			s := t.Listen(subMatch(f+digits) + "&match_urlpattern=" + wire.Escape(f+digits))
			s.Want(subPublish(t, f+digits), subPublish(t, f+"/a1"))
		}),
		one("SUB-13", "one-value-of-two-types-on-two-streams", func(t *suite.T) {
			f := t.Folder()
			exact, pattern := t.Listen(subMatch(f+digits)), t.Listen("match_urlpattern="+wire.Escape(f+digits))
			ofExact, ofPattern := subPublish(t, f+digits), subPublish(t, f+"/a1")
			exact.Want(ofExact)
			pattern.Want(ofPattern)
		}),
	}
	for _, parameter := range subMatchers() {
		checks = append(checks, one("SUB-13", "several-"+parameter, func(t *suite.T) {
			var topics, query, ids []string
			for range 5 {
				topic := t.Topic()
				topics = append(topics, topic)
				query = append(query, parameter+"="+wire.Escape(topic))
			}
			s := t.Listen(strings.Join(query, "&"))
			for _, topic := range topics {
				ids = append(ids, subPublish(t, topic))
			}
			s.Want(ids...)
		}))
	}
	// One stream of A or of A and B, and an update of several topics: it arrives (SUB-32), and once (SUB-33), whichever of
	// them match.
	arrives := func(id, name string, query func(a, b string) string, topics func(a, b, other string) []string) {
		checks = append(checks, one(id, name, func(t *suite.T) {
			a, b, other := t.Topic(), t.Topic(), t.Topic()
			s := t.Listen(query(a, b))
			update := subPublish(t, topics(a, b, other)...)
			if n := subCount(s.Events(), update); n == 0 || n > 1 && id == "SUB-33" {
				t.Fail("the update arrived %d times", n)
			}
			t.Observed("the update arrived")
		}))
	}
	onlyA := func(a, _ string) string { return subMatch(a) }
	arrives("SUB-32", "canonical", onlyA, func(a, _, other string) []string { return []string{a, other} })
	arrives("SUB-32", "alternate", onlyA, func(a, _, other string) []string { return []string{other, a} })
	arrives("SUB-32", "third-topic", onlyA, func(a, b, other string) []string { return []string{other, b, a} })
	arrives("SUB-32", "alternate-by-pattern",
		func(a, _ string) string { return "match_urlpattern=" + wire.Escape(a+"/:x") },
		func(a, _, other string) []string { return []string{other, a + "/1"} })
	arrives("SUB-32", "second-matcher-alternate", func(a, b string) string { return subMatch(b) + "&" + subMatch(a) },
		func(a, _, other string) []string { return []string{other, a} })
	only := func(a, _, _ string) []string { return []string{a} }
	arrives("SUB-33", "match-and-match_urlpattern",
		func(a, _ string) string { return subMatch(a) + "&match_urlpattern=" + wire.Escape(a) }, only)
	arrives("SUB-33", "match-and-match_exact", func(a, _ string) string { return subMatch(a) + "&match_exact=" + wire.Escape(a) }, only)
	arrives("SUB-33", "two-patterns", func(a, _ string) string {
		return "match_urlpattern=" + wire.Escape(a) + "&match_urlpattern=" + wire.Escape(strings.Replace(a, "/t-", "/:x(t)-", 1))
	}, only)
	arrives("SUB-33", "two-topics-by-two-matchers", func(a, b string) string { return subMatch(a) + "&" + subMatch(b) },
		func(a, b, _ string) []string { return []string{a, b} })
	arrives("SUB-33", "two-topics-by-one-pattern", func(a, _ string) string { return "match_urlpattern=" + wire.Escape(a+"/:x") },
		func(a, _, _ string) []string { return []string{a + "/1", a + "/2"} })
	arrives("SUB-33", "topic-repeated", onlyA, func(a, _, _ string) []string { return []string{a, a} })
	checks = append(checks,
		one("SUB-33", "match-and-wildcard", func(t *suite.T) {
			topic, mark := t.Topic(), t.Unique("mark")
			s := t.Listen(subMatch(topic) + "&match=*")
			s.WantOwn(mark, t.Publish("topic", topic, "data", mark))
		}),
		// May be one subscription or three; it is one stream.
		one("SUB-35", "same-pair-thrice", func(t *suite.T) {
			topic := t.Topic()
			s := t.Listen(subMatch(topic) + "&" + subMatch(topic) + "&match_exact=" + wire.Escape(topic))
			s.Want(subPublish(t, topic))
			if t.Target().Has(suite.Subscriptions) {
				t.Observed("%d subscriptions are listed", len(subListed(t, "exact", topic)))
			}
		}),
	)
	return append(checks, subSelectionChecks()...)
}

// subCount says how many of these events have this id.
func subCount(events []wire.Event, id string) int {
	n := 0
	for _, e := range events {
		if e.ID == id {
			n++
		}
	}
	return n
}

// subSelectionChecks publish what a stream does not select before what it does.
func subSelectionChecks() []suite.Check {
	withheld := func(name string, query, other, selected func(folder string) string) suite.Check {
		return one("SUB-40", name, func(t *suite.T) {
			folder := t.Folder()
			s := t.Listen(query(folder))
			subPublish(t, other(folder))
			s.Want(subPublish(t, selected(folder)))
		})
	}
	at := func(path string) func(string) string { return func(folder string) string { return folder + path } }
	return []suite.Check{
		withheld("exact", func(f string) string { return subMatch(f + "/a") }, at("/b"), at("/a")),
		withheld("match_exact", func(f string) string { return "match_exact=" + wire.Escape(f+"/a") }, at("/b"), at("/a")),
		withheld("match_urlpattern", func(f string) string { return "match_urlpattern=" + wire.Escape(f+"/a/:x") }, at("/b/1"), at("/a/1")),
		withheld("two-matchers", func(f string) string { return subMatch(f+"/a") + "&" + subMatch(f+"/c") }, at("/b"), at("/c")),
		// The same token on several connections: what one selects is nothing to the other.
		one("SUB-40", "two-streams-of-one-token", func(t *suite.T) {
			a, b, token := t.Topic(), t.Topic(), t.SubscribeAll()
			of := func(topic string) *suite.Stream { return t.ListenWith(suite.Bearer(t.Get(subMatch(topic)), token)) }
			first, second := of(a), of(b)
			ofA, ofB := subPublish(t, a), subPublish(t, b)
			first.Want(ofA)
			second.Want(ofB)
		}),
		one("SUB-40", "update-of-two-other-topics", func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenTo(topic)
			subPublish(t, t.Topic(), t.Topic())
			s.Want(subPublish(t, topic))
		}),
	}
}

// subGrantChecks have streams that select a private update and may not read it.
func subGrantChecks() []suite.Check {
	withheld := func(name string, query func(topic string) string, request func(t *suite.T, r wire.Request) wire.Request, needs ...suite.Feature) suite.Check {
		return one("SUB-14", name, func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenWith(request(t, t.Get(query(topic))))
			private := t.Publish("topic", topic, "data", "private", "private", "on")
			public := t.Publish("topic", topic, "data", "public")
			events := s.Events()
			if subCount(events, private) > 0 {
				t.Fail("the private update was delivered")
			}
			if subCount(events, public) == 0 {
				t.Fail("the public update was not delivered")
			}
			t.Observed("the public update alone was delivered")
		}, needs...)
	}
	another := func(t *suite.T, r wire.Request) wire.Request {
		return suite.Bearer(r, t.SubscribeToken(suite.CanSubscribe(suite.Exact(t.Topic()))))
	}
	none := func(_ *suite.T, r wire.Request) wire.Request { return r }
	pattern := func(topic string) string { return "match_urlpattern=" + wire.Escape(topic) }
	everything := func(string) string { return "match=*" }
	allAtOnce := func(topic string) string {
		return subMatch(topic) + "&match_exact=" + wire.Escape(topic) + "&" + pattern(topic) + "&match=*"
	}
	return []suite.Check{
		withheld("match", subMatch, another),
		withheld("match_exact", func(topic string) string { return "match_exact=" + wire.Escape(topic) }, another),
		withheld("match_urlpattern", pattern, another),
		withheld("wildcard", everything, another),
		withheld("match-without-token", subMatch, none, suite.Anonymous),
		withheld("match_urlpattern-without-token", pattern, none, suite.Anonymous),
		withheld("wildcard-without-token", everything, none, suite.Anonymous),
		withheld("all-at-once-without-token", allAtOnce, none, suite.Anonymous),
	}
}

// subSubscriptionChecks are about what a request makes: a subscription for each matcher, and none without.
func subSubscriptionChecks() []suite.Check {
	open := func(t *suite.T) (folder string) {
		folder = t.Folder()
		s := t.Listen(subMatch(folder+"/a") + "&match_exact=" + wire.Escape(folder+"/b") + "&match_urlpattern=" + wire.Escape(folder+"/:c"))
		s.Want()
		return folder
	}
	checks := []suite.Check{
		one("SUB-34", "api", func(t *suite.T) {
			t.Need(suite.SubscriptionAPI)
			folder := open(t)
			for _, m := range []struct{ kind, match string }{{"exact", "/a"}, {"exact", "/b"}, {"urlpattern", "/:c"}} {
				if n := len(subListed(t, m.kind, folder+m.match)); n != 1 {
					t.Fail("%d subscriptions are listed for %s of type %s, wanted 1", n, m.match, m.kind)
				}
			}
			t.Observed("one subscription is listed for each of three matchers")
		}, suite.Subscriptions),
		one("SUB-34", "events", func(t *suite.T) {
			watcher := t.Listen("match=*")
			folder := open(t)
			var began []string
			look := func(e wire.Event) {
				var d subDocument
				if e.Type == "mercure" && json.Unmarshal([]byte(e.Data), &d) == nil && d.Active && strings.HasPrefix(d.Match, folder) {
					began = append(began, d.MatchType+" "+strings.TrimPrefix(d.Match, folder))
				}
			}
			for end := time.Now().Add(t.Target().Patience); len(began) < 3 && time.Now().Before(end); {
				look(watcher.Next())
			}
			for _, e := range watcher.Events() {
				look(e)
			}
			slices.Sort(began)
			if !slices.Equal(began, []string{"exact /a", "exact /b", "urlpattern /:c"}) {
				t.Fail("subscriptions began: %q, wanted one for each of three matchers", began)
			}
			t.Observed("one subscription began for each of three matchers")
		}, suite.Subscriptions),
	}
	for _, q := range []struct{ name, query string }{
		{"no-query", ""}, {"empty-query", "?"}, {"other-parameters", "?foo=1&topic=https%3A%2F%2Fexample.com%2Fx"}, {"cursor-alone", "?last_event_id=earliest"},
	} {
		checks = append(checks, one("SUB-38", q.name, func(t *suite.T) { subIdle(t, q.query) }))
	}
	return checks
}

// subIdle says that a request without matchers is refused, or makes a stream of nothing (reading 2). On such a stream
// there is nothing to fence with but a keep-alive comment: one that comes later than an update of any topic would.
func subIdle(t *suite.T, query string) {
	r := wire.Request{Method: "GET", Target: t.Target().Path() + query}.With("Accept", "text/event-stream")
	resp, err := t.Try(suite.Bearer(r, t.SubscribeAll()))
	if err != nil {
		t.Fail("GET: no answer: %v", err)
	}
	if resp.Stream == nil {
		if resp.Status != 400 {
			t.Fail("answered %d, wanted 400", resp.Status)
		}
		t.Observed("refused: 400")
		return
	}
	s := t.Attach(resp)
	t.Observed("answered with an event stream")
	if !t.Target().Has(suite.KeepAlive) {
		return
	}
	subPublish(t, t.Topic())
	for range 2 { // the first comment may have been on its way
		for {
			e, err := s.Block(t.Target().KeepAlive + t.Target().Patience)
			if err != nil {
				return // it ended: nothing was delivered
			}
			if e.Dispatched {
				t.Fail("a stream without a matcher received an event")
			}
			if len(e.Comments) > 0 {
				break
			}
		}
	}
}

// subDocument is what is looked at in a subscription's document.
type subDocument struct {
	Match     string `json:"match"`
	MatchType string `json:"match_type"`
	Active    bool   `json:"active"`
}

// subListed gives the active subscriptions that the API lists for a matcher. A hub may take its time to list them.
func subListed(t *suite.T, kind, match string) []subDocument {
	end := time.Now().Add(t.Target().Patience)
	for {
		at := t.Target().Path() + "/subscriptions/" + kind + "/" + wire.Escape(match)
		resp := t.Do(suite.Bearer(t.At(at), t.SubscribeAll()))
		var list struct {
			Subscriptions []subDocument `json:"subscriptions"`
		}
		if resp.Status == 200 && json.Unmarshal([]byte(resp.Body), &list) != nil {
			t.Fail("the subscription API answered no JSON object")
		}
		active := slices.DeleteFunc(list.Subscriptions, func(d subDocument) bool { return !d.Active })
		if len(active) > 0 || time.Now().After(end) {
			return active
		}
		t.Pause(100 * time.Millisecond)
	}
}
