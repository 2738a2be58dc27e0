package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// storedTopics is how many topics what is stored has.
const storedTopics = 1000

// one publishes one update and gives its id.
func (s *session) one(ctx context.Context, l *load, lane int, topic string) (string, error) {
	one := *l
	one.c, one.events, one.rate, one.limit = 1, 1, 0, patience
	one.next = func(int, int) update { return update{lane: uint32(lane), topic: topic} }
	p := publisher{load: &one, start: time.Now()}
	p.publish(ctx)
	switch {
	case p.err != nil:
		return "", p.err
	case ctx.Err() != nil:
		return "", ctx.Err()
	}
	return string(p.answer), nil
}

// stored gives a load without subscribers: the publishers have the first lanes, and there are others.
func (s *session) stored(others int) *load {
	f := &flow{}
	f.begin(0, 0)
	return s.load(f, work{lanes: s.o.c + others, publishers: s.o.c, next: func(publisher, k int) update {
		return update{lane: uint32(publisher), topic: s.topics + "t/" + strconv.Itoa((publisher+k*s.o.c)%storedTopics)}
	}})
}

// durable publishes without subscribers, and reads back what was acknowledged.
func (s *session) durable(ctx context.Context) error {
	l := s.stored(1)
	begin, err := s.one(ctx, l, s.o.c, s.topics+"begin")
	if err != nil {
		return err
	}
	m := s.meter()
	pub := l.publish(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	r := s.result("publish", 0, s.o.c, pub.elapsed)
	m.stop(&r)
	r.published(&pub, s.o.size)
	r.Note = note(pub.err, &pool{})
	s.out.add(r)
	f := follower{shared: make([]uint32, len(l.lanes)), own: noLane}
	f.shared[s.o.c] = 1 // the one that the reading begins after
	err = s.read(ctx, "read back", 1, subscription{exact: []string{"*"}, cursor: begin, follower: f}, l.lanes)
	if status := (*statusError)(nil); errors.As(err, &status) && status.code == http.StatusNotImplemented {
		return nil // there is no history to read, as with a floor
	}
	return err
}

// rare is how many updates of the rare topic there are, and how far from the end of the history the tail begins.
const rare = 10

// replay stores a history and reads it from several places.
func (s *session) replay(ctx context.Context) error {
	l := s.stored(3)
	rareLane, tailLane, beginLane := s.o.c, s.o.c+1, s.o.c+2
	begin, err := s.one(ctx, l, beginLane, s.topics+"begin")
	if err != nil {
		return err
	}
	l.events, l.limit, l.rate = s.o.history/rare, time.Hour, 0
	m := s.meter()
	var total published
	for range rare {
		pub := l.publish(ctx)
		total.acknowledged += pub.acknowledged
		total.failed += pub.failed
		total.elapsed += pub.elapsed
		total.latency.merge(&pub.latency)
		if total.err == nil {
			total.err = pub.err
		}
		if _, err := s.one(ctx, l, rareLane, s.topics+"rare/1"); err != nil {
			return err
		}
	}
	var tail string
	for i := range rare + 1 {
		id, err := s.one(ctx, l, tailLane, s.topics+"tail")
		if err != nil {
			return err
		}
		if i == 0 {
			tail = id
		}
	}
	r := s.result("store", 0, s.o.c, total.elapsed)
	m.stop(&r)
	r.published(&total, s.o.size)
	r.Note = note(total.err, &pool{})
	s.out.add(r)
	afterTail := toOne(tailLane)
	afterTail.next = 1
	everything := follower{shared: make([]uint32, len(l.lanes)), own: noLane}
	everything.shared[beginLane] = 1
	for _, step := range []struct {
		phase string
		times int
		what  subscription
	}{
		{"ten before the end", 5, subscription{exact: []string{"*"}, cursor: tail, follower: afterTail}},
		{"ten of one topic from the earliest", 5, subscription{exact: []string{s.topics + "rare/1"}, cursor: "earliest", follower: toOne(rareLane)}},
		{"ten of one pattern from the earliest", 5, subscription{patterns: []string{s.topics + "rare/:id"}, cursor: "earliest", follower: toOne(rareLane)}},
		{"everything", 3, subscription{exact: []string{"*"}, cursor: begin, follower: everything}},
	} {
		if err := s.read(ctx, step.phase, step.times, step.what, l.lanes); err != nil {
			return err
		}
	}
	return nil
}

// read reads from the history, several times, and reports the medians; what went wrong is added up.
func (s *session) read(ctx context.Context, phase string, times int, what subscription, lanes []lane) error {
	r := s.result(phase, 1, 0, 0)
	var first, last, rate []float64
	m := s.meter()
	for range times {
		p, start, err := s.readOnce(ctx, what, lanes)
		if err != nil {
			return err
		}
		x := p.readers[0]
		trimmed := x.trimmed()
		if trimmed {
			x.spec.follower.forget(what.follower.shared, lanes)
		}
		r.account(p, lanes)
		if x.seen > 0 {
			first = append(first, milliseconds(time.Duration(x.first-start)))
			last = append(last, milliseconds(time.Duration(x.last-start)))
			rate = append(rate, float64(x.seen)/time.Duration(x.last-start).Seconds())
			r.Seconds += time.Duration(x.last - start).Seconds()
		}
		if n := note(nil, p); n != "" {
			r.Note = n
		}
		if trimmed {
			r.Note = noteTrimmed
			break
		}
	}
	m.stop(&r)
	if len(first) > 0 {
		r.First, r.Last, r.DeliveredRate = median(first), median(last), median(rate)
	}
	s.out.add(r)
	return nil
}

const noteTrimmed = "only what came was compared: the hub no longer has, or never had, the update that the reading was to begin after"

// trimmed says whether the hub's history began later than what the subscriber asked for.
func (r *reader) trimmed() bool {
	return r.resumed != "" && r.resumed != r.spec.cursor && r.spec.cursor != "earliest"
}

// readOnce reads once, until what is expected has come. It gives the closed pool and the time at which it began.
func (s *session) readOnce(ctx context.Context, what subscription, lanes []lane) (*pool, int64, error) {
	p := s.pool()
	defer p.close()
	what.follower.shared = slices.Clone(what.follower.shared)
	expected := what.follower.lost(lanes)
	start := p.since()
	if _, err := s.connect(ctx, p, 1, func(int) subscription { return what }); err != nil {
		return nil, 0, fmt.Errorf("read the history: %w", err)
	}
	p.flow.sent.Store(expected)
	if err := s.drain(ctx, p); err != nil {
		return nil, 0, err
	}
	if err := wait(ctx, linger); err != nil {
		return nil, 0, err
	}
	p.close()
	return p, start, nil
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
