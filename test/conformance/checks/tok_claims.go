package checks

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
)

// tokTimeChecks are those of exp and nbf. Times that matter are an hour off, so that a leeway for clocks that differ
// changes nothing.
func tokTimeChecks() []suite.Check {
	past := func() string { return strconv.FormatInt(time.Now().Add(-time.Hour).Unix(), 10) }
	return slices.Concat(
		tokRefused("TOK-14", []tokCase{
			{"an-hour-ago", tokFrom("exp", -time.Hour, 0)},
			{"a-year-ago", tokFrom("exp", -365*24*time.Hour, 0)},
			{"fractional", tokFrom("exp", -time.Hour, 0.5)},
			{"zero", tokClaim("exp", 0)},
			{"negative", tokClaim("exp", -1)},
			{"beyond-64-bits-negative", tokClaim("exp", json.Number("-1e30"))},
		}),
		tokForgeries("TOK-14", []tokForgery{
			{"EXP-beside", func(t *suite.T, key jose.Key, right jose.Token) []string {
				return tokOverridden("exp", past(), "Exp", "EXP")(t, key, right)
			}},
		}, 401),
		[]suite.Check{one("TOK-14", "after-it-was-accepted", tokExpires)},
		tokRefused("TOK-15", []tokCase{
			{"absent", tokClaim("exp", nil)},
			{"null", tokClaim("exp", jose.Null)},
			{"string", func(_ *suite.T, token *jose.Token) { token.Claims["exp"] = fmt.Sprint(token.Claims["exp"]) }},
			{"date", func(_ *suite.T, token *jose.Token) {
				token.Claims["exp"] = time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
			}},
			{"object", tokClaim("exp", jose.Object{})},
			{"array", func(_ *suite.T, token *jose.Token) { token.Claims["exp"] = []any{token.Claims["exp"]} }},
			{"empty-array", tokClaim("exp", []any{})},
			{"bool", tokClaim("exp", true)},
			{"EXP", tokMoved("exp", "EXP")},
			{"in-header", func(_ *suite.T, token *jose.Token) {
				token.Header["exp"], token.Claims["exp"] = token.Claims["exp"], nil
			}},
		}),
		tokAccepted("TOK-15", []tokCase{
			{"fractional", tokFrom("exp", time.Hour, 0.25)},
			{"zero-fraction", func(_ *suite.T, token *jose.Token) {
				token.Claims["exp"] = json.Number(fmt.Sprint(token.Claims["exp"]) + ".0")
			}},
			{"exponent", func(_ *suite.T, token *jose.Token) {
				token.Claims["exp"] = json.Number(strconv.FormatInt(time.Now().Add(2*time.Hour).Unix()/100, 10) + "e2")
			}},
		}),
		tokTable("TOK-15", []tokCase{
			{"beyond-64-bits", tokClaim("exp", json.Number("99999999999999999999"))},
			{"huge", tokClaim("exp", json.Number("1e300"))},
			{"infinite", tokClaim("exp", json.Number("1e999"))},
		}, 200, 400, 401), // whatever the hub thinks of it, it survives
		tokRefused("TOK-16", []tokCase{
			{"in-an-hour", tokFrom("nbf", time.Hour, 0)},
			{"in-an-hour-fractional", tokFrom("nbf", time.Hour, 0.5)},
			{"in-ten-years", tokFrom("nbf", 10*365*24*time.Hour, 0)},
			{"beyond-64-bits", tokClaim("nbf", json.Number("99999999999999999999"))},
			{"huge", tokClaim("nbf", json.Number("1e30"))},
			{"string", tokClaim("nbf", "1")},
			{"string-future", func(_ *suite.T, token *jose.Token) {
				token.Claims["nbf"] = strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)
			}},
			{"bool", tokClaim("nbf", false)},
			{"array", tokClaim("nbf", []any{1})},
			{"object", tokClaim("nbf", jose.Object{})},
		}),
		tokAccepted("TOK-16", []tokCase{
			{"an-hour-ago", tokFrom("nbf", -time.Hour, 0)},
			{"an-hour-ago-fractional", tokFrom("nbf", -time.Hour, 0.5)},
			{"zero", tokClaim("nbf", 0)},
			{"NBF-is-another-claim", tokFrom("NBF", time.Hour, 0)},
		}),
	)
}

// tokExpires uses a token before its time is over and after. Whether the hub grants some leeway is asked with a token
// that expired at the same time and that the hub has not seen: the one it has seen is no better.
func tokExpires(t *suite.T) {
	issuer := t.Target().Issuers[0]
	for _, life := range []time.Duration{6 * time.Second, 12 * time.Second, 24 * time.Second} {
		exp := time.Now().Add(life).Unix()
		seen, fresh := tokRight(t, issuer), tokRight(t, issuer)
		seen.Claims["exp"], fresh.Claims["exp"] = exp, exp
		token := t.SignWith(issuer.Publish, seen)
		if tokPublish(t, "a token that will expire", token, 200, 401).Status == 401 {
			continue // the machine was too slow for this one, or the hub's clock is ahead of ours
		}
		t.Pause(time.Until(time.Unix(exp, 0)) + 5*time.Second)
		if tokPublish(t, "an expired token", t.SignWith(issuer.Publish, fresh), 200, 401).Status == 200 {
			t.Observed("the hub grants a leeway of five seconds or more, so nothing can be said")
			return
		}
		tokPublish(t, "an expired token that was accepted when it was new", token, 401)
		t.Observed("accepted before, refused after exp")
		return
	}
	t.Fail("a token was refused though it had up to 24 seconds left")
}

