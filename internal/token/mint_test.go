package token_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jws"
	"pgregory.net/rapid"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

func signingKeys() []token.SigningKey {
	return []token.SigningKey{
		{ID: "es", Algorithm: "ES256", Material: ecKey()},
		{ID: "ed", Algorithm: "EdDSA", Material: edKey()},
		{ID: "rs", Algorithm: "RS256", Material: rsaKey()},
		{ID: "hs", Algorithm: "HS256", Material: publisherSecret},
	}
}

func mintClaims() token.MintClaims {
	return token.MintClaims{
		Issuer: asIssuer, Subject: "u_1", Audience: hubURL, ClientID: "app", ID: "t1",
		IssuedAt: start, ExpiresAt: start.Add(10 * time.Minute),
		AuthorizationDetails: json.RawMessage(detail("subscribe", "*")),
	}
}

func TestMint_Format(t *testing.T) {
	t.Parallel()
	c := mintClaims()
	c.SessionID, c.GrantID, c.Username = "s1", "g1", "ada"
	c.IssuedAt = c.IssuedAt.Add(time.Second / 2)
	c.AuthorizationDetails = json.RawMessage(`[ {"type":"` + rar.DetailType + `", "actions":["subscribe"],"topics":[{"match":"*"}],"payload":{"b":1e400,"a":1}} ]`)
	for _, k := range signingKeys() {
		compact, err := token.Mint(k, c)
		if err != nil {
			t.Fatal(err)
		}
		public := any(publisherSecret)
		if k.Algorithm != "HS256" {
			public = must(k.Public()).Material
		}
		payload, err := jws.Verify([]byte(compact), jws.WithKey(jwa.SignatureAlgorithm(k.Algorithm), public))
		if err != nil {
			t.Errorf("%s: another implementation refuses the token: %v", k.Algorithm, err)
		}
		want := fmt.Sprintf(`{"iss":"%s","sub":"u_1","aud":"%s","client_id":"app","jti":"t1","iat":%d,"exp":%d,"sid":"s1","grant_id":"g1",`+
			`"preferred_username":"ada","authorization_details":[{"type":"%s","actions":["subscribe"],"topics":[{"match":"*"}],"payload":{"b":1e400,"a":1}}]}`,
			asIssuer, hubURL, start.Unix(), start.Add(10*time.Minute).Unix(), rar.DetailType)
		if diff := cmp.Diff(want, string(payload)); diff != "" {
			t.Errorf("%s: payload differs (-want +got):\n%s", k.Algorithm, diff)
		}
		var header map[string]any
		if err := json.Unmarshal(must(decode(strings.Split(compact, ".")[0])), &header); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]any{"alg": k.Algorithm, "kid": k.ID, "typ": "at+jwt"}, header); diff != "" {
			t.Errorf("%s: header differs (-want +got):\n%s", k.Algorithm, diff)
		}
	}
}

