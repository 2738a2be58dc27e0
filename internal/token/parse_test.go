package token_test

import (
	"bytes"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func pkix1(public any) []byte { return block("PUBLIC KEY", must(x509.MarshalPKIXPublicKey(public))) }

func selfSigned() []byte {
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "x"}, NotAfter: start.Add(time.Hour)}
	return block("CERTIFICATE", must(x509.CreateCertificate(rand.Reader, template, template, ecKey().Public(), ecKey())))
}

func equalPublic(a, b any) bool {
	e, ok := a.(interface{ Equal(x crypto.PublicKey) bool })
	return ok && e.Equal(b)
}

func TestParseKey_PEM(t *testing.T) {
	t.Parallel()
	ec := &ecKey().PublicKey
	parameters := block("EC PARAMETERS", []byte{6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7})
	for _, c := range []struct {
		name, alg, want string
		data            []byte
		public          any
	}{
		{"PKIX EC", "ES256", "ES256", pkix1(ec), ec},
		{"PKIX EC without alg", "", "ES256", pkix1(ec), ec},
		{"PKIX P-384 without alg", "", "ES384", pkix1(&ec384Key().PublicKey), &ec384Key().PublicKey},
		{"PKIX P-521 without alg", "", "ES512", pkix1(&ec521Key().PublicKey), &ec521Key().PublicKey},
		{"PKIX RSA", "PS384", "PS384", pkix1(&rsaKey().PublicKey), &rsaKey().PublicKey},
		{"PKIX RSA without alg", "", "RS256", pkix1(&rsaKey().PublicKey), &rsaKey().PublicKey},
		{"PKIX Ed25519", "EdDSA", "EdDSA", pkix1(edKey().Public()), edKey().Public()},
		{"PKIX Ed25519 by its newer name", "Ed25519", "EdDSA", pkix1(edKey().Public()), edKey().Public()},
		{"PKCS#1", "RS256", "RS256", block("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&rsaKey().PublicKey)), &rsaKey().PublicKey},
		{"PKCS#1 private", "RS256", "RS256", block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey())), &rsaKey().PublicKey},
		{"SEC 1 private", "ES256", "ES256", block("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(ecKey()))), ec},
		{"SEC 1 private after parameters", "ES256", "ES256", append(parameters, block("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(ecKey())))...), ec},
		{"PKCS#8 private", "EdDSA", "EdDSA", block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(edKey()))), edKey().Public()},
		{"white space around", "ES256", "ES256", []byte("\n\n" + string(pkix1(ec)) + "\n"), ec},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k, err := token.ParseKey(c.alg, c.data)
			if err != nil {
				t.Fatal(err)
			}
			if k.Algorithm != c.want || !equalPublic(k.Material, c.public) {
				t.Errorf("ParseKey(%q) = %s %T, want %s and the public key", c.alg, k.Algorithm, k.Material, c.want)
			}
		})
	}
}

func TestParseKey_Refuses(t *testing.T) {
	t.Parallel()
	weak := &rsa.PublicKey{N: new(big.Int).Add(new(big.Int).Lsh(big.NewInt(1), 1023), big.NewInt(1)), E: 65537}
	p224 := must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader))
	x25519 := must(ecdh.X25519().GenerateKey(rand.Reader)).Public()
	ecPEM := pkix1(&ecKey().PublicKey)
	for _, c := range []struct {
		name, alg, hint string
		data            []byte
	}{
		{"a certificate", "ES256", "openssl x509", selfSigned()},
		{"a certificate request", "ES256", "openssl req", block("CERTIFICATE REQUEST", nil)},
		{"an encrypted private key", "ES256", "openssl pkey", block("ENCRYPTED PRIVATE KEY", nil)},
		{"an OpenSSH key", "EdDSA", "ssh-keygen", block("OPENSSH PRIVATE KEY", nil)},
		{"another PEM type", "ES256", "DH PARAMETERS", block("DH PARAMETERS", nil)},
		{"two keys", "ES256", "one key per file", append(ecPEM, ecPEM...)},
		{"parameters only", "ES256", "cannot be decoded", block("EC PARAMETERS", nil)},
		{"broken PEM", "ES256", "cannot be decoded", ecPEM[:80]},
		{"broken DER", "ES256", "PUBLIC KEY", block("PUBLIC KEY", []byte{1})},
		{"PKCS#1 under the PKIX name", "RS256", "ParsePKCS1PublicKey", block("PUBLIC KEY", x509.MarshalPKCS1PublicKey(&rsaKey().PublicKey))},
		{"an EC key for RS256", "RS256", "elliptic curve key (P-256)", ecPEM},
		{"an EC key for ES384", "ES384", "P-256", ecPEM},
		{"an RSA key for ES256", "ES256", "RSA key", pkix1(&rsaKey().PublicKey)},
		{"an Ed25519 key for ES256", "ES256", "Ed25519 key", pkix1(edKey().Public())},
		{"a weak RSA key", "RS256", "1024 bits", pkix1(weak)},
		{"P-224", "", "does not say its algorithm", pkix1(&p224.PublicKey)},
		{"X25519", "EdDSA", "signs no tokens", pkix1(x25519)},
		{"TOK-05 a public key as a secret", "HS256", "never be used as a secret", ecPEM},
		{"TOK-05 a JWK of a public key as a secret", "HS256", "the JWK is for ES256", must(token.Key{ID: "a", Algorithm: "ES256", Material: &ecKey().PublicKey}.PublicJWK())},
		{"an unknown algorithm", "ES256K", "not one of", ecPEM},
		{"none", "none", "not one of", nil},
		{"a secret without algorithm", "", "neither PEM nor a JWK", publisherSecret},
		{"neither", "ES256", "neither PEM nor a JWK", []byte("ssh-ed25519 AAAA")},
		{"a short secret for HS256", "HS256", "31 bytes, HS256 needs at least 32", publisherSecret[:31]},
		{"a short secret for HS384", "HS384", "at least 48", publisherSecret},
		{"a short secret for HS512", "HS512", "at least 64", publisherSecret},
		{"an empty secret", "HS256", "0 bytes", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := token.ParseKey(c.alg, c.data)
			if !errors.Is(err, token.ErrKey) || !strings.Contains(err.Error(), c.hint) {
				t.Errorf("ParseKey(%s) = %v, want ErrKey with %q", c.alg, err, c.hint)
			}
			if len(c.data) > 0 && len(c.data) < 64 && err != nil && strings.Contains(err.Error(), string(c.data[:8])) {
				t.Errorf("ParseKey(%s) = %v quotes the key", c.alg, err)
			}
		})
	}
}

