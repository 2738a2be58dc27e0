package checks

import (
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// tokJOSEChecks are those of the form of a token (RFC 7515 section 5.2, RFC 7519 section 7.2). All signatures are right
// ones over what is sent. A string that is no JWS at all may be answered 400 as well (reading 17).
func tokJOSEChecks() []suite.Check {
	return slices.Concat(
		tokRefused("TOK-22", []tokCase{
			{"crit-unknown", tokBoth(tokHeader("crit", []string{"x"}), tokHeader("x", 1))},
			{"crit-unknown-without-the-parameter", tokHeader("crit", []string{"x"})},
			{"crit-unknown-URI", tokBoth(tokHeader("crit", []string{"https://example.com/x"}), tokHeader("https://example.com/x", true))},
			{"crit-known-and-unknown", tokBoth(tokHeader("crit", []string{"b64", "x"}), tokHeader("b64", true), tokHeader("x", 1))},
			{"crit-exp-in-the-past", tokBoth(tokHeader("crit", []string{"exp"}), tokHeader("exp", 1))},
			{"b64-false", tokBoth(tokHeader("crit", []string{"b64"}), tokHeader("b64", false))},
			{"payload-array", tokRawClaims("[%s]")},
			{"payload-string", func(t *suite.T, token *jose.Token) {
				token.RawClaims = tokJSON(t, string(tokJSON(t, token.Claims)))
			}},
			{"payload-null", tokRaw("null")},
			{"payload-number", tokRaw("1")},
			{"payload-no-JSON", tokRaw("claims")},
			{"payload-cut", func(t *suite.T, token *jose.Token) {
				raw := tokJSON(t, token.Claims)
				token.RawClaims = raw[:len(raw)-1]
			}},
			{"payload-and-more", tokRawClaims("%s{}")},
			{"payload-and-brace", tokRawClaims("%s}")},
			{"payload-comma-at-the-end", func(t *suite.T, token *jose.Token) {
				raw := tokJSON(t, token.Claims)
				token.RawClaims = append(raw[:len(raw)-1], ",}"...)
			}},
			{"payload-comment", tokRawClaims("/**/%s")},
			{"payload-single-quotes", func(t *suite.T, token *jose.Token) {
				token.RawClaims = []byte(strings.ReplaceAll(string(tokJSON(t, token.Claims)), `"`, `'`))
			}},
			{"payload-not-UTF-8", func(t *suite.T, token *jose.Token) { token.RawClaims = tokAppended(t, token.Claims, "\"x\":\"\xff\"") }},
			{"payload-UTF-16", func(t *suite.T, token *jose.Token) {
				var wide []byte
				for _, c := range tokJSON(t, token.Claims) {
					wide = append(wide, 0, c)
				}
				token.RawClaims = wide
			}},
		}),
		tokForgeries("TOK-22", tokBadHeaders(), 400, 401), // they are no JWS (reading 17)
		tokForgeries("TOK-22", tokDuplicates(), 401),
		tokForgeries("TOK-22", []tokForgery{{
			// Names of claims are unique, or the last of them counts (RFC 7519 section 4). Without details, a token is
			// as good as refused.
			"duplicate-authorization_details", tokTwice("authorization_details", "[]"),
		}}, 401, 403),
		tokForgeries("TOK-22", slices.Concat(tokRespellings(), tokMalformed()), 400, 401),
		tokCookieChecks(),
		tokAccepted("TOK-22", []tokCase{
			{"unknown-parameter-is-ignored", tokBoth(tokHeader("x", jose.Object{"y": 1}), tokHeader("https://example.com/x", true))},
			{"unknown-claim-is-ignored", tokBoth(tokClaim("x", []any{1, nil, jose.Object{}}), tokClaim("scope", "x"))},
			{"spaces-and-escapes", func(t *suite.T, token *jose.Token) {
				text := strings.ReplaceAll(string(tokJSON(t, token.Claims)), `"exp":`, " \n\t\"\\u0065xp\" : \r\n")
				token.RawClaims = []byte("\n " + strings.ReplaceAll(text, "/", `\/`) + " \n")
			}},
		}),
		tokForgeries("TOK-22", []tokForgery{{"spaces-and-escapes-in-header", func(t *suite.T, key jose.Key, right jose.Token) []string {
			text := strings.ReplaceAll(string(tokJSON(t, tokHeaderOf(key, right))), `"typ":`, " \n\"\\u0074yp\" : \t")
			right.RawHeader = []byte(" " + strings.Replace(text, "at+jwt", `at\u002Bjwt`, 1) + "\r\n")
			return []string{t.SignWith(key, right)}
		}}}, 200),
		tokTable("TOK-22", []tokCase{
			{"deep-payload", func(t *suite.T, token *jose.Token) {
				token.RawClaims = tokAppended(t, token.Claims, `"x":`+strings.Repeat("[", 1500)+strings.Repeat("]", 1500))
			}},
		}, 200, 400, 401), // whatever the hub thinks of it, it survives
	)
}

// tokRaw makes something else the payload.
func tokRaw(text string) tokChange {
	return func(_ *suite.T, token *jose.Token) { token.RawClaims = []byte(text) }
}

// tokRawClaims puts something around the claims; %s stands for them.
func tokRawClaims(frame string) tokChange {
	return func(t *suite.T, token *jose.Token) {
		token.RawClaims = []byte(strings.Replace(frame, "%s", string(tokJSON(t, token.Claims)), 1))
	}
}

// tokBadHeaders are headers that are no JSON object, made of a right one.
func tokBadHeaders() []tokForgery {
	bad := func(name string, of func(right string) string) tokForgery {
		return tokForgery{name, func(t *suite.T, key jose.Key, right jose.Token) []string {
			right.RawHeader = []byte(of(string(tokJSON(t, tokHeaderOf(key, right)))))
			return []string{t.SignWith(key, right)}
		}}
	}
	return []tokForgery{
		bad("header-array", func(s string) string { return "[" + s + "]" }),
		bad("header-string", func(string) string { return `"at+jwt"` }),
		bad("header-null", func(string) string { return "null" }),
		bad("header-no-JSON", func(string) string { return "at+jwt" }),
		bad("header-cut", func(s string) string { return s[:len(s)-1] }),
		bad("header-and-more", func(s string) string { return s + "{}" }),
		bad("header-comma-at-the-end", func(s string) string { return s[:len(s)-1] + ",}" }),
		bad("header-not-UTF-8", func(s string) string { return s[:len(s)-1] + ",\"x\":\"\xff\"}" }),
	}
}

// tokDuplicates are members that are there twice, the right one first: names are unique, or the last of them counts
// (RFC 7515 section 4, RFC 7519 section 4), so the token is refused either way.
func tokDuplicates() []tokForgery {
	header := func(name, wrong string) func(t *suite.T, key jose.Key, right jose.Token) []string {
		return func(t *suite.T, key jose.Key, right jose.Token) []string {
			right.RawHeader = tokAppended(t, tokHeaderOf(key, right), `"`+name+`":`+wrong)
			return []string{t.SignWith(key, right)}
		}
	}
	return []tokForgery{
		{"duplicate-typ", header("typ", `"JWT"`)},
		{"duplicate-alg", header("alg", `"none"`)},
		{"duplicate-exp", tokTwice("exp", "1")},
		{"duplicate-aud", tokTwice("aud", `"https://other.example/"`)},
		{"duplicate-iss", tokTwice("iss", `"https://unknown.example"`)},
	}
}

// tokTwice repeats a claim with another value.
func tokTwice(name, wrong string) func(t *suite.T, key jose.Key, right jose.Token) []string {
	return func(t *suite.T, key jose.Key, right jose.Token) []string {
		right.RawClaims = tokAppended(t, right.Claims, `"`+name+`":`+wrong)
		return []string{t.SignWith(key, right)}
	}
}

// tokRespellings are segments with padding or with letters of the other alphabet, signed as they are sent and as they
// should have been sent.
func tokRespellings() []tokForgery {
	return []tokForgery{
		{"padding-in-header", tokRespelled(0, tokPadded)},
		{"padding-in-payload", tokRespelled(1, tokPadded)},
		{"padding-in-signature", tokRespelled(2, tokPadded)},
		{"standard-alphabet-in-header", tokRespelled(0, tokStandard)},
		{"standard-alphabet-in-payload", tokRespelled(1, tokStandard)},
		{"standard-alphabet-in-signature", tokRespelled(2, tokStandard)},
	}
}

// tokCookieChecks send the same in a cookie, which has no token syntax of its own that would refuse them before anybody
// reads them.
func tokCookieChecks() []suite.Check {
	var checks []suite.Check
	for _, c := range tokRespellings() {
		checks = append(checks, one("TOK-22", c.name+"-by-cookie", func(t *suite.T) {
			none := true
			for _, issuer := range t.Target().Issuers {
				right := tokReader(t, issuer)
				made := c.forge(t, issuer.Subscribe, tokAnother(right))
				if len(made) == 0 {
					continue
				}
				none = false
				cookie := func(token string) wire.Request { return t.InCookie(t.Get(wire.Form("match", t.Topic())), token) }
				tokAsk(t, tokRightOf(issuer)+" in a cookie", cookie(t.SignWith(issuer.Subscribe, right)), 200)
				seen := map[int]int{}
				for _, token := range made {
					seen[tokAsk(t, c.name+" in a cookie", cookie(token), 400, 401).Status]++
				}
				tokNote(t, issuer.Subscribe, seen)
			}
			if none {
				t.Skip(tokNoKind)
			}
		}, suite.Cookie))
	}
	return checks
}

// tokMalformed are other strings that are not three segments of base64url.
func tokMalformed() []tokForgery {
	split := func(name string, of func(header, payload, signature string) string) tokForgery {
		return tokForgery{name, func(t *suite.T, key jose.Key, right jose.Token) []string {
			header, payload, signature := tokParts(t, key, right)
			return []string{of(header, payload, signature)}
		}}
	}
	return []tokForgery{
		{"tab-in-header", tokRespelled(0, tokTabbed)},
		{"tab-in-payload", tokRespelled(1, tokTabbed)},
		{"tab-in-signature", tokRespelled(2, tokTabbed)},
		{"unencoded-payload", func(t *suite.T, key jose.Key, right jose.Token) []string {
			right.Header["crit"], right.Header["b64"] = []string{"b64"}, false
			header, _, _ := tokParts(t, key, right)
			payload := string(tokJSON(t, right.Claims))
			return []string{header + "." + payload + "." + jose.Encode(tokSigned(t, key, header+"."+payload))}
		}},
		{"unencoded-payload-undeclared", func(t *suite.T, key jose.Key, right jose.Token) []string {
			header, _, _ := tokParts(t, key, right)
			payload := string(tokJSON(t, right.Claims))
			return []string{header + "." + payload + "." + jose.Encode(tokSigned(t, key, header+"."+payload))}
		}},
		{"detached-payload", func(t *suite.T, key jose.Key, right jose.Token) []string {
			header, _, signature := tokParts(t, key, right)
			return []string{header + ".." + signature, header + ".." + jose.Encode(tokSigned(t, key, header+"."))}
		}},
		split("two-parts", func(_, payload, signature string) string { return payload + "." + signature }),
		split("header-and-payload-alone", func(header, payload, _ string) string { return header + "." + payload }),
		split("four-parts", func(h, p, s string) string { return h + "." + p + "." + s + "." + s }),
		split("dot-at-the-end", func(h, p, s string) string { return h + "." + p + "." + s + "." }),
		split("dot-at-the-beginning", func(h, p, s string) string { return "." + h + "." + p + "." + s }),
		split("empty-header", func(_, p, s string) string { return "." + p + "." + s }),
		split("dots-alone", func(_, _, _ string) string { return ".." }),
		split("letter-outside-the-alphabet", func(h, p, s string) string { return h + "." + p + "." + s + "~" }),
	}
}

// tokRespelled spells one of the segments (0 to 2) differently. It changes the token until that makes a difference.
func tokRespelled(segment int, spell func(s string) string) func(t *suite.T, key jose.Key, right jose.Token) []string {
	return func(t *suite.T, key jose.Key, right jose.Token) []string {
		for n := range 64 {
			token := right.Clone()
			filler := strings.Repeat("~?>", n/3) + strings.Repeat("x", n%3)
			token.Header["x"], token.Claims["x"] = filler, filler
			header, payload, signature := tokParts(t, key, token)
			segments := []string{header, payload, signature}
			plain := segments[segment]
			segments[segment] = spell(plain)
			if segments[segment] == plain {
				if segment == 2 && len(signature)%4 == 0 && n > 8 {
					return nil // signatures of this length have no padding
				}
				continue
			}
			made := []string{strings.Join(segments, ".")}
			if segment < 2 {
				made = append(made, segments[0]+"."+segments[1]+"."+jose.Encode(tokSigned(t, key, segments[0]+"."+segments[1])))
			}
			return made
		}
		return nil
	}
}

func tokPadded(s string) string { return s + strings.Repeat("=", (4-len(s)%4)%4) }

func tokStandard(s string) string { return strings.NewReplacer("-", "+", "_", "/").Replace(s) }

func tokTabbed(s string) string { return s[:len(s)/2] + "\t" + s[len(s)/2:] }
