package checks

import (
	"slices"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// topicChecks are about topic strings as publishers give them.
func topicChecks() []suite.Check {
	return slices.Concat(
		topicUTF8Checks(),
		topicForbiddenChecks("TOPIC-02", topicC0(), topicOtherControls(0x00, 0x1F, topicC0())),
		topicForbiddenChecks("TOPIC-03", topicC1(), topicOtherControls(0x80, 0x9F, topicC1())),
		topicForbiddenChecks("TOPIC-04", []rune{0x7F}, nil),
		topicForbiddenChecks("TOPIC-05", topicFormats(), topicOtherFormats()),
		topicEdgeChecks(),
		topicLegalChecks(),
		topicEveryValueChecks(),
		topicPlainChecks(),
	)
}

// topicUTF8Checks listen to everything while they publish: however a hub repairs the octets, it must not dispatch.
func topicUTF8Checks() []suite.Check {
	var checks []suite.Check
	refused := func(name, octets string) {
		checks = append(checks, one("TOPIC-01", name, func(t *suite.T) {
			s := t.Listen("match=*")
			mark := t.Unique("mark")
			form := "topic=" + t.Unique("t") + octets + "&data=" + mark
			t.Want(suite.Bearer(t.Post(form), t.PublishAll()), 400)
			s.WantOwn(mark)
		}))
	}
	for _, o := range topicNotUTF8() {
		refused(o.name, o.encoded)
	}
	// Nobody must percent-encode what is no delimiter; the octets are the same.
	refused("raw-FF", "\xFF")
	refused("raw-C3", "\xC3")
	return checks
}

// topicForbiddenChecks have a check for each named character, in a topic that is a URL and in one that is not: a URL
// parser drops some of them before a rule behind it can see them. The others are swept.
func topicForbiddenChecks(id string, named, others []rune) []suite.Check {
	var checks []suite.Check
	for _, c := range named {
		checks = append(checks, one(id, topicPoint(c), func(t *suite.T) {
			t.Want(topicPost(t, "x", "a"+string(c)+t.Unique("b")), 400)
			t.Want(topicPost(t, "x", t.Topic()+"/a"+string(c)+"b"), 400)
		}))
	}
	if len(others) > 0 {
		sweep := one(id, "all-others", func(t *suite.T) {
			topicSweep(t, others, func(c rune) wire.Request { return topicPost(t, "x", t.Topic()+"/a"+string(c)+"b") })
		})
		sweep.Time = 4 * time.Minute // hundreds of requests
		checks = append(checks, sweep)
	}
	return checks
}

// topicEdgeChecks have characters where trimming, URL parsing or removing a byte order mark would lose them.
func topicEdgeChecks() []suite.Check {
	var checks []suite.Check
	edges := []struct {
		id string
		c  rune
	}{
		{"TOPIC-02", 0x00},
		{"TOPIC-02", 0x09},
		{"TOPIC-02", 0x0A},
		{"TOPIC-02", 0x0D},
		{"TOPIC-02", 0x1F},
		{"TOPIC-03", 0x85},
		{"TOPIC-04", 0x7F},
		{"TOPIC-05", 0xFEFF},
		{"TOPIC-05", 0x200B},
	}
	for _, e := range edges {
		checks = append(checks,
			one(e.id, "leading-"+topicPoint(e.c), func(t *suite.T) {
				t.Want(topicPost(t, "x", string(e.c)+t.Topic()), 400)
				t.Want(topicPost(t, "x", string(e.c)+t.Unique("a")), 400)
			}),
			one(e.id, "trailing-"+topicPoint(e.c), func(t *suite.T) {
				t.Want(topicPost(t, "x", t.Topic()+string(e.c)), 400)
				t.Want(topicPost(t, "x", t.Unique("a")+string(e.c)), 400)
			}),
		)
	}
	everywhere := func(id, name, encoded string) {
		checks = append(checks, one(id, name, func(t *suite.T) {
			topicEverywhere(t, encoded, func(topic string) wire.Request {
				return suite.Bearer(t.Post("data=x&topic="+topic), t.PublishAll())
			})
		}))
	}
	everywhere("TOPIC-01", "FF-in-every-place", "%FF")
	everywhere("TOPIC-02", "U+001F-in-every-place", "%1F")
	everywhere("TOPIC-03", "U+0085-in-every-place", "%C2%85")
	everywhere("TOPIC-04", "U+007F-in-every-place", "%7F")
	everywhere("TOPIC-05", "U+200B-in-every-place", "%E2%80%8B")
	raw := func(id string, c rune) {
		checks = append(checks, one(id, "raw-"+topicPoint(c), func(t *suite.T) {
			t.Want(suite.Bearer(t.Post("topic="+t.Unique("a")+string(c)+"b&data=x"), t.PublishAll()), 400)
		}))
	}
	raw("TOPIC-02", 0x01)
	raw("TOPIC-02", 0x0A)
	raw("TOPIC-03", 0x85)
	raw("TOPIC-04", 0x7F)
	raw("TOPIC-05", 0x200B)
	return checks
}

// topicLegalChecks have characters that look as odd as the forbidden ones and are not: the named ones, then neighbours
// of forbidden ranges and what a hub may use for itself (U+FFFD is what octets that are not UTF-8 decode to).
func topicLegalChecks() []suite.Check {
	points := []rune{
		0xA0, 0x2028, 0x2029, 0x3000, 0xFE0F,
		0x301, 0x34F, // combining
		0x378, 0x2065, 0xFFFE, 0x10FFFF, // unassigned
		0xE000, 0x10FFFD, // private use
		0x1F600,                                                           // emoji
		0x20, 0x7E, 0xA1, 0x200A, 0x2010, 0x202F, 0xFFFC, 0xFFFD, 0xE0100, // neighbours and look-alikes
		0x115F, 0x3164, 0x180B, 0x17B4, // invisible, of other categories
	}
	checks := make([]suite.Check, 0, len(points)+1)
	for _, c := range points {
		checks = append(checks, one("TOPIC-06", topicPoint(c), func(t *suite.T) {
			middle := t.Unique("t")
			topic := string(c) + middle + string(c) + "b" + string(c)
			s := t.ListenTo(topic)
			// A hub that drops or trims the character takes these for the same.
			t.Publish("topic", middle+"b", "data", "x")
			t.Publish("topic", middle+string(c)+"b", "data", "x")
			s.Want(t.Publish("topic", topic, "data", "x"))
		}))
	}
	return append(checks, one("TOPIC-06", "ASCII", func(t *suite.T) {
		topic := t.Unique("t") + "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
		s := t.ListenTo(topic)
		s.Want(t.Publish("topic", topic, "data", "x"))
	}))
}

// topicEveryValueChecks have one bad topic among good ones.
func topicEveryValueChecks() []suite.Check {
	bad := []struct{ name, encoded string }{
		{"U+200B", "%E2%80%8B"}, {"U+0000", "%00"}, {"U+000A", "%0A"}, {"U+007F", "%7F"}, {"U+0085", "%C2%85"}, {"FF", "%FF"},
	}
	places := []struct {
		name          string
		before, after int // good topics
	}{{"alternate", 1, 0}, {"canonical", 0, 1}, {"between", 1, 1}, {"last-of-five", 4, 0}}
	var checks []suite.Check
	for _, b := range bad {
		for _, p := range places {
			checks = append(checks, one("TOPIC-08", p.name+"-"+b.name, func(t *suite.T) {
				form, query := []string{"data=x"}, []string{}
				for i := range p.before + p.after + 1 {
					if i == p.before {
						form = append(form, "topic="+t.Unique("t")+b.encoded)
						continue
					}
					good := wire.Escape(t.Topic())
					form, query = append(form, "topic="+good), append(query, "match="+good)
				}
				s := t.Listen(strings.Join(query, "&"))
				t.Want(suite.Bearer(t.Post(strings.Join(form, "&")), t.PublishAll()), 400)
				s.Want()
			}))
		}
	}
	return append(checks, one("TOPIC-08", "nothing-kept", func(t *suite.T) {
		good := t.Topic()
		cursor := t.Publish("topic", t.Topic(), "data", "x")
		t.Want(topicPost(t, "x", good, t.Topic()+"\u200B"), 400)
		t.Want(topicPost(t, "x", t.Topic()+"\u200B", good), 400)
		s := t.Listen("match=" + wire.Escape(good) + "&last_event_id=" + wire.Escape(cursor))
		s.Want()
	}, suite.History))
}

// topicPlainChecks have topics that are no IRIs.
func topicPlainChecks() []suite.Check {
	topics := []struct{ name, before, after string }{
		{"plain-words", "plain words ", ""},
		{"one-word", "", ""},
		{"number", "7", ""},
		{"spaces-around", " ", " "},
		{"stray-percent", "100% ", " %zz %"},
		{"angle-brackets", "<", ">"},
		{"braces-and-quotes", `{"a`, `"}^|\`},
		{"not-a-URL", "https://[", ""},
		{"letters-of-other-scripts", "тема 主題 ", " é"},
	}
	checks := make([]suite.Check, 0, len(topics))
	for _, p := range topics {
		checks = append(checks, one("TOPIC-11", p.name, func(t *suite.T) {
			topic := p.before + t.Unique("t") + p.after
			s := t.ListenTo(topic)
			s.Want(t.Publish("topic", topic, "data", "x"))
		}))
	}
	return checks
}
