package segments

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// fourRecords is the size of a segment with two updates and two subscription events of a stage.
const fourRecords = headerSize + 4*(fixedSize+5+5+100)

// mixedStage has segments of four records, two of which are subscription events, and keeps three of these.
func mixedStage(t *testing.T) *stage {
	t.Helper()
	return newStage(t, Options{SegmentBytes: fourRecords, MaxSubscriptionEvents: 3})
}

// appendPairs appends so many times an update and a subscription event together.
func (s *stage) appendPairs(count int) {
	s.t.Helper()
	for range count {
		var pair []*history.Record
		for _, event := range []bool{false, true} {
			s.n++
			pair = append(pair, &history.Record{ID: fmt.Sprintf("i-%02d", s.n), Topics: []string{"t"}, Subscription: event, Event: make([]byte, 101)})
		}
		if _, err := s.Append(s.t.Context(), pair...); err != nil {
			s.t.Fatalf("Append() = %v", err)
		}
	}
}

// wantMixed checks that all updates are there, and of the subscription events the newest, at least three of them, and no more than most.
func (s *stage) wantMixed(most int) {
	s.t.Helper()
	page, err := s.Replay(s.t.Context(), history.Query{MaxBytes: 1 << 20})
	if err != nil {
		s.t.Fatalf("Replay() = %v", err)
	}
	there := map[history.Position]bool{}
	events := 0
	for _, e := range page.Entries {
		there[e.Position] = true
		if want := fmt.Sprintf("i-%02d", e.Position); e.ID != want || e.Subscription != (e.Position%2 == 0) {
			s.t.Errorf("at %d there is %s, subscription event: %v", e.Position, e.ID, e.Subscription)
		}
		if e.Subscription {
			events++
		}
	}
	for p := history.Position(1); p <= history.Position(s.n); p++ {
		got, err := s.Seek(s.t.Context(), fmt.Sprintf("i-%02d", p))
		if want := p%2 == 1 || int(p) > s.n-2*events; want != there[p] || want != (err == nil) || want && got != p || !want && !errors.Is(err, history.ErrUnknownID) {
			s.t.Errorf("entry %d is there: %v, Seek() = %d, %v, want it to be there: %v", p, there[p], got, err, want)
		}
	}
	if events < min(3, s.n/2) || events > most {
		s.t.Errorf("%d subscription events are there, want 3 to %d", events, most)
	}
	stats, err := s.Stats(s.t.Context())
	if err != nil || stats.Events != int64(s.n/2) || stats.SubscriptionEvents != int64(events) {
		s.t.Errorf("Stats() = %+v, %v, want %d updates and %d events", stats, err, s.n/2, events)
	}
	if v, err := s.Verify(s.t.Context()); err != nil || v.Events != int64(len(page.Entries)) {
		s.t.Errorf("Verify() = %+v, %v, want %d entries", v, err, len(page.Entries))
	}
}

func (s *stage) compactOrFail() {
	s.t.Helper()
	if _, err := s.Compact(s.t.Context()); err != nil {
		s.t.Errorf("Compact() = %v", err)
	}
}

// isHollow tells whether the segment at the position is hollow.
func (s *stage) isHollow(p history.Position) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.find(p).hollow
}

// A segment becomes hollow under its readers: they go on with what they have, others see the new one, and the old one goes when the last
// reader does.
func TestHollow_whileRead(t *testing.T) {
	s := mixedStage(t)
	s.appendPairs(1)
	p, err := s.openPart(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	held, _ := s.holdAll()
	s.appendPairs(9)
	s.compactOrFail()
	if !s.isHollow(1) {
		t.Fatal("the first segment is not hollow while it is read")
	}
	s.wantMixed(4)
	seen := ""
	if _, err := p.each(t.Context(), p.left(), func(v *view) bool { seen += string(v.id) + " "; return true }); err != nil || seen != "i-01 i-02 " {
		t.Errorf("each() = %v after %s in what was held", err, seen)
	}
	if err := s.withIndex(t.Context(), held[0], func(x *sealed) error { return x.check(held[0]) }); err != nil {
		t.Errorf("the index of what was held: %v", err)
	}
	s.closePart(p)
	old := filepath.Join(s.o.Dir, segmentName(1))
	if _, err := os.Stat(old); err != nil {
		t.Errorf("the old file has gone while somebody holds it: %v", err)
	}
	for _, h := range held {
		s.release(h)
	}
	s.wantReaped(5)
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old file is still there: %v", err)
	}
	s.reopen()
	s.wantMixed(4)
}

