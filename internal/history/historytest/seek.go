package historytest

import (
	"strings"
	"testing"
)

func (s *suite) testSeek(t *testing.T) {
	t.Run("REC-17 unknown ids", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		f.wantUnknown("urn:test:0")
		f.fill(0, 10)
		for _, id := range []string{"", "urn:test:10", "urn:test", "URN:TEST:1", strings.Repeat("x", 1<<16)} {
			f.wantUnknown(id)
		}
	})
	t.Run("REC-24 ids of any characters and lengths", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		ids := []string{"é-1", "e\u0301-1", "a b", "a+b", "a%20b", "%zz", "日本", strings.Repeat("i", 1024), "x", "xy", " x"}
		for _, id := range ids {
			r := record(1)
			r.ID = id
			f.append(r)
		}
		for i, id := range ids {
			f.wantSeek(id, f.want[i].Position)
		}
	})
	t.Run("REC-12 the earliest of twins", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		twin := record(1000)
		f.fill(0, 5)
		first := f.append(twin)
		f.fill(5, 5)
		f.append(twin)
		f.append(twin)
		f.wantSeek(twin.ID, first)
	})
	t.Run("REC-12 the earliest twin that is retained", func(t *testing.T) {
		const keep = 10
		f := s.fixture(t, Limits{MaxEvents: keep})
		twin := record(1000)
		f.append(twin)
		f.append(record(0))
		second := f.append(twin)
		third := f.append(twin)
		f.wantSeek(twin.ID, f.want[0].Position)
		f.fill(1, keep-2)
		f.trimmed(second)
		f.wantSeek(twin.ID, second)
		f.fill(100, 1)
		f.trimmed(third)
		f.wantSeek(twin.ID, third)
		f.fill(200, 1)
		f.trimmed(third + 1)
		f.wantUnknown(twin.ID)
	})
	t.Run("REC-07 any id of a long log, the newest ones too", func(t *testing.T) {
		many := s.Many
		if many == 0 {
			many = 60_000
		}
		f := s.fixture(t, Limits{})
		f.fillFast(0, many, 1024)
		for i := 0; i < many; i += many / 500 {
			f.wantSeek(f.want[i].ID, f.want[i].Position)
		}
		for _, e := range f.want[many-100:] {
			f.wantSeek(e.ID, e.Position)
		}
		f.wantUnknown("urn:test:-1")
		from := f.want[many-11].Position
		diffEntries(t, "Replay after the newest but ten", f.want[many-10:], f.replayAll(from, 0, 0))
	})
}
