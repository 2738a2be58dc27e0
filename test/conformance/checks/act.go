package checks

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// actChecks ask for active subscriptions. Other checks open and close subscriptions at the same time: each check looks
// at matchers of its own. They consist of unreserved characters, so that a mistake in the encoding is seen by the
// checks of the encoding alone.
func actChecks() []suite.Check {
	checks := slices.Concat(
		actAdvertised(), actStarts(), actEnds(), actTopics(), actTypes(), actEncoding(), actSubscribers(),
		actContent(), actMatchers(), actPrivate(), actEvents(),
		actAPI(), actGrants(), actRefusals(), actSingle(), actCollections(), actFilters(),
		actLinks(), actCursors(), actCaches(),
		actOff(), actUnknown(), actExpiry(), actForged(),
	)
	slices.SortStableFunc(checks, func(a, b suite.Check) int { return strings.Compare(a.ID, b.ID) })
	return checks
}

// actRoot is the path of the collection; all other topics and paths of the feature begin with it.
func actRoot(t *suite.T) string { return t.Target().Path() + "/subscriptions" }

// actPath is the path of a matcher's collection, or, with a subscriber, of one subscription: the protocol's
// expansion, each variable percent-encoded once.
func actPath(t *suite.T, variables ...string) string {
	parts := []string{actRoot(t)}
	for _, v := range variables {
		parts = append(parts, wire.Escape(v))
	}
	return strings.Join(parts, "/")
}

