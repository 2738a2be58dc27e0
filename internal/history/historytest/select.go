package historytest

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// testSelections compares what selections find with what a look at every entry finds, over topics in normal form and others,
// patterns with a literal beginning and others, pages and ranges of any size.
func (s *suite) testSelections(t *testing.T) {
	f := s.fixture(t, Limits{})
	f.appendFast(0, 700, 64, func(n int) *history.Record {
		draw := dice(n)
		r := record(n)
		r.Topics = nil
		for range 1 + draw(3) {
			r.Topics = append(r.Topics, anyTopic(draw))
		}
		return r
	})
	c, err := topic.NewCompiler("https://hub.example.com/.well-known/mercure", topic.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	check := func(t *testing.T) {
		t.Helper()
		rapid.Check(t, func(rt *rapid.T) { f.checkSelection(rt, c) })
	}
	t.Run("while the log grows", check)
	if s.durable {
		f.reopen()
		t.Run("when it was reopened", check)
	}
	if log, ok := f.log.(history.Compacter); ok {
		if _, err := log.Compact(f.context()); err != nil {
			t.Fatalf("Compact() = %v", err)
		}
		t.Run("when it was compacted", check)
	}
}

// dice returns a function whose results, below its argument, look like chance and are the same each time.
func dice(seed int) func(int) int {
	state := uint64(seed)
	return func(n int) int {
		state = state*6364136223846793005 + 1442695040888963407
		return int((state >> 33) % uint64(n))
	}
}

// anyTopic returns one of some hundred topics; number returns numbers below its argument.
func anyTopic(number func(int) int) string {
	n := number(20)
	switch number(9) {
	case 0:
		return fmt.Sprint("https://example.com/a/", n)
	case 1:
		return fmt.Sprint("https://example.com/ab/", n)
	case 2:
		return fmt.Sprint("https://example.com/", n, "/c")
	case 3:
		return fmt.Sprint("https://sub.example.com/a/", n)
	case 4:
		return fmt.Sprint("https://user@example.com/a/", n) // not in normal form, as all that follow
	case 5:
		return fmt.Sprint("HTTPS://Example.com/x/../a/", n)
	case 6:
		return fmt.Sprint("/a/", n)
	case 7:
		return fmt.Sprint("ünïcode ", n)
	}
	return fmt.Sprint("urn:x:", n)
}

func drawSelection(t *rapid.T, c *topic.Compiler) history.Selection {
	var sel history.Selection
	for range rapid.IntRange(0, 3).Draw(t, "exact") {
		sel.Exact = append(sel.Exact, anyTopic(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "topic") }))
	}
	patterns := rapid.SliceOfN(rapid.SampledFrom([]string{
		"https://example.com/a/:id", "https://example.com/a/1*", "https://example.com/*", "https://*.example.com/a/:id", "/a/:id",
		`urn\:x\::id`, "*://example.com/a/:id", "https://example.com/:id/c", "https://example.com/none/*", "https://:h/a/7",
	}), 0, 2).Draw(t, "patterns")
	if len(patterns) == 0 {
		return sel
	}
	matchers := make([]*topic.Matcher, len(patterns))
	narrow := rapid.Bool().Draw(t, "narrow")
	for i, p := range patterns {
		m, err := c.Compile(topic.URLPattern, p)
		if err != nil {
			t.Fatal(err)
		}
		matchers[i] = m
		prefixes := m.Prefixes()
		narrow = narrow && prefixes != nil
		sel.Prefixes = append(sel.Prefixes, prefixes...)
	}
	if !narrow {
		sel.Prefixes = nil
	}
	sel.Pattern = func(raw string) bool {
		t := c.Topic(raw)
		return slices.ContainsFunc(matchers, func(m *topic.Matcher) bool { return m.Match(t) })
	}
	return sel
}

// checkSelection compares a random query with a look at every entry.
func (f *fixture) checkSelection(t *rapid.T, c *topic.Compiler) {
	sel := drawSelection(t, c)
	from := rapid.IntRange(0, len(f.want)-1).Draw(t, "from")
	to := rapid.IntRange(from, len(f.want)-1).Draw(t, "to")
	q := history.Query{
		After: f.want[from].Position, UpTo: f.want[to].Position, Select: sel,
		MaxBytes: rapid.SampledFrom([]int{1, 1000, 20_000, 1 << 20}).Draw(t, "bytes"),
	}
	want := slices.DeleteFunc(slices.Clone(f.want[from+1:to+1]), func(e history.Entry) bool { return !sel.Selects(e.Topics) })
	var got []history.Entry
	for q.After < q.UpTo {
		page, err := f.log.Replay(t.Context(), q)
		if err != nil || page.Through <= q.After || page.Through > q.UpTo {
			t.Fatalf("Replay(%d to %d) = through %d, %v", q.After, q.UpTo, page.Through, err)
		}
		for _, e := range page.Entries {
			if e.Position <= q.After || e.Position > page.Through {
				t.Fatalf("Replay(%d to %d) through %d has entry %d", q.After, q.UpTo, page.Through, e.Position)
			}
			if sel.Selects(e.Topics) {
				got = append(got, e)
			}
		}
		q.After = page.Through
	}
	for i := range min(len(want), len(got)) {
		if want[i].Position != got[i].Position || want[i].ID != got[i].ID || !slices.Equal(want[i].Topics, got[i].Topics) {
			t.Fatalf("entry %d is %d %s %q, want %d %s %q", i, got[i].Position, got[i].ID, got[i].Topics, want[i].Position, want[i].ID, want[i].Topics)
		}
	}
	if len(want) != len(got) {
		t.Fatalf("%d entries, want %d", len(got), len(want))
	}
}
