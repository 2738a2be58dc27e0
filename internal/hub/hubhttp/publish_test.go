package hubhttp_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/hub/hubhttp"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
)

func TestPublish_answer(t *testing.T) {
	f := start(t, nil)
	s := f.subscribe("match=T")
	resp := f.post("topic=T&data=hello&type=greeting&id=my-id&retry=1500")
	t.Run("PUB-30 PUB-31 PUB-32 PUB-25", func(t *testing.T) {
		if resp.StatusCode != http.StatusOK || resp.body != "my-id" || resp.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("POST = %d %q %v", resp.StatusCode, resp.body, resp.Header)
		}
		if got := resp.Header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("Cache-Control = %q, want no-store", got)
		}
	})
	t.Run("PUB-01 SSE-05 SSE-06", func(t *testing.T) {
		ev := s.next()
		if ev.ID != "my-id" || ev.Data != "hello" || ev.Type != "greeting" {
			t.Errorf("event = %+v", ev)
		}
	})
	t.Run("PUB-23 an id is made", func(t *testing.T) {
		id := f.publish("topic", "T")
		if !strings.HasPrefix(id, "urn:uuid:") || s.next().ID != id {
			t.Errorf("id = %q", id)
		}
	})
}

// TestPublish_bodies is the table of what bodies mean: status, and the event that a reader of topic T sees.
func TestPublish_bodies(t *testing.T) {
	f := start(t, nil)
	s := f.subscribe("match=T")
	compact := f.publishToken("*")
	for _, tc := range []struct {
		row, body string
		status    int
		data      string // of the event, when 200 and for T
	}{
		{"PUB-05 no topic", "data=x", 400, ""},
		{"PUB-05 empty body", "", 400, ""},
		{"PUB-04 data not UTF-8", "topic=T&data=%FF", 400, ""},
		{"TOPIC-01", "topic=%FF", 400, ""},
		{"TOPIC-01 surrogate", "topic=%ED%A0%80", 400, ""},
		{"TOPIC-02 NUL", "topic=a%00b", 400, ""},
		{"TOPIC-03", "topic=a%C2%85b", 400, ""},
		{"TOPIC-04", "topic=a%7Fb", 400, ""},
		{"TOPIC-05", "topic=a%E2%80%8Bb", 400, ""},
		{"TOPIC-06", "topic=T&topic=%C2%A0%E2%80%A8&data=odd", 200, "odd"},
		{"TOPIC-08 a bad alternate", "topic=T&topic=a%E2%80%8B", 400, ""},
		{"PUB-07 plus", "topic=T&data=a+b", 200, "a b"},
		{"PUB-07 escaped plus", "topic=T&data=a%2Bb", 200, "a+b"},
		{"PUB-07 escaped name", "%74opic=T&data=n", 200, "n"},
		{"PUB-08 alternates", "topic=A&topic=T&data=alt", 200, "alt"},
		{"PUB-10 wildcard", "topic=*", 400, ""},
		{"PUB-10 wildcard as alternate", "topic=T&topic=*", 400, ""},
		{"PUB-18 unknown field", "topic=T&Private=on&data=pub", 200, "pub"},
		{"PUB-19", "topic=T&id=%23x", 400, ""},
		{"PUB-20", "topic=T&id=earliest", 400, ""},
		{"PUB-20 other word", "topic=T&id=Earliest&data=E", 200, "E"},
		{"PUB-21", "topic=T&id=a%0Ab", 400, ""},
		{"PUB-21 format character", "topic=T&id=a%E2%80%8B", 400, ""},
		{"PUB-22", "topic=T&id=did:example:1&data=did", 200, "did"},
		{"PUB-26", "topic=T&type=a%0Db", 400, ""},
		{"PUB-27", "topic=T&type=mercure", 400, ""},
		{"PUB-27 other word", "topic=T&type=Mercure&data=M", 200, "M"},
		{"PUB-28", "topic=T&retry=-1", 400, ""},
		{"PUB-28 plus", "topic=T&retry=+1", 400, ""},
		{"PUB-28 full-width digit", "topic=T&retry=%EF%BC%91", 400, ""},
		{"PUB-28 zero", "topic=T&retry=0&data=r", 200, "r"},
		{"PUB-28 leading zeros", "topic=T&retry=007&data=r7", 200, "r7"},
		{"PUB-29", "foo=bar&topic=T&Topic=x&data2=y&data=u", 200, "u"},
		{"PUB-36 thousand digits", "topic=T&data=d&retry=" + strings.Repeat("9", 1000), 200, "d"},
		{"PUB-36 empty id", "topic=T&id=&data=e", 200, "e"},
		{"PUB-36 repeated fields", "topic=T&data=1&data=2&id=&id=x&type=a&type=b", 200, "1"},
		{"PUB-37 semicolon", "topic=T&data=a;b", 200, "a;b"},
		{"PUB-37 stray percent", "topic=T&data=100%", 200, "100%"},
		{"PUB-37 percent letters", "topic=T&data=%zz", 200, "%zz"},
		{"PUB-37 further equals sign", "topic=T&data=a=b", 200, "a=b"},
		{"PUB-37 empty pairs", "&&topic=T&&data=p&", 200, "p"},
		{"PUB-37 raw UTF-8", "topic=T&data=é", 200, "é"},
		{"SSE-08", "topic=T&data=a%0D%0Ab%0Dc%0A%0Ad", 200, "a\nb\nc\n\nd"},
		{"SSE-11", "topic=T", 200, ""},
		{"SSE-12", "topic=T&data=x%0Aevent:+evil%0Aid:+evil%0A%0Adata:+y", 200, "x\nevent: evil\nid: evil\n\ndata: y"},
	} {
		t.Run(tc.row, func(t *testing.T) {
			resp := f.post(tc.body, formType, bearer(compact))
			if resp.StatusCode != tc.status {
				t.Fatalf("POST %q = %d %s, want %d", tc.body, resp.StatusCode, resp.body, tc.status)
			}
			if tc.status != 200 {
				if p := resp.problem(t); p.Status != 400 || p.RequestID == "" {
					t.Errorf("problem = %+v", p)
				}
				if got := resp.Header.Get("WWW-Authenticate"); got != "" {
					t.Errorf("ERR-14 WWW-Authenticate = %q, want none", got)
				}
				return
			}
			if ev := s.next(); ev.Data != tc.data || ev.ID != resp.body {
				t.Errorf("event = %+v, want data %q and id %q (PUB-33: refused ones dispatch nothing)", ev, tc.data, resp.body)
			}
		})
	}
}

