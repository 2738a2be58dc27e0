package client_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/cinnabar-hub/cinnabar/client"
	"github.com/cinnabar-hub/cinnabar/test/needs"
)

// guide is docs/guide-backend.md.
type guide struct {
	blocks []block
	tried  map[int]bool
}

// block is a piece of code of the guide.
type block struct{ language, text string }

func readGuide(t *testing.T) *guide {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "docs", "guide-backend.md"))
	if err != nil {
		t.Fatal(err)
	}
	g := &guide{tried: map[int]bool{}}
	for _, m := range regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$").FindAllStringSubmatch(string(raw), -1) {
		g.blocks = append(g.blocks, block{m[1], m[2]})
	}
	return g
}

// take gives the block of a language that holds a text, and counts it as tried.
func (g *guide) take(t *testing.T, language, text string) string {
	t.Helper()
	for i, b := range g.blocks {
		if b.language == language && strings.Contains(b.text, text) {
			g.tried[i] = true
			return b.text
		}
	}
	t.Fatalf("the guide has no %s block with %q", language, text)
	return ""
}

// Every command and every piece of code in the guide works as it stands there, but for host names and ports.
func TestGuide(t *testing.T) {
	needs.Shell(t)
	needs.Program(t, "curl")
	g := readGuide(t)
	t.Run("Go", g.tryGo)
	t.Run("development server", g.tryDev)
	t.Run("client credentials", g.tryClientCredentials)
	t.Run("own token", g.tryOwnToken)
	for i, b := range g.blocks {
		if !g.tried[i] {
			t.Errorf("nobody tries this:\n%s", b.text)
		}
	}
}

// tryGo finds the Go code in the tests, which run it.
func (g *guide) tryGo(t *testing.T) {
	var tests strings.Builder
	for _, name := range []string{"example_test.go", "guide_test.go"} {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tests.WriteString(flat(string(raw)))
	}
	for i, b := range g.blocks {
		if b.language != "go" {
			continue
		}
		if g.tried[i] = true; !strings.Contains(tests.String(), flat(b.text)) {
			t.Errorf("no test runs this:\n%s", b.text)
		}
	}
}

// flat leaves the indentation out.
func flat(code string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		b.WriteString(strings.TrimLeft(line, "\t"))
	}
	return b.String()
}

// workplace is a folder with bin/hub and bin/authz, as in a checkout after make build. They are this very program.
func workplace(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "cinnabar")
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"hub", "authz"} {
		script := fmt.Sprintf("#!/bin/sh\n%s=%s exec '%s' \"$@\"\n", actAs, name, self)
		if err := os.WriteFile(filepath.Join(dir, "bin", name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// shell runs commands as somebody does who pastes them there, and gives what they print.
func shell(t *testing.T, dir, commands string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-e", "-c", commands)
	cmd.Dir = dir
	var out, messages strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &messages
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, commands, messages.String())
	}
	return out.String()
}

// background runs a program until the test ends, and waits until it listens.
func background(t *testing.T, dir, address, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(dir, "bin", name), args...)
	cmd.Dir = dir
	out := &syncBuffer{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // the cleanup waits for it
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-ended
		if t.Failed() {
			t.Logf("output of %s:\n%s", name, out)
		}
	})
	for range int(patience / (20 * time.Millisecond)) {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s ended: %v", name, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatalf("%s does not listen", name)
}

// freeAddress gives a loopback address that nobody listens on, under the name localhost.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return strings.Replace(l.Addr().String(), "127.0.0.1", "localhost", 1)
}

func (g *guide) tryDev(t *testing.T) {
	dir, https, plain := workplace(t), freeAddress(t), freeAddress(t)
	background(t, dir, https, "hub", "dev", "--listen", https, "--http", plain)
	here := func(commands string) string { return strings.ReplaceAll(commands, "localhost:8443", https) }
	if id := shell(t, dir, here(g.take(t, "sh", "curl --fail-with-body --cacert .cinnabar"))); !strings.HasPrefix(id, "urn:uuid:") {
		t.Errorf("curl prints %q", id)
	}
	out := shell(t, dir, here(g.take(t, "sh", "bin/hub publish")))
	line := `\{"id":"urn:uuid:[-0-9a-f]+","data":"\{\\"status\\":\\"sold\\"\}"\}\n`
	if !regexp.MustCompile(`^urn:uuid:[-0-9a-f]+\n` + line + line + `$`).MatchString(out) {
		t.Errorf("publishing and reading two updates prints %q", out)
	}
	if token := shell(t, dir, here(g.take(t, "sh", "bin/authz token mint"))); strings.Count(token, ".") != 2 || strings.Count(token, "\n") != 1 {
		t.Error("minting prints no token, or more than that")
	}
	if out := shell(t, dir, here(g.take(t, "sh", "bin/authz token explain"))); !strings.Contains(out, "publish /demo/books/1") {
		t.Errorf("explaining prints %q", out)
	}
}

