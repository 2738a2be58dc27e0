package as

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/url"
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
	// assertionType is the client_assertion_type of RFC 7523 section 2.2.
	assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
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

// Basic is what an Authorization header of the Basic scheme holds, as it was sent: form-encoded (RFC 6749 section 2.3.1).
type Basic struct {
	User, Password string
}

// credentials is how a client presents itself, before anything of it is believed.
type credentials struct {
	clientID  string
	basic     bool
	secret    string
	assertion string
}

// readCredentials finds the one method a request uses. Two at once are refused (RFC 6749 section 2.3), and so is a client_id
// beside them that differs: authenticating as one client and acting as another is how mix-ups begin.
func readCredentials(p params, basic *Basic) (credentials, error) {
	c := credentials{clientID: p.get("client_id"), secret: p.get("client_secret"), assertion: p.get("client_assertion")}
	asserts := c.assertion != "" || p.has("client_assertion_type")
	methods := 0
	for _, used := range []bool{basic != nil, c.secret != "", asserts} {
		if used {
			methods++
		}
	}
	switch {
	case methods > 1:
		return credentials{}, refuse(CodeInvalidRequest, "Only one client authentication method may be used.")
	case basic != nil:
		id, err := url.QueryUnescape(basic.User)
		if err != nil {
			return credentials{}, badClient()
		}
		c.basic, c.secret = true, basic.Password
		return c.as(id)
	case asserts && (c.assertion == "" || p.get("client_assertion_type") != assertionType):
		return credentials{}, refuse(CodeInvalidRequest, "The client assertion type is not supported.")
	case asserts:
		return c.as(unverifiedSubject(c.assertion))
	default:
		return c, nil
	}
}

// as says which client the credentials themselves name; "" if they do not say.
func (c credentials) as(id string) (credentials, error) {
	if c.clientID != "" && id != "" && c.clientID != id {
		return credentials{}, clientMismatch()
	}
	if c.clientID == "" {
		c.clientID = id
	}
	return c, nil
}

// authenticate returns the client that sent a request to one of the endpoints for clients. Failures change nothing but the
// audit trail: golang.org/x/oauth2 tries one method, and on any error the next, with the same code.
func (s *Server) authenticate(ctx context.Context, p params, basic *Basic) (store.Client, error) {
	creds, err := readCredentials(p, basic)
	if err != nil {
		return store.Client{}, err
	}
	if creds.clientID == "" {
		return store.Client{}, s.clientRefused(ctx, creds, authError("no client named"))
	}
	client, err := s.client(ctx, creds.clientID)
	if errors.Is(err, ErrClient) {
		return store.Client{}, s.clientRefused(ctx, creds, err)
	}
	if err != nil {
		return store.Client{}, err
	}
	err = s.checkCredentials(ctx, client, creds)
	if failure, ok := errors.AsType[authError](err); ok {
		return store.Client{}, s.clientRefused(ctx, creds, failure)
	}
	return client, err
}

// authError says why a client could not be authenticated. It is for the audit trail; the client learns only that it was not.
type authError string

func (f authError) Error() string { return "as: " + string(f) }

func (s *Server) checkCredentials(ctx context.Context, client store.Client, creds credentials) error {
	switch client.AuthMethod {
	case AuthNone:
		// An empty password is how HTTP libraries that know nothing else present a public client.
		if creds.secret != "" || creds.assertion != "" {
			return authError("a public client has no credentials")
		}
		return nil
	case AuthPrivateKeyJWT:
		if creds.assertion == "" {
			return authError("no assertion")
		}
		return s.checkAssertion(ctx, client, creds.assertion)
	default:
		return authError("the client's authentication method is not supported")
	}
}

// clientRefused records a failed authentication and returns what the client is told, which is always the same.
func (s *Server) clientRefused(ctx context.Context, creds credentials, reason error) error {
	id := creds.clientID
	if len(id) > 256 || !printable(id) {
		id = ""
	}
	s.audit(ctx, store.AuditRecord{
		Event: EventClientRefused, Client: id, Details: map[string]string{"reason": reason.Error()},
	})
	e := badClient().because(reason)
	e.BasicChallenge = creds.basic
	return e
}

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

// assertionAudiences are the values of aud that mean this server: the issuer, and the token endpoint for clients that
// follow the older text.
func (s *Server) assertionAudiences() []string {
	return []string{s.options.Issuer, s.endpoint(PathToken)}
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

// sameText compares secrets in constant time.
func sameText(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
