package checks

import (
	"slices"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// rarDefect is one way in which a detail fails to validate.
type rarDefect struct {
	name  string
	spoil func(d suite.Detail)
}

// rarDefects are one of each kind.
func rarDefects() []rarDefect {
	topics := func(entries ...any) func(suite.Detail) { return func(d suite.Detail) { d["topics"] = entries } }
	return []rarDefect{
		{"no-actions", func(d suite.Detail) { delete(d, "actions") }},
		{"empty-actions", func(d suite.Detail) { d["actions"] = []any{} }},
		{"actions-string", func(d suite.Detail) { d["actions"] = "publish" }},
		{"number-in-actions", func(d suite.Detail) { d["actions"] = []any{1} }},
		{"no-topics", func(d suite.Detail) { delete(d, "topics") }},
		{"empty-topics", topics()},
		{"string-in-topics", topics("x")},
		{"no-match", topics(jose.Object{"match_type": "exact"})},
		{"number-as-match", topics(jose.Object{"match": 1})},
		{"unknown-match_type", topics(jose.Object{"match": "x", "match_type": "regex"})},
		{"ill-formed-pattern", topics(jose.Object{"match": "https://e.example/(", "match_type": "urlpattern"})},
		{"payload-string", func(d suite.Detail) { d["payload"] = "x" }},
	}
}

// bad is a detail of these actions with the defect.
func (r rarDefect) bad(actions ...string) suite.Detail {
	d := suite.Detail{"type": suite.DetailType, "actions": actions, "topics": []suite.Matcher{{"match": "https://example.com/x"}}}
	r.spoil(d)
	return d
}

// rarDefectChecks are those of tokens of which one detail is bad: they are refused as a whole, whatever is asked.
func rarDefectChecks() []suite.Check {
	var mixed []rarCase
	for _, r := range rarDefects() {
		mixed = append(
			mixed,
			rarCase{"good-then-" + r.name, func(d suite.Detail) any { return suite.Details(d, r.bad("publish")) }},
			rarCase{r.name + "-then-good", func(d suite.Detail) any { return suite.Details(r.bad("publish"), d) }},
			rarCase{r.name + "-between-two-good", func(d suite.Detail) any {
				return suite.Details(d, r.bad("publish"), suite.CanPublish(suite.Any()))
			}},
		)
	}
	mixed = append(mixed, rarCase{"matcher-among-good-ones", func(d suite.Detail) any {
		d["topics"] = []any{rarMatcher(d), jose.Object{"match": "x", "match_type": "regex"}, suite.Any()}
		return suite.Details(d)
	}})
	return slices.Concat(rarTable("RAR-12", mixed, 401), rarIdleChecks(), rarUnneededChecks())
}

// rarIdleChecks are those that such a token does nothing at all.
func rarIdleChecks() []suite.Check {
	var checks []suite.Check
	for _, r := range []rarDefect{rarDefects()[4], rarDefects()[9], rarDefects()[11]} {
		checks = append(
			checks,
			one("RAR-13", "publish-"+r.name, func(t *suite.T) {
				topic := t.Topic()
				good := rarRight(topic)
				s := t.ListenTo(topic)
				resp := rarPublish(t, "a right detail", rarPublisher(t, suite.Details(good)), topic, 200)
				s.Want(resp.Body)
				rarPublish(t, "a good and a bad detail", rarPublisher(t, suite.Details(good, r.bad("publish"))), topic, 401)
				rarPublish(t, "a bad and a good detail", rarPublisher(t, suite.Details(r.bad("publish"), good)), topic, 401)
				s.Want()
			}),
			one("RAR-13", "subscribe-"+r.name, func(t *suite.T) {
				good := suite.CanSubscribe(suite.Any())
				tokSubscribe(t, "a right detail", rarSubscriber(t, suite.Details(good)), 200)
				tokSubscribe(t, "a good and a bad detail", rarSubscriber(t, suite.Details(good, r.bad("subscribe"))), 401)
				tokSubscribe(t, "a bad and a good detail", rarSubscriber(t, suite.Details(r.bad("subscribe"), good)), 401)
				t.Observed("refused with 401")
			}),
		)
	}
	return checks
}

// rarUnneededChecks are those of bad details that the request would not need. An unknown action stands for a grant that
// nobody needs, so that separate keys per role change nothing.
func rarUnneededChecks() []suite.Check {
	var checks []suite.Check
	for _, r := range rarDefects() {
		action := "fly"
		checks = append(
			checks,
			one("RAR-25", "subscribe-unknown-action-"+r.name, func(t *suite.T) {
				good := suite.CanSubscribe(suite.Any())
				tokSubscribe(t, "a detail of an unknown action", rarSubscriber(t, suite.Details(good, suite.Grant(action, suite.Exact("x")))), 200)
				tokSubscribe(t, "a bad detail of an unknown action", rarSubscriber(t, suite.Details(good, r.bad(action))), 401)
				t.Observed("refused with 401")
			}),
			one("RAR-25", "publish-unknown-action-"+r.name, func(t *suite.T) {
				good := suite.CanPublish(suite.Any())
				tokPublish(t, "a detail of an unknown action", rarPublisher(t, suite.Details(good, suite.Grant(action, suite.Exact("x")))), 200)
				tokPublish(t, "a bad detail of an unknown action", rarPublisher(t, suite.Details(good, r.bad(action))), 401)
				t.Observed("refused with 401")
			}),
			one("RAR-25", "subscribe-publish-"+r.name, func(t *suite.T) {
				good := suite.CanSubscribe(suite.Any())
				tokSubscribe(t, "a publish detail", rarSubscriber(t, suite.Details(good, suite.CanPublish(suite.Exact("x")))), 200)
				tokSubscribe(t, "a bad publish detail", rarSubscriber(t, suite.Details(good, r.bad("publish"))), 401)
				t.Observed("refused with 401")
			}, suite.OneKey),
			one("RAR-25", "publish-subscribe-"+r.name, func(t *suite.T) {
				good := suite.CanPublish(suite.Any())
				tokPublish(t, "a subscribe detail", rarPublisher(t, suite.Details(good, suite.CanSubscribe(suite.Exact("x")))), 200)
				tokPublish(t, "a bad subscribe detail", rarPublisher(t, suite.Details(good, r.bad("subscribe"))), 401)
				t.Observed("refused with 401")
			}, suite.OneKey),
		)
	}
	bad := rarDefects()[9]
	return append(
		checks,
		one("RAR-25", "subscribe-bad-detail-alone", func(t *suite.T) {
			tokSubscribe(t, "a right detail", rarSubscriber(t, suite.Details(suite.CanSubscribe(suite.Exact("x")))), 200)
			tokSubscribe(t, "a bad detail alone", rarSubscriber(t, suite.Details(bad.bad("subscribe"))), 401)
			t.Observed("refused with 401")
		}),
		one("RAR-25", "subscription-API", func(t *suite.T) {
			t.Need(suite.SubscriptionAPI)
			good := suite.CanSubscribe(suite.Any())
			request := t.At(t.Target().Path() + "/subscriptions")
			tokAsk(t, "the API with a right detail", suite.Bearer(request, rarSubscriber(t, suite.Details(good))), 200)
			tokAsk(t, "the API with a bad detail as well", suite.Bearer(request, rarSubscriber(t, suite.Details(good, bad.bad("fly")))), 401)
			t.Observed("refused with 401")
		}, suite.Subscriptions),
		one("RAR-25", "cookie", func(t *suite.T) {
			good := suite.CanSubscribe(suite.Any())
			request := t.Get(wire.Form("match", t.Topic()))
			tokAsk(t, "subscribing with a right detail", t.InCookie(request, rarSubscriber(t, suite.Details(good))), 200)
			tokAsk(t, "subscribing with a bad detail as well", t.InCookie(request, rarSubscriber(t, suite.Details(good, bad.bad("fly")))), 401)
			t.Observed("refused with 401")
		}, suite.Cookie),
	)
}
