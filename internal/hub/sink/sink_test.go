package sink_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/hub/sink"
)

// transport is a way to connect to a server.
type transport struct {
	name             string
	encrypted, http2 bool
	proto            string
}

func transports() []transport {
	return []transport{
		{name: "HTTP/1.1", proto: "HTTP/1.1"},
		{name: "HTTP/1.1 over TLS", encrypted: true, proto: "HTTP/1.1"},
		{name: "HTTP/2", encrypted: true, http2: true, proto: "HTTP/2.0"},
		{name: "HTTP/1.0", proto: "HTTP/1.0"},
		{name: "HTTP/1.0 over TLS", encrypted: true, proto: "HTTP/1.0"},
	}
}

// each runs a test for every transport; connect opens a stream.
func each(t *testing.T, name string, change func(*hub.Options), test func(t *testing.T, s *server, connect func() *client)) {
	t.Helper()
	for _, tr := range transports() {
		t.Run(name+" over "+tr.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, tr.encrypted, tr.http2, change)
			test(t, s, func() *client {
				t.Helper()
				if tr.http2 {
					return s.connect2()
				}
				return s.connect(tr.proto, "")
			})
		})
	}
}

func TestSet_Serve(t *testing.T) {
	each(t, "SSE-01 streams", nil, func(t *testing.T, s *server, connect func() *client) {
		t.Helper()
		c := connect()
		h := c.response.Header
		if c.response.StatusCode != http.StatusOK || h.Get("Content-Type") != "text/event-stream" ||
			h.Get("X-Middleware") != "kept" || h.Get("X-Both") != "handler" || h.Get("Date") == "" {
			t.Errorf("response = %v %v", c.response.Status, h)
		}
		if c.response.ProtoMajor == 1 && !c.response.Close {
			t.Error("the response does not announce that the connection closes")
		}
		for _, d := range filled(20, 100) {
			s.publish(d)
			c.want(d)
		}
		big := filled(3, 1<<20)
		for _, d := range big {
			s.publish(d)
		}
		c.want(big...)
	})
	each(t, "ends cleanly and loses no tail", nil, func(t *testing.T, s *server, connect func() *client) {
		t.Helper()
		c := connect()
		all := filled(30, 1000)
		for _, d := range all {
			s.publish(d)
		}
		c.want(all[0])
		if c.conn != nil && c.response.ProtoMinor == 1 {
			// Unread input would make a bare close reset the connection.
			_, err := io.WriteString(c.conn, "GET / HTTP/1.1\r\n\r\n")
			must(t, err)
		}
		waitUntil(t, func() bool { return s.progress.Load() == int64(len(all)) })
		must(t, s.hub.Drain(context.Background()))
		c.wantDone()
		c.want(all[1:]...)
		c.wantEnd()
	})
	each(t, "notices that the peer hangs up", nil, func(t *testing.T, s *server, connect func() *client) {
		t.Helper()
		c, other := connect(), connect()
		s.publish("1")
		c.want("1")
		c.done()
		c.wantDone()
		s.publish("2")
		other.want("1", "2")
	})
	each(t, "STRESS-03 a stalled reader holds up nobody and loses nothing",
		func(o *hub.Options) { o.Backlog = 200_000 },
		func(t *testing.T, s *server, connect func() *client) {
			t.Helper()
			stalled, fast := connect(), connect()
			all := filled(120, 50_000)
			for _, d := range all {
				s.publish(d)
				fast.want(d)
			}
			if n := s.dropped.Load(); n == 0 {
				t.Error("the stalled reader never fell behind")
			}
			stalled.want(all...)
			s.publish("live")
			stalled.want("live")
		})
	each(t, "a reader that takes nothing is cut", func(o *hub.Options) { o.WriteTimeout = time.Second },
		func(t *testing.T, s *server, connect func() *client) {
			t.Helper()
			c := connect()
			for _, d := range filled(120, 100_000) {
				s.publish(d)
			}
			c.wantDone()
		})
	each(t, "a stalled stream ends within its second", nil, func(t *testing.T, s *server, connect func() *client) {
		t.Helper()
		c := connect()
		for _, d := range filled(120, 100_000) {
			s.publish(d)
		}
		waitUntil(t, func() bool { return s.dropped.Load() > 0 })
		must(t, s.hub.Drain(context.Background()))
		c.wantDone()
	})
}

func TestSet_Serve_head(t *testing.T) {
	s := newServer(t, false, false, nil)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodHead, s.http.URL, nil)
	must(t, err)
	r, err := s.http.Client().Do(request)
	must(t, err)
	must(t, r.Body.Close())
	if r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD = %v %v", r.Status, r.Header)
	}
	select {
	case <-s.opened:
		t.Error("HEAD opened a stream")
	default:
	}
	s.http.Client().CloseIdleConnections()
}

// nobody is told by a sink without an engine.
type nobody struct{}

func (nobody) Writable() {}
func (nobody) Gone()     {}

func TestSet_Serve_withoutHijacking(t *testing.T) {
	set, err := sink.NewSet(sink.Options{})
	must(t, err)
	recorder := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	err = set.Serve(recorder, request, http.Header{"X-Test": {"yes"}}, func(k hub.Sink) {
		k.Start(nobody{})
		if n, err := k.TryWrite([]byte("data: x\n\n")); n != 9 || err != nil {
			t.Errorf("TryWrite = %d, %v", n, err)
		}
		k.Finish()
	})
	must(t, err)
	if got := recorder.Body.String(); got != "data: x\n\n" || recorder.Header().Get("X-Test") != "yes" {
		t.Errorf("response = %q, %v", got, recorder.Header())
	}
	must(t, set.Close())
	if err := set.Serve(recorder, request, nil, nil); !errors.Is(err, sink.ErrClosed) {
		t.Errorf("Serve after Close = %v, want %v", err, sink.ErrClosed)
	}
}

func TestNewSet(t *testing.T) {
	if _, err := sink.NewSet(sink.Options{Linger: -1}); err == nil {
		t.Error("NewSet with a negative option = nil, want an error")
	}
}

// waitUntil waits for a condition.
func waitUntil(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); {
		if time.Now().After(deadline) {
			t.Fatal("it never happened")
		}
		<-time.After(time.Millisecond)
	}
}
