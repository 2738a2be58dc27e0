package checks

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

const (
	corsEvil = "https://evil.example"

	corsAllowOrigin = "Access-Control-Allow-Origin"
	corsAllowCreds  = "Access-Control-Allow-Credentials"
)

func corsChecks() []suite.Check {
	return slices.Concat(corsAllowed(), corsCredentials(), corsForeign(), corsLookAlikes(), corsPreflights(), corsExposed(),
		corsErrors(), corsVary())
}

// corsWay is a way to present a token, or none.
type corsWay struct {
	name   string
	cookie bool
	needs  []suite.Feature
	with   func(t *suite.T, r wire.Request) wire.Request
}

func corsWays() []corsWay {
	return []corsWay{
		{"bearer", false, nil, func(t *suite.T, r wire.Request) wire.Request { return suite.Bearer(r, t.SubscribeAll()) }},
		{"cookie", true, []suite.Feature{suite.Cookie}, func(t *suite.T, r wire.Request) wire.Request { return t.InCookie(r, t.SubscribeAll()) }},
		{"no-token", false, []suite.Feature{suite.Anonymous}, func(_ *suite.T, r wire.Request) wire.Request { return r }},
	}
}

// and gives the features that a way needs, and more.
func (w corsWay) and(more ...suite.Feature) []suite.Feature {
	return slices.Concat(w.needs, more)
}

// corsGet is a subscription request from an origin.
func corsGet(t *suite.T, origin string) wire.Request {
	return t.Get(wire.Form("match", t.Topic())).With("Origin", origin)
}

// corsOrigin is the allowed origin that an answer names. More than one field is a mistake: browsers refuse that.
func corsOrigin(t *suite.T, resp *wire.Response) string {
	all := resp.All(corsAllowOrigin)
	if len(all) > 1 {
		t.Fail("%d %s fields, wanted one at most", len(all), corsAllowOrigin)
	}
	return resp.Get(corsAllowOrigin)
}

// corsWantAllowed wants an answer that a page of the allowed origin may read. Where no cookie was sent, * says so too.
func corsWantAllowed(t *suite.T, resp *wire.Response, cookie bool) {
	got := corsOrigin(t, resp)
	if got != t.Target().CORSOrigin && (cookie || got != "*") {
		t.Fail("answered %d with %s %q, wanted %q", resp.Status, corsAllowOrigin, got, t.Target().CORSOrigin)
	}
	t.Observed("%d with %s %q", resp.Status, corsAllowOrigin, got)
}

// corsWantForeign wants an answer that does not name an origin, because a page of it must not read it.
func corsWantForeign(t *suite.T, resp *wire.Response, origin string) {
	if got := corsOrigin(t, resp); got == origin {
		t.Fail("answered %d with %s %q for the origin %q, which is not allowed", resp.Status, corsAllowOrigin, got, origin)
	}
	t.Observed("origin %q: %d with %s %q", origin, resp.Status, corsAllowOrigin, resp.Get(corsAllowOrigin))
}

// corsAllowed is CORS-01.
func corsAllowed() []suite.Check {
	var checks []suite.Check
	for _, way := range corsWays() {
		checks = append(checks, one("CORS-01", way.name, func(t *suite.T) {
			corsWantAllowed(t, t.Want(way.with(t, corsGet(t, t.Target().CORSOrigin)), 200), way.cookie)
		}, way.and(suite.CORS)...))
	}
	return append(checks,
		one("CORS-01", "query-method", func(t *suite.T) {
			r := suite.Bearer(t.Query("", wire.Form("match", t.Topic())), t.SubscribeAll()).With("Origin", t.Target().CORSOrigin)
			corsWantAllowed(t, t.Want(r, 200), false)
		}, suite.CORS, suite.QueryMethod),
		one("CORS-01", "resumed", func(t *suite.T) {
			r := suite.Bearer(corsGet(t, t.Target().CORSOrigin), t.SubscribeAll()).With("Last-Event-ID", "earliest")
			corsWantAllowed(t, t.Want(r, 200), false)
		}, suite.CORS),
		one("CORS-01", "stream-works", func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenWith(suite.Bearer(t.Get(wire.Form("match", topic)), t.SubscribeAll()).With("Origin", t.Target().CORSOrigin))
			corsWantAllowed(t, s.Response, false)
			s.Want(t.Publish("topic", topic, "data", "x"))
		}, suite.CORS),
	)
}

