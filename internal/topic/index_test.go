package topic_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// indexPool is a set of matchers that share literal parts in all ways the index looks at, and topics for them.
func indexPool(tb testing.TB, c *topic.Compiler) (ms []*topic.Matcher, ts []*topic.Topic) {
	tb.Helper()
	for _, p := range []string{
		"*", "/a", "/a/b", "https://example.com/a", "urn:x:1", "", "a*", "https://[bad/",
	} {
		ms = append(ms, mustCompile(tb, c, topic.Exact, p))
	}
	for _, p := range []string{
		"*", "/a", "/a/b", "/a/:x", "/a/*", "/:x", "/*", "https://example.com/a", "https://example.com/a/*", "https://example.com/:x/b",
		"https://*/a/*", "*://example.com/a/*", "*://*/*", "*:*", "https://example.com/a*", "https://example.com/a/b/c/d/e/f/g/h/i/*",
		"https://example.com/a/b/c/d/e/f/g/h/:i/j", "http{s}?://example.com/a/b", `urn\:x\::y`, `urn\:*`, "https://:sub.example.com/a/:x",
		"https://example.com", "https://example.com/?q=:v", "https://example.com/a?q", "https://example.com:*/a/b", "/{a/}?b", "https://example.com/*b",
	} {
		ms = append(ms, mustCompile(tb, c, topic.URLPattern, p))
	}
	for _, raw := range []string{
		"/a", "/a/b", "/b", "/a/b/c", "https://example.com/a", "https://example.com/a/b", "https://example.com/a/", "http://example.com/a/b",
		"https://x.example.com/a/b", "https://example.org/a/x", "urn:x:1", "urn:y", "https://[bad/", "", "a*", "*", "https://example.com:1/a/b",
		"https://example.com/a/b/c/d/e/f/g/h/i/j", "https://example.com/?q=1", "https://example.com/a?q", "foo:/a/b", "https://example.com//",
	} {
		ts = append(ts, c.Topic(raw))
	}
	return ms, ts
}

// indexModel is the index as a linear scan.
type indexModel struct {
	refs     map[topic.MatcherID]int
	matchers map[topic.MatcherID]*topic.Matcher
}

func (m *indexModel) match(ts []*topic.Topic) []topic.MatcherID {
	var ids []topic.MatcherID
	for id, matcher := range m.matchers {
		if slices.ContainsFunc(ts, matcher.Match) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// step interns or releases and keeps index and model alike.
func (m *indexModel) step(x *topic.Index, matcher *topic.Matcher, release bool) error {
	if release {
		for id, old := range m.matchers {
			if old.Key() != matcher.Key() {
				continue
			}
			x.Release(id)
			if m.refs[id]--; m.refs[id] == 0 {
				delete(m.refs, id)
				delete(m.matchers, id)
			}
		}
		return nil
	}
	id := x.Intern(matcher)
	if old, ok := m.matchers[id]; ok && old.Key() != matcher.Key() {
		return fmt.Errorf("Intern(%q) = %d, which is %q", matcher.Pattern(), id, old.Pattern())
	}
	m.refs[id]++
	m.matchers[id] = matcher
	return nil
}

func newIndexModel() *indexModel {
	return &indexModel{refs: map[topic.MatcherID]int{}, matchers: map[topic.MatcherID]*topic.Matcher{}}
}

func TestIndex_agreesWithLinearScan(t *testing.T) {
	c := mustCompiler(t, hubURL)
	ms, ts := indexPool(t, c)
	rapid.Check(t, func(rt *rapid.T) {
		x, model := topic.NewIndex(), newIndexModel()
		for range rapid.IntRange(1, 80).Draw(rt, "steps") {
			matcher := rapid.SampledFrom(ms).Draw(rt, "matcher")
			if err := model.step(x, matcher, rapid.IntRange(0, 2).Draw(rt, "release") == 0); err != nil {
				rt.Fatal(err)
			}
			if x.Len() != len(model.matchers) {
				rt.Fatalf("Len = %d, want %d", x.Len(), len(model.matchers))
			}
			asked := rapid.SliceOfN(rapid.SampledFrom(ts), 0, 3).Draw(rt, "topics")
			if diff := cmp.Diff(model.match(asked), x.Match(nil, asked)); diff != "" {
				rt.Fatalf("Match (-scan +index):\n%s", diff)
			}
		}
	})
}

func FuzzIndex(f *testing.F) {
	c := mustCompiler(f, hubURL)
	ms, ts := indexPool(f, c)
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Add([]byte{0x80, 8, 9, 0x89, 0x88, 8, 8, 0x88, 0x88})
	f.Add([]byte{10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 0x8a, 0x8b, 0x8c, 21, 22, 23, 24, 25, 26, 27})
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 200 {
			program = program[:200]
		}
		x, model := topic.NewIndex(), newIndexModel()
		for i, b := range program {
			if err := model.step(x, ms[int(b&0x7f)%len(ms)], b&0x80 != 0); err != nil {
				t.Fatal(err)
			}
			asked := []*topic.Topic{ts[i%len(ts)], ts[int(b)%len(ts)]}
			if diff := cmp.Diff(model.match(asked), x.Match(nil, asked)); diff != "" {
				t.Fatalf("Match (-scan +index):\n%s", diff)
			}
		}
		for id, n := range maps.Clone(model.refs) {
			for range n {
				x.Release(id)
			}
		}
		if x.Len() != 0 || len(x.Match(nil, ts)) != 0 {
			t.Fatalf("the index is not empty after the last release")
		}
	})
}

