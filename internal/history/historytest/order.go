package historytest

import (
	"slices"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

func sortEntries(es []history.Entry) {
	slices.SortFunc(es, func(a, b history.Entry) int { return int(int64(a.Position) - int64(b.Position)) })
}

func (s *suite) testOrder(t *testing.T) {
	t.Run("an empty log has a head before its first position", func(t *testing.T) {
		h := s.fixture(t, Limits{}).head()
		if h.Last != 0 || h.First <= h.Last || h.LastID != "" || h.Epoch == "" {
			t.Errorf("Head() = %+v", h)
		}
	})
	t.Run("REC-07 entries come back complete and in the order of their positions", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		f.fill(0, 40)
		for i := 1; i < len(f.want); i++ {
			if f.want[i].Position <= f.want[i-1].Position {
				t.Fatalf("position %d follows %d", f.want[i].Position, f.want[i-1].Position)
			}
		}
		diffEntries(t, "Replay", f.want, f.replayAll(0, 0, 0))
		last := f.want[len(f.want)-1]
		h := f.head()
		if h.First != f.want[0].Position || h.Last != last.Position || h.LastID != last.ID {
			t.Errorf("Head() = %+v, want %d to %d, %s", h, f.want[0].Position, last.Position, last.ID)
		}
	})
	t.Run("an acknowledged entry is visible at once", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		for n := range 20 {
			p := f.append(record(n))
			f.wantSeek(record(n).ID, p)
			if h := f.head(); h.Last != p {
				t.Fatalf("Head().Last = %d, want %d", h.Last, p)
			}
			diffEntries(t, "Replay", f.want[n:], f.replayAll(p-1, p, 0))
		}
	})
	t.Run("SSE-04 large events and odd topics survive", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		big := sized(1, 1<<20)
		for i := range big.Event {
			big.Event[i] = byte(i * 7)
		}
		f.append(big)
		many := record(2)
		many.Topics = nil
		for n := range 1000 {
			many.Topics = append(many.Topics, topicOf(n)+string(rune('a'+n%26)))
		}
		f.append(many)
		odd := record(3)
		odd.Topics = []string{"", "\u2028 \u00a0", "a=b&c;d%"}
		odd.Event = nil
		f.append(odd)
		diffEntries(t, "Replay", f.want, f.replayAll(0, 0, 0))
	})
}
