package checks

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// actAsk gets a document of the subscription API with a token.
func actAsk(t *suite.T, target, token string) *wire.Response {
	return t.Do(suite.Bearer(t.At(target), token))
}

// actGet gets a document of the subscription API with tok(subscribe *).
func actGet(t *suite.T, target string) jose.Object {
	resp := actAsk(t, target, t.SubscribeAll())
	if resp.Status != 200 {
		t.Fail("GET %s: answered %d, wanted 200", target, resp.Status)
	}
	return actDocument(t, "GET "+target, resp.Body)
}

// actListed gets the documents that a collection lists.
func actListed(t *suite.T, target string) []jose.Object {
	entries, ok := actGet(t, target)["subscriptions"].([]any)
	if !ok {
		t.Fail("GET %s: there is no array of subscriptions", target)
	}
	docs := make([]jose.Object, len(entries))
	for i, e := range entries {
		if docs[i], ok = e.(jose.Object); !ok {
			t.Fail("GET %s: subscription %d is no object", target, i)
		}
	}
	return docs
}

// actFind gives the document of a subscription among others, or nil.
func actFind(docs []jose.Object, s *actSubscription) jose.Object {
	i := slices.IndexFunc(docs, func(doc jose.Object) bool { return doc["id"] == s.doc["id"] })
	if i < 0 {
		return nil
	}
	return docs[i]
}

// actWantListed waits until a collection lists a live subscription, and gives all that it lists.
func actWantListed(t *suite.T, target string, s *actSubscription) []jose.Object {
	var docs []jose.Object
	actSoon(t, func() string {
		if docs = actListed(t, target); actFind(docs, s) == nil {
			return fmt.Sprintf("GET %s: the live subscription %s is not listed", target, prmJSON(s.doc["id"]))
		}
		return ""
	})
	return docs
}

// actSite is a live subscription with the three addresses that it is found at.
type actSite struct {
	p                           *actPresence
	s                           *actSubscription
	collection, matcher, single string
}

// actShapes are the kinds of addresses.
func actShapes() []string { return []string{"collection", "matcher", "single"} }

func (s *actSite) at(shape string) string {
	switch shape {
	case "collection":
		return s.collection
	case "matcher":
		return s.matcher
	default:
		return s.single
	}
}

// actSettle opens a plain subscription and waits until the API knows it, at one address or the other.
func actSettle(t *suite.T) *actSite {
	t.Need(suite.SubscriptionAPI)
	return actSettleOn(t, newActPresence(t))
}

// actSettleOn is actSettle with a matcher that is there already.
func actSettleOn(t *suite.T, p *actPresence) *actSite {
	s := actSiteOf(p, p.begin(), "exact")
	actSoon(t, func() string {
		problem := actStatus(t, s.single, 200)
		if problem != "" && strings.Contains(actAsk(t, s.collection, t.SubscribeAll()).Body, p.match) {
			return ""
		}
		return problem
	})
	return s
}

func actSiteOf(p *actPresence, s *actSubscription, kind string) *actSite {
	return &actSite{
		p: p, s: s, collection: actRoot(p.t), matcher: actPath(p.t, kind, p.match),
		single: actPath(p.t, kind, p.match, s.subscriber()),
	}
}

// actStatus asks once, with tok(subscribe *).
func actStatus(t *suite.T, target string, status int) (problem string) {
	if got := actAsk(t, target, t.SubscribeAll()).Status; got != status {
		return fmt.Sprintf("GET %s: answered %d, wanted %d", target, got, status)
	}
	return ""
}

// actEachShape makes a check for each kind of address.
func actEachShape(id, prefix string, run func(t *suite.T, s *actSite, target string)) []suite.Check {
	var checks []suite.Check
	for _, shape := range actShapes() {
		checks = append(checks, one(id, prefix+shape, func(t *suite.T) {
			s := actSettle(t)
			run(t, s, s.at(shape))
		}, suite.Subscriptions))
	}
	return checks
}

