package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// A reader waits with a small buffer of its own. When that is not enough it borrows a large one until it has read all there is.
const (
	smallBuffer = 2 << 10
	largeBuffer = 64 << 10
)

// subscription is what one subscriber asks for, and what it is to see.
type subscription struct {
	exact, patterns []string
	cursor          string // last_event_id; none when empty
	token           string
	follower        follower
}

// query gives the URL's query.
func (s *subscription) query() string {
	q := url.Values{"match": s.exact, "match_urlpattern": s.patterns}
	if s.cursor != "" {
		q.Set("last_event_id", s.cursor)
	}
	return q.Encode()
}

// pool holds the subscribers of one scenario. Its methods belong to one goroutine; everybody may ask the counters.
type pool struct {
	dial *dialer
	run  uint32
	base time.Time // marks tell times from here on
	kind string    // what its subscribers are called

	hold    <-chan struct{}    // closed by release: until then nobody reads beyond the head of the response; nil: all read
	release context.CancelFunc // nil without hold

	readers []*reader
	groups  []*group
	large   sync.Pool // of *[largeBuffer]byte
	done    sync.WaitGroup
	closing atomic.Bool

	flow      flow
	latencies latencies
	record    atomic.Bool
	last      atomic.Int64 // when the last mark was read, in nanoseconds since base
	closed    atomic.Int64 // streams that ended by themselves
	failure   atomic.Pointer[error]
}

// reader is one subscriber.
type reader struct {
	pool    *pool
	index   int
	spec    subscription
	conn    net.Conn           // HTTP/1.1
	cancel  context.CancelFunc // HTTP/2
	marks   []time.Duration    // sending times of the marks of one read
	seen    int64
	first   int64 // when its first mark was read, in nanoseconds since base
	last    int64
	opened  int64  // when the head was read
	resumed string // the header field Mercure-Last-Event-ID of its response
}

// group is the readers that share an HTTP/2 connection.
type group struct {
	transport *http.Transport
	opened    chan struct{} // closed when the first of them has its stream, and so the connection is there
	once      sync.Once
}

// connect opens subscribers, with so many handshakes at a time, and returns when all streams are open, or with the first error.
func (p *pool) connect(ctx context.Context, n, atOnce int, spec func(i int) subscription) (time.Duration, error) {
	p.readers = make([]*reader, n)
	for i := range p.readers {
		p.readers[i] = &reader{pool: p, index: i, spec: spec(i)}
	}
	if p.dial.http2 {
		for range (n + p.dial.streams - 1) / p.dial.streams {
			p.groups = append(p.groups, &group{transport: p.dial.transport(), opened: make(chan struct{})})
		}
	}
	start := time.Now()
	slots := make(chan struct{}, atOnce)
	opened := make(chan error, n) // one of each reader
	go func() {                   // ends with the last reader's start: every reader sends to opened once, which frees a slot
		for _, r := range p.readers {
			slots <- struct{}{}
			p.done.Go(func() { r.read(ctx, func(err error) { <-slots; opened <- err }) })
		}
	}()
	var failed error
	for range n {
		if err := <-opened; failed == nil {
			failed = err
		}
	}
	return time.Since(start), failed
}

// close ends all streams and waits for the readers.
func (p *pool) close() {
	p.closing.Store(true)
	for _, r := range p.readers {
		if r.conn != nil {
			_ = r.conn.Close()
		}
		if r.cancel != nil {
			r.cancel()
		}
	}
	if p.release != nil {
		p.release() // last, so that there is nothing to read any more
	}
	p.done.Wait()
	for _, g := range p.groups {
		g.transport.CloseIdleConnections()
	}
}

// since gives the time that marks bear.
func (p *pool) since() int64 { return int64(time.Since(p.base)) }

// read is the life of a subscriber. It calls opened once.
func (r *reader) read(ctx context.Context, opened func(error)) {
	var once sync.Once
	answer := func(err error) { once.Do(func() { opened(err) }) }
	read := r.read1
	if r.pool.dial.http2 {
		read = r.read2
	}
	err := read(ctx, func() { r.opened = r.pool.since(); answer(nil) })
	answer(fmt.Errorf("%s %d: %w", r.pool.kind, r.index, err))
	if !r.pool.closing.Load() {
		r.pool.closed.Add(1)
		r.pool.failure.CompareAndSwap(nil, &err)
	}
}

// stall waits as long as the pool's subscribers are not to read.
func (r *reader) stall() {
	if r.pool.hold != nil {
		<-r.pool.hold
	}
}

// read1 reads over HTTP/1.1.
func (r *reader) read1(ctx context.Context, opened func()) error {
	conn, err := r.pool.dial.connect(ctx, r.index)
	if err != nil {
		return err
	}
	r.conn = conn
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	request := "GET " + r.pool.dial.hub.EscapedPath() + "?" + r.spec.query() + " HTTP/1.1\r\nHost: " + r.pool.dial.hub.Host +
		"\r\nAccept: text/event-stream\r\nCache-Control: no-cache\r\n"
	if r.spec.token != "" {
		request += "Authorization: Bearer " + r.spec.token + "\r\n"
	}
	if _, err := conn.Write([]byte(request + "\r\n")); err != nil {
		return fmt.Errorf("send the subscription: %w", err)
	}
	resp := response{events: r.events(), onHead: func(h http.Header) { r.resumed = h.Get("Mercure-Last-Event-ID") }}
	return r.pump(conn, func(p []byte) error {
		err := resp.feed(p)
		if resp.open && r.opened == 0 {
			_ = conn.SetDeadline(time.Time{}) // fails only with the next read
			opened()
			r.stall()
		}
		return err
	})
}

