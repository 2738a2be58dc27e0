package demo_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"
	"golang.org/x/net/html"

	"github.com/cinnabar-hub/cinnabar/internal/demo"
	"github.com/cinnabar-hub/cinnabar/internal/httpserver"
	"github.com/cinnabar-hub/cinnabar/test/needs"
	"github.com/cinnabar-hub/cinnabar/web"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func options() demo.Options {
	return demo.Options{
		HubURL:    "https://localhost:8443/.well-known/mercure",
		Issuer:    "https://localhost:8443",
		TopicBase: "https://localhost:8443/demo",
		User:      "demo",
		OtherFace: "http://localhost:8080/",
		Version:   "1.2.3",
		Commands: []demo.Command{
			{Title: "Publish a private update", Line: `curl --data-urlencode 'data={"a": "<b>"}' https://localhost:8443/.well-known/mercure`},
			{Title: "Read the stream", Line: "hub subscribe --match '*'"},
		},
	}
}

func dependencies(last string, err error) demo.Dependencies {
	return demo.Dependencies{
		LastEventID: func(context.Context) (string, error) { return last, err },
		Templates:   web.Templates(),
		Static:      web.Static(),
	}
}

func newEcho(t *testing.T, o demo.Options, d demo.Dependencies) *echo.Echo {
	t.Helper()
	e, err := httpserver.NewEcho(httpserver.EchoOptions{Logger: discard()})
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Register(e, o, d); err != nil {
		t.Fatal(err)
	}
	return e
}

func get(t *testing.T, e *echo.Echo, method, path string, header ...string) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	e.ServeHTTP(rec, r)
	resp := rec.Result()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestStart_Golden(t *testing.T) {
	e := newEcho(t, options(), dependencies("", nil))
	_, body := get(t, e, http.MethodGet, "/?session_error=login_denied")
	golden := filepath.Join("testdata", "golden", "start.html")
	if *update {
		if err := os.WriteFile(golden, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), body); diff != "" {
		t.Errorf("start page (-want +got), go test -update rewrites it:\n%s", diff)
	}
}

func TestStart_Headers(t *testing.T) {
	e := newEcho(t, options(), dependencies("", nil))
	resp, _ := get(t, e, http.MethodGet, "/")
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("status = %d", resp.StatusCode)
	}
	var policy []string
	for directive := range strings.SplitSeq(resp.Header.Get("Content-Security-Policy"), ";") {
		policy = append(policy, strings.TrimSpace(directive))
	}
	for _, want := range []string{
		"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'",
		"form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'",
	} {
		if !slices.Contains(policy, want) {
			t.Errorf("the policy lacks %q: %v", want, policy)
		}
	}
	// "no-referrer" would make the form post "Origin: null", which the hub refuses.
	if got := resp.Header.Get("Referrer-Policy"); got != "same-origin" {
		t.Errorf("Referrer-Policy = %q", got)
	}
	if got := resp.Header.Get("Content-Type"); got != "text/html; charset=UTF-8" {
		t.Errorf("Content-Type = %q", got)
	}
}

func TestRoutes_Methods(t *testing.T) {
	e := newEcho(t, options(), dependencies("", nil))
	for _, path := range []string{"/", "/demo/books/1", "/static/app.css"} {
		for method, want := range map[string]int{http.MethodGet: 200, http.MethodHead: 200, http.MethodPost: 405} {
			if resp, _ := get(t, e, method, path); resp.StatusCode != want {
				t.Errorf("%s %s = %d, want %d", method, path, resp.StatusCode, want)
			}
		}
	}
}

func TestStart_Problems(t *testing.T) {
	e := newEcho(t, options(), dependencies("", nil))
	for code, shown := range map[string]bool{
		"login_denied": true, "login_failed": true, "temporarily_unavailable": true, "token_too_large": true,
		"": false, "unknown_code": false, "<script>": false,
	} {
		_, body := get(t, e, http.MethodGet, "/?session_error="+code)
		if got := strings.Contains(body, `id="problem"`); got != shown {
			t.Errorf("session_error=%s: problem shown = %v, want %v", code, got, shown)
		}
		if code != "" && strings.Contains(body, code) {
			t.Errorf("session_error=%s is repeated on the page", code)
		}
	}
}

