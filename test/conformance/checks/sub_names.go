package checks

import (
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// subName is a parameter name as it is written in a query, and what it is called in a check.
type subName struct{ name, parameter string }

// subWrongTypes are types in another than their canonical form (SUB-12).
func subWrongTypes() []subName {
	return []subName{
		{"match_Exact", "match_Exact"},
		{"match_EXACT", "match_EXACT"},
		{"match_URLPattern", "match_URLPattern"},
		{"match_Urlpattern", "match_Urlpattern"},
		{"match_urlPattern", "match_urlPattern"},
		{"match_space-exact", "match_%20exact"},
		{"match_exact-space", "match_exact%20"},
		{"match_url-pattern", "match_url-pattern"},
		{"match_url_pattern", "match_url_pattern"},
	}
}

// subWrongCase are names that are reserved, because the prefix is compared without regard to case, but name no matcher,
// because names are case-sensitive (SUB-23).
func subWrongCase() []subName {
	return []subName{
		{"Match", "Match"},
		{"MATCH", "MATCH"},
		{"mAtCh_exact", "mAtCh_exact"},
		{"matcH", "matcH"},
		{"Match_exact", "Match_exact"},
		{"MATCH_URLPATTERN", "MATCH_URLPATTERN"},
		{"Match_urlpattern", "Match_urlpattern"},
		{"MATCHES", "MATCHES"},
	}
}

// subReserved are names with the reserved prefix that are no matcher's (SUB-24).
func subReserved() []subName {
	return []subName{
		{"matches", "matches"},
		{"match_", "match_"},
		{"matchtopic", "matchtopic"},
		{"match-exact", "match-exact"},
		{"match.x", "match.x"},
		{"match[]", "match[]"},
		{"match_exact_", "match_exact_"},
		{"match_nope", "match_nope"},
		{"match2", "match2"},
		{"matcher", "matcher"},
		{"match_exact[]", "match_exact[]"},
		{"match[0]", "match%5B0%5D"},
		{"match__exact", "match__exact"},
		{"match_exactly", "match_exactly"},
		{"match_urlpattern2", "match_urlpattern2"},
		{"matchexact", "matchexact"},
		{"match-space", "match%20"},
		{"match-plus", "match+"},
		{"match-U+0000", "match%00"},
		{"match-U+200B", "match%E2%80%8B"},
		{"match-FF", "match%FF"},
	}
}

// subReservedNames are all of them, for requests with a body.
func subReservedNames() []subName {
	names := append(subWrongTypes(), subWrongCase()...)
	return append(names, subReserved()...)
}

// subNameChecks are about the names of parameters.
func subNameChecks() []suite.Check {
	var checks []suite.Check
	refused := func(id string, names []subName) {
		for _, n := range names {
			checks = append(checks, one(id, n.name, func(t *suite.T) {
				bad := n.parameter + "=" + wire.Escape(t.Topic())
				t.Want(subGet(t, bad), 400)
				t.Want(subGet(t, subMatch(t.Topic())+"&"+bad), 400)
				t.Want(subGet(t, bad+"&"+subMatch(t.Topic())), 400)
			}))
		}
	}
	refused("SUB-12", subWrongTypes())
	refused("SUB-23", subWrongCase())
	refused("SUB-24", subReserved())
	refused("SUB-20", []subName{
		{"encoded-reserved-name", "%6Datch_nope"},
		{"encoded-lower-case-hex", "%6datch_nope"},
		{"encoded-underscore", "match%5Fnope"},
		{"all-encoded-reserved", "%6D%61%74%63%68%65%73"},
		{"encoded-capital", "%4Datch"},
	})
	works := func(name, parameter string) {
		checks = append(checks, one("SUB-20", name, func(t *suite.T) {
			topic := t.Topic()
			s := t.Listen(parameter + "=" + wire.Escape(topic))
			s.Want(subPublish(t, topic))
		}))
	}
	works("encoded-match", "m%61tch")
	works("all-encoded-match", "%6D%61%74%63%68")
	works("encoded-match_exact", "match%5Fexact")
	works("encoded-match_urlpattern", "match_url%70attern")
	return append(append(checks, subValuelessChecks()...), subIgnoredChecks()...)
}

// subValuelessChecks compare a name without a value with the same name and an empty value.
func subValuelessChecks() []suite.Check {
	same := func(name, parameter string, beside bool) suite.Check {
		return one("SUB-21", name, func(t *suite.T) {
			query := parameter
			if beside {
				query = subMatch(t.Topic()) + "&" + parameter
			}
			bare, empty := t.Do(subGet(t, query)), t.Do(subGet(t, query+"="))
			if bare.Status != empty.Status {
				t.Fail("answered %d without a value and %d with an empty one", bare.Status, empty.Status)
			}
			const field = "Mercure-Last-Event-ID"
			if bare.Has(field) != empty.Has(field) {
				t.Fail("%s is there: %t without a value, %t with an empty one", field, bare.Has(field), empty.Has(field))
			}
			t.Observed("both answered %d", bare.Status)
		})
	}
	refused := func(name, parameter string) suite.Check {
		return one("SUB-21", name, func(t *suite.T) {
			t.Want(subGet(t, parameter), 400)
			t.Want(subGet(t, subMatch(t.Topic())+"&"+parameter), 400)
			t.Want(subGet(t, parameter+"&"+subMatch(t.Topic())), 400)
		})
	}
	return []suite.Check{
		same("match", "match", false),
		same("match-beside", "match", true),
		same("match_exact-beside", "match_exact", true),
		same("match_urlpattern-beside", "match_urlpattern", true),
		same("last_event_id", "last_event_id", true),
		refused("match_nope", "match_nope"),
		refused("Match", "Match"),
	}
}

// subIgnoredChecks have names that are not reserved. They choose nothing and disturb nothing.
func subIgnoredChecks() []suite.Check {
	names := []subName{
		{"foo", "foo"},
		{"_match", "_match"},
		{"topic", "topic"},
		{"xmatch", "xmatch"},
		{"matc", "matc"},
		{"no-name", ""},
		{"space-before", "+match"},
		{"full-width", "%EF%BD%8Datch"},
		{"letter-beyond-ASCII", "m%C3%A4tch"},
		{"exact", "exact"},
		{"encoded-twice", "m%2561tch"},
		{"encoded-equals-sign", "x%3Dmatch"},
		{"encoded-ampersand", "x%26match"},
		{"urlpattern", "urlpattern"},
	}
	checks := make([]suite.Check, 0, len(names)+5)
	for _, n := range names {
		checks = append(checks, one("SUB-25", n.name, func(t *suite.T) {
			topic, other := t.Topic(), t.Topic()
			s := t.Listen(subMatch(topic) + "&" + n.parameter + "=" + wire.Escape(other))
			subPublish(t, other)
			s.Want(subPublish(t, topic))
		}))
	}
	for _, v := range []struct{ name, pairs string }{
		{"all-named-at-once", "foo=1&_match=2&topic=x"},
		{"control-in-value", "foo=a%00"},
		{"not-UTF-8-in-value", "foo=%FF"},
		{"stray-percent", "foo=100%&bar=%zz&%zz=1"},
	} {
		checks = append(checks, one("SUB-25", v.name, func(t *suite.T) {
			topic := t.Topic()
			s := t.Listen(subMatch(topic) + "&" + v.pairs)
			s.Want(subPublish(t, topic))
		}))
	}
	// Without a fence: what is published first would arrive first.
	return append(checks, one("SUB-25", "in-body", func(t *suite.T) {
		topic, other := t.Topic(), t.Topic()
		s := t.Open(subQuery(t, "", "topic="+wire.Escape(other)+"&foo=1&"+subMatch(topic)))
		subPublish(t, other)
		subNext(t, s, subPublish(t, topic))
	}, suite.QueryMethod))
}
