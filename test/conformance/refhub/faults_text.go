package refhub

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// octetFaults accept what is no UTF-8.
func octetFaults() []entry {
	kinds := []struct{ word, text, octets, named string }{
		{"any-octets", "any octets", "", "stray-continuation"},
		{"stray-octet", "the octet FF", "\xFF", "FF"},
		{"truncated-sequence", "a sequence that is cut off", "\xC3", "C3"},
		{"overlong-form", "an overlong form", "\xC0\xAF", "C0-AF"},
		{"overlong-null", "an overlong U+0000", "\xC0\x80", "overlong-NUL"},
		{"encoded-surrogate", "an encoded surrogate", "\xED\xA0\x80", "ED-A0-80"},
		{"surrogate-pair", "an encoded pair of surrogates", "\xED\xA0\xBD\xED\xB8\x80", "surrogate-pair"},
		{"sequence-beyond-unicode", "a sequence beyond U+10FFFF", "\xF5\x80\x80\x80", "F5-80-80-80"},
	}
	checks := map[place]string{inTopic: "TOPIC-01/", inMatcher: "SUB-26/match-"}
	var faults []entry
	for _, where := range []place{inTopic, inMatcher} {
		for _, k := range kinds {
			faults = append(faults, entry{
				Fault{string(where) + "-" + k.word + "-accepted", checks[where] + k.named, "Accepts " + k.text + " in a " + string(where) + "."},
				func(p *planted) { p.octets = octets{where, k.octets} },
			})
		}
	}
	return faults
}

// namedCharacter is a character, or a range, that a hub may judge wrongly.
type namedCharacter struct {
	word      string
	low, high rune
	named     rune // in the check, when low is not
}

func forbiddenCharacters() []namedCharacter {
	return []namedCharacter{
		{"any-c0", 0x00, 0x1F, 0},
		{"null", 0x00, 0x00, 0},
		{"tab", 0x09, 0x09, 0},
		{"line-feed", 0x0A, 0x0A, 0},
		{"carriage-return", 0x0D, 0x0D, 0},
		{"escape", 0x1B, 0x1B, 0},
		{"unit-separator", 0x1F, 0x1F, 0},
		{"delete", 0x7F, 0x7F, 0},
		{"any-c1", 0x80, 0x9F, 0},
		{"padding-character", 0x80, 0x80, 0},
		{"next-line", 0x85, 0x85, 0},
		{"program-command", 0x9F, 0x9F, 0},
		{"any-format-character", 0xA0, 0x10FFFF, 0xAD},
		{"soft-hyphen", 0xAD, 0xAD, 0},
		{"arabic-number-sign", 0x600, 0x600, 0},
		{"arabic-letter-mark", 0x61C, 0x61C, 0},
		{"arabic-end-of-ayah", 0x6DD, 0x6DD, 0},
		{"mongolian-vowel-separator", 0x180E, 0x180E, 0},
		{"zero-width-space", 0x200B, 0x200B, 0},
		{"zero-width-joiner", 0x200D, 0x200D, 0},
		{"left-to-right-mark", 0x200E, 0x200E, 0},
		{"right-to-left-override", 0x202E, 0x202E, 0},
		{"word-joiner", 0x2060, 0x2060, 0},
		{"left-to-right-isolate", 0x2066, 0x2066, 0},
		{"byte-order-mark", 0xFEFF, 0xFEFF, 0},
		{"interlinear-annotation", 0xFFF9, 0xFFF9, 0},
		{"kaithi-number-sign", 0x110BD, 0x110BD, 0},
		{"shorthand-format", 0x1BCA0, 0x1BCA0, 0},
		{"musical-beam", 0x1D173, 0x1D173, 0},
		{"language-tag", 0xE0001, 0xE0001, 0},
		{"tag-letter", 0xE0041, 0xE0041, 0},
	}
}