func TestPublish_dataArrivesAsItIs(t *testing.T) {
	f := start(t, nil)
	s := f.subscribe("match=T")
	for _, data := range []string{
		"", " ", "\x00", "\ufeffbom", "a\u2028b\u2029c\u0085d", ": no comment", "id: 1", "é日本😀", "\n", "a\n\n\nb", "  a\n b", "a\n",
		strings.Repeat("0123456789abcdef", 4<<10),
	} {
		resp := f.post("topic=T&data=" + url.QueryEscape(data))
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("SSE-04 POST %.20q = %d %s", data, resp.StatusCode, resp.body)
		}
		if ev := s.next(); ev.Data != data || ev.ID != resp.body {
			t.Errorf("SSE-04 data %.20q arrived as %.20q with id %q, want %q", data, ev.Data, ev.ID, resp.body)
		}
	}
}

func TestPublish_anyTopicSelects(t *testing.T) {
	f := start(t, nil)
	streams := map[string]*stream{
		"PUB-09 the canonical topic":         f.subscribe("match=/a"),
		"PUB-09 an alternate":                f.subscribe("match=/b"),
		"EXACT-01 an alternate, match_exact": f.subscribe("match_exact=/b"),
		"SUB-33 both":                        f.subscribe("match=/a&match_exact=/b&match_urlpattern=/:x"),
	}
	first, second := f.post("topic=/a&topic=/b&data=1").body, f.post("topic=/b&topic=/a&data=2").body
	for name, s := range streams {
		if one, two := s.next(), s.next(); one.ID != first || two.ID != second {
			t.Errorf("%s: events %q, %q, want %q, %q", name, one.ID, two.ID, first, second)
		}
	}
}

