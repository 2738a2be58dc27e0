package sink_test

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cinnabar-hub/cinnabar/internal/history/memory"
	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/hub/sink"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/sse"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// patience is how long tests wait for what must happen.
const patience = 20 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a hub behind a real listener.
type server struct {
	t        testing.TB
	hub      *hub.Hub
	set      *sink.Set
	compiler *topic.Compiler
	root     *hub.Principal
	http     *httptest.Server
	opened   chan *hub.Subscriber
	dropped  atomic.Int64
	progress atomic.Int64 // deliveries and replays
	dialer   net.Dialer
}

// Subscribers and the other methods make a server the hub's metrics.
func (s *server) Subscribers(int) {}
func (s *server) Published()      {}
func (s *server) Announced(int)   {}
func (s *server) Delivered(n int) { s.progress.Add(int64(n)) }
func (s *server) Replayed(n int)  { s.progress.Add(int64(n)) }
func (s *server) Cut(string)      {}
func (s *server) Dropped(n int)   { s.dropped.Add(int64(n)) }

// wrapper is a response writer of a middleware that offers Unwrap alone.
type wrapper struct{ inner http.ResponseWriter }

func (w *wrapper) Header() http.Header         { return w.inner.Header() }
func (w *wrapper) Write(p []byte) (int, error) { return w.inner.Write(p) }
func (w *wrapper) WriteHeader(status int)      { w.inner.WriteHeader(status) }
func (w *wrapper) Unwrap() http.ResponseWriter { return w.inner }

// newServer starts a hub whose streams are served at every path: of the topic that the query names, "a" without one. change may alter
// options.
func newServer(tb testing.TB, encrypted, http2 bool, change func(*hub.Options)) *server {
	tb.Helper()
	return newServerWith(tb, encrypted, http2, sink.Options{}, change)
}

// newServerWith is newServer with options of the sinks.
func newServerWith(tb testing.TB, encrypted, http2 bool, sinks sink.Options, change func(*hub.Options)) *server {
	tb.Helper()
	compiler, err := topic.NewCompiler("https://hub.example.com/.well-known/mercure", topic.Limits{})
	must(tb, err)
	log, err := memory.Open(memory.Options{MaxEvents: 100_000})
	must(tb, err)
	o := hub.DefaultOptions()
	o.Log, o.Compiler, o.DrainWindow = log, compiler, 0
	if change != nil {
		change(&o)
	}
	s := &server{t: tb, compiler: compiler, opened: make(chan *hub.Subscriber, 4096), dialer: net.Dialer{Timeout: 3 * patience}}
	o.Metrics = s
	s.hub, err = hub.New(o)
	must(tb, err)
	s.set, err = sink.NewSet(sinks)
	must(tb, err)
	grants, err := rar.Compile([]rar.Detail{{
		Actions: []rar.Action{rar.Publish, rar.Subscribe},
		Topics:  []rar.TopicMatcher{{Match: "*", MatchType: topic.Exact}},
	}}, compiler)
	must(tb, err)
	s.root = &hub.Principal{Grants: grants}

	ctxHub, stopHub := context.WithCancel(context.Background())
	ctxSet, stopSet := context.WithCancel(context.Background())
	hubDone, setDone := make(chan error, 1), make(chan error, 1)
	go func() { hubDone <- s.hub.Run(ctxHub) }()
	go func() { setDone <- s.set.Run(ctxSet) }()
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.handle))
	s.http.EnableHTTP2 = http2
	if encrypted {
		s.http.StartTLS()
	} else {
		s.http.Start()
	}
	tb.Cleanup(func() {
		stopHub()
		must(tb, <-hubDone)
		s.http.Close()
		stopSet()
		must(tb, <-setDone)
		must(tb, s.set.Close())
		must(tb, log.Close())
	})
	return s
}

