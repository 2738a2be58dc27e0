package historytest

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

func (s *suite) testReplay(t *testing.T) {
	t.Run("an empty log has no entries", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		page, err := f.log.Replay(f.context(), history.Query{})
		if err != nil || len(page.Entries) != 0 || page.Through != 0 {
			t.Errorf("Replay() = %+v, %v", page, err)
		}
	})
	t.Run("pages of any size add up", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		f.fill(0, 50)
		for _, maxBytes := range []int{1, 300, 1000, 1 << 20} {
			diffEntries(t, "Replay", f.want, f.replayAll(0, 0, maxBytes))
		}
	})
	t.Run("a page keeps to its bound but for the last entry", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		for n := range 20 {
			f.append(sized(n, 1000))
		}
		page, err := f.log.Replay(f.context(), history.Query{MaxBytes: 3000})
		if err != nil || len(page.Entries) != 3 || page.Through != page.Entries[2].Position {
			t.Errorf("Replay() = %d entries through %d, %v, want 3", len(page.Entries), page.Through, err)
		}
	})
	t.Run("an entry larger than a page is a page", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		f.append(sized(0, 600<<10))
		f.append(sized(1, 600<<10))
		page, err := f.log.Replay(f.context(), history.Query{MaxBytes: 10})
		if err != nil || len(page.Entries) != 1 {
			t.Errorf("Replay() = %d entries, %v, want 1", len(page.Entries), err)
		}
	})
	t.Run("ranges are open at the start and closed at the end", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		f.fill(0, 30)
		p := func(i int) history.Position { return f.want[i].Position }
		diffEntries(t, "a range", f.want[11:21], f.replayAll(p(10), p(20), 0))
		diffEntries(t, "one entry", f.want[29:], f.replayAll(p(28), p(29), 0))
		diffEntries(t, "REC-25 after the newest", nil, f.replayAll(p(29), 0, 0))
		diffEntries(t, "up to beyond the head", f.want[25:], f.replayAll(p(24), p(29)+100, 0))
		diffEntries(t, "an empty range", nil, f.replayAll(p(20), p(10), 0))
		page, err := f.log.Replay(f.context(), history.Query{After: p(29) + 7})
		if err != nil || len(page.Entries) > 0 || page.Through != p(29)+7 {
			t.Errorf("Replay(after the head) = %+v, %v", page, err)
		}
		page, err = f.log.Replay(f.context(), history.Query{After: p(3), UpTo: p(9)})
		if err != nil || page.Through != p(9) {
			t.Errorf("Replay().Through = %d, %v, want %d", page.Through, err, p(9))
		}
	})
	t.Run("REC-08 REC-27 a selection leaves out nothing that it selects", s.testSelection)
	t.Run("a page looks at a bounded part of the log in vain", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		f.appendFast(0, 1500, 64, func(n int) *history.Record {
			return &history.Record{ID: strconv.Itoa(n), Topics: []string{"https://example.com/" + strconv.Itoa(n)}}
		})
		asked := 0
		q := history.Query{MaxBytes: 1000, Select: history.Selection{Pattern: func(string) bool { asked++; return false }}}
		for last := f.want[1499].Position; q.After < last; {
			asked = 0
			page, err := f.log.Replay(f.context(), q)
			if err != nil || page.Through <= q.After || len(page.Entries) > 0 {
				t.Fatalf("Replay(after %d) = through %d, %v", q.After, page.Through, err)
			}
			if most := 512; asked > most {
				t.Fatalf("%d topics were looked at for a page, want at most %d", asked, most)
			}
			q.After = page.Through
		}
	})
	t.Run("REC-08 REC-27 any selection finds what a look at every entry finds", s.testSelections)
	t.Run("the context bounds a replay", func(t *testing.T) {
		f := s.fixture(t, Limits{})
		f.fill(0, 3)
		if _, err := f.log.Replay(cancelled(t), history.Query{}); !errors.Is(err, errCancelled) {
			t.Errorf("Replay(cancelled) = %v", err)
		}
	})
}

func (s *suite) testSelection(t *testing.T) {
	f := s.fixture(t, Limits{})
	f.fill(0, 100)
	suffix := func(t string) bool { return strings.HasSuffix(t, "/7") }
	for name, sel := range map[string]history.Selection{
		"nothing set":   {},
		"all":           {All: true, Exact: []string{"x"}},
		"exact":         {Exact: []string{topicOf(3), topicOf(4)}},
		"an alternate":  {Exact: []string{"https://example.com/alternate"}},
		"pattern":       {Pattern: suffix},
		"both":          {Exact: []string{topicOf(1)}, Pattern: suffix},
		"nothing there": {Exact: []string{"https://example.com/none"}},
	} {
		for _, maxBytes := range []int{1, 500, 1 << 20} {
			var got []history.Entry
			for after, last := history.Position(0), f.want[99].Position; after < last; {
				page, err := f.log.Replay(f.context(), history.Query{After: after, MaxBytes: maxBytes, Select: sel})
				if err != nil || page.Through <= after {
					t.Fatalf("%s: Replay(after %d) = through %d, %v", name, after, page.Through, err)
				}
				for _, e := range page.Entries {
					if sel.Selects(e.Topics) {
						got = append(got, e)
					}
				}
				after = page.Through
			}
			want := slices.DeleteFunc(slices.Clone(f.want), func(e history.Entry) bool { return !sel.Selects(e.Topics) })
			diffEntries(t, name, want, got)
		}
	}
}
