// Package historytest is the contract of package history as a test suite. Every
// implementation of history.Log runs it against itself:
//
//	func TestContract(t *testing.T) {
//		historytest.Run(t, historytest.Options{}, func(t *testing.T, l historytest.Limits) historytest.Store { ... })
//	}
//
// It checks order, visibility, ids and their twins, paging, retention,
// back-pressure, concurrency, closing and reopening, and statistics, verification, compaction, import and export where there are any. Run it
// with the race detector too.
//
// What survives a kill or a full disk depends on what a driver keeps, and so on how its store is opened: a durable one has a test that
// calls Kill and one that calls NoSpace. The functions with names like BenchmarkAppend are what the benchmarks of all drivers measure.
package historytest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// patience is how long a step may take before the suite calls it stuck.
const patience = 30 * time.Second

// Options describe the implementation.
type Options struct {
	// VirtualTime says that the implementation works in a synctest bubble: that it talks to nothing
	// outside the process but files. The limit by age is only tested then.
	VirtualTime bool
	// Block is by how many the implementation may exceed the limits by number while there are subscription events; 0 means by none.
	Block int
	// Many is the number of entries of the test that looks ids up in a long log; 0 means 60,000.
	Many int
}

// Limits are what a test asks of the log it opens. Zero values mean the
// implementation's defaults, which must be generous.
type Limits struct {
	MaxEvents             int
	MaxSubscriptionEvents int
	MaxBytes              int64
	MaxAge                time.Duration
	TailBufferBytes       int64
	TailLagBytes          int64
	AppendPatience        time.Duration
}

// Store is a new, empty log.
type Store struct {
	// Log is the log. The suite closes it, also when it has been reopened.
	Log history.Log
	// Reopen closes the log and opens the same store with the same limits; nil says that nothing
	// is kept.
	Reopen func(t *testing.T) history.Log
}

// Run runs the suite. open is called once per test, with that test's t.
func Run(t *testing.T, o Options, open func(t *testing.T, l Limits) Store) {
	t.Helper()
	s := suite{Options: o, open: open}
	s.durable = s.fixture(t, Limits{}).store.Reopen != nil
	for _, group := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"order", s.testOrder},
		{"seek", s.testSeek},
		{"replay", s.testReplay},
		{"tail", s.testTail},
		{"retention", s.testRetention},
		{"together", s.testTogether},
		{"subscription events", s.testSubscriptionEvents},
		{"pressure", s.testPressure},
		{"concurrency", s.testConcurrency},
		{"lifecycle", s.testLifecycle},
		{"inspect", s.testInspect},
		{"tend", s.testTend},
		{"transfer", s.testTransfer},
	} {
		t.Run(group.name, group.run)
	}
}

type suite struct {
	Options

	open    func(*testing.T, Limits) Store
	durable bool // the logs can be reopened
}

// fixture is an open log and what was appended to it.
type fixture struct {
	t     *testing.T
	store Store
	log   history.Log
	want  []history.Entry
}

