package rar_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

const hubURL = "https://hub.example.com/.well-known/mercure"

func mustCompiler(tb testing.TB) *topic.Compiler {
	tb.Helper()
	c, err := topic.NewCompiler(hubURL, topic.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// details puts the type of Mercure into claims that are written as M.
func details(claim string) string {
	return regexp.MustCompile(`\bM\b`).ReplaceAllLiteralString(claim, `"type":"`+rar.DetailType+`"`)
}

// verdict parses and compiles a claim, as a token's verifier does.
func verdict(tb testing.TB, claim string) (*rar.Grants, error) {
	tb.Helper()
	ds, err := rar.Parse([]byte(claim), rar.DefaultLimits())
	if err != nil {
		return nil, err
	}
	return rar.Compile(ds, mustCompiler(tb))
}

const okTopics = `"topics":[{"match":"/a"}]`

func TestParse_accepts(t *testing.T) {
	cases := []struct {
		id, claim          string
		publish, subscribe bool // on /a
	}{
		{"RAR-01 trailing slash is another type", `[{"type":"https://mercure.rocks/authorization-detail/","actions":["publish"],` + okTopics + `}]`, false, false},
		{"RAR-01 another case", `[{"type":"https://mercure.rocks/Authorization-Detail","actions":["publish"],` + okTopics + `}]`, false, false},
		{"RAR-01 another scheme", `[{"type":"http://mercure.rocks/authorization-detail","actions":["publish"],` + okTopics + `}]`, false, false},
		{"RAR-02 foreign and ours", `[{"type":"x","actions":5,"topics":null,"a":{"b":1,"b":2}},{M,"actions":["publish"],` + okTopics + `}]`, true, false},
		{"RAR-02 foreign only", `[{"type":"x"}]`, false, false},
		{"RAR-02 no type", `[{}]`, false, false},
		{"RAR-02 a type that is no string", `[{"type":1}]`, false, false},
		{"RAR-03 absent", ``, false, false},
		{"RAR-03 empty", `[]`, false, false},
		{"RAR-05 unknown action", `[{M,"actions":["publish","fly"],` + okTopics + `}]`, true, false},
		{"RAR-06 unknown actions only", `[{M,"actions":["fly","Publish"],` + okTopics + `}]`, false, false},
		{"RAR-09 payload", `[{M,"actions":["subscribe"],` + okTopics + `,"payload":{"a":[1]}}]`, false, true},
		{"RAR-16 no match_type is exact", `[{M,"actions":["publish"],"topics":[{"match":"/:x"}]}]`, false, false},
		{"RAR-19 the wildcard", `[{M,"actions":["publish"],"topics":[{"match":"*"}]},{M,"actions":["subscribe"],"topics":[{"match":"*","match_type":"urlpattern"}]}]`, true, true},
		{"RAR-23 extra members", `[{M,"actions":["publish"],"topics":[{"match":"/a","x":1,"Match":2}],"locations":["x"],"Actions":1,"x":{}}]`, true, false},
		{"RAR-24 a pattern on the hub", `[{M,"actions":["publish"],"topics":[{"match":"https://hub.example.com/:x","match_type":"urlpattern"}]}]`, true, false},
		{"RAR-29 odd characters", `[{M,"actions":["publish"],"topics":[{"match":"\u0000"},{"match":"\u200b"},{"match":""},{"match":"/a"}]}]`, true, false},
		{"escaped names", `[{"\u0074ype":"https:\/\/mercure.rocks/authorization-detail","actions":["publish"],` + okTopics + `}]`, true, false},
		{"white space", " [ { M , \"actions\" : [ \"publish\" ] , " + okTopics + " } ] \n", true, false},
	}
	for _, tc := range cases {
		t.Run(tc.id, func(t *testing.T) {
			g, err := verdict(t, details(tc.claim))
			if err != nil {
				t.Fatalf("the claim is refused: %v", err)
			}
			a := mustCompiler(t).Topic("/a")
			if got := g.Allows(rar.Publish, a); got != tc.publish {
				t.Errorf("publish = %v, want %v", got, tc.publish)
			}
			if got := g.Allows(rar.Subscribe, a); got != tc.subscribe {
				t.Errorf("subscribe = %v, want %v", got, tc.subscribe)
			}
		})
	}
}

func TestParse_refuses(t *testing.T) {
	const ok = `{M,"actions":["publish"],` + okTopics + `}`
	cases := []struct {
		id     string
		index  int
		path   string
		claims []string
	}{
		{"RAR-04 actions is no array of strings", 0, "/actions", []string{
			`[{M,` + okTopics + `}]`, `[{M,"actions":null,` + okTopics + `}]`, `[{M,"actions":"publish",` + okTopics + `}]`,
			`[{M,"actions":{},` + okTopics + `}]`, `[{M,"actions":[],` + okTopics + `}]`, `[{M,"Actions":["publish"],` + okTopics + `}]`,
		}},
		{"RAR-07 an action that is no string", 0, "/actions", []string{
			`[{M,"actions":["publish",1],` + okTopics + `}]`, `[{M,"actions":[null],` + okTopics + `}]`,
		}},
		{"RAR-08 topics is no array", 0, "/topics", []string{
			`[{M,"actions":["publish"]}]`, `[{M,"actions":["publish"],"topics":null}]`, `[{M,"actions":["publish"],"topics":"/a"}]`,
			`[{M,"actions":["publish"],"topics":[]}]`,
		}},
		{"RAR-08 a topic that is no object", 0, "/topics/0", []string{
			`[{M,"actions":["publish"],"topics":["x"]}]`, `[{M,"actions":["publish"],"topics":[null]}]`, `[{M,"actions":["publish"],"topics":[[]]}]`,
		}},
		{"RAR-09 payload is no object", 0, "/payload", []string{
			`[{M,"actions":["publish"],` + okTopics + `,"payload":"x"}]`, `[{M,"actions":["publish"],` + okTopics + `,"payload":1}]`,
			`[{M,"actions":["publish"],` + okTopics + `,"payload":[]}]`, `[{M,"actions":["publish"],` + okTopics + `,"payload":null}]`,
		}},
		{"RAR-12 good and bad", 1, "/actions", []string{`[` + ok + `,{M,"actions":1,` + okTopics + `}]`}},
		{"RAR-12 bad and good", 0, "/actions", []string{`[{M,"actions":1,` + okTopics + `},` + ok + `]`}},
		{"RAR-14 match is no string", 0, "/topics/0/match", []string{
			`[{M,"actions":["publish"],"topics":[{}]}]`, `[{M,"actions":["publish"],"topics":[{"match":null}]}]`,
			`[{M,"actions":["publish"],"topics":[{"match":1}]}]`, `[{M,"actions":["publish"],"topics":[{"Match":"/a"}]}]`,
		}},
		{"RAR-17, RAR-18 match_type", 0, "/topics/0/match_type", []string{
			`[{M,"actions":["publish"],"topics":[{"match":"/a","match_type":"Exact"}]}]`,
			`[{M,"actions":["publish"],"topics":[{"match":"/a","match_type":"URLPattern"}]}]`,
			`[{M,"actions":["publish"],"topics":[{"match":"/a","match_type":"regex"}]}]`,
			`[{M,"actions":["publish"],"topics":[{"match":"/a","match_type":""}]}]`,
			`[{M,"actions":["publish"],"topics":[{"match":"/a","match_type":1}]}]`,
			`[{M,"actions":["publish"],"topics":[{"match":"/a","match_type":null}]}]`,
			`[{M,"actions":["publish"],"topics":[{"match":"*","match_type":"regex"}]}]`,
		}},
		{"RAR-21 an ill-formed pattern", 0, "/topics/0/match", []string{
			`[{M,"actions":["publish"],"topics":[{"match":"https://e.example/(","match_type":"urlpattern"}]}]`,
			`[{M,"actions":["fly"],"topics":[{"match":"/:a../..","match_type":"urlpattern"}]}]`,
		}},
		{"RAR-22 the claim is no array", -1, "", []string{`"x"`, `{}`, `1`, `null`, `true`, `[`, `[] []`, `[{}`, `nope`, "[{\"type\":\"\xff\"}]"}},
		{"RAR-22 a member is no object", 0, "", []string{`["x"]`, `[null]`, `[[]]`}},
		{"RAR-25 whatever the operation", 1, "/topics/0/match_type", []string{
			`[` + ok + `,{M,"actions":["subscribe"],"topics":[{"match":"/a","match_type":"x"}]}]`,
		}},
		{"duplicate names", 0, "", []string{
			`[{M,"actions":["publish"],"actions":["subscribe"],` + okTopics + `}]`, `[{M,"actions":["publish"],` + okTopics + `,"x":1,"x":2}]`,
			`[{"type":"x",M,"actions":["publish"],` + okTopics + `}]`, `[{"type":"x","type":"y"}]`, `[{"type":"x","\u0074ype":"y"}]`,
			`[{M,"actions":["publish"],` + okTopics + `,"payload":{"a":1,"a":2}}]`, `[{M,"actions":["publish"],"topics":[{"match":"/a","match":"*"}]}]`,
		}},
	}
	for _, tc := range cases {
		t.Run(tc.id, func(t *testing.T) {
			for _, claim := range tc.claims {
				_, err := verdict(t, details(claim))
				var bad *rar.Error
				if !errors.As(err, &bad) {
					t.Errorf("%s: %v, want an *Error", claim, err)
					continue
				}
				if bad.Index != tc.index || bad.Path != tc.path {
					t.Errorf("%s: at %d %q, want %d %q", claim, bad.Index, bad.Path, tc.index, tc.path)
				}
			}
		})
	}
}

func TestParse_limits(t *testing.T) {
	detail := func(topics int, match string) string {
		ts := strings.TrimSuffix(strings.Repeat(`{"match":"`+match+`"},`, topics), ",")
		return details(`{M,"actions":["publish"],"topics":[` + ts + `]}`)
	}
	list := func(n int, item string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	nested := func(n int) string {
		return `[{"type":"x","a":` + strings.Repeat("[", n-2) + strings.Repeat("]", n-2) + `}]`
	}
	l := rar.DefaultLimits()
	cases := []struct{ id, fits, exceeds string }{
		{"LIM-09 details", list(l.Details, detail(1, "/a")), list(l.Details+1, detail(1, "/a"))},
		{"LIM-09 details of other types count", list(l.Details, `{"type":"x"}`), list(l.Details+1, `{"type":"x"}`)},
		{"LIM-09 topics per detail", list(1, detail(l.TopicsPerDetail, "/a")), list(1, detail(l.TopicsPerDetail+1, "/a"))},
		{"LIM-09 matcher length", list(1, detail(1, strings.Repeat("a", l.PatternBytes))), list(1, detail(1, strings.Repeat("a", l.PatternBytes+1)))},
		{"LIM-09 depth", nested(l.Depth), nested(l.Depth + 1)},
	}
	for _, tc := range cases {
		t.Run(tc.id, func(t *testing.T) {
			if _, err := rar.Parse([]byte(tc.fits), l); err != nil {
				t.Errorf("at the limit: %v", err)
			}
			var bad *rar.Error
			if _, err := rar.Parse([]byte(tc.exceeds), l); !errors.As(err, &bad) {
				t.Errorf("LIM-10 beyond the limit: %v, want an *Error", err)
			}
		})
	}
}

func TestParse_keepsWhatItReads(t *testing.T) {
	raw := []byte(details(`[{M,"actions":["fly","subscribe"],"topics":[{"match":"/a"},{"match":"/:x","match_type":"urlpattern"}],"payload":{ "b" : 1.0, "a":"{\"}" }}]`))
	got, err := rar.Parse(raw, rar.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	clear(raw)
	want := []rar.Detail{{
		Actions: []rar.Action{"fly", rar.Subscribe},
		Topics:  []rar.TopicMatcher{{Match: "/a", MatchType: topic.Exact}, {Match: "/:x", MatchType: topic.URLPattern}},
		Payload: json.RawMessage(`{"b":1.0,"a":"{\"}"}`),
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Parse (-want +got):\n%s", diff)
	}
}

func TestError(t *testing.T) {
	err := &rar.Error{Index: 2, Path: "/topics/0/match", Rule: "must be a string"}
	if got, want := err.Error(), "authorization_details[2]/topics/0/match must be a string"; got != want {
		t.Errorf("Error = %q, want %q", got, want)
	}
	err = &rar.Error{Index: -1, Rule: "must not be empty"}
	if got, want := err.Error(), "authorization_details must not be empty"; got != want {
		t.Errorf("Error = %q, want %q", got, want)
	}
}

func TestEncode(t *testing.T) {
	ds := []rar.Detail{
		{
			Actions: []rar.Action{"fly", rar.Subscribe, rar.Publish, rar.Subscribe, "fly"},
			Topics:  []rar.TopicMatcher{{Match: "/a<&>", MatchType: topic.Exact}, {Match: "/:x", MatchType: topic.URLPattern}, {Match: "*", MatchType: topic.URLPattern}},
			Payload: json.RawMessage(`{ "b": 1.0, "a": "<" }`),
		},
		{Actions: []rar.Action{rar.Publish}, Topics: []rar.TopicMatcher{{Match: "x"}}},
	}
	want := details(`[{M,"actions":["publish","subscribe","fly"],"topics":[{"match":"/a<&>"},{"match":"/:x","match_type":"urlpattern"},{"match":"*"}],` +
		`"payload":{"b":1.0,"a":"<"}},{M,"actions":["publish"],"topics":[{"match":"x"}]}]`)
	if got := string(rar.Encode(ds)); got != want {
		t.Errorf("Encode =\n%s, want\n%s", got, want)
	}
	if got := string(rar.Encode(nil)); got != "[]" {
		t.Errorf("Encode(nil) = %s, want []", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`[{M,"actions":["publish","fly"],"topics":[{"match":"/a"},{"match":"/:x","match_type":"urlpattern"}],"payload":{"a":{"b":[1]}}}]`,
		`[{"type":"x","a":{"b":1,"b":2}},{M,"actions":["subscribe"],"topics":[{"match":"*"}]}]`,
		`[{"type":"x",M}]`, `[]`, `{}`, `[{M,"actions":[1],"topics":[]}]`, `[{"\u0074ype":""}]`, `[[[[[[`,
	} {
		f.Add([]byte(details(s)))
	}
	c := mustCompiler(f)
	l := rar.DefaultLimits()
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > 4096 {
			return
		}
		ds, err := rar.Parse(raw, l)
		if err != nil {
			var bad *rar.Error
			if !errors.As(err, &bad) || ds != nil {
				t.Fatalf("Parse = %v, %v, want an *Error alone", ds, err)
			}
			return
		}
		if len(raw) > 0 && !json.Valid(raw) {
			t.Fatal("Parse accepts what is not JSON")
		}
		encoded := rar.Encode(ds)
		again, err := rar.Parse(encoded, l)
		if err != nil {
			t.Fatalf("Parse(Encode) = %v", err)
		}
		if second := rar.Encode(again); string(second) != string(encoded) {
			t.Fatalf("Encode is not stable:\n%s\n%s", encoded, second)
		}
		if len(ds) != len(again) {
			t.Fatalf("%d details became %d", len(ds), len(again))
		}
		for i := range ds {
			wild := cmp.FilterValues(func(a, b rar.TopicMatcher) bool { return a.Match == "*" && b.Match == "*" }, cmp.Ignore())
			if diff := cmp.Diff(ds[i].Topics, again[i].Topics, wild, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("topics changed (-before +after):\n%s", diff)
			}
		}
		if g, err := rar.Compile(ds, c); err == nil {
			g.Allows(rar.Publish, c.Topic("/a"))
		}
	})
}
