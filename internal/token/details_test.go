package token_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

// d is one Mercure detail of the given members; an empty value takes a member out.
func d(change object) string {
	return object{
		"type": quoted(rar.DetailType), "actions": `["subscribe"]`, "topics": `[{"match":"https://example.com/a"}]`,
	}.with(change).String()
}

func TestVerify_Details(t *testing.T) {
	t.Parallel()
	good := d(nil)
	bad := d(object{"actions": `[]`})
	many := func(n int, one string) string { return strings.TrimSuffix(strings.Repeat(one+",", n), ",") }
	var cases []tokenCase
	add := func(name, details string, want token.Check) {
		cases = append(cases, tokenCase{name: name, claims: object{"authorization_details": details}, want: want})
	}
	foreign := `{"type":"payment","actions":7,"topics":null,"payload":[],"x":{"a":1,"a":2}}`

	add("RAR-01 takes another type for another type", "["+d(object{"type": quoted(rar.DetailType + "/"), "actions": "1"})+"]", "")
	add("RAR-02 ignores other types whatever their content", "["+foreign+","+good+"]", "")
	add("RAR-02 accepts other types only", "["+foreign+"]", "")
	add("RAR-03 accepts no claim", "", "")
	add("RAR-03 accepts no detail", "[]", "")
	for _, actions := range []string{"", "null", `"subscribe"`, "{}", "[]"} {
		add("RAR-04 refuses actions "+actions, "["+d(object{"actions": actions})+"]", token.CheckDetails)
	}
	add("RAR-05 ignores unknown actions", "["+d(object{"actions": `["subscribe","fly"]`})+"]", "")
	add("RAR-06 accepts only unknown actions", "["+d(object{"actions": `["fly"]`})+","+d(object{"actions": `["Publish"]`})+"]", "")
	for _, actions := range []string{`["subscribe",1]`, `[null]`} {
		add("RAR-07 refuses actions "+actions, "["+d(object{"actions": actions})+"]", token.CheckDetails)
	}
	for _, topics := range []string{"", "null", `"x"`, "[]", `["x"]`, "[null]", "[[]]"} {
		add("RAR-08 refuses topics "+topics, "["+d(object{"topics": topics})+"]", token.CheckDetails)
	}
	for _, payload := range []string{`"x"`, "1", "[]"} {
		add("RAR-09 refuses payload "+payload, "["+d(object{"payload": payload})+"]", token.CheckDetails)
	}
	add("RAR-09 accepts an object payload", "["+d(object{"payload": `{"a":1}`})+"]", "")
	add("RAR-12 refuses good and bad", "["+good+","+bad+"]", token.CheckDetails)
	add("RAR-12 refuses bad and good", "["+bad+","+good+"]", token.CheckDetails)
	for _, matcher := range []string{`{}`, `{"match":null}`, `{"match":1}`} {
		add("RAR-14 refuses matcher "+matcher, "["+d(object{"topics": "[" + matcher + "]"})+"]", token.CheckDetails)
	}
	for _, typ := range []string{`"Exact"`, `"URLPattern"`, `"regex"`, `""`, "1", "null"} {
		add("RAR-17 RAR-18 refuses match_type "+typ, "["+d(object{"topics": `[{"match":"a","match_type":` + typ + `}]`})+"]", token.CheckDetails)
	}
	add("RAR-19 accepts the wildcard of each type",
		"["+d(object{"topics": `[{"match":"*"},{"match":"*","match_type":"exact"},{"match":"*","match_type":"urlpattern"}]`})+"]", "")
	add("RAR-21 refuses an ill-formed pattern",
		"["+d(object{"topics": `[{"match":"https://e.example/(","match_type":"urlpattern"}]`})+"]", token.CheckDetails)
	for _, claim := range []string{`"x"`, "{}", "1", "null", `["x"]`, "[null]"} {
		add("RAR-22 refuses the claim "+claim, claim, token.CheckDetails)
	}
	add("RAR-23 ignores extra members", "["+d(object{"locations": `["x"]`, "topics": `[{"match":"a","x":1}]`})+"]", "")
	add("RAR-25 refuses a bad detail of another action", "["+good+","+d(object{"actions": `["publish"]`, "topics": "[]"})+"]", token.CheckDetails)
	add("RAR names are byte-exact", "["+d(object{"actions": "", "Actions": `["subscribe"]`})+"]", token.CheckDetails)
	add("RAR refuses a repeated member", "["+strings.Replace(good, "{", `{"actions":["publish"],`, 1)+"]", token.CheckDetails)
	add("LIM-09 refuses more than 128 details", "["+many(129, `{"type":"x"}`)+"]", token.CheckDetails)
	add("LIM-09 refuses more than 256 topics",
		"["+d(object{"topics": "[" + many(257, `{"match":"a"}`) + "]"})+"]", token.CheckDetails)
	add("LIM-09 refuses a pattern beyond 4096 bytes",
		"["+d(object{"topics": fmt.Sprintf(`[{"match":%q}]`, strings.Repeat("a", 4097))})+"]", token.CheckDetails)
	runCases(t, cases)
}