// TestStart_Structure checks what makes the page usable with a keyboard and a screen reader, and within its policy.
func TestStart_Structure(t *testing.T) {
	for name, o := range map[string]demo.Options{"everything": options(), "the least": {
		HubURL: "http://localhost:8080/.well-known/mercure", Issuer: "http://localhost:8080", TopicBase: "https://localhost:8443/demo",
	}} {
		t.Run(name, func(t *testing.T) {
			e := newEcho(t, o, dependencies("", nil))
			_, body := get(t, e, http.MethodGet, "/?session_error=login_failed")
			doc, err := html.Parse(strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			p := examine(doc)
			p.check(t, e)
		})
	}
}

// page is what the structural check needs to know of a document.
type page struct {
	ids                 map[string]int
	labelled, refs      []string
	controls            []*html.Node
	headings            []int
	landmarks           map[string]int
	lang, title, inline string
	files               []string
}

func examine(doc *html.Node) *page {
	p := &page{ids: map[string]int{}, landmarks: map[string]int{}}
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode {
			p.element(n)
		}
	}
	return p
}

func (p *page) element(n *html.Node) {
	if id := attr(n, "id"); id != "" {
		p.ids[id]++
	}
	for _, name := range []string{"aria-labelledby", "aria-describedby"} {
		p.refs = append(p.refs, strings.Fields(attr(n, name))...)
	}
	for _, a := range n.Attr {
		if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
			p.inline += " " + n.Data + "@" + a.Key
		}
	}
	switch n.Data {
	case "html":
		p.lang = attr(n, "lang")
	case "title":
		p.title = text(n)
	case "label":
		p.labelled = append(p.labelled, attr(n, "for"))
	case "input", "textarea", "select":
		p.controls = append(p.controls, n)
	case "h1", "h2", "h3":
		p.headings = append(p.headings, int(n.Data[1]-'0'))
	case "main", "header", "footer":
		p.landmarks[n.Data]++
	case "button":
		if text(n) == "" || attr(n, "type") == "" {
			p.inline += " button without text or type"
		}
	case "script":
		p.files = append(p.files, attr(n, "src"))
		if n.FirstChild != nil {
			p.inline += " script"
		}
	case "style":
		p.inline += " style"
	case "link":
		p.files = append(p.files, attr(n, "href"))
	}
}

func (p *page) check(t *testing.T, e *echo.Echo) {
	t.Helper()
	if p.lang != "en" || p.title == "" || p.inline != "" {
		t.Errorf("lang %q, title %q, forbidden:%s", p.lang, p.title, p.inline)
	}
	for id, n := range p.ids {
		if n > 1 {
			t.Errorf("id %q is used %d times", id, n)
		}
	}
	for _, id := range append(slices.Clone(p.refs), p.labelled...) {
		if p.ids[id] == 0 {
			t.Errorf("id %q is referred to and not there", id)
		}
	}
	for _, c := range p.controls {
		if !slices.Contains(p.labelled, attr(c, "id")) {
			t.Errorf("%s %q has no label", c.Data, attr(c, "name"))
		}
	}
	level := 0
	for _, h := range p.headings {
		if h > level+1 {
			t.Errorf("heading level %d follows %d", h, level)
		}
		level = h
	}
	for _, name := range []string{"main", "header", "footer"} {
		if p.landmarks[name] != 1 {
			t.Errorf("%d %s elements", p.landmarks[name], name)
		}
	}
	for _, id := range []string{"main", "who", "countdown", "state", "anew", "log", "pause", "publish", "topic", "data", "private", "result", "login", "logout"} {
		if p.ids[id] != 1 {
			t.Errorf("the script's element %q is not there", id)
		}
	}
	for _, file := range p.files {
		if resp, _ := get(t, e, http.MethodGet, file); resp.StatusCode != http.StatusOK {
			t.Errorf("%s is answered %d", file, resp.StatusCode)
		}
	}
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func text(n *html.Node) string {
	var out strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			out.WriteString(c.Data)
		}
	}
	return strings.TrimSpace(out.String())
}

