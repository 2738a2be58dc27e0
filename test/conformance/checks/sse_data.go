package checks

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// sseText is data as it is published, and the lines that it must be received as.
type sseText struct {
	id, name string
	data     string
	lines    []string // nil: one, the data itself
}

// sseTextCheck wants one data field for each line, with this value.
func sseTextCheck(c sseText) suite.Check {
	return one(c.id, c.name, func(t *suite.T) { sseWantData(t, sseGet(t, "data", c.data), c) })
}

func sseWantData(t *suite.T, e wire.Event, c sseText) {
	want := c.lines
	if want == nil {
		want = []string{c.data}
	}
	got := sseValues(e, "data")
	if e.Data != strings.Join(want, "\n") {
		t.Fail("data was received with a difference: %s", sseDifference(e.Data, strings.Join(want, "\n")))
	}
	if !slices.Equal(got, want) {
		t.Fail("data was received in %d data fields, wanted %d", len(got), len(want))
	}
	t.Observed("%d data fields, %d bytes", len(got), len(e.Data))
}

// sseDifference says where two texts differ.
func sseDifference(got, want string) string {
	const shown = 24
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	part := func(s string) string { return s[max(0, min(i-4, len(s))):min(len(s), i+shown)] }
	return fmt.Sprintf("%d bytes instead of %d, at byte %d %+q instead of %+q", len(got), len(want), i, part(got), part(want))
}

// sseData is SSE-04: text that is no line break arrives as it is, also what some libraries take for a line break, for
// white space, for the end of a string, or for a mark at its beginning.
func sseData() []suite.Check {
	texts := map[string]string{
		"unicode":            "Zażółć gęślą jaźń, 日本語, עברית, \U0001F680\U0001F468\u200D\U0001F469",
		"NUL":                "a\x00b",
		"NUL-only":           "\x00",
		"U+2028":             "a\u2028b",
		"U+2029":             "a\u2029b",
		"U+0085":             "a\u0085b",
		"U+000B":             "a\vb",
		"U+000C":             "a\fb",
		"U+001C":             "a\x1cb\x1db\x1eb",
		"U+001B":             "a\x1b[0mb",
		"U+007F":             "a\x7fb",
		"BOM":                "\uFEFFa",
		"BOM-inside":         "a\uFEFFb",
		"colon":              ":",
		"leading-colon":      ":a: b",
		"like-a-field":       "data: x",
		"like-an-id":         "id: x",
		"U+FFFD":             "a\uFFFDb",
		"noncharacters":      "a\uFFFEb\U0010FFFFc",
		"decomposed":         "e\u0301 \u00e9 \u212b", // normalisation would change each
		"no-break-space":     "\u00a0a\u00a0",
		"trailing-space":     "a  ",
		"form-characters":    "a=b&c=d+e%20f;g",
		"percent-encoded":    "%41%0A%zz%",
		"markup":             `<p class="x">&amp;'</p>`,
		"json":               `{"a":"b\nc","d":[1,2.50,null]}`,
		"backslashes":        `a\nb\r\\0`,
		"64-KiB":             strings.Repeat("0123456789abcdef", 4096),
		"64-KiB-wide":        "x" + strings.Repeat("\u20ac\U0001F680", 9362), // seven bytes each: some straddle any buffer's end
		"64-KiB-of-spaces":   strings.Repeat(" ", 64<<10),
		"a-single-character": "x",
	}
	var checks []suite.Check
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		checks = append(checks, sseTextCheck(sseText{id: "SSE-04", name: name, data: texts[name]}))
	}
	return append(checks,
		sseTextCheck(sseText{"SSE-04", "64-KiB-of-lines", strings.Repeat("0123456789abcde\n", 4096), append(slices.Repeat([]string{"0123456789abcde"}, 4096), "")}),
		one("SSE-04", "private", func(t *suite.T) {
			sseWantData(t, sseGet(t, "data", "a \u2028b", "private", "on"), sseText{data: "a \u2028b"})
		}),
		one("SSE-04", "several-streams", func(t *suite.T) {
			topic, text := t.Topic(), strings.Repeat("\u20ac:", 4096)
			streams := []*suite.Stream{t.ListenTo(topic), t.ListenTo(topic), t.Listen(wire.Form("match_urlpattern", topic))}
			id := t.Publish("topic", topic, "data", text)
			for _, s := range streams {
				sseWantData(t, s.Want(id)[0], sseText{data: text})
			}
		}),
		one("SSE-04", "replayed", func(t *suite.T) {
			text := "\uFEFF a\x00b\u2028 "
			sseWantData(t, sseReplayed(t, "data", text), sseText{data: text})
		}, suite.History),
	)
}

