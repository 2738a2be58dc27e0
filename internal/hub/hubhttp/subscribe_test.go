package hubhttp_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/hub/hubhttp"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
)

const queryMethod = "QUERY"

func TestSubscribe_headers(t *testing.T) {
	f := start(t, nil)
	s := f.subscribe("match=T")
	h := s.resp.Header
	for name, want := range map[string]string{
		"Content-Type":          "text/event-stream",
		"Cache-Control":         "no-store, no-transform",
		"X-Accel-Buffering":     "no",
		"Mercure-Last-Event-Id": "",
		"Last-Event-Id":         "",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("SSE-01 SSE-03 REC-18 %s = %q, want %q", name, got, want)
		}
	}
	if h.Get("X-Request-Id") == "" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Vary") != "Origin" {
		t.Errorf("the middleware's fields are missing: %v", h)
	}
}

// TestSubscribe_queries is the table of what queries mean: the status, and a topic that the stream gets.
func TestSubscribe_queries(t *testing.T) {
	f := start(t, nil)
	compact := f.subscribeToken("*")
	for _, tc := range []struct {
		row, query string
		status     int
		topic      string
	}{
		{"SUB-01", "match=T", 200, "T"},
		{"SUB-12", "match_Exact=T", 400, ""},
		{"SUB-12", "match_URLPattern=T", 400, ""},
		{"SUB-13", "match=A&match_exact=B&match_urlpattern=https://c.example/:x", 200, "https://c.example/1"},
		{"SUB-15", "match=a+b", 200, "a b"},
		{"SUB-16", "match=a;b", 200, "a;b"},
		{"SUB-16 name", "match=T&x=1;match_nope=2", 200, "T"},
		{"SUB-17", "match=100%", 200, "100%"},
		{"SUB-17", "match=%zz", 200, "%zz"},
		{"SUB-18", "match=a=b", 200, "a=b"},
		{"SUB-19", "&&match=T&", 200, "T"},
		{"SUB-20", "m%61tch=T", 200, "T"},
		{"SUB-20", "%6Datch_nope=x", 400, ""},
		{"SUB-21", "match=T&match_nope", 400, ""},
		{"SUB-23", "Match=T", 400, ""},
		{"SUB-23", "match=T&mAtCh_exact=T", 400, ""},
		{"SUB-24", "match=T&matches=1", 400, ""},
		{"SUB-24", "match=T&match_=x", 400, ""},
		{"SUB-24", "match=T&match[]=x", 400, ""},
		{"SUB-25", "match=T&foo=1&_match=2&topic=x", 200, "T"},
		{"SUB-26", "match=%FF", 400, ""},
		{"SUB-27", "match=a%00", 400, ""},
		{"SUB-28", "match=a%7F", 400, ""},
		{"SUB-29", "match_urlpattern=https://e.example/%EF%BB%BF", 400, ""},
		{"SUB-30", "match_urlpattern=https://e.example/(", 400, ""},
		{"SUB-30", "match_urlpattern=https://e.example/:x/:x", 400, ""},
		{"SUB-31", "match=T&match=a%00", 400, ""},
		{"SUB-38", "", 400, ""},
		{"SUB-38 of older versions", "topic=T", 400, ""},
		{"MATCH-05", "match=*", 200, "https://[bad/x"},
		{"MATCH-06", "match_urlpattern=*", 200, "plain words"},
		{"MATCH-08", "match_nope=*", 400, ""},
		{"URLP-02", "match_urlpattern=/books/:id", 200, "https://hub.example/books/1"},
		{"URLP-03", "match_urlpattern=/books/:id", 200, "/books/1"},
		{"raw UTF-8", "match=é", 200, "é"},
	} {
		t.Run(tc.row+" "+tc.query, func(t *testing.T) {
			q := request{method: http.MethodGet, url: f.base + "?" + tc.query, headers: []string{bearer(compact)}}
			if tc.status != 200 {
				resp := f.do(q)
				if resp.StatusCode != tc.status {
					t.Fatalf("GET = %d %s, want %d", resp.StatusCode, resp.body, tc.status)
				}
				resp.problem(t)
				return
			}
			s := f.open(q)
			f.publish("topic", tc.topic, "data", "of "+tc.topic)
			s.wantData("of " + tc.topic)
		})
	}
}

