package checks

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// actTopics ask whether the topic of subscription events is the one of the protocol, by what selects it.
func actTopics() []suite.Check {
	selects := func(name string, query func(t *suite.T, p *actPresence) string) suite.Check {
		return one("ACT-04", name, func(t *suite.T) {
			p := newActPresence(t)
			w := t.Listen(query(t, p))
			s := p.begin()
			// Broad watchers see others as well, such as the one of the presence, whose pattern contains its matcher.
			events := slices.DeleteFunc(w.Events(), func(e wire.Event) bool { return !actIsAbout(e, p.match) })
			if len(events) != 1 || events[0].ID != s.event.ID {
				t.Fail("%s: received %d events about the matcher, wanted 1, with the id %q", query(t, p), len(events), s.event.ID)
			}
		}, suite.Subscriptions)
	}
	// These know the subscriber, so they look at the end.
	exact := func(name string, topic func(t *suite.T, p *actPresence, s *actSubscription) string, selected bool) suite.Check {
		return one("ACT-04", name, func(t *suite.T) {
			p := newActPresence(t)
			s := p.begin()
			w := t.ListenTo(topic(t, p, s))
			end, _ := p.end(s)
			if selected {
				w.Want(end.ID)
			} else {
				w.Want()
			}
		}, suite.Subscriptions)
	}
	return []suite.Check{
		selects("relative-pattern", func(t *suite.T, p *actPresence) string {
			return "match_urlpattern=" + wire.Escape(actLiteral(actRoot(t))+"/:match_type/"+p.match+"/:subscriber")
		}),
		selects("absolute-pattern", func(t *suite.T, p *actPresence) string {
			return "match_urlpattern=" + wire.Escape(t.Target().Origin()+actLiteral(actRoot(t))+"/:match_type/"+p.match+"/:subscriber")
		}),
		selects("pattern-of-all", func(t *suite.T, _ *actPresence) string {
			return "match_urlpattern=" + wire.Escape(actLiteral(actRoot(t))+"/:match_type/:match/:subscriber")
		}),
		selects("wildcard", func(*suite.T, *actPresence) string { return "match=*" }),
		exact("exact", func(t *suite.T, p *actPresence, s *actSubscription) string {
			return actPath(t, "exact", p.match, s.subscriber())
		}, true),
		exact("not-absolute", func(t *suite.T, p *actPresence, s *actSubscription) string {
			return t.Target().Origin() + actPath(t, "exact", p.match, s.subscriber())
		}, false),
		exact("not-the-collection", func(t *suite.T, p *actPresence, _ *actSubscription) string {
			return actPath(t, "exact", p.match)
		}, false),
		one("ACT-04", "not-the-matched-topic", func(t *suite.T) {
			p := newActPresence(t)
			s := t.ListenTo(p.match)
			p.next()
			s.Want()
		}, suite.Subscriptions),
		one("ACT-04", "id-shape", func(t *suite.T) {
			s := newActPresence(t).begin()
			shape := regexp.MustCompile("^" + regexp.QuoteMeta(actRoot(t)) + "/[^/?#]+/[^/?#]+/[^/?#]+$")
			if id := actText(t, s.doc, "id"); !shape.MatchString(id) {
				t.Fail("id is %q, wanted %s/{match_type}/{match}/{subscriber}", id, actRoot(t))
			}
		}, suite.Subscriptions),
	}
}

// actIsAbout says whether an event is about the subscriptions of this matcher.
func actIsAbout(e wire.Event, match string) bool {
	var doc struct {
		Match string `json:"match"`
	}
	return json.Unmarshal([]byte(e.Data), &doc) == nil && doc.Match == match
}

// expansion gives the variables of a document's id, as they stand there.
func (s *actSubscription) expansion() string {
	id := actText(s.t, s.doc, "id")
	_, rest, ok := strings.Cut(id, actRoot(s.t)+"/")
	if !ok {
		s.t.Fail("the id %q does not begin with %s/", id, actRoot(s.t))
	}
	return rest
}

func actTypes() []suite.Check {
	typed := func(parameter, want string) suite.Check {
		return one("ACT-05", parameter, func(t *suite.T) {
			p := newActPresence(t)
			if got, _, _ := strings.Cut(p.open(p.get(parameter)).expansion(), "/"); got != want {
				t.Fail("%s: the type in the topic is %q, wanted %q", parameter, got, want)
			}
		}, suite.Subscriptions)
	}
	return []suite.Check{typed("match", "exact"), typed("match_exact", "exact"), typed("match_urlpattern", "urlpattern")}
}

// actEncoding asks for the simple expansion of RFC 6570: everything but the unreserved characters is percent-encoded
// as UTF-8, once, in upper case (RFC 3986 section 2.1).
func actEncoding() []suite.Check {
	var checks []suite.Check
	for _, c := range []struct{ id, name, parameter, text string }{
		{"ACT-06", "example", "match", "https://e.example/a b%20c:é*"},
		{"ACT-06", "unreserved", "match", "-._~azAZ09"},
		{"ACT-06", "space", "match", "a b"},
		{"ACT-06", "gen-delims", "match", ":/?#[]@"},
		{"ACT-06", "sub-delims", "match", "!$&'()*+,;="},
		{"ACT-06", "other-ascii", "match", "\"<>\\^`{|}"},
		{"ACT-06", "two-bytes", "match", "é"},
		{"ACT-06", "three-bytes", "match", "日"},
		{"ACT-06", "four-bytes", "match", "😀"},
		{"ACT-06", "star-inside", "match", "a*b"},
		{"ACT-06", "urlpattern", "match_urlpattern", `https://example.com/:id(\d+)/{x}?/*`},
		{"ACT-06", "relative-pattern", "match_urlpattern", "/books/:id/"},
		{"ACT-07", "octet", "match", "%41"},
		{"ACT-07", "encoded-slash", "match", "a%2Fb"},
		{"ACT-07", "encoded-url", "match", "https%3A%2F%2Fe.example%2F"},
		{"ACT-07", "lower-case-octet", "match", "%c3%a9"},
		{"ACT-07", "twice-encoded", "match", "%2541"},
		{"ACT-07", "stray-percent", "match", "100%"},
		{"ACT-07", "no-octet", "match", "%zz"},
		{"ACT-07", "plus", "match", "a+b"},
	} {
		checks = append(checks, one(c.id, c.name, func(t *suite.T) {
			p := newActOddPresence(t, c.text)
			s := p.open(p.get(c.parameter))
			_, rest, _ := strings.Cut(s.expansion(), "/")
			if want := wire.Escape(p.match) + "/"; !strings.HasPrefix(rest, want) {
				t.Fail("matcher %+q: after its type, the topic goes on with %q, wanted %s…", p.match, rest, want)
			}
		}, suite.Subscriptions))
	}
	return append(checks,
		one("ACT-06", "wildcard", func(t *suite.T) {
			doc := actWildcard(t)
			if topic := actPath(t, "exact", "*", actText(t, doc, "subscriber")); doc["id"] != topic {
				t.Fail("matcher *: id is %s, wanted %q", prmJSON(doc["id"]), topic)
			}
		}, suite.Subscriptions),
		one("ACT-06", "subscriber", func(t *suite.T) {
			p := newActPresence(t)
			s := p.begin()
			rest := s.expansion()
			if got := rest[strings.LastIndexByte(rest, '/')+1:]; got != wire.Escape(s.subscriber()) {
				t.Fail("the subscriber %q is %q in the topic, wanted %s", s.subscriber(), got, wire.Escape(s.subscriber()))
			}
		}, suite.Subscriptions),
	)
}
