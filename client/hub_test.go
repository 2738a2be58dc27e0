package client_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/client"
	"github.com/cinnabar-hub/cinnabar/internal/cli"
	"github.com/cinnabar-hub/cinnabar/internal/cli/hubcli"
	"github.com/cinnabar-hub/cinnabar/internal/devcert"
)

// patience bounds the wait for something that should be there soon.
const patience = 30 * time.Second

// testHub is 'hub serve' in this process. Its history is on disk, so that it can be started again.
type testHub struct {
	URL    string
	TLS    *tls.Config // trusts it
	Secret []byte      // signs tokens for it

	dir, address string
	stop         context.CancelFunc
	done         chan int
	output       *syncBuffer
}

// newHub lays down the configuration of a hub in a folder. More lines of configuration may follow the usual ones.
func newHub(dir string, secure bool, more ...string) (*testHub, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &testHub{dir: dir, address: l.Addr().String(), Secret: []byte(rand.Text() + rand.Text())} // text: a file's last line end is not part of the secret
	_ = l.Close()
	h.URL = "http://" + h.address + "/.well-known/mercure"
	transport := "{ mode: off }"
	if secure {
		h.URL = "https://" + h.address + "/.well-known/mercure"
		transport = "{ mode: files, cert_file: server.crt, key_file: server.key }"
		if _, _, err := devcert.Certificate(dir, time.Now()); err != nil {
			return nil, err
		}
		ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
		if err != nil {
			return nil, err
		}
		h.TLS = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
		h.TLS.RootCAs.AppendCertsFromPEM(ca)
	}
	config := strings.Join(append([]string{
		"public_url: " + h.URL, "listen: " + h.address, "tls: " + transport, `ops: { listen: "" }`,
		"history: { driver: segments, path: history }", "retry: 100ms", "drain: 100ms", "heartbeat: 1s",
		"issuers: [ { id: https://app.example.com, keys: [ { alg: HS256, secret_file: app.secret } ] } ]",
	}, more...), "\n")
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, "app.secret"), h.Secret, 0o600),
		os.WriteFile(filepath.Join(dir, "hub.yaml"), []byte(config+"\n"), 0o600),
	)
	return h, err
}

// Start starts it and waits until it listens.
func (h *testHub) Start() error {
	ctx, stop := context.WithCancel(context.Background())
	h.stop, h.done, h.output = stop, make(chan int, 1), &syncBuffer{}
	env := cli.Env{
		Args:  []string{"serve", "--config", filepath.Join(h.dir, "hub.yaml")},
		Stdin: strings.NewReader(""), Stdout: h.output, Stderr: h.output, Version: "test",
	}
	done := h.done
	go func() { done <- hubcli.Main(ctx, env) }() // Stop waits for it
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range int(patience / (10 * time.Millisecond)) {
		if conn, err := net.Dial("tcp", h.address); err == nil {
			return conn.Close()
		}
		select {
		case code := <-h.done:
			h.done <- code
			return fmt.Errorf("the hub ended with %d:\n%s", code, h.output)
		case <-tick.C:
		}
	}
	h.Stop()
	return fmt.Errorf("the hub does not listen:\n%s", h.output)
}

// Stop ends it and waits for that.
func (h *testHub) Stop() {
	h.stop()
	<-h.done
}

// startHub starts a hub that is stopped when the test ends.
func startHub(t *testing.T, secure bool, more ...string) *testHub {
	t.Helper()
	h, err := newHub(t.TempDir(), secure, more...)
	if err == nil {
		err = h.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.Stop()
		if t.Failed() {
			t.Logf("output of the hub:\n%s", h.output)
		}
	})
	return h
}

// Token signs a token that may do everything there.
func (h *testHub) Token(change map[string]any) string {
	claims := map[string]any{
		"iss": "https://app.example.com", "sub": "backend", "client_id": "backend", "aud": h.URL, "jti": client.NewID(),
		"iat": time.Now().Unix(), "exp": time.Now().Add(10 * time.Minute).Unix(),
		"authorization_details": []any{map[string]any{
			"type": "https://mercure.rocks/authorization-detail", "actions": []string{"publish", "subscribe"},
			"topics": []any{map[string]any{"match": "*"}},
		}},
	}
	maps.Copy(claims, change)
	payload, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	return sign(h.Secret, payload)
}

