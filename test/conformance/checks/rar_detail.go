package checks

import (
	"slices"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
)

// rarActionChecks are those of actions.
func rarActionChecks() []suite.Check {
	actions := func(value any) func(suite.Detail) any { return rarMember("actions", value) }
	list := func(names ...any) func(suite.Detail) any { return rarMember("actions", append([]any{}, names...)) }
	return slices.Concat(
		rarTable("RAR-04", []rarCase{
			{"absent", rarWithout("actions")},
			{"null", actions(nil)},
			{"string", actions("publish")},
			{"object", actions(jose.Object{"publish": true})},
			{"object-by-number", actions(jose.Object{"0": "publish"})},
			{"number", actions(1)},
			{"bool", actions(true)},
			{"empty", list()},
			{"Actions", rarRenamed("actions", "Actions")},
			{"action", rarRenamed("actions", "action")},
		}, 401),
		rarTable("RAR-05", []rarCase{
			{"after", list("publish", "fly")},
			{"before", list("fly", "publish")},
			{"empty-name", list("", "publish")},
			{"odd-names", list("PUBLISH", "é", "a b", "publish\x00", "*", "publish")},
			{"repeated", list("publish", "publish")},
		}, 200),
		rarTable("RAR-06", []rarCase{
			{"fly", list("fly")},
			{"Publish", list("Publish")},
			{"PUBLISH", list("PUBLISH")},
			{"empty-name", list("")},
			{"wildcard", list("*")},
			{"space-before", list(" publish")},
			{"space-after", list("publish ")},
			{"U+0000-after", list("publish\x00")},
			{"prefix", list("publis")},
			{"longer", list("publisher")},
			{"list-in-string", list("publish,subscribe")},
			{"words-in-string", list("publish subscribe")},
			{"write", list("write")},
			{"all", list("all")},
		}, 403),
		rarTable("RAR-06", []rarCase{
			{"beside-a-good-detail", func(d suite.Detail) any { return suite.Details(suite.Grant("fly", suite.Any()), d) }},
		}, 200),
		rarTable("RAR-07", []rarCase{
			{"number-after", list("publish", 1)},
			{"number-before", list(1, "publish")},
			{"null-after", list("publish", nil)},
			{"null-alone", list(nil)},
			{"number-alone", list(1)},
			{"bool", list("publish", true)},
			{"array", list("publish", []string{"publish"})},
			{"object", list("publish", jose.Object{})},
			{"beside-an-unknown-action", list("fly", 1)},
		}, 401),
		[]suite.Check{
			one("RAR-05", "subscribe", func(t *suite.T) {
				topic := t.Topic()
				d := suite.CanSubscribe(suite.Exact(topic))
				d["actions"] = []string{"fly", "subscribe", "Subscribe"}
				rarReads(t, "unknown actions beside subscribe", rarSubscriber(t, suite.Details(d)), []string{topic}, nil)
				t.Observed("a private update was delivered")
			}),
			one("RAR-06", "subscribe", func(t *suite.T) {
				topic := t.Topic()
				d := suite.CanSubscribe(suite.Exact(topic))
				rarReads(t, "subscribe", rarSubscriber(t, suite.Details(d)), []string{topic}, nil)
				d["actions"] = []string{"Subscribe", "SUBSCRIBE", "read", "subscribe ", "*"}
				rarReads(t, "unknown actions alone", rarSubscriber(t, suite.Details(d)), nil, []string{topic})
				t.Observed("a private update was withheld")
			}),
		},
	)
}

