package hubapp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

const sharedSecret = "0123456789abcdef0123456789abcdef"

func write(t *testing.T, name, text string) config.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.File(path)
}

func ecKey(t *testing.T) *ecdsa.PublicKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &key.PublicKey
}

// ecPEM gives a new public key, PEM.
func ecPEM(t *testing.T) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(ecKey(t))
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// ecJWK gives a new public key, JWK.
func ecJWK(t *testing.T, id string) string {
	t.Helper()
	point, err := ecKey(t).Bytes() // 4, x, y
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return fmt.Sprintf(`{"kty":"EC","crv":"P-256","alg":"ES256","kid":%q,"x":%q,"y":%q}`, id, encode(point[1:33]), encode(point[33:]))
}

// seen is what matters of a key: the rest is the business of package token.
type seen struct {
	ID, Algorithm string
	Actions       rar.ActionSet
}

func TestTrustedIssuers(t *testing.T) {
	issuer := config.Issuer{
		ID:         "https://app.example.com",
		Publisher:  config.IssuerRole{Keys: []config.IssuerKey{{Algorithm: "HS256", KeyID: "p", SecretFile: write(t, "secret", sharedSecret+"\r\n")}}},
		Subscriber: config.IssuerRole{Keys: []config.IssuerKey{{Algorithm: "ES256", KeyID: "s", PEMFile: write(t, "pem", ecPEM(t))}}},
		Keys:       []config.IssuerKey{{JWKSFile: write(t, "jwks", `{"keys":[`+ecJWK(t, "own")+`]}`)}},
	}
	configured := []config.Issuer{issuer, {ID: "https://auth.example.com", AuthorizationServer: true}}
	trusted, err := TrustedIssuers(configured, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	issuers := trusted.Issuers
	if len(issuers) != 2 || issuers[0].ID != issuer.ID || issuers[0].AuthorizationServer || !issuers[1].AuthorizationServer {
		t.Fatalf("issuers = %+v", issuers)
	}
	if _, ok := issuers[1].Keys.(*token.Discovery); !ok {
		t.Errorf("the keys of an issuer that has none are a %T, want a *token.Discovery", issuers[1].Keys)
	}
	for _, want := range []seen{
		{"p", "HS256", rar.Actions(rar.Publish)},
		{"s", "ES256", rar.Actions(rar.Subscribe)},
		{"own", "ES256", rar.Actions(rar.Publish, rar.Subscribe)},
	} {
		keys, err := issuers[0].Keys.Keys(t.Context(), want.ID)
		if err != nil || len(keys) != 1 {
			t.Fatalf("Keys(%s) = %d keys, %v", want.ID, len(keys), err)
		}
		if diff := cmp.Diff(want, seen{keys[0].ID, keys[0].Algorithm, keys[0].Actions}); diff != "" {
			t.Errorf("key (-want +got):\n%s", diff)
		}
	}
	keys, err := issuers[0].Keys.Keys(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	if secret, ok := keys[0].Material.([]byte); !ok || string(secret) != sharedSecret {
		t.Error("the line end of the secret's file counts as part of the secret")
	}
}

func TestTrustedIssuers_reload(t *testing.T) {
	logger := slog.New(slog.DiscardHandler)
	secret := write(t, "secret", sharedSecret)
	configured := []config.Issuer{
		{ID: "https://kept.example.com", Keys: []config.IssuerKey{{Algorithm: "HS256", SecretFile: write(t, "kept", "k"+sharedSecret)}}},
		{ID: "https://changed.example.com", Keys: []config.IssuerKey{{Algorithm: "HS256", SecretFile: secret}}},
		{ID: "https://gone.example.com", Keys: []config.IssuerKey{{Algorithm: "HS256", SecretFile: write(t, "gone", "g"+sharedSecret)}}},
		{ID: "https://auth.example.com", AuthorizationServer: true},
	}
	before, err := TrustedIssuers(configured, nil, logger)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(string(secret), []byte("c"+sharedSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	after, err := TrustedIssuers(append(configured[:2:2], configured[3]), before, logger)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]bool{"https://changed.example.com": true, "https://gone.example.com": true}, before.changed(after)); diff != "" {
		t.Errorf("issuers with other keys (-want +got):\n%s", diff)
	}
	if before.Issuers[3].Keys != after.Issuers[2].Keys {
		t.Error("the discovered keys of an authorization server are lost with a reload")
	}
}

func TestTrustedIssuers_refuses(t *testing.T) {
	for name, c := range map[string]struct {
		issuer config.Issuer
		want   string
	}{
		"a missing file":   {config.Issuer{ID: "i", Keys: []config.IssuerKey{{Algorithm: "ES256", PEMFile: "missing"}}}, "issuer i: keys[0]: read key"},
		"a short secret":   {config.Issuer{ID: "i", Keys: []config.IssuerKey{{Algorithm: "HS256", SecretFile: write(t, "s", "short")}}}, "issuer i: keys[0]"},
		"a wrong key":      {config.Issuer{ID: "i", Keys: []config.IssuerKey{{Algorithm: "RS256", PEMFile: write(t, "p", ecPEM(t))}}}, "issuer i: keys[0]"},
		"an empty key set": {config.Issuer{ID: "i", Keys: []config.IssuerKey{{JWKSFile: write(t, "j", `{"keys":[]}`)}}}, "none of its files holds a key"},
		"too large a file": {
			config.Issuer{ID: "i", Subscriber: config.IssuerRole{Keys: []config.IssuerKey{{JWKSFile: write(t, "l", strings.Repeat(" ", maxKeyFileBytes+1))}}}},
			"issuer i: subscriber[0]: ",
		},
		"a clear-text issuer": {config.Issuer{ID: "http://auth.example.com"}, "issuer http://auth.example.com: "},
	} {
		if _, err := TrustedIssuers([]config.Issuer{c.issuer}, nil, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: TrustedIssuers = %v, want %q", name, err, c.want)
		} else if strings.Contains(err.Error(), "short ") {
			t.Errorf("%s: the secret is in %q", name, err)
		}
	}
}

func TestNarrow(t *testing.T) {
	publish, subscribe := rar.Actions(rar.Publish), rar.Actions(rar.Subscribe)
	for _, c := range []struct {
		own, role, want rar.ActionSet
		fails           bool
	}{
		{0, 0, 0, false},
		{0, publish, publish, false},
		{publish, 0, publish, false},
		{publish, publish, publish, false},
		{publish | subscribe, subscribe, subscribe, false},
		{publish, subscribe, 0, true}, // all of nothing would be everything
	} {
		got, err := narrow(c.own, c.role)
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("narrow(%s, %s) = %s, %v; want %s, an error: %t", c.own, c.role, got, err, c.want, c.fails)
		}
	}
}
