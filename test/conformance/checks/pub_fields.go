package checks

import (
	"fmt"
	"slices"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

func pubPrivate() []suite.Check {
	private := func(t *suite.T, topic, form string) {
		authorised, other := t.ListenTo(topic), stranger(t, topic)
		id := t.PublishForm(form)
		other.Want()
		authorised.Want(id)
	}
	checks := pubEach("PUB-15", []pubCase{
		{"name-alone", "private"},
		{"empty", "private="},
		{"on", "private=on"},
		{"0", "private=0"},
		{"false", "private=false"},
		{"off", "private=off"},
		{"no", "private=no"},
		{"null", "private=null"},
		{"spaces", "private=++"},
		{"U+0000", "private=%00"},
	}, func(t *suite.T, field string) {
		topic := t.Topic()
		private(t, topic, pubForm(topic, "data=x&"+field))
	})
	return append(checks,
		one("PUB-15", "in-front", func(t *suite.T) {
			topic := t.Topic()
			private(t, topic, "private&"+pubForm(topic, "data=x"))
		}),
		one("PUB-15", "with-alternates", func(t *suite.T) {
			topic := t.Topic()
			private(t, topic, wire.Form("topic", t.Topic(), "private", "off", "topic", topic, "data", "x"))
		}),
	)
}

// pubRepeated publishes a field twice, once with a value that is refused alone. Which of the two counts is left open, and
// refusing both is fine; but what arrives must not have the bad one.
func pubRepeated(id, field, good, bad string, arrived func(e wire.Event) string) []suite.Check {
	never := func(first, second string) func(t *suite.T) {
		return func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenTo(topic)
			resp := t.Do(pubPost(t, wire.Form("topic", topic, "data", "x", field, first, field, second)))
			if resp.Status >= 500 {
				t.Fail("answered %d", resp.Status)
			}
			t.Observed("answered %d", resp.Status)
			for _, e := range s.Events() {
				if arrived(e) == bad {
					t.Fail("an event with the %s %q arrived", field, bad)
				}
			}
		}
	}
	return []suite.Check{
		one(id, "second-of-two", never(good, bad)),
		one(id, "first-of-two", never(bad, good)),
	}
}

// pubNames has field names in another case, which are fields that no hub knows.
func pubNames() []suite.Check {
	seen := func(name, field string, look func(t *suite.T, e wire.Event)) suite.Check {
		return one("PUB-18", name, func(t *suite.T) { look(t, pubArrives(t, field)) })
	}
	public := func(name, field string) suite.Check {
		return one("PUB-18", name, func(t *suite.T) {
			topic := t.Topic()
			s := stranger(t, topic)
			s.Want(t.PublishForm(pubForm(topic, field)))
		})
	}
	return []suite.Check{
		public("Private", "Private=on"),
		public("PRIVATE", "PRIVATE=on"),
		seen("Data", "Data=x", func(t *suite.T, e wire.Event) {
			if e.Data != "" {
				t.Fail("Data=x became the data")
			}
		}),
		seen("ID", "ID=urn%3Ax%3Aupper-case", func(t *suite.T, e wire.Event) {
			if e.ID == "urn:x:upper-case" {
				t.Fail("ID became the id")
			}
		}),
		seen("Type", "Type=t", func(t *suite.T, e wire.Event) {
			if e.Type == "t" {
				t.Fail("Type became the type")
			}
		}),
		seen("Retry", "Retry=4321", func(t *suite.T, e wire.Event) {
			if e.Retry == "4321" {
				t.Fail("Retry became the retry")
			}
		}),
		one("PUB-18", "Topic", func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenTo(topic)
			t.PublishForm(wire.Form("topic", t.Topic(), "Topic", topic, "data", "x"))
			s.Want()
		}),
	}
}

