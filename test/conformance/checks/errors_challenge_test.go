package checks

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// TestChallenges has the examples of RFC 9110 section 11.6.1 and RFC 6750 section 3, and what breaks the grammar.
func TestChallenges(t *testing.T) {
	param := func(name, value string) authParam { return authParam{Name: name, Value: value, Quoted: true} }
	for _, c := range []struct {
		field string
		want  []challenge
		fault string
	}{
		{`Bearer`, []challenge{{Scheme: "bearer"}}, ""},
		{`Bearer realm="example"`, []challenge{{Scheme: "bearer", Params: []authParam{param("realm", "example")}}}, ""},
		{`bearer error="invalid_token", error_description="The \"token\" expired"`, []challenge{{
			Scheme: "bearer",
			Params: []authParam{param("error", "invalid_token"), param("error_description", `The "token" expired`)},
		}}, ""},
		{`Basic realm="simple", Newauth realm="apps", type=1, title="Login to \"apps\""`, []challenge{
			{Scheme: "basic", Params: []authParam{param("realm", "simple")}},
			{Scheme: "newauth", Params: []authParam{param("realm", "apps"), {Name: "type", Value: "1"}, param("title", `Login to "apps"`)}},
		}, ""},
		{`Negotiate, Other abc==, Bearer  a="b,c=d"`, []challenge{
			{Scheme: "negotiate"},
			{Scheme: "other", Token68: "abc=="},
			{Scheme: "bearer", Params: []authParam{param("a", "b,c=d")}},
		}, ""},
		{`Bearer a=""`, []challenge{{Scheme: "bearer", Params: []authParam{param("a", "")}}}, ""},
		{``, nil, "empty field"},
		{`Bearer a="b",`, []challenge{{Scheme: "bearer", Params: []authParam{param("a", "b")}}}, "empty list element"},
		{`Bearer a="b",,c="d"`, []challenge{{Scheme: "bearer", Params: []authParam{param("a", "b"), param("c", "d")}}}, "empty list element"},
		{`Bearer a="b" c="d"`, []challenge{{Scheme: "bearer", Params: []authParam{param("a", "b"), param("c", "d")}}}, `no comma before "c=\"d\""`},
		{`Bearer a="b"; c="d"`, []challenge{{Scheme: "bearer", Params: []authParam{param("a", "b")}}}, `no comma before "; c=\"d\""`},
		{`Bearer a = "b"`, []challenge{{Scheme: "bearer", Params: []authParam{param("a", "b")}}}, "space before ="},
		{`Bearer u=https://h/p?q=1, b="c"`, []challenge{{
			Scheme: "bearer",
			Params: []authParam{{Name: "u", Value: "https://h/p?q=1"}, param("b", "c")},
		}}, "the value of u is neither a token nor a quoted string"},
		{`Bearer a='b c'`, []challenge{{Scheme: "bearer", Params: []authParam{{Name: "a", Value: "'b"}}}, {Scheme: "c'"}}, `no comma before "c'"`},
		{`Bearer a="b`, []challenge{{Scheme: "bearer", Params: []authParam{param("a", "b")}}}, "quoted string without end"},
		{`a="b"`, nil, "parameter a before any scheme"},
		{`Bearer a="b", A="c"`, []challenge{{Scheme: "bearer", Params: []authParam{param("a", "b"), param("a", "c")}}}, "parameter A twice in a challenge"},
		{`Bearer: a="b"`, []challenge{{Scheme: "bearer"}}, `no parameter after the scheme: ": a=\"b\""`},
		{`{"error":"x"}`, nil, `"{\"error\":\"x\"}" begins neither a scheme nor a parameter`},
		{"Bearer\ta=\"b\"", []challenge{{Scheme: "bearer", Params: []authParam{param("a", "b")}}}, "a tab after the scheme"},
		{"Bearer a=\"b\x01\"", []challenge{{Scheme: "bearer", Params: []authParam{param("a", "b\x01")}}}, "control character in a quoted string"},
	} {
		got, faults := challengesOf(&wire.Response{Fields: []wire.Field{{Name: "www-authenticate", Value: c.field}}})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q:\n%s", c.field, diff)
		}
		if first := append(faults, "")[0]; first != c.fault {
			t.Errorf("%q: found %q, wanted %q", c.field, first, c.fault)
		}
	}
}
