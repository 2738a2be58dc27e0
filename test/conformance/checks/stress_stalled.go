package checks

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

const (
	stalledEvents = 192
	stalledBytes  = 48 << 10 // of an event: nine megabytes in all, more than the buffers of two sockets
	// What unread streams may cost others in all, beyond several times what the same work takes without them.
	stalledHold   = 10 * time.Second
	stalledFactor = 5
)

// stressStalled does the same work twice: beside nobody, and beside streams that nobody reads, with more events than the
// buffers on the way can hold. With replay, what they do not read is history.
func stressStalled(t *suite.T, unread int, replay bool) {
	w := stalledWork{t: t, topic: t.Topic(), post: suite.Bearer(t.Post(""), t.PublishAll()), data: strings.Repeat("stalled ", stalledBytes/8)}
	query := recTo(w.topic)
	if replay {
		query += "&last_event_id=" + wire.Escape(t.Publish("topic", w.topic, "data", "start"))
	}
	alone := w.run(0)
	for range unread {
		conn := stalledOpen(t, suite.Bearer(t.Get(query), t.SubscribeAll()))
		defer conn.Close()
	}
	bound := stalledFactor*alone + stalledHold
	beside := w.run(bound)
	t.Observed("%d events of %d bytes took %s, and %s beside %d unread streams", stalledEvents, stalledBytes,
		alone.Round(time.Millisecond), beside.Round(time.Millisecond), unread)
}

// stalledWork is publishing big updates, and reading them.
type stalledWork struct {
	t     *suite.T
	topic string
	post  wire.Request
	data  string
}

// run publishes to a stream of the same topic, to one of another, and to one that comes half-way, which all must have each
// update before the next one is published. It says how long that took; beyond a bound that is not 0 the check fails.
func (w stalledWork) run(bound time.Duration) time.Duration {
	t := w.t
	began := time.Now()
	publish := func(pairs ...string) string { return t.PublishWith(stressBody(w.post, wire.Form(pairs...))) }
	arrives := func(s *suite.Stream, id string) {
		if e := s.Next(); e.ID != id {
			t.Fail("a stream that is read received %+q, wanted %+q", e.ID, id)
		}
	}
	same, other := t.ListenTo(w.topic), t.ListenTo(w.topic+"/other")
	defer same.Close()
	defer other.Close()
	readers := []*suite.Stream{same}
	for i := range stalledEvents {
		if i == stalledEvents/2 {
			late := t.ListenTo(w.topic)
			defer late.Close()
			readers = append(readers, late)
		}
		id := publish("topic", w.topic, "data", w.data)
		for _, s := range readers {
			arrives(s, id)
		}
		if i%16 == 0 {
			arrives(other, publish("topic", w.topic+"/other", "data", "x"))
		}
		if took := time.Since(began); bound > 0 && took > bound {
			t.Fail("beside unread streams, %d of %d events took %s; more than %s was not to be expected", i+1, stalledEvents,
				took.Round(time.Millisecond), bound.Round(time.Millisecond))
		}
	}
	return time.Since(began)
}

// stalledOpen opens a stream and reads no more than the head of the response.
func stalledOpen(t *suite.T, r wire.Request) net.Conn {
	conn, err := t.Dialer().Dial(t.Context())
	if err != nil {
		t.Fail("connect: %v", err)
	}
	raw := conn
	if c, ok := conn.(*tls.Conn); ok {
		raw = c.NetConn()
	}
	if c, ok := raw.(*net.TCPConn); ok {
		_ = c.SetReadBuffer(4 << 10) // so that the hub notices soon; otherwise it takes more events
	}
	head, err := stalledHead(t, conn, r)
	if err != nil || !strings.HasPrefix(head, "HTTP/1.1 200") && !strings.HasPrefix(head, "HTTP/1.0 200") {
		_ = conn.Close()
		line, _, _ := strings.Cut(head, "\r\n")
		t.Fail("opening a stream that is not read: answered %.40q, %v", line, err)
	}
	return conn
}

// stalledHead writes a request and reads the head of the response octet by octet.
func stalledHead(t *suite.T, conn net.Conn, r wire.Request) (string, error) {
	u, err := url.Parse(t.Target().URL)
	if err != nil {
		return "", fmt.Errorf("the hub URL: %w", err)
	}
	var b strings.Builder
	b.WriteString(r.Method + " " + r.Target + " HTTP/1.1\r\nHost: " + u.Host + "\r\n")
	for _, f := range r.Fields {
		b.WriteString(f.Name + ": " + f.Value + "\r\n")
	}
	b.WriteString("\r\n")
	_ = conn.SetDeadline(time.Now().Add(t.Target().Patience))
	if _, err := conn.Write([]byte(b.String())); err != nil {
		return "", err
	}
	var head []byte
	octet := make([]byte, 1)
	for len(head) < 16<<10 {
		if _, err := conn.Read(octet); err != nil {
			return string(head), err
		}
		if head = append(head, octet[0]); slices.Equal(head[max(0, len(head)-4):], []byte("\r\n\r\n")) {
			return string(head), nil
		}
	}
	return string(head), errors.New("the head of the response does not end")
}
