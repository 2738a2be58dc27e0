package hubhttp_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/hub/hubhttp"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

const subscriptionsPath = "/.well-known/mercure/subscriptions"

// document is that of a subscription.
type document struct {
	ID         string          `json:"id"`
	Type       string          `json:"type"`
	MatchType  string          `json:"match_type"`
	Match      string          `json:"match"`
	Subscriber string          `json:"subscriber"`
	Active     bool            `json:"active"`
	Payload    json.RawMessage `json:"payload"`
}

// collection is that of several.
type collection struct {
	ID            string     `json:"id"`
	Type          string     `json:"type"`
	Subscriptions []document `json:"subscriptions"`
}

func watched(s *settings) { s.options.Subscriptions = true }

// watch is a stream that sees the events of all subscriptions.
func (f *fixture) watch() *stream {
	f.tb.Helper()
	return f.subscribe("match_urlpattern=" + url.QueryEscape(subscriptionsPath+"/*"))
}

// begun opens a subscription and waits for the event that w gets of it.
func (f *fixture) begun(w *stream, query string, headers ...string) (*stream, document) {
	f.tb.Helper()
	s := f.subscribe(query, headers...)
	return s, w.document()
}

// document reads the next event as that of a subscription.
func (s *stream) document() document {
	s.tb.Helper()
	ev := s.next()
	var d document
	must(s.tb, json.Unmarshal([]byte(ev.Data), &d))
	if ev.Type != "mercure" || ev.ID == "" || d.Type != "subscription" {
		s.tb.Fatalf("event = %+v, want one of a subscription", ev)
	}
	return d
}

// ask gets a path of the API, which goes out as it is.
func (f *fixture) ask(method, path string, headers ...string) response {
	f.tb.Helper()
	u := url.URL{Scheme: "http", Host: f.address, Opaque: "//" + f.address + path}
	r, err := http.NewRequestWithContext(f.tb.Context(), method, u.String(), http.NoBody)
	must(f.tb, err)
	r.URL = &u
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	resp, err := f.client.Do(r)
	must(f.tb, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	must(f.tb, err)
	return response{Response: resp, body: string(body)}
}

// listed gets a collection with a token for everything.
func (f *fixture) listed(path string) collection {
	f.tb.Helper()
	resp := f.ask(http.MethodGet, path, bearer(f.subscribeToken("*")))
	if resp.StatusCode != http.StatusOK {
		f.tb.Fatalf("GET %s = %d %s", path, resp.StatusCode, resp.body)
	}
	var c collection
	must(f.tb, json.Unmarshal([]byte(resp.body), &c))
	if c.Type != "subscriptions" || c.Subscriptions == nil {
		f.tb.Fatalf("ACT-37 GET %s = %s", path, resp.body)
	}
	return c
}

func TestSubscriptions_documents(t *testing.T) {
	f := start(t, watched)
	w := f.watch()
	itself := w.document() // it watches itself
	payload := f.mint(f.subscriber, nil, rar.Detail{
		Actions: []rar.Action{rar.Subscribe}, Topics: []rar.TopicMatcher{{Match: "*"}}, Payload: json.RawMessage(`{"a":[1,null,"é"]}`),
	})
	first := f.subscribe("match=T&match_urlpattern=https://e.example/:x", bearer(payload))
	docs := []document{itself, w.document(), w.document()}
	slices.SortFunc(docs, func(a, b document) int { return strings.Compare(a.ID, b.ID) })
	if d := cmp.Diff(collection{ID: subscriptionsPath, Type: "subscriptions", Subscriptions: docs}, f.listed(subscriptionsPath)); d != "" {
		t.Errorf("ACT-37 ACT-38 ACT-39 the collection differs (-want +got):\n%s", d)
	}
	if got := f.listed(subscriptionsPath + "?x=1").ID; got != subscriptionsPath {
		t.Errorf("ACT-38 id = %q, want the path alone", got)
	}
	for _, d := range docs {
		matcher := d.ID[:strings.LastIndexByte(d.ID, '/')]
		if diff := cmp.Diff(collection{ID: matcher, Type: "subscriptions", Subscriptions: []document{d}}, f.listed(matcher)); diff != "" {
			t.Errorf("ACT-40 the collection of %s differs (-want +got):\n%s", matcher, diff)
		}
		resp := f.ask(http.MethodGet, d.ID, bearer(f.subscribeToken(d.ID)))
		var got document
		must(t, json.Unmarshal([]byte(resp.body), &got))
		if diff := cmp.Diff(d, got); diff != "" {
			t.Errorf("ACT-33 %s differs (-event +API):\n%s", d.ID, diff)
		}
		if resp.Header.Get("Content-Type") != "application/json" || resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("ACT-32 ACT-46 %v", resp.Header)
		}
		if d.Match != itself.Match && string(d.Payload) != `{"a":[1,null,"é"]}` {
			t.Errorf("PAY-01 payload = %s", d.Payload)
		}
	}
	_ = first.resp.Body.Close()
	for range 2 {
		d := w.document()
		if d.Active {
			t.Errorf("ACT-03 %+v", d)
		}
		if got := f.ask(http.MethodGet, d.ID, bearer(f.subscribeToken("*"))); got.StatusCode != http.StatusNotFound {
			t.Errorf("ACT-35 GET %s = %d, want 404", d.ID, got.StatusCode)
		}
	}
	if got := f.gauge("cinnabar_hub_subscription_events_total"); got != 5 {
		t.Errorf("%v events were counted, want 5", got)
	}
}

