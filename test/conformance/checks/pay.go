package checks

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// payChecks are about the payload that a token gives to subscriptions.
func payChecks() []suite.Check {
	return slices.Concat(payCaseChecks(), payKindChecks(), payWayChecks(), payPerSubscriptionChecks(), payNoTokenChecks())
}

// payCase is a token, a subscription, and which detail's payload the subscription has. {} is a folder of the check's own.
type payCase struct {
	id, name string
	details  []payDetail
	query    string // of the subscription, as name and value
	value    string
	wanted   int // the index of the detail; -1: no payload at all
	needs    []suite.Feature
}

// payDetail is a detail with a payload that says which one it is, unless without is set.
type payDetail struct {
	exact    []string
	patterns []string
	actions  []string // nil: subscribe
	without  bool     // no payload
}

func payExact(matchers ...string) payDetail   { return payDetail{exact: matchers} }
func payPattern(matchers ...string) payDetail { return payDetail{patterns: matchers} }

func (d payDetail) detail(folder string, payload jose.Object) suite.Detail {
	detail := privGrant("subscribe", privIn(folder, d.exact...), privIn(folder, d.patterns...))
	if d.actions != nil {
		detail["actions"] = d.actions
	}
	if !d.without {
		detail["payload"] = payload
	}
	return detail
}

func (d payDetail) with(actions ...string) payDetail { d.actions = actions; return d }

func (d payDetail) bare() payDetail { d.without = true; return d }

