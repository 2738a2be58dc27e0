package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxAnswer bounds what is read of an answer to a publication.
const maxAnswer = 64 << 10

// maxFailures is how many publications of one publisher may fail in a row before it gives up.
const maxFailures = 10

// update is what is published next.
type update struct {
	lane    uint32
	topic   string
	private bool
}

// load is what the publishers of one phase do.
type load struct {
	dial   *dialer
	token  string
	run    uint32
	base   time.Time // marks tell times from here on
	lanes  []lane
	flow   *flow
	c      int                           // publishers
	size   int                           // bytes of data
	events int                           // updates at most
	limit  time.Duration                 // time at most
	rate   float64                       // updates a second; 0: as many as the hub takes
	next   func(publisher, k int) update // the k-th update of a publisher
}

// published is what came of a load.
type published struct {
	acknowledged, failed int64
	elapsed              time.Duration
	latency              histogram
	err                  error // why the first publication failed
}

// run publishes until the time is over, the number is reached, or ctx is done.
func (l *load) publish(ctx context.Context) published {
	ctx, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	var (
		total published
		mu    sync.Mutex
		done  sync.WaitGroup
	)
	start := time.Now()
	for i := range l.c {
		done.Go(func() {
			p := publisher{load: l, index: i, start: start}
			p.publish(ctx)
			mu.Lock()
			defer mu.Unlock()
			total.acknowledged += p.acknowledged
			total.failed += p.failed
			total.latency.merge(&p.latency)
			if total.err == nil {
				total.err = p.err
			}
		})
	}
	done.Wait()
	total.elapsed = time.Since(start)
	return total
}

// publisher is one connection on which one update is published at a time.
type publisher struct {
	*load
	index  int
	start  time.Time
	conn   net.Conn
	in     *bufio.Reader
	answer []byte // of the last publication: the id of the update
	body   []byte
	out    []byte
	published
}

func (p *publisher) publish(ctx context.Context) {
	defer p.hangUp()
	count := (p.events + p.c - 1 - p.index) / p.c
	for k, failures := 0, 0; k < count && failures < maxFailures; k++ {
		sent, ok := p.pace(ctx, k)
		if !ok || ctx.Err() != nil || !p.flow.publish(ctx) {
			return
		}
		if p.rate == 0 {
			sent = time.Now()
		}
		u := p.next(p.index, k)
		l := &p.lanes[u.lane]
		// An update that was begun is waited for, whatever becomes of ctx: otherwise nobody knew whether it was lost.
		err := p.send(context.WithoutCancel(ctx), u, sent)
		failures++
		if err == nil {
			p.latency.add(time.Since(sent))
			p.acknowledged++
			failures = 0
		} else {
			l.failed = append(l.failed, l.sent)
			p.failed++
			p.flow.deliver(p.flow.fan) // nobody can wait for it
			if p.err == nil {
				p.err = err
			}
		}
		l.sent++
	}
}

// pace waits until the k-th update is due, when there is a rate, and gives the time at which it was.
func (p *publisher) pace(ctx context.Context, k int) (time.Time, bool) {
	if p.rate == 0 {
		return time.Time{}, true
	}
	due := p.start.Add(time.Duration(float64(k*p.c+p.index) / p.rate * float64(time.Second)))
	wait := time.NewTimer(time.Until(due))
	defer wait.Stop()
	select {
	case <-wait.C:
		return due, true
	case <-ctx.Done():
		return due, false
	}
}

// send publishes one update and waits for the answer.
func (p *publisher) send(ctx context.Context, u update, sent time.Time) error {
	if p.conn == nil {
		conn, err := p.dial.connect(ctx, p.index)
		if err != nil {
			return fmt.Errorf("connect a publisher: %w", err)
		}
		p.conn, p.in = conn, bufio.NewReader(conn)
	}
	p.encode(u, sent)
	keep, err := p.exchange()
	if !keep {
		p.hangUp()
	}
	return err
}

// encode writes the request for an update into p.out.
func (p *publisher) encode(u update, sent time.Time) {
	p.body = append(append(p.body[:0], "topic="...), url.QueryEscape(u.topic)...)
	if u.private {
		p.body = append(p.body, "&private=on"...)
	}
	p.body = append(p.body, "&data="...)
	p.body = mark{run: p.run, lane: u.lane, seq: p.lanes[u.lane].sent, sent: int64(sent.Sub(p.base))}.append(p.body, p.size)
	p.out = append(append(p.out[:0], "POST "...), p.dial.hub.EscapedPath()...)
	p.out = append(append(p.out, " HTTP/1.1\r\nHost: "...), p.dial.hub.Host...)
	p.out = append(p.out, "\r\nContent-Type: application/x-www-form-urlencoded\r\n"...)
	if p.token != "" {
		p.out = append(append(append(p.out, "Authorization: Bearer "...), p.token...), "\r\n"...)
	}
	p.out = strconv.AppendInt(append(p.out, "Content-Length: "...), int64(len(p.body)), 10)
	p.out = append(append(p.out, "\r\n\r\n"...), p.body...)
}

// exchange sends the request and reads the answer. The connection can be kept or not.
func (p *publisher) exchange() (keep bool, err error) {
	if err := p.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return false, err
	}
	if _, err := p.conn.Write(p.out); err != nil {
		return false, fmt.Errorf("publish: %w", err)
	}
	resp, err := http.ReadResponse(p.in, nil)
	if err != nil {
		return false, fmt.Errorf("read the answer to a publication: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	p.answer, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case err != nil:
		return false, fmt.Errorf("read the answer to a publication: %w", err)
	case resp.StatusCode != http.StatusOK:
		text, _, _ := strings.Cut(string(p.answer), "\n")
		return false, fmt.Errorf("the hub answered a publication with %s: %.200s", resp.Status, text)
	}
	return !resp.Close, nil
}

func (p *publisher) hangUp() {
	if p.conn != nil {
		_ = p.conn.Close()
		p.conn = nil
	}
}
