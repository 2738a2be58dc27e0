package checks

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// The checks of token validation publish, with a token of every trusted issuer. Each begins with the right token, which
// must be accepted: a hub that refuses everything passes none of them. That subscribers' tokens are judged alike is
// TOK-25, what the refusal says is TOK-23.
func tokChecks() []suite.Check {
	f := newTokForger()
	return slices.Concat(
		tokTypeChecks(),
		tokAlgorithmChecks(f),
		tokConfusionChecks(f),
		tokKeyChecks(f),
		tokRemoteChecks(f),
		tokKidChecks(f),
		tokIssuerChecks(f),
		tokTimeChecks(),
		tokAudienceChecks(),
		tokSignatureChecks(),
		tokJOSEChecks(),
		tokReportChecks(f),
		tokSubscribeChecks(f),
		tokRoleChecks(),
		tokServerChecks(),
	)
}

// tokChange changes a right token before it is signed.
type tokChange func(t *suite.T, token *jose.Token)

// tokCase is a case of a table.
type tokCase struct {
	name   string
	change tokChange
}

// tokHeader sets a header parameter; nil removes it.
func tokHeader(name string, value any) tokChange {
	return func(_ *suite.T, token *jose.Token) { token.Header[name] = value }
}

// tokClaim sets a claim; nil removes it.
func tokClaim(name string, value any) tokChange {
	return func(_ *suite.T, token *jose.Token) { token.Claims[name] = value }
}

// tokFrom sets a claim to a time as seen from now, in seconds that may be fractional.
func tokFrom(name string, offset time.Duration, fraction float64) tokChange {
	return func(_ *suite.T, token *jose.Token) {
		seconds := time.Now().Add(offset).Unix()
		if fraction == 0 {
			token.Claims[name] = seconds
			return
		}
		token.Claims[name] = float64(seconds) + fraction
	}
}

// tokDerived sets a claim to what is made of its right value.
func tokDerived(name string, of func(right string) any) tokChange {
	return func(_ *suite.T, token *jose.Token) {
		if right, ok := token.Claims[name].(string); ok {
			token.Claims[name] = of(right)
		}
	}
}

// tokBoth does one change after another.
func tokBoth(changes ...tokChange) tokChange {
	return func(t *suite.T, token *jose.Token) {
		for _, c := range changes {
			c(t, token)
		}
	}
}

// tokRefused are checks of which each publishes with a right token, and then with a changed one, which is answered 401.
func tokRefused(id string, cases []tokCase) []suite.Check { return tokTable(id, cases, 401) }

// tokAccepted are checks of which each publishes with a changed token, which is right all the same.
func tokAccepted(id string, cases []tokCase) []suite.Check { return tokTable(id, cases, 200) }

func tokTable(id string, cases []tokCase, status ...int) []suite.Check {
	forgeries := make([]tokForgery, len(cases))
	for i, c := range cases {
		forgeries[i] = tokForgery{c.name, func(t *suite.T, key jose.Key, right jose.Token) []string {
			c.change(t, &right)
			return []string{t.SignWith(key, right)}
		}}
	}
	return tokForgeries(id, forgeries, status...)
}

// tokForgery makes tokens of a right one and its key, all of one kind.
type tokForgery struct {
	name  string
	forge func(t *suite.T, key jose.Key, right jose.Token) []string
}

// tokNoKind is why a forgery means nothing for a hub: it takes a key of a family that none of the trusted ones is of, as a public key that
// is used as a secret does.
const tokNoKind = "this forgery is made of a kind of key that no trusted key is of (-issuer): signed with the others it would be another forgery, which has a case of its own"

// tokForgeries are checks of which each publishes with a right token of every issuer, and then with each that is made
// of it, which must have one of these answers. Without a token that can be made, the check is skipped.
func tokForgeries(id string, cases []tokForgery, status ...int) []suite.Check {
	checks := make([]suite.Check, len(cases))
	for i, c := range cases {
		checks[i] = one(id, c.name, func(t *suite.T) {
			none := true
			for _, issuer := range t.Target().Issuers {
				right := tokRight(t, issuer)
				made := c.forge(t, issuer.Publish, tokAnother(right))
				if len(made) == 0 {
					continue
				}
				none = false
				tokPublish(t, tokRightOf(issuer), t.SignWith(issuer.Publish, right), 200)
				seen := map[int]int{}
				for _, token := range made {
					seen[tokPublish(t, fmt.Sprintf("%s instead of a right token of %s (%s)", c.name, issuer.ID, issuer.Publish.Alg), token, status...).Status]++
				}
				tokNote(t, issuer.Publish, seen)
			}
			if none {
				t.Skip(tokNoKind)
			}
		})
	}
	return checks
}