func TestParseKey_Secret(t *testing.T) {
	t.Parallel()
	brace := append([]byte("{"), publisherSecret...)
	for alg, secret := range map[string][]byte{
		"HS256": publisherSecret,
		"HS384": bytes.Repeat([]byte{0, '\n'}, 24),
		"HS512": bytes.Repeat([]byte(" "), 64),
	} {
		k, err := token.ParseKey(alg, secret)
		if got, _ := k.Material.([]byte); err != nil || !bytes.Equal(got, secret) || k.Algorithm != alg {
			t.Errorf("ParseKey(%s, %q) = %+v, %v, want the secret byte for byte", alg, secret, k, err)
		}
	}
	k, err := token.ParseKey("HS256", brace)
	if got, _ := k.Material.([]byte); err != nil || !bytes.Equal(got, brace) {
		t.Errorf("ParseKey(HS256) of a secret that begins with a brace = %+v, %v", k, err)
	}
	k, err = token.ParseKey("", []byte(`{"kty":"oct","alg":"HS256","kid":"a","k":"`+b64(publisherSecret)+`"}`))
	if got, _ := k.Material.([]byte); err != nil || !bytes.Equal(got, publisherSecret) || k.ID != "a" {
		t.Errorf("ParseKey() of an oct JWK = %+v, %v", k, err)
	}
}

// ecJWK is the public JWK of a key, with changed members.
func ecJWK(key *ecdsa.PrivateKey, change object) string {
	point := must(key.PublicKey.Bytes())
	return object{
		"kty": `"EC"`, "crv": `"P-256"`, "x": quoted(b64(point[1:33])), "y": quoted(b64(point[33:])), "kid": `"a"`,
	}.with(change).String()
}

