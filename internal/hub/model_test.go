package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/test/bubble"
)

// action is one thing that TestModel does.
type action int

const (
	publishes     action = iota // n updates
	subscribes                  // a new reader
	resumes                     // a reader whose stream has ended goes on after what it got, as an EventSource does
	takes                       // a slow reader makes room
	hangsUp                     // a peer is gone
	isEnded                     // Subscriber.End
	isDiscarded                 // a stream that never gets a sink
	revokes                     // every stream of one token
	closesUnnamed               // every stream without a token
	elapses                     // time: expiry, keep-alives, write time-outs
	restarts                    // another hub takes over the history
	stallsTail                  // what is acknowledged is not dispatched for a while
	resumesTail
)

// step is an action with what it may need.
type step struct {
	action   action
	n        int // how many, which stream, which of the acknowledged, what time: whatever the action counts
	topics   []string
	matchers []string
	reads    []string // nil: anonymous
	private  bool
	sameID   bool // an id that others have too
	bytes    int
	room     int
	expires  int // seconds; 0: never
	graceful bool
	settles  bool // everything comes to rest before the next step
}

// plan is what TestModel draws: a hub and what happens to it.
type plan struct {
	steps        []step
	retains      int // entries; 0: all
	backlog      int
	total        int64
	shards       int
	writeTimeout time.Duration
	unknownLive  bool
	// subscriptions are announced between the updates: some streams select and may read that.
	subscriptions bool
}

// modelPatterns are URL Patterns with the topics of modelTopics that they select, judged by hand.
func modelPatterns() map[string][]string {
	return map[string][]string{
		"~https://e.example/:x":    {"https://e.example/a", "https://e.example/b"},
		"~https://e.example/*":     {"https://e.example/a", "https://e.example/b", "https://e.example/a/1"},
		"~https://:h.example/a":    {"https://e.example/a", "https://f.example/a"},
		"~https://e.example/a/:n?": {"https://e.example/a", "https://e.example/a/1"},
		"~https://none.example/*":  nil,
	}
}

func modelTopics() []string {
	return []string{"https://e.example/a", "https://e.example/b", "https://e.example/a/1", "https://f.example/a", "urn:x", "c"}
}

// modelSelects tells what a matcher selects, without the code under test.
func modelSelects(matchers, topics []string) bool {
	patterns := modelPatterns()
	return slices.ContainsFunc(matchers, func(m string) bool {
		return slices.ContainsFunc(topics, func(t string) bool {
			return m == "*" || m == "~*" || m == t || slices.Contains(patterns[m], t)
		})
	})
}

func drawPlan(t *rapid.T) plan {
	pool := rapid.SliceOfNDistinct(rapid.SampledFrom(modelTopics()), 1, 6, rapid.ID).Draw(t, "topics")
	topics := rapid.SampledFrom(pool)
	selectors := append(slices.Clone(pool), "*", "~*") // the wildcard is one whatever its type, and may come twice
	for p := range modelPatterns() {
		selectors = append(selectors, p)
	}
	slices.Sort(selectors)
	matchers := rapid.SampledFrom(selectors)
	grants := rapid.SampledFrom(append(slices.Clone(pool), "*", "~*", "~https://e.example/:x"))
	actions := []action{
		publishes, publishes, publishes, publishes, publishes, publishes, subscribes, subscribes, subscribes, subscribes, subscribes, resumes, resumes, takes, takes, takes,
		hangsUp, isEnded, isDiscarded, revokes, closesUnnamed, elapses, elapses, restarts, stallsTail, resumesTail,
	}
	drawStep := rapid.Custom(func(t *rapid.T) step {
		s := step{
			action: rapid.SampledFrom(actions).Draw(t, "action"), n: rapid.IntRange(0, 30).Draw(t, "n"),
			settles: rapid.Bool().Draw(t, "settles"),
		}
		switch s.action {
		case publishes:
			s.topics = rapid.SliceOfNDistinct(topics, 1, min(3, len(pool)), rapid.ID).Draw(t, "topics")
			s.private = rapid.Bool().Draw(t, "private")
			s.sameID = rapid.IntRange(0, 7).Draw(t, "id") == 0
			s.bytes = rapid.SampledFrom([]int{1, 30, 900, 9000}).Draw(t, "bytes")
		case subscribes:
			s.matchers = rapid.SliceOfN(matchers, 1, 4).Draw(t, "matchers")
			if rapid.Bool().Draw(t, "has a token") {
				s.reads = rapid.SliceOfN(grants, 0, 2).Draw(t, "reads")
				s.expires = rapid.SampledFrom([]int{0, 0, 3, 20}).Draw(t, "expires")
			}
			s.room = rapid.SampledFrom([]int{-1, -1, -1, 0, 70, 2000}).Draw(t, "room")
		case takes:
			s.bytes = rapid.SampledFrom([]int{1, 50, 1000, 10_000, -1}).Draw(t, "takes")
		case restarts:
			s.graceful = rapid.Bool().Draw(t, "graceful")
		case resumes, hangsUp, isEnded, isDiscarded, revokes, closesUnnamed, elapses, stallsTail, resumesTail:
		}
		return s
	})
	// A crowd to begin with, of which few may read what others want.
	drawReader := rapid.Custom(func(t *rapid.T) step {
		return step{
			action: subscribes, room: -1, matchers: []string{topics.Draw(t, "matcher")}, reads: []string{topics.Draw(t, "reads")},
		}
	})
	return plan{
		steps:        slices.Concat(rapid.SliceOfN(drawReader, 0, 10).Draw(t, "crowd"), rapid.SliceOfN(drawStep, 5, 60).Draw(t, "steps")),
		retains:      rapid.SampledFrom([]int{0, 0, 1, 5, 30}).Draw(t, "retains"),
		backlog:      rapid.SampledFrom([]int{1, 2000, 20_000, 1 << 20}).Draw(t, "backlog"),
		total:        rapid.SampledFrom([]int64{5000, 100_000, 1 << 20}).Draw(t, "total"),
		shards:       rapid.IntRange(1, 3).Draw(t, "shards"),
		writeTimeout: rapid.SampledFrom([]time.Duration{0, 0, 10 * time.Second}).Draw(t, "write time-out"),
		unknownLive:  rapid.Bool().Draw(t, "unknown is live"),

		subscriptions: rapid.Bool().Draw(t, "subscriptions"),
	}
}