func TestBook_Discovery(t *testing.T) {
	tests := map[string]struct{ last, want string }{
		"DISC no event yet":        {"", "earliest"},
		"DISC the newest event":    {"urn:uuid:4b1c", "urn:uuid:4b1c"},
		"an id that needs quoting": {"a\"b\\c\r\nX: y", `a\"b\\cX: y`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := newEcho(t, options(), dependencies(tt.last, nil))
			resp, body := get(t, e, http.MethodGet, "/demo/books/1")
			want := []string{
				`<https://localhost:8443/.well-known/mercure>; rel="mercure"; last-event-id="` + tt.want + `"`,
				`<https://localhost:8443/demo/books/1>; rel="self"`,
			}
			if diff := cmp.Diff(want, resp.Header.Values("Link")); diff != "" {
				t.Errorf("Link (-want +got):\n%s", diff)
			}
			var document map[string]any
			if err := json.Unmarshal([]byte(body), &document); err != nil || document["@id"] != "https://localhost:8443/demo/books/1" {
				t.Errorf("body = %s, %v", body, err)
			}
			if got := resp.Header.Get("Cache-Control"); got != "no-store" {
				t.Errorf("Cache-Control = %q", got)
			}
		})
	}
}

func TestBook_Refusals(t *testing.T) {
	e := newEcho(t, options(), dependencies("", nil))
	for _, id := range []string{"0", "4", "01", "+1", "x", "-1", "1%20"} {
		if resp, _ := get(t, e, http.MethodGet, "/demo/books/"+id); resp.StatusCode != http.StatusNotFound {
			t.Errorf("book %s = %d, want 404", id, resp.StatusCode)
		}
	}
	e = newEcho(t, options(), dependencies("", errors.New("history is closed")))
	resp, body := get(t, e, http.MethodGet, "/demo/books/1")
	if resp.StatusCode != http.StatusInternalServerError || strings.Contains(body, "history") {
		t.Errorf("a failing history = %d %s", resp.StatusCode, body)
	}
}

func TestStatic(t *testing.T) {
	d := dependencies("", nil)
	d.Static = fstest.MapFS{
		"a.js": {Data: []byte("export {};")}, "sub/b.css": {Data: []byte("a{}")}, "c.svg": {Data: []byte("<svg/>")}, "secret.go": {Data: []byte("x")},
	}
	e := newEcho(t, options(), d)
	for path, want := range map[string]string{
		"/static/a.js": "text/javascript; charset=utf-8", "/static/sub/b.css": "text/css; charset=utf-8", "/static/c.svg": "image/svg+xml",
	} {
		resp, body := get(t, e, http.MethodGet, path)
		if resp.StatusCode != http.StatusOK || body == "" || resp.Header.Get("Content-Type") != want {
			t.Errorf("%s = %d %q", path, resp.StatusCode, resp.Header.Get("Content-Type"))
		}
		if resp.Header.Get("X-Content-Type-Options") != "nosniff" || resp.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: headers %v", path, resp.Header)
		}
		again, body := get(t, e, http.MethodGet, path, "If-None-Match", resp.Header.Get("ETag"))
		if again.StatusCode != http.StatusNotModified || body != "" {
			t.Errorf("%s again = %d", path, again.StatusCode)
		}
		head, body := get(t, e, http.MethodHead, path)
		if head.StatusCode != http.StatusOK || body != "" {
			t.Errorf("HEAD %s = %d with %d bytes", path, head.StatusCode, len(body))
		}
	}
	for _, path := range []string{"/static/", "/static/secret.go", "/static/../a.js", "/static/sub", "/static/%2e%2e/start.html", "/static/nothing.js"} {
		if resp, _ := get(t, e, http.MethodGet, path); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s = %d, want 404", path, resp.StatusCode)
		}
	}
}

