package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/test/harness"
)

// watched is a hub with active subscriptions, over plain HTTP on loopback, and somebody who watches it.
type watched struct {
	t           *testing.T
	url, config string
	hub         *harness.Process
	http        *http.Client
	token       http.Header // for everything

	gone map[string]bool // subscriptions whose end was reported: a hub that is killed right then reports it once more
}

// document is what a subscription's event and the API say of it.
type document struct {
	ID         string `json:"id"`
	Match      string `json:"match"`
	Subscriber string `json:"subscriber"`
	Active     bool   `json:"active"`
}

func newWatched(t *testing.T, driver string) *watched {
	t.Helper()
	dir, port := t.TempDir(), harness.FreePorts(t, 1)[0]
	w := &watched{t: t, url: fmt.Sprintf("http://localhost:%d%s", port, harness.HubPath), http: &http.Client{Transport: &http.Transport{}}, gone: map[string]bool{}}
	t.Cleanup(w.http.CloseIdleConnections)
	secret := harness.RandomSecret(t, 32)
	harness.WriteFile(t, dir, "hub.secret", secret+"\n")
	w.config = harness.WriteFile(t, dir, "hub.yaml", fmt.Sprintf(`
public_url: %s
listen: localhost:%d
tls: { mode: off }
subscriptions: true
drain: 1s
issuers: [ { id: %s, keys: [ { alg: HS256, secret_file: hub.secret } ] } ]
history: { driver: %s, path: %q }
ops: { listen: "" }
`, w.url, port, harness.SelfIssuer, driver, filepath.Join(dir, "history")))
	w.token = harness.Bearer(harness.SelfIssued(t, []byte(secret), w.url, rar.Subscribe))
	w.start()
	return w
}

func (w *watched) start() {
	w.t.Helper()
	w.hub = harness.Start(w.t, "hub", "serve", "--config", w.config)
	w.hub.WaitFor("hub is ready")
}

// watch opens a stream of the events of all subscriptions, from behind a cursor on if there is one.
func (w *watched) watch(cursor string) *harness.Stream {
	w.t.Helper()
	query := url.Values{"match_urlpattern": {harness.HubPath + "/subscriptions/*"}}
	if cursor != "" {
		query.Set("last_event_id", cursor)
	}
	return harness.Subscribe(w.t, w.http, w.url+"?"+query.Encode(), w.token)
}

// next reads the next event of a watcher, and its id.
func (w *watched) next(s *harness.Stream) (document, string) {
	w.t.Helper()
	e := s.NextEvent(w.t)
	var d document
	if err := json.Unmarshal([]byte(e.Data), &d); err != nil || e.Type != "mercure" {
		w.t.Fatalf("event = %+v, %v", e, err)
	}
	return d, e.ID
}

// listed asks the API for all subscriptions, and for the cursor that goes with the list.
func (w *watched) listed() (active map[string]bool, cursor string) {
	w.t.Helper()
	resp, body := harness.Do(w.t, w.http, http.MethodGet, w.url+"/subscriptions", nil, w.token)
	var c struct {
		Subscriptions []document `json:"subscriptions"`
	}
	if err := json.Unmarshal([]byte(body), &c); err != nil || resp.StatusCode != http.StatusOK {
		w.t.Fatalf("list = %d %s", resp.StatusCode, body)
	}
	active = map[string]bool{}
	for _, d := range c.Subscriptions {
		active[d.ID] = d.Active
	}
	_, cursor, _ = strings.Cut(resp.Header.Get("Link"), `last-event-id="`)
	cursor, _, _ = strings.Cut(cursor, `"`)
	return active, cursor
}

// ends reads from a cursor on until every one of the ids has ended and the watcher itself has begun, and gives the cursor from where it may go on.
// No others end but those that had ended before.
func (w *watched) ends(cursor string, ids map[string]bool) (again *harness.Stream, last string) {
	w.t.Helper()
	again = w.watch(cursor)
	ended, begun := map[string]int{}, false
	for !begun || len(ended) < len(ids) {
		d, id := w.next(again)
		last = id
		switch {
		case d.Active:
			begun = true
		case ids[d.ID]:
			ended[d.ID]++
			w.gone[d.ID] = true
		case !w.gone[d.ID]:
			w.t.Fatalf("%s has ended, which was not open", d.ID)
		}
	}
	return again, last
}

// A hub is killed while streams are open. The one that starts next reports the end of every subscription, once it serves and to watchers
// that come back with their cursor (ACT-03); and so it is when the hub is stopped, and when it is killed once more.
func TestWatch(t *testing.T) {
	for _, driver := range []string{"segments", "bolt"} {
		t.Run(driver, func(t *testing.T) {
			w := newWatched(t, driver)
			watcher := w.watch("")
			open := map[string]bool{}
			own, last := w.next(watcher)
			open[own.ID] = true
			var streams []*harness.Stream
			for n := range 3 {
				query := url.Values{"match": {fmt.Sprintf("https://example.com/rooms/%d", n), "*"}}
				streams = append(streams, harness.Subscribe(t, w.http, w.url+"?"+query.Encode(), nil))
				for range 2 {
					var d document
					if d, last = w.next(watcher); !d.Active {
						t.Fatalf("began: %+v", d)
					}
					open[d.ID] = true
				}
			}
			streams[0].Close()
			for range 2 {
				var d document
				if d, last = w.next(watcher); d.Active || !open[d.ID] {
					t.Fatalf("ended: %+v", d)
				}
				delete(open, d.ID)
				w.gone[d.ID] = true
			}
			active, cursor := w.listed()
			if cursor != last || len(active) != len(open) {
				t.Errorf("%d subscriptions are listed as of %s, want %d as of %s", len(active), cursor, len(open), last)
			}
			for id := range open {
				if !active[id] {
					t.Errorf("%s is not listed", id)
				}
			}

			w.hub.Kill()
			w.start()
			watcher, cursor = w.ends(cursor, open)
			if active, _ = w.listed(); len(active) != 1 {
				t.Errorf("after a crash %d subscriptions are listed, want that of the watcher alone", len(active))
			}
			reader := harness.Subscribe(t, w.http, w.url+"?match=https://example.com/rooms/9", nil)
			for d := (document{}); d.Match != "https://example.com/rooms/9"; {
				d, cursor = w.next(watcher)
			}
			active, _ = w.listed()
			began := time.Now()
			w.hub.Stop()
			reader.End(t)
			watcher.End(t)
			w.start()
			watcher, cursor = w.ends(cursor, active)
			t.Logf("the ends were reported %v after the hub had been told to stop", time.Since(began).Round(time.Millisecond))

			active, _ = w.listed()
			w.hub.Kill()
			w.start()
			w.ends(cursor, active)
			watcher.End(t)

			out := harness.Must(t, "", "hub", "history", "stats", "--config", w.config)
			if !strings.Contains(out, "subscription events ") || !strings.Contains(out, "updates               0\n") {
				t.Errorf("stats:\n%s", out)
			}
		})
	}
}