// Whatever fails while a segment is made hollow, nothing is lost, the operator is told once, appends go on, and it is tried again.
func TestHollow_fails(t *testing.T) {
	for name, ops := range map[string][]string{
		"creating": {"create"}, "writing": {"write"}, "syncing": {"sync"}, "renaming": {"rename"}, "the folder": {"sync folder"}, "opening": {"open"},
		"opening and removing": {"open", "remove"}, "renaming and removing": {"rename", "remove"}, "the folder and removing": {"sync folder", "remove"},
	} {
		t.Run(name, func(t *testing.T) {
			said, logger := newNotes()
			s := newStage(t, Options{SegmentBytes: fourRecords, MaxSubscriptionEvents: 3, Logger: logger})
			s.sealing.Lock() // so that the janitor does nothing yet
			s.appendPairs(7)
			s.faults.set(func(op, name string) error {
				if slices.Contains(ops, op) && (op == "sync folder" || strings.Contains(name, hollowSuffix)) {
					return errBroken
				}
				return nil
			})
			s.sealing.Unlock()
			for range 3 {
				if _, err := s.Compact(t.Context()); err == nil {
					t.Error("Compact() = nil, want what went wrong")
				}
			}
			if s.isHollow(1) || said.count("still holds subscription events") != 2 {
				t.Errorf("the first segment is hollow: %v; the operator was told %d times, want once for each of two", s.isHollow(1), said.count("still holds"))
			}
			s.wantMixed(7)
			s.faults.set(nil)
			s.appendPairs(1)
			s.wantReaped(len(s.extents()))
			s.compactOrFail()
			s.wantMixed(4)
			s.reopen()
			s.wantMixed(4)
		})
	}
}

// A segment that is trimmed while it is made hollow does not come back, also when its file cannot be removed at once.
func TestHollow_trimmedMeanwhile(t *testing.T) {
	s := mixedStage(t)
	s.sealing.Lock() // so that the janitor does nothing yet
	s.appendPairs(10)
	x := s.extents()[0]
	trimmed := false
	s.faults.set(func(op, name string) error {
		if op == "rename" && name == hollowName(1)+tempSuffix {
			trimmed = true
			s.mu.Lock()
			for range 2 {
				s.passed = s.segments[0].last()
				s.drop()
			}
			s.setFirst()
			s.mu.Unlock()
		}
		if op == "remove" && name == hollowName(1) {
			return errBroken
		}
		return nil
	})
	s.sealing.Unlock()
	_ = s.makeHollow(t.Context(), x) // this or the janitor
	s.compactOrFail()
	if !trimmed {
		t.Fatal("nothing was trimmed meanwhile")
	}
	if _, err := s.Replay(t.Context(), history.Query{After: 1}); !errors.Is(err, history.ErrPositionGone) {
		t.Errorf("Replay() = %v, want ErrPositionGone", err)
	}
	_, gone := os.Stat(filepath.Join(s.o.Dir, hollowName(1)))
	_, next := os.Stat(filepath.Join(s.o.Dir, segmentName(5)))
	if gone != nil || next != nil {
		t.Errorf("Stat() = %v of the file that cannot be removed, and %v of the next one, which must not go before it", gone, next)
	}
	s.faults.set(nil)
	s.wantReaped(3)
	s.reopen()
	if h := s.head(); h.First != 9 || h.Last != 20 {
		t.Errorf("Head() = %+v after reopening, want 9 to 20", h)
	}
}

