package checks

import (
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// authHeaderFirst presents two tokens: that of the header counts, be it better or worse than that of the cookie.
func authHeaderFirst() []suite.Check {
	other := func(t *suite.T) suite.Matcher { return suite.Exact(t.Topic()) }
	check := func(name string, run func(t *suite.T)) suite.Check { return one("AUTH-16", name, run, suite.Cookie) }
	published := func(header, cookie func(t *suite.T) string) func(t *suite.T) {
		return func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenTo(topic)
			s.Want(t.PublishWith(suite.Bearer(inCookie(t, publication(t, topic), cookie(t)), header(t))))
		}
	}
	refused := func(status int, header, cookie func(t *suite.T) string) func(t *suite.T) {
		return func(t *suite.T) {
			topic := t.Topic()
			refusedQuietly(t, topic, suite.Bearer(inCookie(t, publication(t, topic), cookie(t)), header(t)), status)
		}
	}
	strong := (*suite.T).PublishAll
	weak := func(t *suite.T) string { return t.PublishToken(suite.CanPublish(other(t))) }
	bad := func(t *suite.T) string { return forged(t, suite.Publisher, suite.CanPublish(suite.Any())) }
	garbage := func(*suite.T) string { return "garbage" }
	badReader := func(t *suite.T) string { return forged(t, suite.Subscriber, suite.CanSubscribe(suite.Any())) }
	weakReader := func(t *suite.T) string { return t.SubscribeToken(suite.CanSubscribe(other(t))) }
	return []suite.Check{
		check("valid-header-bad-cookie", published(strong, bad)),
		check("valid-header-expired-cookie", published(strong, func(t *suite.T) string {
			return expired(t, suite.Publisher, suite.CanPublish(suite.Any()))
		})),
		check("valid-header-garbage-cookie", published(strong, garbage)),
		check("valid-header-empty-cookie", published(strong, func(*suite.T) string { return "" })),
		check("valid-header-valid-cookie", published(strong, strong)),
		check("strong-header-weak-cookie", published(strong, weak)),
		check("bad-header-valid-cookie", refused(401, bad, strong)),
		check("weak-header-strong-cookie", refused(403, weak, strong)),
		check("cookie-in-front-of-header", func(t *suite.T) {
			topic := t.Topic()
			r := suite.Bearer(publication(t, topic), weak(t))
			refusedQuietly(t, topic, inCookie(t, r, t.PublishAll()), 403)
		}),
		check("malformed-header-valid-cookie", func(t *suite.T) {
			topic := t.Topic()
			r := inCookie(t, publication(t, topic), t.PublishAll()).With("Authorization", "Bearer a b")
			refusedQuietly(t, topic, r)
		}),
		check("subscribe-valid-header-bad-cookie", func(t *suite.T) {
			topic := t.Topic()
			readsPrivate(t, suite.Bearer(t.InCookie(subscription(t, topic), badReader(t)), t.SubscribeAll()), topic)
		}),
		check("subscribe-strong-header-weak-cookie", func(t *suite.T) {
			topic := t.Topic()
			readsPrivate(t, suite.Bearer(t.InCookie(subscription(t, topic), weakReader(t)), t.SubscribeAll()), topic)
		}),
		check("subscribe-bad-header-valid-cookie", func(t *suite.T) {
			t.Want(suite.Bearer(t.InCookie(subscription(t, t.Topic()), t.SubscribeAll()), badReader(t)), 401)
		}),
		check("API-bad-header-valid-cookie", func(t *suite.T) {
			t.Need(suite.SubscriptionAPI)
			t.Want(suite.Bearer(t.InCookie(t.At(t.Target().Path()+"/subscriptions"), t.SubscribeAll()), badReader(t)), 401)
		}),
		check("API-weak-header-strong-cookie", func(t *suite.T) {
			t.Need(suite.SubscriptionAPI)
			t.Want(suite.Bearer(t.InCookie(t.At(t.Target().Path()+"/subscriptions"), t.SubscribeAll()), weakReader(t)), 403)
		}),
		check("subscribe-weak-header-strong-cookie", func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenWith(suite.Bearer(t.InCookie(subscription(t, topic), t.SubscribeAll()), weakReader(t)))
			t.Publish("topic", topic, "data", "x", "private", "on")
			s.Want()
		}),
	}
}