// rarTopicsChecks are those of topics.
func rarTopicsChecks() []suite.Check {
	topics := func(value any) func(suite.Detail) any { return rarMember("topics", value) }
	beside := func(entry any) func(suite.Detail) any {
		return func(d suite.Detail) any {
			d["topics"] = []any{rarMatcher(d), entry}
			return suite.Details(d)
		}
	}
	return slices.Concat(
		rarTable("RAR-08", []rarCase{
			{"absent", rarWithout("topics")},
			{"null", topics(nil)},
			{"string", topics("*")},
			{"number", topics(1)},
			{"bool", topics(true)},
			{"object", func(d suite.Detail) any { d["topics"] = rarMatcher(d); return suite.Details(d) }},
			{"empty", topics([]any{})},
			{"of-string", topics([]any{"x"})},
			{"of-topic", func(d suite.Detail) any { d["topics"] = []any{rarMatcher(d)["match"]}; return suite.Details(d) }},
			{"of-wildcard", topics([]any{"*"})},
			{"of-null", topics([]any{nil})},
			{"of-number", topics([]any{1})},
			{"of-empty-array", topics([]any{[]any{}})},
			{"of-array", func(d suite.Detail) any {
				d["topics"] = []any{[]any{rarMatcher(d)}}
				return suite.Details(d)
			}},
			{"good-and-string", beside("x")},
			{"good-and-null", beside(nil)},
			{"good-and-array", beside([]any{})},
			{"good-and-number", beside(0)},
			{"Topics", rarRenamed("topics", "Topics")},
			{"topic", rarRenamed("topics", "topic")},
		}, 401),
		rarTable("RAR-14", []rarCase{
			{"absent", func(d suite.Detail) any { delete(rarMatcher(d), "match"); return suite.Details(d) }},
			{"null", rarMatcherMember("match", nil)},
			{"number", rarMatcherMember("match", 1)},
			{"bool", rarMatcherMember("match", true)},
			{"array", func(d suite.Detail) any {
				rarMatcher(d)["match"] = []any{rarMatcher(d)["match"]}
				return suite.Details(d)
			}},
			{"object", rarMatcherMember("match", jose.Object{})},
			{"wildcard-in-array", rarMatcherMember("match", []string{"*"})},
			{"match_type-alone", func(d suite.Detail) any {
				d["topics"] = []any{jose.Object{"match_type": "exact"}}
				return suite.Details(d)
			}},
			{"good-and-empty", beside(jose.Object{})},
			{"good-and-null", beside(jose.Object{"match": nil})},
			{"Match", func(d suite.Detail) any {
				m := rarMatcher(d)
				m["Match"] = m["match"]
				delete(m, "match")
				return suite.Details(d)
			}},
			{"match_exact", func(d suite.Detail) any {
				m := rarMatcher(d)
				m["match_exact"] = m["match"]
				delete(m, "match")
				return suite.Details(d)
			}},
		}, 401),
	)
}

// rarPayloadChecks are those of payload: an object, or absent (reading 6).
func rarPayloadChecks() []suite.Check {
	bad := []struct {
		name    string
		payload any
	}{{"string", "x"}, {"empty-string", ""}, {"JSON-in-string", "{}"}, {"number", 1}, {"zero", 0}, {"bool", true}, {"array", []any{}}, {"array-of-object", []any{jose.Object{}}}, {"null", nil}}
	checks := make([]suite.Check, 0, 2*len(bad)+3)
	for _, b := range bad {
		checks = append(checks, rarTable("RAR-09", []rarCase{{b.name + "-of-a-publisher", rarMember("payload", b.payload)}}, 401)...)
		checks = append(checks, one("RAR-09", b.name, func(t *suite.T) {
			d := suite.CanSubscribe(suite.Any())
			d["payload"] = jose.Object{"a": 1}
			tokSubscribe(t, "an object as payload", rarSubscriber(t, suite.Details(d)), 200)
			d["payload"] = b.payload
			tokSubscribe(t, "another payload", rarSubscriber(t, suite.Details(d)), 401)
			t.Observed("an object was accepted, this is refused")
		}))
	}
	for _, g := range []struct {
		name    string
		payload jose.Object
	}{{"object-is-accepted", jose.Object{"a": []any{1, nil, "x", jose.Object{"b": 1.5}}}}, {"empty-object-is-accepted", jose.Object{}}} {
		checks = append(checks, one("RAR-09", g.name, func(t *suite.T) {
			d := suite.CanSubscribe(suite.Any())
			d["payload"] = g.payload
			tokSubscribe(t, "an object as payload", rarSubscriber(t, suite.Details(d)), 200)
			t.Observed("accepted")
		}))
	}
	return append(checks, rarTable("RAR-09", []rarCase{{"object-of-a-publisher-is-accepted", rarMember("payload", jose.Object{"a": 1})}}, 200)...)
}

