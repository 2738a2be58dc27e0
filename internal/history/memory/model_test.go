package memory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/memory"
	"github.com/cinnabar-hub/cinnabar/test/bubble"
)

// naive is a log as a slice.
type naive struct {
	o            memory.Options
	entries      []naiveEntry
	last, passed history.Position
}

type naiveEntry struct {
	history.Entry

	at time.Time
}

func (n *naive) append(records []*history.Record) {
	for _, r := range records {
		n.last++
		n.entries = append(n.entries, naiveEntry{Entry: history.Entry{Position: n.last, Record: *r}, at: time.Now()})
	}
}

// count tells how much there is.
func (n *naive) count() (updates, events int, bytes int64) {
	for i := range n.entries {
		bytes += int64(n.entries[i].Size())
		if n.entries[i].Subscription {
			events++
		} else {
			updates++
		}
	}
	return updates, events, bytes
}

// trim enforces the limits: subscription events go wherever they lie, everything else from the beginning on.
func (n *naive) trim() {
	for {
		_, events, _ := n.count()
		if n.o.MaxSubscriptionEvents <= 0 || events <= n.o.MaxSubscriptionEvents {
			break
		}
		i := slices.IndexFunc(n.entries, func(e naiveEntry) bool { return e.Subscription })
		n.entries = slices.Delete(n.entries, i, i+1)
	}
	for len(n.entries) > 0 {
		updates, _, bytes := n.count()
		switch {
		case n.o.MaxEvents > 0 && updates > n.o.MaxEvents:
		case n.o.MaxBytes > 0 && len(n.entries) > 1 && bytes > n.o.MaxBytes:
		case n.o.MaxAge > 0 && time.Since(n.entries[0].at) > n.o.MaxAge:
		default:
			return
		}
		n.passed = n.entries[0].Position
		n.entries = n.entries[1:]
	}
}

// after returns the entries after a position and up to another one.
func (n *naive) after(p, upTo history.Position) []history.Entry {
	var all []history.Entry
	for _, e := range n.entries {
		if e.Position > p && (upTo == 0 || e.Position <= upTo) {
			all = append(all, e.Entry)
		}
	}
	return all
}

// modelStep is what happens: time passes, and then records are appended.
type modelStep struct {
	records []*history.Record
	passes  time.Duration
}

func drawRecord(t *rapid.T, unique string) *history.Record {
	r := &history.Record{ID: unique, Topics: []string{rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "topic")}}
	if rapid.IntRange(0, 3).Draw(t, "twin") == 0 {
		r.ID = rapid.SampledFrom([]string{"one", "two"}).Draw(t, "id")
	}
	r.Subscription = rapid.Bool().Draw(t, "subscription")
	r.Event = make([]byte, rapid.SampledFrom([]int{0, 10, 400}).Draw(t, "bytes"))
	return r
}

func drawSteps(t *rapid.T) []modelStep {
	steps := make([]modelStep, rapid.IntRange(1, 40).Draw(t, "steps"))
	for i := range steps {
		steps[i].passes = time.Duration(rapid.SampledFrom([]int{0, 0, 1, 5}).Draw(t, "seconds")) * time.Second
		for n := range rapid.IntRange(1, 6).Draw(t, "records") {
			steps[i].records = append(steps[i].records, drawRecord(t, fmt.Sprint("id", i, "-", n)))
		}
	}
	return steps
}

// TestModel compares the log with a slice, under all limits at once.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := memory.Options{
			MaxEvents:             rapid.SampledFrom([]int{-1, 1, 3, 10}).Draw(rt, "updates"),
			MaxSubscriptionEvents: rapid.SampledFrom([]int{-1, 1, 3, 10}).Draw(rt, "subscription events"),
			MaxBytes:              rapid.SampledFrom([]int64{-1, 1, 1000, 4000}).Draw(rt, "bytes"),
			MaxAge:                time.Duration(rapid.SampledFrom([]int{0, 0, 7, 20}).Draw(rt, "age")) * time.Second,
		}
		steps := drawSteps(rt)
		var failure error
		synctest.Test(t, func(t *testing.T) { failure = compare(t, o, steps) })
		if failure != nil {
			rt.Fatal(failure)
		}
	})
}

