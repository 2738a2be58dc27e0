package ashttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/cinnabar-hub/cinnabar/internal/as"
	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/test/needs"
)

// TestChromium signs in with a real browser, without JavaScript: what the browser does with cookies, Origin, form-action and
// the refreshing page is no business of ours to imagine. The client is another site.
func TestChromium(t *testing.T) {
	path := needs.Program(t, "chromium")
	answers := make(chan url.Values, 1)
	client := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/cb" {
			answers <- r.URL.Query()
		}
		_, _ = w.Write([]byte(`<!doctype html><p id="done">back`))
	}))
	t.Cleanup(client.Close)
	handler := http.NotFoundHandler()
	face := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	t.Cleanup(face.Close)
	local := strings.Replace(face.URL, "127.0.0.1", "localhost", 1)
	s := newServer(t, func(o *as.Options) {
		o.Issuer = local
		o.Clients = append(o.Clients, store.Client{ID: "web", Name: "Web", AuthMethod: as.AuthNone, RedirectURIs: []string{client.URL + "/cb"}})
		o.Policies[0].When.Clients = nil
	})
	handler = s.echo

	allocator, stop := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("blink-settings", "scriptEnabled=false"))...)
	t.Cleanup(stop)
	browser, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	ctx, done := context.WithTimeout(browser, time.Minute)
	t.Cleanup(done)

	q := request(set("client_id", "web"), set("redirect_uri", client.URL+"/cb"))
	must(t, chromedp.Do(
		ctx,
		chromedp.Navigate(local+"/authorize?"+q.Encode()),
		chromedp.WaitVisible("#username"),
		chromedp.SendKeys("#username", "ann"),
		chromedp.SendKeys("#password", "hunter2"),
		chromedp.Click(`button[value="password"]`),
		chromedp.WaitVisible("#problem"),
	))
	title, err := chromedp.Run(ctx, chromedp.Title())
	must(t, err)
	if !strings.HasPrefix(title, "Error: ") {
		t.Errorf("title after a wrong password: %q", title)
	}
	must(t, chromedp.Do(
		ctx,
		chromedp.SendKeys("#password", password),
		chromedp.Click(`button[value="password"]`),
		chromedp.WaitVisible(`button[value="allow"]`),
		chromedp.Click(`button[value="allow"]`),
		chromedp.WaitVisible("#done"),
	))
	select {
	case answer := <-answers:
		if answer.Get("code") == "" || answer.Get("iss") != local || answer.Get("state") != q.Get("state") {
			t.Fatalf("answer: %v", answer)
		}
		if r := s.token(exchange(answer.Get("code"), set("client_id", "web"), set("redirect_uri", client.URL+"/cb"))); r.status != http.StatusOK {
			t.Errorf("token: %+v\n%s", r, s.logs)
		}
	case <-ctx.Done():
		t.Fatal("the client got no answer")
	}
}
