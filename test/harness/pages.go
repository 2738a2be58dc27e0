package harness

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// actionKey is where Form keeps the form's action among its fields: no field can have this name.
const actionKey = "\x00action"

// Form is the first form of a page that has a button with the given name or value, filled with its hidden fields.
func Form(tb testing.TB, page, button string) url.Values {
	tb.Helper()
	for _, f := range forms(page) {
		if !strings.Contains(f, button) {
			continue
		}
		values := url.Values{}
		for _, in := range regexp.MustCompile(`(?s)<input[^>]*type="hidden"[^>]*>`).FindAllString(f, -1) {
			if name := firstMatch(in, `name="([^"]*)"`); name != "" {
				values.Set(html.UnescapeString(name), html.UnescapeString(firstMatch(in, `value="([^"]*)"`)))
			}
		}
		values.Set(actionKey, html.UnescapeString(firstMatch(f, `action="([^"]*)"`)))
		if b := firstMatch(f, `<button[^>]*name="([^"]*)"[^>]*value="`+regexp.QuoteMeta(button)+`"`); b != "" {
			values.Set(b, button)
		}
		return values
	}
	tb.Fatalf("no form with %q in:\n%s", button, Text(page))
	return nil
}

// Text is what a person reads on a page: without markup, and so without the hidden fields of its forms.
func Text(page string) string {
	words := regexp.MustCompile(`(?s)<head.*?</head>|<[^>]*>`).ReplaceAllString(page, " ")
	return strings.Join(strings.Fields(html.UnescapeString(words)), " ")
}

func forms(page string) []string {
	return regexp.MustCompile(`(?s)<form.*?</form>`).FindAllString(page, -1)
}

func firstMatch(s, pattern string) string {
	if m := regexp.MustCompile(pattern).FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return ""
}

// Person is somebody at a browser without scripts: it follows redirects and pages that navigate by themselves, and submits forms.
type Person struct {
	Client *http.Client
	// Stop is a URL at which following ends, without asking it: a client's redirect URI that nobody serves. Empty: none.
	Stop string
}

// Page is where a person is.
type Page struct {
	URL  *url.URL
	Resp *http.Response // nil when it is the place to stop
	Body string
}

// Open goes to an address and on to where a page waits for the person.
func (p Person) Open(tb testing.TB, target string) Page {
	tb.Helper()
	resp, body := Do(tb, p.Client, http.MethodGet, target, nil, nil)
	return p.follow(tb, resp, body)
}

// Submit sends a form of the page, as a browser does that is on it.
func (p Person) Submit(tb testing.TB, at Page, form url.Values) Page {
	tb.Helper()
	target, err := at.URL.Parse(form.Get(actionKey))
	if err != nil {
		tb.Fatal(err)
	}
	form.Del(actionKey)
	resp, body := Do(tb, p.Client, http.MethodPost, target.String(), form, http.Header{"Origin": {at.URL.Scheme + "://" + at.URL.Host}})
	return p.follow(tb, resp, body)
}

// Login fills in the login form.
func (p Person) Login(tb testing.TB, at Page, name, password string) Page {
	tb.Helper()
	form := Form(tb, at.Body, "password")
	form.Set("username", name)
	form.Set("password", password)
	return p.Submit(tb, at, form)
}

// Press submits the form with this button.
func (p Person) Press(tb testing.TB, at Page, button string) Page {
	tb.Helper()
	return p.Submit(tb, at, Form(tb, at.Body, button))
}

func (p Person) follow(tb testing.TB, resp *http.Response, body string) Page {
	tb.Helper()
	for range 10 {
		to := resp.Header.Get("Location")
		if to == "" {
			to = html.UnescapeString(firstMatch(body, `http-equiv="refresh" content="[^"]*url=([^"]*)"`))
		}
		if to == "" {
			return Page{URL: resp.Request.URL, Resp: resp, Body: body}
		}
		next, err := resp.Request.URL.Parse(to)
		if err != nil {
			tb.Fatal(err)
		}
		bare := url.URL{Scheme: next.Scheme, Host: next.Host, Path: next.Path}
		if p.Stop != "" && bare.String() == p.Stop {
			return Page{URL: next}
		}
		resp, body = Do(tb, p.Client, http.MethodGet, next.String(), nil, nil)
	}
	tb.Fatal("too many redirects")
	return Page{}
}
