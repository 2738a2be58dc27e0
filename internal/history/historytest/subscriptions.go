package historytest

import (
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// event makes a subscription event whose parts tell which one it is.
func event(n int) *history.Record {
	id := fmt.Sprintf("urn:test:event:%d", n)
	topic := fmt.Sprintf("/.well-known/mercure/subscriptions/exact/https%%3A%%2F%%2Fexample.com%%2F%d/urn%%3Auuid%%3A%d", n%10, n)
	return &history.Record{
		ID: id, Topics: []string{topic}, Private: true, Subscription: true,
		Event: fmt.Appendf(nil, "id: %s\nevent: mercure\ndata: {\"id\":%q,\"type\":\"subscription\",\"active\":%v,\"number\":%0200d}\n\n", id, topic, n%2 == 0, n),
	}
}

// mixed appends so many subscription events, some at a time, and an update after each stride of them.
func (f *fixture) mixed(events, stride int) {
	f.t.Helper()
	const some = 50
	for n := 0; n < events; {
		var together []*history.Record
		for range some {
			together = append(together, event(n))
			if n++; n%stride == 0 {
				together = append(together, record(n))
			}
		}
		f.append(together...)
	}
}

// split tells updates from subscription events.
func split(entries []history.Entry) (updates, events []history.Entry) {
	for _, e := range entries {
		if e.Subscription {
			events = append(events, e)
		} else {
			updates = append(updates, e)
		}
	}
	return updates, events
}

// wantNewest checks that the newest of the wanted entries are there, at least so many, and at most so many more.
func (f *fixture) wantNewest(what string, want, got []history.Entry, least, more int) {
	f.t.Helper()
	if len(got) < least || len(got) > least+more || len(got) > len(want) {
		f.t.Fatalf("%d %s are left of %d, want %d and at most %d more", len(got), what, len(want), least, more)
	}
	diffEntries(f.t, what, want[len(want)-len(got):], got)
	if gone := len(want) - len(got); gone > 0 {
		f.wantUnknown(want[0].ID)
		f.wantUnknown(want[gone-1].ID)
	}
	if len(got) > 0 {
		f.wantSeek(got[0].ID, got[0].Position)
	}
}

// tended has the log do what it may put off, if it puts anything off.
func (f *fixture) tended() {
	f.t.Helper()
	if _, err := capability[history.Compacter](f).Compact(f.context()); err != nil {
		f.t.Fatalf("Compact() = %v", err)
	}
}

// testSubscriptionEvents is about the events that have a retention of their own.
func (s *suite) testSubscriptionEvents(t *testing.T) {
	t.Run("ACT-22 are entries like any other", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		f.mixed(200, 3)
		diffEntries(t, "Replay", f.want, f.replayAll(0, 0, 0))
		diffEntries(t, "Tail", f.want, f.next(f.tail(0), len(f.want)))
		f.wantSeek(event(7).ID, f.want[9].Position) // two updates lie before it
		if s.durable {
			f.reopen()
			diffEntries(t, "Replay after reopening", f.want, f.replayAll(0, 0, 0))
		}
		exported := f.export()
		updates, events := split(f.want)
		stats, err := capability[history.Inspector](f).Stats(f.context())
		if err != nil || stats.Events != int64(len(updates)) || stats.SubscriptionEvents != int64(len(events)) {
			t.Errorf("Stats() = %+v, %v, want %d updates and %d events", stats, err, len(updates), len(events))
		}
		other := s.fixture(t, Limits{})
		err = capability[history.Importer](other).Import(other.context(), fromSlice(exported))
		if err != nil {
			t.Fatalf("Import() = %v", err)
		}
		wantSame(t, f.want, other.replayAll(0, 0, 0))
	})
	t.Run("do not count for the limit of updates", func(t *testing.T) {
		const keep = 100
		f := s.fixture(t, Limits{MaxEvents: keep, MaxSubscriptionEvents: 100_000})
		f.mixed(4000, 10)
		f.tended()
		updates, _ := split(f.want)
		kept, _ := split(f.replayAll(0, 0, 0))
		f.wantNewest("updates", updates, kept, keep, s.Block)
	})
	t.Run("have a limit of their own, and leave the updates", func(t *testing.T) { s.testOwnLimit(t) })
	t.Run("reach a tail that is there, however many come", func(t *testing.T) {
		f := s.fixture(t, Limits{MaxEvents: 8192, MaxSubscriptionEvents: 100, TailBufferBytes: 4096})
		f.append(record(0))
		c := f.tail(0)
		f.next(c, 1)
		f.mixed(3000, 10)
		all := f.next(c, 100) // it lags as far as its buffer reaches, and further
		f.t.Cleanup(c.cancel)
		for before := f.want[0].Position; len(all) > 0; all = all[1:] {
			if all[0].Position <= before {
				t.Fatalf("the entry at %d follows that at %d", all[0].Position, before)
			}
			before = all[0].Position
		}
		updates, _ := split(f.want)
		last, seen := updates[len(updates)-1], f.next(c, 1)[0]
		for seen.Position < last.Position {
			next := f.next(c, 1)[0]
			if next.Position <= seen.Position {
				t.Fatalf("the entry at %d follows that at %d", next.Position, seen.Position)
			}
			seen = next
		}
		if seen.ID != last.ID {
			t.Errorf("the tail got %s at %d, want %s", seen.ID, seen.Position, last.ID)
		}
	})
	t.Run("that are gone are no gap", func(t *testing.T) {
		f := s.fixture(t, Limits{MaxEvents: 8192, MaxSubscriptionEvents: 1})
		f.mixed(5000, 5000)
		f.tended()
		for _, after := range []history.Position{0, f.want[0].Position, f.want[1000].Position, f.want[len(f.want)-1].Position} {
			if _, err := f.log.Replay(f.context(), history.Query{After: after}); err != nil {
				t.Errorf("Replay(after %d) = %v", after, err)
			}
		}
	})
	t.Run("that are gone make room", func(t *testing.T) {
		const bytes = 4 << 20
		f := s.fixture(t, Limits{MaxEvents: 8192, MaxSubscriptionEvents: 100, MaxBytes: bytes})
		f.fill(0, 50)
		f.mixed(20_000, 1000)
		f.tended()
		updates, events := split(f.want)
		gotUpdates, gotEvents := split(f.replayAll(0, 0, 0))
		diffEntries(t, "updates", updates, gotUpdates)
		f.wantNewest("events", events, gotEvents, 100, 2*s.Block)
		stats, err := capability[history.Inspector](f).Stats(f.context())
		if err != nil || stats.Bytes > bytes {
			t.Errorf("Stats() = %+v, %v, want at most %d bytes", stats, err, bytes)
		}
	})
}

