package clientassertion_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jws"
	"github.com/lestrrat-go/jwx/v2/jwt"

	"github.com/cinnabar-hub/cinnabar/internal/clientassertion"
)

const issuer = "https://auth.example.com"

func ecKey(tb testing.TB, curve elliptic.Curve) crypto.Signer {
	tb.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func rsaKey(tb testing.TB) crypto.Signer {
	tb.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// private encodes a key with the kid k1 and the alg, if there is one.
func private(tb testing.TB, key any, alg string) json.RawMessage {
	tb.Helper()
	k, err := jwk.FromRaw(key)
	if err != nil {
		tb.Fatal(err)
	}
	if err := k.Set(jwk.KeyIDKey, "k1"); err != nil {
		tb.Fatal(err)
	}
	raw, err := json.Marshal(k)
	if err != nil {
		tb.Fatal(err)
	}
	if alg != "" {
		raw = append([]byte(`{"alg":"`+alg+`",`), raw[1:]...)
	}
	return raw
}

func TestAsserter_Keys(t *testing.T) {
	t.Parallel()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsa2048 := rsaKey(t)
	for name, tt := range map[string]struct {
		key  crypto.Signer
		alg  string // of the key; "" leaves it out
		want jwa.SignatureAlgorithm
	}{
		"P-256":        {ecKey(t, elliptic.P256()), "", jwa.ES256},
		"P-384":        {ecKey(t, elliptic.P384()), "", jwa.ES384},
		"P-521":        {ecKey(t, elliptic.P521()), "", jwa.ES512},
		"Ed25519":      {ed, "", jwa.EdDSA},
		"RSA":          {rsa2048, "", jwa.PS256},
		"RSA with alg": {rsa2048, "RS256", jwa.RS256},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := clientassertion.New("hub", issuer, private(t, tt.key, tt.alg))
			if err != nil {
				t.Fatal(err)
			}
			now := time.Now()
			compact, err := a.Sign(now)
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
	if parsed.Issuer() != "hub" || parsed.Subject() != "hub" || len(parsed.Audience()) != 1 || parsed.Audience()[0] != issuer {
		t.Errorf("iss %q, sub %q, aud %v", parsed.Issuer(), parsed.Subject(), parsed.Audience())
	}
	if got := parsed.Expiration().Sub(now.Truncate(time.Second)); got != clientassertion.Lifetime {
		t.Errorf("it lives %v, want %v", got, clientassertion.Lifetime)
	}
	if parsed.JwtID() == "" {
		t.Error("it has no jti")
	}
}

func TestAsserter_Authenticate(t *testing.T) {
	t.Parallel()
	a, err := clientassertion.New("hub", issuer, private(t, ecKey(t, elliptic.P256()), ""))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for range 2 {
		form := url.Values{"since": {"0"}}
		if err := a.Authenticate(form, time.Now()); err != nil {
			t.Fatal(err)
		}
		if form.Get("client_id") != "hub" || form.Get("client_assertion_type") != clientassertion.Type || form.Get("since") != "0" {
			t.Errorf("form = %v", form)
		}
		seen[form.Get("client_assertion")] = true
	}
	if len(seen) != 2 {
		t.Error("an assertion was used twice")
	}
}

func TestNew_Refuses(t *testing.T) {
	t.Parallel()
	ec := ecKey(t, elliptic.P256())
	for name, key := range map[string]json.RawMessage{
		"nothing":           nil,
		"no JWK":            []byte(`{"secret":"do-not-show"}`),
		"a public key":      private(t, ec.Public(), ""),
		"alg none":          private(t, ec, "none"),
		"alg of encryption": private(t, ec, "ECDH-ES"),
		"alg of secrets":    private(t, ec, "HS256"),
		"another type's":    private(t, ec, "RS256"),
		"another curve's":   private(t, ec, "ES384"),
		"a secret":          []byte(`{"kty":"oct","k":"ZG8tbm90LXNob3ctdGhpcy1zZWNyZXQtZXZlcg"}`),
	} {
		a, err := clientassertion.New("hub", issuer, key)
		if a != nil || !errors.Is(err, clientassertion.ErrKey) {
			t.Errorf("New with %s = %v, want %v", name, err, clientassertion.ErrKey)
			continue
		}
		if strings.Contains(err.Error(), "do-not-show") || strings.Contains(err.Error(), "ZG8") || strings.Contains(err.Error(), `"d"`) {
			t.Errorf("New with %s shows the key: %v", name, err)
		}
	}
}
