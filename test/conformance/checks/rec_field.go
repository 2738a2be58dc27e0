package checks

import (
	"slices"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// recFieldChecks look for the Mercure-Last-Event-ID field, whatever it says; it needs no history.
func recFieldChecks() []suite.Check {
	var checks []suite.Check
	there := func(name string, request func(t *suite.T) wire.Request, needs ...suite.Feature) {
		checks = append(checks, one("REC-14", name, func(t *suite.T) { recField(t, recOpen(t, request(t)).Response) }, needs...))
	}
	for _, w := range recWays() {
		there(w.name, func(t *suite.T) wire.Request {
			topic := t.Topic()
			return w.request(t, recTo(topic), t.Publish("topic", topic, "data", "x"))
		}, w.needs...)
		there("unknown-id-"+w.name, func(t *suite.T) wire.Request {
			return w.request(t, recTo(t.Topic()), "urn:x-unknown:"+t.Unique("id"))
		}, w.needs...)
		there("earliest-"+w.name, func(t *suite.T) wire.Request { return w.request(t, recTo(t.Topic()), "earliest") }, w.needs...)
		checks = append(checks, one("REC-16", w.name, func(t *suite.T) {
			topic := t.Topic()
			recPublish(t, topic, 2)
			recWantField(t, recOpen(t, w.request(t, recTo(topic), "earliest")).Response, "earliest")
		}, w.needs...))
	}
	there("both", func(t *suite.T) wire.Request {
		topic := t.Topic()
		ids := recPublish(t, topic, 2)
		return t.Get(recTo(topic)+"&last_event_id="+wire.Escape(ids[0])).With("Last-Event-ID", ids[1])
	})
	there("lower-case-field-name", func(t *suite.T) wire.Request {
		topic := t.Topic()
		return t.Get(recTo(topic)).With("last-event-id", t.Publish("topic", topic, "data", "x"))
	})
	there("query-component-of-the-query-method", func(t *suite.T) wire.Request {
		topic := t.Topic()
		return t.Query("last_event_id="+wire.Escape(t.Publish("topic", topic, "data", "x")), recTo(topic))
	}, suite.QueryMethod)
	// A field without a value is present all the same.
	there("header-without-value", func(t *suite.T) wire.Request { return t.Get(recTo(t.Topic())).With("Last-Event-ID", "") })
	return append(checks,
		one("REC-14", "anonymous", func(t *suite.T) {
			recField(t, t.ListenWith(t.Get(recTo(t.Topic())+"&last_event_id=earliest")).Response)
		}, suite.Anonymous),
		one("REC-16", "nothing-on-the-topic", func(t *suite.T) {
			recWantField(t, recOpen(t, t.Get(recTo(t.Topic())+"&last_event_id=earliest")).Response, "earliest")
		}),
	)
}

// recSubscriptionEvents watches what the hub itself publishes while a quiet check runs: on a hub with active
// subscriptions the check's own streams are events, and any of them can be the one before the first that is sent.
func recSubscriptionEvents(t *suite.T) func() []string {
	if !t.Target().Has(suite.Subscriptions) {
		return func() []string { return nil }
	}
	watch := t.Listen("match_urlpattern=" + wire.Escape(t.Target().Path()+"/subscriptions/*"))
	return func() []string {
		var ids []string
		for _, e := range watch.Events() {
			if e.Type == "mercure" {
				ids = append(ids, e.ID)
			}
		}
		return ids
	}
}

// recPrecedingChecks compare the field with the event before the first one that is sent. Nobody else may publish.
func recPrecedingChecks() []suite.Check {
	// after publishes an update, what between says, and another update, and resumes after the first. The field may name it,
	// or what between gives: what precedes the second one.
	after := func(name string, w recWay, between func(t *suite.T, topic string) []string) suite.Check {
		return quiet(one("REC-15", name+w.name, func(t *suite.T) {
			own := recSubscriptionEvents(t)
			topic := t.Topic()
			cursor := t.Publish("topic", topic, "data", "1")
			var ids []string
			if between != nil {
				ids = between(t, topic)
			}
			next := t.Publish("topic", topic, "data", "2")
			s := t.ListenWith(suite.Bearer(w.request(t, recTo(topic), cursor), t.SubscribeToken(suite.CanSubscribe(suite.Exact(topic)))))
			s.Want(next)
			recWantField(t, s.Response, slices.Concat([]string{cursor}, ids, own())...)
		}, slices.Concat(w.needs, []suite.Feature{suite.History})...))
	}
	var checks []suite.Check
	for _, w := range recWays() {
		checks = append(checks, after("", w, nil))
	}
	parameter := recWays()[0]
	return append(checks,
		after("not-matching-between-", parameter, func(t *suite.T, topic string) []string { return recPublish(t, topic+"/other", 2) }),
		after("private-between-", parameter, func(t *suite.T, topic string) []string {
			return []string{t.Publish("topic", topic+"/other", "data", "x", "private", "on")}
		}),
		quiet(one("REC-15", "cursor-of-another-topic", func(t *suite.T) {
			own := recSubscriptionEvents(t)
			topic := t.Topic()
			cursor := t.Publish("topic", topic+"/other", "data", "1")
			next := t.Publish("topic", topic, "data", "2")
			s := recOpen(t, t.Get(recTo(topic)).With("Last-Event-ID", cursor))
			s.Want(next)
			recWantField(t, s.Response, append(own(), cursor)...)
		}, suite.History)),
		quiet(one("REC-15", "header-over-parameter", func(t *suite.T) {
			own := recSubscriptionEvents(t)
			topic := t.Topic()
			ids := recPublish(t, topic, 3)
			s := recOpen(t, t.Get(recTo(topic)+"&last_event_id="+wire.Escape(ids[0])).With("Last-Event-ID", ids[1]))
			s.Want(ids[2])
			recWantField(t, s.Response, append(own(), ids[1])...)
		}, suite.History)),
	)
}

// recUnknownChecks resume after ids that no update has.
func recUnknownChecks() []suite.Check {
	var checks []suite.Check
	for _, w := range recWays() {
		unknown := func(name string, cursor func(t *suite.T, topic string) string, needs ...suite.Feature) {
			checks = append(checks, one("REC-17", name+"-"+w.name, func(t *suite.T) {
				topic := t.Topic()
				id := cursor(t, topic)
				recPublish(t, topic, 1)
				recWantField(t, recOpen(t, w.request(t, recTo(topic), id)).Response, "earliest")
			}, slices.Concat(w.needs, needs)...))
		}
		unknown("unknown", func(t *suite.T, _ string) string { return "urn:x-unknown:" + t.Unique("id") })
		unknown("unknown-fragment", func(t *suite.T, _ string) string { return "#" + t.Unique("id") })
		// What only resembles an id of the history is unknown as well.
		unknown("part-of-an-id", func(t *suite.T, topic string) string {
			id := t.Unique("id") + "-end"
			recOwnID(t, id, "topic", topic, "data", "x")
			return id[:len(id)-1]
		})
		unknown("longer-than-an-id", func(t *suite.T, topic string) string { return t.Publish("topic", topic, "data", "x") + "0x0" })
		unknown("id-in-other-case", func(t *suite.T, topic string) string {
			id := "a" + t.Unique("id")
			recOwnID(t, id, "topic", topic, "data", "x")
			return "A" + id[1:]
		})
		unknown("a-topic", func(_ *suite.T, topic string) string { return topic })
	}
	return append(checks,
		// Refused updates have no place in the sequence.
		one("REC-17", "id-of-a-refused-update", func(t *suite.T) {
			topic, id := t.Topic(), t.Unique("id")
			t.WantRefused(suite.Bearer(t.Post(wire.Form("topic", topic, "topic", "*", "data", "x", "id", id)), t.PublishAll()))
			recWantField(t, recOpen(t, t.Get(recTo(topic)).With("Last-Event-ID", id)).Response, "earliest")
		}),
	)
}

// recNoCursorChecks send no cursor, or one that is empty, or what was one before version 1.0.
func recNoCursorChecks() []suite.Check {
	none := func(t *suite.T, resp *wire.Response) {
		for _, name := range []string{"Mercure-Last-Event-ID", "Last-Event-ID"} {
			if resp.Has(name) {
				t.Fail("the response has a field %s: %+q", name, resp.Get(name))
			}
		}
	}
	checks := []suite.Check{
		one("REC-18", "no-cursor", func(t *suite.T) {
			topic := t.Topic()
			recPublish(t, topic, 1)
			s := t.ListenTo(topic)
			none(t, s.Response)
			s.Want()
		}),
		one("REC-18", "no-cursor-query-method", func(t *suite.T) {
			none(t, recOpen(t, t.Query("", recTo(t.Topic()))).Response)
		}, suite.QueryMethod),
		one("REC-18", "Last-Event-ID-is-no-response-field", func(t *suite.T) {
			topic := t.Topic()
			ids := recPublish(t, topic, 1)
			s := recOpen(t, t.Get(recTo(topic)).With("Last-Event-ID", ids[0]))
			if s.Response.Has("Last-Event-ID") {
				t.Fail("the response has a field Last-Event-ID: %+q", s.Response.Get("Last-Event-ID"))
			}
		}),
	}
	empty := func(name string, request func(t *suite.T, topic string) wire.Request, needs ...suite.Feature) {
		checks = append(checks, one("REC-19", name, func(t *suite.T) {
			topic := t.Topic()
			recPublish(t, topic, 1)
			recWantField(t, recOpen(t, request(t, topic)).Response, "earliest")
		}, needs...))
	}
	empty("empty", func(t *suite.T, topic string) wire.Request { return t.Get(recTo(topic) + "&last_event_id=") })
	empty("no-equals-sign", func(t *suite.T, topic string) wire.Request { return t.Get(recTo(topic) + "&last_event_id") })
	empty("first", func(t *suite.T, topic string) wire.Request { return t.Get("last_event_id=&" + recTo(topic)) })
	empty("encoded-name", func(t *suite.T, topic string) wire.Request { return t.Get(recTo(topic) + "&%6Cast_event_id=") })
	empty("query-method", func(t *suite.T, topic string) wire.Request { return t.Query("", recTo(topic)+"&last_event_id=") }, suite.QueryMethod)
	empty("query-component-over-body", func(t *suite.T, topic string) wire.Request {
		return t.Query("last_event_id=", wire.Form("match", topic, "last_event_id", t.Publish("topic", topic, "data", "x")))
	}, suite.QueryMethod)
	for _, name := range []string{"lastEventID", "lastEventId", "Last-Event-ID", "last-event-id", "LAST_EVENT_ID", "Last_Event_Id", "lasteventid"} {
		checks = append(checks, one("REC-23", name, func(t *suite.T) {
			topic := t.Topic()
			ids := recPublish(t, topic, 2)
			s := t.Listen(recTo(topic) + "&" + name + "=" + wire.Escape(ids[0]))
			none(t, s.Response)
			s.Want()
		}))
	}
	return append(checks, one("REC-23", "beside-the-right-one", func(t *suite.T) {
		topic := t.Topic()
		ids := recPublish(t, topic, 4)
		s := t.Listen(recTo(topic) + "&lastEventID=" + wire.Escape(ids[0]) + "&last_event_id=" + wire.Escape(ids[2]) + "&lastEventId=" + wire.Escape(ids[1]))
		s.Want(ids[3])
	}, suite.History))
}

// recOddID is an id that is easily taken for another one, when it is decoded once too often, or repaired, or trimmed.
type recOddID struct{ name, id, twin string }

func recOddIDs() []recOddID {
	return []recOddID{
		{"non-ascii", "é-1", "e-1"},
		{"other-script", "日本語", "???"},
		{"beyond-the-basic-plane", "\U0001F600", "\uFFFD"},
		{"composed", "é", "e\u0301"},
		{"decomposed", "e\u0301", "é"},
		{"latin-1-look-alike", "Ã©", "é"},
		{"percent", "100%", "100"},
		{"percent-encoded-letter", "%41", "A"},
		{"percent-encoded-space", "a%20b", "a b"},
		{"percent-encoded-percent", "%2541", "%41"},
		{"percent-encoded-utf-8", "%C3%A9", "é"},
		{"plus", "a+b", "a b"},
		{"space", "a b", "a+b"},
		{"two-spaces", "a  b", "a b"},
		{"no-break-space", "a\u00A0b", "a b"},
		{"ampersand", "a&b=c", "a"},
		{"semicolon", "a;b", "a"},
		{"comma", "a, b", "a"},
		{"quotes", `"a"`, "a"},
		{"backslash", `a\b`, "ab"},
		{"number-sign", "a#b", "a"},
		{"colon", ": a", "a"},
		{"html", "&amp;", "&"},
	}
}

// recOddIDChecks resume after odd ids. The twin stands before the id, so that who takes the one for the other replays
// too much.
func recOddIDChecks() []suite.Check {
	var checks []suite.Check
	for _, w := range recWays() {
		for _, o := range recOddIDs() {
			checks = append(checks, one("REC-24", o.name+"-"+w.name, func(t *suite.T) {
				topic, end := t.Topic(), t.Unique("x")
				// The odd part is in the middle: the ends of a field value may be trimmed.
				twin, id := end+o.twin+end, end+o.id+end
				recOwnID(t, twin, "topic", topic, "data", "twin")
				recOwnID(t, id, "topic", topic, "data", "odd")
				next := t.Publish("topic", topic, "data", "next")
				recOpen(t, w.request(t, recTo(topic), id)).Want(next)
			}, slices.Concat(w.needs, []suite.Feature{suite.History})...))
		}
		checks = append(checks, quiet(one("REC-24", "field-of-the-response-"+w.name, func(t *suite.T) {
			own := recSubscriptionEvents(t)
			topic, id := t.Topic(), t.Unique("é")
			recOwnID(t, id, "topic", topic, "data", "x")
			next := t.Publish("topic", topic, "data", "next")
			s := recOpen(t, w.request(t, recTo(topic), id))
			s.Want(next)
			recWantField(t, s.Response, append(own(), id)...)
		}, slices.Concat(w.needs, []suite.Feature{suite.History})...)))
	}
	return checks
}

// recNewestChecks resume after the newest update, so nothing is left to replay. Nobody else may publish.
func recNewestChecks() []suite.Check {
	var checks []suite.Check
	for _, w := range recWays() {
		newest := func(name string, publish func(t *suite.T, topic string) string) {
			checks = append(checks, quiet(one("REC-25", name+w.name, func(t *suite.T) {
				own := recSubscriptionEvents(t)
				topic := t.Topic()
				t.Publish("topic", topic, "data", "1")
				id := publish(t, topic)
				s := recOpen(t, w.request(t, recTo(topic), id))
				s.Want()
				recWantField(t, s.Response, append(own(), id)...)
				s.Want(t.Publish("topic", topic, "data", "live"))
			}, slices.Concat(w.needs, []suite.Feature{suite.History})...)))
		}
		newest("", func(t *suite.T, topic string) string { return t.Publish("topic", topic, "data", "2") })
		newest("private-", func(t *suite.T, topic string) string {
			return t.Publish("topic", topic, "data", "2", "private", "on")
		})
		newest("of-another-topic-", func(t *suite.T, topic string) string { return t.Publish("topic", topic+"/other", "data", "2") })
		newest("publishers-id-", func(t *suite.T, topic string) string {
			id := t.Unique("id")
			recOwnID(t, id, "topic", topic, "data", "2")
			return id
		})
	}
	return checks
}
