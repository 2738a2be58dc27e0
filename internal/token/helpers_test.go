package token_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

const (
	hubURL   = "https://hub.example/.well-known/mercure"
	asIssuer = "https://as.example"
	shop     = "https://shop.example"
)

// start is the time of every test's clock.
var start = time.Date(2031, time.May, 4, 12, 0, 0, 0, time.UTC)

// keys are made once: RSA ones are slow.
var (
	ecKey = sync.OnceValue(func() *ecdsa.PrivateKey {
		return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	})
	ec2Key = sync.OnceValue(func() *ecdsa.PrivateKey {
		return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	})
	ec384Key = sync.OnceValue(func() *ecdsa.PrivateKey {
		return must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	})
	ec521Key = sync.OnceValue(func() *ecdsa.PrivateKey {
		return must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader))
	})
	edKey = sync.OnceValue(func() ed25519.PrivateKey {
		_, k, err := ed25519.GenerateKey(rand.Reader)
		return must(k, err)
	})
	rsaKey = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })

	publisherSecret = []byte("the publisher's secret of 32 byte")
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// object is a JSON object with raw values, so that a test can say exactly what stands in a token.
type object map[string]string

// with returns a copy with the members of other; an empty value takes a member out.
func (o object) with(other object) object {
	c := maps.Clone(o)
	for name, value := range other {
		if value == "" {
			delete(c, name)
		} else {
			c[name] = value
		}
	}
	return c
}

func (o object) String() string {
	var members []string
	for _, name := range slices.Sorted(maps.Keys(o)) {
		members = append(members, fmt.Sprintf("%q:%s", name, o[name]))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func quoted(s string) string { return string(must(json.Marshal(s))) }

func seconds(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// detail is an authorization details claim of one detail.
func detail(action, match string) string {
	return fmt.Sprintf(`[{"type":%q,"actions":[%q],"topics":[{"match":%q}]}]`, rar.DetailType, action, match)
}

// header and claims are those of a token everybody accepts when asKey signs it.
func header() object { return object{"typ": `"at+jwt"`, "alg": `"ES256"`, "kid": `"as1"`} }

func claims() object {
	return object{
		"iss": quoted(asIssuer), "sub": `"u_1"`, "aud": quoted(hubURL), "client_id": `"app"`, "jti": `"t1"`,
		"iat": seconds(start), "exp": seconds(start.Add(10 * time.Minute)),
		"authorization_details": detail("subscribe", "https://example.com/a"),
	}
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// compact signs any header and payload, with standard library primitives only.
func compact(header, payload, alg string, key any) string {
	input := b64([]byte(header)) + "." + b64([]byte(payload))
	return input + "." + b64(signature(input, alg, key))
}

func signature(input, alg string, key any) []byte {
	hash := map[string]crypto.Hash{"256": crypto.SHA256, "384": crypto.SHA384, "512": crypto.SHA512}[alg[max(0, len(alg)-3):]]
	digest := func() []byte {
		h := hash.New()
		h.Write([]byte(input))
		return h.Sum(nil)
	}
	switch k := key.(type) {
	case []byte:
		m := hmac.New(hash.New, k)
		m.Write([]byte(input))
		return m.Sum(nil)
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, k, digest())
		must(r, err)
		size := (k.Curve.Params().BitSize + 7) / 8
		return append(r.FillBytes(make([]byte, size)), s.FillBytes(make([]byte, size))...)
	case ed25519.PrivateKey:
		return ed25519.Sign(k, []byte(input))
	case *rsa.PrivateKey:
		if strings.HasPrefix(alg, "PS") {
			return must(rsa.SignPSS(rand.Reader, k, hash, digest(), &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}))
		}
		return must(rsa.SignPKCS1v15(nil, k, hash, digest()))
	default:
		return nil
	}
}

// good is a token everybody accepts.
func good() string { return compact(header().String(), claims().String(), "ES256", ecKey()) }

// clock is a time that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: start} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// issuers are an authorization server with one key for each algorithm, and a self-issuer with keys for each role.
func issuers() []token.Issuer {
	return []token.Issuer{
		{ID: asIssuer, AuthorizationServer: true, Keys: token.Static(
			token.Key{ID: "as1", Algorithm: "ES256", Material: &ecKey().PublicKey},
			token.Key{ID: "as2", Algorithm: "EdDSA", Material: edKey().Public()},
			token.Key{ID: "as3", Algorithm: "RS256", Material: &rsaKey().PublicKey},
			token.Key{ID: "as-pub", Algorithm: "ES512", Material: &ec521Key().PublicKey, Actions: rar.Actions(rar.Publish)},
		)},
		{ID: shop, Keys: token.Static(
			token.Key{ID: "pub", Algorithm: "HS256", Material: publisherSecret, Actions: rar.Actions(rar.Publish)},
			token.Key{ID: "sub", Algorithm: "ES384", Material: &ec384Key().PublicKey, Actions: rar.Actions(rar.Subscribe)},
		)},
	}
}

func options(tb testing.TB) token.Options {
	tb.Helper()
	compiler, err := topic.NewCompiler(hubURL, topic.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	return token.Options{
		Resource: hubURL, Issuers: issuers(), Compiler: compiler, CacheSize: -1,
		Now: func() time.Time { return start },
	}
}

func newVerifier(tb testing.TB, o token.Options) *token.Verifier {
	tb.Helper()
	v, err := token.NewVerifier(o)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

// wantCheck fails unless err refuses at the check, or is nil for an empty one.
func wantCheck(tb testing.TB, err error, want token.Check) {
	tb.Helper()
	var invalid *token.InvalidError
	switch {
	case want == "" && err != nil:
		tb.Errorf("Verify() = %v, want the token accepted", err)
	case want != "" && err == nil:
		tb.Errorf("Verify() accepts the token, want it refused at %s", want)
	case want != "" && !errors.As(err, &invalid):
		tb.Errorf("Verify() = %v, want an InvalidError of check %s", err, want)
	case want != "" && (invalid.Check != want || invalid.Reason == ""):
		tb.Errorf("Verify() = %v, want a reason at check %s", err, want)
	}
}
