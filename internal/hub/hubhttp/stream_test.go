package hubhttp_test

import (
	"bufio"
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestStream_throughAllMiddleware reads each kind of stream while its handler runs or its connection was taken over: every wrapper on
// the way must let flushes, deadlines and hijacking through.
func TestStream_throughAllMiddleware(t *testing.T) {
	f := start(t, func(s *settings) { s.withTLS, s.hosts = true, []string{"127.0.0.1"} })
	h1 := tlsHTTP1(f)
	defer h1.CloseIdleConnections()
	first := f.publish("topic", "T", "data", "stored")
	for _, tc := range []struct {
		name, url string
		client    *http.Client
		proto     string
	}{
		{"plain HTTP/1.1", f.base, f.client, "HTTP/1.1"},
		{"TLS HTTP/1.1", f.tls, h1, "HTTP/1.1"},
		{"SUB-11 TLS HTTP/2", f.tls, f.h2, "HTTP/2.0"},
	} {
		for _, method := range []string{http.MethodGet, queryMethod} {
			t.Run(tc.name+" "+method, func(t *testing.T) {
				q := request{
					method: method, url: tc.url + "?last_event_id=earliest", client: tc.client,
					headers: []string{bearer(f.subscribeToken("*")), "Origin: " + pageOrigin, "X-Request-Id: chosen-id"},
				}
				if method == queryMethod {
					q.body, q.headers = "match=T", append(q.headers, formType)
				} else {
					q.url += "&match=T"
				}
				s := f.open(q)
				if s.resp.Proto != tc.proto {
					t.Errorf("protocol = %s, want %s", s.resp.Proto, tc.proto)
				}
				for name, want := range map[string]string{
					"Content-Type":                "text/event-stream",
					"Cache-Control":               "no-store, no-transform",
					"X-Accel-Buffering":           "no",
					"Mercure-Last-Event-Id":       "earliest",
					"Access-Control-Allow-Origin": pageOrigin,
					"Vary":                        "Origin",
					"X-Request-Id":                "chosen-id",
					"X-Content-Type-Options":      "nosniff",
					"Strict-Transport-Security":   "max-age=3600",
				} {
					if got := s.resp.Header.Get(name); got != want {
						t.Errorf("%s = %q, want %q", name, got, want)
					}
				}
				if got := s.next(); got.ID != first {
					t.Errorf("first event = %+v, want the stored one", got)
				}
				live := f.publish("topic", "T", "data", "live", "private", "on")
				for s.next().ID != live { // other subtests publish too
					continue
				}
			})
		}
	}
	t.Run("ends cleanly", func(t *testing.T) {
		var streams []*stream
		for _, q := range []request{
			{url: f.base + "?match=T"}, {url: f.tls + "?match=T", client: h1}, {url: f.tls + "?match=T", client: f.h2},
		} {
			streams = append(streams, f.open(q))
		}
		must(t, f.hub.Drain(t.Context()))
		for _, s := range streams {
			s.ended()
		}
	})
	if got := lineWith(f.log.String(), "msg=request ", "route=/.well-known/mercure", "method=QUERY"); !strings.Contains(got, "status=200") {
		t.Errorf("access log line = %q", got)
	}
}

// tlsHTTP1 returns a client that declines HTTP/2.
func tlsHTTP1(f *fixture) *http.Client {
	config := f.h2.Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = nil
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, Protocols: protocols}}
}

func TestStream_HTTP10(t *testing.T) {
	f := start(t, nil)
	conn := dial(t, f.address)
	write(t, conn, "GET /.well-known/mercure?match=T HTTP/1.0\r\n\r\n")
	resp := readResponse(t, conn, http.MethodGet)
	if resp.StatusCode != http.StatusOK || len(resp.TransferEncoding) != 0 {
		t.Fatalf("GET = %d, transfer encoding %v, want a plain body", resp.StatusCode, resp.TransferEncoding)
	}
	f.publish("topic", "T", "data", "old")
	body := bufio.NewReader(resp.Body)
	for {
		line, err := body.ReadString('\n')
		must(t, err)
		if strings.TrimSpace(line) == "data: old" {
			return
		}
	}
}

func TestStream_outlivesTheTimeForItsBody(t *testing.T) {
	f := start(t, func(s *settings) {
		s.slowest, s.engine.Heartbeat, s.withTLS = 100*time.Millisecond, 50*time.Millisecond, true
	})
	conn := dial(t, f.address)
	write(t, conn, "QUERY /.well-known/mercure HTTP/1.0\r\n"+formType+"\r\nContent-Length: 7\r\n\r\nmatch=T")
	old := readResponse(t, conn, queryMethod)
	q := request{method: queryMethod, body: "match=T", headers: []string{formType}}
	plain, secure := q, q
	plain.url, secure.url, secure.client = f.base, f.tls, f.h2
	bodies := map[string]*http.Response{"HTTP/1.0": old, "HTTP/1.1": f.open(plain).resp, "HTTP/2": f.open(secure).resp}
	for name, resp := range bodies {
		r := bufio.NewReader(resp.Body)
		for comments := 0; comments < 6; {
			line, err := r.ReadString('\n')
			if err != nil {
				t.Fatalf("%s stream ended after %d comments: %v", name, comments, err)
			}
			if strings.HasPrefix(line, ":") {
				comments++
			}
		}
	}
}