func TestPublish_mediaTypes(t *testing.T) {
	f := start(t, nil)
	compact := f.publishToken("*")
	for _, tc := range []struct {
		row     string
		headers []string
		status  int
	}{
		{"PUB-03 parameters and case", []string{"Content-Type: Application/X-WWW-Form-UrlEncoded; charset=UTF-8"}, 200},
		{"PUB-03 JSON", []string{"Content-Type: application/json"}, 415},
		{"PUB-03 multipart", []string{"Content-Type: multipart/form-data; boundary=x"}, 415},
		{"PUB-03 none", nil, 415},
		{"PUB-03 two", []string{formType, "Content-Type: application/json"}, 415},
		{"PUB-03 compressed", []string{formType, "Content-Encoding: gzip"}, 415},
	} {
		t.Run(tc.row, func(t *testing.T) {
			resp := f.post("topic=T", append(tc.headers, bearer(compact))...)
			if resp.StatusCode != tc.status {
				t.Errorf("POST = %d %s, want %d", resp.StatusCode, resp.body, tc.status)
			}
		})
	}
}

func TestPublish_queryIsNotRead(t *testing.T) {
	f := start(t, nil)
	compact := f.publishToken("*")
	for row, q := range map[string]request{
		"PUB-06":  {url: f.base + "?topic=T", body: "data=x", headers: []string{formType, bearer(compact)}},
		"AUTH-12": {url: f.base + "?access_token=" + compact, body: "topic=T", headers: []string{formType}},
		"AUTH-13": {url: f.base, body: "topic=T&access_token=" + compact, headers: []string{formType}},
	} {
		q.method = http.MethodPost
		want := 401
		if row == "PUB-06" {
			want = 400
		}
		if resp := f.do(q); resp.StatusCode != want {
			t.Errorf("%s POST = %d, want %d", row, resp.StatusCode, want)
		}
	}
}

// TestPublish_reservedNamespace is the table of the NS rows, with a token that grants only topic T: what is reserved is a 400
// whatever the token, and what is not is a 403.
func TestPublish_reservedNamespace(t *testing.T) {
	const p = "/.well-known/mercure"
	f := start(t, nil)
	weak, strong := f.publishToken("T"), f.publishToken("*")
	reserved := map[string][]string{
		"NS-01": {p, p + "/", p + "/x", p + "/subscriptions/exact/a/b"},
		"NS-02": {"mercure", "./mercure/x", "../.well-known/mercure", "?q", "#f", "", hubURL},
		"NS-03": {"http://h.example" + p, "https://h.example" + p, "ftp://h.example" + p, "foo://h.example" + p, "foo:" + p},
		"NS-04": {"//any.example" + p, "//any.example:8443" + p, "//u:p@any.example" + p},
		"NS-05": {p + "?x=1", p + "#x"},
		"NS-06": {
			"/.well-known/x/../mercure", "/.well-known/./mercure", "/.well-known/x/%2e%2e/mercure", "/.well-known/x/.%2E/mercure",
			"/.well-known/%2e/mercure",
		},
		"NS-07": {"/.well-known/%6Dercure", "/.well-known/%6dercure/x", "/%2Ewell%2Dknown/mercure/x"},
		"NS-08": {`\.well-known\mercure`, `https:\\h\.well-known\mercure`, "http:/h.example" + p, "https:///h.example" + p, " " + p + " ", "HTTPS://h" + p},
	}
	legal := map[string][]string{
		"NS-09": {
			p + "x", p + ";x", p + "%2Fx", "/.well-known/%256Dercure", "/.WELL-KNOWN/mercure", "/x" + p, "/.well-known//mercure",
		},
		"NS-10": {"https://[bad" + p, "https://h:99999" + p},
	}
	for row, topics := range reserved {
		for _, topic := range topics {
			t.Run(row+" "+topic, func(t *testing.T) {
				for _, compact := range []string{weak, strong} {
					resp := f.post("topic="+url.QueryEscape(topic), formType, bearer(compact))
					if resp.StatusCode != http.StatusBadRequest {
						t.Errorf("POST %q = %d, want 400", topic, resp.StatusCode)
					}
				}
				resp := f.post("topic=T&topic="+url.QueryEscape(topic), formType, bearer(weak))
				if resp.StatusCode != http.StatusBadRequest {
					t.Errorf("NS-11 POST alternate %q = %d, want 400", topic, resp.StatusCode)
				}
			})
		}
	}
	for row, topics := range legal {
		for _, topic := range topics {
			t.Run(row+" "+topic, func(t *testing.T) {
				if resp := f.post("topic="+url.QueryEscape(topic), formType, bearer(strong)); resp.StatusCode != http.StatusOK {
					t.Errorf("POST %q = %d, want 200", topic, resp.StatusCode)
				}
				if resp := f.post("topic="+url.QueryEscape(topic), formType, bearer(weak)); resp.StatusCode != http.StatusForbidden {
					t.Errorf("POST %q without grant = %d, want 403", topic, resp.StatusCode)
				}
			})
		}
	}
}