func authCookie() []suite.Check {
	bad := map[string]func(t *suite.T, role suite.Role, detail suite.Detail) string{
		"bad-signature": func(t *suite.T, role suite.Role, d suite.Detail) string { return forged(t, role, d) },
		"expired":       func(t *suite.T, role suite.Role, d suite.Detail) string { return expired(t, role, d) },
		"bad-details": func(t *suite.T, role suite.Role, d suite.Detail) string {
			return t.Sign(role, t.Claims(suite.Details(d, suite.Detail{"type": suite.DetailType})))
		},
	}
	checks := []suite.Check{
		one("AUTH-17", "valid-to-publish", func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenTo(topic)
			s.Want(t.PublishWith(inCookie(t, publication(t, topic), t.PublishAll())))
		}, suite.Cookie),
		one("AUTH-17", "valid-to-subscribe", func(t *suite.T) {
			topic := t.Topic()
			readsPrivate(t, t.InCookie(subscription(t, topic), t.SubscribeAll()), topic)
		}, suite.Cookie),
		one("AUTH-17", "weak-to-publish", func(t *suite.T) {
			topic := t.Topic()
			r := inCookie(t, publication(t, topic), t.PublishToken(suite.CanPublish(suite.Exact(t.Topic()))))
			refusedQuietly(t, topic, r, 403)
		}, suite.Cookie),
		one("AUTH-17", "no-token-at-all", func(t *suite.T) {
			topic := t.Topic()
			refusedQuietly(t, topic, inCookie(t, publication(t, topic), "garbage"), 401, 400)
		}, suite.Cookie),
		one("AUTH-17", "no-token-at-all-to-subscribe", func(t *suite.T) {
			t.Want(t.InCookie(subscription(t, t.Topic()), "garbage"), 401, 400)
		}, suite.Cookie),
	}
	for _, name := range []string{"bad-signature", "expired", "bad-details"} {
		checks = append(checks,
			one("AUTH-17", name+"-to-publish", func(t *suite.T) {
				topic := t.Topic()
				s := t.ListenTo(topic)
				wantCode(t, inCookie(t, publication(t, topic), bad[name](t, suite.Publisher, suite.CanPublish(suite.Any()))), 401, "invalid_token")
				s.Want()
			}, suite.Cookie),
			one("AUTH-17", name+"-to-subscribe", func(t *suite.T) {
				token := bad[name](t, suite.Subscriber, suite.CanSubscribe(suite.Any()))
				wantCode(t, t.InCookie(subscription(t, t.Topic()), token), 401, "invalid_token")
			}, suite.Cookie))
	}
	return checks
}

// withScheme presents a token by a scheme, written as it is.
func withScheme(r wire.Request, scheme, token string) wire.Request {
	return r.With("Authorization", scheme+" "+token)
}

func authScheme() []suite.Check {
	var checks []suite.Check
	for _, c := range []struct{ id, scheme string }{{"AUTH-19", "Bearer"}, {"AUTH-20", "bearer"}, {"AUTH-20", "BEARER"}, {"AUTH-20", "bEaReR"}} {
		checks = append(checks,
			one(c.id, c.scheme+"-to-publish", func(t *suite.T) {
				t.Want(withScheme(publication(t, t.Topic()), c.scheme, t.PublishAll()), 200)
			}),
			one(c.id, c.scheme+"-to-subscribe", func(t *suite.T) {
				topic := t.Topic()
				readsPrivate(t, withScheme(subscription(t, topic), c.scheme, t.SubscribeAll()), topic)
			}))
	}
	return checks
}

// authMalformed presents tokens in fields of the Bearer scheme that do not carry exactly one token. At the border, where
// there is one string that could be taken for a bad token, or none, 401 is tolerated (readings 4 and 17).
func authMalformed() []suite.Check {
	type presentation struct {
		name   string
		value  func(token string) string
		border bool
	}
	var checks []suite.Check
	for _, p := range []presentation{
		{"two-words", func(string) string { return "Bearer a b" }, false},
		{"token-and-word", func(token string) string { return "Bearer " + token + " x" }, false},
		{"word-and-token", func(token string) string { return "Bearer x " + token }, false},
		{"token-twice", func(token string) string { return "Bearer " + token + " " + token }, false},
		{"scheme-twice", func(token string) string { return "Bearer bearer " + token }, false},
		{"list", func(token string) string { return "Bearer " + token + ", Bearer " + token }, false},
		{"scheme-alone", func(string) string { return "Bearer" }, true},
		{"scheme-and-space", func(string) string { return "Bearer  " }, true},
		{"comma-at-the-end", func(token string) string { return "Bearer " + token + "," }, true},
		{"quoted", func(token string) string { return `Bearer "` + token + `"` }, true},
		{"parameter", func(token string) string { return "Bearer token=" + token }, true},
		{"quoted-parameter", func(token string) string { return `Bearer token="` + token + `"` }, true},
	} {
		malformed := func(t *suite.T, r wire.Request) {
			if !p.border {
				wantCode(t, r, 400, "invalid_request")
				return
			}
			if resp := t.Want(r, 400, 401); resp.Status == 400 && errorCode(resp) != "invalid_request" {
				t.Fail("400 with error=%q, wanted \"invalid_request\"", errorCode(resp))
			}
		}
		checks = append(checks,
			one("AUTH-21", p.name+"-to-publish", func(t *suite.T) {
				topic := t.Topic()
				s := t.ListenTo(topic)
				malformed(t, publication(t, topic).With("Authorization", p.value(t.PublishAll())))
				s.Want()
			}),
			one("AUTH-21", p.name+"-to-subscribe", func(t *suite.T) {
				malformed(t, subscription(t, t.Topic()).With("Authorization", p.value(t.SubscribeAll())))
			}))
	}
	return checks
}

