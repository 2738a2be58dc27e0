package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history/memory"
	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/sse"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// model is a real hub and a naive one, to which the same happens. It belongs to one goroutine.
type model struct {
	t        *testing.T
	plan     *plan
	env      *env
	compiler *topic.Compiler
	history  *stubLog
	revoked  *verdicts

	held chan struct{}                 // closed to let the tail go on; nil while it does
	gate atomic.Pointer[chan struct{}] // a copy of held, for the tail

	log      []modelEntry // everything ever published
	streams  []*modelStream
	failures []error
}

// modelEntry is an update as the naive hub keeps it. Its index is its number, and what its data begins with.
type modelEntry struct {
	id      string
	topics  []string
	private bool
}

// modelStream is a stream and what the naive hub knows about it.
type modelStream struct {
	matchers, reads []string
	principal       *hub.Principal
	sub             *hub.Subscriber
	sink            *memSink
	request         hub.SubscribeRequest

	start   int  // the first entry that can be its
	until   int  // entries from here on are not; -1: it has no reason to end
	atLeast int  // entries before this one have to have come
	free    bool // its sink takes everything
	ended   bool // and that was noticed
	resumed bool // by another stream
}

func newModel(t *testing.T, p *plan) *model {
	t.Helper()
	limit := p.retains
	if limit == 0 {
		limit = -1
	}
	log, err := memory.Open(memory.Options{MaxEvents: limit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	compiler, err := topic.NewCompiler(hubURL, topic.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	m := &model{t: t, plan: p, compiler: compiler, history: &stubLog{Log: log}, revoked: &verdicts{}}
	m.history.tailing = func() {
		if gate := m.gate.Load(); gate != nil {
			<-*gate
		}
	}
	m.start()
	return m
}

// pick gives the stream that a number stands for, the newest first.
func (m *model) pick(n int) *modelStream {
	if len(m.streams) == 0 {
		return nil
	}
	return m.streams[len(m.streams)-1-n%min(len(m.streams), 8)]
}

// first is the oldest entry that the history still has.
func (m *model) first() int {
	if m.plan.retains == 0 {
		return 0
	}
	return max(0, len(m.log)-m.plan.retains)
}

// find looks an id up, as the history does.
func (m *model) find(id string) (index int, known bool) {
	for i := m.first(); i < len(m.log); i++ {
		if m.log[i].id == id {
			return i, true
		}
	}
	return 0, false
}

// request is what a new reader asks for: n stands for its cursor.
func (m *model) request(n int, matchers []string, p *hub.Principal) hub.SubscribeRequest {
	r := hub.SubscribeRequest{Principal: p, Matchers: m.env.matchers(matchers...), HasCursor: n >= 8}
	switch {
	case n < 8, n == 10:
	case n == 8:
		r.Cursor = mercure.Earliest
	case n == 9:
		r.Cursor = "never published"
	case n == 11:
		r.Cursor = "twin"
	case n-12 < len(m.log): // 12: the one acknowledged just now
		r.Cursor = m.log[len(m.log)-1-(n-12)].id
	default:
		r.Cursor = "id-0"
	}
	return r
}

func (m *model) subscribe(s *step) error {
	var p *hub.Principal
	reads := s.reads
	if other := m.pick(s.n); other != nil && s.reads != nil && len(s.reads) == 0 && m.valid(other.principal) {
		p, reads = other.principal, other.reads // of the same token
	} else if s.reads != nil {
		p = m.token(s.reads, s.expires)
	}
	return m.open(&modelStream{matchers: s.matchers, reads: reads, principal: p}, m.request(s.n, s.matchers, p), s.room)
}

// resume opens another stream for a reader whose stream has ended, by the rules of an EventSource.
func (m *model) resume(s *step) error {
	m.settle()
	ended := slices.DeleteFunc(slices.Clone(m.streams), func(r *modelStream) bool { return !isDone(r.sub) || r.resumed })
	if len(ended) == 0 {
		return nil
	}
	old := ended[s.n%len(ended)]
	old.resumed = true
	again := &modelStream{matchers: old.matchers, reads: old.reads, principal: old.principal}
	if old.principal != nil && !m.valid(old.principal) {
		again.principal = m.token(old.reads, 0)
	}
	r := old.request
	r.Principal = again.principal
	if updates := old.updates(m.t); len(updates) > 0 {
		r.Cursor, r.HasCursor = updates[len(updates)-1].ID, true
	}
	return m.open(again, r, -1)
}

// open opens a stream in both hubs.
func (m *model) open(r *modelStream, request hub.SubscribeRequest, room int) error {
	r.request, r.free, r.until = request, room < 0, -1
	sub, err := m.env.hub.Subscribe(context.Background(), request)
	if err != nil {
		return fmt.Errorf("Subscribe = %w", err)
	}
	at, known := m.find(request.Cursor)
	switch {
	case known && request.HasCursor:
		r.start = at + 1
	case !request.HasCursor, m.plan.unknownLive && request.Cursor != mercure.Earliest:
		r.start = len(m.log)
	default:
		r.start = m.first()
	}
	want := mercure.Earliest
	if known {
		want = request.Cursor
	}
	if from, has := sub.ResumedFrom(); has != request.HasCursor || has && from != want {
		return fmt.Errorf("resumed from %q, %v, want %q", from, has, want)
	}
	r.sub, r.sink = sub, attach(sub, room)
	m.streams = append(m.streams, r)
	return nil
}

// token makes a token that reads what matchers select. It never expires when streams are looked at.
func (m *model) token(reads []string, seconds int) *hub.Principal {
	details := make([]rar.Detail, 0, len(reads))
	for _, r := range reads {
		if pattern, found := strings.CutPrefix(r, "~"); found {
			details = append(details, grant(pattern, topic.URLPattern, rar.Subscribe))
			continue
		}
		details = append(details, grant(r, topic.Exact, rar.Subscribe))
	}
	p := m.env.principal(details...)
	p.TokenID = fmt.Sprintf("token-%d", len(m.streams))
	if seconds > 0 {
		p.ExpiresAt = time.Now().Add(time.Duration(seconds)*time.Second + time.Second/2)
	}
	return p
}

// valid tells whether a token opens streams.
func (m *model) valid(p *hub.Principal) bool {
	return p != nil && !m.revoked.judge(p) && (p.ExpiresAt.IsZero() || time.Until(p.ExpiresAt) > 0)
}

// expires tells whether the stream ends with its token.
func (r *modelStream) expires() bool { return r.principal != nil && !r.principal.ExpiresAt.IsZero() }

// mustEnd notes that the stream has a reason to end now.
func (m *model) mustEnd(r *modelStream) {
	if r.until < 0 && !isDone(r.sub) {
		r.until = len(m.log)
	}
}

// settle waits until nothing happens any more, and notes what has to have come by then.
func (m *model) settle() {
	synctest.Wait()
	for i, r := range m.streams {
		switch {
		case !isDone(r.sub):
			if r.free && m.held == nil && r.until < 0 {
				r.atLeast = len(m.log)
			}
		case !r.ended:
			r.ended = true
			if r.until < 0 && !m.excused(r) {
				m.failures = append(m.failures, fmt.Errorf("stream %d of %v ended for no reason, cuts: %q", i, r.matchers, m.env.metrics.reasons()))
			}
		}
	}
}

// excused tells whether a stream may have ended that nobody has ended: what it lacked is gone, or it took nothing for too long.
func (m *model) excused(r *modelStream) bool {
	if m.plan.writeTimeout > 0 && !r.free {
		return true
	}
	next := r.start
	if got := r.updates(m.t); len(got) > 0 {
		last, _ := number(got[len(got)-1].Data)
		next = last + 1
	}
	return m.first() > next
}

// gets tells what the naive hub gives the reader.
func (r *modelStream) gets(e *modelEntry) bool {
	return modelSelects(r.matchers, e.topics) && (!e.private || modelSelects(r.reads, e.topics))
}

// updates returns what the stream carried beside subscription events.
func (r *modelStream) updates(tb testing.TB) []sse.Event {
	tb.Helper()
	return slices.DeleteFunc(r.sink.events(tb), func(e sse.Event) bool { return e.Type == mercure.ReservedEventType })
}

// judgeSubscriptionEvents checks that only who may read subscription events got any, and each once.
func (r *modelStream) judgeSubscriptionEvents(tb testing.TB) error {
	tb.Helper()
	seen := map[string]bool{}
	for _, e := range r.sink.events(tb) {
		if e.Type != mercure.ReservedEventType {
			continue
		}
		if seen[e.ID] || !slices.ContainsFunc(r.matchers, isWildcard) || !slices.ContainsFunc(r.reads, isWildcard) {
			return fmt.Errorf("stream of %v, reads %v, got %q, before: %v", r.matchers, r.reads, e.Data, seen[e.ID])
		}
		seen[e.ID] = true
	}
	return nil
}

func isWildcard(pattern string) bool { return strings.TrimPrefix(pattern, "~") == "*" }

// number reads the number of the entry with the data.
func number(data string) (int, error) {
	digits, _, _ := strings.Cut(data, " ")
	return strconv.Atoi(digits)
}

// judge compares what a stream carried with what the naive hub says.
func (m *model) judge(r *modelStream) error {
	until := len(m.log)
	if r.until >= 0 {
		until = r.until
		if !isDone(r.sub) {
			return fmt.Errorf("stream of %v goes on, which had to end", r.matchers)
		}
	}
	var want []int
	complete := 0 // that many of want have to have come
	for i := r.start; i < until; i++ {
		if !r.gets(&m.log[i]) {
			continue
		}
		want = append(want, i)
		if i < r.atLeast || !isDone(r.sub) {
			complete = len(want)
		}
	}
	var got []int
	for _, update := range r.updates(m.t) {
		n, err := number(update.Data)
		if err != nil || n >= len(m.log) {
			return fmt.Errorf("data %.20q was never published", update.Data)
		}
		got = append(got, n)
	}
	if len(got) < complete || len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
		return fmt.Errorf("stream of %v, reads %v, cursor %q (%v), got %v, want at least %d of %v",
			r.matchers, r.reads, r.request.Cursor, r.request.HasCursor, got, complete, want)
	}
	if err := r.judgeSubscriptionEvents(m.t); err != nil {
		return err
	}
	if finished, aborted := r.sink.ended(); isDone(r.sub) && !finished && !aborted {
		return errors.New("the stream has ended and its sink has not")
	}
	return nil
}
