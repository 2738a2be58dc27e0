package checks

import (
	"fmt"
	"slices"
	"sync"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// recReplayChecks resume and look at what arrives: everything after the cursor, in order, then what is published next.
func recReplayChecks() []suite.Check {
	checks := recEachWay("REC-07", "", func(t *suite.T, w recWay) {
		topic := t.Topic()
		ids := recPublish(t, topic, 5)
		s := recOpen(t, w.request(t, recTo(topic), ids[1]))
		ids = append(ids, t.Publish("topic", topic, "data", "6"))
		s.Want(ids[2:]...)
	}, suite.History)
	for i := range checks {
		// What a hub loses next to the cursor must be an update of this check, not of another one.
		checks[i].Quiet = true
	}
	return append(checks,
		one("REC-07", "after-hanging-up", func(t *suite.T) {
			topic := t.Topic()
			first := t.ListenTo(topic)
			ids := recPublish(t, topic, 2)
			first.Want(ids...)
			first.Close()
			ids = append(ids, recPublish(t, topic, 3)...)
			second := recOpen(t, t.Get(recTo(topic)).With("Last-Event-ID", ids[1]))
			second.Want(ids[2:]...)
			second.Want(t.Publish("topic", topic, "data", "live"))
		}, suite.History),
		one("REC-07", "many", func(t *suite.T) {
			topic := t.Topic()
			ids := recPublish(t, topic, 150)
			s := recOpen(t, t.Get(recTo(topic)).With("Last-Event-ID", ids[0]))
			s.Want(ids[1:]...)
		}, suite.History),
		one("REC-07", "live-while-replaying", recWhileReplaying, suite.History),
		one("REC-07", "unchanged", recUnchanged, suite.History),
		one("REC-07", "two-resume-at-once", func(t *suite.T) {
			topic := t.Topic()
			ids := recPublish(t, topic, 4)
			a := recOpen(t, t.Get(recTo(topic)).With("Last-Event-ID", ids[0]))
			b := recOpen(t, t.Get(recTo(topic)).With("Last-Event-ID", ids[2]))
			live := t.Publish("topic", topic, "data", "live")
			a.Want(ids[1], ids[2], ids[3], live)
			b.Want(ids[3], live)
		}, suite.History),
	)
}

// recWhileReplaying opens streams while updates are published: where replay ends and the live events begin, nothing is
// lost and nothing comes twice.
func recWhileReplaying(t *suite.T) {
	const streams, before, during = 12, 40, 60
	topic := t.Topic()
	ids := recPublish(t, topic, before)
	r := suite.Bearer(t.Get(recTo(topic)).With("Last-Event-ID", ids[0]), t.SubscribeAll())
	type answer struct {
		resp *wire.Response
		err  error
	}
	answers := make(chan answer, streams)
	var wg sync.WaitGroup
	for range streams {
		wg.Go(func() {
			resp, err := t.Try(r)
			answers <- answer{resp, err}
		})
	}
	defer func() { // when the check fails on its way
		wg.Wait()
		close(answers)
		for a := range answers {
			if a.err == nil {
				a.resp.Close()
			}
		}
	}()
	ids = append(ids, recPublish(t, topic, during)...)
	for range streams {
		a := <-answers
		if a.err != nil {
			t.Fail("GET with a cursor: no answer: %v", a.err)
		}
		if a.resp.Stream == nil {
			t.Fail("GET with a cursor: answered %d, wanted an event stream", a.resp.Status)
		}
		s := t.Attach(a.resp)
		for i, id := range ids[1:] {
			if e := s.Next(); e.ID != id {
				t.Fail("event %d after the cursor is %+q, wanted %+q", i+1, e.ID, id)
			}
		}
	}
	t.Observed("%d streams received all %d updates after the cursor", streams, len(ids)-1)
}

// recUnchanged compares what is replayed with what was sent live.
func recUnchanged(t *suite.T) {
	topic := t.Topic()
	live := t.ListenTo(topic)
	start := t.Publish("topic", topic, "data", "start")
	for _, pairs := range [][]string{
		{"data", "plain"},
		{"data", "with type", "type", "a type"},
		{"data", "with retry", "retry", "1500"},
		{"data", "a\nb\r\nc\rd\n"},
		{"data", " é\u2028\U0001F600"},
		{"data", ""},
		{},
		{"data", "private", "private", "on", "type", "b"},
		{"data", "alternate", "topic", topic + "/alternate", "id", t.Unique("id")},
	} {
		t.Publish(append([]string{"topic", topic}, pairs...)...)
	}
	sent := live.Events()[1:]
	replayed := recOpen(t, t.Get(recTo(topic)).With("Last-Event-ID", start)).Events()
	if len(sent) != len(replayed) {
		t.Fail("%d events were sent live, %d replayed", len(sent), len(replayed))
	}
	for i, e := range sent {
		r := replayed[i]
		if e.ID != r.ID || e.Type != r.Type || e.Data != r.Data || e.Retry != r.Retry || e.Dispatched != r.Dispatched {
			t.Fail("event %d is not replayed as it was sent: id %+q and %+q, type %+q and %+q, retry %q and %q, data %+q and %+q",
				i+1, e.ID, r.ID, e.Type, r.Type, e.Retry, r.Retry, e.Data, r.Data)
		}
	}
}

// recCursorKindChecks resume after events that the subscriber does not select, or may not read: cursors belong to the
// sequence of all updates of the hub.
func recCursorKindChecks() []suite.Check {
	after := func(name string, cursor func(t *suite.T, topic string) string) suite.Check {
		return one("REC-07", name, func(t *suite.T) {
			topic := t.Topic()
			recPublish(t, topic, 2)
			id := cursor(t, topic)
			ids := recPublish(t, topic, 2)
			s := t.ListenWith(suite.Bearer(t.Get(recTo(topic)).With("Last-Event-ID", id), t.SubscribeToken(suite.CanSubscribe(suite.Exact(topic)))))
			s.Want(ids...)
		}, suite.History)
	}
	return []suite.Check{
		after("cursor-of-another-topic", func(t *suite.T, topic string) string { return t.Publish("topic", topic+"/other", "data", "x") }),
		after("cursor-of-a-private-update", func(t *suite.T, topic string) string {
			return t.Publish("topic", topic+"/other", "data", "x", "private", "on")
		}),
		after("cursor-of-an-alternate", func(t *suite.T, topic string) string {
			return t.Publish("topic", topic+"/other", "topic", topic, "data", "x")
		}),
		after("publishers-id", func(t *suite.T, topic string) string {
			return t.Publish("topic", topic, "data", "x", "id", t.Unique("id"))
		}),
	}
}

// recMatcherChecks replay to streams that select a part of what was published.
func recMatcherChecks() []suite.Check {
	// selects publishes on /a/1, /b/1, /a/2, /b/2 of a folder and says which of them, by index, the query selects.
	selects := func(name, query string, wanted ...int) suite.Check {
		return one("REC-08", name, func(t *suite.T) {
			folder, mark := t.Folder(), t.Unique("mark")
			start := t.Publish("topic", folder+"/a/1", "data", mark)
			var ids []string
			for _, topic := range []string{"/a/1", "/b/1", "/a/2", "/b/2"} {
				ids = append(ids, t.Publish("topic", folder+topic, "data", mark))
			}
			s := recOpen(t, t.Get(privIn(folder, query)[0]).With("Last-Event-ID", start))
			expected := make([]string, len(wanted))
			for i, w := range wanted {
				expected[i] = ids[w]
			}
			s.WantOwn(mark, expected...)
		}, suite.History)
	}
	return []suite.Check{
		selects("match", "match={}/a/1", 0),
		selects("match_exact", "match_exact={}/b/2", 3),
		selects("two-matchers", "match={}/a/1&match={}/b/2", 0, 3),
		selects("match_urlpattern", "match_urlpattern={}/a/:id", 0, 2),
		selects("mixed-types", "match_urlpattern={}/a/:id&match={}/b/1", 0, 1, 2),
		selects("everything", "match=*", 0, 1, 2, 3),
		selects("nothing-of-it", "match={}/c"),
		selects("other-case", "match={}/A/1"),
		one("REC-08", "other-matchers-than-before", func(t *suite.T) {
			folder := t.Folder()
			first := t.ListenTo(folder + "/a")
			a := recPublish(t, folder+"/a", 2)
			first.Want(a...)
			first.Close()
			b := recPublish(t, folder+"/b", 2)
			recPublish(t, folder+"/a", 2)
			recOpen(t, t.Get(recTo(folder+"/b")).With("Last-Event-ID", a[0])).Want(b...)
		}, suite.History),
		one("REC-08", "earliest", func(t *suite.T) {
			folder := t.Folder()
			recPublish(t, folder+"/a", 2)
			s := recOpen(t, t.Get(recTo(folder+"/b")).With("Last-Event-ID", "earliest"))
			s.Want()
		}, suite.History),
	}
}

// recEarliestChecks ask for everything that is kept. A hub may choose not to hear this, but then it replays nothing.
func recEarliestChecks() []suite.Check {
	checks := recEachWay("REC-11", "", func(t *suite.T, w recWay) {
		topic := t.Topic()
		ids := recPublish(t, topic, 5)
		recAllOrNone(t, recOpen(t, w.request(t, recTo(topic), "earliest")), ids)
	}, suite.History)
	return append(checks,
		one("REC-11", "two-matchers", func(t *suite.T) {
			folder := t.Folder()
			var ids []string
			for i := range 6 {
				ids = append(ids, t.Publish("topic", fmt.Sprint(folder, "/", i%2), "data", "x"))
				t.Publish("topic", folder+"/other", "data", "x")
			}
			recAllOrNone(t, recOpen(t, t.Get(recTo(folder+"/0", folder+"/1")+"&last_event_id=earliest")), ids)
		}, suite.History),
		one("REC-11", "urlpattern", func(t *suite.T) {
			folder := t.Folder()
			ids := append(recPublish(t, folder+"/1", 2), recPublish(t, folder+"/2", 2)...)
			recAllOrNone(t, recOpen(t, t.Get("match_urlpattern="+folder+"/:id&last_event_id=earliest")), ids)
		}, suite.History),
		one("REC-11", "then-live", func(t *suite.T) {
			topic := t.Topic()
			ids := recPublish(t, topic, 3)
			s := recOpen(t, t.Get(recTo(topic)+"&last_event_id=earliest"))
			recAllOrNone(t, s, ids)
			s.Want(t.Publish("topic", topic, "data", "live"))
		}, suite.History),
		// What arrives is the history of the topic from its first update on, with nothing left out on the way.
		one("REC-11", "many", func(t *suite.T) {
			topic := t.Topic()
			recAllOrNone(t, recOpen(t, t.Get(recTo(topic)+"&last_event_id=earliest")), nil)
			ids := recPublish(t, topic, 100)
			recAllOrNone(t, recOpen(t, t.Get(recTo(topic)+"&last_event_id=earliest")), ids)
		}, suite.History),
		one("REC-11", "nothing-kept", func(t *suite.T) {
			topic := t.Topic()
			s := recOpen(t, t.Get(recTo(topic)+"&last_event_id=earliest"))
			s.Want(t.Publish("topic", topic, "data", "first"))
		}),
	)
}

// recAllOrNone says that all of these arrived, or those from one of them on, or that the hub ignores the request: it asks for
// all that the hub has, and a hub may discard events (REC-13).
func recAllOrNone(t *suite.T, s *suite.Stream, ids []string) {
	var got []string
	for _, e := range s.Events() {
		got = append(got, e.ID)
	}
	switch {
	case len(got) == 0:
		t.Observed("the hub ignores earliest, as it may")
	case len(got) <= len(ids) && slices.Equal(got, ids[len(ids)-len(got):]):
		t.Observed("replayed the last %d of %d events", len(got), len(ids))
	default:
		t.Fail("replayed %d of %d events, or others: %+q, wanted %+q", len(got), len(ids), got, ids)
	}
}

// recRepeatedChecks use ids more than once. Each case is a sequence of ids; updates on the other topic are in brackets.
func recRepeatedChecks() []suite.Check {
	type update struct {
		id    string
		other bool // on a topic that the stream does not select
	}
	on := func(ids ...string) (updates []update) {
		for _, id := range ids {
			updates = append(updates, update{id: id})
		}
		return updates
	}
	repeated := func(name string, w recWay, updates []update, cursor string, wanted ...string) suite.Check {
		return one("REC-12", name+"-"+w.name, func(t *suite.T) {
			topic, prefix := t.Topic(), t.Unique("id")
			for _, u := range updates {
				on := topic
				if u.other {
					on = topic + "/other"
				}
				recOwnID(t, prefix+u.id, "topic", on, "data", "x")
			}
			expected := make([]string, len(wanted))
			for i, id := range wanted {
				expected[i] = prefix + id
			}
			recOpen(t, w.request(t, recTo(topic), prefix+cursor)).Want(expected...)
		}, slices.Concat(w.needs, []suite.Feature{suite.History})...)
	}
	var checks []suite.Check
	for _, w := range recWays() {
		checks = append(checks,
			repeated("after-the-repeated-one", w, on("x", "y", "x", "z"), "x", "y", "x", "z"),
			repeated("after-one-between", w, on("x", "y", "x", "z"), "y", "x", "z"),
			repeated("after-the-last", w, on("x", "y", "x", "z"), "z"),
			repeated("three-times", w, on("x", "x", "y", "x"), "x", "x", "y", "x"),
			repeated("first-on-another-topic", w, []update{{"x", true}, {"y", false}, {"x", false}, {"z", false}}, "x", "y", "x", "z"),
			repeated("again-on-another-topic", w, []update{{"x", false}, {"y", false}, {"x", true}, {"z", false}}, "x", "y", "z"),
		)
	}
	return checks
}

// recOwnID publishes with an id of the publisher's own; the check is skipped when the hub makes its own, as it may.
func recOwnID(t *suite.T, id string, pairs ...string) {
	if got := t.PublishForm(wire.Form(append(pairs, "id", id)...)); got != id {
		t.Skip("the hub ignores the publisher's ids: %+q became %+q", id, got)
	}
}

// recAlternateChecks replay updates with several topics.
func recAlternateChecks() []suite.Check {
	replays := func(name string, query func(folder string) string) suite.Check {
		return one("REC-27", name, func(t *suite.T) {
			folder := t.Folder()
			start := t.Publish("topic", folder+"/a", "topic", folder+"/b", "data", "x")
			id := t.Publish("topic", folder+"/a", "topic", folder+"/b", "data", "x")
			last := t.Publish("topic", folder+"/b", "topic", folder+"/a", "topic", folder+"/c", "data", "x")
			recOpen(t, t.Get(query(folder)).With("Last-Event-ID", start)).Want(id, last)
		}, suite.History)
	}
	return []suite.Check{
		replays("both", func(folder string) string { return recTo(folder+"/a", folder+"/b") }),
		replays("canonical", func(folder string) string { return recTo(folder + "/a") }),
		replays("alternate", func(folder string) string { return recTo(folder + "/b") }),
		replays("pattern-on-both", func(folder string) string { return "match_urlpattern=" + folder + "/:x" }),
		replays("pattern-on-the-alternate", func(folder string) string { return "match_urlpattern=" + folder + "/b" }),
		replays("pattern-and-exact", func(folder string) string { return "match_urlpattern=" + folder + "/:x&" + recTo(folder+"/a") }),
		one("REC-27", "earliest", func(t *suite.T) {
			folder := t.Folder()
			id := t.Publish("topic", folder+"/a", "topic", folder+"/b", "data", "x")
			recAllOrNone(t, recOpen(t, t.Get(recTo(folder+"/a", folder+"/b")+"&last_event_id=earliest")), []string{id})
		}, suite.History),
	}
}
