package checks

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
)

// tokKeyChecks are those of keys that the token itself brings along.
func tokKeyChecks(f *tokForger) []suite.Check {
	var forgeries []tokForgery
	for _, alg := range tokForged() {
		forgeries = append(forgeries, tokForgery{alg, func(t *suite.T, key jose.Key, right jose.Token) []string {
			own := f.key(t, alg, "")
			var made []string
			for _, token := range tokKids(right, key) {
				embedded := tokJWK(t, own)
				token.Header["jwk"] = embedded
				made = append(made, t.SignWith(own, token))
				// A hub that looks keys up by their kid finds this one under the token's.
				embedded["kid"], embedded["alg"], embedded["use"] = "conformance", alg, "sig"
				if kid, ok := token.Header["kid"].(string); ok {
					embedded["kid"] = kid
				} else {
					token.Header["kid"] = "conformance"
				}
				made = append(made, t.SignWith(own, token))
			}
			return made
		}})
	}
	return slices.Concat(
		tokForgeries("TOK-09", forgeries, 401),
		tokForgeries("TOK-09", []tokForgery{
			{"as-JSON-text", func(t *suite.T, _ jose.Key, right jose.Token) []string {
				own := f.key(t, "ES256", "")
				right.Header["jwk"] = string(tokJWKs(t, own)[0])
				return []string{t.SignWith(own, right)}
			}},
			{"jwks", func(t *suite.T, _ jose.Key, right jose.Token) []string {
				own := f.key(t, "ES256", "")
				right.Header["jwks"] = jose.Object{"keys": []jose.Object{tokJWK(t, own)}}
				return []string{t.SignWith(own, right)}
			}},
			{"cnf", func(t *suite.T, _ jose.Key, right jose.Token) []string {
				own := f.key(t, "ES256", "")
				right.Claims["cnf"] = jose.Object{"jwk": tokJWK(t, own)}
				return []string{t.SignWith(own, right)}
			}},
		}, 401),
	)
}

// tokKidChecks are those of kid, which may choose among the trusted keys and do nothing else: a token of an untrusted key
// is refused whatever its kid, and with the right key an odd kid does no harm. It is a hint, so the right key may be found
// all the same, and it must be a string that names a key, so the token may be refused.
func tokKidChecks(f *tokForger) []suite.Check {
	shapes := []struct {
		name string
		kid  any
	}{
		{"unknown", "unknown-key"},
		{"absent", nil},
		{"empty", ""},
		{"null", jose.Null},
		{"number", 1},
		{"huge-number", 1e300},
		{"bool", true},
		{"array", []string{"es"}},
		{"object", jose.Object{"kid": "es"}},
		{"4000-bytes", strings.Repeat("k", 4000)},
		{"path-traversal", "../../../../../../etc/hostname"},
		{"dev-null", "/dev/null"},
		{"dev-null-by-traversal", "../../../../../../../../dev/null"},
		{"file-URL", "file:///dev/null"},
		{"U+0000", "es\x00"},
		{"line-breaks", "es\r\nX: y"},
		{"quotes", `"'` + "`"},
		{"SQL", "x' UNION SELECT 'secret';-- "},
		{"shell", "$(id);`id`|id&"},
		{"format", "%s%n%d{0}{{.}}${x}"},
		{"pattern", ".*"},
		{"wildcard", "*"},
		{"letters", "ключ-鍵-🔑"},
		{"prototype", "__proto__"},
	}
	var checks []suite.Check
	for _, s := range shapes {
		untrusted := tokForgery{"untrusted-key-" + s.name, func(t *suite.T, key jose.Key, right jose.Token) []string {
			right.Header["kid"] = s.kid
			made := []string{t.SignWith(f.key(t, key.Alg, ""), right)}
			// What a hub would read from a file that is empty, from a query that answers with a text of the token, or
			// from the kid itself.
			for _, secret := range []string{"", "secret", fmt.Sprint(s.kid), base64.StdEncoding.EncodeToString([]byte("secret"))} {
				made = append(made, tokUnderSecret(t, right, "HS256", []byte(secret)))
			}
			return made
		}}
		trusted := tokForgery{"trusted-key-" + s.name, func(t *suite.T, key jose.Key, right jose.Token) []string {
			right.Header["kid"] = s.kid
			return []string{t.SignWith(key, right)}
		}}
		refusal := []int{401}
		if s.name == "4000-bytes" {
			refusal = append(refusal, 400, 431) // a front end may have its own opinion of long fields
		}
		checks = append(checks, tokForgeries("TOK-11", []tokForgery{untrusted}, refusal...)...)
		answers := []int{200, 400, 401, 431}
		if s.kid == nil {
			answers = []int{200} // the protocol's own example has none
		}
		checks = append(checks, tokForgeries("TOK-11", []tokForgery{trusted}, answers...)...)
	}
	return checks
}