// TestModel runs the hub beside a naive one, a slice and loops, under everything that happens to a hub: whatever the order, each
// stream carries what the naive hub says, without a gap, a repeat or anything that its reader may not read, in log order, and ends
// when it has to and not otherwise (I1, I2, I6, I8).
func TestModel(t *testing.T) {
	const seeds = 4 // each for as many checks as -rapid.checks says, which is 100 by default
	for range seeds {
		rapid.Check(t, func(rt *rapid.T) {
			p := drawPlan(rt)
			var failure error
			synctest.Test(t, func(t *testing.T) { failure = newModel(t, &p).run() })
			if failure != nil {
				rt.Fatal(failure)
			}
		})
	}
}

// run takes the steps and judges what came of them.
func (m *model) run() error {
	for i := range m.plan.steps {
		s := &m.plan.steps[i]
		if err := m.take(s); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		if s.settles {
			m.settle()
		}
	}
	m.holdTail(false)
	for _, r := range m.streams {
		r.sink.take(-1)
		r.free = true
	}
	if err := m.elapse(3 * time.Second); err != nil { // what was being written when its stream ended has a second
		return err
	}
	failures := m.failures
	for _, r := range m.streams {
		failures = append(failures, m.judge(r))
	}
	if n := m.env.hub.Waiting(); n != 0 {
		failures = append(failures, fmt.Errorf("%d bytes wait although all was taken", n))
	}
	return errors.Join(failures...)
}

// take does one thing to both hubs.
func (m *model) take(s *step) error {
	switch s.action {
	case publishes:
		for range 1 + s.n%6 {
			m.publish(s)
		}
	case subscribes:
		return m.subscribe(s)
	case resumes:
		return m.resume(s)
	case takes:
		if r := m.pick(s.n); r != nil && !r.free {
			r.free = s.bytes < 0
			r.sink.take(s.bytes)
		}
	case hangsUp:
		if r := m.pick(s.n); r != nil {
			m.mustEnd(r)
			r.sink.notify.Gone()
		}
	case isEnded:
		if r := m.pick(s.n); r != nil {
			m.mustEnd(r)
			r.sub.End()
		}
	case isDiscarded:
		return m.discard(s)
	case revokes:
		return m.revoke(s)
	case closesUnnamed:
		for _, r := range m.streams {
			if r.principal == nil {
				m.mustEnd(r)
			}
		}
		m.env.hub.CloseAnonymous()
	case elapses:
		return m.elapse(time.Duration(1+s.n%15) * time.Second)
	case restarts:
		return m.restart(s.graceful)
	case stallsTail, resumesTail:
		m.holdTail(s.action == stallsTail)
	}
	return nil
}