// corsCredentials is CORS-02 and CORS-05: answers to requests with a cookie.
func corsCredentials() []suite.Check {
	never := func(name string, request func(t *suite.T) wire.Request, needs ...suite.Feature) suite.Check {
		return one("CORS-02", name, func(t *suite.T) {
			resp := t.Do(request(t))
			if got := corsOrigin(t, resp); got == "*" {
				t.Fail("answered %d to a request with a cookie with %s *", resp.Status, corsAllowOrigin)
			}
			t.Observed("%d with %s %q", resp.Status, corsAllowOrigin, resp.Get(corsAllowOrigin))
		}, append(needs, suite.Cookie)...)
	}
	creds := func(name string, request func(t *suite.T) wire.Request, needs ...suite.Feature) suite.Check {
		return one("CORS-05", name, func(t *suite.T) {
			resp := t.Do(request(t))
			if got := resp.All(corsAllowCreds); !slices.Equal(got, []string{"true"}) {
				t.Fail("answered %d with %s %q, wanted one field: true", resp.Status, corsAllowCreds, got)
			}
			corsWantAllowed(t, resp, true)
		}, append(needs, suite.Cookie, suite.CORS)...)
	}
	good := func(t *suite.T, r wire.Request) wire.Request { return t.InCookie(r, t.SubscribeAll()) }
	return []suite.Check{
		never("allowed-origin", func(t *suite.T) wire.Request { return good(t, corsGet(t, t.Target().CORSOrigin)) }, suite.CORS),
		never("other-origin", func(t *suite.T) wire.Request { return good(t, corsGet(t, corsEvil)) }),
		never("null-origin", func(t *suite.T) wire.Request { return good(t, corsGet(t, "null")) }),
		never("no-origin", func(t *suite.T) wire.Request { return good(t, t.Get(wire.Form("match", t.Topic()))) }),
		never("bad-cookie", func(t *suite.T) wire.Request { return t.InCookie(corsGet(t, corsEvil), "x") }),
		never("bad-request", func(t *suite.T) wire.Request { return good(t, t.Get("match_nope=x").With("Origin", corsEvil)) }),
		never("publish", func(t *suite.T) wire.Request {
			return t.InCookie(t.Post(wire.Form("topic", t.Topic(), "data", "x")), t.PublishAll()).With("Origin", corsEvil)
		}),
		never("subscription-api", func(t *suite.T) wire.Request {
			return good(t, t.At(t.Target().Path()+"/subscriptions")).With("Origin", corsEvil)
		}, suite.Subscriptions),
		creds("cookie", func(t *suite.T) wire.Request { return good(t, corsGet(t, t.Target().CORSOrigin)) }),
		creds("resumed", func(t *suite.T) wire.Request {
			return good(t, corsGet(t, t.Target().CORSOrigin)).With("Last-Event-ID", "earliest")
		}),
		creds("bad-cookie", func(t *suite.T) wire.Request { return t.InCookie(corsGet(t, t.Target().CORSOrigin), "x") }),
		creds("query-method", func(t *suite.T) wire.Request {
			return good(t, t.Query("", wire.Form("match", t.Topic()))).With("Origin", t.Target().CORSOrigin)
		}, suite.QueryMethod),
		creds("preflight", func(t *suite.T) wire.Request {
			return corsPreflight(t, "", t.Target().CORSOrigin, "GET", "authorization")
		}),
		creds("subscription-api", func(t *suite.T) wire.Request {
			return good(t, t.At(t.Target().Path()+"/subscriptions")).With("Origin", t.Target().CORSOrigin)
		}, suite.Subscriptions),
	}
}

