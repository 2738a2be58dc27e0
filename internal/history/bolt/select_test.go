package bolt_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/bolt"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// topicPool has topics with common prefixes, zeros, long ones that differ far behind, and some that are in no normal form.
func topicPool() []string {
	long := "https://example.com/" + strings.Repeat("long/", 120)
	return []string{
		"", "\x00", "\x00\x01", "\x00\xff", "a", "a\x00", "a\x00\x01", "a\x00\x02", "ab", "a b",
		"https://example.com/", "https://example.com/a", "https://example.com/a/b", "https://example.com/ab", "https://example.com/b",
		"https://example.org/a", "HTTPS://EXAMPLE.com/a", "urn:x:1", "urn:x:12", "urn:y:1",
		long, long + "1", long + "2", "/" + long, "/" + long + "1",
	}
}

// naive selects as the port says.
func naive(all []history.Entry, q history.Query) []history.Entry {
	var want []history.Entry
	for _, e := range all {
		if e.Position > q.After && (q.UpTo == 0 || e.Position <= q.UpTo) && q.Select.Selects(e.Topics) {
			want = append(want, e)
		}
	}
	return want
}

// checkSelection reads all pages of a query and compares what is selected with the naive answer.
func checkSelection(t interface{ Fatalf(string, ...any) }, log history.Log, all []history.Entry, q history.Query) {
	want := naive(all, q)
	var got []history.Entry
	end := q.UpTo
	if last := all[len(all)-1].Position; end == 0 || end > last {
		end = last
	}
	for next := q; next.After < end; {
		page, err := log.Replay(rapidContext(), next)
		if err != nil || page.Through <= next.After {
			t.Fatalf("Replay(%+v) = through %d, %v", next, page.Through, err)
		}
		for _, e := range page.Entries {
			if e.Position <= next.After || e.Position > page.Through {
				t.Fatalf("Replay(%+v) has %d, through %d", next, e.Position, page.Through)
			}
			if q.Select.Selects(e.Topics) {
				got = append(got, e)
			}
		}
		next.After = page.Through
	}
	same := slices.EqualFunc(got, want, func(a, b history.Entry) bool { return a.Position == b.Position && a.ID == b.ID })
	if !same {
		t.Fatalf("Replay(%+v) gives %d entries, want %d", q, len(got), len(want))
	}
}

// The index of topics gives what reading everything gives.
func TestReplay_selection(t *testing.T) {
	log := mustOpen(t, bolt.Options{Dir: t.TempDir()})
	defer mustClose(t, log)
	pool := topicPool()
	var all []history.Entry
	err := log.Import(t.Context(), records(800, func(n int) []string {
		// Most have topics that nobody asks for, so that the index pays.
		topics := []string{fmt.Sprint("https://other.example/", n%300)}
		if n%9 == 0 {
			topics = append(topics, pool[(n/9)%len(pool)])
		}
		if n%27 == 0 {
			topics = append(topics, pool[(n/5)%len(pool)], topics[0])
		}
		return topics
	}))
	if err != nil {
		t.Fatal(err)
	}
	page, err := log.Replay(t.Context(), history.Query{MaxBytes: 1 << 30})
	if err != nil || len(page.Entries) != 800 {
		t.Fatalf("Replay() = %d entries, %v", len(page.Entries), err)
	}
	all = page.Entries
	rapid.Check(t, func(t *rapid.T) {
		q := history.Query{
			After:    history.Position(rapid.IntRange(0, 810).Draw(t, "after")),
			UpTo:     history.Position(rapid.IntRange(0, 810).Draw(t, "upTo")),
			MaxBytes: rapid.SampledFrom([]int{1, 2000, 1 << 20}).Draw(t, "maxBytes"),
		}
		if rapid.Bool().Draw(t, "exact") {
			q.Select.Exact = rapid.SliceOfN(rapid.SampledFrom(pool), 0, 4).Draw(t, "topics")
			if q.Select.Exact == nil {
				q.Select.Exact = []string{}
			}
		}
		if rapid.Bool().Draw(t, "pattern") {
			begin := rapid.SampledFrom([]string{"", "https://example.com/", "https://example.com/a", "urn:", pool[20], "\x00", "a"}).Draw(t, "begin")
			end := rapid.SampledFrom([]string{"", "1", "a", "b"}).Draw(t, "end")
			loose := rapid.Bool().Draw(t, "loose")
			if rapid.Bool().Draw(t, "prefixes") {
				q.Select.Prefixes = []string{begin, begin + "x", begin}
			}
			q.Select.Pattern = func(s string) bool {
				// What is in no normal form may match without the prefix.
				return strings.HasSuffix(s, end) && (strings.HasPrefix(s, begin) || loose && !topic.Normal(s))
			}
		}
		checkSelection(t, log, all, q)
	})
}
