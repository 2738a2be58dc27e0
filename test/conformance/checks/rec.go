package checks

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// recChecks are about ids, cursors and replay.
func recChecks() []suite.Check {
	return slices.Concat(
		recIDChecks(),
		recCursorChecks(),
		recPrecedenceChecks(),
		recReplayChecks(),
		recCursorKindChecks(),
		recMatcherChecks(),
		recAuthorizationChecks(),
		recAnonymousChecks(),
		recEarliestChecks(),
		recRepeatedChecks(),
		recFieldChecks(),
		recPrecedingChecks(),
		recUnknownChecks(),
		recNoCursorChecks(),
		recOddIDChecks(),
		recNewestChecks(),
		recAlternateChecks(),
	)
}

// recWay is a way to give the hub a cursor together with matchers.
type recWay struct {
	name    string
	needs   []suite.Feature
	request func(t *suite.T, query, cursor string) wire.Request
}

func recWays() []recWay {
	return []recWay{
		{"parameter", nil, func(t *suite.T, query, cursor string) wire.Request {
			return t.Get(query + "&last_event_id=" + wire.Escape(cursor))
		}},
		{"header", nil, func(t *suite.T, query, cursor string) wire.Request {
			return t.Get(query).With("Last-Event-ID", cursor)
		}},
		{"query-method", []suite.Feature{suite.QueryMethod}, func(t *suite.T, query, cursor string) wire.Request {
			return t.Query("", query+"&last_event_id="+wire.Escape(cursor))
		}},
	}
}

// recEachWay makes a check for each way to give a cursor.
func recEachWay(id, name string, run func(t *suite.T, w recWay), needs ...suite.Feature) []suite.Check {
	var checks []suite.Check
	for _, w := range recWays() {
		checks = append(checks, one(id, name+w.name, func(t *suite.T) { run(t, w) }, slices.Concat(w.needs, needs)...))
	}
	return checks
}

// recTo is the query for these topics.
func recTo(topics ...string) string {
	parts := make([]string, len(topics))
	for i, topic := range topics {
		parts[i] = "match=" + wire.Escape(topic)
	}
	return strings.Join(parts, "&")
}

// recPublish publishes n updates on a topic and gives their ids.
func recPublish(t *suite.T, topic string, n int) []string {
	ids, token := make([]string, n), t.PublishAll()
	for i := range ids {
		ids[i] = t.PublishWith(suite.Bearer(t.Post(wire.Form("topic", topic, "data", strconv.Itoa(i+1))), token))
	}
	return ids
}

// recOpen opens a stream with tok(subscribe *).
func recOpen(t *suite.T, r wire.Request) *suite.Stream {
	return t.ListenWith(suite.Bearer(r, t.SubscribeAll()))
}

// recField gives the Mercure-Last-Event-ID field, of which there must be one.
func recField(t *suite.T, resp *wire.Response) string {
	fields := resp.All("Mercure-Last-Event-ID")
	if len(fields) != 1 {
		t.Fail("the response has %d fields Mercure-Last-Event-ID, wanted 1", len(fields))
	}
	if fields[0] == "" {
		t.Fail("the field Mercure-Last-Event-ID is empty")
	}
	t.Observed("Mercure-Last-Event-ID: %+q", fields[0])
	return fields[0]
}

// recWantField says what the field must be: one of these.
func recWantField(t *suite.T, resp *wire.Response, wanted ...string) {
	if got := recField(t, resp); !slices.Contains(wanted, got) {
		t.Fail("Mercure-Last-Event-ID is %+q, wanted %+q", got, wanted)
	}
}

// recIDChecks look at the ids of events, whoever made them.
func recIDChecks() []suite.Check {
	has := func(t *suite.T, e wire.Event) {
		if e.Count("id") != 1 || e.ID == "" {
			t.Fail("the event has %d id fields, and the id %+q", e.Count("id"), e.ID)
		}
		t.Observed("id: %+q", e.ID)
	}
	iri := func(t *suite.T, id string) {
		if !recIRI(id) {
			t.Fail("the id %+q is neither an absolute IRI nor a fragment", id)
		}
		t.Observed("id: %+q", id)
	}
	// event waits for a hub-made event: the start of a subscription.
	event := func(t *suite.T) wire.Event {
		topic := t.Topic()
		watch := t.Open(suite.Bearer(t.Get("match_urlpattern="+t.Target().Path()+"/subscriptions/exact/"+wire.Escape(wire.Escape(topic))+"/:s"), t.SubscribeAll()))
		t.Open(suite.Bearer(t.Get(recTo(topic)), t.SubscribeAll()))
		return watch.Next()
	}
	published := func(t *suite.T, pairs ...string) wire.Event {
		topic := t.Topic()
		s := t.ListenTo(topic)
		return s.Want(t.Publish(append([]string{"topic", topic}, pairs...)...))[0]
	}
	return []suite.Check{
		one("REC-01", "hub-made-id", func(t *suite.T) { has(t, published(t, "data", "x")) }),
		one("REC-01", "publishers-id", func(t *suite.T) { has(t, published(t, "data", "x", "id", t.Unique("id"))) }),
		one("REC-01", "without-data", func(t *suite.T) { has(t, published(t)) }),
		one("REC-01", "private", func(t *suite.T) { has(t, published(t, "data", "x", "private", "on")) }),
		one("REC-01", "empty-id", func(t *suite.T) {
			// Whether an empty id is one is left open, but the event needs one.
			topic := t.Topic()
			s := t.ListenTo(topic)
			resp := t.Do(suite.Bearer(t.Post(wire.Form("topic", topic, "data", "x", "id", "")), t.PublishAll()))
			if resp.Status != 200 {
				t.Skip("an empty id is refused with %d, as it may be: no event was made that could lack an id", resp.Status)
			}
			for _, e := range s.Events() {
				has(t, e)
			}
		}),
		one("REC-01", "replayed", func(t *suite.T) {
			topic := t.Topic()
			ids := recPublish(t, topic, 3)
			for _, e := range recOpen(t, t.Get(recTo(topic)+"&last_event_id="+wire.Escape(ids[0]))).Events() {
				has(t, e)
			}
		}, suite.History),
		one("REC-01", "subscription-event", func(t *suite.T) { has(t, event(t)) }, suite.Subscriptions),
		one("REC-02", "hub-made-id", func(t *suite.T) { iri(t, t.Publish("topic", t.Topic(), "data", "x")) }),
		one("REC-02", "subscription-event", func(t *suite.T) { iri(t, event(t).ID) }, suite.Subscriptions),
	}
}

