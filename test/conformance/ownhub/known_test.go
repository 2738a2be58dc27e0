package ownhub_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
)

// knownFile lists the failures that are known.
const knownFile = "testdata/known-failures.txt"

// everywhere as the configuration of a known failure means all in which the check runs.
const everywhere = "*"

// known is a failure that is known, with the reason why it is not fixed yet.
type known struct {
	line                         int
	configuration, check, reason string
}

// covers says whether the failure of a check in a configuration is this one.
func (k known) covers(configuration, check string) bool {
	return k.check == check && (k.configuration == everywhere || k.configuration == configuration)
}

var errKnown = errors.New("list of known failures")

// parseKnown reads the list. Its first line that is no comment is the ceiling, which must be the number of the others.
func parseKnown(text string, configurations []string) ([]known, error) {
	var list []known
	ceiling, n := -1, 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if ceiling < 0 {
			number, ok := strings.CutPrefix(line, "at most ")
			c, err := strconv.Atoi(number)
			if !ok || err != nil || c < 0 {
				return nil, fmt.Errorf("%w: line %d must be 'at most' and a number", errKnown, n)
			}
			ceiling = c
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 3 {
			return nil, fmt.Errorf("%w: line %d is not 'configuration check reason'", errKnown, n)
		}
		k := known{line: n, configuration: fields[0], check: fields[1], reason: strings.Join(fields[2:], " ")}
		if k.configuration != everywhere && !slices.Contains(configurations, k.configuration) {
			return nil, fmt.Errorf("%w: line %d names no configuration: %q", errKnown, n, k.configuration)
		}
		if slices.ContainsFunc(list, func(o known) bool {
			return o.covers(k.configuration, k.check) || k.covers(o.configuration, o.check)
		}) {
			return nil, fmt.Errorf("%w: line %d lists again what is listed", errKnown, n)
		}
		list = append(list, k)
	}
	if ceiling != len(list) {
		return nil, fmt.Errorf("%w: it says at most %d, and has %d lines: a list that has shrunk lowers the number, and one that has grown is not wanted", errKnown, ceiling, len(list))
	}
	return list, nil
}

// judge compares what failed, and what ran in no configuration, with what is known, and says what does not agree. whole says that all
// checks were asked for.
func judge(list []known, m matrix, whole bool) []string {
	var problems []string
	for _, o := range m.outcomes {
		for _, r := range o.results {
			if r.Status == suite.Fail && !isKnown(list, o.name, r.Check) {
				problems = append(problems, fmt.Sprintf("%s %s (%s) fails: %s", o.name, r.Check, r.Level, r.Observed))
			}
		}
	}
	unexercised := m.unexercised()
	for _, r := range unexercised {
		if !slices.ContainsFunc(list, func(k known) bool { return k.check == r.Check }) {
			problems = append(problems, fmt.Sprintf("%s runs in no configuration: %s", r.Check, r.Observed))
		}
	}
	for _, k := range list {
		never := slices.ContainsFunc(unexercised, func(r suite.Result) bool { return k.covers(k.configuration, r.Check) })
		if p := k.stale(m, never); p != "" && (whole || p != nothing) {
			problems = append(problems, fmt.Sprintf("%s:%d: %s %s %s", knownFile, k.line, k.configuration, k.check, p))
		}
	}
	return problems
}

// nothing is what is wrong with a line of the list that says nothing of this hub.
const nothing = "neither fails, nor is it skipped in all configurations: delete the line"

// stale says what is wrong with a line of the list, if anything. never says that its check runs in no configuration.
func (k known) stale(m matrix, never bool) string {
	var passed []string
	failed, skipped := 0, 0
	for _, o := range m.outcomes {
		for _, r := range o.results {
			switch {
			case !k.covers(o.name, r.Check):
			case r.Status == suite.Pass:
				passed = append(passed, o.name)
			case r.Status == suite.Fail:
				failed++
			default:
				skipped++
			}
		}
	}
	switch {
	case len(passed) > 0 && failed > 0:
		return fmt.Sprintf("passes (%s): delete the line, and list the configurations in which it still fails", strings.Join(passed, ", "))
	case len(passed) > 0:
		return "passes: delete the line"
	case failed > 0 || !m.ran(k.configuration):
		return ""
	case skipped > 0 && (never || !m.ran(everywhere)):
		return ""
	default:
		return nothing
	}
}

