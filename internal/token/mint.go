package token

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jws"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// SigningKey is a key that signs tokens.
type SigningKey struct {
	// ID is the kid that the token names; required.
	ID string
	// Algorithm is a JWS algorithm name of the allow-list.
	Algorithm string
	// Material is an *rsa.PrivateKey, *ecdsa.PrivateKey or ed25519.PrivateKey, or the []byte secret of an HMAC algorithm.
	Material any
	// Actions is the set of actions that tokens signed with the key may grant; 0 means all.
	Actions rar.ActionSet
}

// Public returns the key that verifies what k signs, or ErrKey when k is unusable.
func (k SigningKey) Public() (Key, error) {
	return finishKey(Key{ID: k.ID, Algorithm: k.Algorithm, Material: publicOf(k.Material), Actions: k.Actions})
}

// ParseSigningKey reads a private JWK (RFC 7517) that has kid and alg. Errors wrap ErrKey and never quote the key.
func ParseSigningKey(data []byte) (SigningKey, error) {
	public, err := parseJWK(data)
	if err != nil {
		return SigningKey{}, err
	}
	k := SigningKey{ID: public.ID, Algorithm: public.Algorithm, Actions: public.Actions}
	if k.Material, err = rawMaterial(data); err != nil {
		return SigningKey{}, err
	}
	return k, k.check()
}

// check says whether the key can sign.
func (k SigningKey) check() error {
	if k.ID == "" {
		return fmt.Errorf("%w: a signing key needs an id", ErrKey)
	}
	if publicOf(k.Material) == nil {
		return fmt.Errorf("%w: not a private key", ErrKey)
	}
	_, err := k.Public()
	return err
}

// MintClaims is what a token is to say.
type MintClaims struct {
	// Issuer, Subject, Audience and ClientID are iss, sub, aud (the one resource) and client_id; required.
	Issuer, Subject, Audience, ClientID string
	// ID is jti; empty means a random UUID.
	ID string
	// IssuedAt and ExpiresAt are iat and exp, in whole seconds, fractions cut off; required.
	IssuedAt, ExpiresAt time.Time
	// SessionID, GrantID and Username are sid, grant_id and preferred_username; left out when empty.
	SessionID, GrantID, Username string
	// AuthorizationDetails is written as it is, whitespace apart (rar.Encode); left out when empty.
	AuthorizationDetails json.RawMessage
}

// check wants what RFC 9068 section 2.2 requires.
func (c MintClaims) check() error {
	for _, claim := range []struct {
		name    string
		present bool
	}{
		{"iss", c.Issuer != ""},
		{"sub", c.Subject != ""},
		{"aud", c.Audience != ""},
		{"client_id", c.ClientID != ""},
		{"iat", c.IssuedAt.Unix() > 0},
		{"exp after iat", c.ExpiresAt.Unix() > c.IssuedAt.Unix() && c.ExpiresAt.Unix() <= maxNumericDate},
	} {
		if !claim.present {
			return fmt.Errorf("%w: %s", ErrIncomplete, claim.name)
		}
	}
	return nil
}

// checkDetails wants details a hub accepts from this key.
func (c MintClaims) checkDetails(k SigningKey) error {
	details, err := rar.Parse(c.AuthorizationDetails, rar.DefaultLimits())
	if err != nil {
		return err // *rar.Error: it names the claim
	}
	var claimed rar.ActionSet
	for _, d := range details {
		claimed |= d.ActionSet()
	}
	if serves := (Key{Actions: k.Actions}).serves(); !serves.Contains(claimed) {
		return fmt.Errorf("%w: the details grant %s, the key serves %s only", ErrKey, claimed, serves)
	}
	return nil
}

// payload writes the claims in a fixed order.
func (c MintClaims) payload() ([]byte, error) {
	var buf bytes.Buffer
	e := jsontext.NewEncoder(&buf)
	w := claimWriter{e: e}
	w.token(jsontext.BeginObject)
	w.text("iss", c.Issuer)
	w.text("sub", c.Subject)
	w.text("aud", c.Audience)
	w.text("client_id", c.ClientID)
	w.text("jti", c.ID)
	w.member("iat", jsontext.Int(c.IssuedAt.Unix()))
	w.member("exp", jsontext.Int(c.ExpiresAt.Unix()))
	w.text("sid", c.SessionID)
	w.text("grant_id", c.GrantID)
	w.text("preferred_username", c.Username)
	if len(c.AuthorizationDetails) > 0 && w.err == nil {
		w.token(jsontext.String("authorization_details"))
		if w.err == nil {
			w.err = e.WriteValue(jsontext.Value(c.AuthorizationDetails))
		}
	}
	w.token(jsontext.EndObject)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), w.err
}

// claimWriter keeps the first error, so that the claims can be written one after the other.
type claimWriter struct {
	e   *jsontext.Encoder
	err error
}

func (w *claimWriter) token(t jsontext.Token) {
	if w.err == nil {
		w.err = w.e.WriteToken(t)
	}
}

func (w *claimWriter) member(name string, t jsontext.Token) {
	w.token(jsontext.String(name))
	w.token(t)
}

func (w *claimWriter) text(name, value string) {
	if value != "" {
		w.member(name, jsontext.String(value))
	}
}

// Mint issues an access token (RFC 9068) in JWS compact form. Every claim the RFC requires must be there (ErrIncomplete),
// the details must be what a hub accepts, the key must fit its algorithm and serve the actions (ErrKey), and the result must be short enough for
// a verifier with default limits (ErrTooLarge; a cookie may need less, which is the caller's to check).
func Mint(k SigningKey, c MintClaims) (string, error) {
	if err := k.check(); err != nil {
		return "", err
	}
	if err := c.check(); err != nil {
		return "", err
	}
	if err := c.checkDetails(k); err != nil {
		return "", err
	}
	if c.ID == "" {
		id, err := uuid.NewRandom()
		if err != nil {
			return "", fmt.Errorf("draw jti: %w", err)
		}
		c.ID = id.String()
	}
	payload, err := c.payload()
	if err != nil {
		return "", fmt.Errorf("encode claims: %w", err)
	}
	compact, err := sign(k, payload)
	if err != nil {
		return "", err
	}
	if len(compact) > DefaultMaxBytes {
		return "", fmt.Errorf("%w: %d bytes, at most %d; grant fewer or shorter topics", ErrTooLarge, len(compact), DefaultMaxBytes)
	}
	return compact, nil
}

func sign(k SigningKey, payload []byte) (string, error) {
	a, _ := algorithmByName(k.Algorithm) // k was checked
	h := jws.NewHeaders()
	if err := h.Set(jws.TypeKey, "at+jwt"); err != nil {
		return "", fmt.Errorf("set typ: %w", err)
	}
	if err := h.Set(jws.KeyIDKey, k.ID); err != nil {
		return "", fmt.Errorf("set kid: %w", err)
	}
	signed, err := jws.Sign(payload, jws.WithKey(jwa.SignatureAlgorithm(a.name), k.Material, jws.WithProtectedHeaders(h)))
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return string(signed), nil
}
