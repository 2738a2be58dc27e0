package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"
)

// session is one scenario against one hub.
type session struct {
	o        *options
	name     string
	out      *report
	dial     *dialer
	minter   *minter // nil without a key
	pubToken string
	subToken string
	pid      int // 0: unknown
	run      uint32
	base     time.Time
	topics   string // what all topics begin with
}

// scenario runs one scenario, on a hub of its own when there is a command for that.
func (o *options) scenario(ctx context.Context, name string, out *report) error {
	target := *o
	if o.start != "" {
		h, err := o.launch(ctx)
		if err != nil {
			return err
		}
		defer h.stop()
		target = h.options
	}
	s, err := target.session(name, out)
	if err != nil {
		return err
	}
	for _, sc := range scenarios() {
		if sc.name == name {
			return sc.run(s, ctx)
		}
	}
	return fmt.Errorf("there is no scenario %q", name)
}

func (o *options) session(name string, out *report) (*session, error) {
	hub, err := url.Parse(o.hub)
	if err != nil {
		return nil, err
	}
	hub.Path = cmp.Or(hub.Path, "/")
	var random [4]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, err
	}
	run := hex.EncodeToString(random[:])
	s := &session{
		o: o, name: name, out: out, pid: o.pid, run: binary.BigEndian.Uint32(random[:]), base: time.Now(), topics: o.topics + run + "/",
		dial: &dialer{hub: hub, http2: o.http2, streams: o.streams, sources: o.sources},
	}
	if hub.Scheme == "https" {
		if s.dial.tls, err = o.tlsConfig(hub); err != nil {
			return nil, err
		}
	}
	if o.pid != 0 {
		if _, err := measure(o.pid); err != nil {
			return nil, err
		}
	}
	if err := s.tokens(run); err != nil {
		return nil, err
	}
	return s, nil
}

// tokens reads or makes the tokens that all publishers and all subscribers share.
func (s *session) tokens(run string) (err error) {
	if s.o.key == "" {
		if s.pubToken, err = readToken(s.o.tokenFile); err != nil {
			return err
		}
	} else {
		if s.minter, err = s.o.newMinter(run); err != nil {
			return err
		}
		if s.pubToken, err = s.minter.mint("publisher", grant{action: "publish", exact: []string{"*"}}); err != nil {
			return err
		}
	}
	if s.o.subTokenFile != "" {
		s.subToken, err = readToken(s.o.subTokenFile)
	}
	return err
}

// pool gives a pool without subscribers.
func (s *session) pool() *pool {
	p := &pool{dial: s.dial, run: s.run, base: s.base, kind: "subscriber"}
	p.large.New = func() any { return new([largeBuffer]byte) }
	return p
}

// connect opens n subscribers. Tokens are made before.
func (s *session) connect(ctx context.Context, p *pool, n int, spec func(i int) subscription) (time.Duration, error) {
	specs := make([]subscription, n)
	for i := range specs {
		specs[i] = spec(i)
		specs[i].token = s.subToken
		if !s.o.tokens && !needsTokens(s.name) {
			continue
		}
		token, err := s.minter.mint(fmt.Sprintf("%s/%d", p.kind, i), grant{action: "subscribe", exact: specs[i].exact, patterns: specs[i].patterns})
		if err != nil {
			return 0, err
		}
		specs[i].token = token
	}
	p.flow.begin(1, 0)
	return p.connect(ctx, n, s.o.connections, func(i int) subscription { return specs[i] })
}

// settle is how long a hub has to make ready what it has accepted.
const settle = 300 * time.Millisecond

// linger is how long repeats have to come after everything has been delivered.
const linger = 100 * time.Millisecond

// work is what a scenario publishes.
type work struct {
	lanes      int
	fan        int64 // deliveries of each update
	publishers int
	next       func(publisher, k int) update
}

// deliver connects subscribers, publishes to them, and reports.
func (s *session) deliver(ctx context.Context, n int, spec func(i int) subscription, w work) error {
	if s.o.stalled > 0 {
		return s.deliverBeside(ctx, n, spec, w)
	}
	r, err := s.delivery(ctx, "", n, spec, w)
	if err != nil {
		return err
	}
	s.out.add(r.result)
	return nil
}

// delivered is what a delivery gave, and from what.
type delivered struct {
	result
	lanes []lane
	order uint64 // of the lanes among them, as the first subscriber saw it
}