func TestPublish_namespaceFollowsTheHubURL(t *testing.T) {
	f := start(t, func(s *settings) {
		s.options.PublicURL = "https://hub.example/live/hub"
		s.options.Resource = hubURL
	})
	for topic, want := range map[string]int{
		"/live/hub": 400, "/live/hub/x": 400, "hub": 400, "/.well-known/mercure": 200, "/live/hubs": 200,
	} {
		if resp := f.post("topic=" + url.QueryEscape(topic)); resp.StatusCode != want {
			t.Errorf("NS-12 POST %q = %d, want %d", topic, resp.StatusCode, want)
		}
	}
}

// TestPublish_orderOfRefusals pins 401 before 400 before 413 before 403.
func TestPublish_orderOfRefusals(t *testing.T) {
	f := start(t, func(s *settings) {
		s.options.Limits = mercure.DefaultLimits()
		s.options.Limits.Topics = 2
		s.options.Limits.BodyBytes = 1000
	})
	weak := bearer(f.publishToken("other"))
	for _, tc := range []struct {
		name, body string
		headers    []string
		status     int
	}{
		{"no token, bad body", "data=%FF", []string{formType}, 401},
		{"no token, wrong media type", "{}", []string{"Content-Type: application/json"}, 401},
		{"bad token, bad body", "data=%FF", []string{formType, bearer("a.b.c")}, 401},
		{"no token, large body", strings.Repeat("x", 2000), []string{formType}, 401},
		{"bad body, no grant", "topic=T&type=mercure", []string{formType, weak}, 400},
		{"broken rule and exceeded limit", "topic=T&topic=T&topic=T&id=%23", []string{formType, weak}, 400},
		{"NS-01 reserved topic and exceeded limit", "topic=/.well-known/mercure&topic=T&topic=T", []string{formType, weak}, 400},
		{"exceeded limit, no grant", "topic=T&topic=T&topic=T", []string{formType, weak}, 413},
		{"large body, no grant", "topic=T&data=" + strings.Repeat("x", 2000), []string{formType, weak}, 413},
		{"no grant", "topic=T", []string{formType, weak}, 403},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if resp := f.post(tc.body, tc.headers...); resp.StatusCode != tc.status {
				t.Errorf("POST = %d %s, want %d", resp.StatusCode, resp.body, tc.status)
			}
		})
	}
}

func TestPublish_limits(t *testing.T) {
	f := start(t, nil)
	s := f.subscribe("match=T")
	for _, tc := range []struct {
		row, body string
		status    int
	}{
		{"LIM-06", "topic=T&data=" + strings.Repeat("x", 2<<20), 413},
		{"LIM-07 topics", strings.Repeat("topic=T&", 1001), 413},
		{"LIM-07 very many topics", strings.Repeat("topic=a&", 100_000), 413},
		{"LIM-07 topic", "topic=" + strings.Repeat("x", 8<<10+1), 413},
		{"LIM-07 id", "topic=T&id=" + strings.Repeat("x", 1<<10+1), 413},
		{"LIM-07 type", "topic=T&type=" + strings.Repeat("x", 1<<10+1), 413},
		{"LIM-12", "topic=T" + strings.Repeat("&topic=a", 9) + "&data=" + strings.Repeat("x", 64<<10), 200},
	} {
		t.Run(tc.row, func(t *testing.T) {
			if resp := f.post(tc.body); resp.StatusCode != tc.status {
				t.Errorf("POST = %d %s, want %d", resp.StatusCode, resp.body, tc.status)
			}
		})
	}
	if ev := s.next(); len(ev.Data) != 64<<10 {
		t.Errorf("PUB-33 the first event has %d bytes, want the only one that was accepted", len(ev.Data))
	}
}