// tokIssuerChecks are those of iss: whose keys it selects, and that it is the name of a trusted issuer.
func tokIssuerChecks(f *tokForger) []suite.Check {
	return slices.Concat(
		[]suite.Check{
			one("TOK-13", "first-issuer-by-the-second-key", tokCrossed(suite.Publisher, true), suite.TwoIssuers),
			one("TOK-13", "second-issuer-by-the-first-key", tokCrossed(suite.Publisher, false), suite.TwoIssuers),
			one("TOK-13", "subscribe-first-issuer-by-the-second-key", tokCrossed(suite.Subscriber, true), suite.TwoIssuers),
			one("TOK-13", "subscribe-second-issuer-by-the-first-key", tokCrossed(suite.Subscriber, false), suite.TwoIssuers),
			one("TOK-13", "authorization-server-by-a-self-issuer", func(t *suite.T) {
				tokPublish(t, "a token of the authorization server", t.ServerToken(suite.CanPublish(suite.Any())), 200)
				for _, issuer := range t.Target().Issuers {
					right := tokRight(t, issuer)
					tokPublish(t, tokRightOf(issuer), t.SignWith(issuer.Publish, right), 200)
					right.Claims["iss"] = t.Target().AuthorizationServer.Issuer
					for _, token := range tokKids(right, issuer.Publish) {
						tokPublish(t, "a token in the authorization server's name by the key of "+issuer.ID, t.SignWith(issuer.Publish, token), 401)
					}
				}
			}, suite.TrustedServer),
			one("TOK-08", "authorization-server", func(t *suite.T) {
				tokPublish(t, "a token of the authorization server", t.ServerToken(suite.CanPublish(suite.Any())), 200)
				right := tokRight(t, t.Target().Issuers[0])
				right.Claims["iss"] = t.Target().AuthorizationServer.Issuer
				for _, alg := range tokForged() {
					tokPublish(t, "a token in the authorization server's name by an untrusted "+alg+" key", t.SignWith(f.key(t, alg, ""), right), 401)
					tokPublish(t, "the same with a kid", t.SignWith(f.key(t, alg, "unknown-key"), right), 401)
				}
			}, suite.TrustedServer),
		},
		tokRefused("TOK-19", []tokCase{
			{"absent", tokClaim("iss", nil)},
			{"null", tokClaim("iss", jose.Null)},
			{"empty", tokClaim("iss", "")},
			{"unknown", tokClaim("iss", "https://unknown.example")},
			{"trailing-slash", tokDerived("iss", func(s string) any {
				if cut, ok := strings.CutSuffix(s, "/"); ok {
					return cut
				}
				return s + "/"
			})},
			{"other-case", tokDerived("iss", tokOtherCase)},
			{"array", tokDerived("iss", func(s string) any { return []string{s} })},
			{"object", tokDerived("iss", func(s string) any { return tokMember(s) })},
			{"number", tokClaim("iss", 1)},
			{"bool", tokClaim("iss", true)},
			{"longer", tokDerived("iss", func(s string) any { return s + "x" })},
			{"longer-host", tokDerived("iss", func(s string) any { return s + ".evil.example" })},
			{"shorter", tokDerived("iss", func(s string) any { return s[:len(s)-1] })},
			{"longer-before", tokDerived("iss", func(s string) any { return "x" + s })},
			{"space-after", tokDerived("iss", func(s string) any { return s + " " })},
			{"space-before", tokDerived("iss", func(s string) any { return " " + s })},
			{"U+0000-after", tokDerived("iss", func(s string) any { return s + "\x00" })},
			{"query", tokDerived("iss", func(s string) any { return s + "?x" })},
			{"fragment", tokDerived("iss", func(s string) any { return s + "#x" })},
			{"resource", func(t *suite.T, token *jose.Token) {
				if token.Claims["iss"] == t.Target().Resource {
					t.Skip("the issuer and the resource have one identifier: this issuer is the right one")
				}
				token.Claims["iss"] = t.Target().Resource
			}},
			{"ISS", tokMoved("iss", "ISS")},
		}),
		tokForgeries("TOK-19", []tokForgery{{"Iss-beside", tokOverridden("iss", `"https://unknown.example"`, "Iss", "ISS")}}, 401),
	)
}

