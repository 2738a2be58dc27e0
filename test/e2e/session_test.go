package e2e_test

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/cinnabar-hub/cinnabar/test/harness"
	"github.com/cinnabar-hub/cinnabar/web"
)

// lifetime is that of the access tokens in this test, the shortest there is.
const lifetime = 10 * time.Second

// ownPage is a page of an application of one's own, with the modules of the hub as they are shipped. It writes down every event.
const ownPage = `<!doctype html><title>Mine</title><p id="who"></p><p id="state"></p><button id="logout">Sign out</button><script type="module">
import { Session } from "/static/session.js";
import { Stream } from "/static/stream.js";
const hub = %q;
const say = (id, text) => { document.getElementById(id).textContent = text; };
window.seen = [];
window.renewals = 0;
window.opens = 0;
window.session = new Session({ url: hub + "/session" });
session.addEventListener("renewed", () => { window.renewals++; });
session.addEventListener("change", () => say("who", session.state.active ? "Signed in as " + session.state.username : "Nobody: " + session.state.ended));
const stream = new Stream({
  hub, pattern: "https://example.com/users/alice/*", session, cursor: "earliest",
  event: (message) => window.seen.push(message.lastEventId),
  state: (name) => { say("state", name); if (name === "open") window.opens++; },
});
document.getElementById("logout").onclick = () => session.signOut();
await session.check();
say("who", session.state.active ? "Signed in as " + session.state.username : "Nobody");
stream.open();
</script>`

// startOwnPages runs the server of the application, on another port of the same host, and gives its origin. The hub and the
// certificate come later.
func startOwnPages(t *testing.T) (origin string, run func(b *harness.Bundled)) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	origin = fmt.Sprintf("https://localhost:%d", l.Addr().(*net.TCPAddr).Port)
	return origin, func(b *harness.Bundled) {
		t.Helper()
		certificate, err := tls.LoadX509KeyPair(filepath.Join(b.Data, "tls", "server.crt"), filepath.Join(b.Data, "tls", "server.key"))
		if err != nil {
			t.Fatal(err)
		}
		mux := http.NewServeMux()
		mux.Handle("GET /static/", http.StripPrefix("/static/", http.FileServerFS(web.Static())))
		mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = fmt.Fprintf(w, ownPage, b.Hub())
		})
		s := httptest.NewUnstartedServer(mux)
		_ = s.Listener.Close()
		s.Listener = l
		s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
		s.StartTLS()
		t.Cleanup(s.Close)
	}
}

// signInAs logs in from a page of one's own and comes back to it.
func (b *browser) signInAs(login, name, password string) {
	b.t.Helper()
	b.run(chromedp.Navigate(login), chromedp.WaitVisible(chromedp.CSS("#password")),
		chromedp.SetValue(chromedp.CSS("#username"), name), chromedp.SetValue(chromedp.CSS("#password"), password),
		chromedp.Click(chromedp.CSS(`button[value="password"]`)))
	b.waitText("#who", "Signed in as "+name)
	b.waitText("#state", "open")
}

// publisher publishes a private update every 100 ms until it is stopped.
type publisher struct {
	mu   sync.Mutex
	ids  []string
	err  error
	stop chan struct{}
	done chan struct{}
}

func startPublisher(t *testing.T, site *harness.Site, token string) *publisher {
	t.Helper()
	p := &publisher{stop: make(chan struct{}), done: make(chan struct{})}
	c := site.Client()
	go func() {
		defer close(p.done)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-tick.C:
			case <-p.stop:
				return
			}
			form := map[string][]string{"topic": {fmt.Sprintf("https://example.com/users/alice/%d", n)}, "data": {"x"}, "private": {"on"}}
			resp, body, err := harness.Try(t.Context(), c, http.MethodPost, site.Hub(), form, harness.Bearer(token))
			if err == nil && resp.StatusCode != http.StatusOK {
				err = fmt.Errorf("publish = %d %s", resp.StatusCode, body)
			}
			p.mu.Lock()
			p.ids, p.err = append(p.ids, body), err
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { p.finish() })
	return p
}

// finish ends the publishing and gives the ids.
func (p *publisher) finish() ([]string, error) {
	select {
	case <-p.stop:
	default:
		close(p.stop)
	}
	<-p.done
	return p.ids, p.err
}

