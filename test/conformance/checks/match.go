package checks

import (
	"encoding/json"
	"regexp"
	"slices"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// matchChecks are about matcher types and the wildcard.
func matchChecks() []suite.Check {
	return slices.Concat(
		matchTypeChecks(),
		matchMetadataChecks(),
		matchUnknownChecks(),
		matchWildcardChecks(),
		matchWildcardGrantChecks(),
		exactPairChecks("MATCH-07", matchAsterisks()),
		matchLiteralChecks(),
		matchNameChecks(),
	)
}

// matchTyped is a topic matcher with a type; nil: without one.
func matchTyped(match string, matchType any) suite.Matcher {
	m := suite.Matcher{"match": match}
	if matchType != nil {
		m["match_type"] = matchType
	}
	return m
}

// matchPrivate says that a stream of this topic with this grant receives a private update of it.
func matchPrivate(t *suite.T, topic string, grant suite.Matcher) {
	s := t.ListenWith(suite.Bearer(t.Get(subMatch(topic)), t.SubscribeToken(suite.CanSubscribe(grant))))
	s.Want(t.Publish("topic", topic, "data", "x", "private", "on"))
	s.Close()
}

// matchTypeChecks have each type in queries and in tokens.
func matchTypeChecks() []suite.Check {
	routes := func(parameter string, matcher, topic func(folder string) string) suite.Check {
		return one("MATCH-01", "routing-"+parameter, func(t *suite.T) {
			folder := t.Folder()
			s := t.Listen(parameter + "=" + wire.Escape(matcher(folder)))
			s.Want(subPublish(t, topic(folder)))
		})
	}
	grants := func(name string, matchType any, matcher, topic func(folder string) string) []suite.Check {
		return []suite.Check{
			one("MATCH-01", "grant-to-read-"+name, func(t *suite.T) {
				folder := t.Folder()
				matchPrivate(t, topic(folder), matchTyped(matcher(folder), matchType))
			}),
			one("MATCH-01", "grant-to-publish-"+name, func(t *suite.T) {
				folder := t.Folder()
				s := t.ListenTo(topic(folder))
				token := t.PublishToken(suite.CanPublish(matchTyped(matcher(folder), matchType)))
				s.Want(t.PublishWith(suite.Bearer(t.Post(wire.Form("topic", topic(folder), "data", "x")), token)))
			}),
		}
	}
	literal := func(folder string) string { return folder + "/1" }
	pattern := func(folder string) string { return folder + "/:x" }
	return slices.Concat(
		[]suite.Check{
			routes("match", literal, literal), routes("match_exact", literal, literal),
			routes("match_urlpattern", pattern, literal),
		},
		grants("exact", "exact", literal, literal),
		grants("without-type", nil, literal, literal),
		grants("urlpattern", "urlpattern", pattern, literal),
	)
}

// matchAdvertised gives the types that the metadata names; without the member these are the two (MATCH-03).
func matchAdvertised(t *suite.T) (types []string, named bool) {
	resp := t.Fetch(t.Target().MetadataURL(), wire.Request{Method: "GET"})
	var meta map[string]json.RawMessage
	if resp.Status != 200 || json.Unmarshal([]byte(resp.Body), &meta) != nil {
		t.Fail("the metadata was answered with %d, or is no JSON object", resp.Status)
	}
	raw, named := meta["mercure_matcher_types_supported"]
	if !named {
		return []string{"exact", "urlpattern"}, false
	}
	if json.Unmarshal(raw, &types) != nil {
		t.Fail("mercure_matcher_types_supported is no array of strings")
	}
	return types, true
}

// matchMetadataChecks are about the types that a hub says it supports.
func matchMetadataChecks() []suite.Check {
	return []suite.Check{
		one("MATCH-03", "metadata", func(t *suite.T) {
			types, named := matchAdvertised(t)
			if !slices.Contains(types, "exact") || !slices.Contains(types, "urlpattern") {
				t.Fail("the metadata names the types %q, exact and urlpattern not both among them", types)
			}
			t.Observed("types: %q, named in the metadata: %t", types, named)
		}, suite.Metadata),
		// What is named is supported. A matcher that is the wildcard is valid for every type.
		one("MATCH-04", "advertised-types-work", func(t *suite.T) {
			types, _ := matchAdvertised(t)
			for _, name := range types {
				resp := t.Want(subGet(t, "match_"+wire.Escape(name)+"=*"), 200)
				if resp.Stream == nil {
					t.Fail("match_%s: answered no event stream", name)
				}
				token := t.SubscribeToken(suite.CanSubscribe(matchTyped("*", name)))
				t.Want(suite.Bearer(t.Get(subMatch(t.Topic())), token), 200)
			}
		}, suite.Metadata),
		one("MATCH-09", "advertised-names", func(t *suite.T) {
			types, _ := matchAdvertised(t)
			form := regexp.MustCompile(`^[a-z][a-z0-9]*$`)
			for _, name := range types {
				if !form.MatchString(name) {
					t.Fail("the metadata names the type %q", name)
				}
			}
			t.Observed("types: %q", types)
		}, suite.Metadata),
	}
}

// matchRefused says that a token is answered with 401 and invalid_token.
func matchRefused(t *suite.T, r wire.Request) {
	wantCode(t, r, 401, "invalid_token")
}

// matchTokenChecks present tokens one of whose matchers has a type: to subscribe and to publish, alone and beside a good
// matcher and a good detail, which would grant what is asked.
func matchTokenChecks(id, name string, matchType any) []suite.Check {
	details := func(action, good string) [][]suite.Detail {
		bad := matchTyped("https://example.com/x", matchType)
		return [][]suite.Detail{
			{suite.Grant(action, bad)},
			{suite.Grant(action, suite.Exact(good), bad)},
			{suite.Grant(action, bad, suite.Exact(good))},
			{suite.Grant(action, suite.Exact(good)), suite.Grant(action, bad)},
		}
	}
	return []suite.Check{
		one(id, name+"-in-a-token-to-subscribe", func(t *suite.T) {
			topic := t.Topic()
			for _, d := range details("subscribe", topic) {
				matchRefused(t, suite.Bearer(t.Get(subMatch(topic)), t.SubscribeToken(d...)))
			}
		}),
		one(id, name+"-in-a-token-to-publish", func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenTo(topic)
			for _, d := range details("publish", topic) {
				matchRefused(t, suite.Bearer(t.Post(wire.Form("topic", topic, "data", "x")), t.PublishToken(d...)))
			}
			s.Want()
		}),
	}
}

