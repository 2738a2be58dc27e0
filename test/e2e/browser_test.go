package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/cinnabar-hub/cinnabar/test/harness"
	"github.com/cinnabar-hub/cinnabar/test/needs"
	"github.com/cinnabar-hub/cinnabar/test/secretwatch"
)

// browser is a Chromium with a profile of its own that trusts the development certificate authority, and nothing else unusual.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	problems []string // what the page complained of
}

func startBrowser(t *testing.T, data string) *browser {
	t.Helper()
	chromium := needs.Program(t, "chromium")
	certutil := needs.Program(t, "certutil")
	home := t.TempDir()
	nss := filepath.Join(home, ".pki", "nssdb")
	if err := os.MkdirAll(nss, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"-N", "--empty-password", "-d", "sql:" + nss},
		{"-A", "-d", "sql:" + nss, "-n", "cinnabar", "-t", "C,,", "-i", harness.CAFile(data)},
	} {
		if out, err := exec.CommandContext(t.Context(), certutil, args...).CombinedOutput(); err != nil {
			t.Fatalf("certutil: %v\n%s", err, out)
		}
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Env("HOME="+home),
		chromedp.UserDataDir(filepath.Join(home, "profile")), chromedp.WindowSize(1100, 1000),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-dev-shm-usage", true),
	)
	b := &browser{t: t}
	alloc, cancelAlloc := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	ctx, cancel := chromedp.NewContext(alloc, chromedp.WithListener(b.observe))
	b.ctx = ctx
	t.Cleanup(func() { cancel(); cancelAlloc() })
	if err := chromedp.Do(ctx); err != nil { // starts the browser, which ends with this context
		t.Fatalf("start the browser: %v", err)
	}
	b.enable()
	return b
}

// tab opens another tab of the same browser, which shares its cookies.
func (b *browser) tab() *browser {
	b.t.Helper()
	other := &browser{t: b.t}
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithListener(other.observe))
	other.ctx = ctx
	b.t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		b.t.Fatalf("open a tab: %v", err)
	}
	other.enable()
	return other
}

// enable asks the browser for what observe looks at.
func (b *browser) enable() {
	b.t.Helper()
	for _, err := range []error{
		call(b, network.Enable, network.EnableParams{}), call(b, cdplog.Enable, cdp.Empty{}), call(b, runtime.Enable, cdp.Empty{}),
	} {
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// call sends a command whose result does not matter.
func call[P, R any](b *browser, command cdp.Command[P, R], params P) error {
	_, err := chromedp.Call(b.ctx, command, params)
	return err
}

// observe notes complaints of the page, and tells the checker of the codes and states in URLs.
func (b *browser) observe(event any) {
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err == nil {
			for _, name := range []string{"code", "state"} {
				secretwatch.Add(b.t, u.Query().Get(name))
			}
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError {
			b.complain(e.Entry.Text + " " + e.Entry.URL)
		}
	case *runtime.EventExceptionThrown:
		b.complain(e.ExceptionDetails.Text)
	}
}

func (b *browser) complain(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, text)
}

func (b *browser) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, harness.Patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("browser: %v\non %s", err, evaluate[string](b, `location.origin + location.pathname + "\n" + document.body.innerText`))
	}
}

// evaluate gives the value of an expression in the page.
func evaluate[T any](b *browser, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, harness.Patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Errorf("evaluate: %v", err)
	}
	return v
}

// waitText waits until an element's text contains something, over navigations.
func (b *browser) waitText(selector, text string) {
	b.t.Helper()
	script := fmt.Sprintf(`(document.querySelector(%q)?.textContent ?? "").includes(%q)`, selector, text)
	deadline := time.Now().Add(harness.Patience)
	var err error
	for time.Now().Before(deadline) {
		ctx, cancel := context.WithTimeout(b.ctx, harness.Patience)
		_, err = chromedp.Run(ctx, chromedp.Poll[chromedp.Void](script, chromedp.WithPollingTimeout(harness.Patience/2)))
		cancel()
		if err == nil {
			return
		}
		<-time.After(50 * time.Millisecond) // the page is on its way to the next
	}
	b.t.Fatalf("no %q in %s: %v\non %s", text, selector, err, evaluate[string](b, `location.origin + location.pathname + "\n" + document.body.innerText`))
}

