package as

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/lestrrat-go/jwx/v2/jws"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

const (
	// assertionLeeway is how far a client's clock may be off.
	assertionLeeway = time.Minute
	// maxAssertionLife is how far ahead an assertion may expire: its jti is remembered that long.
	maxAssertionLife = 5 * time.Minute
	// maxAssertionBytes and maxAssertionIDBytes bound what is parsed and stored.
	maxAssertionBytes   = 8 << 10
	maxAssertionIDBytes = 256
)

// assertionAlgorithms are what private_key_jwt may be signed with, as the metadata lists them.
func assertionAlgorithms() []string { return []string{"ES256", "EdDSA", "RS256", "PS256"} }

// assertionClaims is the payload of a client assertion.
type assertionClaims struct {
	Issuer    string         `json:"iss"`
	Subject   string         `json:"sub"`
	Audience  jsontext.Value `json:"aud"`
	ID        string         `json:"jti"`
	ExpiresAt *float64       `json:"exp"`
	IssuedAt  *float64       `json:"iat"`
	NotBefore *float64       `json:"nbf"`
}

// checkAssertion verifies a client assertion (RFC 7523 section 3) and marks its jti as used, last of all, so that a bad
// assertion cannot burn a good one's.
func (s *Server) checkAssertion(ctx context.Context, client store.Client, assertion string) error {
	payload, err := verifyAssertion(client, assertion)
	if err != nil {
		return err
	}
	var claims assertionClaims
	if err := json.Unmarshal(payload, &claims); err != nil { // refuses duplicate names
		return authError("assertion: claims are malformed")
	}
	now := time.Now()
	expires, err := claims.check(client.ID, s.assertionAudiences(), now)
	if err != nil {
		return err
	}
	switch err := s.store.UseAssertion(ctx, client.ID, claims.ID, expires.Add(assertionLeeway)); {
	case errors.Is(err, store.ErrConsumed):
		return authError("assertion: used before")
	case err != nil:
		return fmt.Errorf("use assertion: %w", err)
	}
	return nil
}

// assertionAudiences are the values of aud that mean this server: the issuer, and the endpoints that clients which follow the
// older texts name (RFC 7523 section 3, RFC 9126 section 2).
func (s *Server) assertionAudiences() []string {
	return []string{s.options.Issuer, s.endpoint(PathToken), s.endpoint(PathPush)}
}

func verifyAssertion(client store.Client, assertion string) ([]byte, error) {
	if len(assertion) > maxAssertionBytes || strings.Count(assertion, ".") != 2 {
		return nil, authError("assertion: not a compact JWS")
	}
	message, err := jws.ParseString(assertion)
	if err != nil || len(message.Signatures()) != 1 {
		return nil, authError("assertion: not a compact JWS")
	}
	header := message.Signatures()[0].ProtectedHeaders()
	algorithm := header.Algorithm().String()
	if algorithm == "Ed25519" { // RFC 9864's name
		algorithm = "EdDSA"
	}
	if !slices.Contains(assertionAlgorithms(), algorithm) {
		return nil, authError("assertion: algorithm is not allowed")
	}
	if len(header.Critical()) > 0 {
		return nil, authError("assertion: has critical extensions")
	}
	switch strings.ToLower(strings.TrimPrefix(strings.ToLower(header.Type()), "application/")) {
	case "", "jwt", "client-authentication+jwt":
	default:
		return nil, authError("assertion: is another type of token")
	}
	keys, err := clientKeys(client)
	if err != nil {
		return nil, authError("the client's keys are unusable")
	}
	for _, k := range keys {
		if k.Algorithm != algorithm || (header.KeyID() != "" && k.ID != "" && header.KeyID() != k.ID) {
			continue
		}
		payload, err := jws.Verify([]byte(assertion), jws.WithKey(header.Algorithm(), k.Material))
		if err == nil {
			return payload, nil
		}
	}
	return nil, authError("assertion: no key of the client verifies it")
}

// clientKeys reads the registered public keys of a client.
func clientKeys(c store.Client) ([]token.Key, error) {
	if len(c.JWKS) == 0 {
		return nil, errors.New("keys: private_key_jwt needs a JSON Web Key Set")
	}
	keys, err := token.ParseJWKSet(c.JWKS, 0)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	for _, k := range keys {
		if slices.Contains(assertionAlgorithms(), k.Algorithm) {
			return keys, nil
		}
	}
	return nil, fmt.Errorf("keys: none is for one of %v", assertionAlgorithms())
}

// check judges the claims and returns when the assertion expires.
func (c assertionClaims) check(clientID string, audiences []string, now time.Time) (time.Time, error) {
	switch {
	case c.Issuer != clientID || c.Subject != clientID:
		return time.Time{}, authError("assertion: iss and sub are not the client")
	case !c.audienceIn(audiences):
		return time.Time{}, authError("assertion: aud is not this server alone")
	case c.ID == "" || len(c.ID) > maxAssertionIDBytes:
		return time.Time{}, authError("assertion: jti is missing or too long")
	case c.ExpiresAt == nil:
		return time.Time{}, authError("assertion: exp is missing")
	}
	expires := numericDate(*c.ExpiresAt)
	switch {
	case !now.Before(expires.Add(assertionLeeway)):
		return time.Time{}, authError("assertion: has expired")
	case expires.After(now.Add(maxAssertionLife + assertionLeeway)):
		return time.Time{}, authError("assertion: lives too long")
	}
	for _, claim := range []*float64{c.IssuedAt, c.NotBefore} {
		if claim != nil && numericDate(*claim).After(now.Add(assertionLeeway)) {
			return time.Time{}, authError("assertion: is not valid yet")
		}
	}
	return expires, nil
}

// audienceIn says whether aud is one of the audiences, or a list of nothing but them: an assertion that is good for
// somebody else too could be theirs to replay.
func (c assertionClaims) audienceIn(audiences []string) bool {
	var one string
	if json.Unmarshal(c.Audience, &one) == nil {
		return slices.Contains(audiences, one)
	}
	var many []string
	if json.Unmarshal(c.Audience, &many) != nil || len(many) == 0 {
		return false
	}
	return !slices.ContainsFunc(many, func(a string) bool { return !slices.Contains(audiences, a) })
}

// numericDate converts a NumericDate (RFC 7519 section 2), clamped to what a time can hold.
func numericDate(seconds float64) time.Time {
	const most = 1 << 40
	seconds = math.Max(-most, math.Min(most, seconds))
	return time.Unix(int64(seconds), 0)
}

// unverifiedSubject reads sub of an assertion to find out whose keys to verify it with.
func unverifiedSubject(assertion string) string {
	parts := strings.Split(assertion, ".")
	if len(parts) != 3 || len(assertion) > maxAssertionBytes {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims assertionClaims
	if json.Unmarshal(payload, &claims) != nil {
		return ""
	}
	return claims.Subject
}