func TestRegister_RefusesWhatCannotWork(t *testing.T) {
	tests := map[string]func(*demo.Options, *demo.Dependencies){
		"no hub URL":              func(o *demo.Options, _ *demo.Dependencies) { o.HubURL = "" },
		"a relative topic base":   func(o *demo.Options, _ *demo.Dependencies) { o.TopicBase = "/demo" },
		"a topic base with slash": func(o *demo.Options, _ *demo.Dependencies) { o.TopicBase += "/" },
		"no issuer":               func(o *demo.Options, _ *demo.Dependencies) { o.Issuer = "" },
		"no last event id":        func(_ *demo.Options, d *demo.Dependencies) { d.LastEventID = nil },
		"no templates":            func(_ *demo.Options, d *demo.Dependencies) { d.Templates = fstest.MapFS{} },
		"a template that is broken": func(_ *demo.Options, d *demo.Dependencies) {
			d.Templates = fstest.MapFS{"start.html": {Data: []byte("{{.Nothing}}")}}
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			o, d := options(), dependencies("", nil)
			change(&o, &d)
			if err := demo.Register(echo.New(), o, d); err == nil || !strings.HasPrefix(err.Error(), "demo: ") {
				t.Errorf("Register = %v, want an error", err)
			}
		})
	}
}

// script gives the source of one of the page's modules.
func script(t *testing.T, name string) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("..", "..", "web", "static", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// module writes a source where Node takes it for a module, as browsers do.
func module(t *testing.T, source string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "module.mjs")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestScripts_Syntax has Node parse the page's modules, and what the guide says to write.
func TestScripts_Syntax(t *testing.T) {
	node := needs.Program(t, "node")
	sources := map[string]string{}
	for _, name := range []string{"start.js", "stream.js", "session.js"} {
		sources[name] = script(t, name)
	}
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "guide-browser.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range regexp.MustCompile("(?s)```js\n(.*?)```").FindAllSubmatch(guide, -1) {
		sources[fmt.Sprintf("guide %d", i+1)] = string(block[1])
	}
	for i, block := range regexp.MustCompile(`(?s)<script type="module">\n(.*?)</script>`).FindAllSubmatch(guide, -1) {
		sources[fmt.Sprintf("page of the guide %d", i+1)] = string(block[1])
	}
	if len(sources) < 6 {
		t.Errorf("the guide has no scripts: %d in all", len(sources))
	}
	for name, source := range sources {
		t.Run(name, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), node, "--check", module(t, source)).CombinedOutput()
			if err != nil {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}

// TestScripts_Modules runs the unit tests of the page's modules.
func TestScripts_Modules(t *testing.T) {
	node := needs.Program(t, "node")
	for _, name := range []string{"stream", "session"} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), node, filepath.Join("testdata", name+"_test.mjs"))
			cmd.Env = append(os.Environ(), "MODULE="+module(t, script(t, name+".js")))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}

// TestScripts_NoMarkup keeps what arrives from the network out of markup, and out of what a browser keeps.
func TestScripts_NoMarkup(t *testing.T) {
	forbidden := []string{
		"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "DOMParser", "localStorage", "sessionStorage", "document.cookie",
	}
	for _, name := range []string{"start.js", "stream.js", "session.js"} {
		source := script(t, name)
		if name == "session.js" {
			// Where tabs cannot talk to each other directly, a message passes through the storage and is gone at once.
			source = strings.Replace(source, "localStorage.setItem(name, JSON.stringify(message));", "", 1)
			source = strings.Replace(source, "localStorage.removeItem(name);", "", 1)
		}
		for _, word := range forbidden {
			if strings.Contains(source, word) {
				t.Errorf("%s uses %s", name, word)
			}
		}
	}
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
