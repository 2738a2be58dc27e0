package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// floor is no hub: it looks at no token, keeps nothing that could be read again and knows exact topics alone. It shows what the
// machine, Go's HTTP server and this program let any hub do. It delivers as a good hub would: an update is framed once, and
// what has come meanwhile is written to a subscriber at once.
type floor struct {
	shards []*floorShard
	log    *floorLog // nil: nothing is stored
	ids    atomic.Uint64
	next   atomic.Uint64 // of the shards

	order sync.Mutex // held while an update is handed to all shards, so that all have the same order
}

// floorCommand runs a floor until ctx is done.
func floorCommand(ctx context.Context, args []string, stderr io.Writer) error {
	fs := flag.NewFlagSet("load floor", flag.ContinueOnError)
	fs.SetOutput(stderr)
	listen := fs.String("listen", "127.0.0.1:8080", "`address` to listen on; every path is the hub's")
	path := fs.String("log", "", "`file` that each update is appended and synced to, before it is acknowledged and delivered")
	if err := fs.Parse(args); err != nil {
		return err
	}
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", *listen)
	if err != nil {
		return err
	}
	return serveFloor(ctx, l, *path)
}

// serveFloor serves on a listener, and closes it, when ctx is done.
func serveFloor(ctx context.Context, l net.Listener, path string) error {
	f := &floor{}
	var done sync.WaitGroup
	if path != "" {
		file, err := os.Create(path)
		if err != nil {
			return errors.Join(err, l.Close())
		}
		defer func() { _ = file.Close() }()
		f.log = &floorLog{file: file}
		f.log.come = sync.NewCond(&f.log.mu)
		done.Go(f.log.run)
	}
	for range runtime.GOMAXPROCS(0) {
		s := &floorShard{topics: map[string][]*floorConn{}}
		s.come = sync.NewCond(&s.mu)
		f.shards = append(f.shards, s)
		done.Go(s.run)
	}
	server := &http.Server{Handler: f, ReadHeaderTimeout: patience}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	err := server.Serve(l)
	for _, s := range f.shards {
		s.stop()
	}
	if f.log != nil {
		f.log.stop()
	}
	done.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// ServeHTTP takes a publication or a subscription.
func (f *floor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Has("match_urlpattern"):
		http.Error(w, "this is no hub: it knows exact topics alone", http.StatusNotImplemented)
	case r.Method == http.MethodGet && r.URL.Query().Has("last_event_id"):
		http.Error(w, "this is no hub: it has no history", http.StatusNotImplemented)
	case r.Method == http.MethodGet:
		f.subscribe(w, r)
	case r.Method == http.MethodPost:
		f.publish(w, r)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (f *floor) subscribe(w http.ResponseWriter, r *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n:\n\n\r\n"); err != nil {
		_ = conn.Close()
		return
	}
	f.shards[f.next.Add(1)%uint64(len(f.shards))].add(&floorConn{Conn: conn}, r.URL.Query()["match"])
}

func (f *floor) publish(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	id := "urn:floor:" + strconv.FormatUint(f.ids.Add(1), 10)
	event := "id: " + id + "\ndata: " + form.Get("data") + "\n\n"
	if f.log != nil && f.log.append(event) != nil {
		http.Error(w, "the log cannot be written", http.StatusServiceUnavailable)
		return
	}
	frame := floorFrame{topic: form.Get("topic"), chunk: fmt.Appendf(nil, "%x\r\n%s\r\n", len(event), event)}
	f.order.Lock()
	for _, s := range f.shards {
		s.deliver(frame)
	}
	f.order.Unlock()
	_, _ = io.WriteString(w, id)
}

type floorFrame struct {
	topic string
	chunk []byte
}

// floorConn is a subscriber; what waits for it belongs to its shard's goroutine.
type floorConn struct {
	net.Conn
	waiting []byte
}

// floorShard has a part of the subscribers, and one goroutine that writes to them.
type floorShard struct {
	mu      sync.Mutex
	come    *sync.Cond
	topics  map[string][]*floorConn
	frames  []floorFrame
	stopped bool
}

func (s *floorShard) add(c *floorConn, topics []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range topics {
		s.topics[t] = append(s.topics[t], c)
	}
}

func (s *floorShard) deliver(f floorFrame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames = append(s.frames, f)
	s.come.Signal()
}

func (s *floorShard) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.come.Signal()
	for _, conns := range s.topics {
		for _, c := range conns {
			_ = c.Close()
		}
	}
}

// run writes until the shard is stopped. A subscriber that does not read holds up the others, which a hub must not allow.
func (s *floorShard) run() {
	for {
		s.mu.Lock()
		for len(s.frames) == 0 && !s.stopped {
			s.come.Wait()
		}
		s.mu.Unlock()
		runtime.Gosched() // what is published at the same time is written together
		s.mu.Lock()
		if s.stopped {
			s.mu.Unlock()
			return
		}
		frames := s.frames
		s.frames = nil
		var due []*floorConn
		for _, f := range frames {
			for _, c := range s.topics[f.topic] {
				if len(c.waiting) == 0 {
					due = append(due, c)
				}
				c.waiting = append(c.waiting, f.chunk...)
			}
		}
		s.mu.Unlock()
		for _, c := range due {
			_, _ = c.Write(c.waiting) // who has gone is written to in vain
			c.waiting = c.waiting[:0]
		}
	}
}

// floorLog stores updates: one write and one sync for all that wait.
type floorLog struct {
	file    *os.File
	mu      sync.Mutex
	come    *sync.Cond
	buffer  []byte
	waiting []chan error // each takes one value
	stopped bool
}

func (l *floorLog) append(event string) error {
	answer := make(chan error, 1)
	l.mu.Lock()
	l.buffer = append(l.buffer, event...)
	l.waiting = append(l.waiting, answer)
	l.come.Signal()
	l.mu.Unlock()
	select {
	case err := <-answer:
		return err
	case <-time.After(patience):
		return errors.New("the log does not answer")
	}
}

func (l *floorLog) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	l.come.Signal()
}

func (l *floorLog) run() {
	var out []byte
	for {
		l.mu.Lock()
		for len(l.waiting) == 0 && !l.stopped {
			l.come.Wait()
		}
		if l.stopped {
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		runtime.Gosched()
		l.mu.Lock()
		out = append(out[:0], l.buffer...)
		l.buffer = l.buffer[:0]
		waiting := l.waiting
		l.waiting = nil
		l.mu.Unlock()
		_, err := l.file.Write(out)
		if err == nil {
			err = l.file.Sync()
		}
		for _, w := range waiting {
			w <- err
		}
	}
}
