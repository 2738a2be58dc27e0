package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// beside is what the numbers of subscribers that read are beside others that do not, divided by what they were without those.
type beside struct {
	Delivered float64 `json:"delivered_per_s"`
	P50       float64 `json:"p50"`
	P99       float64 `json:"p99"`
}

// deliverBeside delivers twice, the second time beside subscribers that do not read, and has those come back for what they missed.
func (s *session) deliverBeside(ctx context.Context, n int, spec func(i int) subscription, w work) error {
	without, err := s.delivery(ctx, "without stalled readers", n, spec, w)
	if err != nil {
		return err
	}
	s.out.add(without.result)
	cursor, err := s.one(ctx, s.stored(1), s.o.c, s.topics+"begin")
	if err != nil {
		return err
	}
	s.run++ // the lanes begin again
	further := func(i int) subscription { return spec(n + i) }
	p := s.stalledPool(ctx)
	defer p.close()
	if _, err := s.connect(ctx, p, s.o.stalled, further); err != nil {
		return err
	}
	with, err := s.delivery(ctx, "beside stalled readers", n, spec, w)
	if err != nil {
		return err
	}
	with.Beside = with.over(&without.result)
	s.out.add(with.result)
	p.close()
	return s.comeBack(ctx, cursor, further, with)
}

// stalledPool gives a pool of subscribers that read nothing but the head of the response. What they are owed is accounted when they come
// back, by followers of their own.
func (s *session) stalledPool(ctx context.Context) *pool {
	p := s.pool()
	p.kind = "stalled"
	d := *s.dial
	d.narrow = true
	p.dial = &d
	ctx, p.release = context.WithCancel(ctx)
	p.hold = ctx.Done()
	return p
}

// over gives the ratios to another result; nil when one of both has nothing to compare.
func (r *result) over(o *result) *beside {
	if r.Delivery == nil || o.Delivery == nil || o.Delivery.P50 <= 0 || o.Delivery.P99 <= 0 {
		return nil
	}
	return &beside{
		Delivered: r.DeliveredRate / o.DeliveredRate,
		P50:       r.Delivery.P50 / o.Delivery.P50,
		P99:       r.Delivery.P99 / o.Delivery.P99,
	}
}

// comeBack connects those that have stalled again, after the last update before they did, and accounts what they get.
func (s *session) comeBack(ctx context.Context, cursor string, spec func(i int) subscription, with delivered) error {
	p := s.pool()
	defer p.close()
	p.kind = "stalled"
	var expected int64
	m := s.meter()
	elapsed, err := s.connect(ctx, p, s.o.stalled, func(i int) subscription {
		x := spec(i)
		x.cursor = cursor
		expected += x.follower.lost(with.lanes)
		return x
	})
	if status := (*statusError)(nil); errors.As(err, &status) && status.code == http.StatusNotImplemented {
		return nil // there is no history to come back for, as with a floor
	}
	if err != nil {
		return fmt.Errorf("come back: %w", err)
	}
	start := p.since() - int64(elapsed)
	p.flow.sent.Store(expected)
	if err := s.drain(ctx, p); err != nil {
		return err
	}
	r := s.result("stalled readers, come back", s.o.stalled, 0, time.Duration(max(p.last.Load()-start, int64(elapsed))))
	m.stop(&r)
	if err := wait(ctx, linger); err != nil {
		return err
	}
	p.close()
	r.Note = note(nil, p)
	for _, x := range p.readers {
		if x.trimmed() {
			x.spec.follower.forget(spec(x.index).follower.shared, with.lanes)
			r.Note = noteTrimmed
		}
	}
	r.account(p, with.lanes)
	r.DeliveredRate = float64(r.Delivered) / r.Seconds
	if r.Note == "" && !r.broken() && !with.broken() && p.readers[0].spec.follower.order != with.order {
		r.Disagreed = int64(s.o.stalled) // they agree with each other, but not with those that did not stall
	}
	s.out.add(r)
	return nil
}
