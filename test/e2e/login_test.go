package e2e_test

import (
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func itoa(n int) string { return strconv.Itoa(n) }

// sessionState is what GET {hub}/session says.
type sessionState struct {
	Active    bool      `json:"active"`
	ExpiresAt time.Time `json:"expires_at"`
	Renewable bool      `json:"renewable"`
	Username  string    `json:"username"`
}

func (d *dev) session(c *http.Client) sessionState {
	d.t.Helper()
	resp, body := do(d.t, c, http.MethodGet, d.hub()+"/session", nil, nil)
	var s sessionState
	if err := json.Unmarshal([]byte(body), &s); err != nil || resp.StatusCode != http.StatusOK {
		d.t.Fatalf("session = %d %s", resp.StatusCode, body)
	}
	if strings.Contains(body, "eyJ") {
		d.t.Fatalf("the session's state holds a token")
	}
	return s
}

// form is the first form of a page that has a button with the given name and value, filled with its hidden fields.
func form(t *testing.T, page, button string) url.Values {
	t.Helper()
	for _, f := range regexp.MustCompile(`(?s)<form.*?</form>`).FindAllString(page, -1) {
		if !strings.Contains(f, button) {
			continue
		}
		values := url.Values{}
		for _, in := range regexp.MustCompile(`(?s)<input[^>]*type="hidden"[^>]*>`).FindAllString(f, -1) {
			name := regexp.MustCompile(`name="([^"]*)"`).FindStringSubmatch(in)
			value := regexp.MustCompile(`value="([^"]*)"`).FindStringSubmatch(in)
			if name != nil && value != nil {
				values.Set(html.UnescapeString(name[1]), html.UnescapeString(value[1]))
			}
		}
		values.Set("\x00action", html.UnescapeString(firstMatch(f, `action="([^"]*)"`)))
		b := firstMatch(f, `<button[^>]*name="([^"]*)"[^>]*value="`+regexp.QuoteMeta(button)+`"`)
		if b != "" {
			values.Set(b, button)
		}
		return values
	}
	t.Fatalf("no form with %q in:\n%s", button, page)
	return nil
}

func firstMatch(s, pattern string) string {
	if m := regexp.MustCompile(pattern).FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return ""
}

// follow follows redirects, and pages that navigate by themselves, until one waits for the user.
func (d *dev) follow(c *http.Client, resp *http.Response, body string) (*http.Response, string) {
	d.t.Helper()
	for range 10 {
		to := resp.Header.Get("Location")
		if to == "" {
			to = html.UnescapeString(firstMatch(body, `http-equiv="refresh" content="[^"]*url=([^"]*)"`))
		}
		if to == "" {
			return resp, body
		}
		next, err := resp.Request.URL.Parse(to)
		if err != nil {
			d.t.Fatal(err)
		}
		resp, body = do(d.t, c, http.MethodGet, next.String(), nil, nil)
	}
	d.t.Fatal("too many redirects")
	return nil, ""
}

// submit sends a form as a browser on the page does.
func (d *dev) submit(c *http.Client, at *http.Response, values url.Values) (*http.Response, string) {
	d.t.Helper()
	action := values.Get("\x00action")
	values.Del("\x00action")
	target, err := at.Request.URL.Parse(action)
	if err != nil {
		d.t.Fatal(err)
	}
	resp, body := do(d.t, c, http.MethodPost, target.String(), values, http.Header{"Origin": {d.origin}})
	return d.follow(c, resp, body)
}

// signIn goes from the login endpoint through login and consent back to the start page, without a browser.
func (d *dev) signIn(c *http.Client) {
	d.t.Helper()
	resp, body := do(d.t, c, http.MethodGet, d.hub()+"/session/login?return_to=%2F", nil, nil)
	resp, body = d.follow(c, resp, body)
	resp, body = d.submit(c, resp, form(d.t, body, "demo"))
	resp, body = d.submit(c, resp, form(d.t, body, "allow"))
	if resp.Request.URL.String() != d.origin+"/" {
		d.t.Fatalf("ended at %s: %s", resp.Request.URL, body)
	}
}

func TestDev_login(t *testing.T) {
	d := startDev(t, filepath.Join(t.TempDir(), "data"))
	c := d.client()
	if s := d.session(c); s.Active {
		t.Fatalf("session before login = %+v", s)
	}
	d.signIn(c)
	s := d.session(c)
	if !s.Active || s.Username != "demo" || s.Renewable || time.Until(s.ExpiresAt) <= 0 {
		t.Errorf("session = %+v", s)
	}
	topic := d.origin + "/demo/books/1"
	events := subscribe(t, c, d.hub()+"?match="+url.QueryEscape(topic), nil)
	d.publish(c, topic, "for those who may read it", true)
	if got := events.next(t); got != "for those who may read it" {
		t.Errorf("event = %q", got)
	}

	t.Run("a private update outside the grant does not come", func(t *testing.T) {
		all := subscribe(t, c, d.hub()+"?match=*", nil)
		d.publish(c, "https://example.com/other", "secret", true)
		d.publish(c, "https://example.com/other", "public", false)
		if got := all.next(t); got != "public" {
			t.Errorf("event = %q, want the public one", got)
		}
	})
	t.Run("the cookie publishes from the hub's own pages alone", func(t *testing.T) {
		for origin, want := range map[string]int{d.origin: 200, "https://evil.example": 403, "null": 403, "": 403} {
			h := http.Header{}
			if origin != "" {
				h.Set("Origin", origin)
			}
			resp, body := do(t, c, http.MethodPost, d.hub(), url.Values{"topic": {topic}, "data": {"from " + origin}}, h)
			if resp.StatusCode != want {
				t.Errorf("Origin %q: %d, want %d: %s", origin, resp.StatusCode, want, body)
			}
		}
	})
}
