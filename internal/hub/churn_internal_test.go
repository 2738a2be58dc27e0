package hub

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// pattern compiles a matcher.
func (h *still) pattern(tb testing.TB, typ topic.Type, match string) *topic.Matcher {
	tb.Helper()
	m, err := h.compiler.Compile(typ, match)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// join makes a live subscriber of the matchers, and gives it.
func (h *still) join(tb testing.TB, p *Principal, matchers ...*topic.Matcher) *Subscriber {
	tb.Helper()
	if err := h.admit(); err != nil {
		tb.Fatal(err)
	}
	sub := &Subscriber{principal: p, matchers: matchers, shard: h.shards[0], done: make(chan struct{})}
	inbox := h.shards[0].inbox
	inbox.put(message{kind: openMessage, sub: sub})
	inbox.put(message{kind: startMessage, sub: sub, start: &start{x: h.position, fresh: true, atHead: true}})
	inbox.put(message{kind: attachMessage, sub: sub, sink: &countingSink{}})
	h.dispatcher.orders.put(order{sub: sub})
	return sub
}

// TestChurn opens and ends streams with topics, patterns and grants that nobody had before: what the engine keeps depends on the streams
// that are open, not on those that ever were. No subscriber, matcher, grant set or appointment is left over.
func TestChurn(t *testing.T) {
	h := newStill(t)
	s := h.shards[0]
	grants := func(match string) *Principal {
		g, err := rar.Compile([]rar.Detail{{
			Actions: []rar.Action{rar.Subscribe}, Topics: []rar.TopicMatcher{{Match: match, MatchType: topic.Exact}},
		}}, h.compiler)
		if err != nil {
			t.Fatal(err)
		}
		return &Principal{Grants: g}
	}
	round := func(from, n int) {
		const onePattern = 8 // for so many topics, for patterns take their time to compile
		subs := make([]*Subscriber, n)
		for i := range subs {
			name := "https://e.example/" + strconv.Itoa(from+i)
			matchers := []*topic.Matcher{h.pattern(t, topic.Exact, name)}
			if i%onePattern == 0 {
				matchers = append(matchers, h.pattern(t, topic.URLPattern, name+"/:x"))
			}
			subs[i] = h.join(t, grants(name), matchers...)
		}
		h.settle()
		if len(s.subscribers.m) != n || h.dispatcher.registry.index.Len() != n+n/onePattern || len(h.dispatcher.registry.sets.m) != n || s.wheel.linked != n {
			t.Fatalf("%d subscribers, %d matchers, %d grant sets, %d appointments, want %d, %d, %d, %d", len(s.subscribers.m),
				h.dispatcher.registry.index.Len(), len(h.dispatcher.registry.sets.m), s.wheel.linked, n, n+n/onePattern, n, n)
		}
		for _, sub := range subs {
			(*notifier)(sub).Gone()
		}
		h.settle()
	}
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	round(0, 2000)
	before := heap()
	for i := range 5 {
		round(10_000*(i+1), 4000)
	}
	if grown := heap() - before; grown > 2<<20 {
		t.Errorf("20,000 streams later the heap has %d bytes more", grown)
	}
	for name, n := range map[string]int{
		"subscribers": len(s.subscribers.m), "routes": len(s.routes.m), "grant sets": len(s.sets.m), "readers": len(s.readable.m),
		"appointments": s.wheel.linked, "counted bytes": s.backlogs, "matchers": h.dispatcher.registry.index.Len(),
		"grant sets of the dispatcher": len(h.dispatcher.registry.sets.m), "open streams": int(h.open.Load()),
	} {
		if n != 0 {
			t.Errorf("%d %s are left", n, name)
		}
	}
	if n := cap(h.dispatcher.registry.interests); n > 4*8000 {
		t.Errorf("room for %d matchers is left, which so many streams never had at a time", n)
	}
}

// TestSharedPatterns has many subscribers share patterns that begin with a wildcard, which no index can tell apart: there is one test
// for each distinct pattern, so that an entry costs the same for ten subscribers as for ten thousand until it is delivered.
func TestSharedPatterns(t *testing.T) {
	const patterns = 10
	h := newStill(t)
	topics := []*topic.Topic{h.compiler.Topic("https://e.example/books/1")}
	for _, more := range []int{1, 20, 500} {
		for n := range patterns {
			m := h.pattern(t, topic.URLPattern, fmt.Sprintf("https://*.example/:kind%d/:id", n))
			for range more {
				h.join(t, nil, m)
			}
		}
		h.settle()
		registry := h.dispatcher.registry
		if n := registry.index.Len(); n != patterns {
			t.Fatalf("%d matchers are tested for %d distinct ones", n, patterns)
		}
		if ids, shards := registry.match(nil, topics, false); len(ids) != patterns || shards != 1 {
			t.Errorf("%d matchers select the topic for shards %b, want %d and 1", len(ids), shards, patterns)
		}
	}
}
