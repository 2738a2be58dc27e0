package checks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// topicPoint names a code point as the matrix does.
func topicPoint(c rune) string { return fmt.Sprintf("U+%04X", c) }

// topicOctets are octets that are not UTF-8, percent-encoded: what the matrix names, and more of each kind.
type topicOctets struct{ name, encoded string }

func topicNotUTF8() []topicOctets {
	return []topicOctets{
		{"FF", "%FF"},
		{"C3", "%C3"},
		{"C0-AF", "%C0%AF"},
		{"ED-A0-80", "%ED%A0%80"},
		{"F5-80-80-80", "%F5%80%80%80"},
		{"stray-continuation", "%80"},
		{"truncated-before-ASCII", "%C3%28"},
		{"truncated-3-of-4", "%F0%9F%98"},
		{"overlong-3", "%E0%80%AF"},
		{"overlong-4", "%F0%80%80%AF"},
		{"overlong-NUL", "%C0%80"},
		{"low-surrogate", "%ED%BF%BF"},
		{"surrogate-pair", "%ED%A0%BD%ED%B8%80"},
		{"beyond-U+10FFFF", "%F4%90%80%80"},
	}
}

// topicC0 are the controls that the matrix names for topics, and their neighbours: all others are in topicOtherControls.
func topicC0() []rune { return []rune{0x00, 0x09, 0x0A, 0x0D, 0x1B, 0x1F} }

func topicC1() []rune { return []rune{0x80, 0x85, 0x9F} }

// topicOtherControls are the controls from first to last that are not named.
func topicOtherControls(first, last rune, named []rune) []rune {
	var points []rune
	for c := first; c <= last; c++ {
		if !slices.Contains(named, c) {
			points = append(points, c)
		}
	}
	return points
}

// topicFormats are the characters of general category Cf that the matrix names.
func topicFormats() []rune {
	return []rune{
		0xAD, 0x600, 0x61C, 0x6DD, 0x180E, 0x200B, 0x200D, 0x200E, 0x202E, 0x2060, 0x2066, 0xFEFF, 0xFFF9,
		0x110BD, 0x1BCA0, 0x1D173, 0xE0001, 0xE0041,
	}
}

// topicOtherFormats are all other characters of general category Cf since Unicode 15. It is a table of its own, because
// what the suite's compiler takes for Cf is not what the protocol cites.
func topicOtherFormats() []rune {
	ranges := [][2]rune{
		{0xAD, 0xAD},
		{0x600, 0x605},
		{0x61C, 0x61C},
		{0x6DD, 0x6DD},
		{0x70F, 0x70F},
		{0x890, 0x891},
		{0x8E2, 0x8E2},
		{0x180E, 0x180E},
		{0x200B, 0x200F},
		{0x202A, 0x202E},
		{0x2060, 0x2064},
		{0x2066, 0x206F},
		{0xFEFF, 0xFEFF},
		{0xFFF9, 0xFFFB},
		{0x110BD, 0x110BD},
		{0x110CD, 0x110CD},
		{0x13430, 0x1343F},
		{0x1BCA0, 0x1BCA3},
		{0x1D173, 0x1D17A},
		{0xE0001, 0xE0001},
		{0xE0020, 0xE007F},
	}
	var points []rune
	for _, r := range ranges {
		points = append(points, topicOtherControls(r[0], r[1], topicFormats())...)
	}
	return points
}

// topicPost is a publication of these topics with tok(publish *), whose data is data.
func topicPost(t *suite.T, data string, topics ...string) wire.Request {
	pairs := []string{"data", data}
	for _, topic := range topics {
		pairs = append(pairs, "topic", topic)
	}
	return suite.Bearer(t.Post(wire.Form(pairs...)), t.PublishAll())
}

// topicSweep says that each of these characters in what request makes is answered with 400. It sends many requests, so
// it notes only what went wrong.
func topicSweep(t *suite.T, points []rune, request func(c rune) wire.Request) {
	var wrong []string
	for _, c := range points {
		if resp := t.Do(request(c)); resp.Status != 400 {
			wrong = append(wrong, fmt.Sprintf("%s: %d", topicPoint(c), resp.Status))
		}
	}
	if len(wrong) > 0 {
		t.Fail("%d of %d characters were not answered with 400: %v", len(wrong), len(points), wrong[:min(len(wrong), 12)])
	}
	t.Observed("%d characters: 400", len(points))
}

// topicPlaces is how many places of a text topicEverywhere tries: more than any loop over several octets at once has.
const topicPlaces = 40

// topicEverywhere says that encoded is answered with 400 wherever it stands in a text of this length, and at the end of
// a longer one.
func topicEverywhere(t *suite.T, encoded string, request func(value string) wire.Request) {
	text := strings.Repeat("abcdefgh", topicPlaces/8)
	for at := range topicPlaces {
		if resp := t.Do(request(text[:at] + encoded + text[at:])); resp.Status != 400 {
			t.Fail("%s after %d octets was answered with %d, wanted 400", encoded, at, resp.Status)
		}
	}
	long := strings.Repeat(text, 15)
	if resp := t.Do(request(long + encoded)); resp.Status != 400 {
		t.Fail("%s after %d octets was answered with %d, wanted 400", encoded, len(long), resp.Status)
	}
	t.Observed("%s in %d places: 400", encoded, topicPlaces+1)
}