func TestPublish_chunkedBodyIsBoundedToo(t *testing.T) {
	f := start(t, nil)
	conn := dial(t, f.address)
	write(t, conn, "POST /.well-known/mercure HTTP/1.1\r\nHost: x\r\n"+formType+"\r\n"+bearer(f.publishToken("*"))+
		"\r\nTransfer-Encoding: chunked\r\n\r\n")
	chunk := fmt.Sprintf("%x\r\n%s\r\n", 64<<10, strings.Repeat("x", 64<<10))
	go func() {
		for range 17 { // the hub stops reading after 1 MiB
			if _, err := conn.Write([]byte(chunk)); err != nil {
				return
			}
		}
	}()
	if status := readStatus(t, conn); status != 413 {
		t.Errorf("LIM-06 chunked body = %d, want 413", status)
	}
}

func TestPublish_slowBody(t *testing.T) {
	f := start(t, func(s *settings) { s.slowest = 50 * time.Millisecond })
	resp := f.exchange(t, "POST /.well-known/mercure HTTP/1.1", "Host: x", formType, bearer(f.publishToken("*")), "Content-Length: 10")
	if resp.StatusCode != http.StatusRequestTimeout {
		t.Errorf("POST with a body that never comes = %d, want 408", resp.StatusCode)
	}
}

func TestPublish_grants(t *testing.T) {
	f := start(t, nil)
	s := f.subscribe("match=A&match=B")
	one := f.publishToken("A")
	for _, tc := range []struct {
		row, body, compact string
		status             int
	}{
		{"ERR-06", "topic=B", one, 403},
		{"PRIV-02", "topic=A&topic=B", one, 403},
		{"PRIV-02 order", "topic=B&topic=A", one, 403},
		{"PRIV-04", "topic=B&private", one, 403},
		{"RAR-03 no details", "topic=A", f.mint(f.publisher, nil), 403},
		{"PRIV-08 a subscribe grant of the authorization server", "topic=A", f.mint(f.combined, nil, grant("subscribe", "*")), 403},
		{"TOK-26 the subscriber's key", "topic=A", f.subscribeToken("*"), 401},
		{"PRIV-02 granted", "topic=A&data=granted", one, 200},
	} {
		t.Run(tc.row, func(t *testing.T) {
			resp := f.post(tc.body, formType, bearer(tc.compact))
			if resp.StatusCode != tc.status {
				t.Fatalf("POST = %d %s, want %d", resp.StatusCode, resp.body, tc.status)
			}
			want := map[int]string{
				200: "",
				401: `Bearer error="invalid_token", resource_metadata="` + metadataURL + `"`,
				403: `Bearer error="insufficient_scope", resource_metadata="` + metadataURL + `"`,
			}[tc.status]
			if got := resp.Header.Get("WWW-Authenticate"); got != want {
				t.Errorf("ERR-09 ERR-10 WWW-Authenticate = %q, want %q", got, want)
			}
		})
	}
	s.wantData("granted")
}

