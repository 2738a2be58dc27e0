package checks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// corsPreflight asks what a page of an origin may do with the hub URL, or what lies below (Fetch, section 3.3.5).
// Browsers send no credentials with it.
func corsPreflight(t *suite.T, below, origin, method, fields string) wire.Request {
	r := wire.Request{Method: "OPTIONS", Target: t.Target().Path() + below}.With("Origin", origin).With("Access-Control-Request-Method", method)
	if fields != "" {
		r = r.With("Access-Control-Request-Headers", fields)
	}
	return r
}

// corsWantGranted wants a preflight to be granted to the allowed origin, with this request field. In the answer, *
// does not stand for Authorization (Fetch, section 3.3.4).
func corsWantGranted(t *suite.T, r wire.Request, field string) *wire.Response {
	resp := t.Do(r)
	if resp.Status < 200 || resp.Status > 299 {
		t.Fail("a preflight was answered %d, wanted a 2xx", resp.Status)
	}
	corsWantAllowed(t, resp, false)
	if list := resp.List("Access-Control-Allow-Headers"); !slices.Contains(list, field) {
		t.Fail("a preflight was answered with Access-Control-Allow-Headers %q, wanted %s in it", list, field)
	}
	return resp
}

// corsPreflights is CORS-06 to CORS-08.
func corsPreflights() []suite.Check {
	granted := func(id, name, below, method, fields, field string, needs ...suite.Feature) suite.Check {
		return one(id, name, func(t *suite.T) {
			corsWantGranted(t, corsPreflight(t, below, t.Target().CORSOrigin, method, fields), field)
		}, append(needs, suite.CORS)...)
	}
	// Methods that any page may use need not be listed (Fetch), and QUERY does need it.
	methods := func(name, method string, needs ...suite.Feature) suite.Check {
		return one("CORS-08", name, func(t *suite.T) {
			resp := corsWantGranted(t, corsPreflight(t, "", t.Target().CORSOrigin, method, "authorization"), "authorization")
			if list := resp.List("Access-Control-Allow-Methods"); !slices.Contains(list, strings.ToLower(method)) {
				t.Fail("a preflight for %s was answered with Access-Control-Allow-Methods %q", method, list)
			}
		}, append(needs, suite.CORS)...)
	}
	checks := []suite.Check{
		granted("CORS-06", "GET", "", "GET", "authorization", "authorization"),
		granted("CORS-06", "POST", "", "POST", "authorization", "authorization"),
		granted("CORS-06", "with-other-fields", "", "GET", "authorization,cache-control,last-event-id", "authorization"),
		granted("CORS-06", "upper-case-field", "", "GET", "Authorization", "authorization"),
		granted("CORS-06", "subscription-api", "/subscriptions", "GET", "authorization", "authorization", suite.Subscriptions),
		methods("POST", "POST"),
		methods("QUERY", "QUERY", suite.QueryMethod),
		granted("CORS-08", "Last-Event-ID", "", "GET", "last-event-id", "last-event-id"),
		granted("CORS-08", "Cache-Control", "", "GET", "cache-control", "cache-control"),
		granted("CORS-08", "all-fields", "", "GET", "authorization,cache-control,last-event-id", "last-event-id"),
		one("CORS-08", "publish-answer", func(t *suite.T) {
			r := suite.Bearer(t.Post(wire.Form("topic", t.Topic(), "data", "x")), t.PublishAll()).With("Origin", t.Target().CORSOrigin)
			corsWantAllowed(t, t.Want(r, 200), false)
		}, suite.CORS),
	}
	for _, c := range []struct {
		name, below, method string
		origin              func(t *suite.T) string
		needs               []suite.Feature
	}{
		{"GET", "", "GET", func(*suite.T) string { return corsEvil }, nil},
		{"POST", "", "POST", func(*suite.T) string { return corsEvil }, nil},
		{"null", "", "GET", func(*suite.T) string { return "null" }, nil},
		{"query-method", "", "QUERY", func(*suite.T) string { return corsEvil }, []suite.Feature{suite.QueryMethod}},
		{"prefix", "", "GET", func(t *suite.T) string { return t.Target().CORSOrigin + ".evil.example" }, []suite.Feature{suite.CORS}},
		{"subscription-api", "/subscriptions", "GET", func(*suite.T) string { return corsEvil }, []suite.Feature{suite.Subscriptions}},
	} {
		checks = append(checks, one("CORS-07", c.name, func(t *suite.T) {
			resp := t.Do(corsPreflight(t, c.below, c.origin(t), c.method, "authorization"))
			corsWantForeign(t, resp, c.origin(t))
			// A hub that takes no cookie has no credentials to protect.
			if t.Target().Has(suite.Cookie) && resp.Get(corsAllowOrigin) == "*" {
				t.Fail("a preflight from the origin %q was answered %d with %s *", c.origin(t), resp.Status, corsAllowOrigin)
			}
		}, c.needs...))
	}
	return checks
}