func compare(t *testing.T, o memory.Options, steps []modelStep) error {
	t.Helper()
	log, err := memory.Open(o)
	if err != nil {
		return err
	}
	defer log.Close()
	n := &naive{o: o}
	for i, s := range steps {
		if s.passes > 0 {
			bubble.Advance(s.passes)
		}
		at, err := log.Append(t.Context(), s.records...)
		n.append(s.records)
		n.trim()
		if err != nil || at != n.last {
			return fmt.Errorf("step %d: Append() = %d, %w, want %d", i, at, err, n.last)
		}
		if err := n.check(t, log); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	if err := n.checkReplay(t.Context(), log); err != nil {
		return err
	}
	return n.checkTail(t.Context(), log)
}

// check compares what the log says about itself and gives.
func (n *naive) check(t *testing.T, log *memory.Log) error {
	t.Helper()
	updates, events, bytes := n.count()
	head := history.Head{First: n.passed + 1, Last: n.last}
	if len(n.entries) > 0 {
		head.LastID = n.entries[len(n.entries)-1].ID
	}
	got, err := log.Head(t.Context())
	if got.Epoch = ""; err != nil || got != head {
		return fmt.Errorf("Head() = %+v, %w, want %+v", got, err, head)
	}
	stats, err := log.Stats(t.Context())
	if err != nil || stats.Events != int64(updates) || stats.SubscriptionEvents != int64(events) || stats.Bytes != bytes || stats.LastID != head.LastID {
		return fmt.Errorf("Stats() = %+v, %w, want %d updates, %d events and %d bytes", stats, err, updates, events, bytes)
	}
	if v, err := log.Verify(t.Context()); err != nil || v.Events != int64(len(n.entries)) {
		return fmt.Errorf("Verify() = %+v, %w, want %d entries", v, err, len(n.entries))
	}
	var exported []history.Stamped
	if err := log.Export(t.Context(), func(s history.Stamped) error { exported = append(exported, s); return nil }); err != nil || len(exported) != len(n.entries) {
		return fmt.Errorf("Export() = %w, with %d entries of %d", err, len(exported), len(n.entries))
	}
	for i, s := range exported {
		if s.ID != n.entries[i].ID || !s.At.Equal(n.entries[i].at) {
			return fmt.Errorf("Export() gives %s of %v, want %s of %v", s.ID, s.At, n.entries[i].ID, n.entries[i].at)
		}
	}
	return n.checkSeek(t.Context(), log)
}

// checkSeek looks up the ids that several bear, one that none bears, and those of the entries.
func (n *naive) checkSeek(ctx context.Context, log *memory.Log) error {
	ids := []string{"one", "two", "id0-0"}
	for _, e := range n.entries {
		ids = append(ids, e.ID)
	}
	for _, id := range ids {
		var want history.Position
		if i := slices.IndexFunc(n.entries, func(e naiveEntry) bool { return e.ID == id }); i >= 0 {
			want = n.entries[i].Position
		}
		if got, err := log.Seek(ctx, id); got != want || (want == 0) != errors.Is(err, history.ErrUnknownID) {
			return fmt.Errorf("Seek(%s) = %d, %w, want %d", id, got, err, want)
		}
	}
	return nil
}

func (n *naive) checkReplay(ctx context.Context, log *memory.Log) error {
	for after := range n.last + 2 {
		for _, upTo := range []history.Position{0, n.last / 2, n.last + 1} {
			page, err := log.Replay(ctx, history.Query{After: after, UpTo: upTo})
			if after != 0 && after < n.passed {
				if !errors.Is(err, history.ErrPositionGone) {
					return fmt.Errorf("Replay(after %d) = %w, want ErrPositionGone", after, err)
				}
				continue
			}
			end := n.last
			if upTo != 0 {
				end = min(upTo, n.last)
			}
			want := n.after(after, upTo)
			if err != nil || !same(want, page.Entries) || page.Through != max(after, end) {
				return fmt.Errorf("Replay(after %d, up to %d) through %d, %w:\n%s", after, upTo, page.Through, err, cmp.Diff(want, page.Entries))
			}
		}
	}
	return nil
}

// checkTail reads what is there from the beginning, and from the middle.
func (n *naive) checkTail(ctx context.Context, log *memory.Log) error {
	for _, after := range []history.Position{0, n.passed, (n.passed + n.last) / 2} {
		ctx, cancel := context.WithCancel(ctx)
		want := n.after(after, 0)
		var got []history.Entry
		if len(want) > 0 {
			err := log.Tail(ctx, after, func(entries []history.Entry) error {
				got = append(got, entries...)
				if len(got) >= len(want) {
					cancel()
				}
				return nil
			})
			if !errors.Is(err, context.Canceled) {
				cancel()
				return fmt.Errorf("Tail(after %d) = %w", after, err)
			}
		}
		cancel()
		if !same(want, got) {
			return fmt.Errorf("Tail(after %d):\n%s", after, cmp.Diff(want, got))
		}
	}
	return nil
}

// same compares what tells entries apart, much faster than cmp does.
func same(a, b []history.Entry) bool {
	return slices.EqualFunc(a, b, func(a, b history.Entry) bool {
		return a.Position == b.Position && a.ID == b.ID && a.Subscription == b.Subscription && len(a.Event) == len(b.Event) && slices.Equal(a.Topics, b.Topics)
	})
}
