package ownhub_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
)

// outcome is what the suite said of one configuration.
type outcome struct {
	name    string
	results []suite.Result
	took    time.Duration
}

// matrix is what the suite said of the configurations that ran, in their order.
type matrix struct {
	all      []string // the configurations that there are
	checks   []string // the checks that were asked for
	outcomes []outcome
}

// ran says whether a configuration ran, or all did.
func (m matrix) ran(configuration string) bool {
	if configuration == everywhere {
		return len(m.outcomes) == len(m.all)
	}
	return slices.ContainsFunc(m.outcomes, func(o outcome) bool { return o.name == configuration })
}

// unexercised gives the checks that ran in no configuration, with what was last said of them. Nothing is known of that unless
// all configurations ran.
func (m matrix) unexercised() []suite.Result {
	if !m.ran(everywhere) {
		return nil
	}
	ran := map[string]bool{}
	skipped := map[string]suite.Result{}
	for _, o := range m.outcomes {
		for _, r := range o.results {
			if r.Status == suite.Skip {
				skipped[r.Check] = r
			} else {
				ran[r.Check] = true
			}
		}
	}
	var never []suite.Result
	for _, c := range m.checks {
		if !ran[c] {
			r := skipped[c]
			r.Check = c
			never = append(never, r)
		}
	}
	return never
}

// TestOurHub runs the suite against our hub in all configurations, or only in the usual ones, so that the tests of the whole
// project stay quick. As many run at a time as -parallel says.
func TestOurHub(t *testing.T) {
	text, err := os.ReadFile(knownFile)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range configurations() {
		names = append(names, c.name)
	}
	list, err := parseKnown(string(text), names)
	if err != nil {
		t.Fatal(err)
	}
	checks := allChecks(t)
	if *busy {
		keepBusy(t)
	}
	var first matrix
	var differences []string
	for n := range *runs {
		m, ok := gather(t, fmt.Sprintf("run%d", n+1), names, checks, list)
		if !ok && *complete && len(m.outcomes) < len(names) {
			t.Fatal("not all configurations could be tested")
		}
		if n == 0 {
			first = m
			writeTable(t, m, list)
			for _, p := range judge(list, m, *selected == "") {
				t.Error(p)
			}
			continue
		}
		found := differing(first, m)
		for _, d := range found {
			differences = append(differences, fmt.Sprintf("run %d: %s", n+1, d))
		}
		t.Logf("run %d of %d: %d results, %d of them differ from the first run's", n+1, *runs, m.count(), len(found))
	}
	for _, d := range differences {
		t.Error(d)
	}
}

// gather runs the suite in all configurations, and says whether all went well but for the results.
func gather(t *testing.T, name string, all, checks []string, list []known) (m matrix, ok bool) {
	t.Helper()
	var mu sync.Mutex
	byName := map[string]outcome{}
	ok = t.Run(name, func(t *testing.T) { // it ends when all configurations have
		for _, c := range configurations() {
			if !*complete && !c.usual {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				began := time.Now()
				s := start(t, c)
				results := s.conform(t, checks, list)
				s.healthy(t)
				mu.Lock()
				defer mu.Unlock()
				byName[c.name] = outcome{name: c.name, results: results, took: time.Since(began)}
			})
		}
	})
	m.all, m.checks = all, checks
	for _, name := range all {
		if o, there := byName[name]; there {
			m.outcomes = append(m.outcomes, o)
		}
	}
	return m, ok
}

// healthy says that the hub has come through the suite: it is there, has nothing to complain about itself, and stops as it should.
func (s *site) healthy(t *testing.T) {
	t.Helper()
	select {
	case <-s.hub.Done:
		t.Errorf("the hub has ended: %v", s.hub.Err)
	default:
	}
	s.hub.Stop()
	if s.hub.Err != nil {
		t.Errorf("the hub stopped with %v", s.hub.Err)
	}
	for line := range strings.Lines(s.hub.Out.String()) {
		if strings.Contains(line, "level=ERROR") || strings.HasPrefix(line, "panic:") || strings.Contains(line, "DATA RACE") {
			t.Errorf("the hub said: %s", strings.TrimSpace(line))
		}
	}
}

func (m matrix) count() int {
	n := 0
	for _, o := range m.outcomes {
		n += len(o.results)
	}
	return n
}

// differing compares two runs check by check.
func differing(a, b matrix) []string {
	const missing suite.Status = "missing"
	type place struct{ configuration, check string }
	index := func(m matrix) (map[place]suite.Result, []place) {
		results := map[place]suite.Result{}
		var order []place
		for _, o := range m.outcomes {
			for _, r := range o.results {
				p := place{o.name, r.Check}
				results[p] = r
				order = append(order, p)
			}
		}
		return results, order
	}
	before, order := index(a)
	after, more := index(b)
	for _, p := range more {
		if _, ok := before[p]; !ok {
			order = append(order, p)
		}
	}
	var found []string
	for _, p := range order {
		x, y := before[p], after[p]
		if x.Status == "" {
			x.Status = missing
		}
		if y.Status == "" {
			y.Status = missing
		}
		if x.Status != y.Status {
			found = append(found, fmt.Sprintf("%s %s differs\n  first: %s (%s) %s\n  now:   %s (%s) %s", p.configuration, p.check,
				x.Status, x.Took.Round(time.Millisecond), x.Observed, y.Status, y.Took.Round(time.Millisecond), y.Observed))
		}
	}
	return found
}

// keepBusy gives every core something to do until the test ends.
func keepBusy(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range runtime.NumCPU() {
		wg.Go(func() {
			sum := sha256.Sum256(nil)
			for ctx.Err() == nil {
				for range 10_000 {
					sum = sha256.Sum256(sum[:])
				}
			}
		})
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
}

func TestDiffering(t *testing.T) {
	run := func(results ...suite.Result) matrix {
		return matrix{outcomes: []outcome{{name: "plain", results: results}}}
	}
	pass := suite.Result{Check: "A-01/a", Status: suite.Pass, Observed: "200"}
	fail := suite.Result{Check: "A-01/a", Status: suite.Fail, Observed: "500"}
	other := suite.Result{Check: "A-02/b", Status: suite.Pass, Observed: "x"}
	if got := differing(run(pass, other), run(pass, other)); got != nil {
		t.Errorf("equal runs differ: %q", got)
	}
	for _, tc := range []struct {
		a, b matrix
		want []string
	}{
		{run(pass), run(fail), []string{"plain A-01/a", "PASS", "200", "FAIL", "500"}},
		{run(pass, other), run(pass), []string{"plain A-02/b", "missing"}},
		{run(pass), run(pass, other), []string{"plain A-02/b", "missing"}},
	} {
		got := differing(tc.a, tc.b)
		if len(got) != 1 {
			t.Errorf("%q, want one difference", got)
			continue
		}
		for _, part := range tc.want {
			if !strings.Contains(got[0], part) {
				t.Errorf("%q lacks %q", got[0], part)
			}
		}
	}
}
