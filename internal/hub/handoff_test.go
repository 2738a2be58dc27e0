package hub_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/hub"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
)

// handoffTopics are the topics of TestHandOff; those of the first half are URLs that the pattern selects.
func handoffTopics() []string {
	return []string{"https://e.example/a", "https://e.example/b", "c", "d"}
}

const handoffPattern = "~https://e.example/:x"

// publication is an update that TestHandOff publishes.
type publication struct {
	topics  []string
	private bool
	bytes   int
	pause   pause
}

// visit is a stream that TestHandOff opens, and what its reader does.
type visit struct {
	matchers []string
	reads    []string // nil: anonymous
	cursor   int      // among those published so far, from the end; -1: none, -2: earliest, -3: unknown
	room     int
	takes    []int
	hangsUp  bool
	pause    pause
}

// pause lets others go on: up to 20 times as the scheduler sees fit, beyond that for so many microseconds in which they
// do all they can.
type pause int

func (p pause) take() {
	if p > 20 {
		<-time.After(time.Duration(p) * time.Microsecond)
		return
	}
	for range p {
		runtime.Gosched()
	}
}

type script struct {
	publishers [][]publication
	visitors   [][]visit
	reading    []pause // of the history, before and after each page in turn
	backlog    int
	total      int64
	shards     int
}

func drawScript(t *rapid.T) script {
	topics := rapid.SampledFrom(handoffTopics())
	pauses := rapid.Map(rapid.IntRange(0, 40), func(n int) pause { return pause(n) })
	drawPublication := rapid.Custom(func(t *rapid.T) publication {
		return publication{
			topics:  rapid.SliceOfNDistinct(topics, 1, 3, rapid.ID).Draw(t, "topics"),
			private: rapid.Bool().Draw(t, "private"),
			bytes:   rapid.SampledFrom([]int{1, 10, 100, 1000, 20_000}).Draw(t, "bytes"),
			pause:   pauses.Draw(t, "pause"),
		}
	})
	selectors := rapid.SampledFrom(append(handoffTopics(), handoffPattern, "*"))
	drawVisit := rapid.Custom(func(t *rapid.T) visit {
		v := visit{
			matchers: rapid.SliceOfN(selectors, 1, 3).Draw(t, "matchers"),
			cursor:   rapid.IntRange(-3, 20).Draw(t, "cursor"),
			room:     rapid.SampledFrom([]int{-1, 0, 50, 3000}).Draw(t, "room"),
			takes:    rapid.SliceOfN(rapid.SampledFrom([]int{1, 7, 500, 5000, 100_000}), 0, 10).Draw(t, "takes"),
			hangsUp:  rapid.IntRange(0, 9).Draw(t, "hangs up") == 0,
			pause:    pauses.Draw(t, "pause"),
		}
		if rapid.Bool().Draw(t, "has a token") {
			v.reads = rapid.SliceOfN(rapid.SampledFrom(append(handoffTopics(), "*")), 1, 2).Draw(t, "reads")
		}
		return v
	})
	return script{
		publishers: rapid.SliceOfN(rapid.SliceOfN(drawPublication, 5, 60), 1, 2).Draw(t, "publishers"),
		visitors:   rapid.SliceOfN(rapid.SliceOfN(drawVisit, 1, 8), 1, 3).Draw(t, "visitors"),
		reading:    rapid.SliceOfN(pauses, 1, 5).Draw(t, "reading"),
		backlog:    rapid.SampledFrom([]int{1, 2000, 50_000, 1 << 20}).Draw(t, "backlog"),
		total:      rapid.SampledFrom([]int64{5000, 100_000, 1 << 20}).Draw(t, "total"),
		shards:     rapid.IntRange(1, 3).Draw(t, "shards"),
	}
}

// selects tells what a matcher of TestHandOff selects, without the code under test.
func selects(matcher, topic string) bool {
	switch matcher {
	case "*":
		return true
	case handoffPattern:
		return strings.HasPrefix(topic, "https://")
	}
	return matcher == topic
}

func anySelects(matchers, topics []string) bool {
	return slices.ContainsFunc(matchers, func(m string) bool {
		return slices.ContainsFunc(topics, func(t string) bool { return selects(m, t) })
	})
}

// gets tells whether the reader of a visit gets an entry.
func (v *visit) gets(r *history.Record) bool {
	return anySelects(v.matchers, r.Topics) && (!r.Private || anySelects(v.reads, r.Topics))
}

// outcome is a stream of TestHandOff and where it may begin: after an entry between first and last.
type outcome struct {
	visit       *visit
	sink        *memSink
	first, last history.Position
}