func (s *suite) testOwnLimit(t *testing.T) {
	const keep, stride = 150, 7
	f := s.fixture(t, Limits{MaxEvents: 8192, MaxSubscriptionEvents: keep})
	f.mixed(6000, stride)
	f.tended()
	check := func() {
		t.Helper()
		got := f.replayAll(0, 0, 0)
		updates, events := split(f.want)
		gotUpdates, gotEvents := split(got)
		diffEntries(t, "updates", updates, gotUpdates)
		f.wantNewest("events", events, gotEvents, keep, 2*s.Block)
		f.wantTail(0, got)
		for _, i := range []int{0, 1, stride, 1000, len(f.want) / 2, len(f.want) - 2} {
			after := f.want[i].Position
			var rest []history.Entry
			for _, e := range got {
				if e.Position > after {
					rest = append(rest, e)
				}
			}
			diffEntries(t, fmt.Sprint("Replay after ", after), rest, f.replayAll(after, 0, 10_000))
			f.wantTail(after, rest)
		}
		exported := f.export()
		if len(exported) != len(got) {
			t.Errorf("Export() gives %d records, want %d", len(exported), len(got))
		}
		if h := f.head(); h.Last != f.want[len(f.want)-1].Position || h.LastID != f.want[len(f.want)-1].ID || h.First > got[0].Position {
			t.Errorf("Head() = %+v", h)
		}
		sel := history.Selection{Exact: []string{event(5).Topics[0], got[len(got)-1].Topics[0]}}
		page, err := f.log.Replay(f.context(), history.Query{Select: sel})
		if err != nil || len(page.Entries) == 0 {
			t.Errorf("Replay(%+v) = %+v, %v, want the newest event", sel, page, err)
		}
		for _, e := range page.Entries {
			if e.ID == event(5).ID || e.ID == "" {
				t.Errorf("Replay(%+v) gives %+v", sel, e)
			}
		}
		if _, err := capability[history.Verifier](f).Verify(f.context()); err != nil {
			t.Errorf("Verify() = %v", err)
		}
	}
	check()
	if s.durable {
		f.reopen()
		check()
	}
	for n := range 100 {
		f.append(event(100_000+n), record(100_000+n))
	}
	f.tended()
	check()
}

// wantTail checks that a tail gets the entries in order, and between them nothing but subscription events that have gone.
func (f *fixture) wantTail(after history.Position, want []history.Entry) {
	f.t.Helper()
	last := want[len(want)-1].Position
	c := f.tail(after)
	defer c.cancel()
	var got []history.Entry
	for before := after; before < last; {
		e := f.next(c, 1)[0]
		if e.Position <= before {
			f.t.Fatalf("Tail(after %d) gives the entry at %d after that at %d", after, e.Position, before)
		}
		before = e.Position
		if gone := e.Subscription && !slices.ContainsFunc(want, func(w history.Entry) bool { return w.Position == e.Position }); !gone {
			got = append(got, e)
		}
	}
	diffEntries(f.t, fmt.Sprint("Tail after ", after), want, got)
}

// fromSlice returns what Import asks for these records.
func fromSlice(all []history.Stamped) func() (history.Stamped, error) {
	return func() (history.Stamped, error) {
		if len(all) == 0 {
			return history.Stamped{}, io.EOF
		}
		first := all[0]
		all = all[1:]
		return first, nil
	}
}

// wantSame compares entries but for their positions.
func wantSame(t *testing.T, want, got []history.Entry) {
	t.Helper()
	bare := func(entries []history.Entry) []history.Entry {
		var all []history.Entry
		for _, e := range entries {
			all = append(all, history.Entry{Record: e.Record})
		}
		return all
	}
	diffEntries(t, "records", bare(want), bare(got))
}