// isKnown says whether the list has a check in a configuration.
func isKnown(list []known, configuration, check string) bool {
	return slices.ContainsFunc(list, func(k known) bool { return k.covers(configuration, check) })
}

func TestParseKnown(t *testing.T) {
	names := []string{"plain", "closed"}
	list, err := parseKnown("# why\n\nat most 2\nplain SUB-01/x not built yet\n* SUB-02/y nor this\n", names)
	if err != nil || len(list) != 2 || list[0] != (known{4, "plain", "SUB-01/x", "not built yet"}) {
		t.Errorf("%v, %v", list, err)
	}
	for name, text := range map[string]string{
		"no ceiling":            "plain SUB-01/x why\n",
		"more than the ceiling": "at most 0\nplain SUB-01/x why\n",
		"a ceiling too high":    "at most 2\nplain SUB-01/x why\n",
		"no reason":             "at most 1\nplain SUB-01/x\n",
		"unknown configuration": "at most 1\nplian SUB-01/x why\n",
		"twice":                 "at most 2\n* SUB-01/x why\nplain SUB-01/x why\n",
		"empty":                 "",
	} {
		if list, err := parseKnown(text, names); !errors.Is(err, errKnown) {
			t.Errorf("%s: %v, %v", name, list, err)
		}
	}
}

func TestJudge(t *testing.T) {
	result := func(check string, s suite.Status) suite.Result { return suite.Result{Check: check, Status: s} }
	m := matrix{all: []string{"plain", "closed"}, checks: []string{"A-01/a", "A-02/b", "A-03/c"}, outcomes: []outcome{
		{name: "plain", results: []suite.Result{result("A-01/a", suite.Pass), result("A-02/b", suite.Fail), result("A-03/c", suite.Skip)}},
		{name: "closed", results: []suite.Result{result("A-01/a", suite.Fail), result("A-02/b", suite.Fail), result("A-03/c", suite.Skip)}},
	}}
	never := known{configuration: "closed", check: "A-03/c"}
	for _, tc := range []struct {
		list  []known
		whole bool
		want  []string // parts of the problems
	}{
		{[]known{never, {configuration: "*", check: "A-02/b"}, {configuration: "closed", check: "A-01/a"}}, true, nil},
		{[]known{never, {configuration: "*", check: "A-02/b"}}, true, []string{"closed A-01/a () fails"}},
		{[]known{{configuration: "*", check: "A-02/b"}, {configuration: "closed", check: "A-01/a"}}, true, []string{"A-03/c runs in no configuration"}},
		{[]known{never, {configuration: "plain", check: "A-02/b"}, {configuration: "closed", check: "A-01/a"}}, true, []string{"closed A-02/b"}},
		{[]known{never, {configuration: "*", check: "A-02/b"}, {configuration: "*", check: "A-01/a"}}, true, []string{"passes (plain): delete the line, and list"}},
		{
			[]known{never, {configuration: "*", check: "A-02/b"}, {configuration: "closed", check: "A-01/a"}, {configuration: "plain", check: "A-01/a"}},
			true,
			[]string{"plain A-01/a passes: delete the line"},
		},
		{
			[]known{never, {configuration: "*", check: "A-02/b"}, {configuration: "closed", check: "A-01/a"}, {configuration: "*", check: "B-01/x"}, {configuration: "plain", check: "B-02/y"}},
			true,
			[]string{"* B-01/x neither fails", "plain B-02/y neither fails"},
		},
		{[]known{never, {configuration: "*", check: "A-02/b"}, {configuration: "closed", check: "A-01/a"}, {configuration: "*", check: "B-01/x"}}, false, nil},
	} {
		got := judge(tc.list, m, tc.whole)
		if len(got) != len(tc.want) {
			t.Errorf("%v: %q, want %q", tc.list, got, tc.want)
			continue
		}
		for i := range got {
			if !strings.Contains(got[i], tc.want[i]) {
				t.Errorf("%v: %q, want %q", tc.list, got[i], tc.want[i])
			}
		}
	}
	m.outcomes = m.outcomes[:1]
	if got := judge([]known{never, {configuration: "*", check: "A-02/b"}, {configuration: "closed", check: "A-01/a"}, {configuration: "*", check: "A-09/z"}}, m, true); got != nil {
		t.Errorf("what did not run was judged: %q", got)
	}
}