func (m *model) publish(s *step) {
	n := len(m.log)
	u := &mercure.Update{Topics: s.topics, Private: s.private, ID: "id-" + strconv.Itoa(n), Data: strconv.Itoa(n) + " " + strings.Repeat("x", s.bytes)}
	if s.sameID {
		u.ID = "twin"
	}
	m.env.send(u)
	m.log = append(m.log, modelEntry{id: u.ID, topics: u.Topics, private: u.Private})
}

// discard opens a stream that never gets a sink.
func (m *model) discard(s *step) error {
	sub, err := m.env.hub.Subscribe(context.Background(), hub.SubscribeRequest{
		Matchers: m.env.matchers("*"), Cursor: mercure.Earliest, HasCursor: s.n%2 == 0,
	})
	if err != nil {
		return fmt.Errorf("Subscribe = %w", err)
	}
	sub.Discard()
	<-sub.Done()
	return nil
}

// revoke revokes a token, the way that whoever learns of it does.
func (m *model) revoke(s *step) error {
	r := m.pick(s.n)
	if r == nil || r.principal == nil {
		return nil
	}
	m.revoked.revoke(r.principal.TokenID)
	want := 0
	for _, other := range m.streams {
		if other.principal == r.principal {
			want++
			m.mustEnd(other)
		}
	}
	if n := m.env.hub.CloseBy(func(p *hub.Principal) bool { return p == r.principal }); n > want {
		return fmt.Errorf("CloseBy ended %d streams of a token that has %d", n, want)
	}
	refused := hub.SubscribeRequest{Principal: r.principal, Matchers: m.env.matchers("*")}
	if _, err := m.env.hub.Subscribe(context.Background(), refused); !errors.Is(err, hub.ErrRevoked) {
		return fmt.Errorf("Subscribe with a revoked token = %w", err)
	}
	if _, err := m.env.hub.Publish(context.Background(), r.principal, &mercure.Update{Topics: []string{"c"}}); !errors.Is(err, hub.ErrRevoked) {
		return fmt.Errorf("Publish with a revoked token = %w", err)
	}
	return nil
}

// elapse lets time pass, after which no stream outlives its token.
func (m *model) elapse(d time.Duration) error {
	m.settle()
	for _, r := range m.streams {
		if r.expires() && time.Until(r.principal.ExpiresAt) <= d {
			m.mustEnd(r)
		}
	}
	bubble.Advance(d)
	m.settle()
	for i, r := range m.streams {
		if r.expires() && !time.Now().Before(r.principal.ExpiresAt) && !isDone(r.sub) {
			return fmt.Errorf("stream %d outlives its token", i)
		}
	}
	return nil
}

// restart has another hub follow the same history.
func (m *model) restart(graceful bool) error {
	m.holdTail(false)
	m.settle()
	for _, r := range m.streams {
		m.mustEnd(r)
	}
	if graceful {
		if err := m.env.hub.Quiesce(context.Background()); err != nil {
			return fmt.Errorf("Quiesce = %w", err)
		}
		if err := m.env.hub.Drain(context.Background()); err != nil {
			return fmt.Errorf("Drain = %w", err)
		}
	}
	m.env.stop()
	<-m.env.stopped
	for i, r := range m.streams {
		if !isDone(r.sub) {
			return fmt.Errorf("stream %d outlives its hub", i)
		}
	}
	m.start()
	return nil
}

// holdTail stalls what feeds the dispatcher, or lets it go on.
func (m *model) holdTail(hold bool) {
	switch {
	case hold && m.held == nil:
		m.settle()
		held := make(chan struct{})
		m.held = held
		m.gate.Store(&held)
	case !hold && m.held != nil:
		m.gate.Store(nil)
		close(m.held)
		m.held = nil
	}
}

// start starts a hub on the history.
func (m *model) start() {
	m.env = newEnv(m.t, func(o *hub.Options) {
		o.Log, o.Compiler = m.history, m.compiler
		o.Backlog, o.TotalBacklog, o.Shards, o.WriteTimeout = m.plan.backlog, m.plan.total, m.plan.shards, m.plan.writeTimeout
		o.MaxLifetime, o.DrainWindow = 0, 0
		o.LiveAfterUnknown, o.Revoked, o.Subscriptions = m.plan.unknownLive, m.revoked.judge, m.plan.subscriptions
	})
	// What is trimmed before the hub follows the history at all ends every stream, which is right and of no interest here.
	synctest.Wait()
}
