package ownhub_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
)

// tally counts results.
type tally struct{ passed, known, unlisted, skipped int }

func (t *tally) add(s suite.Status, known bool) {
	switch {
	case s == suite.Pass:
		t.passed++
	case s == suite.Skip:
		t.skipped++
	case known:
		t.known++
	default:
		t.unlisted++
	}
}

// String is passed/run, then what failed, then what was skipped.
func (t *tally) String() string {
	if *t == (tally{}) {
		return "-"
	}
	s := fmt.Sprintf("%d/%d", t.passed, t.passed+t.known+t.unlisted)
	if t.known > 0 {
		s += fmt.Sprintf(" (%d known)", t.known)
	}
	if t.unlisted > 0 {
		s += fmt.Sprintf(" (%d NEW)", t.unlisted)
	}
	if t.skipped > 0 {
		s += fmt.Sprintf(" ·%d", t.skipped)
	}
	return s
}

// grid counts results by row and column, and keeps the rows in the order in which they came.
type grid struct {
	rows  []string
	cells map[[2]string]*tally
}

func (g *grid) at(row, column string) *tally {
	if !slices.Contains(g.rows, row) {
		g.rows = append(g.rows, row)
	}
	if g.cells == nil {
		g.cells = map[[2]string]*tally{}
	}
	key := [2]string{row, column}
	if g.cells[key] == nil {
		g.cells[key] = &tally{}
	}
	return g.cells[key]
}

// total heads the row and the column of sums.
const total = "total"

// table shows the matrix: a row for each area, a column for each configuration, and what is known to fail.
func table(m matrix, list []known) string {
	var areas, levels grid
	for _, class := range suite.Classes() { // in their order
		levels.at(string(class), total)
	}
	for _, o := range m.outcomes {
		for _, r := range o.results {
			k := isKnown(list, o.name, r.Check)
			for _, column := range []string{o.name, total} {
				areas.at(r.Area, column).add(r.Status, k)
				levels.at(string(r.Level.Class()), column).add(r.Status, k)
				levels.at(total, column).add(r.Status, k)
			}
		}
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	head := "area"
	for _, g := range []*grid{&areas, &levels} {
		fmt.Fprint(w, head)
		for _, o := range m.outcomes {
			fmt.Fprintf(w, "\t%s", o.name)
		}
		fmt.Fprintf(w, "\t%s\n", total)
		for _, row := range g.rows {
			fmt.Fprint(w, row)
			for _, o := range m.outcomes {
				fmt.Fprintf(w, "\t%s", g.at(row, o.name))
			}
			fmt.Fprintf(w, "\t%s\n", g.at(row, total))
		}
		head = "level"
	}
	fmt.Fprint(w, "time")
	for _, o := range m.outcomes {
		fmt.Fprintf(w, "\t%s", o.took.Round(100*time.Millisecond))
	}
	fmt.Fprintln(w)
	_ = w.Flush() // to memory
	b.WriteString("\npassed/run; ·n: n were skipped, for the configuration lacks what they need; NEW: a failure that is not in the list\n\n")
	for _, c := range configurations() {
		if m.ran(c.name) {
			fmt.Fprintf(&b, "%-9s %s\n", c.name, c.about)
		} else {
			fmt.Fprintf(&b, "%-9s %s: did not run\n", c.name, c.about)
		}
	}
	b.WriteString(knownFailures(list))
	return b.String()
}

// knownFailures lists what is known to fail, once for each reason.
func knownFailures(list []known) string {
	if len(list) == 0 {
		return "\nno known failures\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d known failures\n", len(list))
	type group struct{ configuration, reason string }
	var order []group
	checks := map[group][]string{}
	for _, k := range list {
		g := group{k.configuration, k.reason}
		if checks[g] == nil {
			order = append(order, g)
		}
		checks[g] = append(checks[g], k.check)
	}
	for _, g := range order {
		fmt.Fprintf(&b, "%s: %s (%d)\n", g.configuration, g.reason, len(checks[g]))
		for line := range slices.Chunk(checks[g], 6) {
			fmt.Fprintf(&b, "  %s\n", strings.Join(line, " "))
		}
	}
	return b.String()
}

// writeTable shows the table in the test's log, and in the file that was asked for.
func writeTable(t *testing.T, m matrix, list []known) {
	t.Helper()
	text := table(m, list)
	t.Logf("\n%s", text)
	if *tableFile == "" {
		return
	}
	if err := os.WriteFile(*tableFile, []byte(text), 0o644); err != nil {
		t.Error(err)
	}
}

func TestTable(t *testing.T) {
	result := func(check string, level suite.Level, s suite.Status) suite.Result {
		area, _, _ := strings.Cut(check, "-")
		return suite.Result{Check: check, Area: area, Level: level, Status: s}
	}
	m := matrix{all: []string{"plain", "closed"}, outcomes: []outcome{
		{name: "plain", results: []suite.Result{result("SUB-01/a", suite.Must, suite.Pass), result("SUB-02/b", suite.MustNot, suite.Fail), result("ACT-01/c", suite.Should, suite.Skip)}},
		{name: "closed", results: []suite.Result{result("SUB-01/a", suite.Must, suite.Fail), result("SUB-02/b", suite.MustNot, suite.Fail)}},
	}}
	got := table(m, []known{{configuration: "*", check: "SUB-02/b", reason: "because"}})
	var lines []string
	for line := range strings.Lines(got) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	for _, want := range []string{
		"SUB 1/2 (1 known) 0/2 (1 known) (1 NEW) 1/4 (2 known) (1 NEW)", "ACT 0/0 ·1 - 0/0 ·1", "MUST 1/2 (1 known) 0/2 (1 known) (1 NEW) 1/4 (2 known) (1 NEW)",
		"SHOULD 0/0 ·1 - 0/0 ·1", "DERIVED - - -", "*: because (1)", "SUB-02/b",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in\n%s", want, got)
		}
	}
}
