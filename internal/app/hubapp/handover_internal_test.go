package hubapp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/history/segments"
)

// A successor with the same configuration, and so on the same folder and addresses, takes over while its predecessor still ends
// streams, and a reader that comes back with its cursor misses nothing.
func TestApp_handsOverToASuccessor(t *testing.T) {
	address := freeAddress(t)
	c := config.DefaultHub()
	c.Listen, c.TLS.Mode, c.Ops.Listen, c.Drain = address, "off", freeAddress(t), time.Second
	c.PublicURL, c.Resource = testHub, testHub
	c.History.Path = config.File(filepath.Join(t.TempDir(), "history"))
	c.ControlSocket = config.File(filepath.Join(t.TempDir(), "hub.sock"))
	c.Issuers = []config.Issuer{{ID: testIssuer, Keys: []config.IssuerKey{{Algorithm: "HS256", SecretFile: write(t, "secret", sharedSecret)}}}}

	first := start(t, c)
	reader := read(t, address, "")
	publish(t, address, "1")
	cursor := reader.next(t, "1")
	first.stop() // it drains from here on
	second := start(t, c)
	publish(t, address, "2")
	reader.rest(t) // ends cleanly; 2 was published elsewhere
	read(t, address, cursor).next(t, "2")
	second.stop()
	for _, r := range []*running{first, second} {
		if err := <-r.done; err != nil {
			t.Errorf("Run = %v", err)
		}
	}
}

// A predecessor that still serves must not have its store migrated, nor its clients exchanged, by a successor that waits.
func TestNew_leavesTheStoreOfAPredecessorAlone(t *testing.T) {
	c, authz := config.DefaultHub(), bundledConfig(t)
	c.TLS.Mode, c.PublicURL, c.Resource = "off", testHub, testHub
	c.History.Path = config.File(filepath.Join(t.TempDir(), "history"))
	bundle(&c)
	predecessor, err := segments.Open(t.Context(), segments.Options{Dir: string(c.History.Path)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = predecessor.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := waiting{func() {
		if _, err := os.Stat(string(authz.Store.Path)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the store has been opened: %v", err)
		}
		cancel()
	}}
	if _, err := New(ctx, c, authz, slog.New(slog.NewTextHandler(log, nil))); !errors.Is(err, context.Canceled) {
		t.Errorf("New = %v, want %v", err, context.Canceled)
	}
}

// waiting is a log that calls a function when a hub waits for its predecessor.
type waiting struct{ begun func() }

func (w waiting) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "waiting for it to end") {
		w.begun()
	}
	return len(p), nil
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// running is an app whose Run has been called.
type running struct {
	stop context.CancelFunc
	done chan error
}

// start starts an app and waits until it answers.
func start(t *testing.T, c config.Hub) *running {
	t.Helper()
	a, err := New(t.Context(), c, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	r := &running{stop: stop, done: make(chan error, 1)}
	go func() { r.done <- a.Run(ctx) }()
	t.Cleanup(stop)
	for {
		resp, err := do(t, http.MethodHead, c.Listen, nil, "")
		if err == nil {
			_ = resp.Body.Close()
			return r
		}
		select {
		case err := <-r.done:
			t.Fatalf("Run = %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func do(t *testing.T, method, address string, form url.Values, cursor string) (*http.Response, error) {
	t.Helper()
	var body io.Reader = http.NoBody
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	u := url.URL{Scheme: "http", Host: address, Path: "/.well-known/mercure", RawQuery: "match=https://example.com/1"}
	r, err := http.NewRequestWithContext(t.Context(), method, u.String(), body)
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Authorization", "Bearer "+publishToken())
	}
	if cursor != "" {
		r.Header.Set("Last-Event-ID", cursor)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return client.Do(r)
}

func publish(t *testing.T, address, data string) {
	t.Helper()
	resp, err := do(t, http.MethodPost, address, url.Values{"topic": {"https://example.com/1"}, "data": {data}}, "")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("publish = %d", resp.StatusCode)
	}
}

// reader reads a stream.
type reader struct{ lines *bufio.Scanner }

func read(t *testing.T, address, cursor string) *reader {
	t.Helper()
	resp, err := do(t, http.MethodGet, address, nil, cursor)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return &reader{bufio.NewScanner(resp.Body)}
}

// next reads the next event, which must have this data, and gives its id.
func (r *reader) next(t *testing.T, data string) (id string) {
	t.Helper()
	for r.lines.Scan() {
		if v, ok := strings.CutPrefix(r.lines.Text(), "id: "); ok {
			id = v
		}
		if v, ok := strings.CutPrefix(r.lines.Text(), "data: "); ok {
			if v != data {
				t.Fatalf("event %q, want %q", v, data)
			}
			return id
		}
	}
	t.Fatalf("the stream ended before %q: %v", data, r.lines.Err())
	return ""
}

// rest reads the stream to its end, which must be clean and without another event.
func (r *reader) rest(t *testing.T) {
	t.Helper()
	for r.lines.Scan() {
		if strings.HasPrefix(r.lines.Text(), "data: ") {
			t.Errorf("unexpected %q", r.lines.Text())
		}
	}
	if err := r.lines.Err(); err != nil {
		t.Errorf("the stream ended with %v, want a clean end", err)
	}
}