// characterFaults accept a forbidden character in one place, or refuse a legal one.
func characterFaults() []entry {
	var faults []entry
	add := func(where place, name, check, does string, c namedCharacter, refused bool) {
		faults = append(faults, entry{Fault{name, check, does}, func(p *planted) {
			p.character = character{where, refused, c.low, c.high}
		}})
	}
	for _, where := range []place{inTopic, inMatcher, inID, inType} {
		for _, c := range forbiddenCharacters() {
			if (c.low == 0x6DD || c.low == 0x1BCA0) && (where == inID || where == inType) {
				continue // named for topics and matchers only
			}
			add(where, string(where)+"-"+c.word+"-accepted", characterRow(where, c.low)+fmt.Sprintf("U+%04X", max(c.low, c.named)),
				fmt.Sprintf("Accepts %s (U+%04X) in a %s.", strings.ReplaceAll(c.word, "-", " "), c.low, where), c, false)
		}
	}
	legal := []namedCharacter{
		{"no-break-space", 0xA0, 0xA0, 0},
		{"line-separator", 0x2028, 0x2028, 0},
		{"paragraph-separator", 0x2029, 0x2029, 0},
		{"ideographic-space", 0x3000, 0x3000, 0},
		{"variation-selector", 0xFE0F, 0xFE0F, 0},
		{"combining-mark", 0x300, 0x36F, 0x301},
		{"unassigned-character", 0x378, 0x378, 0},
		{"private-use-character", 0xE000, 0xF8FF, 0},
		{"emoji", 0x1F600, 0x1F64F, 0},
		{"replacement-character", 0xFFFD, 0xFFFD, 0},
		{"noncharacter", 0xFFFE, 0xFFFE, 0},
		{"last-plane", 0x100000, 0x10FFFF, 0x10FFFD},
		{"tilde", '~', '~', 0},
		{"space", ' ', ' ', 0},
		{"hangul-filler", 0x115F, 0x3164, 0},
	}
	for _, c := range []struct {
		where            place
		check            string
		word, characters string
		low, high        rune
	}{
		{inID, "PUB-22/letters-beyond-ASCII", "not-ascii", "characters beyond ASCII", 0xA1, 0x10FFFF},
		{inID, "PUB-22/inner-space", "space", "spaces", ' ', ' '},
		{inID, "PUB-22/percent", "percent", "percent signs", '%', '%'},
		{inID, "PUB-22/emoji", "emoji", "emoji", 0x1F300, 0x1FAFF},
		{inID, "PUB-22/U+00A0", "no-break-space", "no-break spaces", 0xA0, 0xA0},
		{inID, "PUB-22/U+2028", "line-separator", "U+2028", 0x2028, 0x2028},
		{inID, "PUB-22/punctuation", "quote", "quotes", '"', '"'},
		{inID, "PUB-19/inside-is-legal", "hash", "hash signs", '#', '#'},
		{inType, "SSE-05/type-non-ASCII", "not-ascii", "characters beyond ASCII", 0xA1, 0x10FFFF},
		{inType, "SSE-05/type-with-spaces", "space", "spaces", ' ', ' '},
		{inType, "SSE-05/type-with-colon", "colon", "colons", ':', ':'},
		{inMatcher, "SUB-15/spaces-around", "space", "spaces", ' ', ' '},
		{inMatcher, "SUB-17/zz", "percent", "percent signs", '%', '%'},
	} {
		add(c.where, string(c.where)+"-"+c.word+"-refused", c.check, "Refuses "+c.characters+" in a "+string(c.where)+".", namedCharacter{low: c.low, high: c.high}, true)
	}
	for _, c := range legal {
		add(inTopic, "topic-"+c.word+"-refused", fmt.Sprintf("TOPIC-06/U+%04X", max(c.low, c.named)),
			fmt.Sprintf("Refuses %s (U+%04X) in a topic.", strings.ReplaceAll(c.word, "-", " "), c.low), c, true)
	}
	return faults
}

func characterRow(where place, c rune) string {
	switch {
	case where == inID:
		return "PUB-21/"
	case where == inType:
		return "PUB-26/"
	case where == inMatcher && c < 0x20:
		return "SUB-27/match-"
	case where == inMatcher && c <= 0x9F:
		return "SUB-28/match-"
	case where == inMatcher:
		return "SUB-29/match-"
	case c < 0x20:
		return "TOPIC-02/"
	case c == 0x7F:
		return "TOPIC-04/"
	case c <= 0x9F:
		return "TOPIC-03/"
	}
	return "TOPIC-05/"
}