// A damaged segment is not made hollow, is not tried again, and keeps no other one from being made so.
func TestHollow_damaged(t *testing.T) {
	s := mixedStage(t)
	s.sealing.Lock()
	s.appendPairs(10)
	name := filepath.Join(s.o.Dir, segmentName(1))
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[headerSize+50] ^= 1
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s.sealing.Unlock()
	_, _ = s.Compact(t.Context())
	if s.isHollow(1) || !s.isHollow(5) {
		t.Errorf("the damaged segment is hollow: %v, the next one: %v", s.isHollow(1), s.isHollow(5))
	}
	reads := 0
	s.faults.set(func(op, name string) error {
		if op == "read" && name == segmentName(1) {
			reads++
		}
		return nil
	})
	if err := s.hollowAll(t.Context()); err != nil || reads > 0 {
		t.Errorf("hollowAll() = %v with %d reads of the damaged segment", err, reads)
	}
	s.faults.set(nil)
}

// Bytes that are about to be given back push no update out, but where they are not given back they do.
func TestTooLarge_reclaimable(t *testing.T) {
	s := mixedStage(t)
	s.sealing.Lock()
	defer s.sealing.Unlock()
	s.appendPairs(20)
	s.mu.RLock()
	l := &Log{o: s.Log.o, segments: slices.Clone(s.segments), bytes: s.bytes}
	s.mu.RUnlock()
	full := l.bytes - l.active().size + l.o.SegmentBytes
	for _, tc := range []struct {
		limit int64
		want  bool
	}{{full, false}, {full - 1, false}, {full - l.reclaimable(), false}, {full - l.reclaimable() - 1, true}} {
		l.o.MaxBytes = tc.limit
		if got := l.tooLarge(); got != tc.want {
			t.Errorf("tooLarge() = %v with %d bytes for %d, want %v", got, tc.limit, full, tc.want)
		}
	}
	if got, want := l.reclaimable(), int64(8*2*(4+5+101)); got != want {
		t.Errorf("reclaimable() = %d, want %d of the subscription events in eight of ten segments", got, want)
	}
	for _, x := range l.segments {
		x.stubborn.Store(true)
	}
	if got := l.reclaimable(); got != 0 {
		t.Errorf("reclaimable() = %d of segments that could not be made hollow", got)
	}
}

// Of what was appended together all is there or nothing, wherever a crash cuts the file.
func TestOpen_tornAppend(t *testing.T) {
	s := newStage(t, Options{})
	s.mustAppend(1)
	name := filepath.Join(s.o.Dir, segmentName(1))
	size := func() int {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return int(info.Size())
	}
	before := size()
	var group []*history.Record
	for n := range 3 {
		group = append(group, &history.Record{ID: fmt.Sprint("g-", n), Topics: []string{"t"}, Subscription: n == 0})
	}
	if p, err := s.Append(t.Context(), group...); err != nil || p != 4 {
		t.Fatalf("Append() = %d, %v, want 4", p, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for cut := before; cut <= len(whole); cut++ {
		for _, tail := range [][]byte{nil, make([]byte, 200)} {
			if err := os.WriteFile(name, append(slices.Clone(whole[:cut]), tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			s.open()
			want := []string{"id-1", "g-0", "g-1", "g-2"}
			if cut < len(whole) {
				want = want[:1]
			}
			s.wantIDs(want...)
			if h := s.head(); int(h.Last) != len(want) || h.LastID != want[len(want)-1] {
				t.Fatalf("Head() = %+v of a file cut at %d of %d", h, cut, len(whole))
			}
			if err := s.appendID("next"); err != nil {
				t.Fatal(err)
			}
			s.reopen()
			s.wantIDs(append(want, "next")...)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// In the middle of a group that was synced, since a later commit follows, an invalid record is damage.
func TestOpen_damageInAppend(t *testing.T) {
	s := newStage(t, Options{})
	s.appendPairs(3)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(s.o.Dir, segmentName(1))
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[headerSize+(fourRecords-headerSize)/4+40] ^= 1 // of the second record
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Dir: s.o.Dir}); !errors.Is(err, history.ErrCorrupt) {
		t.Errorf("Open() = %v, want ErrCorrupt", err)
	}
}