func TestMint_Refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*token.MintClaims)
		want   error
	}{
		{"TOK-20 no iss", func(c *token.MintClaims) { c.Issuer = "" }, token.ErrIncomplete},
		{"TOK-20 no sub", func(c *token.MintClaims) { c.Subject = "" }, token.ErrIncomplete},
		{"TOK-20 no aud", func(c *token.MintClaims) { c.Audience = "" }, token.ErrIncomplete},
		{"TOK-20 no client_id", func(c *token.MintClaims) { c.ClientID = "" }, token.ErrIncomplete},
		{"TOK-20 no iat", func(c *token.MintClaims) { c.IssuedAt = time.Time{} }, token.ErrIncomplete},
		{"TOK-20 no exp", func(c *token.MintClaims) { c.ExpiresAt = time.Time{} }, token.ErrIncomplete},
		{"an exp in the second of iat", func(c *token.MintClaims) { c.ExpiresAt = c.IssuedAt.Add(time.Second / 2) }, token.ErrIncomplete},
		{"an exp beyond the year 9999", func(c *token.MintClaims) { c.ExpiresAt = time.Unix(253402300800, 0) }, token.ErrIncomplete},
		{"too many details", func(c *token.MintClaims) {
			c.AuthorizationDetails = json.RawMessage("[" + d(object{"topics": `[{"match":"` + strings.Repeat("x", 4000) + `"},{"match":"` + strings.Repeat("y", 4000) + `"}]`}) + "]")
		}, token.ErrTooLarge},
		{"details beyond the key", func(c *token.MintClaims) { c.AuthorizationDetails = json.RawMessage(detail("publish", "*")) }, token.ErrKey},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			claims := mintClaims()
			c.change(&claims)
			k := token.SigningKey{ID: "a", Algorithm: "ES256", Material: ecKey(), Actions: rar.Actions(rar.Subscribe)}
			if _, err := token.Mint(k, claims); !errors.Is(err, c.want) {
				t.Errorf("Mint() = %v, want %v", err, c.want)
			}
		})
	}
	for _, details := range []string{`{}`, `[`, `[1]`, detail("subscribe", "*")[1:], `[{"type":"` + rar.DetailType + `"}]`} {
		c := mintClaims()
		c.AuthorizationDetails = json.RawMessage(details)
		if compact, err := token.Mint(signingKeys()[0], c); err == nil {
			t.Errorf("Mint(details %s) = %s, want an error", details, compact)
		}
	}
	for _, k := range []token.SigningKey{
		{Algorithm: "ES256", Material: ecKey()},
		{ID: "a", Algorithm: "ES256"},
		{ID: "a", Algorithm: "ES384", Material: ecKey()},
		{ID: "a", Algorithm: "none", Material: ecKey()},
		{ID: "a", Algorithm: "ES256", Material: &ecKey().PublicKey},
		{ID: "a", Algorithm: "HS256", Material: publisherSecret[:31]},
		{ID: "a", Algorithm: "EdDSA", Material: edKey()[:10]},
	} {
		if _, err := token.Mint(k, mintClaims()); !errors.Is(err, token.ErrKey) {
			t.Errorf("Mint with key %q of %s and %T = %v, want ErrKey", k.ID, k.Algorithm, k.Material, err)
		}
	}
}

func TestMint_DrawsID(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, keysOptions(t))
	c := mintClaims()
	c.ID = ""
	seen := make(map[string]bool)
	for range 3 {
		claims, err := v.Verify(t.Context(), must(token.Mint(signingKeys()[0], c)), rar.Subscribe)
		if err != nil {
			t.Fatal(err)
		}
		id, err := uuid.Parse(claims.ID)
		if err != nil || id.Version() != 4 || seen[claims.ID] {
			t.Errorf("jti %q is not a fresh random UUID: %v", claims.ID, err)
		}
		seen[claims.ID] = true
	}
}

// keysOptions trusts the keys that mint.
func keysOptions(tb testing.TB) token.Options {
	tb.Helper()
	o := options(tb)
	var keys []token.Key
	for _, k := range signingKeys() {
		keys = append(keys, must(k.Public()))
	}
	o.Issuers = []token.Issuer{{ID: asIssuer, AuthorizationServer: true, Keys: token.Static(keys...)}}
	return o
}

// TestMint_Verifies is the property the package stands for: what is minted is accepted, and says what was minted.
func TestMint_Verifies(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, keysOptions(t))
	text := rapid.StringN(1, 40, 200)
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom(signingKeys()).Draw(t, "key")
		details := []rar.Detail{{
			Actions: rapid.SliceOfNDistinct(rapid.SampledFrom([]rar.Action{rar.Publish, rar.Subscribe}), 1, 2, rapid.ID).Draw(t, "actions"),
			Topics:  []rar.TopicMatcher{{Match: text.Draw(t, "match"), MatchType: "exact"}},
		}}
		in := token.MintClaims{
			Issuer: asIssuer, Subject: text.Draw(t, "sub"), Audience: hubURL, ClientID: text.Draw(t, "client"), ID: text.Draw(t, "jti"),
			IssuedAt:  start.Add(time.Duration(rapid.IntRange(-3600, 30).Draw(t, "iat")) * time.Second),
			ExpiresAt: start.Add(time.Duration(rapid.IntRange(31, 1e6).Draw(t, "exp")) * time.Second),
			SessionID: rapid.String().Draw(t, "sid"), GrantID: rapid.String().Draw(t, "grant"), Username: rapid.String().Draw(t, "name"),
			AuthorizationDetails: rar.Encode(details),
		}
		compact, err := token.Mint(k, in)
		if errors.Is(err, token.ErrTooLarge) {
			t.Skip("too large")
		}
		if err != nil {
			t.Fatalf("Mint(%+v) = %v", in, err)
		}
		out, err := v.Verify(t.Context(), compact, rar.Subscribe)
		if err != nil {
			t.Fatalf("Verify(Mint(%+v)) = %v", in, err)
		}
		got := token.MintClaims{
			Issuer: out.Issuer, Subject: out.Subject, Audience: out.Audience[0], ClientID: out.ClientID, ID: out.ID,
			IssuedAt: out.IssuedAt.UTC(), ExpiresAt: out.ExpiresAt.UTC(), SessionID: out.SessionID, GrantID: out.GrantID,
			Username: out.Username, AuthorizationDetails: rar.Encode(out.Details),
		}
		if diff := cmp.Diff(in, got); diff != "" || out.KeyID != k.ID {
			t.Errorf("claims differ (-minted +verified):\n%s", diff)
		}
	})
}