// client gives a client with a token that may do everything.
func (h *testHub) client(t *testing.T) *client.Client {
	t.Helper()
	return mustNew(t, client.Options{HubURL: h.URL, TLS: h.TLS, Token: func(context.Context) (string, error) { return h.Token(nil), nil }})
}

type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// protocols are the ways to a hub, and whether it takes TLS.
func protocols() map[string]bool { return map[string]bool{"HTTP/1.1": false, "HTTP/2": true} }

func TestHub_roundTrip(t *testing.T) {
	for name, secure := range protocols() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := startHub(t, secure)
			c := h.client(t)
			update := client.Update{
				Topics: []string{"https://example.com/books/1", "https://example.com/shelf"}, Data: "one\r\n two\n\n&=+;%é", Private: true, Type: "sold", Retry: time.Second,
			}
			id, err := c.Publish(t.Context(), update)
			if err != nil {
				t.Fatal(err)
			}
			own := client.NewID()
			update.ID, update.Private = own, false
			if got, err := c.Publish(t.Context(), update); err != nil || got != own {
				t.Fatalf("Publish = %q, %v; want %q", got, err, own)
			}
			for name, s := range map[string]client.Subscription{
				"topic":     {Topics: []string{"https://example.com/books/1"}},
				"alternate": {Topics: []string{"https://example.com/shelf"}},
				"pattern":   {Patterns: []string{"https://example.com/books/:id"}},
				"all":       {Topics: []string{"*"}},
			} {
				s.Cursor = client.Earliest
				got, err := take(2, c.Subscribe(t.Context(), s))
				want := []client.Event{{ID: id, Type: "sold", Data: "one\n two\n\n&=+;%é"}, {ID: own, Type: "sold", Data: "one\n two\n\n&=+;%é"}}
				if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s: got %+v, %v; want %+v", name, got, err, want)
				}
			}
			anonymous := mustNew(t, client.Options{HubURL: h.URL, TLS: h.TLS})
			if got, err := take(1, anonymous.Subscribe(t.Context(), client.Subscription{Topics: []string{"*"}, Cursor: client.Earliest})); err != nil || got[0].ID != own {
				t.Errorf("AUTH-03: without a token got %+v, %v; want the public update", got, err)
			}
		})
	}
}

func TestHub_refusals(t *testing.T) {
	h := startHub(t, false)
	narrow := map[string]any{"authorization_details": []any{map[string]any{
		"type": "https://mercure.rocks/authorization-detail", "actions": []string{"publish"}, "topics": []any{map[string]any{"match": "https://example.com/a"}},
	}}}
	for name, c := range map[string]struct {
		token  string
		update client.Update
		status int
		code   string
	}{
		"no token":          {"", client.Update{Topics: []string{"t"}}, 401, ""},
		"a bad token":       {"no.good.token", client.Update{Topics: []string{"t"}}, 401, "invalid_token"},
		"not allowed":       {h.Token(narrow), client.Update{Topics: []string{"https://example.com/b"}}, 403, "insufficient_scope"},
		"a reserved topic":  {h.Token(nil), client.Update{Topics: []string{h.URL + "/x"}}, 400, ""},
		"too large":         {h.Token(nil), client.Update{Topics: []string{"t"}, Data: strings.Repeat("x", 2<<20)}, 413, ""},
		"bytes, not text":   {h.Token(nil), client.Update{Topics: []string{"t"}, Data: "\xff"}, 400, ""},
		"an id of its kind": {h.Token(nil), client.Update{Topics: []string{"t"}, ID: "#1"}, 400, ""},
	} {
		_, err := mustNew(t, client.Options{HubURL: h.URL, Token: always(c.token)}).Publish(t.Context(), c.update)
		e := failure(t, err)
		if e.Status != c.status || e.Code != c.code || e.Retryable() || e.Uncertain || e.RequestID == "" || e.Problem == nil {
			t.Errorf("%s: Publish = %+v; want %d %s", name, e, c.status, c.code)
		}
		if c.token != "" && strings.Contains(e.Error(), c.token) {
			t.Errorf("%s: the error shows the token", name)
		}
	}
	_, err := take(1, mustNew(t, client.Options{HubURL: h.URL, Token: always("no.good.token")}).Subscribe(t.Context(), all()))
	if e := failure(t, err); e.Status != 401 || e.Code != "invalid_token" {
		t.Errorf("Subscribe = %+v", e)
	}
}