// TestHandOff shows I1, I2 and I6: whenever streams begin, however slow their readers are, and however often they fall back
// to the history, each gets the entries after its cursor that it wants and may read, in order, each once.
func TestHandOff(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawScript(rt)
		var failure error
		synctest.Test(t, func(t *testing.T) { failure = play(t, &s) })
		if failure != nil {
			rt.Fatal(failure)
		}
	})
}

func play(t *testing.T, s *script) error {
	t.Helper()
	reads := 0
	stub := &stubLog{Log: openMemory(t)}
	var mu sync.Mutex
	stub.replaying = func() {
		mu.Lock()
		reads++
		p := s.reading[reads%len(s.reading)]
		mu.Unlock()
		p.take()
	}
	e := newEnv(t, func(o *hub.Options) {
		o.Log = stub
		o.Backlog, o.TotalBacklog, o.Shards, o.WriteTimeout = s.backlog, s.total, s.shards, 0
	})
	var work sync.WaitGroup
	outcomes := make([][]outcome, len(s.visitors))
	for i, visits := range s.visitors {
		work.Go(func() {
			for j := range visits {
				outcomes[i] = append(outcomes[i], e.visit(&visits[j]))
			}
		})
	}
	for i, publications := range s.publishers {
		work.Go(func() {
			for j, p := range publications {
				p.pause.take()
				id := fmt.Sprintf("%d-%d", i, j)
				e.send(&mercure.Update{
					Topics: p.topics, Private: p.private, ID: id, Data: id + strings.Repeat(" ", p.bytes),
				})
				e.acknowledged.Store(id, true)
			}
		})
	}
	work.Wait()
	elapse(time.Second)
	var failures []error
	all := slices.Concat(outcomes...)
	for i := range all {
		all[i].sink.take(-1)
	}
	elapse(time.Second)
	for i := range all {
		failures = append(failures, all[i].check(t, e))
	}
	if n := e.hub.Waiting(); n != 0 {
		failures = append(failures, fmt.Errorf("%d bytes wait although all was taken", n))
	}
	return errors.Join(failures...)
}

// entries returns everything in the log.
func (e *env) entries() []history.Entry {
	e.t.Helper()
	page, err := e.log.(*stubLog).Log.Replay(context.Background(), history.Query{MaxBytes: 1 << 30})
	if err != nil {
		e.t.Fatal(err)
	}
	return page.Entries
}

// newest returns the position of the newest entry.
func (e *env) newest() history.Position {
	e.t.Helper()
	head, err := e.log.Head(context.Background())
	if err != nil {
		e.t.Fatal(err)
	}
	return head.Last
}

// newestAcknowledged returns the position of the newest entry whose publisher knows that it is stored.
func (e *env) newestAcknowledged() history.Position {
	e.t.Helper()
	for _, entry := range slices.Backward(e.entries()) {
		if _, ok := e.acknowledged.Load(entry.ID); ok {
			return entry.Position
		}
	}
	return 0
}

func (e *env) visit(v *visit) outcome {
	v.pause.take()
	r := hub.SubscribeRequest{Matchers: e.matchers(v.matchers...), HasCursor: v.cursor != -1, Cursor: "unknown"}
	if v.reads != nil {
		r.Principal = e.reader(v.reads...)
	}
	o := outcome{visit: v, first: e.newestAcknowledged()}
	if v.cursor != -1 {
		o.first = 0
	}
	switch entries := e.entries(); {
	case v.cursor == -2 || v.cursor >= len(entries):
		r.Cursor = mercure.Earliest
	case v.cursor >= 0:
		at := entries[len(entries)-1-v.cursor]
		r.Cursor, o.first = at.ID, at.Position
	}
	sub := e.subscribe(r)
	o.last = o.first
	if v.cursor == -1 {
		o.last = e.newest()
	}
	o.sink = attach(sub, v.room)
	for _, n := range v.takes {
		v.pause.take()
		o.sink.take(n)
		if n == 500 {
			<-time.After(time.Second) // until everything else has come to rest
		}
	}
	if v.hangsUp {
		o.sink.notify.Gone()
	}
	return o
}

// check compares what the stream carried with what the log has for it.
func (o *outcome) check(t *testing.T, e *env) error {
	t.Helper()
	got := o.sink.events(t)
	for first := o.first; first <= o.last; first++ {
		var want []string
		for _, entry := range e.entries() {
			if entry.Position > first && o.visit.gets(&entry.Record) {
				want = append(want, entry.ID)
			}
		}
		ids := make([]string, len(got))
		for i, event := range got {
			ids[i] = event.ID
		}
		if o.visit.hangsUp {
			want = want[:min(len(want), len(ids))]
		}
		if slices.Equal(ids, want) {
			return nil
		}
		if first == o.last {
			return fmt.Errorf("stream of %+v got %q, want %q (or a little more)", *o.visit, ids, want)
		}
	}
	return nil
}