// What a matcher holds arrives as it was: its path is decoded once, and by nobody but us.
func TestSubscriptions_oddMatchers(t *testing.T) {
	f := start(t, watched)
	w := f.watch()
	w.document()
	for _, match := range []string{
		"a b;c+é*", "a%2Fb%41%", "https://e.example/a/b?c#d", "../..", "..", ".", "%2E%2E", "/", "//", "%", `a"\<>`, "日本", ":x", "a=b&c",
	} {
		t.Run(match, func(t *testing.T) {
			s, d := f.begun(w, "match="+url.QueryEscape(match))
			at := mercure.SubscriptionsTopic("/.well-known/mercure", "exact", match, "")
			if d.Match != match || d.ID != at+"/"+strings.ReplaceAll(d.Subscriber, ":", "%3A") {
				t.Fatalf("ACT-06 ACT-17 event = %+v", d)
			}
			if got := f.listed(at); got.ID != at || len(got.Subscriptions) != 1 || got.Subscriptions[0].ID != d.ID {
				t.Errorf("ACT-25 GET %s = %+v", at, got)
			}
			if got := f.ask(http.MethodGet, d.ID, bearer(f.subscribeToken(d.ID))); got.StatusCode != http.StatusOK {
				t.Errorf("ACT-25 GET %s = %d", d.ID, got.StatusCode)
			}
			_ = s.resp.Body.Close()
			w.document()
		})
	}
}

