package checks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// actCaches ask whether a cache may take a volatile answer for fresh.
func actCaches() []suite.Check {
	return slices.Concat(
		actEachShape("ACT-46", "cache-control-", func(t *suite.T, _ *actSite, target string) {
			resp := actAsk(t, target, t.SubscribeAll())
			for _, directive := range resp.List("Cache-Control") {
				name, value, _ := strings.Cut(directive, "=")
				seconds, _ := strconv.Atoi(strings.Trim(value, `"`))
				if name == "immutable" || (name == "max-age" || name == "s-maxage") && seconds > 0 {
					t.Fail("GET %s: Cache-Control is %q, but the answer is volatile", target, resp.Get("Cache-Control"))
				}
			}
			t.Observed("Cache-Control is %q, ETag is %q", resp.Get("Cache-Control"), resp.Get("ETag"))
		}),
		[]suite.Check{one("ACT-46", "etag-follows-changes", func(t *suite.T) {
			s := actSettle(t)
			tag := actAsk(t, s.matcher, t.SubscribeAll()).Get("ETag")
			if tag == "" {
				t.Observed("there is no ETag")
				return
			}
			second := s.p.begin()
			actWantListed(t, s.matcher, second)
			again := t.Do(suite.Bearer(t.At(s.matcher), t.SubscribeAll()).With("If-None-Match", tag))
			if again.Status != 200 {
				t.Fail("GET %s with the ETag of before a change: answered %d, wanted 200", s.matcher, again.Status)
			}
			if again.Get("ETag") == tag {
				t.Fail("GET %s: the ETag is %q before and after a change", s.matcher, tag)
			}
		}, suite.Subscriptions)},
	)
}

