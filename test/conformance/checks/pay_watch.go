package checks

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// payWatch is a subscription whose matcher nobody else uses, and a stream of its events.
type payWatch struct {
	t            *suite.T
	matchType    string
	match        string
	events       *suite.Stream
	subscription *suite.Stream
}

// payOpen watches the subscriptions of a matcher, and then makes one. The matcher stands in the query as name=value.
func payOpen(t *suite.T, name, value string, present func(wire.Request) wire.Request) *payWatch {
	w := payWatching(t, name, value)
	w.subscription = t.Open(present(t.Get(name + "=" + wire.Escape(value))))
	return w
}

// payWatching watches the subscriptions of a matcher.
func payWatching(t *suite.T, name, value string) *payWatch {
	w := &payWatch{t: t, matchType: "exact", match: value}
	if name == "match_urlpattern" {
		w.matchType = "urlpattern"
	}
	pattern := w.collection() + "/:subscriber"
	w.events = t.Open(suite.Bearer(t.Get("match_urlpattern="+wire.Escape(pattern)), t.SubscribeAll()))
	return w
}

// collection is the path of the collection of the matcher's subscriptions.
func (w *payWatch) collection() string {
	return w.t.Target().Path() + "/subscriptions/" + w.matchType + "/" + wire.Escape(w.match)
}

// event waits for the next start, or the next end, of a subscription of the matcher.
func (w *payWatch) event(active bool) jose.Object {
	for {
		e := w.events.Next()
		var document jose.Object
		if err := json.Unmarshal([]byte(e.Data), &document); err != nil {
			w.t.Fail("the data of the subscription event is no JSON object: %v", err)
		}
		if document["match"] == w.match && document["active"] == active {
			return document
		}
	}
}

// listed finds the one live subscription of the matcher in a collection.
func (w *payWatch) listed(t *suite.T, collection string) jose.Object {
	var found []jose.Object
	for end := time.Now().Add(t.Target().Patience); len(found) == 0 && time.Now().Before(end); { // the hub may need a moment to list it
		list, _ := payFetch(t, collection)["subscriptions"].([]any)
		for _, item := range list {
			if document, ok := item.(jose.Object); ok && document["match"] == w.match && document["active"] == true {
				found = append(found, document)
			}
		}
		if len(found) == 0 {
			t.Pause(250 * time.Millisecond)
		}
	}
	if len(found) != 1 {
		t.Fail("the collection lists %d live subscriptions of the matcher, wanted 1", len(found))
	}
	return found[0]
}

// payFetch gets a document of the subscription API.
func payFetch(t *suite.T, path string) jose.Object {
	t.Need(suite.SubscriptionAPI)
	resp := t.Do(suite.Bearer(t.At(path), t.SubscribeAll()))
	if resp.Status != 200 {
		t.Fail("GET of a document of the subscription API: answered %d, wanted 200", resp.Status)
	}
	var document jose.Object
	if err := json.Unmarshal([]byte(resp.Body), &document); err != nil {
		t.Fail("the document is no JSON object: %v", err)
	}
	return document
}

// payWayChecks present the token in other ways than most checks.
func payWayChecks() []suite.Check {
	way := func(name string, request func(t *suite.T, topic, token string) wire.Request, needs ...suite.Feature) suite.Check {
		return one("PAY-01", name, func(t *suite.T) {
			topic := t.Topic()
			payload := jose.Object{"mark": t.Unique("mark")}
			grant := suite.CanSubscribe(suite.Exact(topic))
			grant["payload"] = payload
			w := payWatching(t, "match", topic)
			t.Open(request(t, topic, t.SubscribeToken(grant)))
			payWant(t, w.event(true), payload)
		}, slices.Concat([]suite.Feature{suite.Subscriptions}, needs)...)
	}
	return []suite.Check{
		way("cookie", func(t *suite.T, topic, token string) wire.Request {
			return t.InCookie(t.Get("match="+wire.Escape(topic)), token)
		}, suite.Cookie),
		way("query-method", func(t *suite.T, topic, token string) wire.Request {
			return suite.Bearer(t.Query("", "match="+wire.Escape(topic)), token)
		}, suite.QueryMethod),
		way("resumed", func(t *suite.T, topic, token string) wire.Request {
			return suite.Bearer(t.Get("match="+wire.Escape(topic)+"&last_event_id=earliest"), token)
		}),
	}
}