func TestSubscriptions_access(t *testing.T) {
	f := start(t, watched)
	w := f.watch()
	w.document()
	_, d := f.begun(w, "match=https://e.example/a%3B")
	_, hidden := f.begun(w, "match="+url.QueryEscape("https://e.example/a;#b"))
	single, subscriber := d.ID, strings.ReplaceAll(d.Subscriber, ":", "%3A")
	matcher := strings.TrimSuffix(single, "/"+subscriber)
	lower := strings.NewReplacer("%3A", "%3a", "%2F", "%2f", "%3B", "%3b").Replace(matcher) + "/" + subscriber
	raw := subscriptionsPath + "/exact/https%3A%2F%2Fe.example%2Fa;#b"
	pattern := func(s string) []string { return []string{bearer(f.subscribeToken("pattern:" + s))} }
	exact := func(s string) []string { return []string{bearer(f.subscribeToken(s))} }
	const insufficient = `Bearer error="insufficient_scope", resource_metadata="` + metadataURL + `"`
	const invalid = `Bearer error="invalid_token", resource_metadata="` + metadataURL + `"`
	for _, tc := range []struct {
		name, path string
		headers    []string
		status     int
		challenge  string
	}{
		{"ACT-26 collection", subscriptionsPath, exact(subscriptionsPath), 200, ""},
		{"ACT-26 matcher", matcher, exact(matcher), 200, ""},
		{"ACT-26 single", single, exact(single), 200, ""},
		{"ACT-27 the query is no part", single + "?x=1", exact(single), 200, ""},
		{"ACT-27 nor of the grant", single + "?x=1", exact(single + "?x=1"), 403, insufficient},
		{"ACT-28 absolute", single, exact("https://hub.example" + single), 403, insufficient},
		{"ACT-28 other octets in the grant", single, exact(lower), 403, insufficient},
		{"ACT-28 other octets in the path", lower, exact(single), 403, insufficient},
		{"other octets in both are not its topic", lower, exact(lower), 403, insufficient},
		{"other octets, and a grant for all", lower, pattern(subscriptionsPath + "/*"), 200, ""},
		{"octets that need none", subscriptionsPath + "/exact/a*(b)", pattern(subscriptionsPath + "/exact/:m"), 200, ""},
		{"ACT-29 relative", single, pattern(subscriptionsPath + "/:match_type/:match/:subscriber"), 200, ""},
		{"ACT-29 absolute", single, pattern("https://hub.example" + subscriptionsPath + "{/*}?"), 200, ""},
		{"ACT-29 absolute, collection", subscriptionsPath, pattern("https://hub.example" + subscriptionsPath + "{/*}?"), 200, ""},
		{"ACT-29 another origin", single, pattern("https://other.example" + subscriptionsPath + "{/*}?"), 403, insufficient},
		{"ACT-30 collection alone", single, exact(subscriptionsPath), 403, insufficient},
		{"ACT-30 a pattern of what is below", subscriptionsPath, pattern(subscriptionsPath + "/*"), 403, insufficient},
		{"ACT-30 wildcard", subscriptionsPath, exact("*"), 200, ""},
		{"ACT-31 the matched topic", matcher, exact(d.Match), 403, insufficient},
		{"ACT-31 nothing", single, nil, 401, "Bearer resource_metadata=\"" + metadataURL + `"`},
		{"ACT-31 not even what is there", matcher + "/x", nil, 401, "Bearer resource_metadata=\"" + metadataURL + `"`},
		{"ACT-31 bad token", single, []string{bearer("x")}, 401, invalid},
		{"ACT-31 token in the URL", single + "?access_token=" + f.subscribeToken("*"), nil, 401, "Bearer resource_metadata=\"" + metadataURL + `"`},
		{"ACT-31 details for publishing", single, []string{bearer(f.mint(f.combined, nil, grant(rar.Publish, "*")))}, 403, insufficient},
		{"ACT-31 no details", single, []string{bearer(f.mint(f.subscriber, nil))}, 403, insufficient},
		{"TOK-26 a publisher's token", single, []string{bearer(f.publishToken("*"))}, 401, invalid},
		{"cookie", single, []string{cookie(f.subscribeToken(single))}, 200, ""},
		{"COOKIE-10 the field hides the cookie", single, []string{cookie(f.subscribeToken("*")), bearer(f.subscribeToken("T"))}, 403, insufficient},
		{"ACT-34 unknown", matcher + "/x", exact("*"), 404, ""},
		{"ACT-34 of another matcher", subscriptionsPath + "/exact/T/" + subscriber, exact("*"), 404, ""},
		{"ACT-34 of another type", strings.Replace(single, "/exact/", "/urlpattern/", 1), exact("*"), 404, ""},
		{"a matcher with a fragment", hidden.ID, exact(hidden.ID), 200, ""},
		{"a raw fragment, which patterns do not see", raw, pattern(matcher), 403, insufficient},
		{"a matcher as long as they may be", subscriptionsPath + "/exact/" + strings.Repeat("%C3%A9", 2048), pattern(subscriptionsPath + "/*"), 200, ""},
		{"dot segments lead nowhere", subscriptionsPath + "/exact/..", pattern(matcher + "{/*}?"), 403, insufficient},
		{"nor do those of a longer path", subscriptionsPath + "/exact/x/../" + strings.TrimPrefix(matcher, subscriptionsPath+"/exact/"), exact("*"), 404, ""},
		{"nor encoded ones", strings.Replace(matcher, "%2Fa", "%2Fb%2F..%2Fa", 1), exact(matcher), 403, insufficient},
		{"a parameter", matcher + ";x", pattern(matcher + "{/*}?"), 403, insufficient},
		{"a backslash", matcher + `\x`, pattern(matcher + "{/*}?"), 403, insufficient},
		{"and with a grant for both", raw, pattern(subscriptionsPath + "/*"), 200, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				resp := f.ask(method, tc.path, tc.headers...)
				if resp.StatusCode != tc.status || resp.Header.Get("WWW-Authenticate") != tc.challenge {
					t.Errorf("%s %s = %d %q, want %d %q", method, tc.path, resp.StatusCode, resp.Header.Get("WWW-Authenticate"), tc.status, tc.challenge)
				}
				if method == http.MethodHead && resp.body != "" {
					t.Errorf("HEAD has a body: %q", resp.body)
				}
			}
		})
	}
	expired := bearer(f.mint(f.subscriber, func(c *token.MintClaims) {
		c.IssuedAt, c.ExpiresAt = time.Now().Add(-time.Hour), time.Now().Add(-time.Second)
	}, grant(rar.Subscribe, "*")))
	for target, want := range map[string]struct {
		headers []string
		status  int
	}{
		"http://other.example" + single:            {exact(single), 200}, // the path alone counts
		"http://other.example" + subscriptionsPath: {exact(single), 403},
		"/" + subscriptionsPath:                    {exact("*"), 404},
		"/x/.." + subscriptionsPath:                {exact("*"), 404},
		"/.well-known/%6Dercure/subscriptions":     {exact("*"), 404},
		"/.well-known/mercure%2Fsubscriptions":     {exact("*"), 404},
		single + "?expired":                        {[]string{expired}, 401},
		single + "?twice":                          {append(exact("*"), exact("*")...), 400},
	} {
		if resp := f.exchange(t, append([]string{"GET " + target + " HTTP/1.1", "Host: hub.example"}, want.headers...)...); resp.StatusCode != want.status {
			t.Errorf("GET %s = %d, want %d", target, resp.StatusCode, want.status)
		}
	}
	if log := f.log.String(); strings.Contains(log, "e.example") || !strings.Contains(log, "endpoint=subscriptions") {
		t.Errorf("the log tells of matchers, or nothing: %s", log)
	}
}

