package jose_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"
	"testing"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jws"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
)

func algorithms() []string {
	return []string{"HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
}

func generate(t *testing.T, alg string) jose.Key {
	t.Helper()
	k, err := jose.Generate(alg)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// verify asks another implementation.
func verify(t *testing.T, k jose.Key, compact string) {
	t.Helper()
	var key any = k.Public()
	if k.Symmetric() {
		key = k.Secret()
	}
	payload, err := jws.Verify([]byte(compact), jws.WithKey(jwa.SignatureAlgorithm(k.Alg), key))
	if err != nil {
		t.Fatalf("%s: %v", k.Alg, err)
	}
	if string(payload) != `{"iss":"x"}` {
		t.Errorf("payload %s", payload)
	}
}

func TestSignaturesOfEveryAlgorithm(t *testing.T) {
	for _, alg := range algorithms() {
		t.Run(alg, func(t *testing.T) {
			k := generate(t, alg)
			compact, err := jose.Token{Header: jose.Object{"typ": "at+jwt"}, Claims: jose.Object{"iss": "x"}}.Compact(k)
			if err != nil {
				t.Fatal(err)
			}
			verify(t, k, compact)
		})
	}
}

func TestKeysAreReadInTheFormsThatPeopleHave(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ecDER, err := x509.MarshalECPrivateKey(ecKey)
	if err != nil {
		t.Fatal(err)
	}
	block := func(name string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: name, Bytes: der}) }
	forms := map[string]struct {
		alg string
		raw []byte
	}{
		"PKCS #1": {"PS512", block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey))},
		"SEC 1":   {"ES384", block("EC PRIVATE KEY", ecDER)},
	}
	for _, alg := range algorithms() {
		k := generate(t, alg)
		if k.Symmetric() {
			forms[alg+" secret"] = struct {
				alg string
				raw []byte
			}{alg, k.Secret()}
		} else {
			raw, err := k.PrivatePEM()
			if err != nil {
				t.Fatal(err)
			}
			forms[alg+" PKCS #8"] = struct {
				alg string
				raw []byte
			}{alg, raw}
		}
	}
	for name, f := range forms {
		t.Run(name, func(t *testing.T) {
			k, err := jose.Parse(f.alg, "a kid", f.raw)
			if err != nil {
				t.Fatal(err)
			}
			compact, err := jose.Token{Claims: jose.Object{"iss": "x"}}.Compact(k)
			if err != nil {
				t.Fatal(err)
			}
			verify(t, k, compact)
			if k.Kid != "a kid" {
				t.Errorf("kid %q", k.Kid)
			}
		})
	}
}

func TestJSONWebKeys(t *testing.T) {
	for alg, raw := range map[string]func() any{
		"RS256": func() any { k, _ := rsa.GenerateKey(rand.Reader, 2048); return k },
		"ES512": func() any { k, _ := ecdsa.GenerateKey(elliptic.P521(), rand.Reader); return k },
		"HS256": func() any { return []byte("0123456789abcdef0123456789abcdef") },
		"EdDSA": func() any {
			k := generate(t, "EdDSA")
			der, _ := k.PrivatePEM()
			block, _ := pem.Decode(der)
			p, _ := x509.ParsePKCS8PrivateKey(block.Bytes)
			return p
		},
	} {
		t.Run(alg, func(t *testing.T) {
			j, err := jwk.FromRaw(raw())
			if err != nil {
				t.Fatal(err)
			}
			if err := j.Set(jwk.KeyIDKey, "of the key"); err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(j)
			if err != nil {
				t.Fatal(err)
			}
			k, err := jose.Parse(alg, "", text)
			if err != nil {
				t.Fatal(err)
			}
			if k.Kid != "of the key" {
				t.Errorf("kid %q", k.Kid)
			}
			compact, err := jose.Token{Claims: jose.Object{"iss": "x"}}.Compact(k)
			if err != nil {
				t.Fatal(err)
			}
			verify(t, k, compact)
		})
	}
}

