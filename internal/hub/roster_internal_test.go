package hub

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// rosterStream makes a stream that no shard knows.
func rosterStream(tb testing.TB, id string, patterns ...string) *Subscriber {
	tb.Helper()
	c, err := topic.NewCompiler("https://hub.example.com/hub", topic.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	s := &Subscriber{id: id}
	for _, p := range patterns {
		m, err := c.Compile(topic.Exact, p)
		if err != nil {
			tb.Fatal(err)
		}
		s.matchers = append(s.matchers, m)
	}
	return s
}

func TestRoster_endsBeforeItBegins(t *testing.T) {
	r, s := newRoster(), rosterStream(t, "a", "m")
	r.end(s)
	r.begin(s)
	r.end(s)
	if n := len(r.list(nil, "")); n != 0 || len(r.queue) != 0 {
		t.Errorf("%d listed and %d to be announced of a stream that had ended, want none", n, len(r.queue))
	}
}

func TestRoster_givesBack(t *testing.T) {
	r := newRoster()
	var all []*Subscriber
	for n := range 10_000 {
		s := rosterStream(t, fmt.Sprint("s", n), "shared", fmt.Sprint("m", n))
		r.begin(s)
		r.begin(s) // twice is once
		all = append(all, s)
	}
	if n := len(r.list(nil, "")); n != 20_000 {
		t.Errorf("%d listed, want 20000", n)
	}
	for _, s := range all {
		r.end(s)
		r.end(s)
	}
	if len(r.members.m) != 0 || r.members.peak > tableMin {
		t.Errorf("%d matchers are left, and room for %d", len(r.members.m), r.members.peak)
	}
	if len(r.subscribers) != 0 || cap(r.subscribers) > tableMin {
		t.Errorf("%d subscribers are left, and room for %d", len(r.subscribers), cap(r.subscribers))
	}
	var taken []change
	for more := true; more; {
		taken, more = r.take(taken, len(taken)+700)
	}
	if r.waiting != 0 {
		t.Errorf("%d subscriptions wait", r.waiting)
	}
	if len(taken) != 20_000 || len(r.queue) != 0 || cap(r.queue) > keptMessages {
		t.Errorf("%d changes, and %d are left with room for %d; want 20000 and none", len(taken), len(r.queue), cap(r.queue))
	}
	for i, c := range taken {
		if c.sub != all[i%len(all)] || c.active != (i < len(all)) {
			t.Fatalf("change %d is of %s, %v", i, c.sub.id, c.active)
		}
	}
}

func TestRoster_lastOfMany(t *testing.T) {
	r := newRoster()
	one, two := rosterStream(t, "one", "m"), rosterStream(t, "two", "m")
	r.begin(one)
	r.begin(two)
	r.end(one)
	for _, id := range []string{"", "two"} {
		if l := r.list(nil, id); len(l) != 1 || l[0].sub != two || l[0].matcher.Pattern() != "m" {
			t.Errorf("list(%q) = %v", id, l)
		}
	}
	if l := r.list(nil, "one"); len(l) != 0 {
		t.Errorf("list = %v of one that has ended", l)
	}
	r.end(two)
	if len(r.members.m) != 0 {
		t.Error("something is left")
	}
}

func TestRoster_closed(t *testing.T) {
	r := newRoster()
	before, after := rosterStream(t, "before", "m"), rosterStream(t, "after", "m")
	r.begin(before)
	r.close()
	r.begin(after)
	if n := len(r.list(nil, "")); n != 2 {
		t.Errorf("%d listed, want both: they are active", n)
	}
	r.setFailing(true)
	r.end(before)
	r.end(after)
	if n := len(r.list(nil, "")); n != 0 || r.queue != nil || r.void != 0 || r.waiting != 0 {
		t.Errorf("%d listed, and %d changes wait that nobody takes", n, len(r.queue))
	}
}

// rosterModel is a roster and what is known of it without one.
type rosterModel struct {
	roster  *roster
	streams []*Subscriber
	open    map[*Subscriber]bool
	heard   map[*Subscriber]int // -1: of its beginning, -2: of its end as well
	failing bool
	found   string
}

func (m *rosterModel) end(s *Subscriber) {
	if !m.open[s] {
		return
	}
	delete(m.open, s)
	if m.heard[s] == 0 && (m.failing || m.roster.waiting > waitingMost) {
		m.heard[s] = -2 // nobody ever hears of it
	}
	m.roster.end(s)
	m.roster.end(s)
}

// take notes who is heard of, which is once each of its beginning and its end, in this order.
func (m *rosterModel) take(limit int) (more bool) {
	changes, more := m.roster.take(nil, limit)
	if len(changes) > limit {
		m.found = fmt.Sprintf("%d changes were taken, at most %d", len(changes), limit)
	}
	for _, c := range changes {
		want := 0
		if !c.active {
			want = -1
		}
		if m.heard[c.sub] != want || !c.active && m.open[c.sub] {
			m.found = fmt.Sprintf("%s: active is %v, heard of %d times before, open: %v", c.sub.id, c.active, -m.heard[c.sub], m.open[c.sub])
		}
		m.heard[c.sub]--
	}
	return more
}

// check compares the lists.
func (m *rosterModel) check(matchers []*topic.Matcher) {
	ids := func(all []listed) []string {
		var names []string
		for _, l := range all {
			names = append(names, l.sub.id+" "+l.matcher.Pattern())
		}
		slices.Sort(names)
		return names
	}
	want := func(pattern, id string) []string {
		var names []string
		for s := range m.open {
			for _, matcher := range s.matchers {
				if (pattern == "" || matcher.Pattern() == pattern) && (id == "" || s.id == id) {
					names = append(names, s.id+" "+matcher.Pattern())
				}
			}
		}
		slices.Sort(names)
		return names
	}
	r := m.roster
	if r.head > len(r.queue)/2 {
		m.found = fmt.Sprintf("%d of %d changes in the queue have been taken", r.head, len(r.queue))
	}
	for i, c := range r.queue[:cap(r.queue)] {
		if (i < r.head || i >= len(r.queue)) && c.sub != nil {
			m.found = c.sub.id + " is kept beside the queue"
		}
	}
	if rest := r.subscribers[len(r.subscribers):cap(r.subscribers)]; slices.ContainsFunc(rest, func(s *Subscriber) bool { return s != nil }) {
		m.found = "a subscriber is kept beside the list"
	}
	for _, id := range []string{"", "s0", "s3"} {
		if got := ids(m.roster.list(nil, id)); !slices.Equal(got, want("", id)) {
			m.found = fmt.Sprintf("list of %q = %q, want %q", id, got, want("", id))
		}
		for _, matcher := range matchers {
			key := keyOf(matcher)
			if got := ids(m.roster.list(&key, id)); !slices.Equal(got, want(matcher.Pattern(), id)) {
				m.found = fmt.Sprintf("list of %q with %q = %q, want %q", id, key.pattern, got, want(matcher.Pattern(), id))
			}
		}
	}
}

// TestRoster_random compares the roster with what is simple: who is open is listed, and who is heard of at all is heard of once each way.
func TestRoster_random(t *testing.T) {
	matchers := rosterStream(t, "", "a", "b", "c", "d").matchers
	rapid.Check(t, func(rt *rapid.T) {
		m := rosterModel{roster: newRoster(), open: map[*Subscriber]bool{}, heard: map[*Subscriber]int{}}
		rt.Repeat(map[string]func(*rapid.T){
			"begin": func(rt *rapid.T) {
				s := &Subscriber{id: fmt.Sprint("s", len(m.streams))}
				s.matchers = rapid.SliceOfNDistinct(rapid.SampledFrom(matchers), 1, 4, keyOf).Draw(rt, "matchers")
				m.streams, m.open[s] = append(m.streams, s), true
				m.roster.begin(s)
				m.roster.begin(s)
			},
			"end": func(rt *rapid.T) {
				if len(m.streams) > 0 {
					m.end(rapid.SampledFrom(m.streams).Draw(rt, "stream"))
				}
			},
			"take": func(rt *rapid.T) {
				limit := rapid.IntRange(1, 5).Draw(rt, "limit")
				if more := m.take(limit); !more && m.roster.waiting != 0 {
					m.found = fmt.Sprintf("%d subscriptions wait, and no changes", m.roster.waiting)
				}
			},
			"fail": func(rt *rapid.T) {
				m.failing = rapid.Bool().Draw(rt, "failing")
				m.roster.setFailing(m.failing)
			},
			"": func(rt *rapid.T) {
				m.check(matchers)
				if m.found != "" {
					rt.Fatal(m.found)
				}
			},
		})
		for m.take(5) {
		}
		for _, s := range slices.Collect(maps.Keys(m.open)) {
			m.end(s)
		}
		for m.take(5) {
		}
		for _, s := range m.streams {
			if m.heard[s] != -2 {
				m.found = fmt.Sprintf("%s was heard of %d times, want twice", s.id, -m.heard[s])
			}
		}
		r := m.roster
		if m.found != "" || r.waiting != 0 || r.void != 0 || len(r.queue) != 0 || len(r.subscribers) != 0 || len(r.members.m) != 0 {
			rt.Fatalf("left over: %d waiting, %d void, %d in the queue, %d subscribers, %d matchers; %s",
				r.waiting, r.void, len(r.queue), len(r.subscribers), len(r.members.m), m.found)
		}
	})
}

// A list of everything that many subscribers with many matchers have takes time in proportion to what is listed.
func BenchmarkRoster_list(b *testing.B) {
	for _, size := range []struct{ subscribers, matchers int }{{100_000, 1}, {1000, 256}} {
		b.Run(fmt.Sprintf("subscribers=%d/matchers=%d", size.subscribers, size.matchers), func(b *testing.B) {
			var patterns []string
			for n := range size.matchers {
				patterns = append(patterns, fmt.Sprintf("https://e.example/%03d", n))
			}
			matchers := rosterStream(b, "", patterns...).matchers
			r := newRoster()
			for n := range size.subscribers {
				r.begin(&Subscriber{id: fmt.Sprint("s", n), matchers: matchers})
			}
			b.Run("locked", func(b *testing.B) {
				for b.Loop() {
					r.candidates(nil, "")
				}
			})
			b.Run("all", func(b *testing.B) {
				for b.Loop() {
					r.list(nil, "")
				}
			})
			key := keyOf(matchers[0])
			b.Run("locked of one matcher", func(b *testing.B) {
				for b.Loop() {
					r.candidates(&key, "")
				}
			})
		})
	}
}