func payCases() []payCase {
	book, pattern := "{}/books/1", "{}/books/:id"
	oneKey := []suite.Feature{suite.OneKey}
	return []payCase{
		{"PAY-01", "exact", []payDetail{payExact(book)}, "match", book, 0, nil},
		{"PAY-01", "match_exact", []payDetail{payExact(book)}, "match_exact", book, 0, nil},
		{"PAY-01", "one-of-several-topics", []payDetail{payExact("{}/x", book, "{}/y")}, "match", book, 0, nil},

		{"PAY-02", "two-equal", []payDetail{payExact(book), payExact(book)}, "match", book, 0, nil},
		{"PAY-02", "broad-before-specific", []payDetail{payPattern(pattern), payExact(book)}, "match", book, 0, nil},
		{"PAY-02", "specific-before-broad", []payDetail{payExact(book), payPattern(pattern)}, "match", book, 0, nil},
		{"PAY-02", "everything-before-specific", []payDetail{payExact("*"), payExact(book)}, "match", book, 0, nil},
		{"PAY-02", "specific-before-everything", []payDetail{payExact(book), payExact("*")}, "match", book, 0, nil},
		{"PAY-02", "several-later-ones", []payDetail{payExact("{}/x"), payExact(book), payExact(book), payExact("*"), payPattern(pattern)}, "match", book, 1, nil},

		{"PAY-03", "other-topic-first", []payDetail{payExact("{}/books/2"), payExact(book)}, "match", book, 1, nil},
		{"PAY-03", "other-pattern-first", []payDetail{payPattern("{}/pens/:id"), payExact(book)}, "match", book, 1, nil},
		{"PAY-03", "other-case-first", []payDetail{payExact("{}/BOOKS/1"), payExact(book)}, "match", book, 1, nil},
		{"PAY-03", "longer-first", []payDetail{payExact(book + "/x"), payExact(book)}, "match", book, 1, nil},
		{"PAY-03", "shorter-first", []payDetail{payExact("{}/books"), payExact(book)}, "match", book, 1, nil},
		{"PAY-03", "other-without-payload-first", []payDetail{payExact("{}/books/2").bare(), payExact(book)}, "match", book, 1, nil},
		// What the subscription would receive does not matter, only how its matcher is spelled.
		{"PAY-03", "grant-on-what-the-pattern-selects", []payDetail{payExact(book), payExact("*")}, "match_urlpattern", pattern, 1, nil},

		{"PAY-04", "same-pattern", []payDetail{payPattern(pattern)}, "match_urlpattern", pattern, 0, nil},
		{"PAY-04", "wider-pattern", []payDetail{payPattern("{}/*")}, "match_urlpattern", pattern, 0, nil},
		{"PAY-04", "pattern-matches-exact-matcher", []payDetail{payPattern(pattern)}, "match", book, 0, nil},
		{"PAY-04", "pattern-matches-exact-matcher-spelled-so", []payDetail{payPattern(pattern)}, "match", pattern, 0, nil},
		{"PAY-04", "narrower-pattern-passed-over", []payDetail{payPattern("{}/books/x:id"), payPattern(pattern)}, "match_urlpattern", pattern, 1, nil},

		{"PAY-05", "pattern-string-granted-exactly", []payDetail{payExact(pattern)}, "match_urlpattern", pattern, 0, nil},
		{"PAY-05", "pattern-string-as-exact-matcher", []payDetail{payExact(pattern)}, "match", pattern, 0, nil},
		{"PAY-05", "no-url", []payDetail{payExact("x"), payExact("plain {} words")}, "match", "plain {} words", 1, nil},

		{"PAY-06", "as-default", []payDetail{payExact("{}/x"), payPattern("{}/pens/:id"), payExact("*")}, "match", book, 2, nil},
		{"PAY-06", "alone", []payDetail{payExact("*")}, "match", book, 0, nil},
		{"PAY-06", "as-urlpattern", []payDetail{payPattern("*")}, "match", book, 0, nil},
		{"PAY-06", "for-a-pattern", []payDetail{payExact("*")}, "match_urlpattern", pattern, 0, nil},
		{"PAY-06", "for-what-is-no-url", []payDetail{payPattern("*")}, "match", "https://[{}", 0, nil},
		{"PAY-06", "among-others", []payDetail{payExact("{}/x", "*")}, "match", book, 0, nil},

		{"PAY-07", "publish-first", []payDetail{payExact(book).with("publish"), payExact(book)}, "match", book, 1, oneKey},
		{"PAY-07", "publish-everything-first", []payDetail{payExact("*").with("publish"), payExact(book)}, "match", book, 1, oneKey},
		{"PAY-07", "publish-only", []payDetail{payExact(book).with("publish"), payExact("{}/x")}, "match", book, -1, oneKey},
		{"PAY-07", "unknown-action-first", []payDetail{payExact(book).with("fly"), payExact(book)}, "match", book, 1, nil},
		{"PAY-07", "both-actions-count", []payDetail{payExact(book).with("publish", "subscribe"), payExact(book)}, "match", book, 0, oneKey},

		{"PAY-08", "masks-exact", []payDetail{payExact(book).bare(), payExact(book)}, "match", book, -1, nil},
		{"PAY-08", "masks-default", []payDetail{payExact(book).bare(), payExact("*")}, "match", book, -1, nil},
		{"PAY-08", "pattern-masks", []payDetail{payPattern(pattern).bare(), payExact(book)}, "match", book, -1, nil},

		{"PAY-11", "other-topic", []payDetail{payExact("{}/x")}, "match", book, -1, nil},
		{"PAY-11", "no-payload", []payDetail{payExact(book).bare()}, "match", book, -1, nil},
		{"PAY-11", "grant-on-what-the-pattern-selects", []payDetail{payExact(book)}, "match_urlpattern", pattern, -1, nil},
		// As a topic, this pattern's own string is not what it matches.
		{"PAY-11", "pattern-that-does-not-match-itself", []payDetail{payPattern(`{}/books/:id(\d+)`)}, "match_urlpattern", `{}/books/:id(\d+)`, -1, nil},
	}
}

// paySee is where a subscription's document is seen.
type paySee struct {
	name string
	see  func(t *suite.T, w *payWatch) jose.Object
}

