package checks

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

func cookieChecks() []suite.Check {
	checks := []suite.Check{
		one("COOKIE-01", "advertised", func(t *suite.T) {
			if name := advertisedCookie(t); name != t.Target().CookieName {
				t.Fail("mercure_cookie is %v, the configured name %q", name, t.Target().CookieName)
			}
		}, suite.Cookie, suite.Metadata),
		// Another name than the recommended one is allowed, so it is noted only.
		one("COOKIE-03", "name", func(t *suite.T) {
			name, ok := advertisedCookie(t).(string)
			switch {
			case !ok || name == "" || strings.ContainsFunc(name, func(r rune) bool { return r > 0x7E || !tokenByte(byte(r)) }):
				t.Fail("mercure_cookie is %+q, which cannot name a cookie", name)
			case name == "__Secure-mercure_access_token":
				t.Observed("the recommended name")
			default:
				t.Observed("the name is %q", name)
			}
		}, suite.Cookie, suite.Metadata),
	}
	return append(append(checks, cookieFound()...), cookieEverywhere()...)
}

// advertisedCookie gives the member mercure_cookie of the metadata, whatever it is.
func advertisedCookie(t *suite.T) any {
	resp := t.Fetch(t.Target().MetadataURL(), wire.Request{Method: "GET"})
	var meta jose.Object
	if err := json.Unmarshal([]byte(resp.Body), &meta); err != nil || resp.Status != 200 {
		t.Fail("the metadata is answered with %d and no JSON object", resp.Status)
	}
	return meta["mercure_cookie"]
}

// cookieFound has Cookie fields in which the hub's cookie stands beside others, or only cookies that look like it. NAME
// and TOKEN stand for its name and value, UPPER and LOWER for the name in another case, OTHER for another name.
func cookieFound() []suite.Check {
	fill := func(t *suite.T, field, token string) string {
		name := t.Target().CookieName
		upper, lower := otherCase(name, strings.ToUpper(name)), otherCase(name, strings.ToLower(name))
		if strings.Contains(field, "UPPER") && upper == name || strings.Contains(field, "LOWER") && lower == name {
			t.Skip("the hub's cookie has a name without letters, %q: it has no other case, and the same name would be the hub's own cookie", name)
		}
		other := "other"
		if name == other {
			other = "another"
		}
		return strings.NewReplacer("NAME", name, "TOKEN", token, "UPPER", upper, "LOWER", lower, "OTHER", other).Replace(field)
	}
	var checks []suite.Check
	both := func(name string, publish, subscribe func(t *suite.T)) {
		checks = append(checks, one("COOKIE-09", name+"-to-publish", publish, suite.Cookie), one("COOKIE-09", name+"-to-subscribe", subscribe, suite.Cookie))
	}
	many := strings.Repeat("c=v; ", 40)
	for _, c := range []struct{ name, field string }{
		{"among-others", "a=b; NAME=TOKEN; c=d"},
		{"first", "NAME=TOKEN; a=b"},
		{"last", "a=b; NAME=TOKEN"},
		{"after-many", many + "NAME=TOKEN"},
		{"among-odd-ones", `flag; empty=; NAME=TOKEN; x=a=b; q="c"`},
		{"after-one-that-ends-alike", "xNAME=a; NAME=TOKEN"},
		{"after-one-that-begins-alike", "NAMEx=a; NAME=TOKEN"},
		{"after-another-case", "UPPER=a; LOWER=b; NAME=TOKEN"},
		{"after-a-value-that-names-it", "a=NAME; b=NAME=x; NAME=TOKEN"},
	} {
		field := func(t *suite.T, token string) string { return fill(t, c.field, token) }
		both(c.name, func(t *suite.T) {
			topic := t.Topic()
			r := publication(t, topic).With("Origin", t.Target().PublishOrigin).With("Cookie", field(t, t.PublishAll()))
			s := t.ListenTo(topic)
			s.Want(t.PublishWith(r))
		}, func(t *suite.T) {
			topic := t.Topic()
			readsPrivate(t, subscription(t, topic).With("Cookie", field(t, t.SubscribeAll())), topic)
		})
	}
	for _, c := range []struct{ name, field string }{
		{"other-name", "OTHER=TOKEN"},
		{"upper-case", "UPPER=TOKEN"},
		{"lower-case", "LOWER=TOKEN"},
		{"longer-name", "NAMEx=TOKEN"},
		{"longer-name-in-front", "xNAME=TOKEN"},
		{"in-a-value", "a=NAME=TOKEN"},
		{"older-name", "mercureAuthorization=TOKEN"},
		{"name-alone", "NAME; TOKEN"},
	} {
		statuses := []int{401}
		if c.name == "name-alone" {
			statuses = append(statuses, 400) // an empty token is no JWS (reading 17)
		}
		field := func(t *suite.T, token string) string {
			if name, _, _ := strings.Cut(c.field, "="); name == t.Target().CookieName {
				t.Skip("the hub's own cookie has the name that older versions of the protocol gave it, %q: it is to be read, and no other one", name)
			}
			return fill(t, c.field, token)
		}
		both(c.name+"-ignored", func(t *suite.T) {
			topic := t.Topic()
			r := publication(t, topic).With("Origin", t.Target().PublishOrigin).With("Cookie", field(t, t.PublishAll()))
			resp := refusedQuietly(t, topic, r, statuses...)
			if code := errorCode(resp); code != "" && c.name != "name-alone" {
				t.Fail("the cookie was taken for a token: error=%q", code)
			}
		}, func(t *suite.T) {
			topic := t.Topic()
			readsPublicOnly(t, subscription(t, topic).With("Cookie", field(t, t.SubscribeAll())), topic)
		})
		if c.name == "name-alone" {
			continue
		}
		// An ignored cookie does no harm either.
		checks = append(checks, one("COOKIE-09", "bad-"+c.name+"-ignored", func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenWith(subscription(t, topic).With("Cookie", field(t, "garbage")))
			s.Want(t.Publish("topic", topic, "data", "x"))
		}, suite.Cookie, suite.Anonymous))
	}
	// HTTP/2 clients alone may send each cookie in a field of its own (RFC 9113 section 8.2.3, RFC 6265 section 5.4).
	return append(checks, one("COOKIE-09", "in-a-field-of-its-own", func(t *suite.T) {
		topic := t.Topic()
		r := publication(t, topic).With("Origin", t.Target().PublishOrigin)
		for _, cookie := range []string{"a=b", "NAME=TOKEN", "c=d"} {
			r = r.With("Cookie", fill(t, cookie, t.PublishAll()))
		}
		s := t.ListenTo(topic)
		resp, err := t.Dialer().DoHTTP2(t.Context(), r)
		if err != nil {
			t.Fail("no answer: %v", err)
		}
		if resp.Status != 200 {
			t.Fail("answered %d, wanted 200", resp.Status)
		}
		s.Want(resp.Body)
	}, suite.Cookie, suite.HTTP2))
}

