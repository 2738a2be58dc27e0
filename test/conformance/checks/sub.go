package checks

import (
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// subChecks are about subscription requests.
func subChecks() []suite.Check {
	return slices.Concat(
		subMethodChecks(),
		subQueryChecks(),
		subQueryRefusals(),
		subCursorChecks(),
		subHTTP2Checks(),
		subNameChecks(),
		subParserChecks(),
		subValueChecks(),
		subPatternChecks(),
		subWholeChecks(),
		subRoutingChecks(),
		subGrantChecks(),
		subSubscriptionChecks(),
	)
}

// subGet is a subscription request with this query, as it is, and tok(subscribe *).
func subGet(t *suite.T, query string) wire.Request {
	return suite.Bearer(t.Get(query), t.SubscribeAll())
}

// subQuery is one by the QUERY method.
func subQuery(t *suite.T, query, form string) wire.Request {
	return suite.Bearer(t.Query(query, form), t.SubscribeAll())
}

// subMatch is a matcher parameter for a topic.
func subMatch(topic string) string { return "match=" + wire.Escape(topic) }

// subPublish publishes a public update of these topics and gives its id.
func subPublish(t *suite.T, topics ...string) string {
	pairs := []string{"data", "x"}
	for _, topic := range topics {
		pairs = append(pairs, "topic", topic)
	}
	return t.Publish(pairs...)
}

// subNext says that the next events of a stream are these. It is for streams without a fence: all of these events must
// arrive, so nothing is waited for that may not come.
func subNext(t *suite.T, s *suite.Stream, ids ...string) {
	for i, id := range ids {
		if e := s.Next(); e.ID != id {
			t.Fail("event %d of the stream has the id %q, wanted %q", i+1, e.ID, id)
		}
	}
	t.Observed("received %d events", len(ids))
}

// subMethodChecks are about the methods of the hub URL.
func subMethodChecks() []suite.Check {
	opens := func(name string, accept ...string) suite.Check {
		return one("SUB-01", name, func(t *suite.T) {
			topic := t.Topic()
			r := wire.Request{Method: "GET", Target: t.Target().Path() + "?" + subMatch(topic)}
			for _, a := range accept {
				r = r.With("Accept", a)
			}
			s := t.Open(suite.Bearer(r, t.SubscribeAll()))
			subNext(t, s, subPublish(t, topic))
		})
	}
	checks := []suite.Check{
		opens("event-stream-accepted", "text/event-stream"),
		opens("anything-accepted", "*/*"),
		opens("without-Accept"),
		one("SUB-02", "QUERY", func(t *suite.T) {
			topic := t.Topic()
			resp, err := t.Try(subQuery(t, "", subMatch(topic)))
			switch {
			case err != nil:
				t.Fail("QUERY: no answer: %v", err)
			case resp.Stream != nil:
				subNext(t, t.Attach(resp), subPublish(t, topic))
				t.Observed("QUERY is supported")
			case resp.Status == 405 || resp.Status == 501:
				t.Observed("QUERY is not supported: %d", resp.Status)
			default:
				t.Fail("QUERY: answered %d, wanted an event stream, 405 or 501", resp.Status)
			}
		}),
	}
	for _, method := range []string{"DELETE", "PUT", "PATCH"} {
		checks = append(checks, one("SUB-39", method, func(t *suite.T) {
			r := wire.Request{Method: method, Target: t.Target().Path() + "?" + subMatch(t.Topic())}
			resp := t.Want(suite.Bearer(r, t.PublishAll()), 405)
			allow := resp.List("Allow")
			if !slices.Contains(allow, "get") || !slices.Contains(allow, "post") || slices.Contains(allow, strings.ToLower(method)) {
				t.Fail("Allow is %q, wanted the methods of the hub, GET and POST among them", resp.Get("Allow"))
			}
		}))
	}
	return checks
}

// subHTTP2Checks are about the version of HTTP.
func subHTTP2Checks() []suite.Check {
	return []suite.Check{
		one("SUB-11", "ALPN", func(t *suite.T) {
			protocol, err := t.Dialer().Protocol(t.Context())
			if err != nil {
				t.Fail("no connection: %v", err)
			}
			if protocol != "h2" {
				t.Fail("offered h2 and http/1.1, the hub chose %q", protocol)
			}
			t.Observed("ALPN: h2")
		}, suite.TLS),
		one("SUB-11", "stream", func(t *suite.T) {
			topic := t.Topic()
			resp, err := t.Dialer().DoHTTP2(t.Context(), subGet(t, subMatch(topic)))
			if err != nil {
				t.Fail("GET over HTTP/2: no answer: %v", err)
			}
			if resp.Stream == nil {
				t.Fail("GET over HTTP/2: answered %d with %q, wanted an event stream", resp.Status, resp.MediaType())
			}
			s := t.Attach(resp)
			subNext(t, s, subPublish(t, topic), subPublish(t, topic))
		}, suite.TLS),
	}
}
