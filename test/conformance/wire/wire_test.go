package wire_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

const patience = 30 * time.Second

// peer listens on loopback and answers each connection with the same bytes, after it has read a request's head. It gives
// what it read.
func peer(t *testing.T, answer string) (*wire.Dialer, <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	heard := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		var got strings.Builder
		buf := make([]byte, 4096)
		for !strings.Contains(got.String(), "\r\n\r\n") {
			n, err := conn.Read(buf)
			got.Write(buf[:n])
			if err != nil {
				return
			}
		}
		_, _ = io.WriteString(conn, answer)
		heard <- got.String()
	}()
	return dialer(t, "http://"+l.Addr().String()), heard
}

func dialer(t *testing.T, at string) *wire.Dialer {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	d, err := wire.New(u, wire.Options{Timeout: patience, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestARequestIsWrittenAsItIs(t *testing.T) {
	d, heard := peer(t, "HTTP/1.1 204 No Content\r\n\r\n")
	r := wire.Request{Method: "POST", Target: "/a?b=%zz&c=\xff", Host: "hub.example"}.With("X", "1").With("x", "2\x80").WithBody("text/plain", "body")
	if _, err := d.Do(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	want := "POST /a?b=%zz&c=\xff HTTP/1.1\r\nHost: hub.example\r\nConnection: close\r\nX: 1\r\nx: 2\x80\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nbody"
	if diff := cmp.Diff(want, <-heard); diff != "" {
		t.Error(diff)
	}
}

func TestARequestCanBeTheStartOfSeveral(t *testing.T) {
	r := wire.Request{Method: "GET"}.With("A", "1")
	one, two := r.With("B", "1"), r.With("B", "2")
	if one.Fields[1].Value != "1" || two.Fields[1].Value != "2" || len(r.Fields) != 1 {
		t.Errorf("requests share their fields: %v %v %v", r, one, two)
	}
}

func TestResponses(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		status int
		body   string
		err    error
	}{
		"length":           {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef", 200, "abc", nil},
		"until the end":    {"HTTP/1.1 404 Not Found\r\n\r\nabc", 404, "abc", nil},
		"chunked":          {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: 1\r\n\r\n", 200, "abcde", nil},
		"interim":          {"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, "", nil},
		"bare line breaks": {"HTTP/1.1 200 OK\nContent-Length: 1\n\na", 200, "a", nil},
		"cut body":         {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", 0, "", wire.ErrMalformed},
		"cut chunk":        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab", 0, "", wire.ErrMalformed},
		"no last chunk":    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", 0, "", wire.ErrMalformed},
		"odd chunk":        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nab\r\n", 0, "", wire.ErrMalformed},
		"odd length":       {"HTTP/1.1 200 OK\r\nContent-Length: +-3\r\n\r\nabc", 0, "", wire.ErrMalformed},
		"no HTTP":          {"SSH-2.0-x\r\n", 0, "", wire.ErrMalformed},
		"odd status":       {"HTTP/1.1 2OO OK\r\n\r\n", 0, "", wire.ErrMalformed},
		"odd field":        {"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", 0, "", wire.ErrMalformed},
		"space in a name":  {"HTTP/1.1 200 OK\r\nA b: c\r\n\r\n", 0, "", wire.ErrMalformed},
		"endless head":     {"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", 70_000), 0, "", wire.ErrMalformed},
		"many fields":      {"HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", 300) + "\r\n", 0, "", wire.ErrMalformed},
		"nothing":          {"", 0, "", io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := peer(t, c.answer)
			resp, err := d.Do(t.Context(), wire.Request{Method: "GET", Target: "/"})
			if c.err != nil {
				if !errors.Is(err, c.err) {
					t.Errorf("error %v, want %v", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if resp.Status != c.status || resp.Body != c.body || resp.Stream != nil {
				t.Errorf("%d %q, want %d %q", resp.Status, resp.Body, c.status, c.body)
			}
		})
	}
}

func TestFieldsOfAResponse(t *testing.T) {
	d, _ := peer(t, "HTTP/1.1 200 OK\r\nVary: Origin,  Accept\r\nvary:\tCookie\r\nContent-Type: Text/Plain ; charset=x\r\nContent-Length: 0\r\n\r\n")
	resp, err := d.Do(t.Context(), wire.Request{Method: "GET", Target: "/"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"origin", "accept", "cookie"}, resp.List("VARY")); diff != "" {
		t.Error(diff)
	}
	if got := resp.MediaType(); got != "text/plain" {
		t.Errorf("media type %q", got)
	}
	if resp.Get("vary") != "Origin,  Accept" || resp.Has("Link") || resp.Get("Link") != "" {
		t.Error("fields are found by name, in any case, and only those that are there")
	}
}

func TestAnswersOfARealServer(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		w.Header().Set("Proto", r.Proto)
		if r.URL.Path == "/events" {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "id: 1\ndata: "+string(raw)+"\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		_, _ = w.Write(raw)
	})
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	d := dialer(t, server.URL)
	if p, err := d.Protocol(t.Context()); err != nil || p != "h2" {
		t.Errorf("protocol %q, %v", p, err)
	}
	for name, do := range map[string]func(context.Context, wire.Request) (*wire.Response, error){"HTTP/1.1": d.Do, "HTTP/2.0": d.DoHTTP2} {
		t.Run(name, func(t *testing.T) {
			resp, err := do(t.Context(), wire.Request{Method: "POST", Target: "/echo"}.WithBody("text/plain", "hello"))
			if err != nil {
				t.Fatal(err)
			}
			if resp.Body != "hello" || resp.Get("Proto") != name {
				t.Errorf("%q over %s", resp.Body, resp.Get("Proto"))
			}
			resp, err = do(t.Context(), wire.Request{Method: "POST", Target: "/events"}.WithBody("text/plain", "x"))
			if err != nil {
				t.Fatal(err)
			}
			if resp.Stream == nil {
				t.Fatal("an event stream is given as one")
			}
			e, err := wire.NewEventReader(resp.Stream).Next()
			if err != nil || e.ID != "1" || e.Data != "x" {
				t.Errorf("event %+v, %v", e, err)
			}
			resp.Close()
			resp.Close()
		})
	}
}

func TestNoAnswerInTime(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	u, _ := url.Parse("http://" + l.Addr().String())
	d, err := wire.New(u, wire.Options{Timeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Do(t.Context(), wire.Request{Method: "GET", Target: "/"}); err == nil {
		t.Error("a peer that says nothing is waited for without end")
	}
}

func TestURLsThatCannotBeDialled(t *testing.T) {
	if _, err := wire.New(&url.URL{Scheme: "ftp", Host: "x"}, wire.Options{}); err == nil {
		t.Error("an ftp URL is accepted")
	}
}

func TestEvents(t *testing.T) {
	type event struct {
		ID, Type, Data, Retry string
		HasID, Dispatched     bool
		Comments              []string
	}
	for name, c := range map[string]struct {
		stream string
		want   []event
		err    error
	}{
		"whole":              {"id: 1\nevent: x\ndata: a\ndata: b\nretry: 10\n\n", []event{{ID: "1", Type: "x", Data: "a\nb", Retry: "10", HasID: true, Dispatched: true}}, io.EOF},
		"one space is cut":   {"data:  a\n\ndata:b\n\n", []event{{Data: " a", Dispatched: true}, {Data: "b", Dispatched: true}}, io.EOF},
		"no colon":           {"data\nid\n\n", []event{{HasID: true, Dispatched: true}}, io.EOF},
		"carriage returns":   {"data: a\r\ndata: b\rdata: c\n\r\ndata: d\r\r", []event{{Data: "a\nb\nc", Dispatched: true}, {Data: "d", Dispatched: true}}, io.EOF},
		"comments":           {": hi\ndata: a\n:x\n\n", []event{{Comments: []string{" hi"}}, {Data: "a", Dispatched: true, Comments: []string{"x"}}}, io.EOF},
		"no data":            {"id: 1\n\nretry: 5\n\n", []event{{ID: "1", HasID: true}, {Retry: "5"}}, io.EOF},
		"an id with NUL":     {"id: a\x00b\ndata: a\n\n", []event{{Data: "a", Dispatched: true}}, io.EOF},
		"byte order mark":    {"\uFEFFdata: a\n\ndata: \uFEFF\n\n", []event{{Data: "a", Dispatched: true}, {Data: "\uFEFF", Dispatched: true}}, io.EOF},
		"empty blocks":       {"\n\n\ndata: a\n\n\n\n", []event{{Data: "a", Dispatched: true}}, io.EOF},
		"ends in an event":   {"data: a\n", nil, io.ErrUnexpectedEOF},
		"ends in a line":     {"data: a\n\nda", []event{{Data: "a", Dispatched: true}}, io.ErrUnexpectedEOF},
		"not UTF-8":          {"data: \xff\n\n", nil, wire.ErrStream},
		"more than a line":   {"data: " + strings.Repeat("a", wire.MaxEvent) + "\n\n", nil, wire.ErrStream},
		"more than an event": {strings.Repeat("data: "+strings.Repeat("a", 1<<20)+"\n", 5) + "\n", nil, wire.ErrStream},
	} {
		for reader, wrap := range map[string]func(io.Reader) io.Reader{"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader} {
			t.Run(name+"/"+reader, func(t *testing.T) {
				r := wire.NewEventReader(wrap(strings.NewReader(c.stream)))
				var got []event
				for {
					e, err := r.Next()
					if err != nil {
						if !errors.Is(err, c.err) {
							t.Errorf("error %v, want %v", err, c.err)
						}
						break
					}
					got = append(got, event{e.ID, e.Type, e.Data, e.Retry, e.HasID, e.Dispatched, e.Comments})
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// A stream that stays open after a CR must not keep the event back.
func TestACarriageReturnEndsItsLineAtOnce(t *testing.T) {
	pr, pw := io.Pipe()
	t.Cleanup(func() { _ = pw.Close() })
	go func() { _, _ = io.WriteString(pw, "data: a\r\r") }()
	e, err := wire.NewEventReader(pr).Next()
	if err != nil || e.Data != "a" {
		t.Errorf("event %+v, %v", e, err)
	}
}

func TestFieldLinesAreKept(t *testing.T) {
	e, err := wire.NewEventReader(strings.NewReader("data: a\ndata: b\nid: 1\nfoo: x\n\n")).Next()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]wire.Line{{Name: "data", Value: "a"}, {Name: "data", Value: "b"}, {Name: "id", Value: "1"}, {Name: "foo", Value: "x"}}, e.Lines); diff != "" {
		t.Error(diff)
	}
	if e.Count("data") != 2 || e.Count("event") != 0 {
		t.Error("field lines are counted by name")
	}
}

func TestEscape(t *testing.T) {
	if got := wire.Form("a b", "\x00é&=+%~"); got != "a%20b=%00%C3%A9%26%3D%2B%25~" {
		t.Error(got)
	}
}