// corsWantExposed wants a response field to be readable for pages of the allowed origin. Where credentials are sent, *
// stands for nothing.
func corsWantExposed(t *suite.T, resp *wire.Response, field string, cookie bool) {
	corsWantAllowed(t, resp, cookie)
	list := resp.List("Access-Control-Expose-Headers")
	if !slices.Contains(list, strings.ToLower(field)) && (cookie || !slices.Contains(list, "*")) {
		t.Fail("answered %d with Access-Control-Expose-Headers %q, wanted %s in it", resp.Status, list, field)
	}
	t.Observed("Access-Control-Expose-Headers %q", list)
}

// corsExposed is CORS-10, and the first half of CORS-11.
func corsExposed() []suite.Check {
	var checks []suite.Check
	for _, way := range corsWays() {
		api := func(name string, path func(t *suite.T) string) suite.Check {
			return one("CORS-10", name+"-"+way.name, func(t *suite.T) {
				t.Need(suite.SubscriptionAPI)
				r := way.with(t, t.At(path(t)).With("Origin", t.Target().CORSOrigin))
				actSoon(t, func() string {
					if resp := t.Do(r); resp.Status != 200 {
						return fmt.Sprintf("the API answered %d, wanted 200", resp.Status)
					}
					return ""
				})
				corsWantExposed(t, t.Want(r, 200), "Link", way.cookie)
			}, way.and(suite.CORS, suite.Subscriptions)...)
		}
		collection := func(t *suite.T) string { return t.Target().Path() + "/subscriptions" }
		ofMatcher := func(t *suite.T) string {
			topic := t.Topic()
			t.ListenTo(topic).Want() // it is surely subscribed
			return collection(t) + "/exact/" + wire.Escape(topic)
		}
		if way.name != "no-token" { // the API needs one
			checks = append(checks, api("collection", collection), api("matcher", ofMatcher),
				api("subscription", func(t *suite.T) string { return corsDocument(t, ofMatcher(t)) }))
		}
		checks = append(checks, one("CORS-11", "resumed-"+way.name, func(t *suite.T) {
			r := corsGet(t, t.Target().CORSOrigin).With("Last-Event-ID", "earliest")
			corsWantExposed(t, t.Want(way.with(t, r), 200), "Mercure-Last-Event-ID", way.cookie)
		}, way.and(suite.CORS)...))
	}
	return append(checks, one("CORS-11", "resumed-by-parameter", func(t *suite.T) {
		r := t.Get(wire.Form("match", t.Topic(), "last_event_id", "earliest")).With("Origin", t.Target().CORSOrigin)
		corsWantExposed(t, t.Want(suite.Bearer(r, t.SubscribeAll()), 200), "Mercure-Last-Event-ID", false)
	}, suite.CORS))
}