// sseReplayed publishes an update and gives the event that a subscriber who comes later receives from the history.
func sseReplayed(t *suite.T, pairs ...string) wire.Event {
	topic := t.Topic()
	before := t.Publish("topic", topic, "data", "before")
	id := t.Publish(append([]string{"topic", topic}, pairs...)...)
	return t.Listen(wire.Form("match", topic, "last_event_id", before)).Want(id)[0]
}

// sseLines is SSE-07 to SSE-11: line breaks, empty lines, leading space, and no data at all.
func sseLines() []suite.Check {
	var checks []suite.Check
	for _, c := range []sseText{
		{"SSE-07", "two-lines", "a\nb", []string{"a", "b"}},
		{"SSE-07", "many-lines", strings.TrimSuffix(strings.Repeat("line\n", 1000), "\n"), slices.Repeat([]string{"line"}, 1000)},
		{"SSE-07", "lines-with-colons", "a: b\n:c\nd:", []string{"a: b", ":c", "d:"}},
		{"SSE-07", "json", "{\n  \"a\": 1\n}", []string{"{", `  "a": 1`, "}"}},
		{"SSE-08", "CRLF-and-CR", "a\r\nb\rc", []string{"a", "b", "c"}},
		{"SSE-08", "LF-CR", "a\n\rb", []string{"a", "", "b"}},
		{"SSE-08", "CRLF", "a\r\nb", []string{"a", "b"}},
		{"SSE-08", "CR", "a\rb", []string{"a", "b"}},
		{"SSE-08", "CR-CR", "a\r\rb", []string{"a", "", "b"}},
		{"SSE-08", "CRLF-CRLF", "a\r\n\r\nb", []string{"a", "", "b"}},
		{"SSE-08", "CR-CRLF", "a\r\r\nb", []string{"a", "", "b"}},
		{"SSE-08", "CRLF-LF", "a\r\n\nb", []string{"a", "", "b"}},
		{"SSE-08", "all-mixed", "a\nb\r\nc\rd\n\re\r\r\nf", []string{"a", "b", "c", "d", "", "e", "", "f"}},
		{"SSE-08", "CRLF-far-apart", strings.Repeat(strings.Repeat("x", 1023)+"\r\n", 40) + "y", append(slices.Repeat([]string{strings.Repeat("x", 1023)}, 40), "y")},
		{"SSE-09", "trailing-LF", "a\n", []string{"a", ""}},
		{"SSE-09", "LF-only", "\n", []string{"", ""}},
		{"SSE-09", "leading-LFs", "\n\na", []string{"", "", "a"}},
		{"SSE-09", "empty-lines", "a\n\n\nb", []string{"a", "", "", "b"}},
		{"SSE-09", "trailing-LFs", "a\n\n", []string{"a", "", ""}},
		{"SSE-09", "LFs-only", "\n\n\n", []string{"", "", "", ""}},
		{"SSE-09", "trailing-CRLF", "a\r\n", []string{"a", ""}},
		{"SSE-09", "trailing-CR", "a\r", []string{"a", ""}},
		{"SSE-09", "CR-only", "\r", []string{"", ""}},
		{"SSE-09", "CRLF-only", "\r\n", []string{"", ""}},
		{"SSE-09", "leading-CRLF", "\r\na", []string{"", "a"}},
		{"SSE-10", "one-space", " a", nil},
		{"SSE-10", "each-line", "  a\n b", []string{"  a", " b"}},
		{"SSE-10", "tab", "\ta", nil},
		{"SSE-10", "space-only", " ", nil},
		{"SSE-10", "lines-of-spaces", " \n  \n", []string{" ", "  ", ""}},
		{"SSE-10", "after-CRLF-and-CR", " a\r\n b\r  c", []string{" a", " b", "  c"}},
		{"SSE-10", "ideographic-space", "\u3000a", nil},
		{"SSE-10", "space-and-colon", " : a", nil},
	} {
		checks = append(checks, sseTextCheck(c))
	}
	empty := func(name string, pairs ...string) suite.Check {
		return one("SSE-11", name, func(t *suite.T) { sseWantEmpty(t, sseGet(t, pairs...)) })
	}
	return append(checks,
		empty("empty", "data", ""),
		empty("absent"),
		empty("empty-typed", "data", "", "type", "greeting"),
		empty("absent-private", "private", "on"),
		one("SSE-08", "replayed", func(t *suite.T) {
			sseWantData(t, sseReplayed(t, "data", "a\r\n b\r\rc\n"), sseText{lines: []string{"a", " b", "", "c", ""}})
		}, suite.History),
		one("SSE-11", "absent-replayed", func(t *suite.T) { sseWantEmpty(t, sseReplayed(t)) }, suite.History),
	)
}

// sseWantEmpty wants an event that a receiver dispatches with empty data.
func sseWantEmpty(t *suite.T, e wire.Event) {
	if !e.Dispatched {
		t.Fail("the event has no data field, so no receiver dispatches it")
	}
	sseWantData(t, e, sseText{lines: []string{""}})
}