// A stream ends when its token does. With a source of tokens, the next one goes on.
func TestHub_outlivesTokens(t *testing.T) {
	for name, secure := range protocols() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := startHub(t, secure)
			var tokens atomic.Int32
			source := func(context.Context) (string, error) {
				tokens.Add(1)
				return h.Token(map[string]any{"exp": time.Now().Unix() + 2}), nil
			}
			follow(t, h, client.Options{HubURL: h.URL, TLS: h.TLS, Token: source}, 60, func(i int) {
				if i%10 == 9 {
					<-time.After(700 * time.Millisecond)
				}
			})
			if n := tokens.Load(); n < 3 {
				t.Errorf("%d tokens, want 3 at least: the stream did not outlive one", n)
			}
		})
	}
}

// The hub goes and comes back, several times, while updates are published and read.
func TestHub_restarts(t *testing.T) {
	for name, secure := range protocols() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := startHub(t, secure)
			token := func(context.Context) (string, error) { return h.Token(nil), nil }
			follow(t, h, client.Options{HubURL: h.URL, TLS: h.TLS, Token: token}, 300, func(i int) {
				if i%100 == 50 {
					h.Stop()
					if err := h.Start(); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// follow publishes n updates, with between called before each, and wants a subscriber to get each of them once and in order.
func follow(t *testing.T, h *testHub, o client.Options, n int, between func(i int)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	c, publisher := mustNew(t, o), h.client(t)
	published := make(chan []string, 1)
	go func() { // ends before the test, which waits for its result
		var want []string
		for i := range n {
			between(i)
			u := client.Update{Topics: []string{"https://example.com/count"}, ID: "é %+/" + client.NewID(), Private: true}
			if err := publishOnce(ctx, publisher, u); err != nil {
				t.Error(err)
				break
			}
			want = append(want, u.ID)
		}
		published <- want
	}()
	seen := map[string]int{}
	var got []string
	for e, err := range c.Subscribe(ctx, client.Subscription{Topics: []string{"https://example.com/count"}, Cursor: client.Earliest}) {
		if err != nil {
			t.Errorf("the stream ended after %d of %d updates: %v", len(got), n, err)
			break
		}
		if e.Gap {
			t.Errorf("updates are said to be missing before the %dth", len(got)+1)
		}
		if seen[e.ID]++; seen[e.ID] > 1 {
			t.Errorf("%s came again", e.ID)
			continue
		}
		if got = append(got, e.ID); len(got) == n {
			break
		}
	}
	if want := <-published; strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got %d updates, published %d, or in another order", len(got), len(want))
	}
}

// publishOnce publishes with patience. An update that may have been published is looked for before it is sent again.
func publishOnce(ctx context.Context, c *client.Client, u client.Update) error {
	for {
		_, err := c.Publish(ctx, u)
		e, ok := errors.AsType[*client.Error](err)
		switch {
		case err == nil:
			return nil
		case ok && e.Uncertain && hasArrived(ctx, c, u.ID):
			return nil
		case !ok || !e.Retryable() && !e.Uncertain:
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(max(e.RetryAfter, 20*time.Millisecond)):
		}
	}
}

// hasArrived tells whether the hub knows an event: then a stream can be resumed after it.
func hasArrived(ctx context.Context, c *client.Client, id string) (known bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := client.Subscription{Topics: []string{"none"}, Cursor: id, Opened: func(c client.Connection) { known = !c.Gap; cancel() }}
	for range c.Subscribe(ctx, s) {
	}
	return known
}
