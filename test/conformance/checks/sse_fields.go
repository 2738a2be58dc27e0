package checks

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// sseWantField wants one field line of this name, with this value.
func sseWantField(t *suite.T, e wire.Event, name, value string) {
	if got := sseValues(e, name); !slices.Equal(got, []string{value}) {
		t.Fail("the event has the %s fields %+q, wanted one: %+q", name, got, value)
	}
	t.Observed("%s: %+q", name, value)
}

// sseWantDefaultType wants an event that reaches the default handler.
func sseWantDefaultType(t *suite.T, e wire.Event) {
	if e.Type != "" && e.Type != "message" {
		t.Fail("the event has the type %+q, wanted none", e.Type)
	}
	t.Observed("%d event fields", e.Count("event"))
}

// sseFields is SSE-05: id, type and retry arrive as they were given, and with no other update. That the id of the event
// is the one of the answer is known; a hub may have replaced the given one (PUB-25).
func sseFields() []suite.Check {
	check := func(name string, want map[string]string) suite.Check {
		return one("SSE-05", name, func(t *suite.T) {
			pairs := []string{"data", "x"}
			for _, field := range []string{"id", "type", "retry"} {
				if value, ok := want[field]; ok {
					pairs = append(pairs, field, value)
				}
			}
			sseWantProperties(t, sseGet(t, pairs...), want)
		})
	}
	return []suite.Check{
		check("type", map[string]string{"type": "greeting"}),
		check("type-with-colon", map[string]string{"type": "a: b:c"}),
		check("type-with-spaces", map[string]string{"type": "a b  c"}),
		check("type-trailing-space", map[string]string{"type": "greeting "}),
		check("type-non-ASCII", map[string]string{"type": "gr\u00fc\u00dfe \U0001F680"}),
		check("type-upper-case", map[string]string{"type": "GreeTing"}),
		check("type-message", map[string]string{"type": "message"}),
		check("type-like-a-field", map[string]string{"type": "data"}),
		check("retry", map[string]string{"retry": "1500"}),
		one("SSE-05", "id", func(t *suite.T) {
			id := "urn:x:" + t.Unique("id")
			sseWantProperties(t, sseGet(t, "data", "x", "id", id), map[string]string{"id": id})
		}),
		one("SSE-05", "all", func(t *suite.T) {
			id := t.Unique("id: a b \u00e9")
			want := map[string]string{"id": id, "type": "greeting", "retry": "2500"}
			sseWantProperties(t, sseGet(t, "data", "x", "id", id, "type", "greeting", "retry", "2500"), want)
		}),
		one("SSE-05", "any-order", func(t *suite.T) {
			topic, id := t.Topic(), t.Unique("id")
			s := t.ListenTo(topic)
			e := s.Want(t.Publish("retry", "2500", "type", "greeting", "data", "x", "topic", topic, "id", id))[0]
			sseWantProperties(t, e, map[string]string{"id": id, "type": "greeting", "retry": "2500"})
		}),
		one("SSE-05", "without-data", func(t *suite.T) {
			sseWantProperties(t, sseGet(t, "type", "greeting", "retry", "2500"), map[string]string{"type": "greeting", "retry": "2500"})
		}),
		one("SSE-05", "only-their-own-event", sseNothingCarriedOver),
		one("SSE-05", "replayed", func(t *suite.T) {
			id := t.Unique("id")
			e := sseReplayed(t, "data", "x", "id", id, "type", "greeting", "retry", "2500")
			sseWantProperties(t, e, map[string]string{"id": id, "type": "greeting", "retry": "2500"})
		}, suite.History),
	}
}

// sseWantProperties compares the properties with the field lines of an event.
func sseWantProperties(t *suite.T, e wire.Event, want map[string]string) {
	if id, ok := want["id"]; ok {
		if e.ID == id {
			sseWantField(t, e, "id", id)
		} else {
			t.Observed("the hub replaced the given id by %+q, which it may (PUB-25)", e.ID)
		}
	}
	if value, ok := want["type"]; ok {
		sseWantField(t, e, "event", value)
	}
	if value, ok := want["retry"]; ok {
		sseWantField(t, e, "retry", value)
	}
}

