package checks

import (
	"slices"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
)

// tokTypeChecks are those of typ: it keeps tokens that were made for something else out.
func tokTypeChecks() []suite.Check {
	return slices.Concat(
		tokAccepted("TOK-01", []tokCase{{"at+jwt", tokHeader("typ", "at+jwt")}}),
		tokRefused("TOK-01", []tokCase{
			{"JWT", tokHeader("typ", "JWT")},
			{"jwt", tokHeader("typ", "jwt")},
			{"absent", tokHeader("typ", nil)},
			{"id_token", tokHeader("typ", "id_token")},
			{"dpop+jwt", tokHeader("typ", "dpop+jwt")},
			{"at+jwt2", tokHeader("typ", "at+jwt2")},
			{"empty", tokHeader("typ", "")},
			{"null", tokHeader("typ", jose.Null)},
			{"number", tokHeader("typ", 1)},
			{"bool", tokHeader("typ", true)},
			{"array", tokHeader("typ", []string{"at+jwt"})},
			{"object", tokHeader("typ", jose.Object{"at+jwt": true})},
			{"at", tokHeader("typ", "at")},
			{"+jwt", tokHeader("typ", "+jwt")},
			{"xat+jwt", tokHeader("typ", "xat+jwt")},
			{"logout+jwt", tokHeader("typ", "logout+jwt")},
			{"oauth-authz-req+jwt", tokHeader("typ", "oauth-authz-req+jwt")},
			{"space-before", tokHeader("typ", " at+jwt")},
			{"space-after", tokHeader("typ", "at+jwt ")},
			{"plus-as-space", tokHeader("typ", "at jwt")},
			{"escaped-plus", tokHeader("typ", "at%2Bjwt")},
			// A claim is no header parameter, and names of parameters are case-sensitive (RFC 7515 section 4).
			{"as-claim", tokBoth(tokHeader("typ", nil), tokClaim("typ", "at+jwt"))},
			{"as-cty", tokBoth(tokHeader("typ", nil), tokHeader("cty", "at+jwt"))},
			{"Typ", tokBoth(tokHeader("typ", nil), tokHeader("Typ", "at+jwt"))},
		}),
		tokForgeries("TOK-01", []tokForgery{{"Typ-beside", func(t *suite.T, key jose.Key, right jose.Token) []string {
			right.Header["typ"] = "JWT"
			right.RawHeader = tokAppended(t, tokHeaderOf(key, right), `"Typ":"at+jwt","TYP":"at+jwt"`)
			return []string{t.SignWith(key, right)}
		}}}, 401),
		tokAccepted("TOK-02", []tokCase{
			{"application/at+jwt", tokHeader("typ", "application/at+jwt")},
			{"AT+JWT", tokHeader("typ", "AT+JWT")},
			{"At+Jwt", tokHeader("typ", "At+Jwt")},
			{"Application/At+Jwt", tokHeader("typ", "Application/At+Jwt")},
			{"APPLICATION/AT+JWT", tokHeader("typ", "APPLICATION/AT+JWT")},
		}),
		tokRefused("TOK-02", []tokCase{
			{"x/at+jwt", tokHeader("typ", "x/at+jwt")},
			{"text/at+jwt", tokHeader("typ", "text/at+jwt")},
			{"slash", tokHeader("typ", "/at+jwt")},
			{"twice", tokHeader("typ", "application/application/at+jwt")},
			{"application/jwt", tokHeader("typ", "application/jwt")},
			{"application/", tokHeader("typ", "application/")},
			{"xapplication/at+jwt", tokHeader("typ", "xapplication/at+jwt")},
		}),
	)
}
