package segments

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// ledger knows what was promised to publishers.
type ledger struct {
	mu           sync.Mutex
	acknowledged history.Position // all up to here; one publisher appends one after the other
	attempted    history.Position
}

func (l *ledger) both() (acknowledged, attempted history.Position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acknowledged, l.attempted
}

func openDisk(t *testing.T, o Options, d *disk) (*Log, error) {
	t.Helper()
	o.Dir = "disk"
	return open(t.Context(), o, d, numberHash)
}

// numberHash is the number in an id, so that those in the files of a test are the same each time.
func numberHash(_ hashKey, id []byte) uint64 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(string(id), "id-"), 10, 64)
	return n
}

func powerRecord(p history.Position) *history.Record {
	return &history.Record{ID: fmt.Sprint("id-", p), Topics: []string{"t"}, Event: make([]byte, 20+p%7*40)}
}

// Wherever the power goes, whatever of the unsynced is left, the store opens, holds every acknowledged record that
// retention has not given up, in order and without a gap, and goes on. It is tried before every single change that the
// store makes on its disk: while it appends, begins segments and removes old ones, and while it opens again.
func TestPowerLoss(t *testing.T) {
	const limit = 12
	o := Options{SegmentBytes: 1000, MaxEvents: limit}
	d := newDisk()
	promised := &ledger{}
	tried := 0
	indexes := map[string]bool{}
	d.before = func(op, name string) {
		acknowledged, attempted := promised.both()
		if strings.Contains(name, indexSuffix) {
			indexes[op] = true
		}
		for _, l := range losses() {
			tried++
			checkLoss(t, o, d.after(l), acknowledged, attempted, fmt.Sprintf("before %s %s at %d, %s", op, name, attempted, l.name))
		}
	}
	for p := history.Position(1); p <= 90 && !t.Failed(); {
		log, err := openDisk(t, o, d)
		if err != nil {
			t.Fatal(err)
		}
		for range 30 {
			promised.mu.Lock()
			promised.attempted = p
			promised.mu.Unlock()
			if _, err := log.Append(t.Context(), powerRecord(p)); err != nil {
				t.Fatal(err)
			}
			promised.mu.Lock()
			promised.acknowledged = p
			promised.mu.Unlock()
			p++
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if want := map[string]bool{"create": true, "write": true, "sync": true, "rename": true, "remove": true}; !maps.Equal(indexes, want) {
		t.Errorf("losses before %v of index files, want %v", indexes, want)
	}
	t.Logf("%d losses of power", tried)
}

// checkLoss opens what a loss of power has left.
func checkLoss(t *testing.T, o Options, d *disk, acknowledged, attempted history.Position, when string) {
	t.Helper()
	log, err := openDisk(t, o, d)
	if err != nil {
		t.Errorf("%s: open() = %v", when, err)
		return
	}
	defer func() { _ = log.Close() }()
	h, err := log.Head(t.Context())
	if err != nil || h.Last < acknowledged || h.Last > attempted {
		t.Errorf("%s: Head() = %+v, %v, want the last between %d and %d", when, h, err, acknowledged, attempted)
		return
	}
	if h.Last == 0 {
		return
	}
	page, err := log.Replay(t.Context(), history.Query{MaxBytes: 1 << 20})
	if err != nil || len(page.Entries) != int(min(h.Last, history.Position(o.MaxEvents))) {
		t.Errorf("%s: Replay() = %d entries, %v, want the last %d up to %d", when, len(page.Entries), err, o.MaxEvents, h.Last)
		return
	}
	for i, e := range page.Entries {
		if want := h.First + history.Position(i); e.Position != want || e.ID != fmt.Sprint("id-", want) {
			t.Errorf("%s: entry %d is %s", when, e.Position, e.ID)
		}
	}
	if p, err := log.Append(t.Context(), powerRecord(h.Last+1)); err != nil || p != h.Last+1 {
		t.Errorf("%s: Append() = %d, %v, want %d", when, p, err, h.Last+1)
	}
}

// What a log shows, and what it acknowledges, after a kill at any moment stays, even if the power goes right after:
// readers may have seen it.
func TestPowerLoss_afterKill(t *testing.T) {
	o := Options{SegmentBytes: 1000, MaxEvents: 12}
	d := newDisk()
	d.before = func(op, name string) {
		left := d.killed()
		again, err := openDisk(t, o, left)
		if err != nil {
			t.Errorf("before %s %s: open() = %v after a kill", op, name, err)
			return
		}
		h, err := again.Head(t.Context())
		if err != nil {
			t.Error(err)
		}
		checkLosses(t, o, left, h.Last, fmt.Sprintf("opened after a kill before %s %s", op, name))
		if _, err := again.Append(t.Context(), powerRecord(h.Last+1)); err != nil {
			t.Error(err)
		}
		checkLosses(t, o, left, h.Last+1, fmt.Sprintf("appended after a kill before %s %s", op, name))
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
	log, err := openDisk(t, o, d)
	if err != nil {
		t.Fatal(err)
	}
	for p := history.Position(1); p <= 30; p++ {
		if _, err := log.Append(t.Context(), powerRecord(p)); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

// What a full disk has left at the end of a segment is cut off, and that is durable before another segment follows: bytes there
// would be damage in the middle of the store.
func TestPowerLoss_afterNoSpace(t *testing.T) {
	o := Options{SegmentBytes: 1000, MaxEvents: 12}
	d := newDisk()
	full := &faults{folder: d}
	o.Dir = "disk"
	log, err := open(t.Context(), o, full, constantHash)
	if err != nil {
		t.Fatal(err)
	}
	for p := history.Position(1); p <= 5; p++ {
		full.on(noSpace(t), "write")
		if _, err := log.Append(t.Context(), powerRecord(p)); !errors.Is(err, history.ErrNoSpace) {
			t.Fatalf("Append() = %v, want ErrNoSpace", err)
		}
		full.set(nil)
		r := powerRecord(p)
		r.Event = make([]byte, 600) // begins a segment
		if _, err := log.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		checkLosses(t, o, d, p, fmt.Sprintf("after %d", p))
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

func checkLosses(t *testing.T, o Options, d *disk, last history.Position, when string) {
	t.Helper()
	for _, l := range losses() {
		d.mu.Lock()
		after := d.after(l)
		d.mu.Unlock()
		checkLoss(t, o, after, last, last, when+", "+l.name)
	}
}