// TestBrowser_session follows two tabs of one browser, and another browser of the same person, over more than three lives of a
// token: nothing is lost or repeated. Then one tab signs out.
func TestBrowser_session(t *testing.T) {
	pages, run := startOwnPages(t)
	site := harness.StartBundled(t, harness.BundledOptions{Pages: pages, Authz: "tokens: { lifetime: 10s }"})
	run(site)
	password := harness.AddUser(t, "alice", "--config", site.Config)
	publishing := harness.Mint(t, "--config", site.Config, "--publish", "*", "--ttl", "10m")

	first, elsewhere := startBrowser(t, site.Data), startBrowser(t, site.Data)
	first.signInAs(site.LoginURL(pages+"/"), "alice", password)
	second := first.tab()
	second.run(chromedp.Navigate(pages + "/"))
	second.waitText("#state", "open")
	elsewhere.signInAs(site.LoginURL(pages+"/"), "alice", password)
	all := map[string]*browser{"the first tab": first, "the second tab": second, "the other browser": elsewhere}

	p, begun := startPublisher(t, &site.Site, publishing), time.Now()
	tokens := []string{}
	for len(tokens) < 4 || time.Since(begun) < 3*lifetime+lifetime/2 {
		if time.Since(begun) > 3*lifetime+harness.Patience {
			t.Fatalf("the browser had only %d tokens", len(tokens))
		}
		cookies := first.cookies(site.Hub())
		if c := cookies["__Secure-mercure_access_token"]; c == nil {
			t.Fatal("the hub's cookie is gone")
		} else if !slices.Contains(tokens, c.Value) {
			tokens = append(tokens, c.Value)
			if life := lifeOf(t, c.Value); life <= 0 || life > lifetime {
				t.Fatalf("a token lives %v", life)
			}
		}
		if c := cookies["__Host-cinnabar_session"]; c == nil || !c.HTTPOnly || !c.Secure {
			t.Fatalf("the session's cookie is gone, or open to scripts: %v", c != nil)
		}
		<-time.After(250 * time.Millisecond)
	}
	ids, err := p.finish()
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range all {
		b.waitSeen(ids[len(ids)-1])
		if got := evaluate[[]string](b, "window.seen"); !slices.Equal(got, ids) {
			t.Errorf("%s saw %d of %d updates: %s", name, len(got), len(ids), firstDifference(got, ids))
		}
		if n := evaluate[int](b, "window.renewals"); n < 3 {
			t.Errorf("%s noticed %d renewals", name, n)
		}
		if got := evaluate[string](b, "document.cookie"); got != "" {
			t.Errorf("scripts of %s can see %d characters of cookies", name, len(got))
		}
	}
	t.Logf("%d updates in %v, over %d tokens", len(ids), time.Since(begun).Round(time.Second), len(tokens))

	t.Run("signing out in one tab ends it in all, and nothing else", func(t *testing.T) {
		signOutEverywhere(t, site, first, second, elsewhere, publishing)
	})
}

func signOutEverywhere(t *testing.T, site *harness.Bundled, first, second, elsewhere *browser, publishing string) {
	t.Helper()
	// A stream that no page can end, with the token of the browser that signs out.
	current := first.cookies(site.Hub())["__Secure-mercure_access_token"].Value
	raw := harness.Subscribe(t, site.Client(), site.Hub()+"?match=*", harness.Bearer(current))
	first.run(chromedp.Click(chromedp.CSS("#logout")))
	begun := time.Now()
	for _, b := range []*browser{first, second} {
		b.waitText("#who", "Nobody: signed-out")
		b.waitText("#state", "signed-out")
	}
	t.Logf("a stream of the session ended %v after signing out", raw.End(t).Sub(begun).Round(time.Millisecond))

	id := site.PublishAs(site.Client(), publishing, "https://example.com/users/alice/last", "after", true)
	elsewhere.waitSeen(id)
	for _, b := range []*browser{first, second} {
		if evaluate[bool](b, fmt.Sprintf("window.seen.includes(%q)", id)) {
			t.Error("a tab goes on listening after the sign-out")
		}
	}
	cookies := first.cookies(site.Hub())
	if c := cookies["__Secure-mercure_access_token"]; c != nil && c.Value != "" {
		t.Error("the browser still has a token")
	}
	if cookies["__Host-cinnabar_session"] != nil {
		t.Error("the browser still has a session")
	}
	resp, _ := harness.Do(t, site.Client(), http.MethodGet, site.Hub()+"?match=*", nil, harness.Bearer(current))
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("the hub answers %d to the token of the session", resp.StatusCode)
	}
	evaluate[string](elsewhere, `window.session.check().then((s) => { document.title = "active: " + s.active; }), ""`)
	elsewhere.waitText("title", "active: true")
}

// lifeOf is how long a token is valid from its making on.
func lifeOf(t *testing.T, token string) time.Duration {
	t.Helper()
	var claims struct{ Exp, Iat float64 }
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err == nil {
		err = json.Unmarshal(payload, &claims)
	}
	if err != nil {
		t.Fatalf("the cookie is no token: %v", err)
	}
	return time.Duration((claims.Exp - claims.Iat) * float64(time.Second))
}

// waitSeen waits until the page has seen an event.
func (b *browser) waitSeen(id string) {
	b.t.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.Poll[chromedp.Void](fmt.Sprintf("window.seen.includes(%q)", id), chromedp.WithPollingTimeout(harness.Patience)))
	if err != nil {
		b.t.Fatalf("the page has not seen the last of %d events: %v", evaluate[int](b, "window.seen.length"), err)
	}
}

// firstDifference says where two sequences part.
func firstDifference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			again := slices.Index(want, got[i])
			return fmt.Sprintf("number %d is what was published as number %d", i, again)
		}
	}
	return "the end is missing, or too much"
}