// pubForbidden are values of an id or a type with a character that neither may contain: C0, DEL, C1 and Cf, inside and at
// the ends, where trimming would hide it.
func pubForbidden() []pubCase {
	var cases []pubCase
	for _, r := range []rune{
		0x0000, 0x0001, 0x0009, 0x000A, 0x000D, 0x001B, 0x001F, 0x007F, 0x0080, 0x0085, 0x009F,
		0x00AD, 0x0600, 0x061C, 0x180E, 0x200B, 0x200D, 0x200E, 0x202E, 0x2060, 0x2066, 0xFEFF, 0xFFF9,
		0x110BD, 0x1D173, 0xE0001, 0xE0041,
	} {
		cases = append(cases, pubCase{fmt.Sprintf("U+%04X", r), wire.Escape("a" + string(r) + "b")})
	}
	for _, r := range []rune{0x0009, 0x000A, 0x000D, 0x0000, 0x0085, 0x200B, 0xFEFF} {
		cases = append(cases,
			pubCase{fmt.Sprintf("leading-U+%04X", r), wire.Escape(string(r) + "a")},
			pubCase{fmt.Sprintf("trailing-U+%04X", r), wire.Escape("a" + string(r))})
	}
	return append(cases, pubCase{"U+000A-alone", "%0A"}, pubCase{"U+200B-alone", "%E2%80%8B"})
}

// pubField puts the name of a field in front of each text.
func pubField(field string, cases []pubCase) []pubCase {
	out := slices.Clone(cases)
	for i := range out {
		out[i].text = field + "=" + out[i].text
	}
	return out
}

func pubID() []suite.Check {
	refused, taken := pubWant(400), pubWant(200)
	return slices.Concat(
		pubEach("PUB-19", []pubCase{
			{"fragment", "id=%23x"}, {"number-sign-alone", "id=%23"}, {"unencoded", "id=#x"}, {"two", "id=%23%23"},
		}, refused),
		pubEach("PUB-19", []pubCase{{"inside-is-legal", "id=x%23y"}, {"at-the-end-is-legal", "id=urn%3Ax%3Ay%23"}}, taken),
		pubEach("PUB-20", []pubCase{{"earliest", "id=earliest"}, {"encoded", "id=e%61rliest"}}, refused),
		pubEach("PUB-20", []pubCase{
			{"Earliest-is-legal", "id=Earliest"},
			{"EARLIEST-is-legal", "id=EARLIEST"},
			{"earliest2-is-legal", "id=earliest2"},
			{"longer-is-legal", "id=the+earliest"},
		}, taken),
		pubRepeated("PUB-19", "id", "urn:x:y", "#x", func(e wire.Event) string { return e.ID }),
		pubRepeated("PUB-20", "id", "urn:x:y", "earliest", func(e wire.Event) string { return e.ID }),
		pubEach("PUB-21", pubField("id", pubForbidden()), refused),
		pubEach("PUB-22", pubField("id", []pubCase{
			{"UUID", "urn%3Auuid%3A5e94c686-2c0b-4f9b-958c-92ccc3bbb4eb"},
			{"DID", "did%3Aexample%3A1"},
			{"plain", "plain-1"},
			{"URL", "https%3A%2F%2Fexample.com%2Fr%3Fv%3D1%23f"},
			{"digits", "0"},
			{"inner-space", "a+b"},
			{"letters-beyond-ASCII", "%C3%A9%E4%B8%96"},
			{"emoji", "%F0%9F%98%80"},
			{"punctuation", "%22a%27%2Cb%5Cc%3C%3E%7B%7D"},
			{"percent", "a%25zz%2520"},
			{"colon-in-front", "%3Aa"},
			{"U+00A0", "a%C2%A0b"},
			{"U+2028", "a%E2%80%A8b"},
			{"mercure", "mercure"},
		}), taken),
		[]suite.Check{
			one("PUB-23", "generated", func(t *suite.T) {
				id := t.Publish("topic", t.Topic(), "data", "x")
				if !pubIRIOrFragment(id) {
					t.Fail("%+q is neither an absolute IRI nor a fragment", id)
				}
				t.Observed("%+q", id)
			}),
			one("PUB-23", "private", func(t *suite.T) {
				id := t.Publish("topic", t.Topic(), "data", "x", "private", "on")
				if !pubIRIOrFragment(id) {
					t.Fail("%+q is neither an absolute IRI nor a fragment", id)
				}
			}),
			one("PUB-25", "given", func(t *suite.T) {
				topic, given := t.Topic(), "urn:x:"+t.Unique("id")
				s := t.ListenTo(topic)
				id := t.Publish("topic", topic, "data", "x", "id", given)
				s.Want(id)
				if id == given {
					t.Observed("the publisher's id is kept")
				} else {
					t.Observed("the publisher's id is replaced")
				}
			}),
		},
	)
}