func actAPI() []suite.Check {
	checks := []suite.Check{one("ACT-24", "collection", func(t *suite.T) {
		t.Want(suite.Bearer(t.At(actRoot(t)), t.SubscribeAll()), 200)
	}, suite.Subscriptions)}
	for _, m := range []struct{ name, parameter, kind, text string }{
		{"", "match", "exact", "plain"},
		{"-urlpattern", "match_urlpattern", "urlpattern", "plain"},
		{"-url", "match", "exact", "https://e.example/a/b?c#d"},
		{"-octets", "match", "exact", "a%2Fb%41%"},
		{"-odd", "match", "exact", "a b;c+é*"},
		{"-dots", "match", "exact", "../.."},
		{"-url-pattern", "match_urlpattern", "urlpattern", "https://e.example/:a/*"},
	} {
		for _, shape := range actShapes() {
			if shape == "collection" && m.name != "" {
				continue // the same as without
			}
			checks = append(checks, one("ACT-25", shape+m.name, func(t *suite.T) {
				p := newActOddPresence(t, m.text)
				s := actSiteOf(p, p.open(p.get(m.parameter)), m.kind)
				actSoon(t, func() string { return actStatus(t, s.at(shape), 200) })
			}, suite.SubscriptionAPI))
		}
	}
	return append(checks, actEachShape("ACT-32", "", func(t *suite.T, _ *actSite, target string) {
		if media := actAsk(t, target, t.SubscribeAll()).MediaType(); media != "application/json" {
			t.Fail("GET %s: the media type is %q, wanted application/json", target, media)
		}
	})...)
}

