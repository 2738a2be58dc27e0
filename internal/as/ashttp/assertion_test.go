package ashttp_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jws"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// clientKeys is a client's key pair.
type clientKeys struct {
	private jwk.Key
	set     json.RawMessage
}

var brokerKey = sync.OnceValues(func() (clientKeys, error) {
	raw, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return clientKeys{}, err
	}
	return newClientKeys(raw, jwa.ES256)
})

func clientKey(tb testing.TB) clientKeys {
	tb.Helper()
	k, err := brokerKey()
	must(tb, err)
	return k
}

func newClientKeys(raw any, alg jwa.SignatureAlgorithm) (clientKeys, error) {
	private, err := jwk.FromRaw(raw)
	if err != nil {
		return clientKeys{}, err
	}
	for name, value := range map[string]any{"kid": "k1", "alg": alg, "use": "sig"} {
		if err := private.Set(name, value); err != nil {
			return clientKeys{}, err
		}
	}
	public, err := private.PublicKey()
	if err != nil {
		return clientKeys{}, err
	}
	set, err := json.Marshal(map[string]any{"keys": []jwk.Key{public}})
	return clientKeys{private: private, set: set}, err
}

// assertion is a client assertion of the broker.
func assertion(t *testing.T, k clientKeys, change, header map[string]any) string {
	t.Helper()
	now := time.Now()
	claims := map[string]any{
		"iss": "broker", "sub": "broker", "aud": issuer, "jti": uuid.NewString(),
		"iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
	}
	maps.Copy(claims, change)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	payload, err := json.Marshal(claims)
	must(t, err)
	h := jws.NewHeaders()
	for name, value := range header {
		must(t, h.Set(name, value))
	}
	alg, ok := k.private.Algorithm().(jwa.SignatureAlgorithm)
	if !ok {
		t.Fatal("no algorithm")
	}
	var raw any
	must(t, k.private.Raw(&raw)) // a raw key: a JWK would write its own kid
	signed, err := jws.Sign(payload, jws.WithKey(alg, raw, jws.WithProtectedHeaders(h)))
	must(t, err)
	return string(signed)
}

func brokerExchange(code, assertion string, change ...func(url.Values)) url.Values {
	return exchange(code, append([]func(url.Values){
		del("client_id"), set("client_assertion", assertion),
		set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
	}, change...)...)
}

func TestClientAssertion(t *testing.T) {
	s := newServer(t, nil)
	key := clientKey(t)
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	foreign, err := newClientKeys(other, jwa.ES256)
	must(t, err)
	// One code serves all refusals: a failed authentication must not spoil it.
	code := s.code(request(set("client_id", "broker")))
	in := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	for name, bad := range map[string]string{
		"of another key":               assertion(t, foreign, nil, nil),
		"for another server":           assertion(t, key, map[string]any{"aud": "https://other.example"}, nil),
		"for this and another server":  assertion(t, key, map[string]any{"aud": []string{issuer, "https://other.example"}}, nil),
		"for nobody":                   assertion(t, key, map[string]any{"aud": []string{}}, nil),
		"without audience":             assertion(t, key, map[string]any{"aud": nil}, nil),
		"issued by another":            assertion(t, key, map[string]any{"iss": "spa"}, nil),
		"without jti":                  assertion(t, key, map[string]any{"jti": nil}, nil),
		"without exp":                  assertion(t, key, map[string]any{"exp": nil}, nil),
		"expired":                      assertion(t, key, map[string]any{"exp": in(-2 * time.Minute)}, nil),
		"living too long":              assertion(t, key, map[string]any{"exp": in(10 * time.Minute)}, nil),
		"not valid yet":                assertion(t, key, map[string]any{"nbf": in(2 * time.Minute)}, nil),
		"that is an access token":      assertion(t, key, nil, map[string]any{"typ": "at+jwt"}),
		"with a foreign kid":           assertion(t, key, nil, map[string]any{"kid": "k2"}),
		"with a critical extension":    assertion(t, key, nil, map[string]any{"crit": []string{"exp"}, "exp": in(-time.Minute)}),
		"with alg none":                withAlgNone(t, "broker"),
		"signed with the public key":   withHMAC(t, key),
		"that is no JWS":               "a.b.c",
		"with its claims said twice":   withDuplicate(t, key),
		"with numbers that are no exp": assertion(t, key, map[string]any{"exp": "soon"}, nil),
	} {
		t.Run("refuses an assertion "+name, func(t *testing.T) {
			r := s.token(brokerExchange(code, bad, set("client_id", "broker")))
			if r.status != http.StatusUnauthorized || r.Error != "invalid_client" {
				t.Errorf("got %d %s", r.status, r.Error)
			}
			if r.header.Get("WWW-Authenticate") != "" {
				t.Error("challenged a client that did not try Basic")
			}
		})
	}
	t.Run("then accepts a good one, once", func(t *testing.T) {
		good := assertion(t, key, map[string]any{"nbf": in(30 * time.Second), "iat": in(30 * time.Second)}, nil)
		if r := s.token(brokerExchange(code, good)); r.status != http.StatusOK {
			t.Fatalf("good assertion: %d %s %s\n%s", r.status, r.Error, r.Description, s.logs)
		}
		again := s.code(request(set("client_id", "broker")))
		if r := s.token(brokerExchange(again, good)); r.Error != "invalid_client" {
			t.Errorf("replayed assertion: %d %s", r.status, r.Error)
		}
		if r := s.token(brokerExchange(again, assertion(t, key, map[string]any{"aud": []string{issuer + "/token"}}, nil))); r.status != http.StatusOK {
			t.Errorf("assertion for the token endpoint: %d %s", r.status, r.Error)
		}
	})
	if !slices.Contains(s.events(), as.EventClientRefused) {
		t.Error("no audit record of the refusals")
	}
}

