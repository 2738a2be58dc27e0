package hub_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http/httputil"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/memory"
	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/sse"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

const hubURL = "https://hub.example.com/.well-known/mercure"

// env is a running hub with a history in memory.
type env struct {
	t        testing.TB
	hub      *hub.Hub
	log      history.Log
	compiler *topic.Compiler
	metrics  *counts
	root     *hub.Principal // may do everything
	stop     context.CancelFunc
	stopped  chan struct{}

	acknowledged sync.Map // ids, of TestHandOff
}

// newEnv starts a hub; change may alter its options. The hub is stopped when the test ends.
func newEnv(tb testing.TB, change func(*hub.Options)) *env {
	tb.Helper()
	compiler, err := topic.NewCompiler(hubURL, topic.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	e := &env{t: tb, compiler: compiler, metrics: &counts{}, stopped: make(chan struct{})}
	o := hub.DefaultOptions()
	o.Compiler, o.Metrics, o.Shards = compiler, e.metrics, 2
	if change != nil {
		change(&o)
	}
	if o.Log == nil {
		log, err := memory.Open(memory.Options{MaxEvents: 100_000})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = log.Close() })
		o.Log = log
	}
	e.log, e.compiler = o.Log, o.Compiler
	if e.hub, err = hub.New(o); err != nil {
		tb.Fatal(err)
	}
	e.root = e.principal(grant("*", topic.Exact, rar.Publish, rar.Subscribe))
	ctx, cancel := context.WithCancel(context.Background())
	e.stop = cancel
	go func() {
		defer close(e.stopped)
		if err := e.hub.Run(ctx); err != nil {
			tb.Errorf("Run = %v", err)
		}
	}()
	tb.Cleanup(func() {
		cancel()
		<-e.stopped
	})
	return e
}

func grant(match string, typ topic.Type, actions ...rar.Action) rar.Detail {
	return rar.Detail{Actions: actions, Topics: []rar.TopicMatcher{{Match: match, MatchType: typ}}}
}

func (e *env) principal(details ...rar.Detail) *hub.Principal {
	e.t.Helper()
	grants, err := rar.Compile(details, e.compiler)
	if err != nil {
		e.t.Fatal(err)
	}
	return &hub.Principal{Grants: grants}
}

// reader returns a principal that may read what is selected by any of the exact matchers.
func (e *env) reader(matchers ...string) *hub.Principal {
	e.t.Helper()
	var details []rar.Detail
	for _, m := range matchers {
		details = append(details, grant(m, topic.Exact, rar.Subscribe))
	}
	return e.principal(details...)
}