// corsForeign is CORS-03: an origin that nobody allowed is not given back, whatever the answer is.
func corsForeign() []suite.Check {
	check := func(name string, request func(t *suite.T) wire.Request, needs ...suite.Feature) suite.Check {
		return one("CORS-03", name, func(t *suite.T) { corsWantForeign(t, t.Do(request(t)), corsEvil) }, needs...)
	}
	var checks []suite.Check
	for _, way := range corsWays() {
		checks = append(checks, check(way.name, func(t *suite.T) wire.Request { return way.with(t, corsGet(t, corsEvil)) }, way.needs...))
	}
	return append(checks,
		check("query-method", func(t *suite.T) wire.Request {
			return suite.Bearer(t.Query("", wire.Form("match", t.Topic())), t.SubscribeAll()).With("Origin", corsEvil)
		}, suite.QueryMethod),
		check("bad-token", func(t *suite.T) wire.Request { return suite.Bearer(corsGet(t, corsEvil), "x") }),
		check("bad-request", func(t *suite.T) wire.Request {
			return suite.Bearer(t.Get("match_nope=x").With("Origin", corsEvil), t.SubscribeAll())
		}),
		check("publish", func(t *suite.T) wire.Request {
			return suite.Bearer(t.Post(wire.Form("topic", t.Topic(), "data", "x")), t.PublishAll()).With("Origin", corsEvil)
		}),
		check("subscription-api", func(t *suite.T) wire.Request {
			return suite.Bearer(t.At(t.Target().Path()+"/subscriptions"), t.SubscribeAll()).With("Origin", corsEvil)
		}, suite.Subscriptions),
	)
}