func TestSubscriptions_revoked(t *testing.T) {
	f, r := startRevocable(t, watched)
	all := bearer(f.mint(f.combined, func(c *token.MintClaims) { c.ID = "j" }, grant(rar.Subscribe, "*")))
	for _, want := range []int{http.StatusOK, http.StatusUnauthorized} {
		for _, path := range []string{"", "/exact/T"} {
			if resp := f.ask(http.MethodGet, subscriptionsPath+path, all); resp.StatusCode != want {
				t.Errorf("GET of %q = %d, want %d", path, resp.StatusCode, want)
			}
		}
		r.revoke(t, "jti", "j")
	}
}

func TestSubscriptions_shapes(t *testing.T) {
	f := start(t, watched)
	w := f.watch()
	w.document()
	_, d := f.begun(w, "match=T")
	all := bearer(f.subscribeToken("*"))
	for path, status := range map[string]int{
		"/": 404, "/exact": 404, "/exact/T/x/y": 404, "//T": 404, "//T/" + d.Subscriber: 404, "/exact/T/": 404,
		"/exact/": 200, "/exact//x": 404, "/EXACT/T": 200, "/none/T": 200, "/exact/%FF": 200, "/exact/%00": 200, "/exact/%2F": 200,
		"/exact/é": 200, "/exact/../../subscriptions/exact/T": 404, "/urlpattern/https%3A%2F%2Fe.example%2F(": 200,
		"/exact/" + strings.Repeat("a", 20_000): 400, "": 200,
	} {
		resp := f.ask(http.MethodGet, subscriptionsPath+path, all)
		if resp.StatusCode != status {
			t.Errorf("ACT-48 GET %.60s = %d, want %d", path, resp.StatusCode, status)
		}
		if status == 200 && path != "" && !strings.HasSuffix(resp.body, `,"type":"subscriptions","subscriptions":[]}`+"\n") {
			t.Errorf("ACT-48 GET %s = %s, want nothing listed", path, resp.body)
		}
	}
	resp := f.exchange(t, "GET "+subscriptionsPath+"/exact/%zz HTTP/1.1", "Host: hub.example", all)
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("ACT-48 GET of an octet that is none = %d, want 400", resp.StatusCode)
	}
	for path, want := range map[string]string{"/exact/%FF": "/exact/%FF", "/exact/\xff": "/exact/\uFFFD"} {
		if got := f.listed(subscriptionsPath + path).ID; got != subscriptionsPath+want {
			t.Errorf("ACT-38 id = %q, want %q", got, want)
		}
	}
}