func TestIndex_Intern(t *testing.T) {
	c := mustCompiler(t, hubURL)
	x := topic.NewIndex()
	first := mustCompile(t, c, topic.Exact, "*")
	id := x.Intern(first)
	if again := x.Intern(mustCompile(t, c, topic.URLPattern, "*")); again != id {
		t.Errorf("MATCH-06 the wildcard of another type has number %d, want %d", again, id)
	}
	if x.Matcher(id) != first || x.Len() != 1 {
		t.Errorf("Matcher, Len = %v, %d", x.Matcher(id), x.Len())
	}
	x.Release(id)
	if x.Len() != 1 {
		t.Error("the first of two releases removed the matcher")
	}
	x.Release(id)
	x.Release(id)
	if x.Len() != 0 || x.Matcher(id) != nil {
		t.Error("the last release kept the matcher")
	}
}

func TestIndex_Match_keepsWhatIsThere(t *testing.T) {
	c := mustCompiler(t, hubURL)
	x := topic.NewIndex()
	id := x.Intern(mustCompile(t, c, topic.Exact, "/a"))
	got := x.Match([]topic.MatcherID{99, 98}, []*topic.Topic{c.Topic("/a")})
	if diff := cmp.Diff([]topic.MatcherID{99, 98, id}, got); diff != "" {
		t.Errorf("Match (-want +got):\n%s", diff)
	}
}

func TestIndex_survivesGrowthAndShrinking(t *testing.T) {
	c := mustCompiler(t, hubURL)
	x := topic.NewIndex()
	const n = 1200
	ids := make([]topic.MatcherID, 0, 2*n)
	for i := range n {
		ids = append(ids,
			x.Intern(mustCompile(t, c, topic.Exact, "/users/"+strconv.Itoa(i))),
			x.Intern(mustCompile(t, c, topic.URLPattern, "/users/"+strconv.Itoa(i)+"/*")))
	}
	for _, id := range ids[20:] {
		x.Release(id)
	}
	if x.Len() != 20 {
		t.Fatalf("Len = %d, want 20", x.Len())
	}
	for i := range n {
		want := 0
		if i < 10 {
			want = 1
		}
		for _, suffix := range []string{"", "/x"} {
			raw := "/users/" + strconv.Itoa(i) + suffix
			if got := x.Match(nil, []*topic.Topic{c.Topic(raw)}); len(got) != want {
				t.Fatalf("Match(%q) = %v, want %d", raw, got, want)
			}
		}
	}
}

// fillIndex returns an index with n patterns, one per user, and as many exact matchers, and a topic that selects one of
// each.
func fillIndex(tb testing.TB, n int) (*topic.Index, []*topic.Topic) {
	tb.Helper()
	c := mustCompiler(tb, hubURL)
	x := topic.NewIndex()
	for i := range n {
		user := "https://example.com/users/" + strconv.Itoa(i)
		x.Intern(mustCompile(tb, c, topic.URLPattern, user+"/*"))
		x.Intern(mustCompile(tb, c, topic.Exact, user+"/books/1"))
	}
	ts := []*topic.Topic{c.Topic("https://example.com/users/" + strconv.Itoa(n/2) + "/books/1"), c.Topic("https://example.com/books/1")}
	return x, ts
}

func TestIndex_Match_doesNotAllocate(t *testing.T) {
	x, ts := fillIndex(t, 100)
	dst := make([]topic.MatcherID, 0, 16)
	if got := x.Match(dst, ts); len(got) != 2 {
		t.Fatalf("Match = %v, want two matchers", got)
	}
	if n := testing.AllocsPerRun(200, func() { x.Match(dst, ts) }); n != 0 {
		t.Errorf("Match allocates %v times, want 0", n)
	}
}

func BenchmarkIndexMatch(b *testing.B) {
	for _, n := range []int{10, 1000, 100000} {
		b.Run("patterns="+strconv.Itoa(n), func(b *testing.B) {
			x, ts := fillIndex(b, n)
			dst := make([]topic.MatcherID, 0, 16)
			b.ReportAllocs()
			for b.Loop() {
				if len(x.Match(dst, ts)) != 2 {
					b.Fatal("wrong number of matchers")
				}
			}
		})
	}
}

func BenchmarkMatch(b *testing.B) {
	c := mustCompiler(b, hubURL)
	for _, tc := range []struct{ kind, pattern string }{
		{"literal", "https://example.com/users/42/books/1"},
		{"tail", "https://example.com/users/42/*"},
		{"names", "https://example.com/users/:id/books/:book"},
		{"optional", "https://example.com/users/:id/books/:book?"},
		{"regexp", `https://example.com/users/(\d+)/books/(\d+)`},
		{"miss", "https://example.org/users/42/*"},
	} {
		b.Run("pattern="+tc.kind, func(b *testing.B) {
			m := mustCompile(b, c, topic.URLPattern, tc.pattern)
			tp := c.Topic("https://example.com/users/42/books/1")
			b.ReportAllocs()
			for b.Loop() {
				m.Match(tp)
			}
		})
	}
}

func BenchmarkTopic(b *testing.B) {
	c := mustCompiler(b, hubURL)
	b.ReportAllocs()
	for b.Loop() {
		if c.Topic("https://example.com/users/42/books/1").Reserved() {
			b.Fatal("reserved")
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	c := mustCompiler(b, hubURL)
	b.ReportAllocs()
	for b.Loop() {
		mustCompile(b, c, topic.URLPattern, "https://example.com/users/42/*")
	}
}
