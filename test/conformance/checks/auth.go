package checks

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

func authChecks() []suite.Check {
	return slices.Concat(
		authNeeded(), authForm(), authMechanisms(), authParameters(), authHeaderFirst(), authCookie(),
		authScheme(), authMalformed(), authOtherScheme(), authTwice(),
	)
}

// inCookie presents a publisher's token in the cookie, as a page of an allowed origin would.
func inCookie(t *suite.T, r wire.Request, token string) wire.Request {
	return t.InCookie(r, token).With("Origin", t.Target().PublishOrigin)
}

// publication is a publication on a topic, without a token.
func publication(t *suite.T, topic string) wire.Request {
	return t.Post(wire.Form("topic", topic, "data", "x"))
}

// subscription is a subscription to a topic, without a token.
func subscription(t *suite.T, topic string) wire.Request { return t.Get(wire.Form("match", topic)) }

// readsPrivate says that a subscription to a topic, with the token that it presents, receives private updates.
func readsPrivate(t *suite.T, r wire.Request, topic string) {
	s := t.ListenWith(r)
	s.Want(t.Publish("topic", topic, "data", "x", "private", "on"))
}

// readsPublicOnly says that a subscription to a topic is refused or receives public updates alone.
func readsPublicOnly(t *suite.T, r wire.Request, topic string) {
	resp, err := t.Try(r)
	switch {
	case err != nil:
		t.Fail("no answer: %v", err)
	case resp.Status >= 400 && resp.Status < 500:
		t.Observed("refused with %d", resp.Status)
	case resp.Stream == nil:
		t.Fail("answered %d", resp.Status)
	default:
		resp.Close()
		s := t.ListenWith(r)
		t.Publish("topic", topic, "data", "x", "private", "on")
		s.Want()
	}
}

func authNeeded() []suite.Check {
	anonymous := func(query func(topic string) string) func(t *suite.T) {
		return func(t *suite.T) {
			topic, mark := t.Topic(), t.Unique("mark")
			s := t.ListenWith(t.Get(query(topic)))
			t.Publish("topic", topic, "data", mark, "private", "on")
			s.WantOwn(mark)
		}
	}
	exact := func(topic string) string { return wire.Form("match", topic) }
	pattern := func(topic string) string { return wire.Form("match_urlpattern", topic) }
	all := func(string) string { return "match=*" }
	closed := func(send func(t *suite.T) wire.Request, needs ...suite.Feature) suite.Check {
		name := "GET"
		if slices.Contains(needs, suite.QueryMethod) {
			name = "QUERY"
		}
		return one("AUTH-04", name, func(t *suite.T) { wantCode(t, send(t), 401, "") }, append(needs, suite.Closed)...)
	}
	return []suite.Check{
		one("AUTH-01", "no-token", func(t *suite.T) {
			topic := t.Topic()
			refusedQuietly(t, topic, publication(t, topic), 401)
		}),
		one("AUTH-01", "private", func(t *suite.T) {
			topic := t.Topic()
			refusedQuietly(t, topic, t.Post(wire.Form("topic", topic, "data", "x", "private", "on")), 401)
		}),
		one("AUTH-01", "own-origin", func(t *suite.T) {
			topic := t.Topic()
			refusedQuietly(t, topic, publication(t, topic).With("Origin", t.Target().Origin()), 401)
		}),
		one("AUTH-02", "exact", anonymous(exact), suite.Anonymous),
		one("AUTH-02", "urlpattern", anonymous(pattern), suite.Anonymous),
		one("AUTH-02", "wildcard", anonymous(all), suite.Anonymous),
		one("AUTH-02", "alternate", func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenWith(subscription(t, topic))
			t.Publish("topic", t.Topic(), "topic", topic, "data", "x", "private", "on")
			s.Want()
		}, suite.Anonymous),
		one("AUTH-02", "with-token", func(t *suite.T) {
			topic := t.Topic()
			readsPrivate(t, suite.Bearer(subscription(t, topic), t.SubscribeAll()), topic)
		}),
		one("AUTH-03", "public", func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenWith(subscription(t, topic))
			s.Want(t.Publish("topic", topic, "data", "x"))
		}, suite.Anonymous),
		closed(func(t *suite.T) wire.Request { return subscription(t, t.Topic()) }),
		closed(func(t *suite.T) wire.Request { return t.Query("", wire.Form("match", t.Topic())) }, suite.QueryMethod),
		one("AUTH-04", "with-token", func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenTo(topic)
			s.Want(t.Publish("topic", topic, "data", "x"))
		}, suite.Closed),
	}
}