func TestSubscriptions_methods(t *testing.T) {
	f := start(t, watched)
	for _, path := range []string{"", "/exact/T", "/exact/T/x"} {
		for _, method := range []string{"POST", "PUT", "DELETE", "QUERY"} {
			resp := f.ask(method, subscriptionsPath+path, bearer(f.subscribeToken("*")))
			if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "GET, HEAD, OPTIONS" {
				t.Errorf("%s %s = %d, Allow %q", method, path, resp.StatusCode, resp.Header.Get("Allow"))
			}
		}
		resp := f.ask(http.MethodOptions, subscriptionsPath+path, "Origin: "+pageOrigin, "Access-Control-Request-Method: GET")
		h := resp.Header
		if resp.StatusCode != http.StatusNoContent || h.Get("Access-Control-Allow-Origin") != pageOrigin || h.Get("Access-Control-Allow-Methods") != "GET, HEAD" ||
			!slices.Contains(tokens(h.Get("Access-Control-Allow-Headers")), "authorization") {
			t.Errorf("CORS-06 preflight of %s = %d %v", path, resp.StatusCode, h)
		}
	}
	for _, headers := range [][]string{{bearer(f.subscribeToken("*"))}, nil, {bearer(f.subscribeToken("T"))}} {
		for _, path := range []string{"", "/exact/T/x"} {
			h := f.ask(http.MethodGet, subscriptionsPath+path, append(headers, "Origin: "+pageOrigin)...).Header
			if h.Get("Access-Control-Allow-Origin") != pageOrigin || !slices.Contains(tokens(h.Get("Access-Control-Expose-Headers")), "link") {
				t.Errorf("CORS-01 CORS-10 CORS-11 %v", h)
			}
			if h = f.ask(http.MethodGet, subscriptionsPath+path, append(headers, "Origin: https://evil.example")...).Header; h.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("CORS-03 %v", h)
			}
		}
	}
}

func TestSubscriptions_cursor(t *testing.T) {
	f := start(t, watched)
	link := func(path string) string {
		return f.ask(http.MethodGet, path, bearer(f.subscribeToken("*"))).Header.Get("Link")
	}
	want := func(id string) string {
		return `<` + hubURL + `>; rel="mercure"; last-event-id="` + id + `"; type="mercure"; content-type="application/json"`
	}
	if got := link(subscriptionsPath); got != want("earliest") {
		t.Errorf("ACT-42 Link = %s", got)
	}
	f.publish("topic", "T", "id", `a"b\c,d;é`)
	for _, path := range []string{"", "/exact/T", "/exact/T/unknown"} {
		if got := link(subscriptionsPath + path); got != want(`a\"b\\c,d;é`) {
			t.Errorf("ACT-41 ACT-42 ACT-43 Link of %q = %s", path, got)
		}
	}
	w := f.watch()
	_, d := f.begun(w, "match=T")
	f.publish("topic", "T", "id", "last")
	if got := link(d.ID); got != want("last") {
		t.Errorf("ACT-41 Link of a single subscription = %s", got)
	}
}