// actOff ask whether a hub without the feature shows nothing of it.
func actOff() []suite.Check {
	off := func(name string, variables ...string) suite.Check {
		return one("ACT-47", name, func(t *suite.T) {
			t.Want(suite.Bearer(t.At(actPath(t, variables...)), t.SubscribeAll()), 404)
		}, suite.NoSubscriptions)
	}
	return []suite.Check{
		off("collection"),
		off("matcher", "exact", "x"),
		off("single", "exact", "x", "urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
		one("ACT-47", "no-events", func(t *suite.T) {
			p := newActPresence(t)
			s := t.ListenTo(p.match)
			s.Want() // it is subscribed
			s.Close()
			p.watcher.Want()
		}, suite.NoSubscriptions),
	}
}

// actUnknown ask for collections of nothing and for addresses of no shape at all. They are asked of hubs without the
// feature too, which must not break on them either.
func actUnknown() []suite.Check {
	empty := func(name string, target func(t *suite.T) string) suite.Check {
		return one("ACT-48", name, func(t *suite.T) { actWantEmpty(t, target(t)) })
	}
	odd := func(name, rest string) suite.Check {
		return one("ACT-48", name, func(t *suite.T) {
			target := actRoot(t) + rest
			resp := actAsk(t, target, t.SubscribeAll())
			if resp.Status >= 500 {
				t.Fail("GET %s: answered %d", target, resp.Status)
			}
			if resp.Status == 200 {
				actWantEmpty(t, target)
			}
			t.Observed("%d", resp.Status)
		})
	}
	return []suite.Check{
		empty("unused-matcher", func(t *suite.T) string { return actPath(t, "exact", t.Unique("none")) }),
		empty("unused-pattern", func(t *suite.T) string { return actPath(t, "urlpattern", t.Unique("none")) }),
		empty("ill-formed-pattern", func(t *suite.T) string { return actPath(t, "urlpattern", "https://e.example/("+t.Unique("none")) }),
		empty("unknown-type", func(t *suite.T) string { return actPath(t, "regex", t.Unique("none")) }),
		empty("upper-case-type", func(t *suite.T) string { return actPath(t, "EXACT", t.Unique("none")) }),
		empty("odd-type", func(t *suite.T) string { return actPath(t, "é *", t.Unique("none")) }),
		odd("final-slash", "/"),
		odd("type-alone", "/none"),
		odd("type-and-slash", "/none/"),
		odd("empty-type", "//x"),
		odd("empty-subscriber", "/none/x/"),
		odd("too-deep", "/exact/x/y/z"),
		odd("no-octet", "/exact/%zz"),
		odd("cut-octet", "/exact/%4"),
		odd("not-utf-8", "/exact/%FF"),
		odd("zero-octet", "/exact/%00"),
		odd("encoded-slash", "/exact/%2F"),
		odd("dot-segments", "/exact/../../subscriptions/none/x"),
		odd("very-long", "/exact/"+strings.Repeat("a", 10_000)),
	}
}

// actExpiry asks whether the end of a token is the end of its subscriptions.
func actExpiry() []suite.Check {
	event := one("ACT-49", "event", func(t *suite.T) {
		p, s, exp := actExpiring(t)
		t.Pause(time.Until(exp))
		_, last := p.next()
		actWantEnd(t, s.doc, last)
	}, suite.Subscriptions)
	api := one("ACT-49", "api", func(t *suite.T) {
		t.Need(suite.SubscriptionAPI)
		p, opened, exp := actExpiring(t)
		s := actSiteOf(p, opened, "exact")
		actSoon(t, func() string { return actStatus(t, s.single, 200) })
		t.Pause(time.Until(exp))
		actSoon(t, func() string { return actEnded(t, s.single) })
	}, suite.Subscriptions)
	return []suite.Check{event, api}
}

// actExpiring opens a subscription with a token that expires in a moment. When the machine is so slow that it expires
// on its way, the token of the next try lives longer.
func actExpiring(t *suite.T) (p *actPresence, s *actSubscription, exp time.Time) {
	for life := 3 * time.Second; ; life *= 2 {
		p = newActPresence(t)
		exp = time.Now().Add(life).Truncate(time.Second)
		token := t.Claims(suite.Details(suite.CanSubscribe(suite.Any())))
		token.Claims["exp"] = exp.Unix()
		resp, err := t.Try(suite.Bearer(t.Get("match="+p.match), t.Sign(suite.Subscriber, token)))
		if err != nil {
			t.Fail("GET with a token of %s: no answer: %v", life, err)
		}
		if resp.Stream != nil {
			s = &actSubscription{t: t, stream: t.Attach(resp)}
			s.event, s.doc = p.next()
			return p, s, exp
		}
		if resp.Status != 401 || life > 10*time.Second {
			t.Fail("GET with a token of %s: answered %d, wanted an event stream", life, resp.Status)
		}
	}
}

// actForged ask whether a publisher can make something that looks like a subscription event. The rules behind it have
// their own checks (NS, PUB-27): these look at the receiving side.
func actForged() []suite.Check {
	forged := func(name string, form func(t *suite.T, p *actPresence, topic string) string) suite.Check {
		return one("ACT-50", name, func(t *suite.T) {
			p := newActPresence(t)
			topic := actPath(t, "exact", p.match, "urn:uuid:"+t.Unique("evil"))
			t.Want(suite.Bearer(t.Post(form(t, p, topic)), t.PublishAll()), 400)
			p.watcher.Want()
		})
	}
	data := func(p *actPresence, topic string) string {
		return fmt.Sprintf(`{"id":%q,"type":"subscription","match_type":"exact","match":%q,"active":true}`, topic, p.match)
	}
	return []suite.Check{
		forged("topic", func(_ *suite.T, p *actPresence, topic string) string {
			return wire.Form("topic", topic, "data", data(p, topic), "private", "on")
		}),
		forged("absolute-topic", func(t *suite.T, p *actPresence, topic string) string {
			return wire.Form("topic", t.Target().Origin()+topic, "data", data(p, topic), "private", "on")
		}),
		forged("encoded-topic", func(t *suite.T, p *actPresence, topic string) string {
			hidden := nsEncode(actRoot(t), lowerHex, nsUnreserved) + strings.TrimPrefix(topic, actRoot(t))
			return wire.Form("topic", hidden, "data", data(p, topic), "private", "on")
		}),
		forged("alternate", func(t *suite.T, p *actPresence, topic string) string {
			return wire.Form("topic", t.Topic(), "topic", topic, "data", data(p, topic), "private", "on")
		}),
		one("ACT-50", "event-type", func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenTo(topic)
			t.Want(suite.Bearer(t.Post(wire.Form("topic", topic, "data", "{}", "type", "mercure")), t.PublishAll()), 400)
			s.Want()
		}),
		one("ACT-50", "live-subscription", func(t *suite.T) {
			p := newActPresence(t)
			s := p.begin()
			topic := actPath(t, "exact", p.match, s.subscriber())
			t.Want(suite.Bearer(t.Post(wire.Form("topic", topic, "data", strings.Replace(s.event.Data, "true", "false", 1), "private", "on")), t.PublishAll()), 400)
			p.watcher.Want()
		}, suite.Subscriptions),
	}
}