// retryFaults accept what is not made of ASCII digits, or refuse what is (PUB-28).
func retryFaults() []entry {
	add := func(name, check, does, expression string) entry {
		return entry{Fault{name, check, does}, func(p *planted) { p.retry = retryFault{expression} }}
	}
	return []entry{
		add("any-retry-accepted", "PUB-28/arabic-digit", "Accepts any retry.", `^`),
		add("negative-retry-accepted", "PUB-28/minus", "Accepts a negative retry.", `^-?[0-9]+$`),
		add("signed-retry-accepted", "PUB-28/plus", "Accepts a plus sign before a retry.", `^\+?[0-9]+$`),
		add("decimal-retry-accepted", "PUB-28/fraction", "Accepts a retry with a fraction.", `^[0-9]+(\.[0-9]+)?$`),
		add("exponent-retry-accepted", "PUB-28/exponent", "Accepts a retry with an exponent.", `^[0-9]+(e[0-9]+)?$`),
		add("hexadecimal-retry-accepted", "PUB-28/hexadecimal", "Accepts a hexadecimal retry.", `^(0x)?[0-9]+$`),
		add("full-width-retry-accepted", "PUB-28/fullwidth-digit", "Accepts full-width digits as a retry.", `^[0-9０-９]+$`),
		add("arabic-retry-accepted", "PUB-28/arabic-digit", "Accepts Arabic-Indic digits as a retry.", `^[0-9٠-٩]+$`),
		add("any-digit-retry-accepted", "PUB-28/arabic-digit", "Accepts digits of any script as a retry.", `^\pN+$`),
		add("padded-retry-accepted", "PUB-28/trailing-space", "Accepts a retry with a space behind it.", `^[0-9]+ ?$`),
		add("leading-space-retry-accepted", "PUB-28/leading-space", "Accepts a retry with a space before it.", `^ ?[0-9]+$`),
		add("numeric-prefix-retry-accepted", "PUB-28/fraction", "Reads the digits that a retry begins with.", `^[0-9]+`),
		add("leading-zero-retry-refused", "PUB-28/007-is-legal", "Refuses a retry with leading zeros.", `^(0|[1-9][0-9]*)$`),
		add("zero-retry-refused", "PUB-28/0-is-legal", "Refuses a retry of zero.", `^0*[1-9][0-9]*$`),
		add("short-retry-only", "PUB-28/1500-is-legal", "Refuses a retry of more than three digits.", `^[0-9]{1,3}$`),
	}
}

// dataFaults change data (SSE-04, SSE-09, SSE-10, PUB-13, PUB-14).
func dataFaults() []entry {
	add := func(name, check, does string, change func(string) string) entry {
		return entry{Fault{name, check, does}, func(p *planted) { p.data = dataFault{change} }}
	}
	drop := func(s string) func(string) string {
		return func(data string) string { return strings.ReplaceAll(data, s, "") }
	}
	breaks := func(s string) func(string) string {
		return func(data string) string { return strings.ReplaceAll(data, s, "\n") }
	}
	return []entry{
		add("data-null-dropped", "SSE-04/NUL", "Drops U+0000 from data.", drop("\x00")),
		add("data-cut-at-null", "SSE-04/NUL", "Cuts data at U+0000.", func(s string) string { before, _, _ := strings.Cut(s, "\x00"); return before }),
		add("data-byte-order-mark-dropped", "SSE-04/BOM", "Drops byte order marks from data.", drop("\uFEFF")),
		add("data-line-separator-breaks", "SSE-04/U+2028", "Breaks lines of data at U+2028.", breaks("\u2028")),
		add("data-next-line-breaks", "SSE-04/U+0085", "Breaks lines of data at U+0085.", breaks("\u0085")),
		add("data-vertical-tab-breaks", "SSE-04/U+000B", "Breaks lines of data at U+000B.", breaks("\v")),
		add("data-escaped-for-html", "SSE-04/markup", "Escapes data for HTML.", escapeHTML),
		add("data-cut-at-32-kib", "SSE-04/64-KiB", "Cuts data at 32 KiB.", func(s string) string { return s[:min(len(s), 32<<10)] }),
		add("data-ascii-only", "SSE-04/unicode", "Replaces what is not ASCII in data.", func(s string) string {
			return strings.Map(func(r rune) rune { return map[bool]rune{true: r, false: '?'}[r <= unicode.MaxASCII] }, s)
		}),
		add("data-cut-at-colon", "SSE-04/colon", "Drops what stands before a colon at the start of data.", func(s string) string { return strings.TrimPrefix(s, ":") }),
		add("data-cut-at-space", "PUB-01/dispatched", "Cuts data at the first space.", func(s string) string { before, _, _ := strings.Cut(s, " "); return before }),
		add("data-trimmed", "SSE-10/lines-of-spaces", "Trims spaces around data.", func(s string) string { return strings.Trim(s, " \t") }),
		add("data-lines-trimmed", "SSE-10/lines-of-spaces", "Trims spaces before each line of data.", func(s string) string { return regexp.MustCompile(`(?m)^[ \t]+`).ReplaceAllString(s, "") }),
		add("data-tab-becomes-spaces", "SSE-10/tab", "Replaces tabs in data.", func(s string) string { return strings.ReplaceAll(s, "\t", "    ") }),
		add("data-final-break-dropped", "SSE-09/trailing-CR", "Drops line breaks at the end of data.", func(s string) string { return strings.TrimRight(s, "\r\n") }),
		add("data-final-spaces-dropped", "SSE-04/trailing-space", "Drops spaces at the end of data.", func(s string) string { return strings.TrimRight(s, " ") }),
		add("data-normalised", "SSE-04/decomposed", "Composes characters in data.", func(s string) string { return strings.ReplaceAll(s, "e\u0301", "é") }),
		add("data-blank-lines-joined", "SSE-09/empty-lines", "Joins several empty lines of data.", func(s string) string { return regexp.MustCompile(`\n{2,}`).ReplaceAllString(s, "\n\n") }),
		add("data-first-break-dropped", "SSE-09/leading-CRLF", "Drops line breaks at the start of data.", func(s string) string { return strings.TrimLeft(s, "\r\n") }),
	}
}

