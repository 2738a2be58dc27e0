package checks

import (
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// privGrace is how late a hub may be before that is held against it: the machine may be busy, and clocks differ.
const privGrace = 5 * time.Second

// privExpiryChecks wait for the end of a token's life, in the ways to hold a stream open with it.
func privExpiryChecks() []suite.Check {
	header := suite.Bearer
	get := func(t *suite.T, topic string) wire.Request { return t.Get("match=" + wire.Escape(topic)) }
	it := func(topic string) any { return suite.Details(suite.CanSubscribe(suite.Exact(topic))) }
	other := func(topic string) any { return suite.Details(suite.CanSubscribe(suite.Exact(topic + "/x"))) }
	expires := func(name string, e privExpiry, needs ...suite.Feature) suite.Check {
		if e.present == nil {
			e.present = func(_ *suite.T, r wire.Request, token string) wire.Request { return header(r, token) }
		}
		if e.request == nil {
			e.request = get
		}
		return one("PRIV-09", name, e.run, needs...)
	}
	cookie := (*suite.T).InCookie
	return []suite.Check{
		expires("header-private", privExpiry{details: it}),
		expires("header-public", privExpiry{details: other}),
		expires("cookie-private", privExpiry{details: it, present: cookie}, suite.Cookie),
		expires("cookie-public", privExpiry{details: other, present: cookie}, suite.Cookie),
		// Events keep coming: the end must not wait for a quiet moment.
		expires("busy", privExpiry{details: it, busy: true}),
		// A token that grants nothing was presented all the same.
		expires("no-details", privExpiry{details: func(string) any { return nil }}, suite.Anonymous),
		expires("resumed", privExpiry{details: it, request: func(t *suite.T, topic string) wire.Request {
			id := t.Publish("topic", topic, "data", "x")
			t.Publish("topic", topic, "data", "x")
			return get(t, topic).With("Last-Event-ID", id)
		}}, suite.History),
		expires("query-method", privExpiry{details: it, request: func(t *suite.T, topic string) wire.Request {
			return t.Query("", wire.Form("match", topic))
		}}, suite.QueryMethod),
	}
}

// privExpiry is a way to open a stream whose token expires soon.
type privExpiry struct {
	details func(topic string) any // nil: no such claim
	request func(t *suite.T, topic string) wire.Request
	present func(t *suite.T, r wire.Request, token string) wire.Request
	busy    bool
}

func (e privExpiry) run(t *suite.T) {
	topic := t.Topic()
	s, exp := e.open(t, topic)
	for e.busy && time.Now().Before(exp.Add(time.Second)) {
		t.Publish("topic", topic, "data", "x")
		t.Pause(200 * time.Millisecond)
	}
	at := s.WantEnd(exp.Add(privGrace))
	t.Observed("ended %s after exp", at.Sub(exp).Round(time.Millisecond))
}

// open opens the stream with a token of three seconds. When the machine is so slow that it expires on its way, the
// token of the next try lives longer.
func (e privExpiry) open(t *suite.T, topic string) (*suite.Stream, time.Time) {
	request := e.request(t, topic)
	for life := 3 * time.Second; ; life *= 2 {
		exp := time.Now().Add(life).Truncate(time.Second)
		token := t.Claims(e.details(topic))
		token.Claims["exp"] = exp.Unix()
		resp, err := t.Try(e.present(t, request, t.Sign(suite.Subscriber, token)))
		if err != nil {
			t.Fail("GET with a token of %s: no answer: %v", life, err)
		}
		if resp.Stream != nil {
			return t.Attach(resp), exp
		}
		if life > 20*time.Second || time.Now().Before(exp.Add(-time.Second)) {
			t.Fail("GET with a token of %s: answered %d, wanted an event stream", life, resp.Status)
		}
	}
}

// privLifetimeChecks wait for the maximum lifetime of a connection whose token lives much longer.
func privLifetimeChecks() []suite.Check {
	ends := func(t *suite.T, r wire.Request, busy func()) {
		due := time.Now().Add(t.Target().Lifetime)
		s := t.Open(r)
		for busy != nil && time.Now().Before(due.Add(time.Second)) {
			busy()
			t.Pause(500 * time.Millisecond)
		}
		at := s.WantEnd(due.Add(privGrace))
		t.Observed("ended %s before or after the lifetime of %s was over", at.Sub(due).Abs().Round(time.Millisecond), t.Target().Lifetime)
	}
	return []suite.Check{
		one("PRIV-10", "idle", func(t *suite.T) {
			topic := t.Topic()
			ends(t, suite.Bearer(t.Get("match="+wire.Escape(topic)), t.SubscribeToken(suite.CanSubscribe(suite.Exact(topic)))), nil)
		}, suite.ShortLifetime),
		one("PRIV-10", "busy", func(t *suite.T) {
			topic := t.Topic()
			ends(t, suite.Bearer(t.Get("match="+wire.Escape(topic)), t.SubscribeAll()), func() { t.Publish("topic", topic, "data", "x") })
		}, suite.ShortLifetime),
		one("PRIV-10", "anonymous", func(t *suite.T) {
			ends(t, t.Get("match="+wire.Escape(t.Topic())), nil)
		}, suite.ShortLifetime, suite.Anonymous),
	}
}