// tokAudienceChecks are those of aud: a token for another hub opens nothing here.
func tokAudienceChecks() []suite.Check {
	of := func(spell func(right string) any) tokChange { return tokDerived("aud", spell) }
	return slices.Concat(
		tokAccepted("TOK-17", []tokCase{
			{"string", of(func(s string) any { return s })},
			{"array", of(func(s string) any { return []string{s} })},
			{"first-of-array", of(func(s string) any { return []string{s, "https://other.example/"} })},
			{"last-of-array", of(func(s string) any { return []string{"https://other.example/", "https://more.example/", s} })},
		}),
		tokRefused("TOK-18", []tokCase{
			{"absent", tokClaim("aud", nil)},
			{"null", tokClaim("aud", jose.Null)},
			{"empty", tokClaim("aud", "")},
			{"other", tokClaim("aud", "https://other.example/.well-known/mercure")},
			{"shorter", of(func(s string) any { return s[:len(s)-1] })},
			{"longer", of(func(s string) any { return s + "x" })},
			{"longer-before", of(func(s string) any { return "x" + s })},
			{"origin-alone", of(func(s string) any {
				u, err := url.Parse(s)
				if err != nil || u.Host == "" || u.Path == "" {
					return "https://other.example"
				}
				return u.Scheme + "://" + u.Host
			})},
			{"below", of(func(s string) any { return s + "/subscriptions" })},
			{"trailing-slash", of(func(s string) any {
				if cut, ok := strings.CutSuffix(s, "/"); ok {
					return cut
				}
				return s + "/"
			})},
			{"upper-case-host", of(tokUpperOrigin)},
			{"other-case", of(tokOtherCase)},
			{"query", of(func(s string) any { return s + "?x" })},
			{"fragment", of(func(s string) any { return s + "#" })},
			{"escaped-letter", of(func(s string) any { return s[:len(s)-1] + fmt.Sprintf("%%%02X", s[len(s)-1]) })},
			{"space-after", of(func(s string) any { return s + " " })},
			{"U+0000-after", of(func(s string) any { return s + "\x00" })},
			{"list-in-string", of(func(s string) any { return "https://other.example/ " + s })},
			{"list-in-string-comma", of(func(s string) any { return s + ",https://other.example/" })},
			{"JSON-in-string", of(func(s string) any { return `["` + s + `"]` })},
			{"array-without", tokClaim("aud", []string{"https://other.example/", "https://more.example/"})},
			{"array-of-longer", of(func(s string) any { return []string{s + "x", s + "/"} })},
			{"empty-array", tokClaim("aud", []string{})},
			{"array-of-null", tokClaim("aud", []any{nil})},
			{"array-in-array", of(func(s string) any { return []any{[]string{s}} })},
			{"object", of(func(s string) any { return tokMember(s) })},
			{"object-by-number", of(func(s string) any { return jose.Object{"0": s} })},
			{"number", tokClaim("aud", 1)},
			{"bool", tokClaim("aud", true)},
			{"wildcard", tokClaim("aud", "*")},
			{"issuer", func(t *suite.T, token *jose.Token) {
				if token.Claims["iss"] == t.Target().Resource {
					t.Skip("the issuer and the resource have one identifier: this audience is the right one")
				}
				token.Claims["aud"] = token.Claims["iss"]
			}},
			{"AUD", tokMoved("aud", "AUD")},
			{"in-header", func(_ *suite.T, token *jose.Token) {
				token.Header["aud"], token.Claims["aud"] = token.Claims["aud"], nil
			}},
		}),
		tokForgeries("TOK-18", []tokForgery{{"Aud-beside", tokOverridden("aud", `"https://other.example/"`, "Aud", "AUD")}}, 401),
		[]suite.Check{one("TOK-18", "hub-URL-that-is-not-the-resource", func(t *suite.T) {
			if t.Target().Resource == t.Target().URL {
				t.Skip("the hub URL is the resource identifier: this audience is the right one")
			}
			right := tokRight(t, t.Target().Issuers[0])
			tokPublish(t, "a right token", t.Sign(suite.Publisher, right), 200)
			right.Claims["aud"] = t.Target().URL
			tokPublish(t, "a token for the hub URL", t.Sign(suite.Publisher, right), 401)
		})},
	)
}

// tokUpperOrigin writes the scheme and the host of a URL in upper case, so that it still names the same place.
func tokUpperOrigin(s string) any {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		return tokOtherCase(s)
	}
	host, path, _ := strings.Cut(rest, "/")
	return strings.ToUpper(scheme+"://"+host) + "/" + path
}