// delivery connects subscribers and publishes to them.
func (s *session) delivery(ctx context.Context, phase string, n int, spec func(i int) subscription, w work) (d delivered, err error) {
	p := s.pool()
	defer p.close()
	if _, err := s.connect(ctx, p, n, spec); err != nil {
		return d, err
	}
	if err := wait(ctx, settle); err != nil {
		return d, err
	}
	window := int64(s.o.window) * w.fan
	if w.fan == 1 {
		window *= windowOfOne
	}
	p.flow.begin(w.fan, window)
	l := s.load(&p.flow, w)
	m := s.meter()
	p.record.Store(true)
	start := p.since()
	pub := l.publish(ctx)
	published := p.since()
	if err := s.drain(ctx, p); err != nil {
		return d, err
	}
	end := max(published, p.last.Load())
	r := s.result(phase, n, w.publishers, time.Duration(end-start))
	m.stop(&r)
	if err := wait(ctx, linger); err != nil {
		return d, err
	}
	p.close()
	r.Note = note(pub.err, p)
	r.published(&pub, s.o.size)
	r.account(p, l.lanes)
	r.DeliveredRate = float64(r.Delivered) / r.Seconds
	r.Delivery = quantiles(p.latencies.sum())
	return delivered{result: r, lanes: l.lanes, order: p.readers[0].spec.follower.order}, nil
}

// windowOfOne is how many times larger the window is when each update is for one subscriber only.
const windowOfOne = 16

func (s *session) load(f *flow, w work) *load {
	return &load{
		dial: s.dial, token: s.pubToken, run: s.run, base: s.base, lanes: make([]lane, w.lanes), flow: f, c: w.publishers,
		size: s.o.size, events: s.o.events, limit: s.o.duration, rate: s.o.rate, next: w.next,
	}
}

// drain waits until everything that is under way is delivered, or nothing has come for a while.
func (s *session) drain(ctx context.Context, p *pool) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	seen, at := p.flow.delivered.Load(), time.Now()
	for p.flow.outstanding() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if now := p.flow.delivered.Load(); now != seen {
			seen, at = now, time.Now()
		} else if time.Since(at) > s.o.stall {
			return nil
		}
	}
	return nil
}

// meter tells what the hub and this program use from its making on.
type meter struct {
	pid      int
	hub, own usage
}

// meter begins to measure.
func (s *session) meter() meter {
	m := meter{pid: s.pid}
	m.hub, m.own = m.read()
	return m
}

// read gives nothing of what is not known: a hub without -pid, or on a system that does not tell. A hub that has ended is not known
// either, which its streams will tell.
func (m meter) read() (hub, own usage) {
	if m.pid != 0 {
		hub, _ = measure(m.pid)
	}
	own, _ = measureOne(os.Getpid())
	return hub, own
}

// stop writes what has been used into a result.
func (m meter) stop(r *result) {
	hub, own := m.read()
	r.HubCPU, r.HubResident = (hub.cpu - m.hub.cpu).Seconds(), hub.resident
	r.OwnCPU = (own.cpu - m.own.cpu).Seconds()
}

func (s *session) result(phase string, subscribers, publishers int, elapsed time.Duration) result {
	return result{Scenario: s.name, Phase: phase, Subscribers: subscribers, Publishers: publishers, Seconds: elapsed.Seconds()}
}

// published takes over what came of the publications.
func (r *result) published(p *published, size int) {
	r.Acknowledged, r.Refused, r.Bytes = p.acknowledged, p.failed, size
	r.PublishedRate = float64(p.acknowledged) / p.elapsed.Seconds()
	r.Publish = quantiles(&p.latency)
}

// account takes over what the subscribers of a closed pool have seen.
func (r *result) account(p *pool, lanes []lane) {
	orders := map[uint64]int64{}
	var agreed int64 // how many saw the order that most saw
	for _, x := range p.readers {
		f := &x.spec.follower
		lost := f.lost(lanes)
		r.Expected += f.delivered + lost
		r.Delivered += f.delivered
		r.Lost += lost
		r.Repeated += f.repeated
		r.Late += f.late
		r.Stray += f.stray
		orders[f.order]++
		agreed = max(agreed, orders[f.order])
	}
	r.Closed += p.closed.Load()
	r.Disagreed = int64(len(p.readers)) - agreed
	if r.Lost > 0 || r.Late > 0 || r.Repeated > 0 || r.Refused > 0 {
		r.Disagreed = 0 // follows from the others
	}
}

// note says why something failed first.
func note(publish error, p *pool) string {
	if stream := p.failure.Load(); publish == nil && stream != nil {
		publish = *stream
	}
	if publish == nil {
		return ""
	}
	return publish.Error()
}

// wait waits, unless ctx is done before.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errNoPID = errors.New("what the hub uses is not known: give its process with -pid, or start it with -start")
