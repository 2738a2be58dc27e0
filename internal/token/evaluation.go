package token

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// evaluation is what the checks have found out about one token so far.
type evaluation struct {
	v        *Verifier
	compact  string
	endpoint rar.Action
	now      time.Time

	input     string // header and payload as signed
	header    []byte
	payload   []byte
	signature []byte

	typ, alg, kid jsontext.Value // header members, nil when absent
	extensions    []string       // header members that would change what the signature means

	iss, exp, nbf, iat, aud, details jsontext.Value // claims, nil when absent
	cnf, legacy                      bool           // whether the claims cnf and mercure are there

	algorithm  algorithm
	issuer     *Issuer
	candidates []Key
	key        Key
	version    uint64 // of the issuer's keys; 0 when the verdict must not be remembered
	claims     *Claims
}

func (e *evaluation) checkSize(context.Context) error {
	if len(e.compact) > e.v.maxBytes {
		return refuse("the token has %d bytes, more than the %d accepted", len(e.compact), e.v.maxBytes)
	}
	return nil
}

// checkForm accepts the JWS compact form and nothing else (AUTH-05, TOK-22).
func (e *evaluation) checkForm(context.Context) error {
	switch {
	case strings.HasPrefix(e.compact, "{"):
		return refuse("this is JSON, not a token in JWS compact form")
	case strings.HasPrefix(asciiLower(e.compact), "bearer "):
		return refuse("the token begins with the word Bearer, which belongs to the Authorization header")
	}
	switch n := strings.Count(e.compact, "."); n {
	case 2:
	case 4:
		return refuse("five segments: an encrypted token (JWE), which is not accepted")
	default:
		return refuse("%d segments instead of 3: not a JWT", n+1)
	}
	last := strings.LastIndexByte(e.compact, '.')
	e.input = e.compact[:last]
	header, payload, _ := strings.Cut(e.input, ".")
	var ok [3]bool
	e.header, ok[0] = decodeSegment(header)
	e.payload, ok[1] = decodeSegment(payload)
	e.signature, ok[2] = decodeSegment(e.compact[last+1:])
	for i, name := range []string{"header", "payload", "signature"} {
		if !ok[i] {
			return refuse("the %s is not unpadded base64url", name)
		}
	}
	return nil
}

