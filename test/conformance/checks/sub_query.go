package checks

import (
	"slices"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// subQueryChecks are about requests whose parameters stand in a body. Their streams have no fence, which would be a
// parameter in the query component.
func subQueryChecks() []suite.Check {
	const form = "application/x-www-form-urlencoded"
	media := func(name, contentType string) suite.Check {
		return one("SUB-03", name, func(t *suite.T) {
			topic := t.Topic()
			r := wire.Request{Method: "QUERY", Target: t.Target().Path()}.WithBody(contentType, subMatch(topic))
			s := t.Open(suite.Bearer(r, t.SubscribeAll()))
			subNext(t, s, subPublish(t, topic))
		}, suite.QueryMethod)
	}
	// The query component has a matcher, so that the type of the body is all that is wrong.
	other := func(name, contentType string, body func(topic string) string) suite.Check {
		return one("SUB-03", name, func(t *suite.T) {
			r := wire.Request{Method: "QUERY", Target: t.Target().Path() + "?" + subMatch(t.Topic())}.WithBody(contentType, body(t.Topic()))
			t.WantRefused(suite.Bearer(r, t.SubscribeAll()))
		}, suite.QueryMethod)
	}
	union := func(name string, query, body func(topic string) string) suite.Check {
		return one("SUB-06", name, func(t *suite.T) {
			a, b := t.Topic(), t.Topic()
			s := t.Open(subQuery(t, query(a), body(b)))
			subNext(t, s, subPublish(t, a), subPublish(t, b), subPublish(t, a))
		}, suite.QueryMethod)
	}
	exact := func(topic string) string { return "match_exact=" + wire.Escape(topic) }
	pattern := func(topic string) string { return "match_urlpattern=" + wire.Escape(topic) }
	json := func(topic string) string { return `{"match":["` + topic + `"]}` }
	// What no serialiser writes is left out: the parser of bodies is not fixed as that of queries is (reading 15). The
	// other topics are published first, so what comes first tells whether they were selected.
	reads := func(name, written, topic string, others ...string) suite.Check {
		return one("SUB-03", name, func(t *suite.T) {
			unique := t.Unique("t")
			s := t.Open(subQuery(t, "", subNamed(written, unique)))
			for _, other := range others {
				subPublish(t, subNamed(other, unique))
			}
			subNext(t, s, subPublish(t, subNamed(topic, unique)))
		}, suite.QueryMethod)
	}
	return []suite.Check{
		reads("plus", "match=a+b-NAME", "a b-NAME", "a+b-NAME"),
		reads("encoded-plus", "match=a%2Bb-NAME", "a+b-NAME", "a b-NAME"),
		reads("encoded-delimiters", "match=NAME%26match%3Db-NAME%3B", "NAME&match=b-NAME;", "b-NAME", "b-NAME;", "NAME"),
		reads("decoded-once", "match=a%2541-NAME", "a%41-NAME", "aA-NAME"),
		reads("beyond-ASCII", "match=%C3%A9-NAME", "é-NAME"),
		media("form", form),
		media("type-in-upper-case", "APPLICATION/X-WWW-FORM-URLENCODED"),
		media("type-with-parameter", form+"; charset=utf-8"),
		other("json", "application/json", json),
		other("form-called-json", "application/json", subMatch),
		other("form-called-text", "text/plain", subMatch),
		other("similar-type", form+"2", subMatch),
		other("multipart", "multipart/form-data; boundary=b", func(topic string) string {
			return "--b\r\nContent-Disposition: form-data; name=\"match\"\r\n\r\n" + topic + "\r\n--b--\r\n"
		}),
		union("match-and-match", subMatch, subMatch),
		union("match-and-match_exact", subMatch, exact),
		union("match_urlpattern-and-match", pattern, subMatch),
		union("match-and-match_urlpattern", subMatch, pattern),
		one("SUB-06", "only-in-query", func(t *suite.T) {
			topic := t.Topic()
			s := t.Open(subQuery(t, subMatch(topic), ""))
			subNext(t, s, subPublish(t, topic))
		}, suite.QueryMethod),
		one("SUB-06", "several-in-each", func(t *suite.T) {
			a, b, c, d := t.Topic(), t.Topic(), t.Topic(), t.Topic()
			s := t.Open(subQuery(t, subMatch(a)+"&"+subMatch(b), subMatch(c)+"&"+subMatch(d)))
			subNext(t, s, subPublish(t, d), subPublish(t, c), subPublish(t, b), subPublish(t, a))
		}, suite.QueryMethod),
	}
}

// subQueryRefusals have one bad parameter in a request by QUERY, beside a good matcher.
func subQueryRefusals() []suite.Check {
	var checks []suite.Check
	refused := func(id, name string, request func(t *suite.T) wire.Request) {
		checks = append(checks, one(id, name, func(t *suite.T) { t.Want(request(t), 400) }, suite.QueryMethod))
	}
	body := func(id, name, bad string) {
		refused(id, name, func(t *suite.T) wire.Request { return subQuery(t, "", subMatch(t.Topic())+"&"+bad) })
	}
	for _, n := range subReservedNames() {
		body("SUB-04", n.name, n.parameter+"=https%3A%2F%2Fexample.com%2Fx")
	}
	body("SUB-04", "without-value", "match_nope")
	body("SUB-04", "encoded-name", "m%61tch_x=y")
	body("SUB-04", "encoded-upper-case-name", "%4Datch=x")
	for _, b := range []struct{ name, parameter string }{
		{"U+0000", "match=a%00"},
		{"U+000A", "match=a%0A"},
		{"U+007F", "match=a%7F"},
		{"U+0085", "match=a%C2%85"},
		{"U+200B", "match=a%E2%80%8B"},
		{"FF", "match=%FF"},
		{"C0-AF", "match=%C0%AF"},
		{"match_exact-U+0000", "match_exact=a%00"},
		{"match_exact-FF", "match_exact=%FF"},
		{"match_urlpattern-U+0000", "match_urlpattern=https%3A%2F%2Fe.example%2Fa%00"},
		{"match_urlpattern-FF", "match_urlpattern=https%3A%2F%2Fe.example%2F%FF"},
		{"match_urlpattern-ill-formed", "match_urlpattern=%28"},
		{"raw-U+0000", "match=a\x00"},
		{"raw-FF", "match=\xFF"},
	} {
		body("SUB-05", b.name, b.parameter)
	}
	for _, b := range []struct{ name, parameter string }{
		{"name", "match_nope=x"}, {"name-in-other-case", "Match=x"}, {"value", "match=a%00"}, {"pattern", "match_urlpattern=%28"},
	} {
		refused("SUB-07", b.name+"-in-query", func(t *suite.T) wire.Request {
			return subQuery(t, b.parameter, subMatch(t.Topic()))
		})
		refused("SUB-07", b.name+"-in-body", func(t *suite.T) wire.Request {
			return subQuery(t, subMatch(t.Topic()), b.parameter)
		})
	}
	return checks
}

// subCursorChecks publish five updates and resume after one of them. The sixth, live one ends what is looked at.
func subCursorChecks() []suite.Check {
	const none = -1
	type cursors struct{ field, query, body, after int }
	resume := func(id, name string, c cursors) suite.Check {
		return one(id, name, func(t *suite.T) {
			topic := t.Topic()
			var ids []string
			for range 5 {
				ids = append(ids, subPublish(t, topic))
			}
			cursor := func(i int) string { return "last_event_id=" + wire.Escape(ids[i]) }
			query, form := "", subMatch(topic)
			if c.query != none {
				query = cursor(c.query)
			}
			if c.body != none {
				form += "&" + cursor(c.body)
			}
			r := subQuery(t, query, form)
			if c.field != none {
				r = r.With("Last-Event-ID", ids[c.field])
			}
			s := t.Open(r)
			ids = append(ids, subPublish(t, topic))
			subNext(t, s, ids[c.after+1:]...)
			// What precedes the first event may be a later one than the cursor, of a topic that the stream does not
			// select (reading 10), but it is none before the cursor, and not unknown.
			for i, known := range ids {
				if got := s.Response.Get("Mercure-Last-Event-ID"); i != c.after && got == known || got == "" || got == "earliest" {
					t.Fail("Mercure-Last-Event-ID is %q, wanted %q or a later event of another topic", got, ids[c.after])
				}
			}
		}, suite.QueryMethod, suite.History)
	}
	return []suite.Check{
		resume("SUB-08", "body", cursors{none, none, 1, 1}),
		resume("SUB-08", "body-after-the-newest", cursors{none, none, 4, 4}),
		resume("SUB-09", "query-later-than-body", cursors{none, 2, 0, 2}),
		resume("SUB-09", "query-earlier-than-body", cursors{none, 1, 3, 1}),
		resume("SUB-10", "field-between", cursors{2, 3, 1, 2}),
		resume("SUB-10", "field-between-the-other-way", cursors{2, 1, 3, 2}),
		resume("SUB-10", "field-earliest", cursors{1, 2, 3, 1}),
		resume("SUB-10", "field-latest", cursors{3, 2, 1, 3}),
		resume("SUB-10", "field-and-body", cursors{1, none, 3, 1}),
		resume("SUB-10", "field-and-body-the-other-way", cursors{3, none, 1, 3}),
		resume("SUB-10", "field-and-query", cursors{1, 3, none, 1}),
		one("SUB-08", "body-earliest", func(t *suite.T) {
			topic := t.Topic()
			first, second := subPublish(t, topic), subPublish(t, topic)
			s := t.Open(subQuery(t, "", "last_event_id=earliest&"+subMatch(topic)))
			third := subPublish(t, topic)
			var got []string
			for len(got) == 0 || got[len(got)-1] != third {
				got = append(got, s.Next().ID)
			}
			// The hub may ignore earliest, and may have discarded events.
			if all := []string{first, second, third}; len(got) > 3 || !slices.Equal(got, all[3-len(got):]) {
				t.Fail("received %+q, wanted %+q or its end", got, all)
			}
		}, suite.QueryMethod, suite.History),
		// An empty value is a value (reading 9): the body's is not used.
		one("SUB-09", "empty-in-query", func(t *suite.T) {
			topic := t.Topic()
			id := subPublish(t, topic)
			s := t.Open(subQuery(t, "last_event_id=", "last_event_id="+wire.Escape(id)+"&"+subMatch(topic)))
			if got := s.Response.Get("Mercure-Last-Event-ID"); got != "earliest" {
				t.Fail("Mercure-Last-Event-ID is %q, wanted %q: the empty cursor names no event", got, "earliest")
			}
			t.Observed("Mercure-Last-Event-ID: earliest")
		}, suite.QueryMethod, suite.History),
	}
}
