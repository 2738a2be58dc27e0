package checks

import (
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// privPublishing is an update, and what its publisher may publish. {} is a folder of the check's own.
type privPublishing struct {
	name     string
	exact    []string // the grants
	patterns []string
	topics   []string // of the update
	status   int
}

func privPublishings() []privPublishing {
	return []privPublishing{
		{"granted", []string{"{}/a"}, nil, []string{"{}/a"}, 200},
		{"not-granted", []string{"{}/a"}, nil, []string{"{}/b"}, 403},
		{"canonical-only", []string{"{}/a"}, nil, []string{"{}/a", "{}/b"}, 403},
		{"alternate-only", []string{"{}/a"}, nil, []string{"{}/b", "{}/a"}, 403},
		{"both", []string{"{}/a", "{}/b"}, nil, []string{"{}/b", "{}/a"}, 200},
		{"all-but-the-middle", []string{"{}/a", "{}/c"}, nil, []string{"{}/a", "{}/b", "{}/c"}, 403},
		{"all-but-the-last-of-ten", []string{"{}/0", "{}/1", "{}/2", "{}/3", "{}/4", "{}/5", "{}/6", "{}/7", "{}/8"}, nil, []string{
			"{}/0", "{}/1", "{}/2", "{}/3", "{}/4", "{}/5", "{}/6", "{}/7", "{}/8", "{}/9",
		}, 403},
		{"same-topic-twice", []string{"{}/a"}, nil, []string{"{}/a", "{}/a"}, 200},
		{"pattern-on-all", nil, []string{"{}/books/:id"}, []string{"{}/books/1", "{}/books/2"}, 200},
		{"pattern-on-one", nil, []string{"{}/books/:id"}, []string{"{}/books/1", "{}/users/1"}, 403},
		{"prefix-granted", []string{"{}/a"}, nil, []string{"{}/a/b"}, 403},
		{"other-case-granted", []string{"{}/A"}, nil, []string{"{}/a"}, 403},
	}
}

func privPublishingChecks() []suite.Check {
	var checks []suite.Check
	for _, private := range []bool{true, false} {
		id := "PRIV-04"
		if private {
			id = "PRIV-02"
		}
		for _, c := range privPublishings() {
			checks = append(checks, one(id, c.name, func(t *suite.T) {
				folder := t.Folder()
				token := t.PublishToken(privGrant("publish", privIn(folder, c.exact...), privIn(folder, c.patterns...)))
				t.Want(suite.Bearer(t.Post(privForm(private, "x", privIn(folder, c.topics...)...)), token), c.status)
			}))
		}
	}
	return checks
}

// privNothingDispatchedChecks look at who would have received an update that its publisher may only publish in part.
// What the hub answers is another requirement's.
func privNothingDispatchedChecks() []suite.Check {
	var checks []suite.Check
	for _, c := range []struct {
		name    string
		private bool
		topics  []string // of which only /a may be published
	}{
		{"canonical-only", false, []string{"/a", "/b"}},
		{"alternate-only", false, []string{"/b", "/a"}},
		{"not-granted", false, []string{"/b"}},
		{"private-canonical-only", true, []string{"/a", "/b"}},
		{"private-alternate-only", true, []string{"/b", "/a"}},
		{"private-not-granted", true, []string{"/b"}},
	} {
		refused := func(t *suite.T, folder string) {
			topics := make([]string, len(c.topics))
			for i, topic := range c.topics {
				topics[i] = folder + topic
			}
			token := t.PublishToken(suite.CanPublish(suite.Exact(folder + "/a")))
			resp := t.Do(suite.Bearer(t.Post(privForm(c.private, "x", topics...)), token))
			t.Observed("POST: %d", resp.Status)
		}
		checks = append(checks,
			one("PRIV-03", c.name, func(t *suite.T) {
				folder := t.Folder()
				a, b := t.ListenTo(folder+"/a"), t.ListenTo(folder+"/b")
				refused(t, folder)
				a.Want()
				b.Want()
			}),
			// Nor does it reach those who come later.
			one("PRIV-03", c.name+"-replayed", func(t *suite.T) {
				folder := t.Folder()
				before := t.Publish("topic", folder+"/a", "data", "x")
				refused(t, folder)
				after := t.Publish("topic", folder+"/a", "data", "x")
				s := t.Listen(wire.Form("match", folder+"/a", "match", folder+"/b", "last_event_id", before))
				s.Want(after)
			}, suite.History),
		)
	}
	return checks
}

// privRoleChecks use a grant of one action for the other one. With a key for each role, the token that such a grant
// needs may be none for that role at all.
func privRoleChecks() []suite.Check {
	refusals := func(t *suite.T) []int {
		if t.Target().Has(suite.SeparateKeys) {
			return []int{401, 403}
		}
		return []int{403}
	}
	// reads opens a stream that must not see private updates of the topic, unless the hub refuses it.
	reads := func(t *suite.T, topic string, details ...suite.Detail) {
		r := suite.Bearer(t.Get("match="+wire.Escape(topic)), t.SubscribeToken(details...))
		if !t.Target().Has(suite.Anonymous) || t.Target().Has(suite.SeparateKeys) {
			resp := t.Do(r)
			if resp.Status == 401 || resp.Status == 403 {
				t.Observed("GET: %d", resp.Status)
				return
			}
		}
		s := t.ListenWith(r)
		t.Publish("topic", topic, "data", "secret", "private", "on")
		s.Want()
	}
	return []suite.Check{
		one("PRIV-08", "subscribe-only-publishes", func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenTo(topic)
			token := t.PublishToken(suite.CanSubscribe(suite.Exact(topic)))
			t.Want(suite.Bearer(t.Post(wire.Form("topic", topic, "data", "x")), token), refusals(t)...)
			s.Want()
		}),
		one("PRIV-08", "subscribe-everything-publishes", func(t *suite.T) {
			t.Want(suite.Bearer(t.Post(wire.Form("topic", t.Topic(), "data", "x")), t.PublishToken(suite.CanSubscribe(suite.Any()))), refusals(t)...)
		}),
		one("PRIV-08", "subscribe-only-publishes-private", func(t *suite.T) {
			topic := t.Topic()
			token := t.PublishToken(suite.CanSubscribe(suite.Exact(topic)))
			t.Want(suite.Bearer(t.Post(wire.Form("topic", topic, "data", "x", "private", "on")), token), refusals(t)...)
		}),
		one("PRIV-08", "publish-only-reads", func(t *suite.T) {
			topic := t.Topic()
			reads(t, topic, suite.CanPublish(suite.Exact(topic)))
		}),
		one("PRIV-08", "publish-everything-reads", func(t *suite.T) { reads(t, t.Topic(), suite.CanPublish(suite.Any())) }),
		one("PRIV-08", "publishes-it-and-reads-another", func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenWith(suite.Bearer(t.Get("match="+wire.Escape(topic)),
				t.SubscribeToken(suite.CanPublish(suite.Exact(topic)), suite.CanSubscribe(suite.Exact(topic+"/x")))))
			t.Publish("topic", topic, "data", "secret", "private", "on")
			s.Want()
		}, suite.OneKey),
		one("PRIV-08", "reads-it-and-publishes-another", func(t *suite.T) {
			topic := t.Topic()
			token := t.PublishToken(suite.CanPublish(suite.Exact(topic+"/x")), suite.CanSubscribe(suite.Exact(topic)))
			t.Want(suite.Bearer(t.Post(wire.Form("topic", topic, "data", "x")), token), 403)
		}, suite.OneKey),
	}
}

