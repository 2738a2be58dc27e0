package checks

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

func errorsChecks() []suite.Check {
	return slices.Concat(errMissing(), errInvalid(), errScope(), errMalformed(), errChallenges(), errReasons())
}

// errRequest is a request that a hub refuses, with the answer that it must get.
type errRequest struct {
	name   string
	needs  []suite.Feature
	send   func(t *suite.T) wire.Request
	status int
	code   string // empty: a challenge without one
}

// with gives a request that is changed, such as by presenting a token.
func (e errRequest) with(send func(t *suite.T, r wire.Request) wire.Request, name string, status int, code string) errRequest {
	base := e.send
	e.name, e.status, e.code = e.name+"-"+name, status, code
	e.send = func(t *suite.T) wire.Request { return send(t, base(t)) }
	return e
}

func errPublish() errRequest {
	return errRequest{name: "publish", send: func(t *suite.T) wire.Request { return publication(t, t.Topic()) }}
}

func errSubscribe() errRequest {
	return errRequest{name: "subscribe", send: func(t *suite.T) wire.Request { return subscription(t, t.Topic()) }}
}

func errAPI() errRequest {
	return errRequest{name: "API", needs: []suite.Feature{suite.Subscriptions}, send: func(t *suite.T) wire.Request {
		t.Need(suite.SubscriptionAPI)
		return t.At(t.Target().Path() + "/subscriptions")
	}}
}

// errWithout are the requests without a token where one is needed.
func errWithout() []errRequest {
	none := func(_ *suite.T, r wire.Request) wire.Request { return r }
	subscribe := errSubscribe()
	subscribe.needs = append(subscribe.needs, suite.Closed)
	return []errRequest{
		errPublish().with(none, "without-token", 401, ""),
		subscribe.with(none, "without-token", 401, ""),
		errAPI().with(none, "without-token", 401, ""),
	}
}

// errWith are the requests with a token that fails validation.
func errWith() []errRequest {
	publish := func(t *suite.T, r wire.Request) wire.Request {
		return suite.Bearer(r, forged(t, suite.Publisher, suite.CanPublish(suite.Any())))
	}
	subscribe := func(t *suite.T, r wire.Request) wire.Request {
		return suite.Bearer(r, forged(t, suite.Subscriber, suite.CanSubscribe(suite.Any())))
	}
	return []errRequest{
		errPublish().with(publish, "bad-signature", 401, "invalid_token"),
		errSubscribe().with(subscribe, "bad-signature", 401, "invalid_token"),
		errAPI().with(subscribe, "bad-signature", 401, "invalid_token"),
	}
}

// errWeak are the requests with a valid token that does not suffice.
func errWeak() []errRequest {
	return []errRequest{
		errPublish().with(func(t *suite.T, r wire.Request) wire.Request {
			return suite.Bearer(r, t.PublishToken(suite.CanPublish(suite.Exact(t.Topic()))))
		}, "other-topic", 403, "insufficient_scope"),
		errAPI().with(func(t *suite.T, r wire.Request) wire.Request {
			return suite.Bearer(r, t.SubscribeToken(suite.CanSubscribe(suite.Exact(t.Topic()))))
		}, "other-topic", 403, "insufficient_scope"),
	}
}

// errPresented are the requests that present a token wrongly.
func errPresented() []errRequest {
	two := func(_ *suite.T, r wire.Request) wire.Request { return r.With("Authorization", "Bearer a b") }
	return []errRequest{
		errPublish().with(two, "two-words", 400, "invalid_request"),
		errSubscribe().with(two, "two-words", 400, "invalid_request"),
		errAPI().with(two, "two-words", 400, "invalid_request"),
	}
}

// errEach makes a check of each request.
func errEach(id string, requests []errRequest, look func(t *suite.T, e errRequest), needs ...suite.Feature) []suite.Check {
	checks := make([]suite.Check, len(requests))
	for i, e := range requests {
		checks[i] = one(id, e.name, func(t *suite.T) { look(t, e) }, slices.Concat(e.needs, needs)...)
	}
	return checks
}

func errMissing() []suite.Check {
	return slices.Concat(
		errEach("ERR-01", errWithout(), func(t *suite.T, e errRequest) {
			if _, ok := bearerOf(t.Want(e.send(t), 401)); !ok {
				t.Fail("401 without a Bearer challenge")
			}
		}),
		errEach("ERR-02", errWithout(), func(t *suite.T, e errRequest) { wantCode(t, e.send(t), 401, "") }),
		errEach("ERR-03", errWithout(), wantMetadata, suite.Metadata),
	)
}