func TestSubscribe_queryMethod(t *testing.T) {
	f := start(t, nil)
	first := f.publish("topic", "A", "data", "1")
	second := f.publish("topic", "A", "data", "2")
	third := f.publish("topic", "A", "data", "3")
	compact := f.subscribeToken("*")
	query := func(rawQuery, body string, headers ...string) request {
		return request{
			method: queryMethod, url: f.base + "?" + rawQuery, body: body,
			headers: append([]string{bearer(compact)}, headers...),
		}
	}
	t.Run("SUB-02 SUB-06 the union of both", func(t *testing.T) {
		s := f.open(query("match=A", "match=B", formType))
		f.publish("topic", "B", "data", "b")
		f.publish("topic", "A", "data", "a")
		s.wantData("b", "a")
	})
	t.Run("a body is not needed", func(t *testing.T) {
		s := f.open(query("match=C", ""))
		f.publish("topic", "C", "data", "c")
		s.wantData("c")
	})
	for _, tc := range []struct {
		row  string
		q    request
		want int
	}{
		{"SUB-03 JSON", query("match=A", "{}", "Content-Type: application/json"), 415},
		{"SUB-03 no type", query("match=A", "match=B"), 415},
		{"SUB-04", query("", "match_nope=x", formType), 400},
		{"SUB-04 other case", query("", "Match=x", formType), 400},
		{"SUB-05", query("", "match=a%00", formType), 400},
		{"SUB-05 pattern", query("", "match_urlpattern=%28", formType), 400},
		{"SUB-07", query("match_nope=x", "match=B", formType), 400},
		{"LIM-03 matchers", query("", strings.Repeat("match=a&", 257), formType), 400},
		{"LIM-03 very many", query("", strings.Repeat("match=a&", 100_000), formType), 400},
		{"LIM-03 a body beyond all limits", query("", strings.Repeat("match=a&", 200_000), formType), 400},
	} {
		t.Run(tc.row, func(t *testing.T) {
			if resp := f.do(tc.q); resp.StatusCode != tc.want {
				t.Errorf("QUERY = %d %s, want %d", resp.StatusCode, resp.body, tc.want)
			}
		})
	}
	for _, tc := range []struct {
		row    string
		q      request
		cursor string
		data   []string
	}{
		{"SUB-08", query("", "match=A&last_event_id="+first, formType), first, []string{"2", "3"}},
		{"SUB-09", query("last_event_id="+second, "match=A&last_event_id="+first, formType), second, []string{"3"}},
		{"SUB-10", query("last_event_id="+first, "match=A&last_event_id="+first, formType, "Last-Event-ID: "+second), second, []string{"3"}},
		{"REC-25", query("last_event_id="+third, "match=Z", formType), third, nil},
	} {
		t.Run(tc.row, func(t *testing.T) {
			s := f.open(tc.q)
			if got := s.resp.Header.Get("Mercure-Last-Event-ID"); got != tc.cursor {
				t.Errorf("Mercure-Last-Event-ID = %q, want %q", got, tc.cursor)
			}
			s.wantData(tc.data...)
		})
	}
}

