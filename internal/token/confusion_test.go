package token_test

import (
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

func algorithms() []string {
	return []string{
		"HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512",
		"ES256", "ES384", "ES512", "EdDSA", "Ed25519",
	}
}

// material is a private and a public key for each algorithm.
func material(alg string) (private, public any) {
	switch {
	case strings.HasPrefix(alg, "HS"):
		secret := []byte(strings.Repeat("secret of HMAC. ", 4))
		return secret, secret
	case alg == "ES256":
		return ecKey(), &ecKey().PublicKey
	case alg == "ES384":
		return ec384Key(), &ec384Key().PublicKey
	case alg == "ES512":
		return ec521Key(), &ec521Key().PublicKey
	case strings.HasPrefix(alg, "Ed"):
		return edKey(), edKey().Public()
	default:
		return rsaKey(), &rsaKey().PublicKey
	}
}

func oneKey(t *testing.T, k token.Key) *token.Verifier {
	t.Helper()
	o := options(t)
	o.Issuers = []token.Issuer{{ID: asIssuer, AuthorizationServer: true, Keys: token.Static(k)}}
	return newVerifier(t, o)
}

// TestVerify_EveryPair signs with the key of the verifier, under every algorithm that key can be made to sign for: only the
// algorithm the key is configured for is accepted.
func TestVerify_EveryPair(t *testing.T) {
	t.Parallel()
	for _, configured := range algorithms() {
		private, public := material(configured)
		v := oneKey(t, token.Key{ID: "k", Algorithm: configured, Material: public})
		for _, alg := range algorithms() {
			t.Run("TOK-05 TOK-06 "+configured+" key and "+alg+" token", func(t *testing.T) {
				t.Parallel()
				key := private
				if _, can := material(alg); !sameKind(can, public) {
					key, _ = material(alg)
				}
				compact := compact(header().with(object{"alg": quoted(alg), "kid": `"k"`}).String(), claims().String(), alg, key)
				_, err := v.Verify(t.Context(), compact, rar.Subscribe)
				want := token.CheckKey
				if alg == configured || strings.HasPrefix(alg, "Ed") && strings.HasPrefix(configured, "Ed") {
					want = ""
				}
				wantCheck(t, err, want)
			})
		}
	}
}

func sameKind(a, b any) bool {
	kinds := func(x any) string {
		switch x.(type) {
		case []byte:
			return "secret"
		case ed25519.PublicKey:
			return "ed"
		case interface{ Equal(x crypto.PublicKey) bool }:
			return "other"
		}
		return ""
	}
	return kinds(a) == kinds(b)
}

// TestVerify_PublicKeyAsSecret tries every spelling of a trusted public key as the secret of an HMAC.
func TestVerify_PublicKeyAsSecret(t *testing.T) {
	t.Parallel()
	for _, configured := range []string{"RS256", "PS256", "ES256", "ES384", "ES512", "EdDSA"} {
		_, public := material(configured)
		v := oneKey(t, token.Key{ID: "k", Algorithm: configured, Material: public})
		der := must(x509.MarshalPKIXPublicKey(public))
		text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
		jwk := must(token.Key{ID: "k", Algorithm: configured, Material: public}.PublicJWK())
		spellings := map[string][]byte{
			"DER": der, "PEM": text, "PEM without line end": []byte(strings.TrimSpace(string(text))), "JWK": jwk,
			"base64 of DER": []byte(b64(der)),
		}
		if ed, ok := public.(ed25519.PublicKey); ok {
			spellings["raw"] = ed
		}
		for spelling, secret := range spellings {
			for _, alg := range []string{"HS256", "HS384", "HS512"} {
				t.Run("TOK-05 "+alg+" with the "+spelling+" of an "+configured+" key", func(t *testing.T) {
					t.Parallel()
					for _, kid := range []string{`"k"`, `"other"`, ""} {
						compact := compact(header().with(object{"alg": quoted(alg), "kid": kid}).String(), claims().String(), alg, secret)
						_, err := v.Verify(t.Context(), compact, rar.Subscribe)
						wantCheck(t, err, token.CheckKey)
					}
				})
			}
		}
	}
}

// TestVerify_TriesAllFittingKeys has more keys of one algorithm than the token names.
func TestVerify_TriesAllFittingKeys(t *testing.T) {
	t.Parallel()
	secrets := func(n int) []token.Key {
		var keys []token.Key
		for i := range n {
			keys = append(keys, token.Key{Algorithm: "HS256", Material: slices.Concat(publisherSecret, []byte{byte(i)})})
		}
		return keys
	}
	sign := func(k token.Key) string {
		return compact(header().with(object{"alg": `"HS256"`}).String(), claims().String(), "HS256", k.Material)
	}
	o := options(t)
	o.Issuers = []token.Issuer{{ID: asIssuer, AuthorizationServer: true, Keys: token.Static(secrets(32)...)}}
	_, err := newVerifier(t, o).Verify(t.Context(), sign(secrets(32)[31]), rar.Subscribe)
	wantCheck(t, err, "")
	o.Issuers = []token.Issuer{{ID: asIssuer, AuthorizationServer: true, Keys: token.Static(secrets(33)...)}}
	_, err = newVerifier(t, o).Verify(t.Context(), sign(secrets(33)[0]), rar.Subscribe)
	wantCheck(t, err, token.CheckKey)
}