// decodeSegment decodes unpadded base64url with one spelling per value. The decoder of the standard library skips line
// ends, which the alphabet does not have.
func decodeSegment(s string) ([]byte, bool) {
	if strings.ContainsAny(s, "\r\n") {
		return nil, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return b, err == nil
}

func (e *evaluation) checkHeader(context.Context) error {
	err := readObject(e.header, func(name string, v jsontext.Value) error {
		switch name {
		case "typ":
			e.typ = v.Clone()
		case "alg":
			e.alg = v.Clone()
		case "kid":
			e.kid = v.Clone()
		case "crit", "b64":
			e.extensions = append(e.extensions, name)
		}
		// jwk, jku, x5u, x5c and all else are deliberately not read (TOK-09, TOK-10).
		return nil
	})
	if err != nil {
		return refuse("the header cannot be read: %s", err)
	}
	return nil
}

func (e *evaluation) checkTyp(context.Context) error {
	if e.typ == nil {
		return refuse("the header has no typ; an access token has at+jwt")
	}
	typ, err := readString(e.typ)
	if err != nil {
		return refuse("typ is %s", err)
	}
	if lower := asciiLower(typ); lower != "at+jwt" && lower != "application/at+jwt" {
		return refuse("typ is %s, an access token has at+jwt", shown(typ))
	}
	return nil
}

func (e *evaluation) checkAlg(context.Context) error {
	if e.alg == nil {
		return refuse("the header has no alg")
	}
	alg, err := readString(e.alg)
	if err != nil {
		return refuse("alg is %s", err)
	}
	if asciiLower(alg) == "none" {
		return refuse("alg is none: an unsigned token is never accepted")
	}
	a, ok := algorithmByName(alg)
	if !ok {
		return refuse("alg is %s, which is not an accepted algorithm", shown(alg))
	}
	e.algorithm = a
	return nil
}

// checkCrit refuses every extension: none is understood (RFC 7515 section 4.1.11), and b64 would change what is signed
// (RFC 7797).
func (e *evaluation) checkCrit(context.Context) error {
	if len(e.extensions) > 0 {
		return refuse("the header has %s; no extensions are understood", strings.Join(e.extensions, " and "))
	}
	return nil
}

func (e *evaluation) checkPayload(context.Context) error {
	err := readObject(e.payload, func(name string, v jsontext.Value) (err error) {
		switch name {
		case "iss":
			e.iss = v.Clone()
		case "exp":
			e.exp = v.Clone()
		case "nbf":
			e.nbf = v.Clone()
		case "iat":
			e.iat = v.Clone()
		case "aud":
			e.aud = v.Clone()
		case "authorization_details":
			e.details = v.Clone()
		case "cnf":
			e.cnf = true
		case "mercure":
			e.legacy = true
		case "sub":
			e.claims.Subject, err = readString(v)
		case "client_id":
			e.claims.ClientID, err = readString(v)
		case "jti":
			e.claims.ID, err = readString(v)
		case "sid":
			e.claims.SessionID, err = readString(v)
		case "grant_id": // not registered: another issuer's may be anything
			e.claims.GrantID, _ = readString(v)
		case "preferred_username":
			e.claims.Username, err = readString(v)
		}
		if err != nil {
			return fmt.Errorf("the claim %s is %w", name, err)
		}
		return nil
	})
	if err != nil {
		return refuse("the payload cannot be read: %s", err)
	}
	return nil
}

func (e *evaluation) checkIss(context.Context) error {
	if e.iss == nil {
		return refuse("the claim iss is missing")
	}
	iss, err := readString(e.iss)
	if err != nil {
		return refuse("the claim iss is %s", err)
	}
	e.claims.Issuer = iss
	issuer, ok := e.v.issuers[iss]
	if !ok {
		return refuse("%s is not a trusted issuer", shown(iss))
	}
	e.issuer = issuer
	e.claims.FromAuthorizationServer = issuer.AuthorizationServer
	return nil
}

// checkKey selects the keys that may have signed the token: the issuer's own, for the very algorithm the token names.
func (e *evaluation) checkKey(ctx context.Context) error {
	var kid string
	if e.kid != nil {
		var err error
		if kid, err = readString(e.kid); err != nil {
			return refuse("kid is %s", err)
		}
	}
	source, versioned := e.issuer.Keys.(VersionedSource)
	var before uint64
	if versioned {
		before = source.KeysVersion()
	}
	keys, err := e.issuer.Keys.Keys(ctx, kid)
	if err != nil {
		if !errors.Is(err, ErrUnavailable) {
			err = fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return fmt.Errorf("keys of issuer %s: %w", shown(e.issuer.ID), err)
	}
	if versioned && source.KeysVersion() == before { // else they changed under our hands
		e.version = before
	}
	for _, k := range keys {
		a, ok := algorithmByName(k.Algorithm)
		if ok && a.name == e.algorithm.name && a.fits(k.Material) == nil {
			e.candidates = append(e.candidates, k)
		}
	}
	switch {
	case len(keys) == 0:
		return refuse("the issuer has no key %s", shown(kid))
	case len(e.candidates) == 0:
		return refuse("the issuer has no key for %s (kid %s)", e.algorithm.name, shown(kid))
	case len(e.candidates) > maxCandidates:
		return refuse("the issuer has %d keys for %s and kid does not say which", len(e.candidates), e.algorithm.name)
	}
	return nil
}

func (e *evaluation) checkSignature(context.Context) error {
	if len(e.signature) == 0 {
		return refuse("the signature is empty")
	}
	input := []byte(e.input)
	for _, k := range e.candidates {
		if e.algorithm.verify(k.Material, input, e.signature) {
			e.key = k
			e.claims.KeyID = k.ID
			return nil
		}
	}
	return refuse("the signature verifies with none of the issuer's %d matching keys", len(e.candidates))
}

func (e *evaluation) checkExp(context.Context) error {
	if e.exp == nil {
		return refuse("the claim exp is missing")
	}
	t, err := readDate(e.exp)
	if err != nil {
		return refuse("the claim exp is %s", err)
	}
	e.claims.ExpiresAt = t
	if e.claims.expired(e.now) {
		return refuse("expired %s ago, at %s", e.now.Sub(t).Round(time.Second), stamp(t))
	}
	return nil
}

func (e *evaluation) checkNbf(context.Context) error {
	if e.nbf == nil {
		return nil
	}
	t, err := readDate(e.nbf)
	if err != nil {
		return refuse("the claim nbf is %s", err)
	}
	e.claims.NotBefore = t
	if early(t, e.now) {
		return refuse("not valid before %s, in %s", stamp(t), t.Sub(e.now).Round(time.Second))
	}
	return nil
}

func (e *evaluation) checkIat(context.Context) error {
	if e.iat == nil {
		return nil
	}
	t, err := readDate(e.iat)
	if err != nil {
		return refuse("the claim iat is %s", err)
	}
	e.claims.IssuedAt = t
	if early(t, e.now) {
		return refuse("issued in the future, at %s: the issuer's clock is %s ahead", stamp(t), t.Sub(e.now).Round(time.Second))
	}
	return nil
}

// checkAud wants the resource identifier, byte for byte (TOK-17, TOK-18).
func (e *evaluation) checkAud(context.Context) error {
	if e.aud == nil {
		return refuse("the claim aud is missing; this hub is %s", shown(e.v.resource))
	}
	var err error
	if e.aud.Kind() == '[' {
		e.claims.Audience, err = readStrings(e.aud)
	} else {
		var one string
		one, err = readString(e.aud)
		e.claims.Audience = []string{one}
	}
	if err != nil {
		e.claims.Audience = nil
		return refuse("the claim aud is neither a string nor an array of strings")
	}
	if !slices.Contains(e.claims.Audience, e.v.resource) {
		return refuse("aud is %s, this hub is %s", shown(strings.Join(e.claims.Audience, " ")), shown(e.v.resource))
	}
	return nil
}

// checkCnf refuses sender-constrained tokens: accepting one without its proof would make it a bearer token (TOK-24).
func (e *evaluation) checkCnf(context.Context) error {
	if e.cnf {
		return refuse("the token is bound to a key of its sender (cnf), whose proof is not supported")
	}
	return nil
}

func (e *evaluation) checkDetails(context.Context) error {
	if e.details == nil {
		return nil // RAR-03: no rights, but no fault either
	}
	details, err := rar.Parse(e.details, e.v.limits)
	if err != nil {
		return refuse("%s", err)
	}
	grants, err := rar.Compile(details, e.v.compiler)
	if err != nil {
		return refuse("%s", err)
	}
	e.claims.Details, e.claims.Grants = details, grants
	return nil
}

// checkKeyActions keeps the roles of keys apart (TOK-26). It does not judge whether the token grants enough.
func (e *evaluation) checkKeyActions(context.Context) error {
	serves, claimed := e.key.serves(), e.claims.Grants.Actions()
	if !serves.Contains(claimed) {
		return refuse("the details claim %s, but the key that signed them serves %s only", claimed, serves)
	}
	if e.endpoint != "" && !e.issuer.AuthorizationServer && !serves.Has(e.endpoint) {
		return refuse("presented to %s, but the key that signed it serves %s only", e.endpoint, serves)
	}
	return nil
}

func (e *evaluation) checkRevocation(context.Context) error {
	if e.v.revoked(e.claims) {
		return refuse("revoked")
	}
	return nil
}

func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + ('a' - 'A')
		}
	}
	return string(b)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