func (s *suite) fixture(t *testing.T, l Limits) *fixture {
	t.Helper()
	store := s.open(t, l)
	f := &fixture{t: t, store: store, log: store.Log}
	t.Cleanup(func() {
		if err := f.log.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return f
}

// context returns a context that ends when a step is stuck.
func (f *fixture) context() context.Context {
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	f.t.Cleanup(cancel)
	return ctx
}

// record makes a record whose parts tell which one it is.
func record(n int) *history.Record {
	id := "urn:test:" + strconv.Itoa(n)
	r := &history.Record{
		ID: id, Topics: []string{topicOf(n)}, Private: n%3 == 0,
		Event: fmt.Appendf(nil, "id: %s\ndata: number %d\n\n", id, n),
	}
	if n%5 == 0 {
		r.Topics = append(r.Topics, "https://example.com/alternate", "ünïcode "+strconv.Itoa(n))
	}
	return r
}

// topicOf is the canonical topic of record n; ten records in a row have different ones.
func topicOf(n int) string { return "https://example.com/topics/" + strconv.Itoa(n%10) }

// sized makes a record whose event has so many bytes.
func sized(n, bytes int) *history.Record {
	r := record(n)
	r.Event = make([]byte, bytes)
	return r
}

// append appends records, which must succeed, and remembers them.
func (f *fixture) append(records ...*history.Record) history.Position {
	f.t.Helper()
	p, err := f.log.Append(f.context(), records...)
	if err != nil {
		f.t.Fatalf("Append(%d records) = %v", len(records), err)
	}
	first := p + 1 - history.Position(len(records))
	for i, r := range records {
		f.want = append(f.want, history.Entry{Position: first + history.Position(i), Record: *r})
	}
	return p
}

// fill appends the records numbered from first, count of them.
func (f *fixture) fill(first, count int) {
	f.t.Helper()
	for n := range count {
		f.append(record(first + n))
	}
}

// fillFast appends as fill does, from so many goroutines, in whatever order.
func (f *fixture) fillFast(first, count, writers int) {
	f.t.Helper()
	f.appendFast(first, count, writers, record)
}

// appendFast appends the records numbered from first that makeRecord returns, from so many goroutines, in whatever order.
func (f *fixture) appendFast(first, count, writers int, makeRecord func(n int) *history.Record) {
	f.t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(f.t.Context(), patience+time.Duration(count)*10*time.Millisecond)
	defer cancel()
	for w := range writers {
		wg.Go(func() {
			for n := first + w; n < first+count; n += writers {
				r := makeRecord(n)
				p, err := f.log.Append(ctx, r)
				if err != nil {
					f.t.Errorf("Append(%s) = %v", r.ID, err)
					return
				}
				mu.Lock()
				f.want = append(f.want, history.Entry{Position: p, Record: *r})
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	sortEntries(f.want)
}

// replayAll reads everything in (after, upTo] in pages of so many bytes.
func (f *fixture) replayAll(after, upTo history.Position, maxBytes int) []history.Entry {
	f.t.Helper()
	var all []history.Entry
	for {
		q := history.Query{After: after, UpTo: upTo, MaxBytes: maxBytes}
		page, err := f.log.Replay(f.context(), q)
		if err != nil {
			f.t.Fatalf("Replay(%+v) = %v", q, err)
		}
		all = append(all, page.Entries...)
		if page.Through < after {
			f.t.Fatalf("Replay(%+v).Through = %d, want at least %d", q, page.Through, after)
		}
		if n := len(page.Entries); n > 0 && page.Entries[n-1].Position > page.Through {
			f.t.Fatalf("Replay(%+v) has an entry at %d, beyond Through %d", q, page.Entries[n-1].Position, page.Through)
		}
		if page.Through == after {
			return all
		}
		after = page.Through
	}
}

func (f *fixture) head() history.Head {
	f.t.Helper()
	h, err := f.log.Head(f.context())
	if err != nil {
		f.t.Fatalf("Head() = %v", err)
	}
	return h
}

func (f *fixture) wantSeek(id string, want history.Position) {
	f.t.Helper()
	if got, err := f.log.Seek(f.context(), id); err != nil || got != want {
		f.t.Errorf("Seek(%.40q) = %d, %v, want %d", id, got, err, want)
	}
}

func (f *fixture) wantUnknown(id string) {
	f.t.Helper()
	if got, err := f.log.Seek(f.context(), id); !errors.Is(err, history.ErrUnknownID) {
		f.t.Errorf("Seek(%.40q) = %d, %v, want ErrUnknownID", id, got, err)
	}
}

// reopen goes on with the same store in a new log.
func (f *fixture) reopen() {
	f.t.Helper()
	f.log = f.store.Reopen(f.t)
}

// diffEntries compares without reflection, which is slow for long logs, and shows the first
// difference only.
func diffEntries(t *testing.T, what string, want, got []history.Entry) {
	t.Helper()
	for i := range min(len(want), len(got)) {
		w, g := &want[i], &got[i]
		if w.Position != g.Position || w.ID != g.ID || w.Private != g.Private || w.Subscription != g.Subscription ||
			!slices.Equal(w.Topics, g.Topics) || !bytes.Equal(w.Event, g.Event) {
			t.Fatalf("%s: entry %d of %d differs (-want +got):\n%s", what, i, len(want), cmp.Diff(*w, *g))
		}
	}
	if len(want) != len(got) {
		t.Fatalf("%s: %d entries, want %d", what, len(got), len(want))
	}
}