// authForm presents what is no JWS in compact form, made of tokens that are right otherwise. A string that is no JWS may
// be called malformed too (reading 17).
func authForm() []suite.Check {
	refused := func(name string, change func(t *suite.T, header, payload, signature string) string) []suite.Check {
		present := func(t *suite.T, role suite.Role, detail suite.Detail) string {
			h, p, s, err := t.Claims(suite.Details(detail)).Parts(t.Key(role))
			if err != nil {
				t.Fail("the suite cannot sign: %v", err)
			}
			return change(t, h, p, s)
		}
		return []suite.Check{
			one("AUTH-05", name+"-to-publish", func(t *suite.T) {
				topic := t.Topic()
				token := present(t, suite.Publisher, suite.CanPublish(suite.Any()))
				refusedQuietly(t, topic, suite.Bearer(publication(t, topic), token), 401, 400)
			}),
			one("AUTH-05", name+"-to-subscribe", func(t *suite.T) {
				t.Want(suite.Bearer(subscription(t, t.Topic()), present(t, suite.Subscriber, suite.CanSubscribe(suite.Any()))), 401, 400)
			}),
		}
	}
	object := func(t *suite.T, o jose.Object) string {
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fail("the suite cannot encode: %v", err)
		}
		return string(raw)
	}
	flattened := func(t *suite.T, h, p, s string) string {
		return object(t, jose.Object{"protected": h, "payload": p, "signature": s})
	}
	return slices.Concat(
		refused("flattened-JSON", flattened),
		refused("encoded-flattened-JSON", func(t *suite.T, h, p, s string) string {
			return base64.RawURLEncoding.EncodeToString([]byte(flattened(t, h, p, s)))
		}),
		refused("general-JSON", func(t *suite.T, h, p, s string) string {
			return object(t, jose.Object{"payload": p, "signatures": []jose.Object{{"protected": h, "signature": s}}})
		}),
		refused("JWE", func(_ *suite.T, h, p, s string) string {
			header := jose.Encode([]byte(`{"alg":"dir","enc":"A256GCM","typ":"at+jwt","cty":"JWT"}`))
			return strings.Join([]string{header, "", jose.Encode(make([]byte, 12)), jose.Encode([]byte(h + "." + p + "." + s)), jose.Encode(make([]byte, 16))}, ".")
		}),
		refused("opaque", func(t *suite.T, _, _, _ string) string { return t.Unique("opaque") }),
		refused("unsigned-claims", func(_ *suite.T, _, p, _ string) string { return p }),
		refused("two-parts", func(_ *suite.T, h, p, _ string) string { return h + "." + p }),
		refused("fourth-part", func(_ *suite.T, h, p, s string) string { return h + "." + p + "." + s + ".x" }),
		refused("five-parts", func(_ *suite.T, h, p, s string) string { return h + "." + p + "." + s + ".x.y" }),
		refused("dot-at-the-end", func(_ *suite.T, h, p, s string) string { return h + "." + p + "." + s + "." }),
		refused("dot-in-front", func(_ *suite.T, h, p, s string) string { return "." + h + "." + p + "." + s }),
		[]suite.Check{one("AUTH-05", "compact", func(t *suite.T) {
			topic := t.Topic()
			readsPrivate(t, suite.Bearer(subscription(t, topic), t.SubscribeAll()), topic)
		})},
	)
}