func pubType() []suite.Check {
	carried := func(t *suite.T, text string) {
		if e := pubArrives(t, wire.Form("type", text)); e.Type != text {
			t.Fail("type %q arrives as %q", text, e.Type)
		}
	}
	// Whether space is a part of the type or a reason to refuse it: what is dispatched is never of the type mercure.
	never := func(t *suite.T, fields string) {
		topic := t.Topic()
		s := t.ListenTo(topic)
		resp := t.Do(pubPost(t, pubForm(topic, fields)))
		if resp.Status >= 500 {
			t.Fail("answered %d", resp.Status)
		}
		t.Observed("answered %d", resp.Status)
		for _, e := range s.Events() {
			if e.Type == "mercure" {
				t.Fail("an event of type mercure arrived")
			}
		}
	}
	return slices.Concat(
		pubEach("PUB-26", pubField("type", pubForbidden()), pubWant(400)),
		pubEach("PUB-27", []pubCase{{"mercure", "type=mercure"}, {"encoded", "type=%6Dercure"}, {"private", "type=mercure&private=on"}}, func(t *suite.T, fields string) {
			topic := t.Topic()
			refusedQuietly(t, topic, pubPost(t, pubForm(topic, fields)), 400)
		}),
		pubEach("PUB-27", []pubCase{
			{"mercure2-is-legal", "mercure2"}, {"Mercure-is-legal", "Mercure"}, {"MERCURE-is-legal", "MERCURE"}, {"amercure-is-legal", "amercure"},
		}, carried),
		pubEach("PUB-27", []pubCase{
			{"leading-space", "type=+mercure"}, {"trailing-space", "type=mercure+"},
		}, never),
		pubRepeated("PUB-27", "type", "a", "mercure", func(e wire.Event) string { return e.Type }),
	)
}

func pubRetry() []suite.Check {
	return slices.Concat(
		pubEach("PUB-28", []pubCase{
			{"minus", "retry=-1"},
			{"plus", "retry=%2B1"},
			{"leading-space", "retry=+1"},
			{"trailing-space", "retry=1+"},
			{"inner-space", "retry=1+0"},
			{"fraction", "retry=1.5"},
			{"exponent", "retry=1e3"},
			{"hexadecimal", "retry=0x10"},
			{"hexadecimal-digits", "retry=ff"},
			{"underscore", "retry=1_000"},
			{"comma", "retry=1%2C000"},
			{"fullwidth-digit", "retry=%EF%BC%91"},
			{"arabic-digit", "retry=%D9%A3"},
			{"arabic-digit-after-ASCII", "retry=1%D9%A3"},
			{"superscript", "retry=%C2%B2"},
			{"letters", "retry=abc"},
			{"letters-after-digits", "retry=1500ms"},
			{"trailing-line-feed", "retry=1%0A"},
			{"trailing-U+0000", "retry=1%00"},
			{"trailing-U+200B", "retry=1%E2%80%8B"},
			{"not-UTF-8", "retry=1%FF"},
		}, pubWant(400)),
		pubEach("PUB-28", []pubCase{
			{"0-is-legal", "retry=0"}, {"007-is-legal", "retry=007"}, {"1500-is-legal", "retry=1500"}, {"all-digits-are-legal", "retry=987654321"},
		}, pubWant(200)),
		pubRepeated("PUB-28", "retry", "1", "abc", func(e wire.Event) string { return e.Retry }),
	)
}
