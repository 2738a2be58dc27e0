package checks

import (
	"path"
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
)

// rarRule is a matcher with topics that it grants and topics that it does not. <u> stands for a unique name, <o> for the
// origin of the hub, <d> for the folder of its URL's path.
type rarRule struct {
	name    string
	matcher suite.Matcher
	granted []string
	not     []string
}

func rarExactRules() []rarRule {
	return []rarRule{
		{"exact-case", suite.Exact("https://e.example/<u>/a"), []string{"https://e.example/<u>/a"}, []string{"https://e.example/<u>/A", "HTTPS://e.example/<u>/a", "https://E.example/<u>/a"}},
		{"exact-length", suite.Exact("https://e.example/<u>/a"), []string{"https://e.example/<u>/a"}, []string{"https://e.example/<u>/a/", "https://e.example/<u>/", "https://e.example/<u>/a?", "https://e.example/<u>/a#", "https://e.example/<u>/ab", "xhttps://e.example/<u>/a"}},
		{"exact-relative", suite.Exact("/<u>/a"), []string{"/<u>/a"}, []string{"<o>/<u>/a", "//<u>/a"}},
		{"exact-absolute", suite.Exact("<o>/<u>/a"), []string{"<o>/<u>/a"}, []string{"/<u>/a", "<u>/a"}},
		{"exact-NFC", suite.Exact("https://e.example/<u>/\u00e9"), []string{"https://e.example/<u>/\u00e9"}, []string{"https://e.example/<u>/e\u0301", "https://e.example/<u>/%C3%A9"}},
		{"exact-escapes", suite.Exact("https://e.example/<u>/~"), []string{"https://e.example/<u>/~"}, []string{"https://e.example/<u>/%7E", "https://e.example/<u>/%7e"}},
		{"exact-escape-case", suite.Exact("https://e.example/<u>/%c3%a9"), []string{"https://e.example/<u>/%c3%a9"}, []string{"https://e.example/<u>/%C3%A9", "https://e.example/<u>/\u00e9"}},
		{"exact-default-port", suite.Exact("https://e.example/<u>"), []string{"https://e.example/<u>"}, []string{"https://e.example:443/<u>"}},
		{"exact-dot-segments", suite.Exact("https://e.example/<u>/b"), []string{"https://e.example/<u>/b"}, []string{"https://e.example/<u>/a/../b", "https://e.example/<u>/./b"}},
		{"exact-wildcard-inside", suite.Exact("https://e.example/<u>/*"), []string{"https://e.example/<u>/*"}, []string{"https://e.example/<u>/1"}},
		{"exact-two-wildcards", suite.Exact("**<u>"), []string{"**<u>"}, []string{"https://e.example/<u>", "*<u>"}},
		{"exact-space", suite.Exact("a b <u>"), []string{"a b <u>"}, []string{"a+b <u>", "a%20b <u>", " a b <u>"}},
	}
}

