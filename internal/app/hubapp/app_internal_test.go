package hubapp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/config"
)

const (
	testHub    = "https://hub.example.com/.well-known/mercure"
	testIssuer = "https://app.example.com"
)

// publishToken gives a token of the self-issuing publisher.
func publishToken() string { return tokenFor("publish") }

// tokenFor gives a token of the self-issuing publisher with the action on everything.
func tokenFor(action string) string {
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	now := time.Now().Unix()
	signed := encode(`{"alg":"HS256","typ":"at+jwt"}`) + "." + encode(fmt.Sprintf(
		`{"iss":%q,"sub":"s","aud":%q,"client_id":"c","jti":"j","iat":%d,"exp":%d,"authorization_details":[`+
			`{"type":"https://mercure.rocks/authorization-detail","actions":[%q],"topics":[{"match":"*"}]}]}`, testIssuer, testHub, now, now+60, action))
	mac := hmac.New(sha256.New, []byte(sharedSecret))
	mac.Write([]byte(signed))
	return signed + "." + encode(string(mac.Sum(nil)))
}

func newApp(t *testing.T, c config.Hub) *App {
	t.Helper()
	c.PublicURL, c.Resource, c.History.Driver = testHub, testHub, "memory"
	c.Issuers = []config.Issuer{{ID: testIssuer, Keys: []config.IssuerKey{{Algorithm: "HS256", SecretFile: write(t, "secret", sharedSecret)}}}}
	a, err := New(t.Context(), c, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.engine.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.stack.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// A token that travels in clear can be taken by whoever looks on, so a hub that must expect that accepts none (AUTH-14).
func TestApp_refusesTokensOnPlainHTTPOutsideLoopback(t *testing.T) {
	for name, c := range map[string]struct {
		listen  string
		proxied bool
		want    int
	}{
		"this machine, by name":    {"localhost:8080", false, http.StatusOK},
		"this machine, by address": {"127.0.0.2:8080", false, http.StatusOK},
		"this machine, IPv6":       {"[::1]:8080", false, http.StatusOK},
		"every address":            {":8080", false, http.StatusUnauthorized},
		"another address":          {"192.0.2.1:8080", false, http.StatusUnauthorized},
		"a name that looks local":  {"127.0.0.1.example.com:8080", false, http.StatusUnauthorized},
		"behind a proxy":           {":8080", true, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			o := config.DefaultHub()
			o.Listen, o.TLS = c.listen, config.TLS{Mode: "off", BehindTLSProxy: c.proxied}
			a := newApp(t, o)
			r := httptest.NewRequest(http.MethodPost, testHub, strings.NewReader(url.Values{"topic": {"https://example.com/1"}}.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Authorization", "Bearer "+publishToken())
			w := httptest.NewRecorder()
			a.handler.ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("publish = %d %s, want %d", w.Code, w.Body, c.want)
			}
			if hsts := w.Header().Get("Strict-Transport-Security"); hsts != "" {
				t.Errorf("a hub without TLS sends Strict-Transport-Security: %s", hsts)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	ok := config.DefaultHub()
	ok.PublicURL, ok.Resource, ok.TLS.Mode = testHub, testHub, "off"
	ok.Issuers = []config.Issuer{{ID: testIssuer, Keys: []config.IssuerKey{{Algorithm: "HS256", SecretFile: write(t, "secret", sharedSecret)}}}}
	for name, c := range map[string]struct {
		change func(*config.Hub)
		want   string
	}{
		"right": {func(*config.Hub) {}, ""},
		"no certificate": {func(h *config.Hub) {
			h.TLS = config.TLS{Mode: "files", CertFile: "missing.crt", KeyFile: "missing.key"}
		}, "tls: "},
		"no key": {func(h *config.Hub) {
			h.Issuers = []config.Issuer{{ID: "i", Keys: []config.IssuerKey{{JWKFile: "missing"}}}}
		}, "issuer i: keys[0]"},
		"no proxy":        {func(h *config.Hub) { h.TrustedProxies = []string{"proxy"} }, "trusted_proxies: "},
		"no broker's key": {func(h *config.Hub) { h.Session.Issuer, h.Session.ClientKeyFile = testIssuer, "missing" }, "session.client_key_file: "},
		"no origin":       {func(h *config.Hub) { h.CORSOrigins = []string{"app.example.com"} }, "hubhttp: not an origin"},
		"one key for two": {func(h *config.Hub) {
			h.Issuers = append(slices.Clip(h.Issuers), config.Issuer{ID: "another", Keys: h.Issuers[0].Keys})
		}, "trusted issuers: "},
		"a URL that no topic resolves against": {func(h *config.Hub) { h.PublicURL = "https://:/hub" }, "hub URL: "},
	} {
		h := ok
		c.change(&h)
		err := Check(h, nil, slog.New(slog.DiscardHandler))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: Check = %v, want %q", name, err, c.want)
		}
	}
	bundle(&ok)
	for origin, want := range map[string]string{"https://app.example.com": "", "app.example.com": "session: return_to origin"} {
		ok.Session.ReturnToOrigins = []string{origin}
		err := Check(ok, bundledConfig(t), slog.New(slog.DiscardHandler))
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("bundled, with the origin %s: Check = %v, want %q", origin, err, want)
		}
	}
}