// read2 reads over HTTP/2.
func (r *reader) read2(ctx context.Context, opened func()) error {
	g := r.pool.groups[r.index/r.pool.dial.streams]
	leader := r.index%r.pool.dial.streams == 0
	if leader {
		defer g.once.Do(func() { close(g.opened) })
	} else {
		<-g.opened
	}
	ctx, r.cancel = context.WithCancel(ctx)
	defer r.cancel()
	u := *r.pool.dial.hub
	u.RawQuery = r.spec.query()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	if r.spec.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.spec.token)
	}
	resp, err := g.transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.ProtoMajor != 2 {
		return fmt.Errorf("the hub answered with %s, not HTTP/2", resp.Proto)
	}
	if err := checkStream(resp); err != nil {
		return err
	}
	r.resumed = resp.Header.Get("Mercure-Last-Event-ID")
	g.once.Do(func() { close(g.opened) })
	opened()
	r.stall()
	events := r.events()
	return r.pump(resp.Body, func(p []byte) error {
		events.feed(p)
		return nil
	})
}

// pump hands over what src gives, until that or taking it fails.
func (r *reader) pump(src io.Reader, take func([]byte) error) error {
	small := make([]byte, smallBuffer)
	var large *[largeBuffer]byte
	buf := small
	for {
		n, err := src.Read(buf)
		wrong := take(buf[:n])
		r.count()
		if err := errors.Join(wrong, err); err != nil {
			return err
		}
		if full := n == len(buf); full && large == nil {
			large = r.pool.large.Get().(*[largeBuffer]byte)
			buf = large[:]
		} else if !full && large != nil {
			r.pool.large.Put(large)
			large, buf = nil, small
		}
	}
}

// events gives the parser that hands marks to the reader.
func (r *reader) events() events {
	return events{run: r.pool.run, each: func(m mark) {
		r.spec.follower.see(m)
		r.marks = append(r.marks, time.Duration(m.sent))
	}}
}

// count makes known what one read has brought.
func (r *reader) count() {
	n := len(r.marks)
	if n == 0 {
		return
	}
	p := r.pool
	now := p.since()
	if r.seen == 0 {
		r.first = now
	}
	r.last = now
	r.seen += int64(n)
	if p.record.Load() {
		part := &p.latencies.parts[r.index%len(p.latencies.parts)]
		part.mu.Lock()
		for _, sent := range r.marks {
			part.h.add(time.Duration(now) - sent)
		}
		part.mu.Unlock()
	}
	if r.marks = r.marks[:0]; n > 1024 {
		r.marks = nil
	}
	p.last.Store(now)
	p.flow.deliver(int64(n))
}

// dialer opens connections to the hub.
type dialer struct {
	hub     *url.URL
	tls     *tls.Config // nil: plain
	http2   bool        // for subscribers
	streams int         // of one HTTP/2 connection
	narrow  bool        // connections take in as little as can be without being read
	sources int         // addresses from 127.0.1.1 on that connections come from in turn; 0: the system chooses
}

// patience bounds the opening of a connection.
const patience = 30 * time.Second

// connect opens a connection for HTTP/1.1. It is closed with a reset, which leaves nothing behind on this machine.
func (d *dialer) connect(ctx context.Context, i int) (net.Conn, error) {
	conn, err := d.open(ctx, i)
	if err != nil || d.tls == nil {
		return conn, err
	}
	c := d.tls.Clone()
	c.NextProtos = []string{"http/1.1"}
	t := tls.Client(conn, c)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := t.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return t, nil
}

func (d *dialer) open(ctx context.Context, i int) (net.Conn, error) {
	n := net.Dialer{Timeout: patience}
	if d.sources > 0 {
		n.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%d.sources))}
	}
	if d.narrow {
		n.Control = narrow
	}
	conn, err := n.DialContext(ctx, "tcp", d.address())
	if err != nil {
		return nil, err
	}
	if t, ok := conn.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	return conn, nil
}

// address gives host and port of the hub.
func (d *dialer) address() string {
	if d.hub.Port() != "" {
		return d.hub.Host
	}
	return net.JoinHostPort(d.hub.Hostname(), d.hub.Scheme)
}

// transport makes an HTTP/2 transport for one connection, as long as the hub allows as many streams on it.
func (d *dialer) transport() *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	var windows http.HTTP2Config
	if d.narrow {
		windows.MaxReceiveBufferPerStream = 64 << 10 // the least that there can be
	}
	return &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return d.open(ctx, 0) },
		TLSClientConfig:     d.tls.Clone(),
		TLSHandshakeTimeout: patience, ResponseHeaderTimeout: patience,
		Protocols:          &protocols,
		HTTP2:              &windows,
		DisableCompression: true,
	}
}
