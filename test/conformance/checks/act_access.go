package checks

import (
	"regexp"
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// actAccess is what a grant must give: a status for a request.
type actAccess struct {
	id, name string
	grant    func(s *actSite) suite.Matcher
	target   func(s *actSite) string
	status   int
}

// actGrants ask which grants open which addresses.
func actGrants() []suite.Check {
	var checks []suite.Check
	for _, a := range slices.Concat(actAddressGrants(), actPatternGrants(), actOtherGrants()) {
		checks = append(checks, a.check(actSettle))
	}
	// A matcher that its path cannot spell without encoding, and whose octets have letters among their digits.
	odd := func(t *suite.T) *actSite { return actSettleOn(t, newActOddPresence(t, "https://e.example/a;")) }
	for _, a := range actOctetGrants() {
		checks = append(checks, a.check(odd))
	}
	return checks
}

// check asks for the address once the subscription is settled.
func (a actAccess) check(settle func(t *suite.T) *actSite) suite.Check {
	return one(a.id, a.name, func(t *suite.T) {
		s := settle(t)
		matcher := a.grant(s)
		target := a.target(s)
		got := actAsk(t, target, t.SubscribeToken(suite.CanSubscribe(matcher))).Status
		if got != a.status {
			t.Fail("a grant on %s, GET %s: answered %d, wanted %d", prmJSON(matcher), target, got, a.status)
		}
	}, suite.SubscriptionAPI)
}

func actAddress(shape string) func(*actSite) string {
	return func(s *actSite) string { return s.at(shape) }
}

// actAddressGrants are exact grants, compared byte for byte with the path (ACT-26, ACT-27, ACT-28).
func actAddressGrants() []actAccess {
	exact := func(of func(s *actSite) string) func(*actSite) suite.Matcher {
		return func(s *actSite) suite.Matcher { return suite.Exact(of(s)) }
	}
	var all []actAccess
	for _, shape := range actShapes() {
		at := actAddress(shape)
		query := func(s *actSite) string { return at(s) + "?x=1" }
		all = append(all,
			actAccess{"ACT-26", shape, exact(at), at, 200},
			actAccess{"ACT-27", shape, exact(at), query, 200},
			actAccess{"ACT-28", "absolute-" + shape, exact(func(s *actSite) string { return s.p.t.Target().Origin() + at(s) }), at, 403},
			actAccess{"ACT-28", "final-slash-" + shape, exact(func(s *actSite) string { return at(s) + "/" }), at, 403},
			actAccess{"ACT-28", "upper-case-" + shape, exact(func(s *actSite) string { return strings.ToUpper(at(s)) }), at, 403},
		)
	}
	collection, single := actAddress("collection"), actAddress("single")
	withQuery := func(s *actSite) string { return s.collection + "?x=1" }
	return append(all,
		actAccess{"ACT-27", "query-in-grant", exact(withQuery), withQuery, 403},
		actAccess{"ACT-28", "relative", exact(collection), collection, 200},
		actAccess{"ACT-28", "hub-path", exact(func(s *actSite) string { return s.p.t.Target().Path() }), collection, 403},
		actAccess{"ACT-28", "pattern-as-exact", exact(func(s *actSite) string { return s.collection + "/*" }), single, 403},
	)
}

// actOctetGrants are exact grants that spell the octets of the path in another way (ACT-28).
func actOctetGrants() []actAccess {
	spelt := func(of func(s *actSite) string) func(*actSite) suite.Matcher {
		return func(s *actSite) suite.Matcher { return suite.Exact(s.collection + of(s)) }
	}
	return []actAccess{
		{"ACT-28", "octets-decoded", spelt(func(s *actSite) string {
			return "/exact/" + s.p.match + "/" + s.s.subscriber()
		}), actAddress("single"), 403},
		{"ACT-28", "octets-in-lower-case", spelt(func(s *actSite) string {
			below := strings.TrimPrefix(s.single, s.collection)
			return regexp.MustCompile("%[0-9A-F]{2}").ReplaceAllStringFunc(below, strings.ToLower)
		}), actAddress("single"), 403},
	}
}

// actPatternGrants are urlpattern grants, absolute or relative (ACT-29).
func actPatternGrants() []actAccess {
	pattern := func(of func(t *suite.T, base string) string) func(*actSite) suite.Matcher {
		return func(s *actSite) suite.Matcher { return suite.Pattern(of(s.p.t, actLiteral(s.collection))) }
	}
	all := []actAccess{
		{"ACT-29", "relative-star-matcher", pattern(func(_ *suite.T, base string) string { return base + "/*" }), actAddress("matcher"), 200},
		{"ACT-29", "relative-star-single", pattern(func(_ *suite.T, base string) string { return base + "/*" }), actAddress("single"), 200},
		{"ACT-29", "relative-star-collection", pattern(func(_ *suite.T, base string) string { return base + "/*" }), actAddress("collection"), 403},
		{"ACT-29", "relative-groups", pattern(func(_ *suite.T, base string) string { return base + "/:match_type/:match/:subscriber" }), actAddress("single"), 200},
		{"ACT-29", "absolute-groups", pattern(func(t *suite.T, base string) string {
			return t.Target().Origin() + base + "/:match_type/:match/:subscriber"
		}), actAddress("single"), 200},
		{"ACT-29", "relative-to-the-folder", pattern(func(t *suite.T, base string) string {
			path := actLiteral(t.Target().Path())
			return strings.TrimPrefix(base, path[:strings.LastIndexByte(path, '/')+1]) + "/*"
		}), actAddress("single"), 200},
		{"ACT-29", "other-origin", pattern(func(_ *suite.T, base string) string { return "https://other.example" + base + "{/*}?" }), actAddress("single"), 403},
		{"ACT-29", "other-case", pattern(func(_ *suite.T, base string) string { return strings.ToUpper(base) + "{/*}?" }), actAddress("single"), 403},
		{"ACT-29", "other-matcher", pattern(func(_ *suite.T, base string) string { return base + "/exact/another/:subscriber" }), actAddress("single"), 403},
		{"ACT-29", "other-type", func(s *actSite) suite.Matcher {
			return suite.Pattern(actLiteral(s.collection) + "/urlpattern/" + s.p.match + "/:subscriber")
		}, actAddress("single"), 403},
		{"ACT-29", "own-matcher", func(s *actSite) suite.Matcher { return suite.Pattern(s.p.pattern()) }, actAddress("single"), 200},
	}
	for _, shape := range actShapes() {
		all = append(all,
			actAccess{"ACT-29", "relative-optional-" + shape, pattern(func(_ *suite.T, base string) string { return base + "{/*}?" }), actAddress(shape), 200},
			actAccess{"ACT-29", "absolute-optional-" + shape, pattern(func(t *suite.T, base string) string {
				return t.Target().Origin() + base + "{/*}?"
			}), actAddress(shape), 200},
			actAccess{"ACT-29", "query-" + shape, pattern(func(_ *suite.T, base string) string { return base + "{/*}?" }), func(s *actSite) string {
				return s.at(shape) + "?x=1"
			}, 200},
		)
	}
	return all
}

// actOtherGrants are grants on one shape, used for another (ACT-30).
func actOtherGrants() []actAccess {
	var all []actAccess
	for _, granted := range actShapes() {
		for _, asked := range actShapes() {
			if granted != asked {
				all = append(all, actAccess{"ACT-30", granted + "-grant-" + asked, func(s *actSite) suite.Matcher {
					return suite.Exact(s.at(granted))
				}, actAddress(asked), 403})
			}
		}
		all = append(all, actAccess{"ACT-30", "wildcard-" + granted, func(*actSite) suite.Matcher { return suite.Any() }, actAddress(granted), 200})
	}
	groups := func(s *actSite) suite.Matcher {
		return suite.Pattern(actLiteral(s.collection) + "/:match_type/:match/:subscriber")
	}
	return append(all,
		actAccess{"ACT-30", "pattern-of-singles-collection", groups, actAddress("collection"), 403},
		actAccess{"ACT-30", "pattern-of-singles-matcher", groups, actAddress("matcher"), 403},
		actAccess{"ACT-30", "another-matcher", func(s *actSite) suite.Matcher { return suite.Exact(s.matcher + "x") }, actAddress("matcher"), 403},
		actAccess{"ACT-30", "another-single", func(s *actSite) suite.Matcher {
			return suite.Exact(actPath(s.p.t, "exact", s.p.match, s.p.begin().subscriber()))
		}, actAddress("single"), 403},
		actAccess{"ACT-30", "the-matched-topic", func(s *actSite) suite.Matcher { return suite.Exact(s.p.match) }, actAddress("matcher"), 403},
	)
}

// actChallenge reads the error code of a Bearer challenge; ok is false when there is none.
func actChallenge(resp *wire.Response) (code string, ok bool) {
	challenge := " " + strings.Join(resp.All("WWW-Authenticate"), ", ")
	if m := regexp.MustCompile(`(?i)[\s,]error\s*=\s*"?([a-z_]+)`).FindStringSubmatch(challenge); m != nil {
		code = m[1]
	}
	return code, regexp.MustCompile(`(?i)[\s,]bearer(\s|,|$)`).MatchString(challenge)
}

// actRefusals ask for the answer to those who may not see the subscriptions. Anonymous subscribers may be welcome, but
// subscription events are private, and so is the API.
func actRefusals() []suite.Check {
	other := func(t *suite.T) string { return t.SubscribeToken(suite.CanSubscribe(suite.Exact(t.Topic()))) }
	var checks []suite.Check
	for _, c := range []struct {
		name   string
		token  func(t *suite.T) string // nil: none
		status int
		code   string
		needs  []suite.Feature
	}{
		{"no-token", nil, 401, "", nil},
		{"bad-token", actForeignToken, 401, "invalid_token", nil},
		{"no-grant", other, 403, "insufficient_scope", nil},
		{"no-details", func(t *suite.T) string { return t.SubscribeToken() }, 403, "insufficient_scope", nil},
		{"publish-grant", func(t *suite.T) string { return t.SubscribeToken(suite.CanPublish(suite.Any())) }, 403, "insufficient_scope", []suite.Feature{suite.OneKey}},
	} {
		refused := func(t *suite.T, target string, also ...int) {
			r := t.At(target)
			if c.token != nil {
				r = suite.Bearer(r, c.token(t))
			}
			resp := t.Do(r)
			if slices.Contains(also, resp.Status) {
				t.Observed("answered %d", resp.Status)
				return
			}
			code, ok := actChallenge(resp)
			if resp.Status != c.status || code != c.code || !ok {
				t.Fail("GET %s: answered %d with the challenge %q, wanted %d with the error %q", target, resp.Status, resp.Get("WWW-Authenticate"), c.status, c.code)
			}
		}
		for _, shape := range actShapes() {
			checks = append(checks, one("ACT-31", c.name+"-"+shape, func(t *suite.T) { refused(t, actSettle(t).at(shape)) },
				append([]suite.Feature{suite.Subscriptions}, c.needs...)...))
		}
		// Of what is not there, the text says 404 as well, and not which comes first.
		checks = append(checks, one("ACT-31", c.name+"-unknown", func(t *suite.T) {
			t.Need(suite.SubscriptionAPI)
			refused(t, actPath(t, "exact", t.Unique("none"), "urn:uuid:"+t.Unique("none")), 404)
		}, append([]suite.Feature{suite.Subscriptions}, c.needs...)...))
	}
	return append(checks, one("ACT-31", "token-in-the-url", func(t *suite.T) {
		t.Need(suite.SubscriptionAPI)
		t.Want(t.At(actRoot(t)+"?access_token="+t.SubscribeAll()), 401)
	}, suite.Subscriptions))
}