func (s *server) handle(w http.ResponseWriter, r *http.Request) {
	m, err := s.compiler.Compile(topic.Exact, cmp.Or(r.URL.RawQuery, "a"))
	must(s.t, err)
	cursor := r.Header.Get("Last-Event-ID")
	sub, err := s.hub.Subscribe(r.Context(), hub.SubscribeRequest{
		Principal: s.root, Matchers: []*topic.Matcher{m}, Cursor: cursor, HasCursor: cursor != "",
	})
	if err != nil {
		http.Error(w, "", http.StatusServiceUnavailable)
		return
	}
	if from, _ := sub.ResumedFrom(); from != cursor {
		s.t.Errorf("REC-15 resumed from %q, want %q", from, cursor)
	}
	w.Header().Set("X-Middleware", "kept")
	w.Header().Set("X-Both", "middleware")
	header := http.Header{"Content-Type": {"text/event-stream"}, "X-Both": {"handler"}, "Content-Length": {"7"}}
	attached := false
	err = s.set.Serve(&wrapper{w}, r, header, func(k hub.Sink) {
		attached = true
		sub.Attach(k)
		select {
		case s.opened <- sub:
		default: // a test that opens so many does not ask for them
		}
	})
	if err != nil || !attached {
		sub.Discard()
	}
	if err != nil {
		s.t.Errorf("Serve = %v", err)
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func (s *server) publish(data string) {
	s.t.Helper()
	_, err := s.hub.Publish(context.Background(), s.root, &mercure.Update{Topics: []string{"a"}, Data: data})
	must(s.t, err)
}

// dial connects to the server, encrypted or not.
func (s *server) dial() net.Conn {
	s.t.Helper()
	address := s.http.Listener.Addr().String()
	if s.http.TLS == nil {
		c, err := s.dialer.Dial("tcp", address)
		must(s.t, err)
		return c
	}
	roots := x509.NewCertPool()
	roots.AddCert(s.http.Certificate())
	c, err := tls.DialWithDialer(&s.dialer, "tcp", address, &tls.Config{
		RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12,
	})
	must(s.t, err)
	return c
}

// client is one reader of a stream.
type client struct {
	t        testing.TB
	conn     net.Conn // nil for HTTP/2
	response *http.Response
	decoder  *sse.Decoder
	sub      *hub.Subscriber
	done     func()
}

// connect opens a stream with HTTP/1.1 or HTTP/1.0.
func (s *server) connect(proto, cursor string) *client {
	s.t.Helper()
	conn := s.dial()
	must(s.t, conn.SetDeadline(time.Now().Add(patience)))
	request := "GET /stream " + proto + "\r\nHost: example.com\r\n"
	if cursor != "" {
		request += "Last-Event-ID: " + cursor + "\r\n"
	}
	_, err := io.WriteString(conn, request+"\r\n")
	must(s.t, err)
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(s.t, err)
	if r.Proto != proto || (proto == "HTTP/1.0") != (len(r.TransferEncoding) == 0) {
		s.t.Errorf("%s: response of %s, transfer encoding %q", proto, r.Proto, r.TransferEncoding)
	}
	c := &client{t: s.t, conn: conn, response: r, sub: <-s.opened, done: func() { _ = conn.Close() }}
	return c.begin()
}

// connect2 opens a stream with HTTP/2.
func (s *server) connect2() *client {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*patience)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.http.URL, nil)
	must(s.t, err)
	r, err := s.http.Client().Do(request)
	must(s.t, err)
	c := &client{t: s.t, response: r, sub: <-s.opened, done: func() { cancel(); _ = r.Body.Close() }}
	return c.begin()
}

func (c *client) begin() *client {
	c.t.Cleanup(c.done)
	c.decoder = sse.NewDecoder(c.response.Body, 0)
	return c
}

// next returns the data of the next event.
func (c *client) next() string {
	c.t.Helper()
	if c.conn != nil {
		must(c.t, c.conn.SetDeadline(time.Now().Add(patience)))
	}
	e, err := c.decoder.Next()
	if err != nil {
		c.t.Fatalf("next event: %v", err)
	}
	return e.Data
}

// want reads as many events as there are data and compares.
func (c *client) want(data ...string) {
	c.t.Helper()
	for _, want := range data {
		if got := c.next(); got != want {
			c.t.Fatalf("event = %.40q, want %.40q", got, want)
		}
	}
}

// wantEnd expects the clean end of the stream.
func (c *client) wantEnd() {
	c.t.Helper()
	if e, err := c.decoder.Next(); err != io.EOF { //nolint:errorlint // the decoder returns it bare
		c.t.Fatalf("after the last event: %.40q, %v, want the end", e.Data, err)
	}
}

// wantDone waits until the hub has noticed the end of the stream.
func (c *client) wantDone() {
	c.t.Helper()
	select {
	case <-c.sub.Done():
	case <-time.After(patience):
		c.t.Fatal("the hub keeps the stream")
	}
}

// filled returns n numbers as strings, filled up to so many bytes.
func filled(n, bytes int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = strconv.Itoa(i)
		out[i] += strings.Repeat(".", max(bytes-len(out[i]), 0))
	}
	return out
}