func rarPatternRules() []rarRule {
	return []rarRule{
		{"pattern-relative", suite.Pattern("/<u>/books/:id"), []string{"<o>/<u>/books/1", "/<u>/books/1"}, []string{"https://other.example/<u>/books/1", "/<u>/books/1/x", "/<u>/books/"}},
		{"pattern-absolute", suite.Pattern("<o>/<u>/books/:id"), []string{"<o>/<u>/books/1", "/<u>/books/1"}, []string{"https://other.example/<u>/books/1"}},
		{"pattern-below-the-hub", suite.Pattern("<u>/:id"), []string{"<u>/1", "<d>/<u>/1", "<o><d>/<u>/1"}, []string{"/<u>/x/1", "https://other.example<d>/<u>/1"}},
		{"pattern-case", suite.Pattern("https://e.example/<u>/Books/:id"), []string{"https://e.example/<u>/Books/1"}, []string{"https://e.example/<u>/books/1", "https://e.example/<u>/BOOKS/1"}},
		{"pattern-host-case", suite.Pattern("https://E.Example/<u>/:id"), []string{"https://e.example/<u>/1", "HTTPS://E.EXAMPLE/<u>/1", "https://e.example:443/<u>/1"}, []string{"http://e.example/<u>/1", "https://e.example:8443/<u>/1"}},
		{"pattern-named-group", suite.Pattern("https://e.example/<u>/:id"), []string{"https://e.example/<u>/1"}, []string{"https://e.example/<u>/1/2", "https://e.example/<u>/"}},
		{"pattern-wildcard", suite.Pattern("https://e.example/<u>/*"), []string{"https://e.example/<u>/1", "https://e.example/<u>/1/2", "https://e.example/<u>/"}, []string{"https://e.example/<u>", "https://e.example/<u>x/1"}},
		{"pattern-regexp", suite.Pattern(`https://e.example/<u>/:id(\d+)`), []string{"https://e.example/<u>/12"}, []string{"https://e.example/<u>/a", "https://e.example/<u>/1a"}},
		{"pattern-anchored", suite.Pattern("https://e.example/<u>"), []string{"https://e.example/<u>"}, []string{"https://e.example/x/<u>", "https://e.example/<u>/x"}},
		{"pattern-query", suite.Pattern("https://e.example/<u>"), []string{"https://e.example/<u>?q#f"}, nil},
		{"pattern-wanted-query", suite.Pattern("https://e.example/<u>?q=:v"), []string{"https://e.example/<u>?q=1"}, []string{"https://e.example/<u>", "https://e.example/<u>?q"}},
		{"pattern-host-group", suite.Pattern("https://:sub.e.example/<u>"), []string{"https://a.e.example/<u>"}, []string{"https://a.b.e.example/<u>", "https://e.example/<u>", "https://a.e.example.evil.example/<u>"}},
		{"pattern-escapes", suite.Pattern("https://e.example/<u>/caf%C3%A9"), []string{"https://e.example/<u>/caf\u00e9", "https://e.example/<u>/x/../caf%C3%A9"}, nil},
		{"pattern-dot-segments", suite.Pattern("https://e.example/<u>/:id"), []string{"https://e.example/<u>/x/../1"}, []string{"https://e.example/<u>/../1", "https://e.example/<u>/%2e%2e/1"}},
		{"pattern-of-everything", suite.Pattern("*://*:*/*"), []string{"https://e.example:8443/<u>"}, []string{"https://[bad/<u>", "https://h.example:99999/<u>", "https://h h/<u>"}},
		{"pattern-is-no-exact-matcher", suite.Pattern("https://e.example/<u>/:id(a)"), []string{"https://e.example/<u>/a"}, []string{"https://e.example/<u>/:id(a)"}},
	}
}

// rarRoutingChecks are those that grants match as routing matchers do, for publishers and for readers.
func rarRoutingChecks() []suite.Check {
	var checks []suite.Check
	for _, rule := range slices.Concat(rarExactRules(), rarPatternRules()) {
		checks = append(checks, one("RAR-24", rule.name+"-publish", func(t *suite.T) {
			r := rule.of(t)
			token := rarPublisher(t, suite.Details(suite.CanPublish(r.matcher)))
			for _, topic := range r.granted {
				rarPublish(t, "a grant that covers "+topic, token, topic, 200)
			}
			for _, topic := range r.not {
				rarPublish(t, "a grant that does not cover "+topic, token, topic, 403)
			}
			t.Observed("%d topics granted, %d not", len(r.granted), len(r.not))
		}), one("RAR-24", rule.name+"-subscribe", func(t *suite.T) {
			r := rule.of(t)
			rarReads(t, "this grant", rarSubscriber(t, suite.Details(suite.CanSubscribe(r.matcher))), r.granted, r.not)
			t.Observed("%d topics granted, %d not", len(r.granted), len(r.not))
		}))
	}
	// Only the whole value is the wildcard.
	almost := func(text string) func(suite.Detail) any { return rarMatcherMember("match", text) }
	return append(checks, rarTable("RAR-24", []rarCase{
		{"two-stars", almost("**")},
		{"star-and-space", almost("* ")},
		{"space-and-star", almost(" *")},
		{"escaped-star", almost("%2A")},
		{"star-and-slash", almost("*/")},
		{"slash-and-star", almost("/*")},
		{"wide-star", almost("\uff0a")},
	}, 403)...)
}

// of puts names in.
func (r rarRule) of(t *suite.T) rarRule {
	folder := strings.TrimSuffix(path.Dir(t.Target().Path()), "/")
	put := strings.NewReplacer("<u>", t.Unique("u"), "<o>", t.Target().Origin(), "<d>", folder)
	all := func(topics []string) []string {
		out := make([]string, len(topics))
		for i, topic := range topics {
			out[i] = put.Replace(topic)
		}
		return out
	}
	text, _ := r.matcher["match"].(string)
	r.matcher = suite.Matcher{"match": put.Replace(text), "match_type": r.matcher["match_type"]}
	r.granted, r.not = all(r.granted), all(r.not)
	return r
}