// wantMetadata says that the challenge points to the hub's metadata, by an absolute URL.
func wantMetadata(t *suite.T, e errRequest) {
	c, _ := bearerOf(t.Want(e.send(t), e.status))
	value, ok := c.Get("resource_metadata")
	if !ok {
		t.Fail("the challenge has no resource_metadata")
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		t.Fail("resource_metadata is %q, which is no absolute URL", value)
	}
	if value == t.Target().MetadataURL() {
		return
	}
	// Another spelling is fine when it leads there.
	resp := t.Fetch(value, wire.Request{Method: "GET"})
	var meta jose.Object
	if err := json.Unmarshal([]byte(resp.Body), &meta); err != nil || resp.Status != 200 || meta["resource"] != t.Target().Resource {
		t.Fail("%s, to which resource_metadata points, is not the hub's metadata", value)
	}
}

func errInvalid() []suite.Check {
	code := func(t *suite.T, e errRequest) { wantCode(t, e.send(t), e.status, e.code) }
	var bad []errRequest
	detail := func(name string, value any) func(action string) suite.Detail {
		return func(action string) suite.Detail {
			d := suite.Grant(action, suite.Any())
			d[name] = value
			return d
		}
	}
	for _, c := range []struct {
		name   string
		detail func(action string) suite.Detail
	}{
		{"no-actions", detail("actions", []string{})},
		{"no-topics", detail("topics", []suite.Matcher{})},
		{"unknown-matcher-type", detail("topics", []suite.Matcher{{"match": "x", "match_type": "nope"}})},
		{"ill-formed-pattern", detail("topics", []suite.Matcher{suite.Pattern("https://example.com/(")})},
		{"payload-of-wrong-type", detail("payload", "x")},
	} {
		bad = append(bad,
			errPublish().with(func(t *suite.T, r wire.Request) wire.Request {
				return suite.Bearer(r, t.PublishToken(suite.CanPublish(suite.Any()), c.detail("publish")))
			}, c.name, 401, "invalid_token"),
			errSubscribe().with(func(t *suite.T, r wire.Request) wire.Request {
				return suite.Bearer(r, t.SubscribeToken(suite.CanSubscribe(suite.Any()), c.detail("subscribe")))
			}, c.name, 401, "invalid_token"))
	}
	expiredToken := []errRequest{
		errPublish().with(func(t *suite.T, r wire.Request) wire.Request {
			return suite.Bearer(r, expired(t, suite.Publisher, suite.CanPublish(suite.Any())))
		}, "expired", 401, "invalid_token"),
		errSubscribe().with(func(t *suite.T, r wire.Request) wire.Request {
			return suite.Bearer(r, expired(t, suite.Subscriber, suite.CanSubscribe(suite.Any())))
		}, "expired", 401, "invalid_token"),
	}
	return slices.Concat(
		errEach("ERR-04", append(errWith(), expiredToken...), code),
		// A token that was accepted vouches for no other signature.
		[]suite.Check{one("ERR-04", "publish-bad-signature-after-a-good-one", func(t *suite.T) {
			token := t.PublishAll()
			t.Want(suite.Bearer(publication(t, t.Topic()), token), 200)
			wantCode(t, suite.Bearer(publication(t, t.Topic()), tampered(t, token)), 401, "invalid_token")
		})},
		errEach("ERR-05", bad, code),
		errEach("ERR-06", append(errWeak(),
			errPublish().with(func(t *suite.T, r wire.Request) wire.Request { return suite.Bearer(r, t.PublishToken()) }, "no-details", 403, "insufficient_scope"),
			errRequest{
				name: "publish-one-topic-of-two", status: 403, code: "insufficient_scope",
				send: func(t *suite.T) wire.Request {
					granted := t.Topic()
					r := t.Post(wire.Form("topic", granted, "topic", t.Topic(), "data", "x"))
					return suite.Bearer(r, t.PublishToken(suite.CanPublish(suite.Exact(granted))))
				},
			},
			errRequest{
				name: "publish-private", status: 403, code: "insufficient_scope",
				send: func(t *suite.T) wire.Request {
					r := t.Post(wire.Form("topic", t.Topic(), "data", "x", "private", "on"))
					return suite.Bearer(r, t.PublishToken(suite.CanPublish(suite.Exact(t.Topic()))))
				},
			},
			errRequest{
				name: "publish-with-subscribe-grant", status: 403, code: "insufficient_scope", needs: []suite.Feature{suite.OneKey},
				send: func(t *suite.T) wire.Request {
					return suite.Bearer(publication(t, t.Topic()), t.PublishToken(suite.CanSubscribe(suite.Any())))
				},
			},
		), code),
	)
}

