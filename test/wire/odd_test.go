package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/harness"
)

const topic = "https://example.com/books/1"

// post publishes a body as it is.
func (s *site) post(t *testing.T, body io.Reader) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer "+s.publish)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// send publishes fields and gives the event id.
func (s *site) send(t *testing.T, data string, private bool) string {
	t.Helper()
	form := url.Values{"topic": {topic}, "data": {data}}
	if private {
		form.Set("private", "on")
	}
	status, id := s.post(t, strings.NewReader(form.Encode()))
	if status != http.StatusOK {
		t.Fatalf("publish = %d %s", status, id)
	}
	return id
}

// open opens a stream with a cursor, or without.
func (s *site) open(t *testing.T, cursor string) *harness.Stream {
	t.Helper()
	target := s.url + "?match=" + url.QueryEscape(topic)
	if cursor != "" {
		target += "&last_event_id=" + url.QueryEscape(cursor)
	}
	return harness.Subscribe(t, harness.Client(t, ""), target, harness.Bearer(s.subscribe))
}

// TestNewlines publishes the largest body there may be, of newlines alone: each becomes a line of the stream, so the event is several
// times as large as the body. It arrives as it was, live and from the history, with all that comes after it; one byte more is refused.
func TestNewlines(t *testing.T) {
	for name, behindNginx := range map[string]bool{"to the hub": false, "through nginx, by HTTP/1.0": true} {
		t.Run(name, func(t *testing.T) {
			s := start(t, behindNginx)
			live := s.open(t, "")
			const limit = 1 << 20
			body := []byte("topic=" + url.QueryEscape(topic) + "&id=many&data=")
			newlines := limit - len(body)
			body = append(body, bytes.Repeat([]byte("\n"), newlines)...)
			if status, answer := s.post(t, bytes.NewReader(body)); status != http.StatusOK || answer != "many" {
				t.Fatalf("publish = %d %s", status, answer)
			}
			if status, _ := s.post(t, bytes.NewReader(append(body, '\n'))); status != http.StatusRequestEntityTooLarge {
				t.Errorf("LIM-03 a byte more = %d, want 413", status)
			}
			s.send(t, "after", false)
			for name, stream := range map[string]*harness.Stream{"live": live, "from the history": s.open(t, "earliest")} {
				e := stream.NextEvent(t)
				if e.ID != "many" || len(e.Data) != newlines || strings.Trim(e.Data, "\n") != "" {
					t.Errorf("%s: event %q of %d bytes, want %d newlines", name, e.ID, len(e.Data), newlines)
				}
				if got := stream.Next(t); got != "after" {
					t.Errorf("%s: then %.40q, want what was published after it", name, got)
				}
			}
		})
	}
}

// TestOldNginx puts nginx before the hub as it was by default for most of its life: it speaks HTTP/1.0 to the hub and buffers answers. Events
// arrive when they are published, streams go on by their cursors, end with all that belongs to them, and leave nothing behind.
func TestOldNginx(t *testing.T) {
	s := start(t, true)
	leaving, staying := s.open(t, ""), s.open(t, "")
	if resp := staying.Resp; resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Cache-Control") == "" {
		t.Errorf("response = %v", resp.Header)
	}
	var ids []string
	for n := range 20 {
		data := fmt.Sprintf("%d %s", n, strings.Repeat("x", n*500))
		ids = append(ids, s.send(t, data, n%2 == 0))
		for _, stream := range []*harness.Stream{leaving, staying} {
			if e := stream.NextEvent(t); e.Data != data || e.ID != ids[n] {
				t.Fatalf("event %q %.20q, want number %d", e.ID, e.Data, n)
			}
		}
	}
	leaving.Close()
	again := s.open(t, ids[14])
	if got := again.Resp.Header.Get("Mercure-Last-Event-ID"); got != ids[14] {
		t.Errorf("REC-15 resumed from %q, want %q", got, ids[14])
	}
	for _, id := range ids[15:] {
		if e := again.NextEvent(t); e.ID != id {
			t.Errorf("after resuming: event %q, want %q", e.ID, id)
		}
	}
	s.wantConnections(t, 2) // the one that left has left the hub too

	tail := []string{s.send(t, "last", false)}
	s.hub.Stop()
	for _, stream := range []*harness.Stream{staying, again} {
		var rest []string
		for e := range stream.Events {
			rest = append(rest, e.ID)
		}
		if !slices.Equal(rest, tail) {
			t.Errorf("before its end the stream carried %q, want %q", rest, tail)
		}
	}
	s.wantConnections(t, 0)
	lines, _ := s.tap.state()
	if slices.ContainsFunc(lines, func(l string) bool { return !strings.HasSuffix(l, " HTTP/1.0") }) || !slices.Contains(lines, "GET HTTP/1.0") {
		t.Errorf("nginx sent %q, which is not its old default", lines)
	}
}

// wantConnections waits until nginx has so many connections to the hub.
func (s *site) wantConnections(t *testing.T, want int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(harness.Patience)
	for {
		_, open := s.tap.state()
		if open == want {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("nginx has %d connections to the hub, want %d", open, want)
		}
	}
}

// TestHalfClosed asks for a stream and closes the writing side, at once, as a script does that pipes its request in, or once the stream is
// there: the hub takes it for a reader that has left, and lets go of it at once.
func TestHalfClosed(t *testing.T) {
	s := start(t, false)
	for _, version := range []string{"HTTP/1.1", "HTTP/1.0"} {
		for name, atOnce := range map[string]bool{" at once": true, " when the stream is there": false} {
			t.Run(version+name, func(t *testing.T) {
				conn, err := net.Dial("tcp", s.direct)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.Close() }()
				if err := conn.SetDeadline(time.Now().Add(harness.Patience)); err != nil {
					t.Fatal(err)
				}
				request := fmt.Sprintf("GET %s?match=%s %s\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", harness.HubPath, url.QueryEscape(topic), version, s.direct, s.subscribe)
				if _, err := io.WriteString(conn, request); err != nil {
					t.Fatal(err)
				}
				if want := version + " 200 OK\r\n"; !atOnce {
					head := make([]byte, len(want))
					if _, err := io.ReadFull(conn, head); err != nil || string(head) != want {
						t.Fatalf("the answer begins with %q (%v), want %q", head, err, want)
					}
				}
				if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
					t.Fatal(err)
				}
				// An end or a reset, but not the time-out.
				if _, err := io.Copy(io.Discard, conn); err != nil && isTimeout(err) {
					t.Error("the stream of a reader that has left goes on")
				}
			})
		}
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