func TestSubscribe_resume(t *testing.T) {
	f := start(t, nil)
	ids := []string{"urn:uuid:1", "é-1", "a%2Bb+c d", "last"}
	for i, id := range ids {
		f.publish("topic", "T", "id", id, "data", string(rune('0'+i)))
	}
	compact := f.subscribeToken("*")
	param := func(id string) request {
		return request{url: f.base + "?match=T&last_event_id=" + url.QueryEscape(id), headers: []string{bearer(compact)}}
	}
	header := func(id string) request {
		return request{url: f.base + "?match=T", headers: []string{bearer(compact), "Last-Event-ID: " + id}}
	}
	for _, tc := range []struct {
		row    string
		q      request
		cursor string
		data   []string
	}{
		{"REC-05 REC-15", param(ids[0]), ids[0], []string{"1", "2", "3"}},
		{"REC-06", request{url: param("last").url, headers: header(ids[0]).headers}, ids[0], []string{"1", "2", "3"}},
		{"REC-11 REC-16", param("earliest"), "earliest", []string{"0", "1", "2", "3"}},
		{"REC-17", param("unknown"), "earliest", []string{"0", "1", "2", "3"}},
		{"REC-19 empty parameter", param(""), "earliest", []string{"0", "1", "2", "3"}},
		{"REC-24 UTF-8 in the parameter", param("é-1"), "é-1", []string{"2", "3"}},
		{"REC-24 UTF-8 in the header", header("é-1"), "é-1", []string{"2", "3"}},
		{"REC-24 Latin-1 in the header", header("\xe9-1"), "é-1", []string{"2", "3"}},
		{"REC-24 percent, plus, space in the parameter", param(ids[2]), ids[2], []string{"3"}},
		{"REC-24 percent, plus, space in the header", header(ids[2]), ids[2], []string{"3"}},
		{"REC-25", param("last"), "last", nil},
	} {
		t.Run(tc.row, func(t *testing.T) {
			s := f.open(tc.q)
			if got := s.resp.Header.Get("Mercure-Last-Event-ID"); got != tc.cursor {
				t.Errorf("Mercure-Last-Event-ID = %q, want %q", got, tc.cursor)
			}
			s.wantData(tc.data...)
		})
	}
	t.Run("REC-23 other names are no cursors", func(t *testing.T) {
		for _, name := range []string{"lastEventID", "lastEventId", "Last-Event-ID"} {
			s := f.subscribe("match=T&" + name + "=urn:uuid:1")
			if _, ok := s.resp.Header["Mercure-Last-Event-Id"]; ok {
				t.Errorf("%s: the answer has a cursor", name)
			}
		}
		if got := strings.Count(f.log.String(), "sends its cursor under a name"); got != 1 {
			t.Errorf("the log mentions it %d times, want once", got)
		}
	})
}

func TestSubscribe_rawCursorBytes(t *testing.T) {
	f := start(t, nil)
	f.publish("topic", "T", "id", "é-1", "data", "1")
	f.publish("topic", "T", "data", "2")
	resp := f.exchange(t, "GET /.well-known/mercure?match=T HTTP/1.1", "Host: anything", "Last-Event-ID: \xc3\xa9-1")
	if got := resp.Header.Get("Mercure-Last-Event-ID"); resp.StatusCode != http.StatusOK || got != "\xc3\xa9-1" {
		t.Errorf("REC-24 %d, Mercure-Last-Event-ID = % x, want the UTF-8 bytes", resp.StatusCode, got)
	}
}

func TestSubscribe_authorization(t *testing.T) {
	f := start(t, nil)
	t.Run("AUTH-02 AUTH-03 PRIV-01 anonymous readers get public updates", func(t *testing.T) {
		s := f.open(request{url: f.base + "?match=T"})
		f.publish("topic", "T", "data", "private", "private", "on")
		f.publish("topic", "T", "data", "public")
		s.wantData("public")
	})
	t.Run("PRIV-05 PRIV-06 PRIV-12 PRIV-13", func(t *testing.T) {
		s := f.subscribe("match=T", bearer(f.subscribeToken("alt")))
		f.publish("topic", "T", "data", "no grant", "private", "")
		f.publish("topic", "alt", "data", "no route", "private", "")
		f.publish("topic", "T", "topic", "alt", "data", "granted", "private", "0")
		f.publish("topic", "T", "data", "public")
		s.wantData("granted", "public")
	})
	t.Run("REC-09 REC-10 replay is judged by the token of now", func(t *testing.T) {
		q := "match=T&last_event_id=earliest"
		f.open(request{url: f.base + "?" + q}).wantData("public", "public")
		f.subscribe(q).wantData("private", "public", "no grant", "granted", "public")
	})
	t.Run("COOKIE-10 by cookie", func(t *testing.T) {
		s := f.subscribe("match=P", cookie(f.subscribeToken("P")))
		f.publish("topic", "P", "data", "secret", "private", "on")
		s.wantData("secret")
	})
}