func TestSubscriptions_off(t *testing.T) {
	f := start(t, nil)
	for _, path := range []string{"", "/", "/exact/T", "/exact/T/x"} {
		if got := f.ask(http.MethodGet, subscriptionsPath+path, bearer(f.subscribeToken("*"))); got.StatusCode != http.StatusNotFound {
			t.Errorf("ACT-47 GET %s = %d, want 404", path, got.StatusCode)
		}
	}
}

// Hub URLs that the router sees decoded, or not.
func TestSubscriptions_oddHubPaths(t *testing.T) {
	for _, public := range []string{
		"https://h.example/caf%C3%A9", "https://h.example/é", "https://h.example/a%2Fb", "https://h.example/a:b/:c", "https://h.example/hub/", "https://h.example/a%20b",
	} {
		t.Run(public, func(t *testing.T) {
			f := start(t, func(s *settings) { s.options.PublicURL, s.options.Subscriptions = public, true })
			all := bearer(f.mint(f.subscriber, func(c *token.MintClaims) { c.Audience = public }, grant(rar.Subscribe, "*")))
			w := f.subscribe("match=*", all)
			_ = f.subscribe("match="+url.QueryEscape("a/b%20é"), all)
			w.document()
			d := w.document()
			for _, path := range []string{d.ID, d.ID[:strings.LastIndexByte(d.ID, '/')], strings.Split(d.ID, "/exact/")[0]} {
				if got := f.ask(http.MethodGet, path, all); got.StatusCode != http.StatusOK || !strings.Contains(got.body, d.ID) {
					t.Errorf("GET %s = %d %s", path, got.StatusCode, got.body)
				}
			}
		})
	}
}

// A long list is written in pieces.
func TestSubscriptions_manyOfThem(t *testing.T) {
	const streams = 8
	f := start(t, watched)
	f.crowd(streams)
	list := f.listed(subscriptionsPath).Subscriptions
	if len(list) != streams*crowdMatchers || !slices.IsSortedFunc(list, func(a, b document) int { return strings.Compare(a.ID, b.ID) }) {
		t.Errorf("%d subscriptions are listed, want %d in order", len(list), streams*crowdMatchers)
	}
}

// slowList asks for the list of all subscriptions of a crowd, and reads no more than its beginning.
func (f *fixture) slowList(t *testing.T) (net.Conn, *http.Response) {
	t.Helper()
	conn := dial(t, f.address)
	write(t, conn, "GET "+subscriptionsPath+" HTTP/1.1\r\nHost: hub.example\r\n"+bearer(f.subscribeToken("*"))+"\r\n\r\n")
	resp := readResponse(t, conn, http.MethodGet)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("list = %d", resp.StatusCode)
	}
	return conn, resp
}

// Readers that do not take a long list keep others from long ones, and nobody from short ones, until they hang up.
func TestSubscriptions_slowReaders(t *testing.T) {
	connections := hubhttp.NewConnections(0, 0)
	connections.BoundLists(1, 50*time.Millisecond, time.Minute)
	f := start(t, func(s *settings) { watched(s); s.streams = connections })
	f.crowd(slowCrowd)
	conn, _ := f.slowList(t)
	all := bearer(f.subscribeToken("*"))
	resp := f.ask(http.MethodGet, subscriptionsPath, all)
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "5" || resp.Header.Get("Link") != "" {
		t.Errorf("a second long list = %d %v", resp.StatusCode, resp.Header)
	}
	if resp := f.ask(http.MethodHead, subscriptionsPath, all); resp.StatusCode != http.StatusOK {
		t.Errorf("HEAD of a long list = %d", resp.StatusCode)
	}
	if n := len(f.listed(subscriptionsPath + "/exact/" + crowdMatcher(1)).Subscriptions); n != slowCrowd {
		t.Errorf("a short list has %d subscriptions, want %d", n, slowCrowd)
	}
	must(t, conn.Close())
	for end := time.Now().Add(patience); f.ask(http.MethodGet, subscriptionsPath, all).StatusCode != http.StatusOK; {
		if time.Now().After(end) {
			t.Fatal("there is no long list though nobody takes another")
		}
	}
}

