package hub

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// TestRegistry compares the shards that the registry finds with a linear search.
func TestRegistry(t *testing.T) {
	compiler, err := topic.NewCompiler("https://hub.example.com/.well-known/mercure", topic.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"a", "b", "c", "*"}
	type member struct {
		shard    int
		matchers []*topic.Matcher
		grants   *rar.Grants
		reg      registration
	}
	rapid.Check(t, func(t *rapid.T) {
		r := newRegistry()
		var members []*member
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				m := &member{shard: rapid.IntRange(0, maxShards-1).Draw(t, "shard")}
				for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 3, rapid.ID).Draw(t, "matchers") {
					matcher, err := compiler.Compile(topic.Exact, name)
					if err != nil {
						t.Fatal(err)
					}
					m.matchers = append(m.matchers, matcher)
				}
				var details []rar.Detail
				for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 3).Draw(t, "grants") {
					details = append(details, rar.Detail{
						Actions: []rar.Action{rar.Subscribe}, Topics: []rar.TopicMatcher{{Match: name, MatchType: topic.Exact}},
					})
				}
				grants, err := rar.Compile(details, compiler)
				if err != nil {
					t.Fatal(err)
				}
				m.grants = grants
				m.reg = r.add(m.shard, m.matchers, m.grants)
				members = append(members, m)
			},
			"remove": func(t *rapid.T) {
				if len(members) == 0 {
					return
				}
				i := rapid.IntRange(0, len(members)-1).Draw(t, "member")
				r.remove(members[i].shard, members[i].reg)
				members = slices.Delete(members, i, i+1)
			},
			"": func(t *rapid.T) {
				for _, name := range []string{"a", "b", "x"} {
					ts := []*topic.Topic{compiler.Topic(name)}
					var public, routes, readers shardSet
					for _, m := range members {
						if slices.ContainsFunc(m.matchers, func(q *topic.Matcher) bool { return q.Match(ts[0]) }) {
							routes.assign(m.shard, true)
						}
						if m.grants.AllowsAny(rar.Subscribe, ts) {
							readers.assign(m.shard, true)
						}
					}
					public = routes
					if _, got := r.match(nil, ts, false); got != public {
						t.Fatalf("shards of %q = %b, want %b", name, got, public)
					}
					if _, got := r.match(nil, ts, true); got != routes&readers {
						t.Fatalf("shards of private %q = %b, want %b", name, got, routes&readers)
					}
				}
				if len(members) == 0 && (r.index.Len() != 0 || len(r.sets.m) != 0) {
					t.Fatalf("%d matchers and %d grant sets are left", r.index.Len(), len(r.sets.m))
				}
			},
		})
	})
}

func TestTable(t *testing.T) {
	tab := newTable[int, int]()
	for i := range 10 * tableMin {
		tab.set(i, i)
	}
	for i := range 10*tableMin - 5 {
		tab.remove(i)
	}
	if tab.peak > tableMin || len(tab.m) != 5 || tab.get(10*tableMin-1) != 10*tableMin-1 {
		t.Errorf("peak = %d, size = %d, want a rebuilt table of 5", tab.peak, len(tab.m))
	}
}
