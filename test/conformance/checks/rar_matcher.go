package checks

import (
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// rarMatcherChecks are those of match_type, of patterns, and of members that mean nothing.
func rarMatcherChecks() []suite.Check {
	kind := func(value any) func(suite.Detail) any { return rarMatcherMember("match_type", value) }
	kinds := func(names ...string) []rarCase {
		cases := make([]rarCase, len(names))
		for i, name := range names {
			cases[i] = rarCase{name, kind(name)}
		}
		return cases
	}
	pattern := func(text string) func(suite.Detail) any {
		return func(d suite.Detail) any {
			d["topics"] = []any{rarMatcher(d), suite.Pattern(text)}
			return suite.Details(d)
		}
	}
	return slices.Concat(
		rarTable("RAR-17", kinds("Exact", "EXACT", "eXact", "URLPattern", "UrlPattern", "urlPattern", "URLPATTERN"), 401),
		rarTable("RAR-18", kinds("regex", "regexp", "uri-template", "uritemplate", "url-pattern", "url_pattern", "match_exact", "match", "glob", "prefix", "*"), 401),
		rarTable("RAR-18", []rarCase{
			{"empty", kind("")},
			{"null", kind(nil)},
			{"number", kind(1)},
			{"zero", kind(0)},
			{"bool", kind(true)},
			{"array", kind([]string{"exact"})},
			{"object", kind(jose.Object{})},
			{"space-before", kind(" exact")},
			{"space-after", kind("exact ")},
			{"U+0000-after", kind("exact\x00")},
			{"among-good-ones", func(d suite.Detail) any {
				d["topics"] = []any{rarMatcher(d), jose.Object{"match": "x", "match_type": "regex"}}
				return suite.Details(d)
			}},
		}, 401),
		rarTable("RAR-21", []rarCase{
			{"open-group", pattern("https://e.example/(")},
			{"open-brace", pattern("https://e.example/{a")},
			{"duplicate-name", pattern("https://e.example/:x/:x")},
			{"stray-modifier", pattern("https://e.example/+")},
			{"empty-group", pattern("https://e.example/()")},
			{"lookahead", pattern("https://e.example/(?=a)")},
			{"relative", pattern("/books/(")},
			{"alone", func(d suite.Detail) any {
				d["topics"] = []any{suite.Pattern("https://e.example/(")}
				return suite.Details(d)
			}},
		}, 401),
		rarTable("RAR-23", []rarCase{
			{"locations", rarMember("locations", []string{"https://other.example/"})},
			{"common-members", func(d suite.Detail) any {
				d["datatypes"], d["identifier"], d["privileges"] = []string{"x"}, "x", []string{"admin"}
				return suite.Details(d)
			}},
			{"x", rarMember("x", jose.Object{"y": []any{nil, 1}})},
			{"in-matcher", rarMatcherMember("x", 1)},
			{"null-members", func(d suite.Detail) any {
				d["x"], rarMatcher(d)["x"] = nil, nil
				return suite.Details(d)
			}},
			{"Match_Type", rarMatcherMember("Match_Type", "regex")},
			{"Payload", rarMember("Payload", "x")},
		}, 200),
		rarIgnoredChecks(),
		rarExactChecks(),
	)
}

// rarIgnoredChecks are those of members whose names differ from known ones in case only: they are other members, and do
// not replace the known ones. They stand after them, where a parser that does not tell them apart lets them win.
func rarIgnoredChecks() []suite.Check {
	cases := []struct{ name, detail string }{
		{"Match-beside", `{"type":TYPE,"actions":["publish"],"topics":[{"match":TOPIC,"Match":"*","MATCH":"*"}]}`},
		{"Topics-beside", `{"type":TYPE,"actions":["publish"],"topics":[{"match":TOPIC}],"Topics":[{"match":"*"}]}`},
		{"Actions-beside", `{"type":TYPE,"actions":["publish"],"topics":[{"match":TOPIC}]},{"type":TYPE,"actions":["fly"],"Actions":["publish"],"topics":[{"match":"*"}]}`},
		{"Type-beside", `{"type":TYPE,"actions":["publish"],"topics":[{"match":TOPIC}]},{"type":"https://example.com/other","Type":TYPE,"actions":["publish"],"topics":[{"match":"*"}]}`},
		{"Match_Type-beside", `{"type":TYPE,"actions":["publish"],"topics":[{"match":TOPIC},{"match":"https://example.com/*","match_type":"exact","Match_Type":"urlpattern"}]}`},
	}
	checks := make([]suite.Check, len(cases))
	for i, c := range cases {
		checks[i] = one("RAR-23", c.name, func(t *suite.T) {
			topic := t.Topic()
			text := strings.NewReplacer("TYPE", string(tokJSON(t, suite.DetailType)), "TOPIC", string(tokJSON(t, topic))).Replace(c.detail)
			token := t.Claims(nil)
			delete(token.Claims, "authorization_details")
			token.RawClaims = tokAppended(t, token.Claims, `"authorization_details":[`+text+`]`)
			compact := t.Sign(suite.Publisher, token)
			rarPublish(t, "what the known members grant", compact, topic, 200)
			rarPublish(t, "what a member of another name would grant", compact, t.Topic(), 403)
			t.Observed("only the known members count")
		})
	}
	return checks
}

// rarExactChecks are those of a matcher without match_type: what looks like a pattern is a text.
func rarExactChecks() []suite.Check {
	cases := []struct{ name, pattern, matched string }{
		{"named-group", "/:id", "/1"},
		{"wildcard-at-the-end", "/*", "/1"},
		{"wildcard", "*", "1"},
		{"regexp-group", `/(\d+)`, "/1"},
		{"braces", "{/x}?", "/x"},
		{"template", "/{id}", "/1"},
	}
	checks := make([]suite.Check, 0, 2*len(cases))
	for _, c := range cases {
		checks = append(checks, one("RAR-16", c.name, func(t *suite.T) {
			folder := t.Folder()
			token := rarPublisher(t, suite.Details(suite.CanPublish(suite.Matcher{"match": folder + c.pattern})))
			rarPublish(t, "its own text", token, folder+c.pattern, 200)
			rarPublish(t, "what it would match as a pattern", token, folder+c.matched, 403)
			t.Observed("it grants its own text only")
		}), one("RAR-16", c.name+"-subscribe", func(t *suite.T) {
			folder := t.Folder()
			token := rarSubscriber(t, suite.Details(suite.CanSubscribe(suite.Matcher{"match": folder + c.pattern})))
			rarReads(t, "a matcher without match_type", token, []string{folder + c.pattern}, []string{folder + c.matched})
			t.Observed("it grants its own text only")
		}))
	}
	return checks
}

// rarWildcardChecks are those of *, in every type, on topics of every kind.
func rarWildcardChecks() []suite.Check {
	wildcards := []struct {
		name    string
		matcher suite.Matcher
	}{
		{"absent", suite.Matcher{"match": "*"}},
		{"exact", suite.Matcher{"match": "*", "match_type": "exact"}},
		{"urlpattern", suite.Matcher{"match": "*", "match_type": "urlpattern"}},
	}
	topics := []struct{ name, before, after string }{
		{"URL", "https://example.com/", "/x?y#z"},
		{"relative", "/", "/1"},
		{"words", "plain words ", ""},
		{"URN", "urn:example:", ""},
		{"data", "data:,", ""},
		{"other-scheme", "foo://host/", ""},
		{"unparseable-host", "https://[bad/", ""},
		{"unparseable-port", "https://h.example:99999/", ""},
		{"letters", "тема/é/", ""},
	}
	var checks []suite.Check
	for _, w := range wildcards {
		for _, k := range topics {
			checks = append(checks, one("RAR-19", w.name+"-"+k.name, func(t *suite.T) {
				topic := k.before + t.Unique("w") + k.after
				rarPublish(t, "the wildcard", rarPublisher(t, suite.Details(suite.CanPublish(w.matcher))), topic, 200)
				t.Observed("accepted")
			}))
		}
		checks = append(checks, one("RAR-19", w.name+"-subscribe", func(t *suite.T) {
			all := make([]string, len(topics))
			for i, k := range topics {
				all[i] = k.before + t.Unique("w") + k.after
			}
			rarReads(t, "the wildcard", rarSubscriber(t, suite.Details(suite.CanSubscribe(w.matcher))), all, nil)
			t.Observed("private updates of %d kinds of topics were delivered", len(all))
		}), one("RAR-19", w.name+"-alternates", func(t *suite.T) {
			token := rarPublisher(t, suite.Details(suite.CanPublish(w.matcher)))
			tokAsk(t, "publishing with the wildcard", suite.Bearer(t.Post(rarForm(t.Topic(), "https://[bad/"+t.Unique("w"), t.Unique("w"))), token), 200)
			t.Observed("accepted")
		}))
	}
	kind := func(value any) func(suite.Detail) any {
		return func(suite.Detail) any {
			return suite.Details(suite.CanPublish(suite.Matcher{"match": "*", "match_type": value}))
		}
	}
	return slices.Concat(checks, rarTable("RAR-20", []rarCase{
		{"unknown", kind("regex")},
		{"Exact", kind("Exact")},
		{"empty", kind("")},
		{"null", kind(nil)},
		{"number", kind(1)},
		{"array", kind([]string{"exact"})},
	}, 200, 401))
}

// rarOddMatcherChecks are those of matchers that no topic can equal: they grant nothing, or make the token invalid
// (reading 18). In particular they do not grant what is left when the odd character is dropped.
func rarOddMatcherChecks() []suite.Check {
	odd := []struct {
		name string
		of   func(topic string) any
	}{
		{"U+200B", func(s string) any { return s + "\u200b" }},
		{"U+00AD", func(s string) any { return s + "\u00ad" }},
		{"U+FEFF", func(s string) any { return "\ufeff" + s }},
		{"U+0000", func(s string) any { return s + "\x00" }},
		{"U+0000-and-more", func(s string) any { return s + "\x00x" }},
		{"line-feed", func(s string) any { return s + "\n" }},
		{"U+007F", func(s string) any { return s + "\u007f" }},
		{"U+0085", func(s string) any { return s + "\u0085" }},
		{"wildcard-and-U+0000", func(string) any { return "*\x00" }},
		{"wildcard-and-U+200B", func(string) any { return "*\u200b" }},
		{"wildcard-and-line-feed", func(string) any { return "*\n" }},
		{"empty", func(string) any { return "" }},
	}
	var checks []suite.Check
	for _, o := range odd {
		cases := []rarCase{{o.name, func(d suite.Detail) any {
			topic, _ := rarMatcher(d)["match"].(string)
			rarMatcher(d)["match"] = o.of(topic)
			return suite.Details(d)
		}}}
		checks = append(checks, rarTable("RAR-29", cases, 401, 403)...)
	}
	return append(
		checks,
		rarTable("RAR-29", []rarCase{{"empty-urlpattern", func(d suite.Detail) any {
			rarMatcher(d)["match"], rarMatcher(d)["match_type"] = "", "urlpattern"
			return suite.Details(d)
		}}}, 401, 403)[0],
		one("RAR-29", "lone-surrogate", func(t *suite.T) {
			// It can be written in JSON as an escape only, and is U+FFFD to many parsers, a topic like any other.
			topic := t.Topic()
			rarPublish(t, "a right detail", rarPublisher(t, suite.Details(rarRight(topic))), topic, 200)
			token := t.Claims(nil)
			token.RawClaims = []byte(strings.Replace(string(tokJSON(t, t.Claims(suite.Details(rarRight(topic+"SURROGATE"))).Claims)), "SURROGATE", `\ud800`, 1))
			resp := rarPublish(t, "a lone surrogate", t.Sign(suite.Publisher, token), topic, 401, 403)
			t.Observed("right detail accepted, then %s", tokAnswer(resp))
		}),
		one("RAR-29", "U+200B-subscribe", func(t *suite.T) {
			topic := t.Topic()
			rarReads(t, "a right detail", rarSubscriber(t, suite.Details(suite.CanSubscribe(suite.Exact(topic)))), []string{topic}, nil)
			token := rarSubscriber(t, suite.Details(suite.CanSubscribe(suite.Exact(topic+"\u200b"))))
			resp := tokAsk(t, "subscribing with an odd matcher", suite.Bearer(t.Get(wire.Form("match", topic)), token), 200, 401, 403)
			if resp.Status == 200 {
				rarReads(t, "an odd matcher", token, nil, []string{topic})
			}
			t.Observed("subscribing is answered %d", resp.Status)
		}),
	)
}
