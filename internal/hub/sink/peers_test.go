package sink_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/sse"
)

// tcp gives the TCP connection below a client's.
func (c *client) tcp() *net.TCPConn {
	c.t.Helper()
	conn := c.conn
	if w, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = w.NetConn()
	}
	return conn.(*net.TCPConn)
}

// TestSet_Serve_halfClosed shows that a reader which closes its writing side counts as one that has left: its stream ends at once on
// both sides, and nobody else's.
func TestSet_Serve_halfClosed(t *testing.T) {
	each(t, "a half-closed reader has left", nil, func(t *testing.T, s *server, connect func() *client) {
		t.Helper()
		c, other := connect(), connect()
		if c.conn == nil {
			return // of an HTTP/2 stream the reader's side is closed from the beginning
		}
		s.publish("1")
		c.want("1")
		must(t, c.tcp().CloseWrite())
		c.wantDone()
		if rest, err := io.ReadAll(c.conn); err == nil && strings.Contains(string(rest), "data") {
			t.Errorf("the stream went on with %q", rest)
		}
		s.publish("2")
		other.want("1", "2")
	})
}

// TestSet_Serve_oldReader has a reader by HTTP/1.0 ask for a connection that is kept, and for a second stream on it before the first has
// ended: it gets one stream, of bytes as they are, which ends with the connection.
func TestSet_Serve_oldReader(t *testing.T) {
	for name, encrypted := range map[string]bool{"plain": false, "over TLS": true} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, encrypted, false, nil)
			conn := s.dial()
			defer func() { _ = conn.Close() }()
			must(t, conn.SetDeadline(time.Now().Add(patience)))
			const request = "GET / HTTP/1.0\r\nHost: example.com\r\nConnection: keep-alive\r\n\r\n"
			_, err := io.WriteString(conn, request+request)
			must(t, err)
			sub := <-s.opened
			s.publish("1")
			s.publish("2")
			var got []byte
			r := bufio.NewReader(conn)
			for !strings.HasSuffix(string(got), "data: 2\n") {
				line, err := r.ReadSlice('\n')
				must(t, err)
				got = append(got, line...)
			}
			sub.End()
			rest, err := io.ReadAll(r)
			must(t, err)
			got = append(got, rest...)
			head, body, _ := strings.Cut(string(got), "\r\n\r\n")
			if !strings.HasPrefix(head, "HTTP/1.0 200 OK\r\n") || !strings.Contains(head, "\r\nConnection: close") ||
				strings.Contains(head, "Transfer-Encoding") || strings.Contains(head, "Content-Length") {
				t.Errorf("head = %q", head)
			}
			var events []string
			for d := sse.NewDecoder(strings.NewReader(body), 0); ; {
				e, err := d.Next()
				if err != nil {
					break
				}
				events = append(events, e.Data)
			}
			if !slices.Equal(events, []string{"1", "2"}) || strings.Contains(body, "\r") || strings.Contains(body, "HTTP/") {
				t.Errorf("events = %q in %q, want one stream without chunks", events, body)
			}
		})
	}
}

// TestDescriptors opens and closes streams so fast that descriptors are used again all the time, each with a topic of its own: nobody
// gets a byte that was meant for whoever had the descriptor before.
func TestDescriptors(t *testing.T) {
	const workers, streams, events = 16, 40, 5
	s := newServer(t, false, false, func(o *hub.Options) { o.Retry = 0 })
	var opening sync.WaitGroup
	failures := make(chan error, workers)
	for w := range workers {
		opening.Go(func() {
			for n := range streams {
				if err := s.alone(fmt.Sprintf("topic-%d-%d", w, n), events); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	opening.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
}

// alone opens a stream of a topic, gets some of its events while more are under way, and hangs up.
func (s *server) alone(topic string, events int) error {
	conn := s.dial()
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "GET /?"+topic+" HTTP/1.1\r\nHost: example.com\r\n\r\n"); err != nil {
		return err
	}
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return fmt.Errorf("response of %s: %w", topic, err)
	}
	for n := range 2 * events {
		_, err := s.hub.Publish(s.t.Context(), s.root, &mercure.Update{Topics: []string{topic}, Data: fmt.Sprintf("%s %d", topic, n)})
		if err != nil {
			return err
		}
	}
	d := sse.NewDecoder(r.Body, 0)
	for n := range 1 + rand.IntN(events) {
		e, err := d.Next()
		if want := fmt.Sprintf("%s %d", topic, n); err != nil || e.Data != want {
			return fmt.Errorf("event = %q, %w, want %q", e.Data, err, want)
		}
	}
	return nil
}
