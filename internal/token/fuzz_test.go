package token_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

func decode(s string) ([]byte, error) { return base64.RawURLEncoding.DecodeString(s) }

// FuzzVerify mutates real tokens: none but the real ones is ever accepted, and both ways to judge a token agree.
func FuzzVerify(f *testing.F) {
	v := newVerifier(f, keysOptions(f))
	genuine := make(map[string]bool)
	add := func(compact string) {
		genuine[compact] = true
		f.Add(compact)
	}
	for _, k := range signingKeys() {
		add(must(token.Mint(k, mintClaims())))
	}
	seed := must(token.Mint(signingKeys()[0], mintClaims()))
	seg := strings.Split(seed, ".")
	for _, s := range []string{
		"", ".", "..", "...", "....", seed[:len(seed)/2], seg[0] + "." + seg[1] + ".", seed + "=", seed + "\n", `{"payload":""}`,
		b64([]byte(`{"alg":"none","typ":"at+jwt"}`)) + "." + seg[1] + ".",
		b64([]byte(`{"alg":"HS256","typ":"at+jwt","kid":"es"}`)) + "." + seg[1] + "." + seg[2],
		seg[0] + "." + b64([]byte(claims().String())) + "." + seg[2],
		b64([]byte(`{"alg":"ES256","alg":"ES256"}`)) + "." + b64([]byte(`{"exp":1e309}`)) + ".AA",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, compact string) {
		_, err := v.Verify(t.Context(), compact, rar.Subscribe)
		in := v.Inspect(t.Context(), compact, rar.Subscribe)
		if (err == nil) != in.Valid || len(in.Verdicts) != 18 {
			t.Fatalf("Verify() = %v, Inspect() = valid %v with %d verdicts", err, in.Valid, len(in.Verdicts))
		}
		if err == nil {
			if !genuine[compact] {
				t.Fatalf("accepted: %q", compact)
			}
			return
		}
		var invalid *token.InvalidError
		if !errors.As(err, &invalid) || invalid.Reason == "" || len(invalid.Reason) > 2000 {
			t.Fatalf("Verify() = %v, want an InvalidError with a reason", err)
		}
	})
}

// FuzzVerifySigned signs whatever header and payload there are, as a careless issuer might, and judges what is accepted by
// another reader of JSON.
func FuzzVerifySigned(f *testing.F) {
	v := newVerifier(f, keysOptions(f))
	hs := header().with(object{"alg": `"HS256"`, "kid": `"hs"`})
	for _, h := range []object{nil, {"typ": `"APPLICATION/AT+JWT"`}, {"typ": `"JWT"`}, {"crit": `["exp"]`}, {"kid": `"\u0000"`}, {"jwk": `{"kty":"oct"}`}} {
		f.Add([]byte(hs.with(h).String()), []byte(claims().String()))
	}
	for _, c := range []object{
		{"aud": `["` + hubURL + `"]`},
		{"exp": "1e400"},
		{"exp": "9999999999.25"},
		{"nbf": "0"},
		{"iat": "-1"},
		{"cnf": "{}"},
		{"authorization_details": `[{"type":"x","type":"x"}]`},
		{"authorization_details": "null"},
		{"sub": `"\ud83d\ude00"`},
	} {
		f.Add([]byte(hs.String()), []byte(claims().with(c).String()))
	}
	f.Add([]byte(hs.String()), []byte(`{"\u0065xp":1,`+claims().String()[1:]))
	f.Fuzz(func(t *testing.T, header, payload []byte) {
		out, err := v.Verify(t.Context(), compact(string(header), string(payload), "HS256", publisherSecret), rar.Subscribe)
		if err != nil {
			return
		}
		var h, c map[string]any
		if err := errors.Join(json.Unmarshal(header, &h), json.Unmarshal(payload, &c)); err != nil {
			t.Fatalf("accepted what is not JSON: %v", err)
		}
		typ, _ := h["typ"].(string)
		exp, _ := c["exp"].(float64)
		aud, _ := c["aud"].([]any)
		_, bound := c["cnf"]
		_, critical := h["crit"]
		switch typ = strings.ToLower(typ); {
		case typ != "at+jwt" && typ != "application/at+jwt", h["alg"] != "HS256", critical, bound,
			c["iss"] != asIssuer, c["aud"] != hubURL && !slices.Contains(aud, any(hubURL)), exp <= float64(start.Unix()):
			t.Fatalf("accepted: %s %s", header, payload)
		}
		if sub, _ := c["sub"].(string); out.Issuer != asIssuer || out.Subject != sub {
			t.Fatalf("claims of %s are %+v", payload, out)
		}
	})
}

// FuzzParseKey wants no panic, and keys that fit their algorithm.
func FuzzParseKey(f *testing.F) {
	for _, alg := range []string{"", "ES256", "HS256", "RS256", "EdDSA"} {
		f.Add(alg, pkix1(&ecKey().PublicKey))
		f.Add(alg, []byte(ecJWK(ecKey(), nil)))
		f.Add(alg, []byte(`{"kty":"RSA","n":"AQAB","e":"AQAB"}`))
		f.Add(alg, publisherSecret)
	}
	f.Fuzz(func(t *testing.T, alg string, data []byte) {
		k, err := token.ParseKey(alg, data)
		if err != nil {
			if !errors.Is(err, token.ErrKey) {
				t.Fatalf("ParseKey() = %v, want ErrKey", err)
			}
			return
		}
		o := options(t)
		o.Issuers = []token.Issuer{{ID: asIssuer, Keys: token.Static(k)}}
		if _, err := token.NewVerifier(o); err != nil {
			t.Fatalf("ParseKey() gives a key that a verifier refuses: %v", err)
		}
		if _, secret := k.Material.([]byte); secret != strings.HasPrefix(k.Algorithm, "HS") {
			t.Fatalf("%s has a key of type %T", k.Algorithm, k.Material)
		}
	})
}

// FuzzParseJWKSet wants no panic, and keys that can be published and read again.
func FuzzParseJWKSet(f *testing.F) {
	f.Add(set(ecJWK(ecKey(), nil), ecJWK(ec2Key(), object{"kid": `"b"`, "mercure_actions": `["publish"]`})))
	f.Add(set(`{"kty":"oct","k":"AA"}`, `{"kty":"RSA","e":"AQAB","n":"AA"}`, `{"kty":"OKP","crv":"Ed25519","x":"AA"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, err := token.ParseJWKSet(data, 0)
		if err != nil {
			return
		}
		for _, k := range keys {
			jwk, err := k.PublicJWK()
			if err != nil || k.Actions == 0 {
				t.Fatalf("key %+v cannot be published: %v", k, err)
			}
			if again, err := token.ParseJWKSet(set(string(jwk)), 0); err != nil || len(again) != 1 || again[0].Actions != k.Actions {
				t.Fatalf("%s read again gives %+v, %v", jwk, again, err)
			}
		}
	})
}
