package hub_test

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// meeting is a hub and streams that two methods meet at.
type meeting struct {
	t       *testing.T
	env     *env
	history *stubLog
	ctx     context.Context // of Run

	mu      sync.Mutex
	streams map[int]*hub.Subscriber
	sinks   map[int]*memSink
}

// stream gives the stream of a round, the same to both methods; nil when the hub takes none any more. Every other one has a cursor.
func (m *meeting) stream(round int) *hub.Subscriber {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, opened := m.streams[round]; opened {
		return s
	}
	s, err := m.env.hub.Subscribe(m.t.Context(), hub.SubscribeRequest{
		Principal: m.env.root, Matchers: m.env.matchers("a", "~https://e.example/:x"), Cursor: mercure.Earliest, HasCursor: round%2 == 0,
	})
	if err != nil && !errors.Is(err, hub.ErrDraining) && !errors.Is(err, hub.ErrUnavailable) {
		m.t.Errorf("Subscribe = %v", err)
	}
	m.streams[round] = s
	return s
}

// sink gives the sink of a round's stream.
func (m *meeting) sink(round int) *memSink {
	s := m.stream(round)
	if s == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sinks[round] == nil {
		m.sinks[round] = attach(s, 100*round)
	}
	return m.sinks[round]
}

// must accepts what a hub that stops may answer.
func (m *meeting) must(err error, also ...error) {
	for _, accepted := range append(also, nil, hub.ErrDraining, hub.ErrUnavailable) {
		if errors.Is(err, accepted) {
			return
		}
	}
	m.t.Errorf("error = %v", err)
}

// methods is every exported method of the engine, by its type and name, as rounds call it.
func methods() map[string]func(m *meeting, round int) {
	of := func(f func(s *hub.Subscriber)) func(*meeting, int) {
		return func(m *meeting, round int) {
			if s := m.stream(round); s != nil {
				f(s)
			}
		}
	}
	notify := func(f func(n hub.Notify)) func(*meeting, int) {
		return func(m *meeting, round int) {
			if k := m.sink(round); k != nil {
				f(k.notify)
			}
		}
	}
	return map[string]func(m *meeting, round int){
		"Hub.Run": func(m *meeting, _ int) { m.must(m.env.hub.Run(m.ctx), hub.ErrRunning) },
		"Hub.Publish": func(m *meeting, round int) {
			_, err := m.env.hub.Publish(m.t.Context(), m.env.root, &mercure.Update{
				Topics: []string{"a", "https://e.example/1"}[round%2:], Private: round%3 == 0, Data: strings.Repeat("x", 50*round),
			})
			m.must(err)
		},
		"Hub.Subscribe": func(m *meeting, round int) {
			s, err := m.env.hub.Subscribe(m.t.Context(), hub.SubscribeRequest{
				Matchers: m.env.matchers("*"), Cursor: mercure.Earliest, HasCursor: round%2 == 0,
			})
			if m.must(err); err == nil {
				attach(s, 50*round)
			}
		},
		"Hub.CloseBy":        func(m *meeting, _ int) { m.env.hub.CloseBy(func(p *hub.Principal) bool { return p == m.env.root }) },
		"Hub.CloseAnonymous": func(m *meeting, _ int) { m.env.hub.CloseAnonymous() },
		"Hub.Ready":          func(m *meeting, _ int) { m.must(m.env.hub.Ready(m.t.Context())) },
		"Hub.Subscribers":    func(m *meeting, _ int) { m.env.hub.Subscribers() },
		"Hub.ActiveSubscriptions": func(m *meeting, round int) {
			_, _, err := m.env.hub.ActiveSubscriptions(m.t.Context(), hub.SubscriptionQuery{MatchType: []topic.Type{"", topic.Exact}[round%2], Match: "a"})
			m.must(err)
		},
		"Hub.Unannounced": func(m *meeting, _ int) { m.env.hub.Unannounced() },
		"Hub.Waiting":     func(m *meeting, _ int) { m.env.hub.Waiting() },
		"Hub.Quiesce": func(m *meeting, round int) {
			if round == rounds/2 {
				m.must(m.env.hub.Quiesce(m.t.Context()))
			}
		},
		"Hub.Drain": func(m *meeting, round int) {
			if round >= rounds/2 {
				ctx, cancel := context.WithTimeout(m.t.Context(), time.Second)
				defer cancel()
				m.must(m.env.hub.Drain(ctx), context.DeadlineExceeded) // streams without a sink that are opened meanwhile
			}
		},
		"Subscriber.ID":          of(func(s *hub.Subscriber) { _ = s.ID() }),
		"Subscriber.ResumedFrom": of(func(s *hub.Subscriber) { _, _ = s.ResumedFrom() }),
		"Subscriber.Attach":      of(func(s *hub.Subscriber) { attach(s, -1) }),
		"Subscriber.Discard":     of((*hub.Subscriber).Discard),
		"Subscriber.End":         of((*hub.Subscriber).End),
		"Subscriber.Done":        of(func(s *hub.Subscriber) { isDone(s) }),
		"Notify.Writable":        notify(hub.Notify.Writable),
		"Notify.Gone":            notify(hub.Notify.Gone),
	}
}

