package sink_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/segments"
	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/sse"
)

// last is the id of the update that ends a storm.
const last = "last"

// storm is many clients that come and go while publishers publish.
type storm struct {
	*server
	log      *segments.Log
	clients  int
	got      atomic.Int64 // events, by all clients together
	connects atomic.Int64
}

func newStorm(t *testing.T, clients int, change func(*hub.Options)) *storm {
	t.Helper()
	log, err := segments.Open(t.Context(), segments.Options{Dir: t.TempDir() + "/history"})
	must(t, err)
	t.Cleanup(func() { must(t, log.Close()) })
	return &storm{log: log, clients: clients, server: newServer(t, false, false, func(o *hub.Options) {
		o.Log = log
		if change != nil {
			change(o)
		}
	})}
}

// send publishes an update for everybody.
func (s *storm) send(id, data string) error {
	_, err := s.hub.Publish(context.Background(), s.root, &mercure.Update{Topics: []string{"a"}, ID: id, Data: data})
	return err
}

// order returns the ids of the log.
func (s *storm) order() []string {
	s.t.Helper()
	var ids []string
	for after := history.Position(0); ; {
		page, err := s.log.Replay(context.Background(), history.Query{After: after})
		must(s.t, err)
		for _, e := range page.Entries {
			ids = append(ids, e.ID)
		}
		if page.Through == after {
			return ids
		}
		after = page.Through
	}
}

// reader reads until the last event, and hangs up every now and then; how, is luck. It gives the ids that it saw.
func (s *storm) reader(connected func()) (ids []string, err error) {
	for cursor := ""; ; {
		d, hangUp, err := s.open(cursor)
		s.connects.Add(1)
		connected()
		if err != nil {
			hangUp(false)
			return ids, fmt.Errorf("connect after %q: %w", cursor, err)
		}
		for range 1 + rand.IntN(100) {
			e, err := d.Next()
			if err != nil {
				hangUp(false)
				return ids, fmt.Errorf("after %q: %w", cursor, err)
			}
			s.got.Add(1)
			ids, cursor = append(ids, e.ID), e.ID
			if e.ID == last {
				hangUp(false)
				return ids, nil
			}
		}
		hangUp(rand.IntN(2) == 0)
	}
}

// TestStorm is a thousand clients that connect again at random, wherever they are, while publishers publish to the durable history:
// what each got has no gap and no repeat, and is in log order.
func TestStorm(t *testing.T) {
	const clients, publishers, each = 1000, 4, 60
	s := newStorm(t, clients, nil)
	var ready, reading, publishing sync.WaitGroup
	ready.Add(clients)
	seen := make([][]string, clients)
	failures := make(chan error, clients+publishers)
	for i := range clients {
		reading.Go(func() {
			var err error
			if seen[i], err = s.reader(sync.OnceFunc(ready.Done)); err != nil {
				failures <- err
			}
		})
	}
	ready.Wait()
	var published atomic.Int64
	for p := range publishers {
		publishing.Go(func() {
			for n := range each {
				// Some clients are live and others have much to catch up with, all the time.
				for published.Load()*clients-s.got.Load() > 100*clients && len(failures) == 0 {
					<-time.After(time.Millisecond)
				}
				if err := s.send(fmt.Sprintf("%d-%d", p, n), "x"); err != nil {
					failures <- err
					return
				}
				published.Add(1)
			}
		})
	}
	publishing.Wait()
	must(t, s.send(last, ""))
	reading.Wait()
	close(failures)
	for err := range failures {
		t.Fatal(err)
	}
	order := s.order()
	if len(order) != publishers*each+1 {
		t.Fatalf("the log has %d entries, want %d", len(order), publishers*each+1)
	}
	for i, ids := range seen { // all had a stream before the first was published
		if !slices.Equal(ids, order) {
			t.Fatalf("client %d: %s", i, firstDifference(ids, order))
		}
	}
	if n := s.connects.Load(); n < 3*clients {
		t.Errorf("only %d connects of %d clients", n, clients)
	}
}

// firstDifference tells where a reader's view parts from the log.
func firstDifference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("saw %q as its number %d, the log has %q there", got[i], i, want[i])
		}
	}
	return fmt.Sprintf("saw %d events, the log has %d", len(got), len(want))
}

// TestSlowReaders is clients that stop reading among ten times as many that go on, with large events: the others get everything, no
// more waits for the slow than the bound, which is counted, and they lose nothing, whether they read on or come back with their cursor.
func TestSlowReaders(t *testing.T) {
	const clients, slow, events, size = 200, 20, 30, 20_000 // more would only take longer: each slow one lacks more than its sockets hold
	s := newStorm(t, clients, func(o *hub.Options) { o.Backlog, o.WriteTimeout = 50_000, 0 })
	filling := strings.Repeat("x", size)
	var stalled []net.Conn
	for range slow {
		conn := s.dial()
		t.Cleanup(func() { _ = conn.Close() })
		must(t, conn.(*net.TCPConn).SetReadBuffer(16<<10))
		_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n")
		must(t, err)
		_, err = io.ReadFull(conn, make([]byte, 1)) // the stream is open, and that is all they read of it for now
		must(t, err)
		stalled = append(stalled, conn)
	}
	must(t, s.send("0", "the first"))
	var ready, reading sync.WaitGroup
	failures := make(chan error, clients+slow)
	follow := func(d *sse.Decoder, first int) {
		for n := first; n <= events; n++ {
			e, err := d.Next()
			if err != nil || e.ID != strconv.Itoa(n) || n > 0 && len(e.Data) != size {
				failures <- fmt.Errorf("event %q, %w, want %d", e.ID, err, n)
				return
			}
		}
	}
	resume := func(cursor string) {
		d, hangUp, err := s.open(cursor)
		defer hangUp(false)
		ready.Done()
		if err != nil {
			failures <- err
			return
		}
		follow(d, 1)
	}
	ready.Add(clients)
	for range clients {
		reading.Go(func() { resume("") })
	}
	ready.Wait()
	for n := range events {
		must(t, s.send(strconv.Itoa(n+1), filling))
	}
	reading.Wait()
	if s.dropped.Load() == 0 {
		t.Error("all that a slow reader lacks waits for it in memory")
	}
	ready.Add(slow / 2)
	for i, conn := range stalled {
		reading.Go(func() {
			if i%2 == 0 {
				_ = conn.Close()
				resume("0")
				return
			}
			r, err := http.ReadResponse(bufio.NewReader(io.MultiReader(strings.NewReader("H"), conn)), nil)
			if err != nil {
				failures <- err
				return
			}
			follow(sse.NewDecoder(r.Body, 0), 0)
		})
	}
	reading.Wait()
	close(failures)
	for err := range failures {
		t.Fatal(err)
	}
}
