package checks

import (
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// subMatchers are the matcher parameters.
func subMatchers() []string { return []string{"match", "match_exact", "match_urlpattern"} }

// subParserChecks are about how a query becomes names and values. Topic and matcher have a name of their own in them, so
// that the written query stands as the case says.
func subParserChecks() []suite.Check {
	var checks []suite.Check
	// Within written and the topics, NAME stands for the unique name. Of the topics, only the first is selected.
	reads := func(id, name, written string, topics ...string) {
		checks = append(checks, one(id, name, func(t *suite.T) {
			unique := t.Unique("t")
			s := t.Listen(subNamed(written, unique))
			for _, other := range topics[1:] {
				subPublish(t, subNamed(other, unique))
			}
			s.Want(subPublish(t, subNamed(topics[0], unique)))
		}))
	}
	reads("SUB-15", "plus", "match=a+b-NAME", "a b-NAME", "a+b-NAME")
	reads("SUB-15", "encoded-plus", "match=a%2Bb-NAME", "a+b-NAME", "a b-NAME")
	reads("SUB-15", "encoded-space", "match=a%20b-NAME", "a b-NAME", "a%20b-NAME", "a+b-NAME")
	reads("SUB-15", "spaces-around", "match=+NAME+", " NAME ", "NAME", " NAME", "NAME ")
	reads("SUB-15", "decoded-once", "match=a%2541%252Bb-NAME", "a%41%2Bb-NAME", "aA+b-NAME", "aA%2Bb-NAME")
	reads("SUB-15", "lower-case-hex", "match=a%c3%a9%2fb-NAME", "aé/b-NAME")
	reads("SUB-15", "match_exact", "match_exact=a+b-NAME", "a b-NAME", "a+b-NAME")
	reads("SUB-15", "match_urlpattern", "match_urlpattern=https://e.example/NAME/:a%2B", "https://e.example/NAME/x/y", "https://e.example/NAME")

	reads("SUB-16", "in-value", "match=a;b-NAME", "a;b-NAME", "a")
	reads("SUB-16", "before-a-matcher", "match=NAME;match=b-NAME", "NAME;match=b-NAME", "NAME", "b-NAME")
	reads("SUB-16", "before-a-reserved-name", "x=1;match_nope=2&match=NAME", "NAME")
	reads("SUB-16", "in-other-value", "x=1;match=b-NAME&match=NAME", "NAME", "b-NAME")
	reads("SUB-16", "alone", ";&match=NAME;", "NAME;", "NAME")

	reads("SUB-17", "at-the-end", "match=NAME-100%", "NAME-100%", "NAME-100", "NAME-100%25")
	reads("SUB-17", "zz", "match=%zzNAME", "%zzNAME", "zzNAME", "NAME")
	reads("SUB-17", "one-digit-at-the-end", "match=NAME%4", "NAME%4", "NAME4", "NAME")
	reads("SUB-17", "second-digit-is-none", "match=NAME%4g", "NAME%4g")
	reads("SUB-17", "before-an-octet", "match=NAME%%41", "NAME%A", "NAME%%41")
	reads("SUB-17", "before-a-plus", "match=NAME%+2", "NAME% 2", "NAME%+2")

	reads("SUB-18", "in-value", "match=a=NAME", "a=NAME", "a", "NAME")
	reads("SUB-18", "at-the-start-of-value", "match==NAME", "=NAME", "NAME")
	reads("SUB-18", "at-the-end-of-value", "match=NAME==", "NAME==", "NAME", "NAME=")
	reads("SUB-18", "looks-like-a-parameter", "match=match=NAME", "match=NAME", "NAME")

	reads("SUB-19", "around", "&&match=NAME&", "NAME")
	reads("SUB-19", "between", "match=NAME&&&match=b-NAME", "b-NAME")
	reads("SUB-19", "encoded-ampersand-is-none", "match=NAME%26match=b-NAME", "NAME&match=b-NAME", "NAME", "b-NAME")
	return checks
}

func subNamed(text, unique string) string { return strings.ReplaceAll(text, "NAME", unique) }

// subValueOf gives a value for a matcher parameter that is fine but for what is put into it.
func subValueOf(t *suite.T, parameter, encoded string) string {
	if parameter == "match_urlpattern" {
		return parameter + "=" + wire.Escape("https://e.example/"+t.Unique("a")) + encoded
	}
	return parameter + "=" + t.Unique("a") + encoded
}

// subValueChecks are about the characters of matcher values: the named ones in each parameter, and in what the matrix
// names for topics.
func subValueChecks() []suite.Check {
	var checks []suite.Check
	refused := func(id, name, parameter, encoded string) {
		checks = append(checks, one(id, name, func(t *suite.T) { t.Want(subGet(t, subValueOf(t, parameter, encoded)), 400) }))
	}
	for _, parameter := range subMatchers() {
		for _, o := range topicNotUTF8() {
			refused("SUB-26", parameter+"-"+o.name, parameter, o.encoded)
		}
	}
	points := []struct {
		id    string
		named []rune
		rest  []rune
	}{
		{"SUB-27", topicC0(), topicOtherControls(0x00, 0x1F, topicC0())},
		{"SUB-28", append(topicC1(), 0x7F), topicOtherControls(0x80, 0x9F, topicC1())},
		{"SUB-29", topicFormats(), topicOtherFormats()},
	}
	for _, p := range points {
		for _, parameter := range subMatchers() {
			for _, c := range p.named {
				refused(p.id, parameter+"-"+topicPoint(c), parameter, wire.Escape(string(c))+"b")
			}
		}
		checks = append(checks, one(p.id, "match-all-others", func(t *suite.T) {
			topicSweep(t, p.rest, func(c rune) wire.Request { return subGet(t, subValueOf(t, "match", wire.Escape(string(c))+"b")) })
		}))
	}
	return append(checks, subEdgeChecks()...)
}

// subEdgeChecks have forbidden characters where trimming, URL parsing or removing a byte order mark would lose them.
func subEdgeChecks() []suite.Check {
	var checks []suite.Check
	edges := []struct {
		id string
		c  rune
	}{{"SUB-27", 0x00}, {"SUB-27", 0x09}, {"SUB-27", 0x0A}, {"SUB-27", 0x0D}, {"SUB-28", 0x85}, {"SUB-28", 0x7F}, {"SUB-29", 0xFEFF}}
	for _, parameter := range subMatchers() {
		for _, e := range edges {
			encoded := wire.Escape(string(e.c))
			checks = append(checks,
				one(e.id, parameter+"-leading-"+topicPoint(e.c), func(t *suite.T) {
					t.Want(subGet(t, parameter+"="+encoded+wire.Escape(t.Topic())), 400)
				}),
				one(e.id, parameter+"-trailing-"+topicPoint(e.c), func(t *suite.T) {
					t.Want(subGet(t, parameter+"="+wire.Escape(t.Topic())+encoded), 400)
				}),
			)
		}
	}
	for _, e := range []struct{ id, name, encoded string }{
		{"SUB-26", "match-FF", "%FF"},
		{"SUB-27", "match-U+001F", "%1F"},
		{"SUB-28", "match-U+0085", "%C2%85"},
		{"SUB-29", "match-U+200B", "%E2%80%8B"},
	} {
		checks = append(checks, one(e.id, e.name+"-in-every-place", func(t *suite.T) {
			topicEverywhere(t, e.encoded, func(value string) wire.Request { return subGet(t, "match="+value) })
		}))
	}
	return append(checks,
		one("SUB-29", "match_urlpattern-U+FEFF-alone", func(t *suite.T) {
			t.Want(subGet(t, "match_urlpattern=https://e.example/%EF%BB%BF"), 400)
		}),
		// The wildcard is the whole value; nothing may be dropped to make it one.
		one("SUB-29", "wildcard-and-U+200B", func(t *suite.T) { t.Want(subGet(t, "match=*%E2%80%8B"), 400) }),
		one("SUB-27", "wildcard-and-U+0000", func(t *suite.T) { t.Want(subGet(t, "match=*%00"), 400) }),
	)
}

// subPatternChecks have patterns that are not well-formed: as they are, which makes them relative, and on an origin.
func subPatternChecks() []suite.Check {
	patterns := []struct{ name, pattern string }{
		{"open-group", "/("},
		{"open-brace", "/{a"},
		{"same-name-twice", "/:x/:x"},
		{"stray-modifier", "/+"},
		{"second-modifier", "/{a}++"},
		{"empty-group", "/()"},
		{"closing-brace", "/a}"},
		{"name-missing", "/:"},
		{"backslash-at-the-end", `/a\`},
		{"group-in-group", "/((a))"},
		{"letter-beyond-ASCII-in-group", "/(é)"},
	}
	var checks []suite.Check
	refused := func(name, pattern string) {
		checks = append(checks, one("SUB-30", name, func(t *suite.T) {
			t.Want(subGet(t, "match_urlpattern="+wire.Escape(pattern)), 400)
		}))
	}
	for _, p := range patterns {
		refused("relative-"+p.name, p.pattern)
		refused("absolute-"+p.name, "https://e.example"+p.pattern)
	}
	refused("open-group-alone", "(")
	refused("open-group-in-host", "https://(e.example/")
	refused("open-group-in-query", "https://e.example/?(")
	refused("open-group-in-fragment", "https://e.example/#(")
	refused("port-too-large", "https://e.example:99999/")
	refused("space-in-host", "https://e example/")
	return checks
}

// subWholeChecks have one bad matcher beside a good one.
func subWholeChecks() []suite.Check {
	bad := []struct{ name, parameter string }{
		{"U+0000", "match=a%00"},
		{"U+0085", "match=a%C2%85"},
		{"U+007F", "match=a%7F"},
		{"U+200B", "match=a%E2%80%8B"},
		{"FF", "match=%FF"},
		{"match_exact-U+0000", "match_exact=a%00"},
		{"match_urlpattern-U+0000", "match_urlpattern=https://e.example/a%00"},
		{"match_urlpattern-ill-formed", "match_urlpattern=https://e.example/%28"},
	}
	var checks []suite.Check
	for _, b := range bad {
		checks = append(checks,
			one("SUB-31", b.name+"-after", func(t *suite.T) { t.Want(subGet(t, subMatch(t.Topic())+"&"+b.parameter), 400) }),
			one("SUB-31", b.name+"-before", func(t *suite.T) { t.Want(subGet(t, b.parameter+"&"+subMatch(t.Topic())), 400) }),
			one("SUB-31", b.name+"-beside-wildcard", func(t *suite.T) { t.Want(subGet(t, "match=*&"+b.parameter), 400) }),
		)
	}
	return checks
}