func TestSubscribe_refusesBadCredentials(t *testing.T) {
	open := start(t, nil)
	closed := start(t, func(s *settings) { s.options.Anonymous = false })
	expired := func(f *fixture) string { return f.mintExpired() }
	const (
		bare    = `Bearer resource_metadata="` + metadataURL + `"`
		invalid = `Bearer error="invalid_token", resource_metadata="` + metadataURL + `"`
		request = `Bearer error="invalid_request", resource_metadata="` + metadataURL + `"`
	)
	for _, tc := range []struct {
		row       string
		headers   func(f *fixture) []string
		open      int // status on a hub for anonymous readers
		closed    int // status on one that wants tokens
		challenge string
	}{
		{"AUTH-04 ERR-01 ERR-02 none", func(*fixture) []string { return nil }, 200, 401, bare},
		{"AUTH-22 another scheme, good cookie", func(f *fixture) []string {
			return []string{"Authorization: Basic dTpw", cookie(f.subscribeToken("*"))}
		}, 200, 401, bare},
		{"TOK-25 expired", func(f *fixture) []string { return []string{bearer(expired(f))} }, 401, 401, invalid},
		{"AUTH-17 expired cookie", func(f *fixture) []string { return []string{cookie(expired(f))} }, 401, 401, invalid},
		{"empty cookie", func(*fixture) []string { return []string{cookie("")} }, 401, 401, invalid},
		{"AUTH-05 opaque token", func(*fixture) []string { return []string{bearer("opaque")} }, 401, 401, invalid},
		{"TOK-21 broken signature", func(f *fixture) []string {
			c := f.subscribeToken("*")
			return []string{bearer(c[:len(c)-8] + "AAAAAAAA")}
		}, 401, 401, invalid},
		{"TOK-26 the publisher's key", func(f *fixture) []string { return []string{bearer(f.publishToken("*"))} }, 401, 401, invalid},
		{"AUTH-16 bad header, good cookie", func(f *fixture) []string {
			return []string{bearer("a.b.c"), cookie(f.subscribeToken("*"))}
		}, 401, 401, invalid},
		{"AUTH-16 good header, bad cookie", func(f *fixture) []string {
			return []string{bearer(f.subscribeToken("*")), cookie("a.b.c")}
		}, 200, 200, ""},
		{"AUTH-21 no token", func(*fixture) []string { return []string{"Authorization: Bearer"} }, 400, 400, request},
		{"AUTH-21 two tokens", func(*fixture) []string { return []string{"Authorization: Bearer a b"} }, 400, 400, request},
		{"AUTH-25 two fields", func(*fixture) []string { return []string{bearer("a"), bearer("a")} }, 400, 400, request},
		{"two different cookies", func(f *fixture) []string {
			return []string{cookie(f.subscribeToken("*")), cookie("x")}
		}, 400, 400, request},
		{"two equal cookies", func(f *fixture) []string {
			c := f.subscribeToken("*")
			return []string{cookie(c), cookie(c)}
		}, 200, 200, ""},
		{"AUTH-20", func(f *fixture) []string { return []string{"Authorization: bEARER " + f.subscribeToken("*")} }, 200, 200, ""},
		{"reading 12 no subscribe grant", func(f *fixture) []string {
			return []string{bearer(f.mint(f.combined, nil, grant("publish", "*")))}
		}, 200, 200, ""},
	} {
		for name, hub := range map[string]struct {
			f    *fixture
			want int
		}{"open": {open, tc.open}, "closed": {closed, tc.closed}} {
			t.Run(tc.row+" "+name, func(t *testing.T) {
				resp := hub.f.send(request0(hub.f.base+"?match=T", tc.headers(hub.f)))
				defer func() { _ = resp.Body.Close() }()
				if resp.StatusCode != hub.want {
					t.Fatalf("GET = %d, want %d", resp.StatusCode, hub.want)
				}
				want := tc.challenge
				if hub.want == 200 {
					want = ""
				}
				if got := resp.Header.Get("WWW-Authenticate"); got != want {
					t.Errorf("WWW-Authenticate = %q, want %q", got, want)
				}
			})
		}
	}
}