func paySees() []paySee {
	return []paySee{
		{"start-event", func(_ *suite.T, w *payWatch) jose.Object { return w.event(true) }},
		{"end-event", func(_ *suite.T, w *payWatch) jose.Object {
			w.event(true)
			w.subscription.Close()
			return w.event(false)
		}},
		{"collection", func(t *suite.T, w *payWatch) jose.Object { return w.listed(t, w.collection()) }},
		{"resource", func(t *suite.T, w *payWatch) jose.Object {
			id, _ := w.event(true)["id"].(string)
			return payFetch(t, id)
		}},
	}
}

func payCaseChecks() []suite.Check {
	var checks []suite.Check
	for _, c := range payCases() {
		for _, view := range paySees() {
			checks = append(checks, one(c.id, c.name+"-"+view.name, func(t *suite.T) {
				folder := t.Folder()
				details, payloads := make([]suite.Detail, len(c.details)), make([]jose.Object, len(c.details))
				for i, d := range c.details {
					payloads[i] = jose.Object{"detail": float64(i), "mark": t.Unique("mark")}
					details[i] = d.detail(folder, payloads[i])
				}
				w := payOpen(t, c.query, privIn(folder, c.value)[0], func(r wire.Request) wire.Request {
					return suite.Bearer(r, t.SubscribeToken(details...))
				})
				var wanted jose.Object
				if c.wanted >= 0 {
					wanted = payloads[c.wanted]
				}
				payWant(t, view.see(t, w), wanted)
			}, slices.Concat([]suite.Feature{suite.Subscriptions}, c.needs)...))
		}
	}
	return checks
}

// payWant compares the payload of a document; nil: it must have none.
func payWant(t *suite.T, document, wanted jose.Object) {
	got, there := document["payload"]
	switch {
	case wanted == nil && there:
		t.Fail("the document has the payload %s, wanted no such member", payText(got))
	case wanted != nil && !there:
		t.Fail("the document has no payload, wanted %s", payText(wanted))
	case wanted != nil && !reflect.DeepEqual(got, payDecoded(t, wanted)):
		t.Fail("the payload is %s, wanted %s", payText(got), payText(wanted))
	}
	t.Observed("payload: %s", payText(got))
}

// payDecoded gives a value as it comes out of JSON.
func payDecoded(t *suite.T, o jose.Object) (decoded any) {
	raw, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(raw, &decoded)
	}
	if err != nil {
		t.Fail("the suite cannot encode a payload: %v", err)
	}
	return decoded
}

func payText(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// payKindChecks have payloads of every shape.
func payKindChecks() []suite.Check {
	kinds := []struct {
		name    string
		payload jose.Object
	}{
		{"empty-object", jose.Object{}},
		{"nested", jose.Object{"a": jose.Object{"b": []any{1, "two", jose.Object{}, []any{}}}, "": "empty name"}},
		{"null-true-false", jose.Object{"null": jose.Null, "true": true, "false": false, "empty": ""}},
		{"numbers", jose.Object{"zero": 0, "negative": -1.5, "big": 12345678901, "small": 1e-9}},
		{"text", jose.Object{"é\u2028": "\U0001F600 \"quoted\" \\ / <&> \n\t\u0000\u200B"}},
		{"like-a-document", jose.Object{"id": "x", "type": "subscription", "active": false, "payload": jose.Object{"payload": 1}}},
	}
	var checks []suite.Check
	for _, k := range kinds {
		for _, view := range paySees() {
			checks = append(checks, one("PAY-01", k.name+"-"+view.name, func(t *suite.T) {
				topic := t.Topic()
				grant := suite.CanSubscribe(suite.Exact(topic))
				grant["payload"] = maps.Clone(k.payload)
				w := payOpen(t, "match", topic, func(r wire.Request) wire.Request { return suite.Bearer(r, t.SubscribeToken(grant)) })
				payWant(t, view.see(t, w), k.payload)
			}, suite.Subscriptions))
		}
	}
	return checks
}