// corsErrors is the second half of CORS-11: a page can read why it was refused.
func corsErrors() []suite.Check {
	check := func(name string, status int, request func(t *suite.T) wire.Request, needs ...suite.Feature) suite.Check {
		return one("CORS-11", name, func(t *suite.T) {
			r := request(t).With("Origin", t.Target().CORSOrigin)
			cookie := slices.ContainsFunc(r.Fields, func(f wire.Field) bool { return f.Name == "Cookie" })
			corsWantAllowed(t, t.Want(r, status), cookie)
		}, append(needs, suite.CORS)...)
	}
	publish := func(t *suite.T) wire.Request { return t.Post(wire.Form("topic", t.Topic(), "data", "x")) }
	get := func(t *suite.T) wire.Request { return t.Get(wire.Form("match", t.Topic())) }
	return []suite.Check{
		check("401", 401, func(t *suite.T) wire.Request { return suite.Bearer(get(t), t.SubscribeAll()+"x") }),
		check("401-without-token", 401, get, suite.Closed),
		check("401-cookie", 401, func(t *suite.T) wire.Request { return t.InCookie(get(t), t.SubscribeAll()+"x") }, suite.Cookie),
		check("401-publish", 401, publish),
		check("400", 400, func(t *suite.T) wire.Request { return suite.Bearer(t.Get("match_nope=x"), t.SubscribeAll()) }),
		check("400-publish", 400, func(t *suite.T) wire.Request { return suite.Bearer(t.Post("data=x"), t.PublishAll()) }),
		check("403-publish", 403, func(t *suite.T) wire.Request {
			return suite.Bearer(publish(t), t.PublishToken(suite.CanPublish(suite.Exact(t.Topic()))))
		}),
		check("401-api", 401, func(t *suite.T) wire.Request { return t.At(t.Target().Path() + "/subscriptions") }, suite.Subscriptions),
		check("404-api", 404, func(t *suite.T) wire.Request {
			return suite.Bearer(t.At(t.Target().Path()+"/subscriptions/exact/x/"+t.Unique("x")), t.SubscribeAll())
		}, suite.Subscriptions),
	}
}

// corsVary is CORS-09: when answers differ by origin, caches must know.
func corsVary() []suite.Check {
	check := func(name string, request func(t *suite.T) wire.Request, needs ...suite.Feature) suite.Check {
		return one("CORS-09", name, func(t *suite.T) {
			origins := []string{t.Target().CORSOrigin, corsEvil, ""}
			var answers []*wire.Response
			differ := false
			for _, origin := range origins {
				r := request(t)
				if origin != "" {
					r = r.With("Origin", origin)
				}
				answers = append(answers, t.Do(r))
				differ = differ || corsOrigin(t, answers[len(answers)-1]) != corsOrigin(t, answers[0])
			}
			if !differ {
				t.Observed("every origin gets %s %q", corsAllowOrigin, answers[0].Get(corsAllowOrigin))
				return
			}
			for i, resp := range answers {
				if vary := resp.List("Vary"); !slices.Contains(vary, "origin") && !slices.Contains(vary, "*") {
					t.Fail("the answer (%d) to the origin %q has Vary %q, although it depends on the origin", resp.Status, origins[i], vary)
				}
			}
			t.Observed("Vary names Origin")
		}, append(needs, suite.CORS)...)
	}
	return []suite.Check{
		check("stream", func(t *suite.T) wire.Request {
			return suite.Bearer(t.Get(wire.Form("match", t.Topic())), t.SubscribeAll())
		}),
		check("error", func(t *suite.T) wire.Request { return suite.Bearer(t.Get(wire.Form("match", t.Topic())), "x") }),
		check("publish", func(t *suite.T) wire.Request {
			return suite.Bearer(t.Post(wire.Form("topic", t.Topic(), "data", "x")), t.PublishAll())
		}),
		check("preflight", func(t *suite.T) wire.Request {
			return wire.Request{Method: "OPTIONS", Target: t.Target().Path()}.With("Access-Control-Request-Method", "GET").With("Access-Control-Request-Headers", "authorization")
		}),
		check("subscription-api", func(t *suite.T) wire.Request {
			return suite.Bearer(t.At(t.Target().Path()+"/subscriptions"), t.SubscribeAll())
		}, suite.Subscriptions),
	}
}
