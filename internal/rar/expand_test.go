package rar_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// expandOne expands a single matcher.
func expandOne(typ topic.Type, match string, v rar.Variables) (string, error) {
	ds, err := rar.Expand([]rar.Detail{{Topics: []rar.TopicMatcher{{Match: match, MatchType: typ}}}}, v)
	if err != nil {
		return "", err
	}
	return ds[0].Topics[0].Match, nil
}

func TestExpand(t *testing.T) {
	const u, e = topic.URLPattern, topic.Exact
	v := rar.Variables{
		"sub": "u_1", "client_id": "spa", "user.name": "zoë/*", "user.label": "tenant-7", "claims.tenant": "a b", "claims.n": "42",
	}
	cases := []struct {
		typ         topic.Type
		match, want string
	}{
		{u, "https://example.com/users/{{sub}}/*", "https://example.com/users/u_1/*"},
		{u, "/users/{{sub}}/:x?", "/users/u_1/:x?"},
		{u, "/users/{{user.name}}/*", "/users/zo%C3%AB%2F%2A/*"},
		{u, "/users/u-{{sub}}.json", "/users/u-u_1.json"},
		{u, "https://{{user.label}}.example.com/*", "https://tenant-7.example.com/*"},
		{u, "http{s}?://{{user.label}}.example.com:8443/{{sub}}", "http{s}?://tenant-7.example.com:8443/u_1"},
		{u, "https://x-{{user.label}}.example.com/*", "https://x-tenant-7.example.com/*"},
		{u, `/search\?user={{sub}}&q=*`, `/search\?user=u_1&q=*`},
		{u, "/search?a={{sub}}&b={{client_id}}", "/search?a=u_1&b=spa"},
		{u, "/{{claims.tenant}}/{{claims.n}}", "/a%20b/42"},
		{u, "/a/*", "/a/*"},
		{u, "*", "*"},
		{u, "foo://host/{{sub}}", "foo://host/u_1"},
		{u, "https://*/x/{{sub}}", "https://*/x/u_1"},
		{e, "https://example.com/users/{{user.name}}", "https://example.com/users/zo%C3%AB%2F%2A"},
		{e, "https://example.com/a:b*/{{sub}}", "https://example.com/a:b*/u_1"},
		{e, "{{sub}}", "u_1"},
		{e, "urn:user:{{sub}}:{{client_id}}", "urn:user:u_1:spa"},
		{e, "user-{{user.name}}", "user-zo%C3%AB%2F%2A"},
		{e, "{sub}", "{sub}"},
	}
	for _, tc := range cases {
		if got, err := expandOne(tc.typ, tc.match, v); err != nil || got != tc.want {
			t.Errorf("Expand(%s %q) = %q, %v, want %q", tc.typ, tc.match, got, err, tc.want)
		}
	}
}

