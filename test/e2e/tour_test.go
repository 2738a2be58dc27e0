package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tourBlock is a piece of the tour: what to type, and what then appears.
type tourBlock struct {
	line    int // where it begins
	script  string
	want    string
	hasWant bool // there is a block with the output
}

// errTour says that the page cannot be run.
var errTour = errors.New("tour")

// tourBlocks takes the blocks of shell out of one section of a page in Markdown, in order. A block of text right after one of
// shell, with nothing but empty lines between them, is what it prints.
func tourBlocks(page, heading string) ([]tourBlock, error) {
	var blocks []tourBlock
	inSection, adjacent := false, false
	var fence, language string
	var content strings.Builder
	start, level := 0, len(heading)-len(strings.TrimLeft(heading, "#"))
	number := 0
	for line := range strings.Lines(page) {
		number++
		text := strings.TrimRight(line, " \r\n")
		switch {
		case fence != "" && text == fence:
			fence = ""
			if !inSection {
				continue
			}
			switch {
			case language == "sh":
				blocks, adjacent = append(blocks, tourBlock{line: start, script: content.String()}), true
			case language == "text" && adjacent:
				last := &blocks[len(blocks)-1]
				last.want, last.hasWant, adjacent = content.String(), true, false
			default:
				adjacent = false
			}
		case fence != "":
			content.WriteString(line)
		case strings.HasPrefix(text, "```"):
			language = strings.TrimLeft(text, "`")
			fence, start = text[:len(text)-len(language)], number+1
			content.Reset()
		case strings.HasPrefix(text, "#"):
			depth := len(text) - len(strings.TrimLeft(text, "#"))
			if text == heading {
				inSection = true
			} else if inSection && depth <= level {
				inSection = false
			}
			adjacent = false
		case text != "":
			adjacent = false
		}
	}
	switch {
	case fence != "":
		return nil, fmt.Errorf("%w: line %d: the block has no end", errTour, start)
	case len(blocks) == 0:
		return nil, fmt.Errorf("%w: no shell under %q", errTour, heading)
	}
	return blocks, nil
}

// tourMatches says whether a text is what the page promises: the same line for line, but that … stands for anything within a
// line, and alone on a line for any lines, even none.
func tourMatches(want, got string) bool {
	clean := func(s string) []string {
		lines := strings.Split(strings.Trim(s, "\r\n"), "\n")
		for i := range lines {
			lines[i] = strings.TrimRight(lines[i], " \r")
		}
		return lines
	}
	var pattern strings.Builder
	pattern.WriteString(`\A`)
	for _, line := range clean(want) {
		if strings.TrimSpace(line) == "…" {
			pattern.WriteString(`(?:.*\n)*?`)
			continue
		}
		for i, part := range strings.Split(line, "…") {
			if i > 0 {
				pattern.WriteString(`.*?`)
			}
			pattern.WriteString(regexp.QuoteMeta(part))
		}
		pattern.WriteString(`\n`)
	}
	pattern.WriteString(`\z`)
	return regexp.MustCompile(pattern.String()).MatchString(strings.Join(clean(got), "\n") + "\n")
}

func TestTourBlocks(t *testing.T) {
	page := strings.Join([]string{
		"# Page", "```sh", "not this", "```", "## A tour", "Words.", "", "```sh", "echo one", "echo two", "```", "", "```text", "one", "…", "```",
		"### A part of it", "````sh", "cat <<E", "```", "E", "````", "Words between.", "```text", "not an output", "```", "```yaml", "a: b", "```", "```sh", "true", "```",
		"## Another section", "```sh", "not this either", "```",
	}, "\n")
	got, err := tourBlocks(page, "## A tour")
	if err != nil {
		t.Fatal(err)
	}
	want := []tourBlock{
		{line: 9, script: "echo one\necho two\n", want: "one\n…\n", hasWant: true},
		{line: 19, script: "cat <<E\n```\nE\n"},
		{line: 31, script: "true\n"},
	}
	if len(got) != len(want) {
		t.Fatalf("blocks = %+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("block %d = %+v, want %+v", i, got[i], want[i])
		}
	}
	for name, page := range map[string]string{"no such section": "# Page\n", "a block without end": "## A tour\n```sh\ntrue\n"} {
		if _, err := tourBlocks(page, "## A tour"); !errors.Is(err, errTour) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTourMatches(t *testing.T) {
	for _, tc := range []struct {
		want, got string
		match     bool
	}{
		{"a\nb\n", "a\nb", true},
		{"a\nb\n", "\n a\nb \n\n", false},
		{"a\nb\n", "\na  \nb\n\n", true},
		{"a\n", "a\nb\n", false},
		{"id …!\n", "id 12 34!\n", true},
		{"id …\n", "id 1\nid 2\n", false},
		{"first\n…\nlast\n", "first\nlast\n", true},
		{"first\n…\nlast\n", "first\n1\n2\nlast\n", true},
		{"…\nlast\n", "last but one\nlast\n", true},
		{"first\n…\n", "first\n", true},
		{"first\n…\n", "second\n", false},
		{"a.c\n", "abc\n", false},
		{"…\n", "", true},
	} {
		if got := tourMatches(tc.want, tc.got); got != tc.match {
			t.Errorf("%q matches %q: %v", tc.want, tc.got, got)
		}
	}
}

// tour is a section of a page that can be pasted into a shell, block by block.
type tour struct{ file, heading string }

func tours() []tour {
	return []tour{{"README.md", "## A tour"}, {"docs/conformance.md", "## Against this hub"}}
}

// readTour reads the blocks of a tour.
func readTour(t *testing.T, page tour) []tourBlock {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", page.file))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := tourBlocks(string(text), page.heading)
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}
