package hub

import (
	"context"
	"strconv"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/memory"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// countingSink takes everything and keeps nothing.
type countingSink struct {
	framing Framing
	bytes   int
}

func (k *countingSink) Framing() Framing { return k.framing }
func (k *countingSink) Start(Notify)     {}
func (k *countingSink) Finish()          {}
func (k *countingSink) Abort()           {}

func (k *countingSink) TryWrite(p []byte) (int, error) {
	k.bytes += len(p)
	return len(p), nil
}

// still is a hub of one shard whose goroutines do not run: the test makes their steps.
type still struct {
	*Hub
	compiler *topic.Compiler
	position history.Position
}

func newStill(tb testing.TB) *still {
	tb.Helper()
	compiler, err := topic.NewCompiler("https://hub.example.com/.well-known/mercure", topic.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	log, err := memory.Open(memory.Options{MaxEvents: 10})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = log.Close() })
	h, err := New(Options{Log: log, Compiler: compiler, Shards: 1})
	if err != nil {
		tb.Fatal(err)
	}
	return &still{Hub: h, compiler: compiler}
}

// subscribe adds a live subscriber.
func (h *still) subscribe(tb testing.TB, p *Principal, match string) *countingSink {
	tb.Helper()
	m, err := h.compiler.Compile(topic.Exact, match)
	if err != nil {
		tb.Fatal(err)
	}
	if err := h.admit(); err != nil {
		tb.Fatal(err)
	}
	s := &Subscriber{principal: p, matchers: []*topic.Matcher{m}, shard: h.shards[0], done: make(chan struct{})}
	s.shard.inbox.put(message{kind: openMessage, sub: s})
	s.shard.inbox.put(message{kind: startMessage, sub: s, start: &start{fresh: true, atHead: true}})
	h.dispatcher.orders.put(order{sub: s})
	k := &countingSink{framing: Chunked}
	s.Attach(k)
	h.settle()
	return k
}

// settle makes steps until nothing happens.
func (h *still) settle() {
	s := h.shards[0]
	for range 3 {
		h.dispatcher.obey()
		s.step()
	}
}

// deliver has entries with the topic dispatched and written.
func (h *still) deliver(n int, topic string, private bool) {
	entries := make([]history.Entry, n)
	for i := range entries {
		h.position++
		entries[i] = history.Entry{Position: h.position, Record: history.Record{
			ID: "id", Topics: []string{topic}, Private: private, Event: []byte("id: id\ndata: some data\n\n"),
		}}
	}
	h.dispatcher.dispatch(context.Background(), entries)
	h.shards[0].step()
}

func TestDeliveryAllocations(t *testing.T) {
	measure := func(t *testing.T, subscribers int, private bool) float64 {
		t.Helper()
		h := newStill(t)
		grants, err := rar.Compile([]rar.Detail{{
			Actions: []rar.Action{rar.Subscribe}, Topics: []rar.TopicMatcher{{Match: "a", MatchType: topic.Exact}},
		}}, h.compiler)
		if err != nil {
			t.Fatal(err)
		}
		sinks := make([]*countingSink, subscribers)
		for i := range sinks {
			sinks[i] = h.subscribe(t, &Principal{Grants: grants}, "a")
		}
		before := sinks[0].bytes
		allocations := testing.AllocsPerRun(20, func() { h.deliver(4, "a", private) })
		if got := sinks[subscribers-1].bytes - before; got == 0 || got != sinks[0].bytes-before {
			t.Fatalf("bytes written = %d and %d, want the same for all", sinks[0].bytes-before, got)
		}
		return allocations
	}
	for _, private := range []bool{false, true} {
		t.Run("private="+strconv.FormatBool(private), func(t *testing.T) {
			few, many := measure(t, 10, private), measure(t, 1000, private)
			t.Logf("allocations for 4 entries: %v with 10 subscribers, %v with 1000", few, many)
			if many > few {
				t.Errorf("allocations = %v with 1000 subscribers, want those with 10, %v", many, few)
			}
		})
	}
}

func TestFrameAllocations(t *testing.T) {
	event := []byte("id: id\ndata: some data\n\n")
	if n := testing.AllocsPerRun(100, func() { _ = newFrame(1, event) }); n > 2 {
		t.Errorf("allocations of a frame = %v, want at most 2", n)
	}
}
