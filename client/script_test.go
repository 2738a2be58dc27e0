package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/cinnabar-hub/cinnabar/client"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answer is what a scripted hub says to one request: a response, or nothing at all.
type answer struct {
	status int // 0: it cannot be reached
	header http.Header
	body   string
	open   bool // the body does not end
}

// events is a stream that ends after its text; more may follow by chaining.
func events(text string) answer {
	return answer{status: http.StatusOK, header: http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}}, body: text}
}

func status(code int) answer { return answer{status: code, header: http.Header{}} }

func (a answer) with(name, value string) answer {
	a.header = a.header.Clone()
	a.header.Set(name, value)
	return a
}

// from says after which event the stream begins.
func (a answer) from(id string) answer { return a.with("Mercure-Last-Event-ID", id) }

// silent leaves the stream open after its text.
func (a answer) silent() answer {
	a.open = true
	return a
}

// script is a hub that gives its answers in order, and then none until the request is given up.
type script struct {
	answers []answer

	mu     sync.Mutex
	asked  []*http.Request
	closed int // bodies
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	n := len(s.asked)
	s.asked = append(s.asked, r)
	s.mu.Unlock()
	if n >= len(s.answers) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	a := s.answers[n]
	if a.status == 0 {
		return nil, errors.New("connection refused")
	}
	body := &scriptBody{script: s, text: strings.NewReader(a.body), ctx: r.Context(), open: a.open}
	return &http.Response{StatusCode: a.status, Header: a.header, Body: body, Request: r}, nil
}

// requests gives what the hub was asked.
func (s *script) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// cursors gives the cursor of each request: "h:" from the header, "q:" from the URL.
func (s *script) cursors() []string {
	var out []string
	for _, r := range s.requests() {
		switch header, query := r.Header.Get("Last-Event-ID"), r.URL.Query(); {
		case header != "" && query.Has("last_event_id"):
			out = append(out, "both")
		case header != "":
			out = append(out, "h:"+header)
		case query.Has("last_event_id"):
			out = append(out, "q:"+query.Get("last_event_id"))
		default:
			out = append(out, "")
		}
	}
	return out
}

type scriptBody struct {
	script *script
	text   *strings.Reader
	ctx    context.Context
	open   bool
}

func (b *scriptBody) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := b.text.Read(p)
	if err == io.EOF && b.open {
		<-b.ctx.Done()
		return 0, b.ctx.Err()
	}
	return n, err
}

func (b *scriptBody) Close() error {
	b.script.mu.Lock()
	defer b.script.mu.Unlock()
	b.script.closed++
	return nil
}

// client gives a client of the scripted hub.
func (s *script) client(t *testing.T, o client.Options) *client.Client {
	t.Helper()
	o.HubURL, o.HTTPClient = "https://hub.example.com/hub?tenant=1", &http.Client{Transport: s}
	return mustNew(t, o)
}