// recIRI says whether a text is an absolute IRI or a fragment, as far as its characters tell (RFC 3987 section 2.2).
func recIRI(s string) bool {
	if s == "" || strings.ContainsAny(s, " \"<>\\^`{|}") {
		return false
	}
	for _, c := range s {
		if c < 0x20 || c >= 0x7F && c < 0xA0 {
			return false
		}
	}
	if rest, ok := strings.CutPrefix(s, "#"); ok {
		return !strings.Contains(rest, "#")
	}
	u, err := url.Parse(s)
	return err == nil && u.Scheme != "" && (u.Opaque != "" || u.Host != "" || u.Path != "")
}

// recCursorChecks give the hub a cursor in the places where it must look for one. REC-07 and the rows after it say what
// follows from it.
func recCursorChecks() []suite.Check {
	replays := func(name string, request func(t *suite.T, topic, cursor string) wire.Request) suite.Check {
		return one("REC-05", name, func(t *suite.T) {
			topic := t.Topic()
			ids := recPublish(t, topic, 3)
			recOpen(t, request(t, topic, ids[0])).Want(ids[1], ids[2])
		}, suite.History)
	}
	return []suite.Check{
		replays("last_event_id", func(t *suite.T, topic, cursor string) wire.Request {
			return t.Get(recTo(topic) + "&last_event_id=" + wire.Escape(cursor))
		}),
		replays("before-the-matchers", func(t *suite.T, topic, cursor string) wire.Request {
			return t.Get("last_event_id=" + wire.Escape(cursor) + "&" + recTo(topic))
		}),
		replays("encoded-name", func(t *suite.T, topic, cursor string) wire.Request {
			return t.Get(recTo(topic) + "&last%5Fevent%5f%69d=" + wire.Escape(cursor))
		}),
		replays("unescaped-value", func(t *suite.T, topic, cursor string) wire.Request {
			if strings.ContainsAny(cursor, "&+%#; ") {
				t.Skip("the hub's ids need escaping, as %+q does: unescaped it is another value", cursor)
			}
			return t.Get(recTo(topic) + "&last_event_id=" + cursor)
		}),
	}
}

// recPrecedenceChecks give two cursors, of which the one in the header field counts.
func recPrecedenceChecks() []suite.Check {
	both := func(t *suite.T, topic, header, parameter string) *suite.Stream {
		return recOpen(t, t.Get(recTo(topic)+"&last_event_id="+wire.Escape(parameter)).With("Last-Event-ID", header))
	}
	return []suite.Check{
		one("REC-06", "older-in-header", func(t *suite.T) {
			topic := t.Topic()
			ids := recPublish(t, topic, 4)
			both(t, topic, ids[0], ids[2]).Want(ids[1:]...)
		}, suite.History),
		one("REC-06", "newer-in-header", func(t *suite.T) {
			topic := t.Topic()
			ids := recPublish(t, topic, 4)
			both(t, topic, ids[2], ids[0]).Want(ids[3])
		}, suite.History),
		one("REC-06", "earliest-in-parameter", func(t *suite.T) {
			topic := t.Topic()
			ids := recPublish(t, topic, 3)
			both(t, topic, ids[1], "earliest").Want(ids[2])
		}, suite.History),
		// The field of the response tells which cursor counted: an unknown one is no reason to take the other.
		one("REC-06", "unknown-in-header", func(t *suite.T) {
			topic := t.Topic()
			ids := recPublish(t, topic, 3)
			recWantField(t, both(t, topic, "urn:x-unknown:"+t.Unique("id"), ids[0]).Response, "earliest")
		}, suite.History),
		one("REC-06", "lower-case-field-name", func(t *suite.T) {
			topic := t.Topic()
			ids := recPublish(t, topic, 4)
			recOpen(t, t.Get(recTo(topic)+"&last_event_id="+wire.Escape(ids[0])).With("last-event-id", ids[2])).Want(ids[3])
		}, suite.History),
	}
}