// request0 is a GET.
func request0(target string, headers []string) request {
	return request{method: http.MethodGet, url: target, headers: headers}
}

func TestSubscribe_credentialComesBeforeParameters(t *testing.T) {
	f := start(t, func(s *settings) { s.options.Anonymous = false })
	if got := f.status(request0(f.base+"?match_nope=x", nil)); got != 401 {
		t.Errorf("no token, bad parameter = %d, want 401", got)
	}
	if got := f.status(request0(f.base, []string{bearer("a.b.c")})); got != 401 {
		t.Errorf("bad token, no matcher = %d, want 401", got)
	}
}

func TestSubscribe_endsWhenTheTokenDoes(t *testing.T) {
	f := start(t, nil)
	compact := f.mintFor(1500 * time.Millisecond)
	s := f.subscribe("match=T", bearer(compact))
	s.ended() // PRIV-09: how soon is exact in the engine's timing_test.go
	f.eventually("TOK-14 the refusal of the same token", func() bool {
		return f.status(request0(f.base+"?match=T", []string{bearer(compact)})) == 401
	})
}

func TestSubscribe_head(t *testing.T) {
	f := start(t, func(s *settings) { s.streams = hubhttp.NewConnections(0, 1) })
	held := f.subscribe("match=T")
	for _, tc := range []struct {
		name, query string
		headers     []string
		status      int
	}{
		{"headers of a stream", "match=T&last_event_id=earliest", nil, 200},
		{"bad parameter", "match_nope=x", nil, 400},
		{"no matcher", "", nil, 400},
		{"bad token", "match=T", []string{bearer("a.b.c")}, 401},
	} {
		t.Run(tc.name, func(t *testing.T) {
			resp := f.do(request{method: http.MethodHead, url: f.base + "?" + tc.query, headers: tc.headers})
			if resp.StatusCode != tc.status || resp.body != "" {
				t.Errorf("HEAD = %d %q, want %d without a body", resp.StatusCode, resp.body, tc.status)
			}
			if tc.status == 200 && resp.Header.Get("Content-Type") != "text/event-stream" {
				t.Errorf("Content-Type = %q", resp.Header.Get("Content-Type"))
			}
		})
	}
	if got := f.gauge("cinnabar_hub_subscribers"); got != 1 {
		t.Errorf("T43 open streams = %v, want the one GET", got)
	}
	_ = held
}

func TestSubscribe_methods(t *testing.T) {
	f := start(t, nil)
	for _, method := range []string{"DELETE", "PUT", "PATCH", "PROPFIND", "FOO", "get"} {
		t.Run("SUB-39 "+method, func(t *testing.T) {
			resp := f.do(request{method: method, url: f.base + "?match=T", headers: []string{"Origin: " + pageOrigin}})
			if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "GET, HEAD, OPTIONS, POST, QUERY" {
				t.Errorf("%s = %d, Allow %q", method, resp.StatusCode, resp.Header.Get("Allow"))
			}
			if got := resp.Header.Get("Access-Control-Allow-Origin"); got != pageOrigin {
				t.Errorf("CORS-11 Access-Control-Allow-Origin = %q, want %q", got, pageOrigin)
			}
			resp.problem(t)
		})
	}
	if got := f.status(request0(f.base+"/", nil)); got != 404 {
		t.Errorf("trailing slash = %d, want 404", got)
	}
}

func TestSubscribe_limits(t *testing.T) {
	f := start(t, func(s *settings) {
		s.options.Limits = mercure.DefaultLimits()
		s.options.Limits.URLBytes = 4000
		s.options.Limits.PatternBytes = 100
	})
	for row, query := range map[string]string{
		"LIM-01": strings.Repeat("match=a&", 257),
		"LIM-02": "match=" + strings.Repeat("a", 101),
		"LIM-03": "match=T&x=" + strings.Repeat("a", 5000),
	} {
		if resp := f.do(request0(f.base+"?"+query, nil)); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s = %d, want 400", row, resp.StatusCode)
		}
	}
	if got := f.status(request0(f.base+"?"+strings.Repeat("match=a&", 10), nil)); got != 200 {
		t.Errorf("LIM-12 ten matchers = %d, want 200", got)
	}
}