func TestClientAssertionAlgorithms(t *testing.T) {
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	s := newServer(t, nil)
	for alg, raw := range map[jwa.SignatureAlgorithm]any{jwa.ES256: ecKey, jwa.EdDSA: edKey, jwa.RS256: rsaKey, jwa.PS256: rsaKey} {
		t.Run(alg.String(), func(t *testing.T) {
			k, err := newClientKeys(raw, alg)
			must(t, err)
			must(t, s.store.PutClient(t.Context(), store.Client{
				ID: "broker", AuthMethod: as.AuthPrivateKeyJWT, JWKS: k.set, RedirectURIs: []string{callback}, SkipConsent: true,
			}))
			code := s.code(request(set("client_id", "broker")))
			if r := s.token(brokerExchange(code, assertion(t, k, nil, nil))); r.status != http.StatusOK {
				t.Errorf("%s: %d %s\n%s", alg, r.status, r.Error, s.logs)
			}
		})
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	must(t, err)
	return base64.RawURLEncoding.EncodeToString(raw)
}

func withAlgNone(t *testing.T, client string) string {
	t.Helper()
	return encode(t, map[string]any{"alg": "none"}) + "." + encode(t, map[string]any{
		"iss": client, "sub": client, "aud": issuer, "jti": "none", "exp": time.Now().Add(time.Minute).Unix(),
	}) + "."
}

// withHMAC takes the public key for a shared secret.
func withHMAC(t *testing.T, k clientKeys) string {
	t.Helper()
	payload, err := json.Marshal(map[string]any{
		"iss": "broker", "sub": "broker", "aud": issuer, "jti": "hmac", "exp": time.Now().Add(time.Minute).Unix(),
	})
	must(t, err)
	signed, err := jws.Sign(payload, jws.WithKey(jwa.HS256, []byte(k.set)))
	must(t, err)
	return string(signed)
}

// withDuplicate says sub twice: two parsers could read two clients.
func withDuplicate(t *testing.T, k clientKeys) string {
	t.Helper()
	payload := `{"sub":"spa","iss":"broker","sub":"broker","aud":"` + issuer + `","jti":"twice","exp":` +
		strconv.FormatInt(time.Now().Add(time.Minute).Unix(), 10) + `}`
	signed, err := jws.Sign([]byte(payload), jws.WithKey(jwa.ES256, k.private))
	must(t, err)
	return string(signed)
}