func authMechanisms() []suite.Check {
	publishes := func(present func(t *suite.T, r wire.Request, token string) wire.Request) func(t *suite.T) {
		return func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenTo(topic)
			s.Want(t.PublishWith(present(t, publication(t, topic), t.PublishAll())))
		}
	}
	subscribes := func(present func(t *suite.T, r wire.Request, token string) wire.Request) func(t *suite.T) {
		return func(t *suite.T) {
			topic := t.Topic()
			readsPrivate(t, present(t, subscription(t, topic), t.SubscribeAll()), topic)
		}
	}
	header := func(_ *suite.T, r wire.Request, token string) wire.Request { return suite.Bearer(r, token) }
	return []suite.Check{
		one("AUTH-11", "header-to-publish", publishes(header)),
		one("AUTH-11", "header-to-subscribe", subscribes(header)),
		one("AUTH-11", "cookie-to-publish", publishes(inCookie), suite.Cookie),
		one("AUTH-11", "cookie-to-subscribe", subscribes((*suite.T).InCookie), suite.Cookie),
	}
}

// authParameters presents tokens in the query component and in the body, where a hub must not look.
func authParameters() []suite.Check {
	withQuery := func(r wire.Request, pairs ...string) wire.Request {
		join := "?"
		if strings.Contains(r.Target, "?") {
			join = "&"
		}
		r.Target += join + wire.Form(pairs...)
		return r
	}
	var checks []suite.Check
	for _, name := range []string{"access_token", "authorization", "token", "bearer"} {
		checks = append(checks,
			one("AUTH-12", "POST-"+name, func(t *suite.T) {
				topic := t.Topic()
				refusedQuietly(t, topic, withQuery(publication(t, topic), name, t.PublishAll()), 401)
			}),
			one("AUTH-12", "GET-"+name, func(t *suite.T) {
				topic := t.Topic()
				readsPublicOnly(t, withQuery(subscription(t, topic), name, t.SubscribeAll()), topic)
			}),
			one("AUTH-13", "POST-"+name, func(t *suite.T) {
				topic := t.Topic()
				refusedQuietly(t, topic, t.Post(wire.Form("topic", topic, "data", "x", name, t.PublishAll())), 401)
			}))
	}
	weak := func(t *suite.T, r wire.Request) wire.Request {
		return suite.Bearer(r, t.PublishToken(suite.CanPublish(suite.Exact(t.Topic()))))
	}
	return append(checks,
		// A token elsewhere adds nothing to that of the header; refusing the request for it is fine.
		one("AUTH-12", "POST-beside-weaker-header", func(t *suite.T) {
			topic := t.Topic()
			refusedQuietly(t, topic, weak(t, withQuery(publication(t, topic), "access_token", t.PublishAll())))
		}),
		one("AUTH-12", "GET-beside-weaker-header", func(t *suite.T) {
			topic := t.Topic()
			token := t.SubscribeToken(suite.CanSubscribe(suite.Exact(t.Topic())))
			readsPublicOnly(t, suite.Bearer(withQuery(subscription(t, topic), "access_token", t.SubscribeAll()), token), topic)
		}),
		one("AUTH-12", "API", func(t *suite.T) {
			t.Need(suite.SubscriptionAPI)
			t.Want(withQuery(t.At(t.Target().Path()+"/subscriptions"), "access_token", t.SubscribeAll()), 401)
		}, suite.Subscriptions),
		one("AUTH-12", "GET-on-closed-hub", func(t *suite.T) {
			t.Want(withQuery(subscription(t, t.Topic()), "access_token", t.SubscribeAll()), 401)
		}, suite.Closed),
		one("AUTH-13", "POST-beside-weaker-header", func(t *suite.T) {
			topic := t.Topic()
			refusedQuietly(t, topic, weak(t, t.Post(wire.Form("topic", topic, "data", "x", "access_token", t.PublishAll()))))
		}),
		one("AUTH-13", "POST-in-front", func(t *suite.T) {
			topic := t.Topic()
			refusedQuietly(t, topic, t.Post(wire.Form("access_token", t.PublishAll(), "topic", topic, "data", "x")), 401)
		}),
		one("AUTH-13", "QUERY", func(t *suite.T) {
			topic := t.Topic()
			readsPublicOnly(t, t.Query("", wire.Form("match", topic, "access_token", t.SubscribeAll())), topic)
		}, suite.QueryMethod),
	)
}