// tokNote notes how often each answer was given, after the right token was accepted.
func tokNote(t *suite.T, key jose.Key, seen map[int]int) {
	answers := make([]string, 0, len(seen))
	for _, status := range slices.Sorted(maps.Keys(seen)) {
		answers = append(answers, fmt.Sprintf("%d × %d", seen[status], status))
	}
	t.Observed("%s: right token accepted, then %s", key.Alg, strings.Join(answers, ", "))
}

// tokRightOf names the right token of an issuer in a report.
func tokRightOf(issuer suite.Issuer) string { return "a right token of " + issuer.ID }

// tokRight is tok(publish *) of an issuer.
func tokRight(t *suite.T, issuer suite.Issuer) jose.Token {
	token := t.Claims(suite.Details(suite.CanPublish(suite.Any())))
	token.Claims["iss"] = issuer.ID
	return token
}

// tokReader is tok(subscribe *) of an issuer.
func tokReader(t *suite.T, issuer suite.Issuer) jose.Token {
	token := t.Claims(suite.Details(suite.CanSubscribe(suite.Any())))
	token.Claims["iss"] = issuer.ID
	return token
}

// tokAnother is a token like this one, with a jti of its own.
func tokAnother(token jose.Token) jose.Token {
	token = token.Clone()
	token.Claims["jti"] = rand.Text()
	return token
}

// tokPublish publishes with a token, which what names, on a topic of its own, and wants one of these answers.
func tokPublish(t *suite.T, what, token string, status ...int) *wire.Response {
	return tokAsk(t, "publishing with "+what, suite.Bearer(t.Post(wire.Form("topic", t.Topic(), "data", "x")), token), status...)
}

// tokSubscribe subscribes with a token, which what names, to a topic of its own, and wants one of these answers.
func tokSubscribe(t *suite.T, what, token string, status ...int) *wire.Response {
	return tokAsk(t, "subscribing with "+what, suite.Bearer(t.Get(wire.Form("match", t.Topic())), token), status...)
}

// tokAsk sends a request and wants one of these answers. It leaves it to the check to note what was seen, since one
// check may ask many times.
func tokAsk(t *suite.T, what string, r wire.Request, status ...int) *wire.Response {
	resp := t.Do(r)
	if !slices.Contains(status, resp.Status) {
		t.Fail("%s: answered %s, wanted %s", what, tokAnswer(resp), strings.Trim(strings.ReplaceAll(fmt.Sprint(status), " ", " or "), "[]"))
	}
	return resp
}

// tokAnswer is a status with the error that the challenge carries.
func tokAnswer(resp *wire.Response) string {
	if code := tokError(resp); code != "" {
		return fmt.Sprintf("%d (%s)", resp.Status, code)
	}
	return strconv.Itoa(resp.Status)
}

// tokParts signs a token and gives the three parts of the compact serialisation.
func tokParts(t *suite.T, key jose.Key, token jose.Token) (header, payload, signature string) {
	header, payload, signature, err := token.Parts(key)
	if err != nil {
		t.Fail("the suite cannot sign: %v", err)
	}
	return header, payload, signature
}

// tokKids gives a token with the kid of a trusted key, where it has one, and without.
func tokKids(token jose.Token, key jose.Key) []jose.Token {
	without, with := tokAnother(token), tokAnother(token)
	without.Header["kid"] = nil
	if key.Kid == "" {
		return []jose.Token{without}
	}
	with.Header["kid"] = key.Kid
	return []jose.Token{without, with}
}

// tokError is the error that a response's Bearer challenge carries, if any.
func tokError(resp *wire.Response) string {
	bearer := regexp.MustCompile(`(?i)(?:^|[\s,])bearer(?:[\s,]|$)`)
	code := regexp.MustCompile(`(?i)[\s,]error\s*=\s*(?:"([^"]*)"|([^\s,"]+))`)
	for _, challenge := range resp.All("WWW-Authenticate") {
		if m := code.FindStringSubmatch(challenge); m != nil && bearer.MatchString(challenge) {
			return m[1] + m[2]
		}
	}
	return ""
}

// tokWantError says that a response's challenge carries this error.
func tokWantError(t *suite.T, resp *wire.Response, code string) {
	if got := tokError(resp); got != code {
		t.Fail("the challenge of the %d carries the error %q, wanted %q", resp.Status, got, code)
	}
}

// tokHeaderOf is the header that a token gets from its key.
func tokHeaderOf(key jose.Key, token jose.Token) jose.Object {
	h := jose.Object{"alg": key.Alg}
	if key.Kid != "" {
		h["kid"] = key.Kid
	}
	maps.Copy(h, token.Header)
	return h
}

// tokAppended is an object as JSON, with more members after its own, as they are.
func tokAppended(t *suite.T, o jose.Object, members string) []byte {
	raw := tokJSON(t, o)
	return append(raw[:len(raw)-1], ","+members+"}"...)
}

func tokJSON(t *suite.T, value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fail("the suite cannot encode JSON: %v", err)
	}
	return raw
}
