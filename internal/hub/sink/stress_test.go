package sink_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/sse"
)

func TestStress(t *testing.T) {
	t.Run("STRESS-01 many streams get every event in order", func(t *testing.T) {
		const streams, events = 1000, 50
		s := newServer(t, false, false, nil)
		var ready, work sync.WaitGroup
		failures := make(chan error, streams)
		gate := make(chan struct{}, 64)
		for range streams {
			ready.Add(1)
			work.Go(func() {
				gate <- struct{}{}
				d, closeConn, err := s.open("")
				<-gate
				ready.Done()
				if err != nil {
					failures <- err
					return
				}
				defer closeConn(false)
				for i := range events {
					e, err := d.Next()
					if err != nil || e.Data != strconv.Itoa(i) {
						failures <- fmt.Errorf("event = %q, %w, want %d", e.Data, err, i)
						return
					}
				}
			})
		}
		ready.Wait()
		for i := range events {
			s.publish(strconv.Itoa(i))
		}
		work.Wait()
		close(failures)
		for err := range failures {
			t.Error(err)
		}
	})
	t.Run("STRESS-02 a reconnect storm loses and repeats nothing", func(t *testing.T) {
		const clients, events = 20, 120
		s := newServer(t, false, false, nil)
		var ready, work sync.WaitGroup
		failures := make(chan error, clients)
		for range clients {
			ready.Add(1)
			work.Go(func() {
				if err := s.storm(events, ready.Done); err != nil {
					failures <- err
				}
			})
		}
		ready.Wait()
		for i := range events {
			s.publish(strconv.Itoa(i))
			if i%5 == 0 {
				<-time.After(time.Millisecond)
			}
		}
		work.Wait()
		close(failures)
		for err := range failures {
			t.Error(err)
		}
	})
}

// open opens a stream for use in any goroutine. It is closed at once or, where that is asked for, as a machine that restarts does.
func (s *server) open(cursor string) (d *sse.Decoder, closeConn func(reset bool), err error) {
	conn := s.dial()
	closeConn = func(reset bool) {
		if c, ok := conn.(*net.TCPConn); ok && reset {
			_ = c.SetLinger(0)
		}
		_ = conn.Close()
	}
	// With a thousand others, and on a machine that has other things to do, a stream may take a while.
	if err := conn.SetDeadline(time.Now().Add(10 * patience)); err != nil {
		return nil, closeConn, err
	}
	request := "GET / HTTP/1.1\r\nHost: example.com\r\n"
	if cursor != "" {
		request += "Last-Event-ID: " + cursor + "\r\n"
	}
	if _, err := io.WriteString(conn, request+"\r\n"); err != nil {
		return nil, closeConn, err
	}
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil, closeConn, err
	}
	if r.StatusCode != http.StatusOK {
		return nil, closeConn, fmt.Errorf("status %d", r.StatusCode)
	}
	return sse.NewDecoder(r.Body, 0), closeConn, nil
}

// storm reads the events 0 to n-1 and hangs up after every few.
func (s *server) storm(n int, connected func()) error {
	cursor := ""
	for next := 0; next < n; {
		d, closeConn, err := s.open(cursor)
		if cursor == "" && next == 0 {
			connected()
		}
		if err != nil {
			return err
		}
		for range 1 + rand.IntN(8) {
			e, err := d.Next()
			if err != nil {
				return fmt.Errorf("event %d: %w", next, err)
			}
			if e.Data != strconv.Itoa(next) {
				return fmt.Errorf("event = %q, want %d", e.Data, next)
			}
			cursor = e.ID
			if next++; next == n {
				break
			}
		}
		closeConn(rand.IntN(2) == 0)
	}
	return nil
}
