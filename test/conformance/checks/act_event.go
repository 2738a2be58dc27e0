package checks

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// actSubscribers ask for the identifier of the subscriber.
func actSubscribers() []suite.Check {
	chosen := func(name string, request func(p *actPresence, evil string) wire.Request, needs ...suite.Feature) suite.Check {
		return one("ACT-08", name, func(t *suite.T) {
			p := newActPresence(t)
			evil := t.Unique("evil")
			s := p.open(request(p, evil))
			for _, place := range []string{s.subscriber(), actText(t, s.doc, "id")} {
				if strings.Contains(place, evil) {
					t.Fail("the client's own %s is in %q", evil, place)
				}
			}
		}, append([]suite.Feature{suite.Subscriptions}, needs...)...)
	}
	field := func(name string) suite.Check {
		return chosen(strings.ToLower(name), func(p *actPresence, evil string) wire.Request { return p.get("match").With(name, evil) })
	}
	query := func(name, parameter string) suite.Check {
		return chosen(name, func(p *actPresence, evil string) wire.Request {
			return suite.Bearer(p.t.Get("match="+p.match+"&"+wire.Form(parameter, evil)), p.t.SubscribeAll())
		})
	}
	return []suite.Check{
		query("query-subscriber", "subscriber"), query("query-subscriber_id", "subscriber_id"), query("query-id", "id"),
		field("Subscriber"), field("X-Subscriber"), field("X-Subscriber-Id"), field("Mercure-Subscriber"), field("X-Mercure-Subscriber"),
		field("X-Request-Id"), field("X-Correlation-Id"),
		chosen("cookie", func(p *actPresence, evil string) wire.Request {
			return p.get("match").With("Cookie", "subscriber="+evil)
		}),
		chosen("body", func(p *actPresence, evil string) wire.Request {
			return suite.Bearer(p.t.Query("", "match="+p.match+"&"+wire.Form("subscriber", evil)), p.t.SubscribeAll())
		}, suite.QueryMethod),
		one("ACT-09", "random", actRandomSubscribers, suite.Subscriptions),
		actDistinct("same-token", func(p *actPresence) []*actSubscription {
			r := p.get("match")
			return []*actSubscription{p.open(r), p.open(r)}
		}),
		actDistinct("two-tokens", func(p *actPresence) []*actSubscription {
			return []*actSubscription{p.begin(), p.begin()}
		}),
		actDistinct("two-types", func(p *actPresence) []*actSubscription {
			return []*actSubscription{p.open(p.get("match")), p.open(p.get("match_urlpattern"))}
		}),
		actDistinct("anonymous", func(p *actPresence) []*actSubscription {
			r := p.t.Get("match=" + p.match)
			return []*actSubscription{p.open(r), p.open(r)}
		}, suite.Anonymous),
		actDistinct("one-after-the-other", func(p *actPresence) []*actSubscription {
			r := p.get("match")
			first := p.open(r)
			p.end(first)
			return []*actSubscription{first, p.open(r)}
		}),
		actShared("two-exact", "match", "match"), actShared("exact-and-urlpattern", "match", "match_urlpattern"),
		one("ACT-13", "iri", func(t *suite.T) {
			iri := regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:[^\s<>"{}|\\^` + "`" + `]+$`)
			uuid := regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)
			got := newActPresence(t).begin().subscriber()
			if !iri.MatchString(got) && !uuid.MatchString(got) {
				t.Fail("the subscriber is %q, wanted an IRI such as a UUID URN", got)
			}
			t.Observed("the subscriber is %q", got)
		}, suite.Subscriptions),
	}
}

// actDistinct is a check that two subscriptions have two identifiers and two topics.
func actDistinct(name string, open func(p *actPresence) []*actSubscription, needs ...suite.Feature) suite.Check {
	return one("ACT-10", name, func(t *suite.T) {
		both := open(newActPresence(t))
		if both[0].subscriber() == both[1].subscriber() {
			t.Fail("two connections have the same subscriber %q", both[0].subscriber())
		}
		if actText(t, both[0].doc, "id") == actText(t, both[1].doc, "id") {
			t.Fail("two connections have the same id %q", both[0].doc["id"])
		}
	}, append([]suite.Feature{suite.Subscriptions}, needs...)...)
}

// actShared is a check that two matchers of a connection have one subscriber.
func actShared(name, first, second string) suite.Check {
	return one("ACT-12", name, func(t *suite.T) {
		p, q := newActPresence(t), newActPresence(t)
		s := p.open(suite.Bearer(t.Get(wire.Form(first, p.match, second, q.match)), t.SubscribeAll()))
		if _, other := q.next(); other["subscriber"] != s.doc["subscriber"] {
			t.Fail("the matchers of one connection have the subscribers %s and %s", prmJSON(s.doc["subscriber"]), prmJSON(other["subscriber"]))
		}
	}, suite.Subscriptions)
}

// actRandomSubscribers compares identifiers of one token pairwise. Random ones of 64 bits or more differ at least in this
// many places, counters and time stamps do not.
func actRandomSubscribers(t *suite.T) {
	const connections, places = 4, 8
	p := newActPresence(t)
	r := p.get("match")
	var ids []string
	for range connections {
		ids = append(ids, p.open(r).subscriber())
	}
	for i, a := range ids {
		for _, b := range ids[:i] {
			if actDifferences(a, b) < places {
				t.Fail("the subscribers %q and %q are not random", b, a)
			}
		}
	}
	t.Observed("subscribers such as %q", ids[0])
}

// actDifferences counts the places in which two texts differ; what one has more than the other differs.
func actDifferences(a, b string) int {
	if len(a) > len(b) {
		a, b = b, a
	}
	n := len(b) - len(a)
	for i := range len(a) {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// actContent asks for the document in the first and in the last event of a subscription.
func actContent() []suite.Check {
	both := func(id, name string, judge func(doc jose.Object) (problem string)) suite.Check {
		return one(id, name, func(t *suite.T) {
			_, _, first, last := actLife(t)
			if problem := judge(first); problem != "" {
				t.Fail("at the start: %s", problem)
			}
			if problem := judge(last); problem != "" {
				t.Fail("at the end: %s", problem)
			}
		}, suite.Subscriptions)
	}
	member := func(name string) suite.Check {
		return both("ACT-14", name, func(doc jose.Object) string {
			if s, ok := doc[name].(string); !ok || s == "" {
				return fmt.Sprintf("%s is %s, wanted a string", name, prmJSON(doc[name]))
			}
			return ""
		})
	}
	return []suite.Check{
		both("ACT-14", "json", func(jose.Object) string { return "" }),
		member("id"), member("type"), member("match_type"), member("match"), member("subscriber"),
		both("ACT-14", "active", func(doc jose.Object) string {
			if _, ok := doc["active"].(bool); !ok {
				return fmt.Sprintf("active is %s, wanted a boolean", prmJSON(doc["active"]))
			}
			return ""
		}),
		one("ACT-15", "id-is-the-topic", func(t *suite.T) {
			p := newActPresence(t)
			s := p.begin()
			w := t.ListenTo(actText(t, s.doc, "id"))
			end, last := p.end(s)
			w.Want(end.ID)
			if last["id"] != s.doc["id"] {
				t.Fail("the end event of topic %s has the id %s", prmJSON(s.doc["id"]), prmJSON(last["id"]))
			}
		}, suite.Subscriptions),
		both("ACT-16", "subscription", func(doc jose.Object) string {
			if doc["type"] != "subscription" {
				return fmt.Sprintf("type is %s, wanted subscription", prmJSON(doc["type"]))
			}
			return ""
		}),
		one("ACT-18", "start", func(t *suite.T) { actWantActive(t, newActPresence(t).begin().doc, true) }, suite.Subscriptions),
		one("ACT-18", "end", func(t *suite.T) {
			_, _, _, last := actLife(t)
			actWantActive(t, last, false)
		}, suite.Subscriptions),
		one("ACT-18", "nothing-else-changes", func(t *suite.T) {
			p := newActPresence(t)
			detail := suite.CanSubscribe(suite.Any())
			detail["payload"] = jose.Object{"label": "x"}
			s := p.open(suite.Bearer(t.Get("match="+p.match), t.SubscribeToken(detail)))
			_, last := p.end(s)
			for _, name := range []string{"id", "type", "match_type", "match", "subscriber", "payload"} {
				if !reflect.DeepEqual(s.doc[name], last[name]) {
					t.Fail("%s was %s at the start and is %s at the end", name, prmJSON(s.doc[name]), prmJSON(last[name]))
				}
			}
		}, suite.Subscriptions),
	}
}

// actMatchers ask for the type and the matcher in the document.
func actMatchers() []suite.Check {
	var checks []suite.Check
	for _, c := range []struct{ name, parameter, kind, text string }{
		{"match", "match", "exact", "plain"},
		{"match_exact", "match_exact", "exact", "plain"},
		{"match_urlpattern", "match_urlpattern", "urlpattern", "plain"},
		{"raw-exact", "match", "exact", "https://e.example/a b%20c:é*"},
		{"raw-octets", "match", "exact", "HTTPS://E.example:443/%7e/../%C3%A9"},
		{"raw-urlpattern", "match_urlpattern", "urlpattern", `HTTPS://E.example:443/Caf%c3%a9/é/:id(\d+)/*`},
		{"raw-relative-pattern", "match_urlpattern", "urlpattern", "../books/:id/"},
		{"json-syntax", "match", "exact", `a"b\c/d` + "\u2028" + `<e>&'`},
	} {
		checks = append(checks, one("ACT-17", c.name, func(t *suite.T) {
			p := newActOddPresence(t, c.text)
			s := p.open(p.get(c.parameter))
			_, last := p.end(s)
			for _, doc := range []jose.Object{s.doc, last} {
				if doc["match_type"] != c.kind || doc["match"] != p.match {
					t.Fail("match_type is %s and match is %s, wanted %q and %+q", prmJSON(doc["match_type"]), prmJSON(doc["match"]), c.kind, p.match)
				}
			}
		}, suite.Subscriptions))
	}
	return checks
}

// actEvents ask for the events as such.
func actEvents() []suite.Check {
	event := func(id, name string, judge func(e wire.Event) (problem string)) []suite.Check {
		at := func(moment string, pick func(start, end wire.Event) wire.Event) suite.Check {
			return one(id, name+moment, func(t *suite.T) {
				start, end, _, _ := actLife(t)
				if problem := judge(pick(start, end)); problem != "" {
					t.Fail("%s", problem)
				}
			}, suite.Subscriptions)
		}
		return []suite.Check{
			at("start", func(start, _ wire.Event) wire.Event { return start }),
			at("end", func(_, end wire.Event) wire.Event { return end }),
		}
	}
	return slices.Concat(
		event("ACT-21", "", func(e wire.Event) string {
			if e.Type != "mercure" {
				return fmt.Sprintf("the event type is %q, wanted mercure", e.Type)
			}
			return ""
		}),
		event("ACT-22", "", func(e wire.Event) string {
			if !e.HasID || e.ID == "" {
				return "the event has no id"
			}
			return ""
		}),
		[]suite.Check{
			one("ACT-21", "replayed", func(t *suite.T) {
				p := newActPresence(t)
				before := t.Publish("topic", t.Topic(), "data", "x")
				s := p.begin()
				r := t.Get("match_urlpattern=" + wire.Escape(p.pattern()) + "&last_event_id=" + wire.Escape(before))
				e, _ := actNext(t, t.Open(suite.Bearer(r, t.SubscribeAll())), p.mark)
				if e.Type != "mercure" || e.ID != s.event.ID {
					t.Fail("the replayed event has the type %q and the id %q, wanted mercure and %q", e.Type, e.ID, s.event.ID)
				}
			}, suite.Subscriptions, suite.History),
			actPerMatcher("start", func(*actPresence, *suite.Stream) {}),
			actPerMatcher("end", func(p *actPresence, s *suite.Stream) {
				s.Close()
				_, doc := p.next()
				actWantActive(p.t, doc, false)
			}),
		},
	)
}

// actPerMatcher is a check that a connection of three matchers has an event for each, at the start and, when then says so,
// once more afterwards.
func actPerMatcher(name string, then func(p *actPresence, s *suite.Stream)) suite.Check {
	return one("ACT-23", name, func(t *suite.T) {
		all := []*actPresence{newActPresence(t), newActPresence(t), newActPresence(t)}
		s := t.Open(suite.Bearer(t.Get(wire.Form("match", all[0].match, "match_exact", all[1].match, "match_urlpattern", all[2].match)), t.SubscribeAll()))
		for _, p := range all {
			_, doc := p.next()
			actWantActive(t, doc, true)
		}
		for _, p := range all {
			then(p, s)
		}
		for _, p := range all {
			p.watcher.Want()
		}
	}, suite.Subscriptions)
}

// actPrivate ask whether who has no grant for subscription events is kept from them.
func actPrivate() []suite.Check {
	kept := func(name string, listen func(t *suite.T, p *actPresence) *suite.Stream, needs ...suite.Feature) suite.Check {
		return one("ACT-20", name, func(t *suite.T) {
			p := newActPresence(t)
			s := listen(t, p)
			p.end(p.begin())
			s.WantOwn(p.mark)
		}, append([]suite.Feature{suite.Subscriptions}, needs...)...)
	}
	query := func(p *actPresence) string { return "match_urlpattern=" + wire.Escape(p.pattern()) }
	with := func(details func(t *suite.T, p *actPresence) []suite.Detail) func(*suite.T, *actPresence) *suite.Stream {
		return func(t *suite.T, p *actPresence) *suite.Stream {
			return t.ListenWith(suite.Bearer(t.Get(query(p)), t.SubscribeToken(details(t, p)...)))
		}
	}
	return []suite.Check{
		kept("anonymous", func(t *suite.T, p *actPresence) *suite.Stream { return t.ListenWith(t.Get(query(p))) }, suite.Anonymous),
		kept("anonymous-wildcard", func(t *suite.T, _ *actPresence) *suite.Stream { return t.ListenWith(t.Get("match=*")) }, suite.Anonymous),
		kept("grant-for-another-topic", with(func(t *suite.T, _ *actPresence) []suite.Detail {
			return suite.Details(suite.CanSubscribe(suite.Exact(t.Topic())))
		})),
		kept("grant-for-the-matched-topic", with(func(_ *suite.T, p *actPresence) []suite.Detail {
			return suite.Details(suite.CanSubscribe(suite.Exact(p.match)))
		})),
		kept("grant-for-another-matcher", with(func(t *suite.T, _ *actPresence) []suite.Detail {
			return suite.Details(suite.CanSubscribe(suite.Pattern(actLiteral(actRoot(t)) + "/:type/" + t.Unique("other") + "/:id")))
		})),
		kept("grant-for-the-collections", with(func(t *suite.T, p *actPresence) []suite.Detail {
			return suite.Details(suite.CanSubscribe(suite.Exact(actRoot(t)), suite.Exact(actPath(t, "exact", p.match))))
		})),
		kept("publish-grant", with(func(*suite.T, *actPresence) []suite.Detail {
			return suite.Details(suite.CanPublish(suite.Any()))
		}), suite.OneKey, suite.Anonymous), // a closed hub may refuse a token without a grant to subscribe
		one("ACT-20", "replayed", func(t *suite.T) {
			p := newActPresence(t)
			before := t.Publish("topic", t.Topic(), "data", "x")
			p.end(p.begin())
			t.ListenWith(t.Get(query(p) + "&last_event_id=" + wire.Escape(before))).Want()
		}, suite.Subscriptions, suite.History, suite.Anonymous),
		one("ACT-20", "granted", func(t *suite.T) {
			p := newActPresence(t)
			s := t.ListenWith(suite.Bearer(t.Get(query(p)), t.SubscribeToken(suite.CanSubscribe(suite.Pattern(p.pattern())))))
			sub := p.begin()
			end, _ := p.end(sub)
			s.Want(sub.event.ID, end.ID)
		}, suite.Subscriptions),
	}
}