func TestParseKey_JWK(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, alg, jwk string
		want           token.Key
		hint           string // of the error
	}{
		{name: "without alg", jwk: ecJWK(ecKey(), nil), want: token.Key{ID: "a", Algorithm: "ES256"}},
		{name: "with alg", jwk: ecJWK(ecKey(), object{"alg": `"ES256"`, "use": `"sig"`, "key_ops": `["verify"]`}), alg: "ES256", want: token.Key{ID: "a", Algorithm: "ES256"}},
		{name: "without kid", jwk: ecJWK(ecKey(), object{"kid": ""}), want: token.Key{Algorithm: "ES256"}},
		{name: "with actions", jwk: ecJWK(ecKey(), object{"mercure_actions": `["subscribe","fly"]`}), want: token.Key{ID: "a", Algorithm: "ES256", Actions: rar.Actions(rar.Subscribe)}},
		{name: "private", jwk: ecJWK(ecKey(), object{"d": quoted(b64(must(ecKey().Bytes())))}), want: token.Key{ID: "a", Algorithm: "ES256"}},
		{name: "of another algorithm than configured", jwk: ecJWK(ecKey(), object{"alg": `"ES256"`}), alg: "ES384", hint: "for ES256, the configuration says ES384"},
		{name: "of another curve than its algorithm", jwk: ecJWK(ecKey(), object{"alg": `"ES384"`}), hint: "does not fit ES384"},
		{name: "for encryption", jwk: ecJWK(ecKey(), object{"use": `"enc"`}), hint: "not for signing tokens"},
		{name: "for deriving", jwk: ecJWK(ecKey(), object{"key_ops": `["deriveKey"]`}), hint: "not for signing tokens"},
		{name: "of an unknown algorithm", jwk: ecJWK(ecKey(), object{"alg": `"ES256K"`}), hint: "ES256K"},
		{name: "for no action", jwk: ecJWK(ecKey(), object{"mercure_actions": `[]`}), hint: "not for signing tokens"},
		{name: "for unknown actions only", jwk: ecJWK(ecKey(), object{"mercure_actions": `["fly"]`}), hint: "not for signing tokens"},
		{name: "with actions that are no array", jwk: ecJWK(ecKey(), object{"mercure_actions": `"publish"`}), hint: "mercure_actions"},
		{name: "off the curve", jwk: ecJWK(ecKey(), object{"x": quoted(b64(make([]byte, 32)))}), hint: "not on the curve"},
		{name: "without y", jwk: ecJWK(ecKey(), object{"y": ""}), hint: "malformed"},
		{name: "with a repeated member", jwk: `{"kid":"b",` + ecJWK(ecKey(), nil)[1:], hint: "twice"},
		{name: "with a number as kid", jwk: ecJWK(ecKey(), object{"kid": "1"}), hint: "kid"},
		{name: "with an odd kid", jwk: ecJWK(ecKey(), object{"kid": `"a\u0000"`}), hint: "printable"},
		{name: "with a long kid", jwk: ecJWK(ecKey(), object{"kid": quoted(strings.Repeat("a", 257))}), hint: "longer"},
		{name: "a set", jwk: `{"keys":[]}`, hint: "JWK Set"},
		{name: "an unknown kind", jwk: `{"kty":"AKP"}`, hint: "not for signing tokens"},
		{name: "secp256k1", jwk: ecJWK(ecKey(), object{"crv": `"secp256k1"`}), hint: "not for signing tokens"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k, err := token.ParseKey(c.alg, []byte(c.jwk))
			if c.hint != "" {
				if !errors.Is(err, token.ErrKey) || !strings.Contains(err.Error(), c.hint) {
					t.Errorf("ParseKey() = %v, want ErrKey with %q", err, c.hint)
				}
				return
			}
			if err != nil || k.ID != c.want.ID || k.Algorithm != c.want.Algorithm || k.Actions != c.want.Actions || !equalPublic(k.Material, &ecKey().PublicKey) {
				t.Errorf("ParseKey() = %+v, %v, want %+v with the public key", k, err, c.want)
			}
		})
	}
}

func set(keys ...string) []byte { return []byte(`{"keys":[` + strings.Join(keys, ",") + `]}`) }