func TestStream_keepAlive(t *testing.T) {
	f := start(t, func(s *settings) { s.engine.Heartbeat = 100 * time.Millisecond })
	s := f.open(request{url: f.base + "?match=T"})
	body := bufio.NewReader(s.resp.Body)
	comments := 0
	for comments < 3 {
		line, err := body.ReadString('\n')
		must(t, err)
		if strings.HasPrefix(line, ":") {
			comments++
		}
	}
}

func TestStream_pipelinedBytesAreNotTakenForABody(t *testing.T) {
	f := start(t, nil)
	conn := dial(t, f.address)
	write(t, conn, "GET /.well-known/mercure?match=T HTTP/1.1\r\nHost: x\r\n\r\nGET /pipelined HTTP/1.1\r\nHost: x\r\n\r\n")
	resp := readResponse(t, conn, http.MethodGet)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("GET = %d", resp.StatusCode)
	}
	f.publish("topic", "T", "data", "still here")
	body := bufio.NewReader(resp.Body)
	for {
		line, err := body.ReadString('\n')
		must(t, err)
		if strings.TrimSpace(line) == "data: still here" {
			return
		}
	}
}

func TestStream_expectContinue(t *testing.T) {
	f := start(t, nil)
	conn := dial(t, f.address)
	write(t, conn, "QUERY /.well-known/mercure HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"+
		"Content-Length: 7\r\nExpect: 100-continue\r\n\r\n")
	r := bufio.NewReader(conn)
	line, err := r.ReadString('\n')
	must(t, err)
	if !strings.HasPrefix(line, "HTTP/1.1 100") {
		t.Fatalf("first line = %q, want 100 Continue", line)
	}
	_, err = r.ReadString('\n')
	must(t, err)
	write(t, conn, "match=T")
	if resp := readResponseFrom(t, conn, r, queryMethod); resp.StatusCode != http.StatusOK {
		t.Errorf("QUERY = %d, want 200", resp.StatusCode)
	}
}

func TestStream_oddRequestBytes(t *testing.T) {
	f := start(t, nil)
	for _, tc := range []struct {
		name   string
		lines  []string
		status int
	}{
		{"raw UTF-8 in the query", []string{"GET /.well-known/mercure?match=\xc3\xa9 HTTP/1.1", "Host: x"}, 200},
		{"bytes that are not UTF-8 in the query", []string{"GET /.well-known/mercure?match=\xff HTTP/1.1", "Host: x"}, 400},
		{"stray percent", []string{"GET /.well-known/mercure?match=% HTTP/1.1", "Host: x"}, 200},
		{"semicolons", []string{"GET /.well-known/mercure?match=a;b HTTP/1.1", "Host: x"}, 200},
		{"encoded path letters", []string{"GET /.well-known/%6Dercure?match=a HTTP/1.1", "Host: x"}, 404},
		{"absolute form", []string{"GET http://other.example/.well-known/mercure?match=a HTTP/1.1", "Host: x"}, 200},
		{"cookie with odd neighbours", []string{
			"GET /.well-known/mercure?match=a HTTP/1.1", "Host: x", "Cookie: b\xffd=\"; " + cookieName + "=; c",
		}, 401},
		{"token with a control character", []string{
			"GET /.well-known/mercure?match=a HTTP/1.1", "Host: x", "Authorization: Bearer a\tb",
		}, 400},
		{"nameless cookie that looks like ours", []string{
			"GET /.well-known/mercure?match=a HTTP/1.1", "Host: x", "Cookie: =" + cookieName + "=x",
		}, 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if resp := f.exchange(t, tc.lines...); resp.StatusCode != tc.status {
				t.Errorf("status = %d, want %d", resp.StatusCode, tc.status)
			}
		})
	}
}

func TestStream_clientsThatLeaveAreNoticed(t *testing.T) {
	f := start(t, func(s *settings) { s.withTLS = true })
	for name, q := range map[string]request{
		"plain": {url: f.base + "?match=T"}, "HTTP/2": {url: f.tls + "?match=T", client: f.h2},
	} {
		s := f.open(q)
		f.eventually(name+" stream counted", func() bool { return f.gauge("cinnabar_hub_subscribers") == 1 })
		_ = s.resp.Body.Close()
		f.eventually(name+" stream gone", func() bool { return f.gauge("cinnabar_hub_subscribers") == 0 })
	}
}

func TestStream_overTLSByHand(t *testing.T) {
	f := start(t, func(s *settings) { s.withTLS = true })
	address := strings.TrimSuffix(strings.TrimPrefix(f.tls, "https://"), "/.well-known/mercure")
	config := f.h2.Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos, config.ServerName = []string{"h2", "http/1.1"}, "127.0.0.1"
	conn := tls.Client(dial(t, address), config)
	must(t, conn.HandshakeContext(t.Context()))
	if got := conn.ConnectionState().NegotiatedProtocol; got != "h2" {
		t.Errorf("SUB-11 ALPN = %q, want h2", got)
	}
	_ = conn.Close()
}