// errScope has requests by cookie, whose answers are the same.
func errScope() []suite.Check {
	cookie := func(name string, status int, code string, send func(t *suite.T) wire.Request) suite.Check {
		id := map[int]string{401: "ERR-04", 403: "ERR-06"}[status]
		return one(id, "cookie-"+name, func(t *suite.T) { wantCode(t, send(t), status, code) }, suite.Cookie)
	}
	return []suite.Check{
		cookie("publish-bad-signature", 401, "invalid_token", func(t *suite.T) wire.Request {
			return inCookie(t, publication(t, t.Topic()), forged(t, suite.Publisher, suite.CanPublish(suite.Any())))
		}),
		cookie("subscribe-bad-signature", 401, "invalid_token", func(t *suite.T) wire.Request {
			return t.InCookie(subscription(t, t.Topic()), forged(t, suite.Subscriber, suite.CanSubscribe(suite.Any())))
		}),
		cookie("publish-other-topic", 403, "insufficient_scope", func(t *suite.T) wire.Request {
			return inCookie(t, publication(t, t.Topic()), t.PublishToken(suite.CanPublish(suite.Exact(t.Topic()))))
		}),
	}
}

// errBad are requests that are malformed whatever the token.
func errBad() []errRequest {
	publish := func(form string) func(t *suite.T) wire.Request {
		return func(t *suite.T) wire.Request { return suite.Bearer(t.Post(form), t.PublishAll()) }
	}
	subscribe := func(query string) func(t *suite.T) wire.Request {
		return func(t *suite.T) wire.Request { return suite.Bearer(t.Get(query), t.SubscribeAll()) }
	}
	return []errRequest{
		{name: "publish-without-topic", send: publish("data=x")},
		{name: "publish-bad-topic", send: publish("topic=a%00b")},
		{name: "publish-reserved-type", send: func(t *suite.T) wire.Request { return pubPost(t, pubForm(t.Topic(), "type=mercure")) }},
		{name: "publish-reserved-topic", send: func(t *suite.T) wire.Request { return pubPost(t, wire.Form("topic", t.Target().Path()+"/x")) }},
		{name: "subscribe-unknown-matcher", send: subscribe("match=x&match_nope=x")},
		{name: "subscribe-bad-matcher", send: subscribe("match=a%00b")},
		{name: "subscribe-ill-formed-pattern", send: subscribe("match_urlpattern=https%3A%2F%2Fexample.com%2F(")},
	}
}

func errMalformed() []suite.Check {
	return slices.Concat(
		errEach("ERR-07", errBad(), func(t *suite.T, e errRequest) { t.Want(e.send(t), 400) }),
		errEach("ERR-08", errPresented(), func(t *suite.T, e errRequest) { wantCode(t, e.send(t), 400, "invalid_request") }),
		errEach("ERR-12", errBad(), func(t *suite.T, e errRequest) {
			resp := t.Want(e.send(t), 400)
			if resp.MediaType() != "application/problem+json" {
				t.Observed("no problem details: %q", resp.MediaType())
				return
			}
			var problem jose.Object
			if err := json.Unmarshal([]byte(resp.Body), &problem); err != nil || problem == nil {
				t.Fail("the problem details are no JSON object: %v", err)
			}
			if code := bodyCode(resp); code != "" {
				t.Fail("the problem details repeat the code %s", code)
			}
			if status, ok := problem["status"]; ok && status != float64(400) {
				t.Fail("the problem details say status %v", status)
			}
			t.Observed("problem details of type %v", problem["type"])
		}),
		errEach("ERR-14", errBad(), func(t *suite.T, e errRequest) {
			switch code := errorCode(t.Want(e.send(t), 400)); code {
			case "":
				t.Observed("no OAuth code")
			case "invalid_request":
				t.Observed("the hub chose error=%q", code)
			default:
				t.Fail("400 for a reason that has nothing to do with the token, with error=%q", code)
			}
		}),
	)
}

// bodyCode gives the OAuth code that is a field of a JSON body, or nothing.
func bodyCode(resp *wire.Response) string {
	var body jose.Object
	if json.Unmarshal([]byte(resp.Body), &body) != nil {
		return ""
	}
	code, _ := body["error"].(string)
	if !slices.Contains([]string{"invalid_request", "invalid_token", "insufficient_scope"}, code) {
		return ""
	}
	return code
}