func TestExpand_refusesTemplates(t *testing.T) {
	const u, e = topic.URLPattern, topic.Exact
	v := rar.Variables{"sub": "x", "client_id": "y", "user.name": "z", "user.": "z", "other": "z", "": "z", "claims.a b": "z"}
	cases := []struct {
		typ   topic.Type
		match string
	}{
		// Names.
		{u, "/{{}}"},
		{u, "/{{other}}"},
		{u, "/{{user.}}"},
		{u, "/{{ sub }}"},
		{u, "/{{sub"},
		{u, "/{{{sub}}}"},
		{u, "/{{claims.a b}}"},
		{e, "{{user}}"},
		// Neighbours that give the value another meaning, or take it in.
		{u, "/{{sub}}*"},
		{u, "/*{{sub}}"},
		{u, "/:x{{sub}}"},
		{u, "/{{sub}}:x"},
		{u, "/{{sub}}(a)"},
		{u, "/(a){{sub}}"},
		{u, "/{{sub}}{/a}?"},
		{u, "/a{{{sub}}}?"},
		{u, "/{a{{sub}}}?"},
		{u, "/({{sub}})"},
		{u, "/a{{sub}}b*"},
		{u, "/:x-{{sub}}"},
		{u, `/\{{sub}}`},
		{u, "/{{sub}}+"},
		{e, "/%{{sub}}"},
		{e, "/%4{{sub}}"},
		{u, "/%2{{sub}}"},
		// Two values that run into each other.
		{u, "/{{sub}}{{client_id}}"},
		{u, "/{{sub}}-{{client_id}}"},
		{e, "{{sub}}.{{client_id}}"},
		{e, "{{sub}}%20{{client_id}}"},
		// Places in a URL.
		{u, "{{sub}}://example.com/"},
		{u, "https://{{sub}}@example.com/"},
		{u, "https://u:{{sub}}@example.com/"},
		{u, "https://u@{{sub}}.example.com/"},
		{u, "https://example.com:{{sub}}/"},
		{u, "https://{{sub}}/"},
		{u, "https://example.{{sub}}/"},
		{u, "https://{{sub}}"},
		{u, "https://{{sub}}./"},
		{u, "https://*{{sub}}.example.com/"},
		{u, "https://[{{sub}}.1]/"},
		{u, "https://EX-{{sub}}.example.com/"},
		{u, "/a#{{sub}}"},
		{u, "/a?b#c={{sub}}"},
		{u, "/a?{{sub}}"},
		{u, "/a?{{sub}}=1"},
		{u, "/a?x=*{{sub}}"},
		{u, "/a?x=*-{{sub}}"},
		{u, "{{sub}}"},
		{u, "users/{{sub}}"},
		{u, "//{{sub}}.example.com/"},
		{u, `urn\:{{sub}}`},
		{u, "urn:{{sub}}"},
		{u, "?x={{sub}}"},
		{u, "https://example.com{{sub}}/"},
		{e, "https://{{sub}}/"},
		{e, "https://u@{{sub}}.x/"},
		{e, "https://example.com/#{{sub}}"},
	}
	for _, tc := range cases {
		if got, err := expandOne(tc.typ, tc.match, v); !errors.Is(err, rar.ErrTemplate) {
			t.Errorf("Expand(%s %q) = %q, %v, want ErrTemplate", tc.typ, tc.match, got, err)
		}
	}
}

func TestExpand_refusesValues(t *testing.T) {
	for _, value := range []string{"", ".", "..", "a\x00", "a\n", "a\u0085", "a\u200b", "\xff", strings.Repeat("a", 257)} {
		if got, err := expandOne(topic.Exact, "/users/{{sub}}", rar.Variables{"sub": value}); !errors.Is(err, rar.ErrVariable) {
			t.Errorf("value %q: %q, %v, want ErrVariable", value, got, err)
		} else if value != "" && value != "." && value != ".." && strings.Contains(err.Error(), value) {
			t.Errorf("the error quotes the value %q", value)
		}
	}
	for _, label := range []string{"a.b", "A", "a_b", "é", strings.Repeat("a", 64), "a/b", "a b"} {
		if got, err := expandOne(topic.URLPattern, "https://{{sub}}.example.com/*", rar.Variables{"sub": label}); !errors.Is(err, rar.ErrVariable) {
			t.Errorf("label %q: %q, %v, want ErrVariable", label, got, err)
		}
	}
	if _, err := expandOne(topic.Exact, "/{{claims.missing}}", nil); !errors.Is(err, rar.ErrVariable) {
		t.Errorf("a missing value = %v, want ErrVariable", err)
	}
	if got, err := expandOne(topic.Exact, "{{sub}}", rar.Variables{"sub": "*"}); err != nil || got != "%2A" {
		t.Errorf("a value of * = %q, %v, want %%2A", got, err)
	}
	if got, err := expandOne(topic.Exact, "/a/.{{sub}}.b", rar.Variables{"sub": "..."}); err != nil {
		t.Errorf("dots that are no dot segment = %q, %v", got, err)
	}
	for match, value := range map[string]string{"/a/.{{sub}}/b": ".", "/a/{{sub}}./b": "."} {
		if got, err := expandOne(topic.URLPattern, match, rar.Variables{"sub": value}); !errors.Is(err, rar.ErrVariable) {
			t.Errorf("%q with %q = %q, %v, want ErrVariable", match, value, got, err)
		}
	}
}