func (g *guide) tryClientCredentials(t *testing.T) {
	dir, address := workplace(t), freeAddress(t)
	h, err := newHub(dir, true, "authorization_server: { bundled: true, config_file: authz.yaml }", "session: { profiles: { default: { scope: live } } }")
	if err != nil {
		t.Fatal(err)
	}
	issuer, hubURL := "https://"+address+"/auth", "https://"+address+"/.well-known/mercure"
	config, err := os.ReadFile(filepath.Join(dir, "hub.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	authz := "issuer: " + issuer + "\nstore: { path: authz.db, secret_file: authz.secret }\nresources: [ { id: " + hubURL + ", name: Test hub } ]\n" +
		"scopes: { live: [ { actions: [subscribe], topics: [ { match: \"*\" } ] } ] }\n" + g.take(t, "yaml", "worker-publishes")
	for name, text := range map[string]string{"hub.yaml": strings.ReplaceAll(string(config), h.address, address), "authz.yaml": authz} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	background(t, dir, address, "hub", "serve", "--config", "hub.yaml")
	here := strings.NewReplacer("https://auth.example.com", issuer, "https://hub.example.com/.well-known/mercure", hubURL, "curl ", "curl --cacert ca.crt ")
	shell(t, dir, here.Replace(g.take(t, "sh", "bin/authz client create")))
	out := shell(t, dir, here.Replace(g.take(t, "sh", "grant_type=client_credentials")))
	if !strings.Contains(out, `"access_token":"`) || !strings.Contains(out, "https://example.com/books/:id") {
		t.Error("the answer holds no token, or not the policy's grant")
	}
	raw, err := os.ReadFile(filepath.Join(dir, "worker.secret"))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: h.TLS}
	defer transport.CloseIdleConnections()
	ctx := context.WithValue(t.Context(), oauth2.HTTPClient, &http.Client{Transport: transport})
	hub := mustNew(t, client.Options{HubURL: hubURL, TLS: h.TLS, Token: workerToken(ctx, issuer, hubURL, strings.TrimSpace(string(raw)))})
	for range 2 {
		if _, err := hub.Publish(t.Context(), client.Update{Topics: []string{"https://example.com/books/1"}, Private: true}); err != nil {
			t.Error(err)
		}
	}
	_, err = hub.Publish(t.Context(), client.Update{Topics: []string{"https://example.com/authors/1"}})
	if e := failure(t, err); e.Status != http.StatusForbidden {
		t.Errorf("what the policy does not grant: %v", err)
	}
}

// workerToken is the guide's source of tokens from client credentials.
func workerToken(ctx context.Context, issuer, hubURL, secret string) func(context.Context) (string, error) {
	source := (&clientcredentials.Config{
		ClientID:       "worker",
		ClientSecret:   secret,
		TokenURL:       issuer + "/token",
		EndpointParams: url.Values{"resource": {hubURL}},
	}).TokenSource(ctx)
	token := func(context.Context) (string, error) {
		t, err := source.Token()
		if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok { // 503 ends no subscription, invalid_client does
			return "", &client.Error{Status: refused.Response.StatusCode, Err: err}
		}
		if err != nil {
			return "", err
		}
		return t.AccessToken, nil
	}
	return token
}

// A subscription outlives an authorization server that is busy, and ends when it knows the client no more.
func TestGuide_tokenTrouble(t *testing.T) {
	for status, retryable := range map[int]bool{http.StatusServiceUnavailable: true, http.StatusTooManyRequests: true, http.StatusUnauthorized: false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		hub := mustNew(t, client.Options{HubURL: server.URL, Token: workerToken(t.Context(), server.URL, server.URL, "secret")})
		_, err := hub.Publish(t.Context(), client.Update{Topics: []string{"t"}})
		if e := failure(t, err); e.Status != 0 || e.Retryable() != retryable || !strings.Contains(e.Error(), "get a token: "+strconv.Itoa(status)) {
			t.Errorf("%d: Publish = %+v, want retryable %t", status, e, retryable)
		}
		server.Close()
	}
}

func (g *guide) tryOwnToken(t *testing.T) {
	h, err := newHub(t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(h.dir, "hub.yaml")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	config := regexp.MustCompile(`(?m)^issuers: .*\n`).ReplaceAllString(string(raw), g.take(t, "yaml", "publisher.secret"))
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.dir, "publisher.secret"), h.Secret, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	defer h.Stop()
	now := time.Now().Unix()
	claims := strings.NewReplacer(
		"https://hub.example.com/.well-known/mercure", h.URL, "1790000000", strconv.FormatInt(now, 10), "1790000600", strconv.FormatInt(now+600, 10), "8d2f…", client.NewID(),
	).Replace(g.take(t, "json", "authorization_details"))
	hub := mustNew(t, client.Options{HubURL: h.URL, Token: always(sign(h.Secret, []byte(claims)))})
	if _, err := hub.Publish(t.Context(), client.Update{Topics: []string{"https://example.com/books/1"}}); err != nil {
		t.Error(err)
	}
	_, err = take(1, hub.Subscribe(t.Context(), all()))
	if e := failure(t, err); e.Code != "invalid_token" {
		t.Errorf("TOK-26: a publisher's token opens a stream: %v", err)
	}
}

func sign(secret, claims []byte) string {
	b64 := base64.RawURLEncoding
	text := b64.EncodeToString([]byte(`{"alg":"HS256","typ":"at+jwt"}`)) + "." + b64.EncodeToString(claims)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	return text + "." + b64.EncodeToString(mac.Sum(nil))
}