// tokCrossed signs tokens of one issuer with keys of others: of the first with those of all others, or the reverse.
func tokCrossed(role suite.Role, first bool) func(t *suite.T) {
	key := func(issuer suite.Issuer) jose.Key {
		if role == suite.Publisher {
			return issuer.Publish
		}
		return issuer.Subscribe
	}
	ask, right := tokPublish, tokRight
	if role == suite.Subscriber {
		ask, right = tokSubscribe, tokReader
	}
	return func(t *suite.T) {
		issuers := t.Target().Issuers
		for _, other := range issuers[1:] {
			named, signing := issuers[0], other
			if !first {
				named, signing = other, issuers[0]
			}
			if key(named).Same(key(signing)) {
				t.Skip("both issuers have the same key for this role: signed by one, the token is also signed by the other")
			}
			ask(t, tokRightOf(named), t.SignWith(key(named), right(t, named)), 200)
			ask(t, tokRightOf(signing), t.SignWith(key(signing), right(t, signing)), 200)
			for _, k := range []jose.Key{key(named), key(signing)} {
				for _, token := range tokKids(right(t, named), k) {
					ask(t, "a token in the name of "+named.ID+" by a key of "+signing.ID, t.SignWith(key(signing), token), 401)
				}
			}
			t.Observed("in the name of %s, tokens by the key of %s are refused", named.ID, signing.ID)
		}
	}
}

// tokOtherCase gives a text with the case of its letters changed, as far as upper case goes.
func tokOtherCase(s string) any {
	if up := strings.ToUpper(s); up != s {
		return up
	}
	return strings.ToLower(s)
}

func tokMember(s string) jose.Object { return jose.Object{s: true} }

// tokMoved gives a claim another name: names of claims are case-sensitive (RFC 7519 section 4).
func tokMoved(name, other string) tokChange {
	return func(_ *suite.T, token *jose.Token) {
		token.Claims[other], token.Claims[name] = token.Claims[name], nil
	}
}

// tokOverridden gives a claim a wrong value, and its right one to claims whose names differ in case only, which stand
// after it: a parser that does not tell them apart takes the last.
func tokOverridden(name, wrong string, others ...string) func(t *suite.T, key jose.Key, right jose.Token) []string {
	return func(t *suite.T, key jose.Key, right jose.Token) []string {
		value := right.Claims[name]
		delete(right.Claims, name)
		members := []string{fmt.Sprintf("%q:%s", name, wrong)}
		for _, other := range others {
			members = append(members, fmt.Sprintf("%q:%s", other, tokJSON(t, value)))
		}
		right.RawClaims = tokAppended(t, right.Claims, strings.Join(members, ","))
		return []string{t.SignWith(key, right)}
	}
}