// payPerSubscriptionChecks give each subscription its own payload.
func payPerSubscriptionChecks() []suite.Check {
	// two opens two subscriptions of two matchers, on one connection or on two, and compares both payloads.
	two := func(name string, api bool, open func(t *suite.T, a, b string, details []suite.Detail)) suite.Check {
		return one("PAY-10", name, func(t *suite.T) {
			folder := t.Folder()
			topics := []string{folder + "/a", folder + "/b"}
			var details []suite.Detail
			var payloads []jose.Object
			var watches []*payWatch
			for _, topic := range topics {
				payloads = append(payloads, jose.Object{"of": topic})
				grant := suite.CanSubscribe(suite.Exact(topic))
				grant["payload"] = payloads[len(payloads)-1]
				details = append(details, grant)
				watches = append(watches, payWatching(t, "match", topic))
			}
			open(t, topics[0], topics[1], details)
			for i, w := range watches {
				document := w.event(true)
				if api {
					document = w.listed(t, w.collection())
				}
				payWant(t, document, payloads[i])
			}
		}, suite.Subscriptions)
	}
	oneConnection := func(t *suite.T, a, b string, details []suite.Detail) {
		t.Open(suite.Bearer(t.Get(wire.Form("match", a, "match", b)), t.SubscribeToken(details...)))
	}
	return []suite.Check{
		two("two-matchers-events", false, oneConnection),
		two("two-matchers-collections", true, oneConnection),
		two("other-order-of-matchers", false, func(t *suite.T, a, b string, details []suite.Detail) {
			oneConnection(t, b, a, details)
		}),
		two("other-order-of-details", false, func(t *suite.T, a, b string, details []suite.Detail) {
			slices.Reverse(details)
			oneConnection(t, a, b, details)
		}),
		two("two-connections", false, func(t *suite.T, a, b string, details []suite.Detail) {
			t.Open(suite.Bearer(t.Get(wire.Form("match", a)), t.SubscribeToken(details...)))
			t.Open(suite.Bearer(t.Get(wire.Form("match", b)), t.SubscribeToken(details...)))
		}),
		one("PAY-10", "one-matches-one-does-not", func(t *suite.T) {
			folder := t.Folder()
			grant := suite.CanSubscribe(suite.Exact(folder + "/a"))
			payload := jose.Object{"mark": t.Unique("mark")}
			grant["payload"] = payload
			a, b := payWatching(t, "match", folder+"/a"), payWatching(t, "match", folder+"/b")
			t.Open(suite.Bearer(t.Get(wire.Form("match", folder+"/a", "match", folder+"/b")), t.SubscribeToken(grant)))
			payWant(t, a.event(true), payload)
			payWant(t, b.event(true), nil)
		}, suite.Subscriptions),
		one("PAY-10", "same-string-two-types", func(t *suite.T) {
			// The payload is chosen for the string, so both subscriptions have it.
			pattern := t.Folder() + "/:id"
			grant := suite.CanSubscribe(suite.Exact(pattern))
			payload := jose.Object{"mark": t.Unique("mark")}
			grant["payload"] = payload
			a, b := payWatching(t, "match", pattern), payWatching(t, "match_urlpattern", pattern)
			t.Open(suite.Bearer(t.Get(wire.Form("match", pattern, "match_urlpattern", pattern)), t.SubscribeToken(grant)))
			payWant(t, a.event(true), payload)
			payWant(t, b.event(true), payload)
		}, suite.Subscriptions),
		one("PAY-10", "same-matcher-two-tokens", func(t *suite.T) {
			topic := t.Topic()
			w := payWatching(t, "match", topic)
			for range 2 {
				grant := suite.CanSubscribe(suite.Exact(topic))
				payload := jose.Object{"mark": t.Unique("mark")}
				grant["payload"] = payload
				t.Open(suite.Bearer(t.Get(wire.Form("match", topic)), t.SubscribeToken(grant)))
				payWant(t, w.event(true), payload)
			}
		}, suite.Subscriptions),
		one("PAY-06", "subscription-to-everything", paySubscriptionToEverything, suite.Subscriptions),
		one("PAY-04", "relative-pattern", func(t *suite.T) {
			payRelative(t, func(path string) string { return path })
		}, suite.Subscriptions),
		one("PAY-04", "absolute-grant-relative-pattern", func(t *suite.T) {
			payRelative(t, func(path string) string { return t.Target().Origin() + path })
		}, suite.Subscriptions),
	}
}

// payRelative subscribes with a relative pattern, whose string is a relative topic, and grants a pattern made of it.
func payRelative(t *suite.T, grant func(path string) string) {
	path := "/" + t.Unique("relative") + "/:id"
	detail, payload := suite.CanSubscribe(suite.Pattern(grant(path))), jose.Object{"mark": t.Unique("mark")}
	detail["payload"] = payload
	w := payWatching(t, "match_urlpattern", path)
	t.Open(suite.Bearer(t.Get(wire.Form("match_urlpattern", path)), t.SubscribeToken(detail)))
	payWant(t, w.event(true), payload)
}

// paySubscriptionToEverything looks for the payload of a subscription to *, among those of other checks.
func paySubscriptionToEverything(t *suite.T) {
	w := payWatching(t, "match", "*")
	grant, payload := suite.CanSubscribe(suite.Any()), jose.Object{"mark": t.Unique("mark")}
	grant["payload"] = payload
	t.Open(suite.Bearer(t.Get("match=*"), t.SubscribeToken(grant)))
	end := time.Now().Add(t.Target().Patience)
	for time.Now().Before(end) {
		got, _ := w.event(true)["payload"].(jose.Object)
		if got["mark"] == payload["mark"] {
			t.Observed("payload: %s", payText(got))
			return
		}
	}
	t.Fail("no subscription event of * has the payload of the token")
}

// payNoTokenChecks have no detail that could give a payload.
func payNoTokenChecks() []suite.Check {
	none := func(name string, open func(t *suite.T, topic string) wire.Request) []suite.Check {
		return []suite.Check{
			one("PAY-11", name+"-start-event", func(t *suite.T) {
				topic := t.Topic()
				w := payWatching(t, "match", topic)
				t.Open(open(t, topic))
				payWant(t, w.event(true), nil)
			}, suite.Subscriptions, suite.Anonymous),
			one("PAY-11", name+"-collection", func(t *suite.T) {
				topic := t.Topic()
				w := payWatching(t, "match", topic)
				t.Open(open(t, topic))
				payWant(t, w.listed(t, w.collection()), nil)
			}, suite.Subscriptions, suite.Anonymous),
		}
	}
	return slices.Concat(
		none("no-token", func(t *suite.T, topic string) wire.Request { return t.Get("match=" + wire.Escape(topic)) }),
		none("no-details", func(t *suite.T, topic string) wire.Request {
			return suite.Bearer(t.Get("match="+wire.Escape(topic)), t.Sign(suite.Subscriber, t.Claims(nil)))
		}),
	)
}
