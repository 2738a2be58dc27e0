package rar_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

func TestParseRequest_accepts(t *testing.T) {
	l := rar.DefaultRequestLimits(mustCompiler(t), hubURL)
	l.PayloadBytes = 1024
	raw := details(`[{M,"actions":["subscribe","publish"],"topics":[{"match":"*"},{"match":"/a/:x","match_type":"urlpattern"}],` +
		`"locations":["` + hubURL + `"],"payload":{"name":"x"}}]`)
	got, err := rar.ParseRequest([]byte(raw), l)
	if err != nil {
		t.Fatal(err)
	}
	want := []rar.Detail{{
		Actions: []rar.Action{rar.Subscribe, rar.Publish},
		Topics:  []rar.TopicMatcher{{Match: "*", MatchType: topic.Exact}, {Match: "/a/:x", MatchType: topic.URLPattern}},
		Payload: []byte(`{"name":"x"}`),
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ParseRequest (-want +got):\n%s", diff)
	}
}

func TestParseRequest_refuses(t *testing.T) {
	const one = `"topics":[{"match":"/a"}]`
	many := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	cases := []struct{ name, raw string }{
		{"nothing", ``},
		{"no array", `{}`},
		{"an empty array", `[]`},
		{"trailing data", `[{M,"actions":["publish"],` + one + `}] x`},
		{"another type", `[{"type":"x","actions":["publish"],` + one + `}]`},
		{"no type", `[{"actions":["publish"],` + one + `}]`},
		{"an unknown member", `[{M,"actions":["publish"],` + one + `,"x":1}]`},
		{"a member in another case", `[{M,"Actions":["publish"],` + one + `}]`},
		{"duplicate members", `[{M,"actions":["publish"],"actions":["publish"],` + one + `}]`},
		{"an unknown member of a matcher", `[{M,"actions":["publish"],"topics":[{"match":"/a","x":1}]}]`},
		{"an unknown action", `[{M,"actions":["publish","fly"],` + one + `}]`},
		{"an action twice", `[{M,"actions":["publish","publish"],` + one + `}]`},
		{"no actions", `[{M,"actions":[],` + one + `}]`},
		{"no topics", `[{M,"actions":["publish"],"topics":[]}]`},
		{"an empty matcher", `[{M,"actions":["publish"],"topics":[{"match":""}]}]`},
		{"a control character", `[{M,"actions":["publish"],"topics":[{"match":"/\u0000"}]}]`},
		{"a format character", `[{M,"actions":["publish"],"topics":[{"match":"/\u202e"}]}]`},
		{"a matcher that is too long", `[{M,"actions":["publish"],"topics":[{"match":"` + strings.Repeat("a", 513) + `"}]}]`},
		{"an unknown matcher type", `[{M,"actions":["publish"],"topics":[{"match":"/a","match_type":"regex"}]}]`},
		{"an ill-formed pattern", `[{M,"actions":["publish"],"topics":[{"match":"/(","match_type":"urlpattern"}]}]`},
		{"a pattern that makes the library panic", `[{M,"actions":["publish"],"topics":[{"match":"/*../..","match_type":"urlpattern"}]}]`},
		{"a regular expression", `[{M,"actions":["publish"],"topics":[{"match":"/(a|b)","match_type":"urlpattern"}]}]`},
		{"an unexpanded template", `[{M,"actions":["publish"],"topics":[{"match":"/{{sub}}/*","match_type":"urlpattern"}]}]`},
		{"a payload by default", `[{M,"actions":["subscribe"],` + one + `,"payload":{}}]`},
		{"another location", `[{M,"actions":["publish"],` + one + `,"locations":["https://other.example/"]}]`},
		{"locations that are no array", `[{M,"actions":["publish"],` + one + `,"locations":"` + hubURL + `"}]`},
		{"too many details", `[` + many(21, `{M,"actions":["publish"],`+one+`}`) + `]`},
		{"too many topics in one detail", `[{M,"actions":["publish"],"topics":[` + many(51, `{"match":"/a"}`) + `]}]`},
		{"too many topics together", `[` + many(3, `{M,"actions":["publish"],"topics":[`+many(17, `{"match":"/a"}`)+`]}`) + `]`},
		{"too deep", `[{M,"actions":["publish"],` + one + `,"payload":{"a":[[[[[[]]]]]]}}]`},
		{"too long", `[{M,"actions":["publish"],` + one + `}` + strings.Repeat(" ", 8<<10) + `]`},
		{"bytes that are not UTF-8", "[{M,\"actions\":[\"publish\"],\"topics\":[{\"match\":\"\xff\"}]}]"},
	}
	l := rar.DefaultRequestLimits(mustCompiler(t), hubURL)
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			ds, err := rar.ParseRequest([]byte(details(tc.raw)), l)
			var bad *rar.Error
			if !errors.As(err, &bad) || ds != nil {
				t.Errorf("ParseRequest = %v, %v, want an *Error alone", ds, err)
			}
		})
	}
}

func TestParseRequest_payload(t *testing.T) {
	l := rar.DefaultRequestLimits(mustCompiler(t), hubURL)
	l.PayloadBytes = 16
	for raw, ok := range map[string]bool{
		`[{M,"actions":["subscribe"],"topics":[{"match":"/a"}],"payload":{"a":1}}]`:                  true,
		`[{M,"actions":["publish"],"topics":[{"match":"/a"}],"payload":{"a":1}}]`:                    false,
		`[{M,"actions":["subscribe"],"topics":[{"match":"/a"}],"payload":{"a":"0123456789abcdef"}}]`: false,
	} {
		if _, err := rar.ParseRequest([]byte(details(raw)), l); (err == nil) != ok {
			t.Errorf("%s: %v, want success %v", raw, err, ok)
		}
	}
	l.RegexpGroups = true
	if _, err := rar.ParseRequest([]byte(details(`[{M,"actions":["publish"],"topics":[{"match":"/(a|b)","match_type":"urlpattern"}]}]`)), l); err != nil {
		t.Errorf("an allowed regular expression is refused: %v", err)
	}
}

func TestParseRequest_errorNamesTheDetail(t *testing.T) {
	raw := details(`[{M,"actions":["publish"],"topics":[{"match":"/a"}]},{M,"actions":["publish"],"topics":[{"match":"/a"},{"match":"/(","match_type":"urlpattern"}]}]`)
	_, err := rar.ParseRequest([]byte(raw), rar.DefaultRequestLimits(mustCompiler(t), hubURL))
	want := &rar.Error{Index: 1, Path: "/topics/1/match", Rule: "must be a valid URL Pattern"}
	var bad *rar.Error
	if !errors.As(err, &bad) {
		t.Fatalf("ParseRequest = %v, want an *Error", err)
	}
	if diff := cmp.Diff(want, bad); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}
