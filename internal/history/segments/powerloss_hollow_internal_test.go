package segments

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// pairOf is an update and a subscription event that are appended together, the first of them at an odd position.
func pairOf(p history.Position) []*history.Record {
	a, b := powerRecord(p), powerRecord(p+1)
	b.Subscription = true
	return []*history.Record{a, b}
}

// Wherever the process is killed or the power goes while segments are made hollow, all updates are there, the newest subscription
// events, pairs as a whole, and the log goes on.
func TestPowerLoss_hollow(t *testing.T) {
	o := Options{SegmentBytes: 1000, MaxSubscriptionEvents: 4}
	d := newDisk()
	promised := &ledger{}
	tried := map[string]int{}
	d.before = func(op, name string) {
		acknowledged, attempted := promised.both()
		if strings.Contains(name, hollowSuffix) || strings.HasPrefix(op, "remove") {
			tried[op]++
		}
		for _, l := range losses() {
			checkHollowLoss(t, o, d.after(l), acknowledged, attempted, fmt.Sprintf("before %s %s at %d, %s", op, name, attempted, l.name))
		}
		checkHollowLoss(t, o, d.killed(), acknowledged, attempted, fmt.Sprintf("killed before %s %s at %d", op, name, attempted))
	}
	for p := history.Position(1); p <= 60 && !t.Failed(); {
		log, err := openDisk(t, o, d)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			promised.mu.Lock()
			promised.attempted = p + 1
			promised.mu.Unlock()
			if _, err := log.Append(t.Context(), pairOf(p)...); err != nil {
				t.Fatal(err)
			}
			promised.mu.Lock()
			promised.acknowledged = p + 1
			promised.mu.Unlock()
			p += 2
		}
		if _, err := log.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, op := range []string{"create", "write", "sync", "rename", "remove"} {
		if tried[op] == 0 {
			t.Errorf("nothing was tried before a %s", op)
		}
	}
}

// checkHollowLoss opens what is left, and looks at it again when all segments have been made hollow that have to be.
func checkHollowLoss(t *testing.T, o Options, d *disk, acknowledged, attempted history.Position, when string) {
	t.Helper()
	log, err := openDisk(t, o, d)
	if err != nil {
		t.Errorf("%s: open() = %v", when, err)
		return
	}
	defer func() { _ = log.Close() }()
	h, err := log.Head(t.Context())
	if err != nil || h.Last < acknowledged || h.Last > attempted || h.Last%2 != 0 {
		t.Errorf("%s: Head() = %+v, %v, want the last of a pair between %d and %d", when, h, err, acknowledged, attempted)
		return
	}
	checkPairs(t, o, log, h, when)
	if p, err := log.Append(t.Context(), pairOf(h.Last+1)...); err != nil || p != h.Last+2 {
		t.Errorf("%s: Append() = %d, %v, want %d", when, p, err, h.Last+2)
	}
	if _, err := log.Compact(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("%s: Compact() = %v", when, err)
	}
	h.Last += 2
	checkPairs(t, o, log, h, when+", compacted")
}

func checkPairs(t *testing.T, o Options, log *Log, h history.Head, when string) {
	t.Helper()
	page, err := log.Replay(t.Context(), history.Query{MaxBytes: 1 << 20})
	if err != nil {
		t.Errorf("%s: Replay() = %v", when, err)
		return
	}
	updates, events := 0, 0
	for _, e := range page.Entries {
		if e.ID != fmt.Sprint("id-", e.Position) || e.Subscription != (e.Position%2 == 0) {
			t.Errorf("%s: at %d there is %s", when, e.Position, e.ID)
		}
		if e.Subscription {
			events++
		} else {
			updates++
		}
	}
	pairs := int(h.Last / 2)
	if updates != pairs || events < min(pairs, o.MaxSubscriptionEvents) {
		t.Errorf("%s: %d updates and %d subscription events of %d pairs", when, updates, events, pairs)
	}
	if s, err := log.Stats(t.Context()); err != nil || s.Events != int64(updates) {
		t.Errorf("%s: Stats() = %+v, %v, want %d updates", when, s, err, updates)
	}
}