// sseNothingCarriedOver publishes an update with properties and one without.
func sseNothingCarriedOver(t *suite.T) {
	topic, retry := t.Topic(), "98761"
	s := t.ListenTo(topic)
	first := t.Publish("topic", topic, "data", "x", "type", "greeting", "retry", retry, "id", t.Unique("id"))
	events := s.Want(first, t.Publish("topic", topic, "data", "y"))
	sseWantDefaultType(t, events[1])
	if events[1].Retry == retry || events[1].ID == events[0].ID {
		t.Fail("an update without properties arrived with the retry %q and the id %+q of the one before", events[1].Retry, events[1].ID)
	}
}

// sseIDs is SSE-06. That ids are equal to the answers is what Want compares.
func sseIDs() []suite.Check {
	check := func(name string, pairs ...string) suite.Check {
		return one("SSE-06", name, func(t *suite.T) { sseWantID(t, sseGet(t, pairs...)) })
	}
	return []suite.Check{
		check("made-by-the-hub", "data", "x"),
		check("without-data"),
		check("private", "data", "x", "private", "on"),
		check("typed", "data", "x", "type", "greeting"),
		one("SSE-06", "empty-id", func(t *suite.T) {
			if e, taken := sseTry(t, "id="); taken {
				sseWantID(t, e)
			}
		}),
		one("SSE-06", "given", func(t *suite.T) { sseWantID(t, sseGet(t, "data", "x", "id", "urn:x:"+t.Unique("id"))) }),
		one("SSE-06", "given-non-ASCII", func(t *suite.T) { sseWantID(t, sseGet(t, "data", "x", "id", t.Unique("\u00e9 \U0001F680:"))) }),
		one("SSE-06", "alternates", func(t *suite.T) {
			sseWantID(t, sseGet(t, "topic", t.Topic(), "topic", t.Topic(), "data", "x"))
		}),
		one("SSE-06", "each-event", func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenTo(topic)
			ids := []string{t.Publish("topic", topic, "data", "x"), t.Publish("topic", topic), t.Publish("topic", topic, "data", "x")}
			for _, e := range s.Want(ids...) {
				sseWantID(t, e)
			}
			if ids[0] == ids[1] || ids[1] == ids[2] || ids[0] == ids[2] {
				t.Fail("the hub made the id %+q twice", ids[0])
			}
		}),
		one("SSE-06", "same-for-every-stream", func(t *suite.T) {
			topic := t.Topic()
			streams := []*suite.Stream{t.ListenTo(topic), t.ListenTo(topic), t.Listen(wire.Form("match_urlpattern", topic))}
			id := t.Publish("topic", topic, "data", "x")
			for _, s := range streams {
				sseWantID(t, s.Want(id)[0])
			}
		}),
		one("SSE-06", "replayed", func(t *suite.T) { sseWantID(t, sseReplayed(t, "data", "x")) }, suite.History),
	}
}

func sseWantID(t *suite.T, e wire.Event) {
	if e.Count("id") != 1 || e.ID == "" {
		t.Fail("the event has the id fields %+q, wanted one that is not empty", sseValues(e, "id"))
	}
}

