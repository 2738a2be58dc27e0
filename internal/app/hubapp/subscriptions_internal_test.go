package hubapp

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/app/historyapp"
	"github.com/cinnabar-hub/cinnabar/internal/config"
	"github.com/cinnabar-hub/cinnabar/internal/private"
)

// watched gives a configuration with active subscriptions and a durable history.
func watched(t *testing.T, driver string) config.Hub {
	t.Helper()
	c := config.DefaultHub()
	c.Listen, c.TLS.Mode, c.Ops.Listen, c.Drain = freeAddress(t), "off", "", time.Second
	c.PublicURL, c.Resource, c.Subscriptions = testHub, testHub, true
	c.History.Driver, c.History.Path = driver, config.File(filepath.Join(t.TempDir(), "history"))
	c.Issuers = []config.Issuer{{ID: testIssuer, Keys: []config.IssuerKey{{Algorithm: "HS256", SecretFile: write(t, "secret", sharedSecret)}}}}
	return c
}

// watch reads the events of all subscriptions.
func watch(t *testing.T, address, cursor string) *reader {
	t.Helper()
	u := url.URL{Scheme: "http", Host: address, Path: "/.well-known/mercure"}
	u.RawQuery = url.Values{"match_urlpattern": {"/.well-known/mercure/subscriptions/*"}}.Encode()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+tokenFor("subscribe"))
	if cursor != "" {
		r.Header.Set("Last-Event-ID", cursor)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("watch = %d", resp.StatusCode)
	}
	return &reader{bufio.NewScanner(resp.Body)}
}

// change is what an event of a subscription says.
type change struct {
	ID     string `json:"id"`
	Match  string `json:"match"`
	Active bool   `json:"active"`

	event string // its own id
}

// change reads the next event.
func (r *reader) change(t *testing.T) (c change) {
	t.Helper()
	for r.lines.Scan() {
		if v, ok := strings.CutPrefix(r.lines.Text(), "id: "); ok {
			c.event = v
		}
		if v, ok := strings.CutPrefix(r.lines.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(v), &c); err != nil {
				t.Fatalf("event %q: %v", v, err)
			}
			return c
		}
	}
	t.Fatalf("the stream ended before the next change: %v", r.lines.Err())
	return c
}

// What was open when a hub stopped is ended by its successor, which takes over while streams still end, and by nobody else (ACT-03).
func TestApp_successorReportsTheEndOfSubscriptions(t *testing.T) {
	for _, driver := range []string{"segments", "bolt"} {
		t.Run(driver, func(t *testing.T) {
			c := watched(t, driver)
			first := start(t, c)
			watcher := watch(t, c.Listen, "")
			own := watcher.change(t)
			reader := read(t, c.Listen, "")
			other := watcher.change(t)
			if !own.Active || !other.Active || other.Match != "https://example.com/1" {
				t.Fatalf("began: %+v, %+v", own, other)
			}
			first.stop()
			second := start(t, c)
			reader.rest(t)
			watcher.rest(t)
			again := watch(t, c.Listen, other.event)
			ended := map[string]int{}
			for len(ended) < 2 {
				if change := again.change(t); !change.Active {
					ended[change.ID]++
				}
			}
			if ended[own.ID] != 1 || ended[other.ID] != 1 {
				t.Errorf("ended: %v, want once each: %s, %s", ended, own.ID, other.ID)
			}
			second.stop()
			for _, r := range []*running{first, second} {
				if err := <-r.done; err != nil {
					t.Errorf("Run = %v", err)
				}
			}
		})
	}
}

// What was open when a hub stopped is ended in the history that another driver took over from it.
func TestApp_importedHistoryReportsTheEndOfSubscriptions(t *testing.T) {
	c := watched(t, "segments")
	first := start(t, c)
	watcher := watch(t, c.Listen, "")
	own := watcher.change(t)
	first.stop()
	watcher.rest(t)
	if err := <-first.done; err != nil {
		t.Fatal(err)
	}
	from := c.History
	c.History.Driver, c.History.Path = "bolt", config.File(filepath.Join(t.TempDir(), "bolt"))
	if _, err := historyapp.Import(t.Context(), from, c.History, nil); err != nil {
		t.Fatal(err)
	}
	second := start(t, c)
	again := watch(t, c.Listen, own.event)
	for {
		if change := again.change(t); !change.Active {
			if change.ID != own.ID {
				t.Errorf("%s has ended, want %s", change.ID, own.ID)
			}
			break
		}
	}
	second.stop()
	if err := <-second.done; err != nil {
		t.Errorf("Run = %v", err)
	}
}

// The lock of the history is given back last: whoever has it has the file of subscribers to itself.
func TestEngine_subscribersAreInAFileBesideTheHistory(t *testing.T) {
	c := watched(t, "segments")
	file := filepath.Join(string(c.History.Path), ".presence.db")
	open := func(on bool) {
		t.Helper()
		c.Subscriptions = on
		e, err := OpenEngine(t.Context(), EngineOptions{Config: c, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	open(false)
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat() = %v without subscriptions, want no file", err)
	}
	open(true)
	if _, err := os.Stat(file); err != nil {
		t.Errorf("Stat() = %v", err)
	}
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenEngine(t.Context(), EngineOptions{Config: c, Logger: slog.New(slog.DiscardHandler)}); runtime.GOOS != "windows" && !errors.Is(err, private.ErrLoose) {
		t.Errorf("OpenEngine = %v of a file that is open to others, want ErrLoose", err)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	open(true) // the history was closed again
	if d, err := historyapp.OpenDirectory(config.History{Driver: "memory"}, nil); d != nil || err != nil {
		t.Errorf("OpenDirectory = %v, %v of a history in memory, want none", d, err)
	}
}

func TestApp_servesTheSubscriptionAPI(t *testing.T) {
	for _, on := range []bool{true, false} {
		t.Run(strconv.FormatBool(on), func(t *testing.T) {
			s := serve(t, func(c *config.Hub) { c.Subscriptions = on })
			ask := func() (status int, metadata string) {
				r := httptest.NewRequest(http.MethodGet, testHub+"/subscriptions", http.NoBody)
				r.Header.Set("Authorization", "Bearer "+tokenFor("subscribe"))
				w := httptest.NewRecorder()
				s.handler.ServeHTTP(w, r)
				status = w.Code
				w = httptest.NewRecorder()
				u, _ := url.Parse(testHub)
				s.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/.well-known/oauth-protected-resource"+u.Path, http.NoBody))
				return status, w.Body.String()
			}
			check := func() {
				t.Helper()
				status, metadata := ask()
				if (status == http.StatusOK) != on || (status == http.StatusNotFound) == on || strings.Contains(metadata, `"mercure_subscriptions":true`) != on {
					t.Errorf("ACT-01 ACT-24 ACT-47 %d, metadata %s", status, metadata)
				}
			}
			check()
			next := s.config
			next.Subscriptions = !on
			if err := s.Reload(t.Context(), next, nil); err != nil {
				t.Fatal(err)
			}
			check() // as before: the engine is not exchanged
			if text := s.log.String(); !strings.Contains(text, "these changes need a restart") || !strings.Contains(text, "keys=subscriptions\n") {
				t.Errorf("the log does not say that this needs a restart:\n%s", text)
			}
		})
	}
}