func TestKeysThatCannotBeUsed(t *testing.T) {
	es, err := generate(t, "ES256").PrivatePEM()
	if err != nil {
		t.Fatal(err)
	}
	public, err := generate(t, "ES256").PublicPEM()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ alg, raw string }{
		"no such algorithm":    {"none", "secret"},
		"empty secret":         {"HS256", ""},
		"another curve":        {"ES384", string(es)},
		"another family":       {"RS256", string(es)},
		"a public key":         {"ES256", string(public)},
		"no PEM":               {"ES256", "hello"},
		"a public JWK":         {"ES256", `{"kty":"EC","crv":"P-256","x":"a","y":"b"}`},
		"a JWK of another use": {"ES256", `{"kty":"oct","k":"c2VjcmV0"}`},
		"broken JSON":          {"ES256", `{"kty":`},
		"a broken RSA key":     {"RS256", `{"kty":"RSA","n":"AQAB","e":"AQAB","d":"AQ","p":"AQ","q":"AQ"}`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := jose.Parse(c.alg, "", []byte(c.raw)); !errors.Is(err, jose.ErrKey) {
				t.Errorf("error %v, want %v", err, jose.ErrKey)
			}
		})
	}
}

func TestSame(t *testing.T) {
	a, b, s := generate(t, "ES256"), generate(t, "ES256"), generate(t, "HS256")
	if !a.Same(a) || a.Same(b) || a.Same(s) || !s.Same(s) || a.Same(jose.Key{}) || (jose.Key{}).Same(jose.Key{}) {
		t.Error("keys are told apart by what they sign with")
	}
}

func TestOddTokens(t *testing.T) {
	k := generate(t, "HS256")
	k.Kid = "k"
	for name, c := range map[string]struct {
		token         jose.Token
		header, claim string
	}{
		"usual":            {jose.Token{Header: jose.Object{"typ": "x"}, Claims: jose.Object{"a": 1}}, `{"alg":"HS256","kid":"k","typ":"x"}`, `{"a":1}`},
		"without a member": {jose.Token{Header: jose.Object{"alg": nil, "kid": nil}, Claims: jose.Object{"a": nil}}, `{}`, `{}`},
		"null":             {jose.Token{Header: jose.Object{"alg": jose.Null}, Claims: jose.Object{"a": jose.Null}}, `{"alg":null,"kid":"k"}`, `{"a":null}`},
		"raw":              {jose.Token{RawHeader: []byte("[]"), RawClaims: []byte("x")}, `[]`, `x`},
	} {
		t.Run(name, func(t *testing.T) {
			h, p, sig, err := c.token.Parts(k)
			if err != nil || h != jose.Encode([]byte(c.header)) || p != jose.Encode([]byte(c.claim)) || sig == "" {
				t.Errorf("%s.%s.%s, %v", h, p, sig, err)
			}
		})
	}
	if compact, err := (jose.Token{NoSignature: true}).Compact(jose.Key{}); err != nil || !strings.HasSuffix(compact, ".") {
		t.Errorf("without a signature: %s, %v", compact, err)
	}
	if compact, err := (jose.Token{Signature: []byte("x")}).Compact(k); err != nil || !strings.HasSuffix(compact, "."+jose.Encode([]byte("x"))) {
		t.Errorf("with a signature of its own: %s, %v", compact, err)
	}
	if _, err := (jose.Token{}).Compact(jose.Key{Alg: "ES256"}); !errors.Is(err, jose.ErrKey) {
		t.Errorf("signing without a key: %v", err)
	}
	if _, err := (jose.Token{Claims: jose.Object{"a": func() {}}}).Compact(k); err == nil {
		t.Error("what is no JSON is encoded")
	}
	base := jose.Token{Header: jose.Object{"typ": "x"}, Claims: jose.Object{"a": 1}}
	copied := base.Clone()
	copied.Claims["a"], copied.Header["typ"] = 2, "y"
	if base.Claims["a"] != 1 || base.Header["typ"] != "x" {
		t.Error("a copy shares its claims")
	}
}