// matchers compiles exact matchers, and URL Patterns for those that start with a "~".
func (e *env) matchers(patterns ...string) []*topic.Matcher {
	e.t.Helper()
	var out []*topic.Matcher
	for _, p := range patterns {
		typ := topic.Exact
		if p[0] == '~' {
			typ, p = topic.URLPattern, p[1:]
		}
		m, err := e.compiler.Compile(typ, p)
		if err != nil {
			e.t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

// publish publishes a public update with the data, and returns its id.
func (e *env) publish(data string, topics ...string) string {
	e.t.Helper()
	return e.send(&mercure.Update{Topics: topics, Data: data})
}

// secret publishes a private update.
func (e *env) secret(data string, topics ...string) string {
	e.t.Helper()
	return e.send(&mercure.Update{Topics: topics, Data: data, Private: true})
}

func (e *env) send(u *mercure.Update) string {
	e.t.Helper()
	id, err := e.hub.Publish(context.Background(), e.root, u)
	if err != nil {
		e.t.Fatalf("Publish = %v", err)
	}
	return id
}

// subscribe opens a stream without a sink.
func (e *env) subscribe(r hub.SubscribeRequest) *hub.Subscriber {
	e.t.Helper()
	s, err := e.hub.Subscribe(context.Background(), r)
	if err != nil {
		e.t.Fatalf("Subscribe = %v", err)
	}
	return s
}

// stream opens a stream with a sink that takes everything.
func (e *env) stream(p *hub.Principal, patterns ...string) *memSink {
	e.t.Helper()
	return attach(e.subscribe(hub.SubscribeRequest{Principal: p, Matchers: e.matchers(patterns...)}), -1)
}

// resume opens a stream with a cursor and a sink that takes everything.
func (e *env) resume(p *hub.Principal, cursor string, patterns ...string) *memSink {
	e.t.Helper()
	s := e.subscribe(hub.SubscribeRequest{
		Principal: p, Matchers: e.matchers(patterns...), Cursor: cursor, HasCursor: true,
	})
	return attach(s, -1)
}

// attach gives s a sink that takes as many bytes as it has room for; -1 is without bound.
func attach(s *hub.Subscriber, room int) *memSink {
	k := &memSink{sub: s, room: room, framing: hub.Chunked}
	s.Attach(k)
	return k
}

// memSink is a sink in memory. It checks what the engine promises its sinks.
type memSink struct {
	sub     *hub.Subscriber
	framing hub.Framing

	mu       sync.Mutex
	notify   hub.Notify
	room     int
	owed     bool
	got      []byte
	writes   int
	finished bool
	aborted  bool
	misuse   error
}

func (k *memSink) Framing() hub.Framing { return k.framing }

func (k *memSink) Start(n hub.Notify) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.notify = n
}

func (k *memSink) TryWrite(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.notify == nil:
		k.misuse = errors.New("TryWrite before Start")
	case k.finished || k.aborted:
		k.misuse = errors.New("TryWrite after the end")
	case k.owed:
		k.misuse = errors.New("TryWrite while full")
	case len(p) == 0:
		k.misuse = errors.New("TryWrite of nothing")
	}
	n := len(p)
	if k.room >= 0 {
		n = min(n, k.room)
		k.room -= n
	}
	k.owed = n < len(p)
	k.got = append(k.got, p[:n]...)
	k.writes++
	return n, nil
}

func (k *memSink) Finish() { k.close(&k.finished) }
func (k *memSink) Abort()  { k.close(&k.aborted) }

func (k *memSink) close(how *bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.finished || k.aborted {
		k.misuse = errors.New("ended twice")
	}
	*how = true
}

// take makes room for n more bytes, -1: without bound.
func (k *memSink) take(n int) {
	k.mu.Lock()
	if n < 0 {
		k.room = -1
	} else {
		k.room += n
	}
	owed := k.owed
	k.owed = false
	k.mu.Unlock()
	if owed {
		k.notify.Writable()
	}
}

func (k *memSink) ended() (finished, aborted bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.finished, k.aborted
}

// text returns what the stream carries, without its framing.
func (k *memSink) text(tb testing.TB) string {
	tb.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.misuse != nil {
		tb.Errorf("the engine misused its sink: %v", k.misuse)
	}
	if k.framing == hub.Raw {
		return string(k.got)
	}
	got, torn := k.got, k.aborted || k.owed // may end anywhere, and what it ends in must not be completed here
	if !torn {
		got = append(slices.Clip(got), "0\r\n\r\n"...) // a sink that was finished has sent the last chunk itself
	}
	b, err := io.ReadAll(httputil.NewChunkedReader(bufio.NewReader(bytes.NewReader(got))))
	if err != nil && !torn {
		tb.Errorf("chunked framing: %v", err)
	}
	return string(b)
}

// events returns the complete events of the stream.
func (k *memSink) events(tb testing.TB) []sse.Event {
	tb.Helper()
	var out []sse.Event
	d := sse.NewDecoder(bytes.NewReader([]byte(k.text(tb))), 0)
	for {
		e, err := d.Next()
		if err != nil {
			return out
		}
		out = append(out, e)
	}
}

// data returns the data of the stream's events.
func (k *memSink) data(tb testing.TB) []string {
	tb.Helper()
	var out []string
	for _, e := range k.events(tb) {
		out = append(out, e.Data)
	}
	return out
}

// want waits until nothing happens any more and compares the data of the stream's events.
func (k *memSink) want(tb testing.TB, data ...string) {
	tb.Helper()
	synctest.Wait()
	if got := k.data(tb); !slices.Equal(got, data) {
		tb.Errorf("stream = %q, want %q", got, data)
	}
}

// sequence returns the numbers from first to last as strings.
func sequence(first, last int) []string {
	var out []string
	for i := first; i <= last; i++ {
		out = append(out, strconv.Itoa(i))
	}
	return out
}

// tally is what goroutines of the hub count for a test.
type tally struct {
	mu  sync.Mutex
	all []int
}

func (t *tally) add(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, n)
}

// list returns what was counted, oldest first.
func (t *tally) list() []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.all)
}

// sum returns the sum of what was counted.
func (t *tally) sum() int {
	n := 0
	for _, v := range t.list() {
		n += v
	}
	return n
}

// counts is a hub.Metrics.
type counts struct {
	mu                                                   sync.Mutex
	subscribers, published, delivered, replayed, dropped int
	announced                                            int
	cuts                                                 []string
}

func (c *counts) add(n *int, delta int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n += delta
}

func (c *counts) Subscribers(delta int) { c.add(&c.subscribers, delta) }
func (c *counts) Published()            { c.add(&c.published, 1) }
func (c *counts) Announced(n int)       { c.add(&c.announced, n) }
func (c *counts) Delivered(n int)       { c.add(&c.delivered, n) }
func (c *counts) Replayed(n int)        { c.add(&c.replayed, n) }
func (c *counts) Dropped(n int)         { c.add(&c.dropped, n) }

func (c *counts) Cut(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cuts = append(c.cuts, reason)
}

func (c *counts) get(n *int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *n
}

func (c *counts) reasons() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.cuts)
}

// isDone tells whether the stream has ended.
func isDone(s *hub.Subscriber) bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}

// elapse lets fake time pass.
func elapse(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

// newEnvironmentless returns valid options for a hub that is never run.
func newEnvironmentless(tb testing.TB) hub.Options {
	tb.Helper()
	compiler, err := topic.NewCompiler(hubURL, topic.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	o := hub.DefaultOptions()
	o.Compiler, o.Log = compiler, openMemory(tb)
	return o
}