// sseInjection is SSE-12: data that would be fields, if it were not split into lines.
func sseInjection() []suite.Check {
	texts := map[string]string{
		"LF":              "x\nevent: evil\nid: evil\n\ndata: y",
		"CR":              "x\revent: evil\rid: evil\r\rdata: y",
		"CRLF":            "x\r\nevent: evil\r\nid: evil\r\n\r\ndata: y",
		"mixed":           "x\n\revent: evil\r\n\nid: evil\r\r\ndata: y",
		"retry":           "x\nretry: 1\n\n",
		"comment":         "x\n:comment\n\n",
		"leading":         "\n\nid: evil\nevent: evil\ndata: y\n\n",
		"no-space":        "\nevent:evil\nid:evil\n\n",
		"names-only":      "\nid\nevent\ndata\n\n",
		"unicode-breaks":  "x\u2028id: evil\u2029event: evil\u0085id: evil\vid: evil\fid: evil",
		"hub-event":       "x\nevent: mercure\ndata: {\"type\":\"subscription\"}\n\n",
		"NUL-and-LF":      "x\x00\nid: evil\x00\nevent: evil\n\n",
		"chunk":           "x\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
		"after-much-text": strings.Repeat("x", 32<<10-1) + "\nevent: evil\nid: evil\n\n",
	}
	var checks []suite.Check
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		checks = append(checks, one("SSE-12", name, func(t *suite.T) { sseNotInjected(t, sseGet(t, "data", texts[name]), texts[name]) }))
	}
	return append(checks,
		one("SSE-12", "replayed", func(t *suite.T) {
			text := "x\nevent: evil\nid: evil\n\ndata: y\r\revent: evil"
			sseNotInjected(t, sseReplayed(t, "data", text), text)
		}, suite.History),
		one("SSE-12", "private", func(t *suite.T) {
			text := "x\nevent: evil\nid: evil\n\ndata: y"
			sseNotInjected(t, sseGet(t, "data", text, "private", "on"), text)
		}),
	)
}

// sseNotInjected wants the event to have its own id and no type, and the text as its data. That it is the only event
// is known.
func sseNotInjected(t *suite.T, e wire.Event, text string) {
	sseWantID(t, e)
	sseWantDefaultType(t, e)
	if e.Retry == "1" {
		t.Fail("the event has a retry field that stood in its data")
	}
	if len(e.Comments) > 0 {
		t.Fail("the event has the comment %+q, which stood in its data", e.Comments[0])
	}
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	sseWantData(t, e, sseText{lines: strings.Split(text, "\n")})
}

// sseSpaces is SSE-13: a receiver removes one space after the colon. A value that begins with one must be refused, or
// be written so that the space is still there.
func sseSpaces() []suite.Check {
	typed := func(name, form, want string) suite.Check {
		return one("SSE-13", name, func(t *suite.T) {
			e, taken := sseTry(t, form)
			if taken {
				sseWantField(t, e, "event", want)
			}
		})
	}
	// A hub may replace an id (PUB-25), but not by one that nobody may give, and which means something else.
	identified := func(name, id, never string) suite.Check {
		return one("SSE-13", name, func(t *suite.T) {
			e, taken := sseTry(t, "id="+id)
			if taken && e.ID == never {
				t.Fail("the id arrived as %+q", e.ID)
			}
			if taken {
				sseWantID(t, e)
				t.Observed("the id arrived as %+q", e.ID)
			}
		})
	}
	return []suite.Check{
		typed("type-mercure", "type=+mercure", " mercure"),
		typed("type-mercure-encoded", "type=%20mercure", " mercure"),
		typed("type-two-spaces-mercure", "type=++mercure", "  mercure"),
		typed("type-other", "type=+greeting", " greeting"),
		typed("type-space-only", "type=+", " "),
		identified("id-earliest", "+earliest", "earliest"),
		identified("id-hash", "+%23x", "#x"),
		one("SSE-13", "id-other", func(t *suite.T) {
			name := t.Unique("id")
			if e, taken := sseTry(t, "id=+"+name); taken {
				sseWantID(t, e)
				t.Observed("the id arrived as %+q", e.ID)
			}
		}),
	}
}