// shot keeps a screenshot in the folder that CINNABAR_SCREENSHOTS names, for people to look at.
func (b *browser) shot(name string) {
	b.t.Helper()
	dir := os.Getenv("CINNABAR_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// cookies gives the cookies that the hub would get, by name, and tells the checker of their values.
func (b *browser) cookies(hub string) map[string]*network.Cookie {
	b.t.Helper()
	result, err := chromedp.Call(b.ctx, network.GetCookies, network.GetCookiesParams{URLs: []string{hub}})
	if err != nil {
		b.t.Fatal(err)
	}
	out := map[string]*network.Cookie{}
	for _, c := range result.Cookies {
		out[c.Name] = c
		secretwatch.Add(b.t, c.Value)
	}
	return out
}

// signIn goes from the start page through login and consent back to it.
func (b *browser) signIn(origin, prefix string) {
	b.t.Helper()
	b.run(chromedp.Navigate(origin + "/"))
	b.waitText("#who", "Not signed in")
	b.shot(prefix + "-1-start")
	b.run(chromedp.Click(chromedp.CSS("#login")), chromedp.WaitVisible(chromedp.CSS(`button[value="demo"]`)))
	b.shot(prefix + "-2-login")
	b.run(chromedp.Click(chromedp.CSS(`button[value="demo"]`)), chromedp.WaitVisible(chromedp.CSS(`button[value="allow"]`)))
	b.shot(prefix + "-3-consent")
	b.run(chromedp.Click(chromedp.CSS(`button[value="allow"]`)))
	b.waitText("#who", "Signed in as demo")
}

func TestBrowser_fromStartPageToPrivateEvent(t *testing.T) {
	for face, tc := range map[string]struct {
		args       []string
		plain      bool
		cookie     string
		secure     bool
		cookiePath string
	}{
		"https":                         {cookie: "__Secure-mercure_access_token", secure: true},
		"plain":                         {plain: true, cookie: "__Secure-mercure_access_token-http", secure: true},
		"plain with an insecure cookie": {args: []string{"--insecure-cookie"}, plain: true, cookie: "mercure_access_token-http"},
	} {
		t.Run(face, func(t *testing.T) {
			d := harness.StartDev(t, filepath.Join(t.TempDir(), "data"), tc.args...)
			b := startBrowser(t, d.Data)
			origin := d.Origin
			if tc.plain {
				origin = d.Plain
			}
			b.signIn(origin, strings.ReplaceAll(face, " ", "-"))

			c := b.cookies(origin + "/.well-known/mercure")[tc.cookie]
			if c == nil {
				t.Fatalf("there is no cookie %s", tc.cookie)
			}
			if c.Secure != tc.secure || !c.HTTPOnly || c.SameSite != network.CookieSameSiteStrict || c.Path != "/.well-known/mercure" || c.Domain != "localhost" {
				t.Errorf("cookie: Secure %v, HttpOnly %v, SameSite %v, Path %q, Domain %q", c.Secure, c.HTTPOnly, c.SameSite, c.Path, c.Domain)
			}
			if life := time.Until(time.Unix(int64(c.Expires), 0)); life < time.Hour {
				t.Errorf("the cookie lives %v, not longer than its token", life)
			}

			b.waitText("#state", "Live")
			topic := d.Origin + "/demo/books/1"
			if _, stderr, code := harness.Command(t, "", "hub", "publish", "--data", d.Data, "--private", topic, `{"status":"from a terminal"}`); code != 0 {
				t.Fatalf("hub publish = %d %s", code, stderr)
			}
			b.waitText("#log", "from a terminal")

			b.run(chromedp.SetValue(chromedp.CSS("#data"), `{"status":"from the page"}`), chromedp.Click(chromedp.CSS(`#publish button[type="submit"]`)))
			b.waitText("#log", "from the page")
			b.waitText("#result", "urn:uuid:")
			b.shot(strings.ReplaceAll(face, " ", "-") + "-4-live")

			if strings.Contains(evaluate[string](b, "document.cookie"), "mercure") {
				t.Error("scripts can see the cookie")
			}
			if len(b.problems) > 0 {
				t.Errorf("the page complained: %q", b.problems)
			}

			b.run(chromedp.Click(chromedp.CSS("#logout")))
			b.waitText("#state", "Signed out")
			if c := b.cookies(origin + "/.well-known/mercure")[tc.cookie]; c != nil && c.Value != "" {
				t.Error("the browser still has a token")
			}
			b.shot(strings.ReplaceAll(face, " ", "-") + "-5-signed-out")
		})
	}
}

// otherPage is a page of one's own, on another port, as a development server serves it.
const otherPage = `<!doctype html><title>Mine</title><p id="who"></p><p id="state"></p><p id="log"></p><script type="module">
const hub = new URL(%q);
const state = await (await fetch(hub + "/session", { credentials: "include" })).json();
document.getElementById("who").textContent = state.active ? "Signed in as " + state.username : "Not signed in";
hub.searchParams.append("match_urlpattern", "/demo/*");
const updates = new EventSource(hub, { withCredentials: true });
updates.onopen = () => { document.getElementById("state").textContent = "Live"; };
updates.onmessage = (e) => { document.getElementById("log").textContent += e.data; };
</script>`

func TestBrowser_pageOfAnotherPort(t *testing.T) {
	var hub string
	mine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, otherPage, hub)
	}))
	t.Cleanup(mine.Close)
	page := strings.Replace(mine.URL, "127.0.0.1", "localhost", 1)
	d := harness.StartDev(t, filepath.Join(t.TempDir(), "data"), "--cors-origin", page)
	hub = d.PlainHub() // a page of http: uses the plain face, since browsers send no SameSite cookie to another scheme
	b := startBrowser(t, d.Data)
	b.run(chromedp.Navigate(page + "/"))
	b.waitText("#who", "Not signed in")
	b.run(chromedp.Navigate(d.PlainHub()+"/session/login?return_to="+url.QueryEscape(page+"/")),
		chromedp.Click(chromedp.CSS(`button[value="demo"]`)), chromedp.WaitVisible(chromedp.CSS(`button[value="allow"]`)),
		chromedp.Click(chromedp.CSS(`button[value="allow"]`)))
	b.waitText("#who", "Signed in as demo")
	b.waitText("#state", "Live")
	d.Publish(d.Client(), d.Origin+"/demo/books/2", "for my own page", true)
	b.waitText("#log", "for my own page")
}

func TestBrowser_narrowAndDark(t *testing.T) {
	d := harness.StartDev(t, filepath.Join(t.TempDir(), "data"))
	b := startBrowser(t, d.Data)
	b.run(chromedp.EmulateViewport(320, 700, chromedp.EmulateMobile))
	dark := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}
	if err := call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: dark}); err != nil {
		t.Fatal(err)
	}
	b.signIn(d.Origin, "narrow")
	b.shot("narrow-4-live")
	if evaluate[bool](b, `document.documentElement.scrollWidth > document.documentElement.clientWidth`) {
		t.Error("the start page scrolls sideways at 320 pixels")
	}
}
