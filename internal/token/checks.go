package token

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Check names one step of the verification.
type Check string

// The checks in their order. Each is run only where those it builds on have passed.
const (
	// CheckSize bounds the length of the token (LIM-10).
	CheckSize Check = "size"
	// CheckForm wants the JWS compact form (AUTH-05, TOK-22).
	CheckForm Check = "form"
	// CheckHeader wants a JSON object without repeated names (TOK-22).
	CheckHeader Check = "header"
	// CheckTyp wants an access token (TOK-01, TOK-02).
	CheckTyp Check = "typ"
	// CheckAlg wants an algorithm of the allow-list (TOK-03, TOK-04).
	CheckAlg Check = "alg"
	// CheckCrit refuses extensions of the signature format (TOK-22).
	CheckCrit Check = "crit"
	// CheckPayload wants a JSON object without repeated names (TOK-22).
	CheckPayload Check = "payload"
	// CheckIss wants a trusted issuer (TOK-19).
	CheckIss Check = "iss"
	// CheckKey selects among the issuer's keys (TOK-05, TOK-08 to TOK-13).
	CheckKey Check = "key"
	// CheckSignature verifies the signature (TOK-21).
	CheckSignature Check = "signature"
	// CheckExp wants a time of expiry in the future (TOK-14, TOK-15).
	CheckExp Check = "exp"
	// CheckNbf refuses tokens before their time (TOK-16).
	CheckNbf Check = "nbf"
	// CheckIat refuses tokens issued in the future.
	CheckIat Check = "iat"
	// CheckAud wants this hub in the audience (TOK-17, TOK-18).
	CheckAud Check = "aud"
	// CheckCnf refuses sender-constrained tokens (TOK-24).
	CheckCnf Check = "cnf"
	// CheckDetails wants valid Mercure authorization details, or none (RAR rows).
	CheckDetails Check = "details"
	// CheckKeyActions keeps the roles of keys apart (TOK-26).
	CheckKeyActions Check = "key_actions"
	// CheckRevocation refuses revoked tokens.
	CheckRevocation Check = "revocation"
)

// check is one entry of the list that Verify and Inspect run.
type check struct {
	name Check
	// needs are the earlier checks without whose success this one would have nothing to judge.
	needs []Check
	run   func(ctx context.Context, e *evaluation) error
	// passed says in words what was found; called only after run has succeeded.
	passed func(e *evaluation) string
}

// orderedChecks is the one definition of what makes a token acceptable.
func orderedChecks() []check {
	method := func(run func(*evaluation, context.Context) error) func(context.Context, *evaluation) error {
		return func(ctx context.Context, e *evaluation) error { return run(e, ctx) }
	}
	return []check{
		{CheckSize, nil, method((*evaluation).checkSize), func(e *evaluation) string {
			return fmt.Sprintf("%d bytes", len(e.compact))
		}},
		{CheckForm, []Check{CheckSize}, method((*evaluation).checkForm), constant("JWS compact form")},
		{CheckHeader, []Check{CheckForm}, method((*evaluation).checkHeader), constant("a JSON object")},
		{CheckTyp, []Check{CheckHeader}, method((*evaluation).checkTyp), constant("an access token (RFC 9068)")},
		{CheckAlg, []Check{CheckHeader}, method((*evaluation).checkAlg), func(e *evaluation) string { return e.algorithm.name }},
		{CheckCrit, []Check{CheckHeader}, method((*evaluation).checkCrit), constant("no extensions")},
		{CheckPayload, []Check{CheckForm}, method((*evaluation).checkPayload), constant("a JSON object")},
		{CheckIss, []Check{CheckPayload}, method((*evaluation).checkIss), describeIssuer},
		{CheckKey, []Check{CheckAlg, CheckIss}, method((*evaluation).checkKey), func(e *evaluation) string {
			return fmt.Sprintf("%d of the issuer's keys may have signed it", len(e.candidates))
		}},
		{CheckSignature, []Check{CheckKey}, method((*evaluation).checkSignature), describeKey},
		{CheckExp, []Check{CheckPayload}, method((*evaluation).checkExp), func(e *evaluation) string {
			return fmt.Sprintf("valid for %s, until %s", e.claims.ExpiresAt.Sub(e.now).Round(time.Second), stamp(e.claims.ExpiresAt))
		}},
		{CheckNbf, []Check{CheckPayload}, method((*evaluation).checkNbf), describeTime(func(c *Claims) time.Time { return c.NotBefore })},
		{CheckIat, []Check{CheckPayload}, method((*evaluation).checkIat), describeTime(func(c *Claims) time.Time { return c.IssuedAt })},
		{CheckAud, []Check{CheckPayload}, method((*evaluation).checkAud), func(e *evaluation) string { return "for " + shown(e.v.resource) }},
		{CheckCnf, []Check{CheckPayload}, method((*evaluation).checkCnf), constant("a bearer token")},
		{CheckDetails, []Check{CheckPayload}, method((*evaluation).checkDetails), describeDetails},
		{CheckKeyActions, []Check{CheckSignature, CheckDetails}, method((*evaluation).checkKeyActions), func(e *evaluation) string {
			return fmt.Sprintf("the key serves %s", e.key.serves())
		}},
		{CheckRevocation, []Check{CheckSignature, CheckIat}, method((*evaluation).checkRevocation), constant("not revoked")},
	}
}

func constant(text string) func(*evaluation) string { return func(*evaluation) string { return text } }

func describeIssuer(e *evaluation) string {
	if e.issuer.AuthorizationServer {
		return "authorization server " + shown(e.issuer.ID)
	}
	return "self-issuer " + shown(e.issuer.ID)
}

func describeKey(e *evaluation) string {
	if e.key.ID == "" {
		return "verified with a key without kid"
	}
	return "verified with key " + shown(e.key.ID)
}

func describeTime(of func(*Claims) time.Time) func(*evaluation) string {
	return func(e *evaluation) string {
		if t := of(e.claims); !t.IsZero() {
			return stamp(t)
		}
		return "not there"
	}
}

func describeDetails(e *evaluation) string {
	if len(e.claims.Details) == 0 {
		return "none for Mercure: the token grants nothing"
	}
	return fmt.Sprintf("%d, granting %s", len(e.claims.Details), e.claims.Grants.Actions())
}

// missing returns the first check of needs that has not passed.
func (c check) missing(passed map[Check]bool) (Check, bool) {
	i := slices.IndexFunc(c.needs, func(need Check) bool { return !passed[need] })
	if i < 0 {
		return "", false
	}
	return c.needs[i], true
}