// rounds is how often two methods meet.
const rounds = 6

// TestMethods_KnowsAll fails when the engine has an exported method that TestMethods_Pairs does not know.
func TestMethods_KnowsAll(t *testing.T) {
	var want []string
	for _, typ := range []reflect.Type{reflect.TypeFor[*hub.Hub](), reflect.TypeFor[*hub.Subscriber](), reflect.TypeFor[hub.Notify]()} {
		_, name, _ := strings.Cut(typ.String(), ".")
		for m := range typ.Methods() {
			want = append(want, name+"."+m.Name)
		}
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(methods())); !slices.Equal(got, want) {
		t.Errorf("methods = %q, the engine has %q", got, want)
	}
}

// TestMethods_Pairs calls every two methods of the engine at the same time, itself included, on the same hub and the same stream, for
// the race detector (I4); afterwards nothing is left of the streams.
func TestMethods_Pairs(t *testing.T) {
	t.Parallel()
	all := methods()
	names := slices.Sorted(maps.Keys(all))
	for i, a := range names {
		t.Run(a, func(t *testing.T) {
			for _, b := range names[i:] {
				synctest.Test(t, func(t *testing.T) { meet(t, a, b, all[a], all[b]) })
			}
		})
	}
}

// meet has two methods called at the same time.
func meet(t *testing.T, nameA, nameB string, a, b func(*meeting, int)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	m := &meeting{t: t, ctx: ctx, streams: map[int]*hub.Subscriber{}, sinks: map[int]*memSink{}, history: &stubLog{Log: openMemory(t)}}
	o := newEnvironmentless(t)
	metrics := &counts{}
	o.Log, o.Metrics, o.Shards, o.Backlog, o.TotalBacklog, o.DrainWindow = m.history, metrics, 2, 200, 1000, 100*time.Millisecond
	o.Subscriptions, o.Directory = true, newDirectory()
	h, err := hub.New(o)
	if err != nil {
		t.Fatal(err)
	}
	m.env = &env{t: t, hub: h, log: m.history, compiler: o.Compiler, metrics: metrics}
	m.env.root = m.env.principal(grant("*", topic.Exact, rar.Publish, rar.Subscribe))
	var running, work sync.WaitGroup
	if nameA != "Hub.Run" && nameB != "Hub.Run" {
		running.Go(func() { methods()["Hub.Run"](m, 0) })
		synctest.Wait()
	}
	for name, f := range map[string]func(*meeting, int){nameA: a, nameB + " as well": b} {
		group := &work
		if strings.HasPrefix(name, "Hub.Run") {
			group = &running // it lasts as long as the hub
		}
		group.Go(func() {
			for round := range rounds {
				f(m, round)
			}
		})
	}
	work.Wait()
	synctest.Wait()
	cancel()
	running.Wait()
	if n := h.Waiting(); n != 0 {
		t.Errorf("%s beside %s: bytes waiting = %d, want 0", nameA, nameB, n)
	}
	if _, list, err := h.ActiveSubscriptions(t.Context(), hub.SubscriptionQuery{}); err != nil || len(list) != 0 {
		t.Errorf("%s beside %s: %v, %v are listed, want none", nameA, nameB, list, err)
	}
	if n := metrics.get(&metrics.subscribers); n != 0 {
		t.Errorf("%s beside %s: subscribers = %d, want 0", nameA, nameB, n)
	}
}