// actLiteral makes text stand for itself in a URL pattern.
func actLiteral(text string) string {
	var b strings.Builder
	for _, c := range text {
		if strings.ContainsRune(`+*?:{}()\`, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// actPresence is a matcher that nobody else uses, and a stream that sees its subscriptions begin and end.
type actPresence struct {
	t       *suite.T
	match   string
	mark    string // a part of the matcher that no encoding changes
	watcher *suite.Stream
}

// newActPresence makes a matcher of unreserved characters. As an exact matcher or as a URL pattern, it selects nothing
// that is ever published.
func newActPresence(t *suite.T) *actPresence {
	match := t.Unique("presence")
	p := &actPresence{t: t, match: match, mark: match}
	p.watcher = t.Listen("match_urlpattern=" + wire.Escape(p.pattern()))
	return p
}

// newActOddPresence makes a matcher that begins with any text. Because its encoding is in question, the watcher sees all
// subscriptions.
func newActOddPresence(t *suite.T, text string) *actPresence {
	match := t.Unique(text)
	p := &actPresence{t: t, match: match, mark: strings.TrimPrefix(match, text)}
	p.watcher = t.Listen("match_urlpattern=" + wire.Escape(actLiteral(actRoot(t))+"/*"))
	return p
}

// pattern selects the events of the matcher, whatever its type and whoever the subscriber is.
func (p *actPresence) pattern() string {
	return actLiteral(actRoot(p.t)) + "/:type/" + p.match + "/*"
}

// get is a subscription with the matcher, under a parameter name, and tok(subscribe *).
func (p *actPresence) get(parameter string) wire.Request {
	return suite.Bearer(p.t.Get(parameter+"="+wire.Escape(p.match)), p.t.SubscribeAll())
}

// actSubscription is one that began: its stream, its first event and the document in it.
type actSubscription struct {
	t      *suite.T
	stream *suite.Stream
	event  wire.Event
	doc    jose.Object
}

// open opens a subscription and waits for its event.
func (p *actPresence) open(r wire.Request) *actSubscription {
	s := &actSubscription{t: p.t, stream: p.t.Open(r)}
	s.event, s.doc = p.next()
	return s
}

// begin opens a subscription by the default parameter.
func (p *actPresence) begin() *actSubscription { return p.open(p.get("match")) }

// end hangs up and waits for the event of the end.
func (p *actPresence) end(s *actSubscription) (wire.Event, jose.Object) {
	s.stream.Close()
	return p.next()
}

// next gives the next event about the matcher.
func (p *actPresence) next() (wire.Event, jose.Object) { return actNext(p.t, p.watcher, p.mark) }

// actNext gives the next event of a watcher whose data contains the mark. Those of others do not count.
func actNext(t *suite.T, watcher *suite.Stream, mark string) (wire.Event, jose.Object) {
	deadline := time.Now().Add(t.Target().Patience)
	for {
		e, err := watcher.Block(time.Until(deadline))
		if err != nil {
			t.Fail("a subscription event was expected: %v", err)
		}
		if !e.Dispatched || !strings.Contains(e.Data, mark) {
			continue
		}
		return e, actDocument(t, "the event", e.Data)
	}
}

func actDocument(t *suite.T, what, text string) jose.Object {
	var doc jose.Object
	if err := json.Unmarshal([]byte(text), &doc); err != nil || doc == nil {
		t.Fail("%s has no JSON object: %v", what, err)
	}
	return doc
}

// actText gives a member that must be a string for the check to go on.
func actText(t *suite.T, doc jose.Object, member string) string {
	s, ok := doc[member].(string)
	if !ok {
		t.Fail("the member %s of the document is %s, wanted a string", member, prmJSON(doc[member]))
	}
	return s
}

// subscriber is the identifier that the hub gave.
func (s *actSubscription) subscriber() string { return actText(s.t, s.doc, "subscriber") }

// actLife is that of one plain subscription, from its first event to its last.
func actLife(t *suite.T) (start, end wire.Event, first, last jose.Object) {
	p := newActPresence(t)
	s := p.begin()
	end, last = p.end(s)
	return s.event, end, s.doc, last
}

// actSoon asks until there is no problem: what an event announces may reach the API a moment later.
func actSoon(t *suite.T, problem func() string) {
	const pause = 50 * time.Millisecond
	deadline := time.Now().Add(t.Target().Patience)
	for {
		found := problem()
		if found == "" {
			return
		}
		if time.Now().After(deadline) || t.Context().Err() != nil {
			t.Fail("%s", found)
		}
		t.Pause(pause)
	}
}

func actAdvertised() []suite.Check {
	return []suite.Check{
		one("ACT-01", "advertised", func(t *suite.T) {
			if value := prmMetadata(t)["mercure_subscriptions"]; value != true {
				t.Fail("mercure_subscriptions is %s, wanted true", prmJSON(value))
			}
		}, suite.Subscriptions, suite.Metadata),
		one("ACT-01", "not-advertised-when-off", func(t *suite.T) {
			if value, ok := prmMetadata(t)["mercure_subscriptions"]; ok {
				t.Fail("mercure_subscriptions is %s, wanted no such member", prmJSON(value))
			}
		}, suite.NoSubscriptions, suite.Metadata),
	}
}

func actStarts() []suite.Check {
	starts := func(name string, request func(p *actPresence) wire.Request, needs ...suite.Feature) suite.Check {
		return one("ACT-02", name, func(t *suite.T) {
			p := newActPresence(t)
			actWantActive(t, p.open(request(p)).doc, true)
		}, append([]suite.Feature{suite.Subscriptions}, needs...)...)
	}
	return []suite.Check{
		starts("match", func(p *actPresence) wire.Request { return p.get("match") }),
		starts("match_exact", func(p *actPresence) wire.Request { return p.get("match_exact") }),
		starts("match_urlpattern", func(p *actPresence) wire.Request { return p.get("match_urlpattern") }),
		starts("anonymous", func(p *actPresence) wire.Request { return p.t.Get("match=" + p.match) }, suite.Anonymous),
		starts("query-body", func(p *actPresence) wire.Request {
			return suite.Bearer(p.t.Query("", "match="+p.match), p.t.SubscribeAll())
		}, suite.QueryMethod),
		one("ACT-02", "wildcard", func(t *suite.T) {
			actWantActive(t, actWildcard(t), true)
		}, suite.Subscriptions),
		one("ACT-02", "none-when-refused", func(t *suite.T) {
			p := newActPresence(t)
			t.Want(suite.Bearer(t.Get("match="+p.match+"&match=a%00"), t.SubscribeAll()), 400)
			p.watcher.Want()
		}, suite.Subscriptions),
		one("ACT-02", "none-with-bad-token", func(t *suite.T) {
			p := newActPresence(t)
			t.Want(suite.Bearer(t.Get("match="+p.match), actForeignToken(t)), 401)
			p.watcher.Want()
		}, suite.Subscriptions),
	}
}

// actWildcard subscribes to everything and gives the document of the first event. Others have the matcher * too: ours
// is told by the subscriber, which a second matcher of the connection shows.
func actWildcard(t *suite.T) jose.Object {
	p := newActPresence(t)
	w := t.Listen("match_urlpattern=" + wire.Escape(actLiteral(actRoot(t))+"/*"))
	s := p.open(suite.Bearer(t.Get("match=*&match="+p.match), t.SubscribeAll()))
	for {
		_, doc := actNext(t, w, "")
		if doc["match"] == "*" && doc["subscriber"] == s.doc["subscriber"] {
			return doc
		}
	}
}

// actForeignToken is a token for somebody else's hub that would else be tok(subscribe *).
func actForeignToken(t *suite.T) string {
	token := t.Claims(suite.Details(suite.CanSubscribe(suite.Any())))
	token.Claims["aud"] = "https://elsewhere.example/"
	return t.Sign(suite.Subscriber, token)
}

func actWantActive(t *suite.T, doc jose.Object, active bool) {
	if doc["active"] != active {
		t.Fail("active is %s, wanted %t", prmJSON(doc["active"]), active)
	}
}

func actEnds() []suite.Check {
	ends := func(name string, request func(p *actPresence) wire.Request, needs ...suite.Feature) suite.Check {
		return one("ACT-03", name, func(t *suite.T) {
			p := newActPresence(t)
			s := p.open(request(p))
			_, doc := p.end(s)
			actWantEnd(t, s.doc, doc)
		}, append([]suite.Feature{suite.Subscriptions}, needs...)...)
	}
	lifetime := one("ACT-03", "lifetime", actEndByLifetime, suite.Subscriptions, suite.ShortLifetime, suite.History)
	lifetime.Time = 2 * time.Minute
	return []suite.Check{
		ends("hang-up", func(p *actPresence) wire.Request { return p.get("match") }),
		ends("urlpattern", func(p *actPresence) wire.Request { return p.get("match_urlpattern") }),
		ends("anonymous", func(p *actPresence) wire.Request { return p.t.Get("match=" + p.match) }, suite.Anonymous),
		one("ACT-03", "closed-at-once", func(t *suite.T) {
			p := newActPresence(t)
			t.Open(p.get("match")).Close()
			_, first := p.next()
			actWantActive(t, first, true)
			_, last := p.next()
			actWantEnd(t, first, last)
		}, suite.Subscriptions),
		one("ACT-03", "others-go-on", func(t *suite.T) {
			p := newActPresence(t)
			p.begin()
			s := p.begin()
			_, doc := p.end(s)
			actWantEnd(t, s.doc, doc)
			p.watcher.Want()
		}, suite.Subscriptions),
		lifetime,
	}
}

// actEndByLifetime has the hub itself end a subscription. The watcher's own lifetime may be over before: what it missed
// is replayed.
func actEndByLifetime(t *suite.T) {
	p := newActPresence(t)
	s := p.begin()
	s.stream.WantEnd(time.Now().Add(t.Target().Lifetime + t.Target().Patience))
	r := t.Get("match_urlpattern="+wire.Escape(p.pattern())).With("Last-Event-ID", s.event.ID)
	_, doc := actNext(t, t.Open(suite.Bearer(r, t.SubscribeAll())), p.mark)
	actWantEnd(t, s.doc, doc)
}

func actWantEnd(t *suite.T, first, last jose.Object) {
	actWantActive(t, last, false)
	if first["id"] != last["id"] {
		t.Fail("it began with id %s and ended with id %s", prmJSON(first["id"]), prmJSON(last["id"]))
	}
}