// matchUnknownChecks have a type that no hub has.
func matchUnknownChecks() []suite.Check {
	checks := []suite.Check{
		one("MATCH-04", "in-a-request", func(t *suite.T) {
			t.Want(subGet(t, "match_nope="+wire.Escape(t.Topic())), 400)
			t.Want(subGet(t, subMatch(t.Topic())+"&match_nope="+wire.Escape(t.Topic())), 400)
		}),
	}
	return append(checks, matchTokenChecks("MATCH-04", "nope", "nope")...)
}

// matchNameChecks have types in another than their canonical form, and the wildcard with names that are no matcher's.
func matchNameChecks() []suite.Check {
	var checks []suite.Check
	for _, name := range []string{"Exact", "EXACT", "URLPattern", "URLPATTERN", "Urlpattern"} {
		checks = append(checks, matchTokenChecks("MATCH-09", name, name)...)
	}
	for _, name := range []string{"Exact", "EXACT", "URLPattern", "URLPATTERN"} {
		checks = append(checks, one("MATCH-09", name+"-in-a-request", func(t *suite.T) {
			t.Want(subGet(t, subMatch(t.Topic())+"&match_"+name+"="+wire.Escape(t.Topic())), 400)
		}))
	}
	for _, query := range []struct{ name, query string }{
		{"match_nope", "match_nope=*"}, {"Match", "Match=*"}, {"match_", "match_=*"}, {"match_Exact", "match_Exact=*"}, {"matches", "matches=*"},
	} {
		checks = append(checks, one("MATCH-08", query.name, func(t *suite.T) {
			t.Want(subGet(t, query.query), 400)
			t.Want(subGet(t, subMatch(t.Topic())+"&"+query.query), 400)
			t.Want(subGet(t, "match=*&"+query.query), 400)
		}))
	}
	return checks
}
