package rar_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

func mustParse(tb testing.TB, claim string) []rar.Detail {
	tb.Helper()
	ds, err := rar.Parse([]byte(details(claim)), rar.DefaultLimits())
	if err != nil {
		tb.Fatal(err)
	}
	return ds
}

func TestNarrow(t *testing.T) {
	const (
		u     = `,"match_type":"urlpattern"`
		users = `[{M,"actions":["subscribe"],"topics":[{"match":"/users/42/*"` + u + `}],"payload":{"tenant":"t"}},` +
			`{M,"actions":["publish","subscribe"],"topics":[{"match":"/chat/:room"` + u + `},{"match":"/news"}]}]`
	)
	cases := []struct {
		name, ceiling, requested string
		onExcess                 rar.Excess
		want                     string // a claim, or empty with err
		err                      error
	}{
		{
			name: "within the ceiling, with the payload of the policy", ceiling: users, onExcess: rar.Deny,
			requested: `[{M,"actions":["subscribe"],"topics":[{"match":"/users/42/inbox"},{"match":"/users/42/:x"` + u + `}]}]`,
			want:      `[{M,"actions":["subscribe"],"topics":[{"match":"/users/42/inbox"},{"match":"/users/42/:x"` + u + `}],"payload":{"tenant":"t"}}]`,
		},
		{
			name: "excess is denied", ceiling: users, onExcess: rar.Deny, err: rar.ErrExcess,
			requested: `[{M,"actions":["subscribe"],"topics":[{"match":"/users/42/inbox"},{"match":"/users/43/inbox"}]}]`,
		},
		{
			name: "excess is trimmed", ceiling: users, onExcess: rar.Trim,
			requested: `[{M,"actions":["subscribe"],"topics":[{"match":"/users/42/inbox"},{"match":"/users/43/inbox"}]}]`,
			want:      `[{M,"actions":["subscribe"],"topics":[{"match":"/users/42/inbox"}],"payload":{"tenant":"t"}}]`,
		},
		{
			name: "an action is trimmed from one topic and the detail split", ceiling: users, onExcess: rar.Trim,
			requested: `[{M,"actions":["publish","subscribe"],"topics":[{"match":"/users/42/inbox"},{"match":"/chat/1"},{"match":"/news"}]}]`,
			want: `[{M,"actions":["subscribe"],"topics":[{"match":"/users/42/inbox"}],"payload":{"tenant":"t"}},` +
				`{M,"actions":["publish","subscribe"],"topics":[{"match":"/chat/1"},{"match":"/news"}]}]`,
		},
		{
			name: "the wildcard yields the ceiling", ceiling: users, onExcess: rar.Trim,
			requested: `[{M,"actions":["publish","subscribe"],"topics":[{"match":"*"}]}]`,
			want: `[{M,"actions":["publish","subscribe"],"topics":[{"match":"/chat/:room"` + u + `},{"match":"/news"}]},` +
				`{M,"actions":["subscribe"],"topics":[{"match":"/users/42/*"` + u + `}],"payload":{"tenant":"t"}}]`,
		},
		{
			name: "a broader wish yields the narrower entries", ceiling: users, onExcess: rar.Trim,
			requested: `[{M,"actions":["subscribe"],"topics":[{"match":"/users/*"` + u + `}]}]`,
			want:      `[{M,"actions":["subscribe"],"topics":[{"match":"/users/42/*"` + u + `}],"payload":{"tenant":"t"}}]`,
		},
		{
			name: "nothing is left", ceiling: users, onExcess: rar.Trim, err: rar.ErrNothingLeft,
			requested: `[{M,"actions":["publish"],"topics":[{"match":"/users/42/inbox"}]}]`,
		},
		{name: "an empty ceiling", ceiling: `[]`, requested: `[{M,"actions":["publish"],"topics":[{"match":"/a"}]}]`, err: rar.ErrExcess},
		{name: "an empty request", ceiling: users, requested: `[]`, err: rar.ErrNothingLeft},
		{
			name: "unknown actions are excess", ceiling: users, onExcess: rar.Trim,
			requested: `[{M,"actions":["fly","publish"],"topics":[{"match":"/news"}]}]`,
			want:      `[{M,"actions":["publish"],"topics":[{"match":"/news"}]}]`,
		},
		{
			name: "dot segments do not lead out", ceiling: users, onExcess: rar.Deny, err: rar.ErrExcess,
			requested: `[{M,"actions":["subscribe"],"topics":[{"match":"/users/42/%2e%2e/43/x"}]}]`,
		},
		{
			name: "the request's payload where the policy has none", ceiling: users, onExcess: rar.Deny,
			requested: `[{M,"actions":["subscribe"],"topics":[{"match":"/news"},{"match":"/users/42/x"},{"match":"/chat/1"}],"payload":{"own":1}}]`,
			want: `[{M,"actions":["subscribe"],"topics":[{"match":"/news"}],"payload":{"own":1}},` +
				`{M,"actions":["subscribe"],"topics":[{"match":"/users/42/x"}],"payload":{"tenant":"t"}},` +
				`{M,"actions":["subscribe"],"topics":[{"match":"/chat/1"}],"payload":{"own":1}}]`,
		},
		{
			name: "rows with one payload are joined", ceiling: users, onExcess: rar.Trim,
			requested: `[{M,"actions":["publish"],"topics":[{"match":"/news"},{"match":"/x"},{"match":"/chat/1"},{"match":"/news"}]}]`,
			want:      `[{M,"actions":["publish"],"topics":[{"match":"/news"},{"match":"/chat/1"}]}]`,
		},
		{
			name:     "a ceiling of everything",
			ceiling:  `[{M,"actions":["publish","subscribe"],"topics":[{"match":"*"}]}]`,
			onExcess: rar.Deny, requested: `[{M,"actions":["publish"],"topics":[{"match":"*"},{"match":"/a"}]}]`,
			want: `[{M,"actions":["publish"],"topics":[{"match":"*"},{"match":"/a"}]}]`,
		},
	}
	c := mustCompiler(t)
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got, err := rar.Narrow(mustParse(t, tc.requested), mustParse(t, tc.ceiling), c, tc.onExcess)
			if !errors.Is(err, tc.err) {
				t.Fatalf("Narrow = %v, want %v", err, tc.err)
			}
			if tc.err != nil {
				return
			}
			if diff := cmp.Diff(details(tc.want), string(rar.Encode(got))); diff != "" {
				t.Errorf("Narrow (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNarrow_matchersThatDoNotCompile(t *testing.T) {
	c := mustCompiler(t)
	good := mustParse(t, `[{M,"actions":["publish"],"topics":[{"match":"/a"}]}]`)
	bad := []rar.Detail{{Actions: []rar.Action{rar.Publish}, Topics: []rar.TopicMatcher{{Match: "/(", MatchType: topic.URLPattern}}}}
	var wrong *rar.Error
	if _, err := rar.Narrow(bad, good, c, rar.Trim); !errors.As(err, &wrong) {
		t.Errorf("a bad request = %v, want an *Error", err)
	}
	if _, err := rar.Narrow(good, bad, c, rar.Trim); !errors.Is(err, topic.ErrPattern) || errors.As(err, &wrong) {
		t.Errorf("a bad ceiling = %v, want ErrPattern", err)
	}
}

// FuzzNarrow checks that the result never allows what the ceiling, or the request, does not.
func FuzzNarrow(f *testing.F) {
	const u = `,"match_type":"urlpattern"`
	for _, s := range [][3]string{
		{
			`[{M,"actions":["publish","subscribe"],"topics":[{"match":"*"}]}]`,
			`[{M,"actions":["subscribe"],"topics":[{"match":"/users/42/*"` + u + `}]},{M,"actions":["publish"],"topics":[{"match":"/a"}]}]`, "/users/42/x",
		},
		{
			`[{M,"actions":["publish"],"topics":[{"match":"/users/42/:x?"` + u + `},{"match":"/users/42/../43"}]}]`,
			`[{M,"actions":["publish"],"topics":[{"match":"/users/42/*"` + u + `}]}]`, "/users/42",
		},
		{
			`[{M,"actions":["publish","subscribe"],"topics":[{"match":"https://*.e.example/"` + u + `},{"match":"/a"}]}]`,
			`[{M,"actions":["subscribe"],"topics":[{"match":"https://:x.e.example/*"` + u + `},{"match":"/a"` + u + `}]}]`, "https://a.b.e.example/",
		},
	} {
		f.Add([]byte(details(s[0])), []byte(details(s[1])), s[2], true)
		f.Add([]byte(details(s[0])), []byte(details(s[1])), s[2], false)
	}
	c := mustCompiler(f)
	l := rar.Limits{Details: 4, TopicsPerDetail: 6, PatternBytes: 256, Depth: 8}
	f.Fuzz(func(t *testing.T, requested, ceiling []byte, raw string, trim bool) {
		want, err := rar.Parse(requested, l)
		if err != nil {
			return
		}
		limit, err := rar.Parse(ceiling, l)
		if err != nil || len(raw) > 256 {
			return
		}
		onExcess := rar.Deny
		if trim {
			onExcess = rar.Trim
		}
		got, err := rar.Narrow(want, limit, c, onExcess)
		if err != nil {
			return
		}
		result, err := rar.Compile(got, c)
		if err != nil {
			t.Fatalf("the result does not compile: %v", err)
		}
		asked, _ := rar.Compile(want, c)
		allowed, _ := rar.Compile(limit, c)
		candidates := []string{raw, "/" + raw}
		for _, ds := range [][]rar.Detail{want, limit, got} {
			for _, d := range ds {
				for _, tm := range d.Topics {
					candidates = append(candidates, tm.Match)
				}
			}
		}
		for _, s := range candidates {
			for _, a := range []rar.Action{rar.Publish, rar.Subscribe} {
				tp := c.Topic(s)
				if result.Allows(a, tp) && (!allowed.Allows(a, tp) || !asked.Allows(a, tp)) {
					t.Fatalf("%s of %q is granted by %s, not by the ceiling or not by the request", a, s, rar.Encode(got))
				}
			}
		}
	})
}