// authOtherScheme has fields that are present, so that a cookie must not be used, and carry no Bearer token.
func authOtherScheme() []suite.Check {
	var checks []suite.Check
	for _, c := range []struct {
		name  string
		value func(token string) string
	}{
		{"Basic", func(string) string { return "Basic dXNlcjpwYXNzd29yZA==" }},
		{"Basic-with-the-token", func(token string) string { return "Basic " + token }},
		{"Digest", func(string) string { return `Digest username="u", realm="r", nonce="n", uri="/", response="0"` }},
		{"unknown-scheme", func(string) string { return "Unknown abc" }},
		{"longer-scheme", func(token string) string { return "Bearerx " + token }},
		{"token-alone", func(token string) string { return token }},
		{"empty-field", func(string) string { return "" }},
	} {
		checks = append(checks,
			one("AUTH-22", c.name+"-and-cookie-to-publish", func(t *suite.T) {
				topic := t.Topic()
				r := inCookie(t, publication(t, topic), t.PublishAll()).With("Authorization", c.value(t.PublishAll()))
				refusedQuietly(t, topic, r)
			}, suite.Cookie),
			one("AUTH-22", c.name+"-and-cookie-to-subscribe", func(t *suite.T) {
				topic := t.Topic()
				r := t.InCookie(subscription(t, topic), t.SubscribeAll()).With("Authorization", c.value(t.SubscribeAll()))
				readsPublicOnly(t, r, topic)
			}, suite.Cookie))
	}
	alone := func(value func(token string) string, status ...int) func(t *suite.T) {
		return func(t *suite.T) {
			topic := t.Topic()
			refusedQuietly(t, topic, publication(t, topic).With("Authorization", value(t.PublishAll())), status...)
		}
	}
	return append(checks,
		one("AUTH-22", "Basic-alone", alone(func(string) string { return "Basic dXNlcjpwYXNzd29yZA==" }, 401)),
		one("AUTH-22", "Basic-with-the-token", alone(func(token string) string { return "Basic " + token }, 401)),
		one("AUTH-22", "longer-scheme", alone(func(token string) string { return "Bearerx " + token }, 401, 400)),
		one("AUTH-22", "token-alone", alone(func(token string) string { return token }, 401, 400)),
	)
}

func authTwice() []suite.Check {
	type pair struct {
		name          string
		first, second func(t *suite.T, role suite.Role, detail func(...suite.Matcher) suite.Detail) string
	}
	right := func(t *suite.T, role suite.Role, detail func(...suite.Matcher) suite.Detail) string {
		return "Bearer " + t.Sign(role, t.Claims(suite.Details(detail(suite.Any()))))
	}
	bad := func(t *suite.T, role suite.Role, detail func(...suite.Matcher) suite.Detail) string {
		return "Bearer " + forged(t, role, detail(suite.Any()))
	}
	weak := func(t *suite.T, role suite.Role, detail func(...suite.Matcher) suite.Detail) string {
		return "Bearer " + t.Sign(role, t.Claims(suite.Details(detail(suite.Exact(t.Topic())))))
	}
	basic := func(*suite.T, suite.Role, func(...suite.Matcher) suite.Detail) string {
		return "Basic dXNlcjpwYXNzd29yZA=="
	}
	var checks []suite.Check
	for _, p := range []pair{
		{"right-and-right", right, right},
		{"right-and-bad", right, bad},
		{"bad-and-right", bad, right},
		{"right-and-weak", right, weak},
		{"weak-and-right", weak, right},
		{"right-and-Basic", right, basic},
		{"Basic-and-right", basic, right},
	} {
		checks = append(checks,
			one("AUTH-25", p.name+"-to-publish", func(t *suite.T) {
				topic := t.Topic()
				r := publication(t, topic).With("Authorization", p.first(t, suite.Publisher, suite.CanPublish))
				refusedQuietly(t, topic, r.With("Authorization", p.second(t, suite.Publisher, suite.CanPublish)))
			}),
			one("AUTH-25", p.name+"-to-subscribe", func(t *suite.T) {
				r := subscription(t, t.Topic()).With("Authorization", p.first(t, suite.Subscriber, suite.CanSubscribe))
				t.WantRefused(r.With("Authorization", p.second(t, suite.Subscriber, suite.CanSubscribe)))
			}))
	}
	return checks
}
