package rar_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

func mustGrants(tb testing.TB, claim string) *rar.Grants {
	tb.Helper()
	g, err := verdict(tb, details(claim))
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

func topics(c *topic.Compiler, raws ...string) []*topic.Topic {
	ts := make([]*topic.Topic, len(raws))
	for i, raw := range raws {
		ts[i] = c.Topic(raw)
	}
	return ts
}

func TestGrants(t *testing.T) {
	c := mustCompiler(t)
	const split = `[{M,"actions":["publish"],"topics":[{"match":"/a"}]},{M,"actions":["subscribe"],"topics":[{"match":"/b"}]}]`
	const added = `[{M,"actions":["publish"],"topics":[{"match":"/a"}]},{M,"actions":["publish"],"topics":[{"match":"/b"}]}]`
	const books = `[{M,"actions":["publish","subscribe"],"topics":[{"match":"/books/:id","match_type":"urlpattern"}]}]`
	cases := []struct {
		id, claim string
		action    rar.Action
		topics    []string
		all, some bool
	}{
		{"RAR-10 action and topic in different details", split, rar.Publish, []string{"/b"}, false, false},
		{"RAR-11 details add up", added, rar.Publish, []string{"/a", "/b"}, true, true},
		{"RAR-24 relative pattern, relative topic", books, rar.Publish, []string{"/books/1"}, true, true},
		{"RAR-24 relative pattern, absolute topic", books, rar.Publish, []string{"https://hub.example.com/books/1"}, true, true},
		{"RAR-24 case", books, rar.Publish, []string{"/Books/1"}, false, false},
		{"PRIV-02 every topic of an update", split, rar.Publish, []string{"/a", "/b"}, false, true},
		{"PRIV-02 in either order", split, rar.Publish, []string{"/b", "/a"}, false, true},
		{"PRIV-05 any topic of an update", split, rar.Subscribe, []string{"/a", "/b"}, false, true},
		{"PRIV-06 no topic of an update", split, rar.Subscribe, []string{"/a", "/c"}, false, false},
		{"PRIV-08 publish is not subscribe", split, rar.Subscribe, []string{"/a"}, false, false},
		{"an unknown action", split, "fly", []string{"/a"}, false, false},
		{"no topic", split, rar.Publish, nil, false, false},
		{"RAR-19 a topic that is no URL", `[{M,"actions":["publish"],"topics":[{"match":"*"}]}]`, rar.Publish, []string{"https://[bad/", "x"}, true, true},
	}
	for _, tc := range cases {
		t.Run(tc.id, func(t *testing.T) {
			g, ts := mustGrants(t, tc.claim), topics(c, tc.topics...)
			if got := g.AllowsAll(tc.action, ts); got != tc.all {
				t.Errorf("AllowsAll = %v, want %v", got, tc.all)
			}
			if got := g.AllowsAny(tc.action, ts); got != tc.some {
				t.Errorf("AllowsAny = %v, want %v", got, tc.some)
			}
		})
	}
}

func TestGrants_nil(t *testing.T) {
	var g *rar.Grants
	c := mustCompiler(t)
	m, err := c.Compile(topic.Exact, "/a")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := g.Payload(m, c); ok || g.Allows(rar.Publish, c.Topic("/a")) || g.AllowsAny(rar.Subscribe, topics(c, "/a")) ||
		g.Actions() != 0 || g.Matchers(rar.Publish) != nil {
		t.Error("nil grants grant something")
	}
}

func TestGrants_Matchers_areDistinct(t *testing.T) {
	g := mustGrants(t, `[{M,"actions":["publish","subscribe"],"topics":[{"match":"/b"},{"match":"*"},{"match":"/b"}]},
		{M,"actions":["subscribe"],"topics":[{"match":"*","match_type":"urlpattern"},{"match":"/b","match_type":"urlpattern"}]}]`)
	names := func(a rar.Action) (out []string) {
		for _, m := range g.Matchers(a) {
			out = append(out, string(m.Type())+" "+m.Pattern())
		}
		return out
	}
	if diff := cmp.Diff([]string{"exact /b", "exact *"}, names(rar.Publish)); diff != "" {
		t.Errorf("publish (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"exact /b", "exact *", "urlpattern /b"}, names(rar.Subscribe)); diff != "" {
		t.Errorf("subscribe (-want +got):\n%s", diff)
	}
	if g.Matchers(rar.Publish)[0] != g.Matchers(rar.Subscribe)[0] {
		t.Error("equal matchers are not shared by the actions")
	}
	if got := g.Actions().String(); got != "publish subscribe" {
		t.Errorf("Actions = %q", got)
	}
}

func TestActionSet(t *testing.T) {
	s := rar.Actions(rar.Subscribe, "fly")
	if s.Has(rar.Publish) || !s.Has(rar.Subscribe) || s.Has("fly") || s.String() != "subscribe" {
		t.Errorf("Actions = %q", s)
	}
	both := rar.Actions(rar.Publish, rar.Subscribe)
	if !both.Contains(s) || s.Contains(both) || !s.Contains(0) {
		t.Error("Contains is not the subset relation")
	}
}

func TestGrants_Payload(t *testing.T) {
	const exact, pattern = topic.Exact, topic.URLPattern
	sub := func(match, typ, payload string) string {
		if payload != "" {
			payload = `,"payload":` + payload
		}
		return `{M,"actions":["subscribe"],"topics":[{"match":"` + match + `","match_type":"` + typ + `"}]` + payload + `}`
	}
	const bar = "https://e.example/bar/:id"
	cases := []struct {
		id, claim string
		typ       topic.Type
		matcher   string
		want      string
	}{
		{"PAY-01 the matching detail", `[` + sub("/a", "exact", `{"n":1}`) + `]`, exact, "/a", `{"n":1}`},
		{"PAY-02 first wins", `[` + sub("/a", "exact", `{"n":1}`) + `,` + sub("*", "exact", `{"n":2}`) + `]`, exact, "/a", `{"n":1}`},
		{"PAY-02 the other order", `[` + sub("*", "exact", `{"n":2}`) + `,` + sub("/a", "exact", `{"n":1}`) + `]`, exact, "/a", `{"n":2}`},
		{"PAY-03 others are passed over", `[` + sub("/b", "exact", `{"n":1}`) + `,` + sub("/a", "exact", `{"n":2}`) + `]`, exact, "/a", `{"n":2}`},
		{"PAY-04 a pattern matches the pattern string", `[` + sub(bar, "urlpattern", `{"n":1}`) + `]`, pattern, bar, `{"n":1}`},
		{"PAY-05 an exact grant of the pattern string", `[` + sub(bar, "exact", `{"n":1}`) + `]`, pattern, bar, `{"n":1}`},
		{"PAY-06 the wildcard is the default", `[` + sub("/b", "exact", `{"n":1}`) + `,` + sub("*", "urlpattern", `{"n":2}`) + `]`, pattern, bar, `{"n":2}`},
		{"PAY-06 a wildcard subscription", `[` + sub("/b", "exact", `{"n":1}`) + `,` + sub("*", "exact", `{"n":2}`) + `]`, exact, "*", `{"n":2}`},
		{"PAY-07 publish details do not count", `[{M,"actions":["publish"],"topics":[{"match":"*"}],"payload":{"n":1}},` + sub("/a", "exact", `{"n":2}`) + `]`, exact, "/a", `{"n":2}`},
		{"PAY-08 a detail without payload masks", `[` + sub("/a", "exact", "") + `,` + sub("*", "exact", `{"n":2}`) + `]`, exact, "/a", ""},
		{"PAY-11 nothing matches", `[` + sub("/b", "exact", `{"n":1}`) + `]`, exact, "/a", ""},
	}
	c := mustCompiler(t)
	for _, tc := range cases {
		t.Run(tc.id, func(t *testing.T) {
			m, err := c.Compile(tc.typ, tc.matcher)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := mustGrants(t, tc.claim).Payload(m, c)
			if string(got) != tc.want || ok != (tc.want != "") {
				t.Errorf("Payload = %s, %v, want %q", got, ok, tc.want)
			}
		})
	}
}

func TestGrants_Allows_doesNotAllocate(t *testing.T) {
	c := mustCompiler(t)
	g := mustGrants(t, `[{M,"actions":["publish"],"topics":[{"match":"/a"},{"match":"/b/:x?","match_type":"urlpattern"},{"match":"/c/*","match_type":"urlpattern"}]}]`)
	ts := topics(c, "/a", "/b/1", "/c/d", "/e")
	if g.AllowsAll(rar.Publish, ts) {
		t.Fatal("a topic too many is granted")
	}
	if n := testing.AllocsPerRun(100, func() { g.AllowsAll(rar.Publish, ts) }); n != 0 {
		t.Errorf("AllowsAll allocates %v times, want 0", n)
	}
}

func TestCompile_keepsPayloadBytes(t *testing.T) {
	ds := []rar.Detail{{
		Actions: []rar.Action{rar.Subscribe}, Topics: []rar.TopicMatcher{{Match: "/a", MatchType: topic.Exact}},
		Payload: json.RawMessage(`{"n":1.0}`),
	}}
	c := mustCompiler(t)
	g, err := rar.Compile(ds, c)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := g.Payload(g.Matchers(rar.Subscribe)[0], c); string(got) != `{"n":1.0}` {
		t.Errorf("Payload = %s", got)
	}
}

func TestCompile_refusesDetailsThatWereNotParsed(t *testing.T) {
	c, err := topic.NewCompiler(hubURL, topic.Limits{PatternBytes: 10})
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		tm   rar.TopicMatcher
		want rar.Error
	}{
		{rar.TopicMatcher{Match: "/a", MatchType: "regex"}, rar.Error{Path: "/topics/0/match_type", Rule: "must be a supported matcher type"}},
		{rar.TopicMatcher{Match: "/0123456789", MatchType: topic.Exact}, rar.Error{Path: "/topics/0/match", Rule: "is too long"}},
		{rar.TopicMatcher{Match: "/(", MatchType: topic.URLPattern}, rar.Error{Path: "/topics/0/match", Rule: "must be a valid URL Pattern"}},
	}
	for _, tc := range cases {
		_, err := rar.Compile([]rar.Detail{{Actions: []rar.Action{"fly"}, Topics: []rar.TopicMatcher{tc.tm}}}, c)
		var bad *rar.Error
		if !errors.As(err, &bad) || *bad != tc.want {
			t.Errorf("Compile(%v) = %v, want %v", tc.tm, err, &tc.want)
		}
	}
}