func TestExpand_payload(t *testing.T) {
	v := rar.Variables{"claims.tenant": `a "b"`, "sub": "u_1"}
	cases := []struct{ in, want string }{
		{`{"tenant":"{{claims.tenant}}","n":[1.0,{"s":"x-{{sub}}"}],"plain":"é"}`, `{"tenant":"a \"b\"","n":[1.0,{"s":"x-u_1"}],"plain":"é"}`},
		{`{"a":"\u007b\u007bsub}}"}`, `{"a":"u_1"}`},
		{`{"a":1}`, `{"a":1}`},
	}
	for _, tc := range cases {
		ds, err := rar.Expand([]rar.Detail{{Payload: json.RawMessage(tc.in)}}, v)
		if err != nil {
			t.Errorf("Expand(%s): %v", tc.in, err)
			continue
		}
		if diff := cmp.Diff(tc.want, string(ds[0].Payload)); diff != "" {
			t.Errorf("payload (-want +got):\n%s", diff)
		}
	}
	for in, want := range map[string]error{
		`{"{{sub}}":1}`:           rar.ErrTemplate,
		`{"a":"{{nope}}"}`:        rar.ErrTemplate,
		`{"a":"{{claims.gone}}"}`: rar.ErrVariable,
		`{"a":"{{sub}}"`:          rar.ErrTemplate,
	} {
		if _, err := rar.Expand([]rar.Detail{{Payload: json.RawMessage(in)}}, v); !errors.Is(err, want) {
			t.Errorf("Expand(%s) = %v, want %v", in, err, want)
		}
	}
}

func TestExpand_leavesTheTemplateAlone(t *testing.T) {
	template := []rar.Detail{{
		Actions: []rar.Action{rar.Subscribe}, Topics: []rar.TopicMatcher{{Match: "/{{sub}}", MatchType: topic.Exact}}, Payload: json.RawMessage(`{"a":"{{sub}}"}`),
	}}
	got, err := rar.Expand(template, rar.Variables{"sub": "x"})
	if err != nil {
		t.Fatal(err)
	}
	if template[0].Topics[0].Match != "/{{sub}}" || string(template[0].Payload) != `{"a":"{{sub}}"}` {
		t.Error("the template was changed")
	}
	if diff := cmp.Diff(template[0].Actions, got[0].Actions); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// A subject's namespace is its own: the expanded pattern selects what a publisher names after that subject, and nothing
// named after another.
func TestExpand_separatesSubjects(t *testing.T) {
	c := mustCompiler(t)
	subject := rapid.StringOfN(rapid.RuneFrom([]rune(`ab./\*:?#%{}()+éA-_~ '"!@&=$`)), 1, 6, -1)
	templates := []string{"/users/{{sub}}/*", "https://example.com/u-{{sub}}.x/:y", `/s\?u={{sub}}`, "/users/{{sub}}"}
	rapid.Check(t, func(rt *rapid.T) {
		match := rapid.SampledFrom(templates).Draw(rt, "template")
		mine, other := subject.Draw(rt, "mine"), subject.Draw(rt, "other")
		pattern, err := expandOne(topic.URLPattern, match, rar.Variables{"sub": mine})
		if err != nil {
			return
		}
		m, err := c.Compile(topic.URLPattern, pattern)
		if err != nil {
			rt.Fatalf("%q does not compile: %v", pattern, err)
		}
		plain := strings.NewReplacer("*", "x", ":y", "x", `\?`, "?").Replace(match)
		for _, sub := range []string{mine, other} {
			raw, err := expandOne(topic.Exact, plain, rar.Variables{"sub": sub})
			if err != nil {
				continue
			}
			if got := m.Match(c.Topic(raw)); got != (sub == mine) {
				rt.Fatalf("%q matches %q: %v", pattern, raw, got)
			}
		}
	})
}