// privPublicChecks say that grants have no say in public updates.
func privPublicChecks() []suite.Check {
	public := func(name string, open func(t *suite.T, topic string) wire.Request, needs ...suite.Feature) suite.Check {
		return one("PRIV-13", name, func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenWith(open(t, topic))
			s.Want(t.Publish("topic", topic, "topic", topic+"/alternate", "data", "x"))
		}, needs...)
	}
	get := func(t *suite.T, topic string) wire.Request { return t.Get("match=" + wire.Escape(topic)) }
	return []suite.Check{
		public("grant-on-another-topic", func(t *suite.T, topic string) wire.Request {
			return suite.Bearer(get(t, topic), t.SubscribeToken(suite.CanSubscribe(suite.Exact(topic+"/x"))))
		}),
		public("pattern-of-another-folder", func(t *suite.T, topic string) wire.Request {
			return suite.Bearer(get(t, topic), t.SubscribeToken(suite.CanSubscribe(suite.Pattern(topic+"/:x"))))
		}),
		public("cookie", func(t *suite.T, topic string) wire.Request {
			return t.InCookie(get(t, topic), t.SubscribeToken(suite.CanSubscribe(suite.Exact(topic+"/x"))))
		}, suite.Cookie),
		public("no-details", func(t *suite.T, topic string) wire.Request {
			return suite.Bearer(get(t, topic), t.Sign(suite.Subscriber, t.Claims(nil)))
		}, suite.Anonymous),
		public("unknown-action", func(t *suite.T, topic string) wire.Request {
			return suite.Bearer(get(t, topic), t.SubscribeToken(suite.Grant("fly", suite.Any())))
		}, suite.Anonymous),
		public("publish-only", func(t *suite.T, topic string) wire.Request {
			return suite.Bearer(get(t, topic), t.SubscribeToken(suite.CanPublish(suite.Any())))
		}, suite.Anonymous, suite.OneKey),
		one("PRIV-13", "routed-by-an-alternate", func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenWith(suite.Bearer(get(t, topic+"/alternate"), t.SubscribeToken(suite.CanSubscribe(suite.Exact(topic+"/x")))))
			s.Want(t.Publish("topic", topic, "topic", topic+"/alternate", "data", "x"))
		}),
	}
}
