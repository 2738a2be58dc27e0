package main

import (
	"context"
	"strconv"
)

// scenarios gives what the program can do, in the order of 'all'.
func scenarios() []struct {
	name string
	run  func(*session, context.Context) error
} {
	return []struct {
		name string
		run  func(*session, context.Context) error
	}{
		{"fan-out", (*session).fanOut},
		{"topics", (*session).perTopic},
		{"patterns", (*session).perPattern},
		{"private", (*session).privateToAll},
		{"private-one", (*session).privateToOne},
		{"idle", (*session).idle},
		{"connect", (*session).connects},
		{"durable", (*session).durable},
		{"replay", (*session).replay},
	}
}

func scenarioNames() []string {
	var names []string
	for _, s := range scenarios() {
		names = append(names, s.name)
	}
	return names
}

// toAll follows the lanes of all publishers.
func (s *session) toAll() follower { return follower{shared: make([]uint32, s.o.c), own: noLane} }

// toOne follows a lane of its own.
func toOne(lane int) follower { return follower{own: uint32(lane)} }

// each gives work in which the publishers share the subscribers: each publishes to every so manieth in turn.
func (s *session) each(topic func(i, k int) string, private bool) work {
	n, c := s.o.n, min(s.o.c, s.o.n)
	return work{lanes: n, fan: 1, publishers: c, next: func(publisher, k int) update {
		mine := (n - publisher + c - 1) / c // subscribers of this publisher
		i := publisher + k%mine*c
		return update{lane: uint32(i), topic: topic(i, k), private: private}
	}}
}

func (s *session) fanOut(ctx context.Context) error {
	t := s.topics + "all"
	return s.deliver(ctx, s.o.n, func(int) subscription {
		return subscription{exact: []string{t}, follower: s.toAll()}
	}, work{lanes: s.o.c, fan: int64(s.o.n), publishers: s.o.c, next: func(publisher, _ int) update {
		return update{lane: uint32(publisher), topic: t}
	}})
}

func (s *session) perTopic(ctx context.Context) error {
	topic := func(i, _ int) string { return s.topics + "t/" + strconv.Itoa(i) }
	return s.deliver(ctx, s.o.n, func(i int) subscription {
		return subscription{exact: []string{topic(i, 0)}, follower: toOne(i)}
	}, s.each(topic, false))
}

func (s *session) perPattern(ctx context.Context) error {
	base := func(i int) string { return s.topics + "users/" + strconv.Itoa(i) + "/books/" }
	return s.deliver(ctx, s.o.n, func(i int) subscription {
		return subscription{patterns: []string{base(i) + ":id"}, follower: toOne(i)}
	}, s.each(func(i, k int) string { return base(i) + strconv.Itoa(k) }, false))
}

// member is a subscriber who may read one topic that all may read, and topics of its own.
func (s *session) member(i int, f follower) subscription {
	return subscription{exact: []string{s.topics + "all"}, patterns: []string{s.memberTopic(i) + ":id"}, follower: f}
}

func (s *session) memberTopic(i int) string { return s.topics + "members/" + strconv.Itoa(i) + "/" }

func (s *session) privateToAll(ctx context.Context) error {
	return s.deliver(ctx, s.o.n, func(i int) subscription { return s.member(i, s.toAll()) },
		work{lanes: s.o.c, fan: int64(s.o.n), publishers: s.o.c, next: func(publisher, _ int) update {
			return update{lane: uint32(publisher), topic: s.topics + "all", private: true}
		}})
}

func (s *session) privateToOne(ctx context.Context) error {
	return s.deliver(ctx, s.o.n, func(i int) subscription { return s.member(i, toOne(i)) },
		s.each(func(i, k int) string { return s.memberTopic(i) + strconv.Itoa(k) }, true))
}

// idleTopics is how many topics idle subscribers share.
const idleTopics = 1000

// quiet subscribes to what nobody publishes.
func (s *session) quiet(i int) subscription {
	return subscription{exact: []string{s.topics + "quiet/" + strconv.Itoa(i%idleTopics)}, follower: follower{own: noLane}}
}

func (s *session) idle(ctx context.Context) error {
	switch {
	case s.pid == 0 && s.o.scenarios == "all": // the others can be measured
		r := s.result("", 0, 0, 0)
		r.Note = errNoPID.Error()
		s.out.add(r)
		return nil
	case s.pid == 0:
		return errNoPID
	}
	if err := wait(ctx, s.o.rest); err != nil {
		return err
	}
	empty := s.meter()
	p := s.pool()
	defer p.close()
	elapsed, err := s.connect(ctx, p, s.o.n, s.quiet)
	if err != nil {
		return err
	}
	if err := wait(ctx, s.o.rest); err != nil {
		return err
	}
	connected := s.meter()
	if err := wait(ctx, s.o.duration); err != nil {
		return err
	}
	r := s.result("", s.o.n, 0, s.o.duration)
	connected.stop(&r)
	p.close()
	r.ConnectedRate = float64(s.o.n) / elapsed.Seconds()
	r.HubEach = float64(r.HubResident-empty.hub.resident) / float64(s.o.n)
	r.Note = note(nil, p)
	r.account(p, nil)
	s.out.add(r)
	return nil
}

func (s *session) connects(ctx context.Context) error {
	p := s.pool()
	defer p.close()
	m := s.meter()
	elapsed, err := s.connect(ctx, p, s.o.n, s.quiet)
	if err != nil {
		return err
	}
	r := s.result("", s.o.n, 0, elapsed)
	m.stop(&r)
	p.close()
	r.ConnectedRate = float64(s.o.n) / elapsed.Seconds()
	r.Note = note(nil, p)
	r.account(p, nil)
	s.out.add(r)
	return nil
}
