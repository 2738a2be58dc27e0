package hubhttp_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
)

// held is what the process holds.
type held struct {
	goroutines, descriptors int
	heap                    int64
}

// holding takes stock when everything that is free has been given back.
func holding(t *testing.T) held {
	t.Helper()
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	open, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return held{goroutines: runtime.NumGoroutine(), descriptors: len(open), heap: int64(m.HeapAlloc)}
}

// visits opens n streams one after the other and leaves each, sometimes after an event, and sometimes as a machine that restarts.
func (f *fixture) visits(n int, tokens []string) error {
	for range n {
		conn, err := net.Dial("tcp", f.address)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(conn, "GET /.well-known/mercure?match=a&match=%d HTTP/1.1\r\nHost: hub.example\r\nAuthorization: Bearer %s\r\nLast-Event-ID: earliest\r\n\r\n",
			rand.IntN(1000), tokens[rand.IntN(len(tokens))])
		if err != nil {
			return err
		}
		r := bufio.NewReader(conn)
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", resp.StatusCode)
		}
		if rand.IntN(4) == 0 {
			if _, err := io.ReadFull(resp.Body, make([]byte, 20)); err != nil {
				return err
			}
		} else {
			_ = conn.(*net.TCPConn).SetLinger(0)
		}
		_ = conn.Close()
	}
	return nil
}

// TestVisits opens and leaves 20,000 streams: memory, goroutines and descriptors are afterwards what they were before.
func TestVisits(t *testing.T) {
	const workers, warm, visits = 32, 2000, 20_000
	f := start(t, func(s *settings) { s.logLevel = slog.LevelError }) // the log is kept in memory here
	f.publish("topic", "a", "data", "something to read")
	var tokens []string
	for i := range 50 {
		tokens = append(tokens, f.subscribeToken("a", strconv.Itoa(i)))
	}
	await := func(what string, ok func() bool) { // longer than usual: so many streams may take a while on a machine that has other things to do
		t.Helper()
		for deadline := time.Now().Add(12 * patience); !ok(); {
			if time.Now().After(deadline) {
				t.Fatalf("waited for %s in vain", what)
			}
			<-time.After(10 * time.Millisecond)
		}
	}
	visit := func(n int) {
		var work sync.WaitGroup
		for range workers {
			work.Go(func() {
				if err := f.visits(n/workers, tokens); err != nil {
					t.Error(err)
				}
			})
		}
		work.Wait()
		f.client.CloseIdleConnections()
		await("all streams to end", func() bool { return f.gauge("cinnabar_hub_subscribers") == 0 })
	}
	visit(warm)
	var before, after held
	await("the hub to come to rest", func() bool {
		was := before
		before = holding(t)
		return before.goroutines == was.goroutines && before.descriptors == was.descriptors
	})
	visit(visits)
	await("descriptors and goroutines to return", func() bool {
		after = holding(t)
		return after.goroutines <= before.goroutines+2 && after.descriptors <= before.descriptors+2
	})
	if grown := after.heap - before.heap; grown > 2<<20 {
		t.Errorf("%d visits later the heap has %d bytes more: %d", visits, grown, after.heap)
	}
}