// errChallenges looks at the challenges of all kinds.
func errChallenges() []suite.Check {
	tokens := slices.Concat(errWithout(), errWith(), errWeak())
	return slices.Concat(
		errEach("ERR-09", tokens, func(t *suite.T, e errRequest) {
			resp := t.Want(e.send(t), e.status)
			if _, ok := bearerOf(resp); !ok {
				t.Fail("%d without a Bearer challenge", e.status)
			}
			if got := errorCode(resp); got != e.code {
				t.Fail("the challenge has error=%q, wanted %q", got, e.code)
			}
			if code := bodyCode(resp); code != "" {
				t.Fail("the code %s is a body field", code)
			}
		}),
		errEach("ERR-10", append(errWith(), errWeak()...), wantMetadata, suite.Metadata),
		errEach("ERR-11", append(tokens, errPresented()...), func(t *suite.T, e errRequest) {
			resp := t.Want(e.send(t), e.status)
			all, faults := challengesOf(resp)
			if len(faults) > 0 {
				t.Fail("WWW-Authenticate: %s", strings.Join(faults, "; "))
			}
			errors := 0
			for _, c := range all {
				for _, p := range c.Params {
					if fault := paramFault(p); c.Scheme == "bearer" && fault != "" {
						t.Fail("%s=%q %s", p.Name, p.Value, fault)
					}
					if c.Scheme == "bearer" && p.Name == "error" {
						errors++
					}
				}
				if c.Scheme == "bearer" && c.Token68 != "" {
					t.Fail("the Bearer challenge has a token68")
				}
			}
			if errors > 1 {
				t.Fail("%d error parameters", errors)
			}
		}),
	)
}

// paramFault says what RFC 6750 section 3 and RFC 9110 section 11.5 do not allow a parameter of a Bearer challenge to be.
func paramFault(p authParam) string {
	outside := func(besides string) bool {
		return strings.ContainsFunc(p.Value, func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(besides, r) })
	}
	switch p.Name {
	case "realm":
		if !p.Quoted {
			return "is not quoted"
		}
	case "error", "error_description":
		if p.Value == "" || outside(`"\`) {
			return "has characters that are not allowed"
		}
	case "error_uri", "scope":
		if p.Value == "" || outside(`"\`) || p.Name == "error_uri" && strings.Contains(p.Value, " ") {
			return "has characters that are not allowed"
		}
	}
	return ""
}

// errReasons compares the answers to tokens that fail for other reasons with that to a bad signature.
func errReasons() []suite.Check {
	type reason struct {
		name  string
		spoil func(token jose.Token)
	}
	claim := func(name string, value any) func(token jose.Token) {
		return func(token jose.Token) { token.Claims[name] = value }
	}
	at := func(name string, d time.Duration) func(token jose.Token) {
		return func(token jose.Token) { token.Claims[name] = time.Now().Add(d).Unix() }
	}
	var checks []suite.Check
	for _, c := range []reason{
		{"expired", at("exp", -time.Hour)},
		{"not-yet-valid", at("nbf", time.Hour)},
		{"wrong-audience", claim("aud", "https://other.example/")},
		{"no-audience", claim("aud", nil)},
		{"unknown-issuer", claim("iss", "https://unknown.example/")},
		{"no-issuer", claim("iss", nil)},
		{"no-expiry", claim("exp", nil)},
		{"wrong-type", func(token jose.Token) { token.Header["typ"] = "JWT" }},
		{"unknown-algorithm", func(token jose.Token) { token.Header["alg"] = "XX256" }},
		{"bad-details", claim("authorization_details", []suite.Detail{{"type": suite.DetailType}})},
	} {
		compare := func(t *suite.T, role suite.Role, detail suite.Detail, request func(t *suite.T) wire.Request) {
			base := t.Do(suite.Bearer(request(t), forged(t, role, detail)))
			resp := t.Do(suite.Bearer(request(t), spoilt(t, role, c.spoil, detail)))
			if resp.Status != base.Status || errorCode(resp) != errorCode(base) {
				t.Fail("answered %d with error=%q, a bad signature %d with error=%q", resp.Status, errorCode(resp), base.Status, errorCode(base))
			}
			t.Observed("both %d with error=%q", resp.Status, errorCode(resp))
		}
		checks = append(checks,
			one("ERR-13", "publish-"+c.name, func(t *suite.T) {
				compare(t, suite.Publisher, suite.CanPublish(suite.Any()), errPublish().send)
			}),
			one("ERR-13", "subscribe-"+c.name, func(t *suite.T) {
				compare(t, suite.Subscriber, suite.CanSubscribe(suite.Any()), errSubscribe().send)
			}))
	}
	return checks
}