func TestGenerate(t *testing.T) {
	t.Parallel()
	for _, alg := range []string{"ES256", "EdDSA", "RS256"} {
		t.Run(alg, func(t *testing.T) {
			t.Parallel()
			k := must(token.Generate(alg))
			k.Actions = rar.Actions(rar.Subscribe)
			back, err := token.ParseSigningKey(must(k.PrivateJWK()))
			if err != nil {
				t.Fatal(err)
			}
			public := must(back.Public())
			if back.ID != k.ID || back.Algorithm != alg || !equalPublic(public.Material, must(k.Public()).Material) {
				t.Errorf("ParseSigningKey(PrivateJWK()) = %s %s, want the same key", back.ID, back.Algorithm)
			}
			jwk := must(must(k.Public()).PublicJWK())
			keys, err := token.ParseJWKSet(set(string(jwk)), 0)
			if err != nil || len(keys) != 1 || keys[0].ID != k.ID || keys[0].Actions != k.Actions {
				t.Errorf("ParseJWKSet(PublicJWK()) = %+v, %v, want the key", keys, err)
			}
			if got := thumbprint(t, jwk); got != k.ID {
				t.Errorf("id is %s, want the thumbprint %s", k.ID, got)
			}
			if _, err := token.Mint(back, mintClaims()); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := token.Generate("HS256"); !errors.Is(err, token.ErrKey) {
		t.Errorf("Generate(HS256) = %v, want ErrKey", err)
	}
	if jwk, err := (token.Key{ID: "a", Algorithm: "HS256", Material: publisherSecret}).PublicJWK(); err == nil {
		t.Errorf("PublicJWK() of a secret = %s, want an error", jwk)
	}
}

// thumbprint is RFC 7638 section 3 by hand, and checks that nothing private or unexpected is published.
func TestPublicJWKSet(t *testing.T) {
	t.Parallel()
	for _, k := range signingKeys() {
		set, err := k.PublicJWKSet()
		if k.Algorithm == "HS256" {
			if err == nil {
				t.Errorf("the set %s publishes a secret", set)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Keys []json.RawMessage `json:"keys"`
		}
		if err := json.Unmarshal(set, &got); err != nil {
			t.Fatal(err)
		}
		want := string(must(must(k.Public()).PublicJWK()))
		if len(got.Keys) != 1 || string(got.Keys[0]) != want {
			t.Errorf("%s: the set is %s, want %s alone in it", k.Algorithm, set, want)
		}
	}
}

func thumbprint(t *testing.T, jwk []byte) string {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal(jwk, &members); err != nil {
		t.Fatal(err)
	}
	var canonical string
	switch members["kty"] {
	case "EC":
		canonical = fmt.Sprintf(`{"crv":%q,"kty":"EC","x":%q,"y":%q}`, members["crv"], members["x"], members["y"])
	case "OKP":
		canonical = fmt.Sprintf(`{"crv":%q,"kty":"OKP","x":%q}`, members["crv"], members["x"])
	case "RSA":
		canonical = fmt.Sprintf(`{"e":%q,"kty":"RSA","n":%q}`, members["e"], members["n"])
	}
	for _, name := range []string{"crv", "kty", "x", "y", "e", "n", "kid", "alg", "use", "mercure_actions"} {
		delete(members, name)
	}
	if len(members) > 0 {
		t.Errorf("published key has further members %v", members)
	}
	sum := sha256.Sum256([]byte(canonical))
	return b64(sum[:])
}