// corsLookAlikes is CORS-04: origins that resemble the allowed one, and are others.
func corsLookAlikes() []suite.Check {
	var checks []suite.Check
	for _, c := range []struct {
		name   string
		origin func(t *suite.T, u *url.URL) string // u is the allowed origin
	}{
		{"prefix", func(t *suite.T, _ *url.URL) string { return t.Target().CORSOrigin + ".evil.example" }},
		{"prefix-without-dot", func(_ *suite.T, u *url.URL) string { return u.Scheme + "://" + u.Hostname() + "x" }},
		{"suffix", func(_ *suite.T, u *url.URL) string { return u.Scheme + "://evil" + u.Host }},
		{"suffix-with-hyphen", func(_ *suite.T, u *url.URL) string { return u.Scheme + "://evil-" + u.Host }},
		{"other-scheme", func(_ *suite.T, u *url.URL) string { return corsOtherScheme(u) + "://" + u.Host }},
		{"other-port", func(_ *suite.T, u *url.URL) string {
			if u.Port() == "8444" {
				return u.Scheme + "://" + u.Hostname() + ":8445"
			}
			return u.Scheme + "://" + u.Hostname() + ":8444"
		}},
		{"port-prefix", func(_ *suite.T, u *url.URL) string {
			if u.Port() == "" {
				return u.Scheme + "://" + u.Host + ":4430"
			}
			return u.Scheme + "://" + u.Host + "0"
		}},
		{"sub-domain", func(_ *suite.T, u *url.URL) string { return u.Scheme + "://sub." + u.Host }},
		{"parent-domain", func(t *suite.T, u *url.URL) string {
			_, parent, ok := strings.Cut(u.Host, ".")
			if !ok || !strings.Contains(parent, ".") {
				t.Skip("the allowed origin, %q, has no parent domain that a hub could take for it; https://app.example.com would have one (-cors-origin)", t.Target().CORSOrigin)
			}
			return u.Scheme + "://" + parent
		}},
		{"null", func(*suite.T, *url.URL) string { return "null" }},
		{"upper-case", func(t *suite.T, _ *url.URL) string { return corsUpper(t) }},
		{"trailing-slash", func(t *suite.T, _ *url.URL) string { return t.Target().CORSOrigin + "/" }},
		{"path", func(t *suite.T, _ *url.URL) string { return t.Target().CORSOrigin + "/x" }},
		{"upper-case-path", func(t *suite.T, _ *url.URL) string { return corsUpper(t) + "/X" }},
		{"as-path", func(t *suite.T, _ *url.URL) string { return corsEvil + "/" + t.Target().CORSOrigin }},
		{"as-query", func(t *suite.T, _ *url.URL) string { return corsEvil + "?" + t.Target().CORSOrigin }},
		{"as-user", func(_ *suite.T, u *url.URL) string { return u.Scheme + "://" + u.Host + "@evil.example" }},
		{"with-user", func(_ *suite.T, u *url.URL) string { return u.Scheme + "://evil@" + u.Host }},
		{"any-character-for-a-dot", func(t *suite.T, u *url.URL) string {
			if !strings.Contains(u.Host, ".") {
				t.Skip("the allowed origin, %q, has no dot that a hub could take for any character; https://app.example.com would have one (-cors-origin)", t.Target().CORSOrigin)
			}
			return u.Scheme + "://" + strings.Replace(u.Host, ".", "x", 1)
		}},
		{"trailing-dot", func(_ *suite.T, u *url.URL) string {
			return strings.Replace(u.Scheme+"://"+u.Host, u.Hostname(), u.Hostname()+".", 1)
		}},
		{"list-first", func(t *suite.T, _ *url.URL) string { return t.Target().CORSOrigin + ", " + corsEvil }},
		{"list-last", func(t *suite.T, _ *url.URL) string { return corsEvil + ", " + t.Target().CORSOrigin }},
		{"spaced-list", func(t *suite.T, _ *url.URL) string { return corsEvil + " " + t.Target().CORSOrigin }},
		{"without-scheme", func(_ *suite.T, u *url.URL) string { return u.Host }},
		{"wildcard-host", func(_ *suite.T, u *url.URL) string { return u.Scheme + "://*" }},
	} {
		checks = append(checks, one("CORS-04", c.name, func(t *suite.T) {
			u, err := url.Parse(t.Target().CORSOrigin)
			if err != nil || u.Host == "" {
				t.Fail("the origin that is said to be allowed, %q, is none", t.Target().CORSOrigin)
			}
			origin := c.origin(t, u)
			r := corsGet(t, origin)
			if t.Target().Has(suite.Cookie) {
				r = t.InCookie(r, t.SubscribeAll())
			} else {
				r = suite.Bearer(r, t.SubscribeAll())
			}
			corsWantForeign(t, t.Do(r), origin)
		}, suite.CORS))
	}
	return append(checks, one("CORS-04", "two-fields", func(t *suite.T) {
		corsWantForeign(t, t.Do(suite.Bearer(corsGet(t, corsEvil).With("Origin", t.Target().CORSOrigin), t.SubscribeAll())), corsEvil)
		corsWantForeign(t, t.Do(suite.Bearer(corsGet(t, t.Target().CORSOrigin).With("Origin", corsEvil), t.SubscribeAll())), corsEvil)
	}, suite.CORS))
}

func corsOtherScheme(u *url.URL) string {
	if u.Scheme == "https" {
		return "http"
	}
	return "https"
}

// corsUpper is the allowed origin in upper case. Browsers write origins in lower case, and compare them as they are.
func corsUpper(t *suite.T) string {
	return strings.ToUpper(t.Target().CORSOrigin)
}

// corsDocument gives a path of the subscription API that shows the one subscription of a stream.
func corsDocument(t *suite.T, collection string) string {
	var document struct {
		Subscriptions []struct {
			ID string `json:"id"`
		} `json:"subscriptions"`
	}
	actSoon(t, func() string {
		resp := t.Do(suite.Bearer(t.At(collection), t.SubscribeAll()))
		if err := json.Unmarshal([]byte(resp.Body), &document); resp.Status != 200 || err != nil || len(document.Subscriptions) == 0 {
			return "the collection of a live subscription lists none"
		}
		return ""
	})
	return document.Subscriptions[0].ID
}
