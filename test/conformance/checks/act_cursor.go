package checks

import (
	"net/url"
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// actLink is a link of a Link field (RFC 8288 section 3): its target and the first parameter of each name.
type actLink struct {
	target string
	params map[string]string
}

// actReadLinks reads the Link fields of a response.
func actReadLinks(resp *wire.Response) []actLink {
	var all []actLink
	for _, value := range resp.All("Link") {
		for rest := value; ; {
			start := strings.IndexByte(rest, '<')
			if start < 0 {
				break
			}
			target, after, ok := strings.Cut(rest[start+1:], ">")
			if !ok {
				break
			}
			l := actLink{target: target, params: map[string]string{}}
			rest = l.read(after)
			all = append(all, l)
		}
	}
	return all
}

// read reads the parameters of a link and gives what follows it.
func (l *actLink) read(s string) string {
	for {
		s = strings.TrimLeft(s, " \t")
		if s == "" || s[0] != ';' {
			return s
		}
		s = strings.TrimLeft(s[1:], " \t")
		end := strings.IndexAny(s, "=;, \t")
		if end < 0 {
			end = len(s)
		}
		name, value := strings.ToLower(s[:end]), ""
		s = strings.TrimLeft(s[end:], " \t")
		if after, ok := strings.CutPrefix(s, "="); ok {
			value, s = actParameter(strings.TrimLeft(after, " \t"))
		}
		if _, ok := l.params[name]; !ok && name != "" {
			l.params[name] = value
		}
	}
}

// actParameter reads a token or a quoted string and gives what follows it.
func actParameter(s string) (value, rest string) {
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexAny(s, ";, \t")
		if end < 0 {
			end = len(s)
		}
		return s[:end], s[end:]
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), ""
}

// actMercureLink gives the link with rel=mercure.
func actMercureLink(t *suite.T, target string, resp *wire.Response) actLink {
	if resp.Status != 200 {
		t.Fail("GET %s: answered %d, wanted 200", target, resp.Status)
	}
	for _, l := range actReadLinks(resp) {
		if slices.ContainsFunc(strings.Fields(l.params["rel"]), func(rel string) bool { return strings.EqualFold(rel, "mercure") }) {
			return l
		}
	}
	t.Fail("GET %s: there is no Link with rel=mercure in %q", target, resp.All("Link"))
	return actLink{}
}

// actCursor gives the last-event-id of a response. A parameter with a star has another encoding (RFC 8187).
func actCursor(t *suite.T, target string) string {
	l := actMercureLink(t, target, actAsk(t, target, t.SubscribeAll()))
	value := l.params["last-event-id"]
	if extended, ok := l.params["last-event-id*"]; ok && value == "" {
		if parts := strings.SplitN(extended, "'", 3); len(parts) == 3 && strings.EqualFold(parts[0], "utf-8") {
			value, _ = url.PathUnescape(parts[2])
		}
	}
	if value == "" {
		t.Fail("GET %s: the Link has no last-event-id", target)
	}
	return value
}

// actLinks ask for the Link of the subscription API.
func actLinks() []suite.Check {
	attribute := func(name, want string) []suite.Check {
		return actEachShape("ACT-43", name+"-", func(t *suite.T, _ *actSite, target string) {
			if got := actMercureLink(t, target, actAsk(t, target, t.SubscribeAll())).params[name]; got != want {
				t.Fail("GET %s: the Link has the %s %q, wanted %q", target, name, got, want)
			}
		})
	}
	return slices.Concat(
		actEachShape("ACT-41", "", func(t *suite.T, _ *actSite, target string) { actCursor(t, target) }),
		actEachShape("ACT-41", "target-", func(t *suite.T, _ *actSite, target string) {
			l := actMercureLink(t, target, actAsk(t, target, t.SubscribeAll()))
			base, err := url.Parse(t.Target().Origin() + target)
			if err != nil {
				t.Fail("the suite cannot parse %q: %v", target, err)
			}
			if u, err := base.Parse(l.target); err != nil || u.String() != t.Target().URL {
				t.Fail("GET %s: the Link with rel=mercure points at %q, not at the hub", target, l.target)
			}
		}),
		attribute("type", "mercure"), attribute("content-type", "application/json"),
	)
}

// actCursors ask for the value of the cursor. Late ends of other checks' subscriptions cannot be kept away: a stream of
// everything tells what came after the event in question, and would be as right.
func actCursors() []suite.Check {
	after := func(name string, address func(s *actSite) string, dispatch func(t *suite.T, s *actSite) (id string), needs ...suite.Feature) suite.Check {
		return quiet(one("ACT-42", name, func(t *suite.T) {
			all := t.Listen("match=*")
			s := actSettle(t)
			id := dispatch(t, s)
			got := actCursor(t, address(s))
			right := []string{id}
			for _, e := range all.Events() {
				if e.ID == id {
					right = right[:1] // what comes now came later
				} else {
					right = append(right, e.ID)
				}
			}
			if !slices.Contains(right, got) {
				t.Fail("GET %s: last-event-id is %+q, the last event was %+q", address(s), got, id)
			}
		}, append([]suite.Feature{suite.Subscriptions}, needs...)...))
	}
	publish := func(pairs ...string) func(*suite.T, *actSite) string {
		return func(t *suite.T, _ *actSite) string {
			return t.Publish(append([]string{"topic", t.Topic()}, pairs...)...)
		}
	}
	named := func(prefix string) func(*suite.T, *actSite) string {
		return func(t *suite.T, _ *actSite) string {
			return t.Publish("topic", t.Topic(), "data", "x", "id", t.Unique(prefix))
		}
	}
	var checks []suite.Check
	for _, shape := range actShapes() {
		checks = append(checks, after(shape, actAddress(shape), publish("data", "x")))
	}
	return append(checks,
		after("private", actAddress("collection"), publish("data", "x", "private", "on")),
		after("given-id", actAddress("collection"), named("given")),
		after("quoted-id", actAddress("collection"), named(`a"b\c,d;e`)),
		after("unicode-id", actAddress("collection"), named("é日")),
		after("start-event", actAddress("collection"), func(_ *suite.T, s *actSite) string { return s.p.begin().event.ID }),
		after("end-event", actAddress("collection"), func(_ *suite.T, s *actSite) string {
			second := s.p.begin()
			end, _ := s.p.end(second)
			return end.ID
		}),
		one("ACT-44", "no-gap", func(t *suite.T) {
			s := actSettle(t)
			from := actCursor(t, s.collection)
			second := s.p.begin()
			r := t.Get("match_urlpattern=" + wire.Escape(s.p.pattern()) + "&last_event_id=" + wire.Escape(from))
			w := t.ListenWith(suite.Bearer(r, t.SubscribeAll()))
			w.Want(second.event.ID)
		}, suite.Subscriptions, suite.History),
	)
}
