package checks

import (
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// recAuthorizationChecks replay private updates: only the token that asks counts.
func recAuthorizationChecks() []suite.Check {
	resumed := func(t *suite.T, topic, cursor string, grant suite.Detail) *suite.Stream {
		return t.ListenWith(suite.Bearer(t.Get(recTo(topic)).With("Last-Event-ID", cursor), t.SubscribeToken(grant)))
	}
	private := func(t *suite.T, topics ...string) string {
		return t.PublishForm(privForm(true, "secret", topics...))
	}
	checks := []suite.Check{
		one("REC-09", "with-grant", func(t *suite.T) {
			topic := t.Topic()
			start := t.Publish("topic", topic, "data", "x")
			ids := []string{private(t, topic), t.Publish("topic", topic, "data", "x"), private(t, topic)}
			resumed(t, topic, start, suite.CanSubscribe(suite.Exact(topic))).Want(ids...)
		}, suite.History),
		one("REC-09", "without-grant", func(t *suite.T) {
			topic := t.Topic()
			start := t.Publish("topic", topic, "data", "x")
			private(t, topic)
			public := t.Publish("topic", topic, "data", "x")
			private(t, topic)
			resumed(t, topic, start, suite.CanSubscribe(suite.Exact(topic+"/x"))).Want(public)
		}, suite.History),
		one("REC-09", "lost-the-grant", func(t *suite.T) {
			// The first stream may read it, and does; the second has another token.
			topic := t.Topic()
			start := t.Publish("topic", topic, "data", "x")
			first := t.ListenWith(suite.Bearer(t.Get(recTo(topic)), t.SubscribeToken(suite.CanSubscribe(suite.Exact(topic)))))
			id := private(t, topic)
			first.Want(id)
			first.Close()
			resumed(t, topic, start, suite.CanSubscribe(suite.Exact(topic+"/x"))).Want()
		}, suite.History),
		one("REC-09", "won-the-grant", func(t *suite.T) {
			topic := t.Topic()
			start := t.Publish("topic", topic, "data", "x")
			first := t.ListenWith(suite.Bearer(t.Get(recTo(topic)), t.SubscribeToken(suite.CanSubscribe(suite.Exact(topic+"/x")))))
			id := private(t, topic)
			first.Want()
			first.Close()
			resumed(t, topic, start, suite.CanSubscribe(suite.Exact(topic))).Want(id)
		}, suite.History),
		one("REC-09", "one-of-two-topics", func(t *suite.T) {
			folder := t.Folder()
			start := t.Publish("topic", folder+"/a", "data", "x")
			granted := private(t, folder+"/a")
			private(t, folder+"/b")
			s := t.ListenWith(suite.Bearer(t.Get(recTo(folder+"/a", folder+"/b")).With("Last-Event-ID", start),
				t.SubscribeToken(suite.CanSubscribe(suite.Exact(folder+"/a")))))
			s.Want(granted)
		}, suite.History),
		one("REC-09", "grant-on-an-alternate", func(t *suite.T) {
			folder := t.Folder()
			start := t.Publish("topic", folder+"/a", "data", "x")
			id := private(t, folder+"/a", folder+"/b")
			resumed(t, folder+"/a", start, suite.CanSubscribe(suite.Exact(folder+"/b"))).Want(id)
		}, suite.History),
		one("REC-09", "pattern-grant", func(t *suite.T) {
			folder := t.Folder()
			start := t.Publish("topic", folder+"/a/1", "data", "x")
			id := private(t, folder+"/a/1")
			private(t, folder+"/b/1")
			s := t.ListenWith(suite.Bearer(t.Get("match_urlpattern="+folder+"/*").With("Last-Event-ID", start),
				t.SubscribeToken(suite.CanSubscribe(suite.Pattern(folder+"/a/:id")))))
			s.Want(id)
		}, suite.History),
	}
	return append(checks, recEachWay("REC-09", "earliest-", func(t *suite.T, w recWay) {
		topic := t.Topic()
		id := private(t, topic)
		recAllOrNone(t, t.ListenWith(suite.Bearer(w.request(t, recTo(topic), "earliest"), t.SubscribeToken(suite.CanSubscribe(suite.Exact(topic))))), []string{id})
	}, suite.History)...)
}

// recAnonymousChecks replay to those who may not read what is private.
func recAnonymousChecks() []suite.Check {
	// publicOnly gives updates, the first of which is the cursor, to a request that may read the public ones alone.
	publicOnly := func(name string, open func(t *suite.T, topic, cursor string) wire.Request, needs ...suite.Feature) []suite.Check {
		run := func(t *suite.T, earliest bool) {
			topic := t.Topic()
			start := t.Publish("topic", topic, "data", "x")
			t.Publish("topic", topic, "data", "secret", "private", "on")
			public := t.Publish("topic", topic, "data", "x")
			t.Publish("topic", topic, "data", "secret", "private", "")
			if !earliest {
				t.ListenWith(open(t, topic, start)).Want(public)
				return
			}
			recAllOrNone(t, t.ListenWith(open(t, topic, "earliest")), []string{start, public})
		}
		needs = append(needs, suite.History)
		return []suite.Check{
			one("REC-10", name, func(t *suite.T) { run(t, false) }, needs...),
			one("REC-10", name+"-earliest", func(t *suite.T) { run(t, true) }, needs...),
		}
	}
	at := func(t *suite.T, topic, cursor string) wire.Request {
		return t.Get(recTo(topic)).With("Last-Event-ID", cursor)
	}
	var checks []suite.Check
	add := func(more []suite.Check) { checks = append(checks, more...) }
	add(publicOnly("anonymous", at, suite.Anonymous))
	add(publicOnly("anonymous-parameter", func(t *suite.T, topic, cursor string) wire.Request {
		return t.Get(recTo(topic) + "&last_event_id=" + wire.Escape(cursor))
	}, suite.Anonymous))
	add(publicOnly("grant-on-another-topic", func(t *suite.T, topic, cursor string) wire.Request {
		return suite.Bearer(at(t, topic, cursor), t.SubscribeToken(suite.CanSubscribe(suite.Exact(topic+"/x"))))
	}))
	add(publicOnly("cookie", func(t *suite.T, topic, cursor string) wire.Request {
		return t.InCookie(at(t, topic, cursor), t.SubscribeToken(suite.CanSubscribe(suite.Exact(topic+"/x"))))
	}, suite.Cookie))
	add(publicOnly("no-details", func(t *suite.T, topic, cursor string) wire.Request {
		return suite.Bearer(at(t, topic, cursor), t.Sign(suite.Subscriber, t.Claims(nil)))
	}, suite.Anonymous))
	add(publicOnly("publish-only", func(t *suite.T, topic, cursor string) wire.Request {
		return suite.Bearer(at(t, topic, cursor), t.SubscribeToken(suite.CanPublish(suite.Any())))
	}, suite.Anonymous, suite.OneKey))
	// The cursor itself may be the id of what must not be read.
	checks = append(checks, one("REC-10", "cursor-of-the-private-update", func(t *suite.T) {
		topic := t.Topic()
		cursor := t.Publish("topic", topic, "data", "secret", "private", "on")
		t.Publish("topic", topic, "data", "secret", "private", "on")
		public := t.Publish("topic", topic, "data", "x")
		t.ListenWith(at(t, topic, cursor)).Want(public)
	}, suite.History, suite.Anonymous))
	return checks
}
