package clientassertion

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jwt"
)

// Type is the client_assertion_type of an assertion (RFC 7523 section 2.2).
const Type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// Lifetime is how long an assertion lives. It is short, for an assertion is made for one request.
const Lifetime = time.Minute

// ErrKey says that a client key cannot sign assertions. The text around it says why and never contains key material.
var ErrKey = errors.New("clientassertion: unusable client key")

// Asserter makes assertions for one client at one authorization server. It is safe for concurrent use.
type Asserter struct {
	clientID, audience string
	key                jwk.Key
	algorithm          jwa.SignatureAlgorithm
}

// New returns an Asserter for a client of the authorization server whose issuer identifier is audience. private is a private
// JWK; its kid goes into the assertion's header, and its alg, where it has none the usual one of its type, signs. The error is
// ErrKey.
func New(clientID, audience string, private json.RawMessage) (*Asserter, error) {
	key, err := jwk.ParseKey(private)
	if err != nil {
		// The parser's text quotes its input, which is a private key.
		return nil, fmt.Errorf("%w: not a JWK", ErrKey)
	}
	if secret, err := jwk.IsPrivateKey(key); err != nil || !secret {
		return nil, fmt.Errorf("%w: not a private key", ErrKey)
	}
	alg, err := signatureAlgorithm(key)
	if err != nil {
		return nil, err
	}
	a := &Asserter{clientID: clientID, audience: audience, key: key, algorithm: alg}
	if _, err := a.Sign(time.Unix(0, 0)); err != nil {
		return nil, fmt.Errorf("%w: alg %s does not fit it", ErrKey, alg)
	}
	return a, nil
}

// signatureAlgorithm is the key's own alg, or the usual one of its type. That an alg signs at all with the key is tried by New; that it
// belongs to the key's curve (RFC 7518 section 3.4) is not something the library looks at.
func signatureAlgorithm(key jwk.Key) (jwa.SignatureAlgorithm, error) {
	usual := usualAlgorithm(key)
	own := jwa.SignatureAlgorithm(key.Algorithm().String())
	_, elliptic := key.(jwk.ECDSAPrivateKey)
	switch {
	case usual == "":
		return "", fmt.Errorf("%w: of a type that cannot sign", ErrKey)
	case own == "":
		return usual, nil
	case own == jwa.NoSignature, elliptic && own != usual:
		return "", fmt.Errorf("%w: its alg does not belong to its type", ErrKey)
	}
	return own, nil
}

// usualAlgorithm is the algorithm of a key that names none, or "".
func usualAlgorithm(key jwk.Key) jwa.SignatureAlgorithm {
	switch k := key.(type) {
	case jwk.ECDSAPrivateKey:
		curves := map[jwa.EllipticCurveAlgorithm]jwa.SignatureAlgorithm{jwa.P256: jwa.ES256, jwa.P384: jwa.ES384, jwa.P521: jwa.ES512}
		return curves[k.Crv()]
	case jwk.OKPPrivateKey:
		if k.Crv() == jwa.Ed25519 {
			return jwa.EdDSA
		}
	case jwk.RSAPrivateKey:
		return jwa.PS256
	}
	return ""
}

// Sign makes an assertion for one request (RFC 7523 section 3), issued at now.
func (a *Asserter) Sign(now time.Time) (string, error) {
	t, err := jwt.NewBuilder().
		Issuer(a.clientID).Subject(a.clientID).Audience([]string{a.audience}).
		JwtID(uuid.NewString()).IssuedAt(now).Expiration(now.Add(Lifetime)).
		Build()
	if err != nil {
		return "", fmt.Errorf("build client assertion: %w", err)
	}
	t.Options().Enable(jwt.FlattenAudience)
	compact, err := jwt.Sign(t, jwt.WithKey(a.algorithm, a.key))
	if err != nil {
		return "", fmt.Errorf("sign client assertion: %w", err)
	}
	return string(compact), nil
}

// Authenticate adds the client's authentication to the form of one request: client_id, client_assertion_type and a new
// client_assertion, issued at now.
func (a *Asserter) Authenticate(form url.Values, now time.Time) error {
	assertion, err := a.Sign(now)
	if err != nil {
		return err
	}
	form.Set("client_id", a.clientID)
	form.Set("client_assertion_type", Type)
	form.Set("client_assertion", assertion)
	return nil
}