// rarSumChecks are those of how details add up: they do, but no grant is made of parts of two.
func rarSumChecks() []suite.Check {
	return []suite.Check{
		one("RAR-10", "publish-and-unknown", func(t *suite.T) {
			a, b := t.Topic(), t.Topic()
			token := rarPublisher(t, suite.Details(suite.CanPublish(suite.Exact(a)), suite.Grant("fly", suite.Exact(b))))
			rarPublish(t, "its action and topic in one detail", token, a, 200)
			rarPublish(t, "its action in one detail and its topic in another", token, b, 403)
			t.Observed("each detail grants what stands in it")
		}),
		one("RAR-10", "unknown-and-publish", func(t *suite.T) {
			a, b := t.Topic(), t.Topic()
			token := rarPublisher(t, suite.Details(suite.Grant("fly", suite.Any()), suite.CanPublish(suite.Exact(a))))
			rarPublish(t, "its action and topic in one detail", token, a, 200)
			rarPublish(t, "its action in one detail and its topic in another", token, b, 403)
			t.Observed("each detail grants what stands in it")
		}),
		one("RAR-10", "publish-and-subscribe", func(t *suite.T) {
			a, b := t.Topic(), t.Topic()
			token := rarPublisher(t, suite.Details(suite.CanPublish(suite.Exact(a)), suite.CanSubscribe(suite.Exact(b))))
			rarPublish(t, "its action and topic in one detail", token, a, 200)
			rarPublish(t, "its action in one detail and its topic in another", token, b, 403)
			rarReads(t, "publish on one topic and subscribe on another", token, []string{b}, []string{a})
			t.Observed("each detail grants what stands in it")
		}, suite.OneKey),
		one("RAR-10", "subscribe-and-unknown", func(t *suite.T) {
			a, b := t.Topic(), t.Topic()
			token := rarSubscriber(t, suite.Details(suite.Grant("fly", suite.Any()), suite.CanSubscribe(suite.Exact(a))))
			rarReads(t, "subscribe on one topic and an unknown action on all", token, []string{a}, []string{b})
			t.Observed("each detail grants what stands in it")
		}),
		one("RAR-11", "two-details", func(t *suite.T) {
			a, b := t.Topic(), t.Topic()
			rarPublishBoth(t, a, b, suite.Details(suite.CanPublish(suite.Exact(a)), suite.CanPublish(suite.Exact(b))))
		}),
		one("RAR-11", "two-matchers", func(t *suite.T) {
			a, b := t.Topic(), t.Topic()
			rarPublishBoth(t, a, b, suite.Details(suite.CanPublish(suite.Exact(a), suite.Exact(b))))
		}),
		one("RAR-11", "details-of-both-kinds", func(t *suite.T) {
			a, folder := t.Topic(), t.Folder()
			rarPublishBoth(t, a, folder+"/1", suite.Details(suite.CanPublish(suite.Pattern(folder+"/:id")), suite.Grant("fly", suite.Any()), suite.CanPublish(suite.Exact(a))))
		}),
		one("RAR-11", "last-of-ten", func(t *suite.T) {
			a, b := t.Topic(), t.Topic()
			details := suite.Details(suite.CanPublish(suite.Exact(a)))
			for range 8 {
				details = append(details, suite.CanPublish(suite.Exact(t.Topic())))
			}
			rarPublishBoth(t, a, b, append(details, suite.CanPublish(suite.Exact(b))))
		}),
		one("RAR-11", "both-actions-in-one-detail", func(t *suite.T) {
			a, b := t.Topic(), t.Topic()
			for _, actions := range [][]string{{"publish", "subscribe"}, {"subscribe", "publish"}} {
				d := suite.CanPublish(suite.Exact(a))
				d["actions"] = actions
				token := rarPublisher(t, suite.Details(d))
				rarPublish(t, "both actions", token, a, 200)
				rarPublish(t, "both actions on another topic", token, b, 403)
				rarReads(t, "both actions", token, []string{a}, []string{b})
			}
			t.Observed("both were granted, in either order")
		}, suite.OneKey),
		one("RAR-11", "subscribe", func(t *suite.T) {
			a, b, c := t.Topic(), t.Topic(), t.Topic()
			token := rarSubscriber(t, suite.Details(suite.CanSubscribe(suite.Exact(a)), suite.CanSubscribe(suite.Exact(b))))
			rarReads(t, "subscribe on two topics in two details", token, []string{a, b}, []string{c})
			t.Observed("both private updates were delivered")
		}),
	}
}

// rarPublishBoth publishes an update of two topics with these details, of which each is needed, in either order.
func rarPublishBoth(t *suite.T, a, b string, details []suite.Detail) {
	for _, topics := range [][]string{{a, b}, {b, a}} {
		form := rarForm(topics...)
		tokAsk(t, "publishing an update of two topics", suite.Bearer(t.Post(form), rarPublisher(t, details)), 200)
		tokAsk(t, "publishing an update of three topics", suite.Bearer(t.Post(form+"&"+rarForm(t.Topic())), rarPublisher(t, details)), 403)
	}
	t.Observed("accepted for both topics, refused with a third")
}