func TestParseJWKSet(t *testing.T) {
	t.Parallel()
	a := ecJWK(ecKey(), nil)
	b := ecJWK(ec2Key(), object{"kid": `"b"`})
	both := rar.Actions(rar.Publish, rar.Subscribe)
	var many []string
	for i := range 65 {
		many = append(many, ecJWK(ecKey(), object{"kid": fmt.Sprintf(`"k%d"`, i)}))
	}
	for _, c := range []struct {
		name    string
		data    []byte
		actions rar.ActionSet
		want    string // "kid algorithm actions" of each key
		hint    string
	}{
		{name: "two keys", data: set(a, b), want: "a ES256 publish subscribe, b ES256 publish subscribe"},
		{name: "no keys", data: set()},
		{name: "other members", data: []byte(`{"x":1,"keys":[` + a + `]}`), actions: both, want: "a ES256 publish subscribe"},
		{name: "restricted by the caller", data: set(a), actions: rar.Actions(rar.Publish), want: "a ES256 publish"},
		{name: "restricted by the key", data: set(ecJWK(ecKey(), object{"mercure_actions": `["subscribe"]`})), want: "a ES256 subscribe"},
		{name: "restricted by both", data: set(ecJWK(ecKey(), object{"mercure_actions": `["subscribe"]`}), b), actions: rar.Actions(rar.Publish), want: "b ES256 publish"},
		{name: "an empty list of actions is not all of them", data: set(ecJWK(ecKey(), object{"mercure_actions": `[]`}))},
		{name: "unknown kinds are left out", data: set(`{"kty":"AKP","kid":"a"}`, ecJWK(ecKey(), object{"kid": `"c"`, "crv": `"secp256k1"`}), a), want: "a ES256 publish subscribe"},
		{name: "other uses are left out", data: set(ecJWK(ecKey(), object{"use": `"enc"`}), ecJWK(ecKey(), object{"alg": `"ECDH-ES"`}), b), want: "b ES256 publish subscribe"},
		{name: "keys without kid", data: set(ecJWK(ecKey(), object{"kid": ""}), ecJWK(ec2Key(), object{"kid": ""})), want: " ES256 publish subscribe,  ES256 publish subscribe"},
		{name: "a repeated kid", data: set(a, ecJWK(ec2Key(), nil)), hint: "twice"},
		{name: "an odd kid", data: set(ecJWK(ecKey(), object{"kid": `"é"`})), hint: "printable"},
		{name: "a symmetric key", data: set(a, `{"kty":"oct","kid":"s","alg":"HS256","k":"`+b64(publisherSecret)+`"}`), hint: "symmetric"},
		{name: "a symmetric key for encryption", data: set(a, `{"kty":"oct","use":"enc","k":"`+b64(publisherSecret)+`"}`), hint: "symmetric"},
		{name: "a private key", data: set(ecJWK(ecKey(), object{"d": quoted(b64(must(ecKey().Bytes())))})), hint: "private"},
		{name: "a weak key", data: set(`{"kty":"RSA","kid":"w","n":"` + b64(bytes.Repeat([]byte{0xff}, 128)) + `","e":"AQAB"}`), hint: "1024 bits"},
		{name: "a malformed key", data: set(ecJWK(ecKey(), object{"y": ""})), hint: "malformed"},
		{name: "too many keys", data: set(many...), hint: "more than 64"},
		{name: "a member that is no object", data: set(`"a"`), hint: "not a JSON object"},
		{name: "keys that are no array", data: []byte(`{"keys":{}}`), hint: "not a JSON array"},
		{name: "no member keys", data: []byte(`{}`), hint: "no member"},
		{name: "member keys twice", data: []byte(`{"keys":[],"keys":[]}`), hint: "twice"},
		{name: "not JSON", data: []byte(`<html>`), hint: "not a JSON object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			keys, err := token.ParseJWKSet(c.data, c.actions)
			if c.hint != "" {
				if !errors.Is(err, token.ErrKey) || !strings.Contains(err.Error(), c.hint) {
					t.Errorf("ParseJWKSet() = %v, want ErrKey with %q", err, c.hint)
				}
				return
			}
			var got []string
			for _, k := range keys {
				got = append(got, k.ID+" "+k.Algorithm+" "+k.Actions.String())
			}
			if text := strings.Join(got, ", "); err != nil || text != c.want {
				t.Errorf("ParseJWKSet() = %q, %v, want %q", text, err, c.want)
			}
		})
	}
}