// otherCase puts the cookie's name in another case for UPPER and LOWER; the check is skipped when there is none.
func otherCase(name, other string) string {
	if other == name {
		other = strings.ToUpper(name[:1]) + name[1:]
	}
	if other == name {
		other = flipped(name)
	}
	return other
}

// flipped changes the case of the last letter.
func flipped(name string) string {
	for i := len(name) - 1; i >= 0; i-- {
		if c := name[i] | 0x20; c >= 'a' && c <= 'z' {
			return fmt.Sprintf("%s%c%s", name[:i], name[i]^0x20, name[i+1:])
		}
	}
	return name
}

func cookieEverywhere() []suite.Check {
	return []suite.Check{
		one("COOKIE-10", "publish", func(t *suite.T) {
			topic := t.Topic()
			s := t.ListenTo(topic)
			r := inCookie(t, publication(t, topic), t.PublishToken(suite.CanPublish(suite.Exact(topic))))
			s.Want(t.PublishWith(r))
		}, suite.Cookie),
		one("COOKIE-10", "subscribe", func(t *suite.T) {
			topic := t.Topic()
			readsPrivate(t, t.InCookie(subscription(t, topic), t.SubscribeToken(suite.CanSubscribe(suite.Exact(topic)))), topic)
		}, suite.Cookie),
		one("COOKIE-10", "subscribe-by-QUERY", func(t *suite.T) {
			topic := t.Topic()
			r := t.Query("", wire.Form("match", topic))
			readsPrivate(t, t.InCookie(r, t.SubscribeToken(suite.CanSubscribe(suite.Exact(topic)))), topic)
		}, suite.Cookie, suite.QueryMethod),
		one("COOKIE-10", "subscription-API", func(t *suite.T) {
			t.Need(suite.SubscriptionAPI)
			t.Want(t.InCookie(t.At(t.Target().Path()+"/subscriptions"), t.SubscribeAll()), 200)
		}, suite.Cookie, suite.Subscriptions),
	}
}
