package session

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jws"
	"github.com/lestrrat-go/jwx/v2/jwt"
)

func TestAsserter_Keys(t *testing.T) {
	ec := func(curve elliptic.Curve) crypto.Signer { return must(t)(ecdsa.GenerateKey(curve, rand.Reader)) }
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey := must(t)(rsa.GenerateKey(rand.Reader, 2048))
	tests := map[string]struct {
		key  crypto.Signer
		alg  string // of the key; "" leaves it out
		want jwa.SignatureAlgorithm
	}{
		"P-256":        {ec(elliptic.P256()), "", jwa.ES256},
		"P-384":        {ec(elliptic.P384()), "", jwa.ES384},
		"P-521":        {ec(elliptic.P521()), "", jwa.ES512},
		"Ed25519":      {ed, "", jwa.EdDSA},
		"RSA":          {rsaKey, "", jwa.PS256},
		"RSA with alg": {rsaKey, "RS256", jwa.RS256},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			key, err := jwk.FromRaw(tt.key)
			if err != nil {
				t.Fatal(err)
			}
			if err := key.Set(jwk.KeyIDKey, "k1"); err != nil {
				t.Fatal(err)
			}
			if tt.alg != "" {
				if err := key.Set(jwk.AlgorithmKey, tt.alg); err != nil {
					t.Fatal(err)
				}
			}
			private, err := json.Marshal(key)
			if err != nil {
				t.Fatal(err)
			}
			a, err := newAsserter("hub", "https://auth.example.com", private)
			if err != nil {
				t.Fatal(err)
			}
			now := time.Now()
			compact, err := a.sign(now)
			if err != nil {
				t.Fatal(err)
			}
			checkAssertion(t, compact, tt.want, tt.key.Public(), now)
		})
	}
}

func checkAssertion(t *testing.T, compact string, alg jwa.SignatureAlgorithm, public crypto.PublicKey, now time.Time) {
	t.Helper()
	message, err := jws.Parse([]byte(compact))
	if err != nil {
		t.Fatal(err)
	}
	if h := message.Signatures()[0].ProtectedHeaders(); h.Algorithm() != alg || h.KeyID() != "k1" || h.Type() != "JWT" {
		t.Errorf("header: alg %s, kid %q, typ %q", h.Algorithm(), h.KeyID(), h.Type())
	}
	parsed, err := jwt.Parse([]byte(compact), jwt.WithKey(alg, public))
	if err != nil {
		t.Fatal(err)
	}
	if parsed.Issuer() != "hub" || parsed.Subject() != "hub" || len(parsed.Audience()) != 1 || parsed.Audience()[0] != "https://auth.example.com" {
		t.Errorf("iss %q, sub %q, aud %v", parsed.Issuer(), parsed.Subject(), parsed.Audience())
	}
	if got := parsed.Expiration().Sub(now.Truncate(time.Second)); got != time.Minute {
		t.Errorf("it lives %v, want a minute", got)
	}
}

func TestAsserter_RefusesAlgorithms(t *testing.T) {
	for _, alg := range []string{"none", "ECDH-ES", "HS256", "RS256"} {
		key, err := jwk.FromRaw(must(t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)))
		if err != nil {
			t.Fatal(err)
		}
		if err := key.Set(jwk.AlgorithmKey, alg); err != nil {
			continue // the library refuses it first
		}
		private, err := json.Marshal(key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newAsserter("hub", "https://auth.example.com", private); err == nil {
			t.Errorf("alg %s is accepted for an EC key", alg)
		}
	}
}

// must fails the test on an error.
func must(t *testing.T) func(crypto.Signer, error) crypto.Signer {
	t.Helper()
	return func(key crypto.Signer, err error) crypto.Signer {
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
}