// A reader that stalls is cut off in the middle of the list.
func TestSubscriptions_stalledReader(t *testing.T) {
	connections := hubhttp.NewConnections(0, 0)
	connections.BoundLists(1, patience, 100*time.Millisecond)
	f := start(t, func(s *settings) { watched(s); s.streams, s.withTLS = connections, true })
	f.crowd(slowCrowd)
	_, resp := f.slowList(t)
	f.listed(subscriptionsPath) // waits for it
	if n, err := io.Copy(io.Discard, resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%d bytes and %v, want a list that breaks off", n, err)
	}
	resp = f.send(request{method: http.MethodGet, url: f.tls + "/subscriptions", headers: []string{bearer(f.subscribeToken("*"))}, client: f.h2})
	f.listed(subscriptionsPath) // waits for it
	if n, err := io.Copy(io.Discard, resp.Body); err == nil || resp.ProtoMajor != 2 || resp.StatusCode != http.StatusOK {
		t.Errorf("%s: %d, %d bytes and %v, want a list that breaks off", resp.Proto, resp.StatusCode, n, err)
	}
	must(t, resp.Body.Close())
}

// How long a reader may take is no matter of what follows on its connection.
func TestSubscriptions_requestAfterList(t *testing.T) {
	connections := hubhttp.NewConnections(0, 0)
	connections.BoundLists(1<<20, patience, 50*time.Millisecond)
	f := start(t, func(s *settings) { watched(s); s.streams = connections })
	conn := dial(t, f.address)
	r := bufio.NewReader(conn)
	for range 2 {
		write(t, conn, "GET "+subscriptionsPath+" HTTP/1.1\r\nHost: hub.example\r\n"+bearer(f.subscribeToken("*"))+"\r\n\r\n")
		resp := readResponseFrom(t, conn, r, http.MethodGet)
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("list = %d, %v", resp.StatusCode, err)
		}
		<-time.After(100 * time.Millisecond)
		write(t, conn, "HEAD "+subscriptionsPath+" HTTP/1.1\r\nHost: hub.example\r\n\r\n")
		if resp = readResponseFrom(t, conn, r, http.MethodHead); resp.StatusCode != http.StatusUnauthorized {
			t.Fatalf("the next request = %d", resp.StatusCode)
		}
	}
}

// slowCrowd is how many streams of a crowd make a list that no system takes in for a reader that does not read.
const slowCrowd = 100

// crowdMatchers is how many matchers each stream of a crowd has.
const crowdMatchers = 250

// crowd opens streams with many matchers.
func (f *fixture) crowd(streams int) {
	f.tb.Helper()
	var query strings.Builder
	for i := range crowdMatchers {
		query.WriteString("&match=" + crowdMatcher(i))
	}
	for range streams {
		f.subscribe(query.String())
	}
}

func crowdMatcher(i int) string { return fmt.Sprintf("matcher-%d-%s", i, strings.Repeat("x", 20)) }

// BenchmarkSubscriptions measures a request for 10,000 subscriptions, its client included.
func BenchmarkSubscriptions(b *testing.B) {
	f := start(b, watched)
	f.crowd(40)
	all := bearer(f.subscribeToken("*"))
	b.ReportAllocs()
	for b.Loop() {
		resp := f.send(request{method: http.MethodGet, url: f.base + "/subscriptions", headers: []string{all}})
		n, err := io.Copy(io.Discard, resp.Body)
		must(b, err)
		must(b, resp.Body.Close())
		b.SetBytes(n)
	}
}