// nameFaults ignore reserved parameter names instead of refusing them (SUB-12, SUB-23, SUB-24).
func nameFaults() []entry {
	add := func(name, check, does string, ignored func(string) bool) entry {
		return entry{Fault{name, check, does}, func(p *planted) { p.names = nameFault{ignored} }}
	}
	reserved := func(name string) bool { return strings.HasPrefix(strings.ToLower(name), "match") }
	return []entry{
		add("only-match-underscore-reserved", "SUB-24/matches", "Ignores names that begin with match but not with match_.", func(n string) bool { return reserved(n) && !strings.HasPrefix(n, "match_") }),
		add("reserved-names-case-sensitive", "SUB-23/Match", "Ignores names whose prefix is match in another case.", func(n string) bool { return reserved(n) && !strings.HasPrefix(n, "match") }),
		add("upper-case-prefix-ignored", "SUB-23/MATCH", "Ignores names that begin with MATCH.", func(n string) bool { return strings.HasPrefix(n, "MATCH") }),
		add("reserved-names-ignored", "SUB-24/match_nope", "Ignores reserved names that are no matcher's.", reserved),
		add("brackets-ignored", "SUB-24/match[]", "Ignores names with brackets.", func(n string) bool { return strings.ContainsAny(n, "[]") }),
		add("hyphened-names-ignored", "SUB-24/match-exact", "Ignores names with a hyphen.", func(n string) bool { return strings.HasPrefix(n, "match-") }),
		add("dotted-names-ignored", "SUB-24/match.x", "Ignores names with a dot.", func(n string) bool { return strings.HasPrefix(n, "match.") }),
		add("empty-suffix-ignored", "SUB-24/match_", "Ignores match_ without a type.", func(n string) bool { return n == "match_" }),
		add("longer-types-ignored", "SUB-24/match_exact_", "Ignores types that begin with a known one.", func(n string) bool {
			return strings.HasPrefix(n, "match_exact") || strings.HasPrefix(n, "match_urlpattern")
		}),
		add("odd-octets-in-names-ignored", "SUB-24/match-FF", "Ignores names with other octets than ASCII.", func(n string) bool { return strings.ContainsFunc(n, func(r rune) bool { return r > 0x7E || r < 0x20 }) }),
		add("spaces-in-names-ignored", "SUB-24/match-space", "Ignores names with a space.", func(n string) bool { return strings.Contains(n, " ") }),
		add("types-of-other-case-ignored", "SUB-12/match_Exact", "Ignores types in another case.", func(n string) bool { return n != strings.ToLower(n) }),
	}
}
