package hub

import (
	"fmt"
	"testing"

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
	var taken []change
	for more := true; more; {
		taken, more = r.take(taken, len(taken)+700)
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