// sseTry publishes an update with these fields, which the hub may refuse with 400. If it takes the update, exactly one
// event must arrive, with the id of the answer; else none.
func sseTry(t *suite.T, fields string) (wire.Event, bool) {
	topic := t.Topic()
	s := t.ListenTo(topic)
	resp := t.Want(suite.Bearer(t.Post(wire.Form("topic", topic, "data", "x")+"&"+fields), t.PublishAll()), 200, 400)
	if resp.Status == 400 {
		s.Want()
		return wire.Event{}, false
	}
	return s.Want(resp.Body)[0], true
}

// sseDefaultType is SSE-14.
func sseDefaultType() []suite.Check {
	check := func(name string, pairs ...string) suite.Check {
		return one("SSE-14", name, func(t *suite.T) { sseWantDefaultType(t, sseGet(t, pairs...)) })
	}
	return []suite.Check{
		check("no-type", "data", "x"),
		check("no-type-private", "data", "x", "private", "on"),
		check("nothing-but-a-topic"),
		one("SSE-14", "empty-type", func(t *suite.T) {
			if e, taken := sseTry(t, "type="); taken {
				sseWantDefaultType(t, e)
			}
		}),
		one("SSE-14", "after-a-typed-one", func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenTo(topic)
			typed := t.Publish("topic", topic, "data", "x", "type", "greeting")
			sseWantDefaultType(t, s.Want(typed, t.Publish("topic", topic, "data", "y"))[1])
		}),
		one("SSE-14", "replayed", func(t *suite.T) { sseWantDefaultType(t, sseReplayed(t, "data", "x")) }, suite.History),
	}
}

// sseRetry is SSE-18 and SSE-19.
func sseRetry() []suite.Check {
	given := func(name, retry string) suite.Check {
		return one("SSE-19", name, func(t *suite.T) {
			e := sseGet(t, "data", "x", "retry", retry)
			values := sseValues(e, "retry")
			if len(values) != 1 || !sseDigits(values[0]) || sseNumber(values[0]) != sseNumber(retry) {
				t.Fail("the event has the retry fields %+q, wanted one: %s", values, retry)
			}
			t.Observed("retry: %s", values[0])
		})
	}
	return []suite.Check{
		one("SSE-18", "at-the-start", sseRetryAtStart),
		one("SSE-19", "none", func(t *suite.T) { sseWantValidRetry(t, sseGet(t, "data", "x")) }),
		one("SSE-19", "none-with-type-and-id", func(t *suite.T) {
			sseWantValidRetry(t, sseGet(t, "data", "x", "type", "greeting", "id", t.Unique("id")))
		}),
		one("SSE-19", "empty", func(t *suite.T) {
			if e, taken := sseTry(t, "retry="); taken {
				sseWantValidRetry(t, e)
			}
		}),
		given("1500", "1500"),
		given("zero", "0"),
		given("leading-zeros", "007"),
		given("beyond-32-bits", "4294967297"),
	}
}

// sseWantValidRetry wants no retry field, or one that a receiver obeys: a hub may set the reconnection time itself.
func sseWantValidRetry(t *suite.T, e wire.Event) {
	for _, value := range sseValues(e, "retry") {
		if !sseDigits(value) {
			t.Fail("the event has the retry field %+q, which is no number", value)
		}
	}
	t.Observed("%d retry fields", e.Count("retry"))
}

func sseDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// sseNumber is a number without leading zeros: as a receiver understands it.
func sseNumber(s string) string { return strings.TrimLeft(s, "0") }

// sseRetryAtStart reads what stands in the stream before the first event.
func sseRetryAtStart(t *suite.T) {
	topic := t.Topic()
	s := t.ListenTo(topic)
	id := t.Publish("topic", topic, "data", "x")
	end := time.Now().Add(t.Target().Patience)
	for {
		e, err := s.Block(time.Until(end))
		if err != nil {
			t.Fail("an event was expected: %v", err)
		}
		sseWantValidRetry(t, e)
		if e.HasID || e.Dispatched {
			if e.ID != id {
				t.Fail("the stream received %+q, wanted %+q", e.ID, id)
			}
			return
		}
		t.Observed("before the first event: retry %q", e.Retry)
	}
}