// actSingle ask for the address of a single subscription.
func actSingle() []suite.Check {
	same := func(name, parameter, kind, text string, payload jose.Object) suite.Check {
		return one("ACT-33", name, func(t *suite.T) {
			t.Need(suite.SubscriptionAPI)
			p := newActOddPresence(t, text)
			detail := suite.CanSubscribe(suite.Any())
			if payload != nil {
				detail["payload"] = payload
			}
			s := p.open(suite.Bearer(t.Get(parameter+"="+wire.Escape(p.match)), t.SubscribeToken(detail)))
			target := actPath(t, kind, p.match, s.subscriber())
			actSoon(t, func() string { return actStatus(t, target, 200) })
			if doc := actGet(t, target); !reflect.DeepEqual(doc, s.doc) {
				t.Fail("GET %s: the document is %s, that of the event %s", target, prmJSON(doc), prmJSON(s.doc))
			}
		}, suite.Subscriptions)
	}
	unknown := func(name string, target func(t *suite.T, s *actSite) string) suite.Check {
		return one("ACT-34", name, func(t *suite.T) {
			at := target(t, actSettle(t))
			t.Want(suite.Bearer(t.At(at), t.SubscribeAll()), 404)
		}, suite.Subscriptions)
	}
	return []suite.Check{
		same("exact", "match", "exact", "plain", nil),
		same("urlpattern", "match_urlpattern", "urlpattern", "https://e.example/:a/*", nil),
		same("odd", "match", "exact", `a b%41;é*"\`, nil),
		same("payload", "match", "exact", "plain", jose.Object{"label": "é", "list": []any{1, "x", nil}}),
		unknown("made-up-subscriber", func(t *suite.T, s *actSite) string {
			return s.matcher + "/" + wire.Escape("urn:uuid:"+t.Unique("none"))
		}),
		unknown("another-matcher", func(t *suite.T, s *actSite) string {
			return actPath(t, "exact", t.Unique("none"), s.s.subscriber())
		}),
		unknown("another-type", func(t *suite.T, s *actSite) string {
			return actPath(t, "urlpattern", s.p.match, s.s.subscriber())
		}),
		unknown("unknown-type", func(t *suite.T, s *actSite) string {
			return actPath(t, "none", s.p.match, s.s.subscriber())
		}),
		one("ACT-35", "ended", func(t *suite.T) {
			s := actSettle(t)
			s.p.end(s.s)
			actSoon(t, func() string { return actEnded(t, s.single) })
		}, suite.Subscriptions),
		one("ACT-36", "collection", func(t *suite.T) { actEndedInCollection(t, (*actSite).collections) }, suite.Subscriptions),
		one("ACT-36", "matcher", func(t *suite.T) { actEndedInCollection(t, (*actSite).matchers) }, suite.Subscriptions),
	}
}

func (s *actSite) collections() string { return s.collection }
func (s *actSite) matchers() string    { return s.matcher }

// actEnded asks once whether a single subscription is shown as one that ended.
func actEnded(t *suite.T, target string) (problem string) {
	resp := actAsk(t, target, t.SubscribeAll())
	switch resp.Status {
	case 404:
		t.Observed("404")
		return ""
	case 200:
		if actDocument(t, "GET "+target, resp.Body)["active"] == false {
			t.Observed("200, not active")
			return ""
		}
		return "GET " + target + ": the subscription has ended, and is shown as active"
	}
	return fmt.Sprintf("GET %s: answered %d, wanted 404, or 200 and active false", target, resp.Status)
}

func actEndedInCollection(t *suite.T, address func(s *actSite) string) {
	s := actSettle(t)
	s.p.end(s.s)
	actSoon(t, func() string {
		resp := actAsk(t, address(s), t.SubscribeAll())
		if resp.Status == 404 {
			return ""
		}
		doc := actFind(actListed(t, address(s)), s.s)
		if doc != nil && doc["active"] != false {
			return fmt.Sprintf("GET %s: the subscription has ended, and is listed with active %s", address(s), prmJSON(doc["active"]))
		}
		return ""
	})
}

// actCollections ask for the documents of both kinds of collections.
func actCollections() []suite.Check {
	var checks []suite.Check
	for _, shape := range []string{"collection", "matcher"} {
		on := func(id, name string, run func(t *suite.T, s *actSite, target string)) {
			checks = append(checks, one(id, shape+name, func(t *suite.T) {
				s := actSettle(t)
				run(t, s, s.at(shape))
			}, suite.Subscriptions))
		}
		on("ACT-37", "-id", func(t *suite.T, _ *actSite, target string) { actText(t, actGet(t, target), "id") })
		on("ACT-37", "-type", func(t *suite.T, _ *actSite, target string) {
			if kind := actGet(t, target)["type"]; kind != "subscriptions" {
				t.Fail("GET %s: type is %s, wanted subscriptions", target, prmJSON(kind))
			}
		})
		on("ACT-37", "-array", func(t *suite.T, _ *actSite, target string) { actListed(t, target) })
		on("ACT-38", "", actWantOwnAddress)
		on("ACT-38", "-with-query", func(t *suite.T, s *actSite, target string) { actWantOwnAddress(t, s, target+"?x=1") })
		on("ACT-39", "", func(t *suite.T, s *actSite, target string) {
			if doc := actFind(actWantListed(t, target, s.s), s.s); doc["active"] != true {
				t.Fail("GET %s: the live subscription is listed with active %s", target, prmJSON(doc["active"]))
			}
		})
		on("ACT-39", "-same-document", func(t *suite.T, s *actSite, target string) {
			doc := actFind(actWantListed(t, target, s.s), s.s)
			// Other members may stand in one of them alone, such as a JSON-LD context.
			for _, name := range actMembers() {
				if !reflect.DeepEqual(doc[name], s.s.doc[name]) {
					t.Fail("GET %s: %s is listed as %s, and is %s in the event", target, name, prmJSON(doc[name]), prmJSON(s.s.doc[name]))
				}
			}
		})
		on("ACT-39", "-all-valid", func(t *suite.T, s *actSite, target string) {
			for _, doc := range actWantListed(t, target, s.s) {
				actWantValid(t, doc)
			}
		})
		on("ACT-39", "-two-connections", func(t *suite.T, s *actSite, target string) {
			second := s.p.begin()
			if docs := actWantListed(t, target, second); actFind(docs, s.s) == nil {
				t.Fail("GET %s: of two live subscriptions with one matcher, one is not listed", target)
			}
		})
	}
	return append(checks,
		one("ACT-37", "array-even-if-empty", func(t *suite.T) {
			t.Need(suite.SubscriptionAPI)
			actWantEmpty(t, actPath(t, "exact", t.Unique("none")))
		}, suite.Subscriptions),
		one("ACT-39", "anonymous", func(t *suite.T) {
			t.Need(suite.SubscriptionAPI)
			p := newActPresence(t)
			actWantListed(t, actRoot(t), p.open(t.Get("match="+p.match)))
		}, suite.Subscriptions, suite.Anonymous),
		one("ACT-39", "every-matcher", func(t *suite.T) {
			t.Need(suite.SubscriptionAPI)
			p, q := newActPresence(t), newActPresence(t)
			first := p.open(suite.Bearer(t.Get(wire.Form("match", p.match, "match_urlpattern", q.match)), t.SubscribeAll()))
			second := &actSubscription{t: t}
			second.event, second.doc = q.next()
			actWantListed(t, actRoot(t), first)
			actWantListed(t, actRoot(t), second)
		}, suite.Subscriptions),
	)
}

// actWantOwnAddress says that the id of a collection is the URL that it was got from, in one form or another.
func actWantOwnAddress(t *suite.T, _ *actSite, target string) {
	id := actText(t, actGet(t, target), "id")
	base, err := url.Parse(t.Target().Origin() + target)
	if err != nil {
		t.Fail("the suite cannot parse %q: %v", target, err)
	}
	u, err := base.Parse(id)
	if err != nil {
		t.Fail("GET %s: the id %q is no URL: %v", target, id, err)
	}
	u.RawQuery, base.RawQuery = "", ""
	if u.String() != base.String() {
		t.Fail("GET %s: the id is %q, wanted the URL itself", target, id)
	}
	t.Observed("the id is %q", id)
}

// actMembers are the members that the protocol gives a document.
func actMembers() []string {
	return []string{"id", "type", "match_type", "match", "subscriber", "active", "payload"}
}

// actWantValid says that a document of a collection has what every subscription document has (ACT-14).
func actWantValid(t *suite.T, doc jose.Object) {
	for _, name := range []string{"id", "type", "match_type", "match", "subscriber"} {
		if s, ok := doc[name].(string); !ok || s == "" && name != "match" {
			t.Fail("a listed document has the %s %s, wanted a string: %s", name, prmJSON(doc[name]), prmJSON(doc))
		}
	}
	if _, ok := doc["active"].(bool); !ok || doc["type"] != "subscription" {
		t.Fail("a listed document has the type %s and active %s: %s", prmJSON(doc["type"]), prmJSON(doc["active"]), prmJSON(doc))
	}
}

// actWantEmpty says that a collection is empty or not there at all.
func actWantEmpty(t *suite.T, target string) {
	resp := actAsk(t, target, t.SubscribeAll())
	switch resp.Status {
	case 404:
		t.Observed("404")
	case 200:
		entries, ok := actDocument(t, "GET "+target, resp.Body)["subscriptions"].([]any)
		if !ok || len(entries) > 0 {
			t.Fail("GET %s: wanted an array without subscriptions: %s", target, prmJSON(resp.Body))
		}
		t.Observed("200 and an empty array")
	default:
		t.Fail("GET %s: answered %d, wanted 404, or 200 and an empty collection", target, resp.Status)
	}
}

// actFilters ask whether the collection of a matcher keeps all others out.
func actFilters() []suite.Check {
	// The other subscription is on the same connection: when ours is listed, it would be too.
	without := func(name, own, other string, otherMatch func(match string) string) suite.Check {
		return one("ACT-40", name, func(t *suite.T) {
			t.Need(suite.SubscriptionAPI)
			p := newActPresence(t)
			r := suite.Bearer(t.Get(wire.Form(own, p.match, other, otherMatch(p.match))), t.SubscribeAll())
			kind := map[string]string{"match": "exact", "match_urlpattern": "urlpattern"}[own]
			t.Open(r)
			s := &actSubscription{t: t}
			for s.doc == nil || s.doc["match_type"] != kind || s.doc["match"] != p.match {
				s.event, s.doc = p.next()
			}
			target := actPath(t, kind, p.match)
			for _, doc := range actWantListed(t, target, s) {
				if doc["match"] != p.match || doc["match_type"] != kind {
					t.Fail("GET %s: lists the %s matcher %s", target, prmJSON(doc["match_type"]), prmJSON(doc["match"]))
				}
			}
		}, suite.Subscriptions)
	}
	return []suite.Check{
		without("another-matcher", "match", "match", func(string) string { return "another" }),
		without("longer-matcher", "match", "match", func(match string) string { return match + "/x" }),
		without("upper-case-matcher", "match", "match", func(match string) string { return "PRESENCE" + match[len("presence"):] }),
		without("another-type", "match", "match_urlpattern", func(match string) string { return match }),
		without("another-type-of-pattern", "match_urlpattern", "match", func(match string) string { return match }),
		without("wildcard-subscription", "match", "match", func(string) string { return "*" }),
		one("ACT-40", "wildcard", func(t *suite.T) {
			s := actSettle(t)
			t.Open(suite.Bearer(t.Get("match=*"), t.SubscribeAll()))
			target := actPath(t, "exact", "*")
			actSoon(t, func() string { return actStatus(t, target, 200) })
			for _, doc := range actListed(t, target) {
				if doc["match"] != "*" {
					t.Fail("GET %s: lists the matcher %s; ours is %q", target, prmJSON(doc["match"]), s.p.match)
				}
			}
		}, suite.Subscriptions),
		one("ACT-40", "matched-by-the-pattern", func(t *suite.T) {
			s := actSettle(t)
			// As a pattern, this selects the other matcher.
			pattern := s.p.match[:len("presence-")] + ":rest"
			target := actPath(t, "urlpattern", pattern)
			resp := actAsk(t, target, t.SubscribeAll())
			if resp.Status != 404 && actFind(actListed(t, target), s.s) != nil {
				t.Fail("GET %s: lists the exact matcher %q", target, s.p.match)
			}
		}, suite.Subscriptions),
	}
}
