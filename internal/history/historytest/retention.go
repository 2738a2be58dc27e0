package historytest

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/test/bubble"
)

// trimmed waits until the log begins at the position or later.
func (f *fixture) trimmed(first history.Position) history.Head {
	f.t.Helper()
	ctx := f.context()
	for {
		if h := f.head(); h.First >= first {
			return h
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			f.t.Fatalf("Head().First = %d, want at least %d", f.head().First, first)
		}
	}
}

// wantRetained checks that exactly the entries from the head's first one on are there.
func (f *fixture) wantRetained(h history.Head) {
	f.t.Helper()
	kept := f.want
	for len(kept) > 0 && kept[0].Position < h.First {
		kept = kept[1:]
	}
	diffEntries(f.t, "Replay", kept, f.replayAll(0, 0, 0))
	if gone := len(f.want) - len(kept); gone > 0 {
		f.wantUnknown(f.want[0].ID)
		f.wantUnknown(f.want[gone-1].ID)
	}
	if len(kept) > 0 {
		f.wantSeek(kept[0].ID, kept[0].Position)
	}
}

func (s *suite) testRetention(t *testing.T) {
	t.Run("REC-13 by number", func(t *testing.T) {
		const keep = 100
		f := s.fixture(t, Limits{MaxEvents: keep})
		f.fill(0, keep)
		f.wantRetained(f.head())
		if h := f.head(); h.First != f.want[0].Position {
			t.Errorf("Head().First = %d before the limit was reached, want %d", h.First, f.want[0].Position)
		}
		f.fill(keep, 3*keep)
		h := f.trimmed(f.want[3*keep].Position)
		if h.First != f.want[3*keep].Position {
			t.Errorf("Head().First = %d, want %d", h.First, f.want[3*keep].Position)
		}
		f.wantRetained(h)
	})
	t.Run("REC-13 by bytes", func(t *testing.T) {
		const keep = 1 << 20
		f := s.fixture(t, Limits{MaxBytes: keep})
		const size = 50_000
		for n := range 80 {
			f.append(sized(n, size))
		}
		h := f.trimmed(f.want[80-keep/size].Position)
		f.wantRetained(h)
		if kept := int(h.Last - h.First + 1); kept < keep/size/2 {
			t.Errorf("%d entries of %d bytes are left of %d", kept, size, keep)
		}
	})
	t.Run("positions that are gone are told from those that are not", func(t *testing.T) {
		f := s.fixture(t, Limits{MaxEvents: 10})
		f.fill(0, 50)
		h := f.trimmed(f.want[40].Position)
		for _, after := range []history.Position{1, f.want[0].Position, h.First - 2} {
			if _, err := f.log.Replay(f.context(), history.Query{After: after}); !errors.Is(err, history.ErrPositionGone) {
				t.Errorf("Replay(after %d) = %v, want ErrPositionGone", after, err)
			}
		}
		diffEntries(t, "after the last trimmed one", f.want[40:], f.replayAll(h.First-1, 0, 0))
		diffEntries(t, "after 0", f.want[40:], f.replayAll(0, 0, 0))
	})
	if s.VirtualTime {
		t.Run("REC-13 by age", func(t *testing.T) { synctest.Test(t, s.testAge) })
	}
	if s.durable {
		t.Run("limits hold after reopening", func(t *testing.T) {
			f := s.fixture(t, Limits{MaxEvents: 10})
			f.fill(0, 50)
			f.reopen()
			h := f.trimmed(f.want[40].Position)
			f.wantRetained(h)
		})
	}
}

func (s *suite) testAge(t *testing.T) {
	const age = 80 * time.Minute
	f := s.fixture(t, Limits{MaxAge: age})
	f.fill(0, 10)
	bubble.Advance(age / 2)
	f.fill(10, 10)
	f.wantRetained(f.head())
	if h := f.head(); h.First != f.want[0].Position {
		t.Fatalf("Head().First = %d after half the age, want %d", h.First, f.want[0].Position)
	}
	bubble.Advance(age*3/4 - time.Minute)
	synctest.Wait()
	h := f.head()
	if h.First != f.want[10].Position || h.LastID != f.want[19].ID {
		t.Fatalf("Head() = %+v when the first ten have passed, want first %d", h, f.want[10].Position)
	}
	f.wantRetained(h)
	bubble.Advance(age)
	synctest.Wait()
	h = f.head()
	if h.First <= h.Last || h.Last != f.want[19].Position || h.LastID != "" {
		t.Fatalf("Head() = %+v when all have passed, want none left", h)
	}
	f.wantRetained(h)
	if p := f.append(record(99)); p <= h.Last {
		t.Errorf("Append() = %d after everything has passed, want more than %d", p, h.Last)
	}
	f.wantSeek(record(99).ID, f.want[20].Position)
}