func TestPublish_cookieForgery(t *testing.T) {
	f := start(t, func(s *settings) { s.options.PublishOrigins = []string{"https://admin.example"} })
	byDefault := start(t, nil)
	s := f.subscribe("match=T")
	compact := f.publishToken("*")
	for _, tc := range []struct {
		row     string
		headers []string
		status  int
	}{
		{"SEC-06 listed Origin", []string{"Origin: https://admin.example"}, 200},
		{"SEC-06 listed Referer", []string{"Referer: https://admin.example/page?x"}, 200},
		{"SEC-05 foreign Origin", []string{"Origin: https://evil.example"}, 403},
		{"SEC-05 allowed to read is not allowed to publish", []string{"Origin: " + pageOrigin}, 403},
		{"SEC-05 foreign Origin, good Referer", []string{"Origin: https://evil.example", "Referer: https://admin.example/"}, 403},
		{"SEC-05 foreign Referer", []string{"Referer: https://evil.example/https://admin.example"}, 403},
		{"SEC-07 neither", nil, 403},
		{"SEC-13 null", []string{"Origin: null", "Referer: https://admin.example/"}, 403},
	} {
		t.Run(tc.row, func(t *testing.T) {
			resp := f.post("topic=T&data=x", append([]string{formType, cookie(compact)}, tc.headers...)...)
			if resp.StatusCode != tc.status {
				t.Fatalf("POST = %d %s, want %d", resp.StatusCode, resp.body, tc.status)
			}
			if tc.status == 403 {
				if got := resp.Header.Get("WWW-Authenticate"); got != "" {
					t.Errorf("WWW-Authenticate = %q, want none: no token is missing anything", got)
				}
				resp.problem(t)
			}
		})
	}
	s.wantData("x", "x")
	t.Run("SEC-08 the header needs no Origin", func(t *testing.T) {
		if resp := f.post("topic=T", formType, bearer(compact), "Origin: https://evil.example"); resp.StatusCode != http.StatusOK {
			t.Errorf("POST = %d, want 200", resp.StatusCode)
		}
	})
	t.Run("SEC-06 by default the readers' origins and the hub's own", func(t *testing.T) {
		for origin, want := range map[string]int{pageOrigin: 200, "https://hub.example": 200, "https://admin.example": 403} {
			resp := byDefault.post("topic=T", formType, cookie(byDefault.publishToken("*")), "Origin: "+origin)
			if resp.StatusCode != want {
				t.Errorf("POST from %s = %d, want %d", origin, resp.StatusCode, want)
			}
		}
	})
	t.Run("a bad cookie is 401 before its origin matters", func(t *testing.T) {
		if resp := f.post("topic=T", formType, cookie("a.b.c")); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("POST = %d, want 401", resp.StatusCode)
		}
	})
}

func TestRegister_refusesBadOptions(t *testing.T) {
	for name, change := range map[string]func(*hubhttp.Options){
		"relative URL":      func(o *hubhttp.Options) { o.PublicURL = "/hub" },
		"URL without path":  func(o *hubhttp.Options) { o.PublicURL = "https://hub.example" },
		"URL with query":    func(o *hubhttp.Options) { o.PublicURL = hubURL + "?x" },
		"URL with user":     func(o *hubhttp.Options) { o.PublicURL = "https://u@hub.example/hub" },
		"URL with wildcard": func(o *hubhttp.Options) { o.PublicURL = "https://hub.example/*" },
		"origin with path":  func(o *hubhttp.Options) { o.CORSOrigins = []string{"https://a.example/"} },
		"wildcard origin":   func(o *hubhttp.Options) { o.CORSOrigins = []string{"*"} },
		"publish origin":    func(o *hubhttp.Options) { o.PublishOrigins = []string{"a.example"} },
		"cookie name":       func(o *hubhttp.Options) { o.CookieName = "a b" },
		"resource":          func(o *hubhttp.Options) { o.Resource = "hub" },
		"resource fragment": func(o *hubhttp.Options) { o.Resource = hubURL + "#" },
		"issuer":            func(o *hubhttp.Options) { o.AuthorizationServers = []string{"auth"} },
	} {
		t.Run(name, func(t *testing.T) {
			f := newBare(t)
			o := hubhttp.Options{PublicURL: hubURL}
			change(&o)
			if err := hubhttp.Register(f.echo, o, f.dependencies); err == nil {
				t.Error("Register = nil error, want one")
			}
			if diff := cmp.Diff(0, len(f.echo.Routes())); diff != "" {
				t.Errorf("routes differ (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("missing dependency", func(t *testing.T) {
		f := newBare(t)
		if err := hubhttp.Register(f.echo, hubhttp.Options{PublicURL: hubURL}, hubhttp.Dependencies{}); err == nil {
			t.Error("Register = nil error, want one")
		}
	})
}