func TestSubscribe_costOfPatterns(t *testing.T) {
	f := start(t, func(s *settings) {
		s.options.Limits = mercure.DefaultLimits()
		s.options.Limits.URLBytes = 64 << 10
	})
	patterns := func(n int, format string) string {
		var q strings.Builder
		for i := range n {
			q.WriteString("match_urlpattern=" + url.QueryEscape(fmt.Sprintf(format, i)) + "&")
		}
		return q.String()
	}
	for _, tc := range []struct {
		name, query string
		status      int
	}{
		{"URLP-07 hundreds of the largest", patterns(150, "*://*/(%d|[^b]{0,150}[^c]{0,150}[^d]{0,150})"), 400},
		{"URLP-07 a few of the largest", patterns(8, "*://*/(%d|[^b]{0,150}[^c]{0,150}[^d]{0,150})"), 200},
		{"LIM-12 hundreds of numbers", patterns(256, `https://e.example/libraries/%d/books/:id(\d+)`), 200},
		{"LIM-12 many UUIDs", patterns(100, "/%d/:id([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"), 200},
		{"LIM-12 hundreds of names", patterns(256, "https://:host.example/%d/:a/*"), 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := f.status(request0(f.base+"?"+tc.query, nil)); got != tc.status {
				t.Errorf("GET = %d, want %d", got, tc.status)
			}
		})
	}
}

func TestSubscribe_connectionLimits(t *testing.T) {
	f := start(t, func(s *settings) {
		s.streams = hubhttp.NewConnections(2, 3)
		s.trusted = loopback()
	})
	from := func(address string) request {
		return request0(f.base+"?match=T", []string{"X-Forwarded-For: " + address, "Origin: " + pageOrigin})
	}
	first := f.open(from("203.0.113.1"))
	f.open(from("203.0.113.1"))
	resp := f.do(from("203.0.113.1"))
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" || resp.Header.Get("Access-Control-Allow-Origin") != pageOrigin {
		t.Errorf("LIM-05 third stream of an address = %d %v", resp.StatusCode, resp.Header)
	}
	f.open(from("203.0.113.2"))
	if got := f.status(from("203.0.113.3")); got != 429 {
		t.Errorf("LIM-05 fourth stream in total = %d, want 429", got)
	}
	_ = first.resp.Body.Close()
	f.eventually("a place that was given back", func() bool { return f.status(from("203.0.113.1")) == 200 })
}

func TestSubscribe_refusedRequestsGiveTheirPlaceBack(t *testing.T) {
	f := start(t, func(s *settings) { s.streams = hubhttp.NewConnections(0, 1) })
	for range 3 {
		if got := f.status(request0(f.base+"?match_nope=T", nil)); got != 400 {
			t.Errorf("bad request = %d, want 400", got)
		}
	}
	f.open(request0(f.base+"?match=T", nil))
}

func TestSubscribe_whenNoStreamCanBeServed(t *testing.T) {
	f := start(t, func(s *settings) { s.streams = hubhttp.NewConnections(0, 1) })
	f.closed = true
	must(t, f.sinks.Close())
	for range 2 { // the second finds the place of the first
		resp := f.do(request0(f.base+"?match=T", nil))
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
			t.Errorf("GET = %d %v", resp.StatusCode, resp.Header)
		}
		resp.problem(t)
	}
}

func TestSubscribe_draining(t *testing.T) {
	f := start(t, func(s *settings) { s.streams = hubhttp.NewConnections(0, 1) })
	s := f.subscribe("match=T")
	must(t, f.hub.Drain(t.Context()))
	s.ended()
	f.eventually("the end of the stream", func() bool { return f.gauge("cinnabar_hub_subscribers") == 0 })
	for range 2 {
		resp := f.do(request0(f.base+"?match=T", nil))
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "1" {
			t.Errorf("GET while draining = %d %v", resp.StatusCode, resp.Header)
		}
	}
	if resp := f.post("topic=T"); resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("POST while draining = %d %v", resp.StatusCode, resp.Header)
	}
}
