package proof_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/jose"
	"github.com/cinnabar-hub/cinnabar/test/conformance/refhub"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
)

// only narrows what TestAHubWithoutFaultPassesEveryCheck runs, for work on a few checks.
var only = flag.String("checks", "", "run only checks whose name matches this regular expression")

var update = flag.Bool("update", false, "write testdata/faults.txt anew (takes some minutes)")

const (
	faultsFile   = "testdata/faults.txt"
	unprovenFile = "testdata/unproven.txt"
)

// fewest is how many faults there are at least.
const fewest = 60

func TestEveryObservableRequirementHasACheck(t *testing.T) {
	s, rows := theSuite(t)
	has := map[string]int{}
	for _, c := range s.Checks() {
		has[c.ID]++
	}
	for _, r := range rows {
		if r.Observable() && has[r.ID] == 0 {
			t.Errorf("%s has no check: %s", r.ID, r.Observe)
		}
	}
}

func TestAHubWithoutFaultPassesEveryCheck(t *testing.T) {
	s, _ := theSuite(t)
	k := &keys{made: map[string]jose.Key{}}
	ran := map[string]bool{}
	chosen := regexp.MustCompile(*only)
	for _, at := range sites() {
		target, stop, err := at.start(k, "")
		if err != nil {
			t.Fatal(err)
		}
		results, err := ask(t.Context(), s, target, 4, func(c suite.Check) bool {
			return chosen.MatchString(c.Name()) && (!at.rest || !ran[c.Name()])
		})
		stop()
		if err != nil {
			t.Fatal(err)
		}
		for name, r := range results {
			if r.Status == suite.Fail {
				t.Errorf("%s: %s %s: %s", at.name, r.Level, name, r.Observed)
			}
			ran[name] = ran[name] || r.Status != suite.Skip
		}
	}
	for _, c := range s.Checks() {
		if chosen.MatchString(c.Name()) && !ran[c.Name()] {
			t.Errorf("%s is skipped at every site", c.Name())
		}
	}
}

// TestEveryFaultTurnsItsCheckRed plants each fault, and runs its check and the others that it is the proof of. With -update it first
// writes down what each fault turns red.
func TestEveryFaultTurnsItsCheckRed(t *testing.T) {
	s, _ := theSuite(t)
	k := &keys{made: map[string]jose.Key{}}
	faults := refhub.Faults()
	if len(faults) < fewest {
		t.Errorf("%d faults, fewer than %d", len(faults), fewest)
	}
	if *update {
		writeMatrix(t, s, k)
	}
	others := proofs(t)
	each(faults, func(f refhub.Fault) {
		wanted := append([]string{f.Check}, others[f.Name]...)
		red := turned(t, s, k, f.Name, func(c suite.Check) bool { return slices.Contains(wanted, c.Name()) })
		for _, name := range wanted {
			if slices.Contains(red, name) {
				continue
			}
			// Checks that run together share the hub's log: what one publishes can hide from another that a fault about the newest
			// update is there. Alone, nothing hides it.
			if len(turned(t, s, k, f.Name, func(c suite.Check) bool { return c.Name() == name })) == 0 {
				t.Errorf("fault %s (%s) does not turn %s red", f.Name, f.Does, name)
			}
		}
	})
}

// each calls fn for all faults, several at once: most of the time is spent waiting for what a fault keeps from happening.
func each(faults []refhub.Fault, fn func(f refhub.Fault)) {
	const atOnce = 24
	next := make(chan refhub.Fault)
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for f := range next {
				fn(f)
			}
		})
	}
	for _, f := range faults {
		next <- f
	}
	close(next)
	wg.Wait()
}

// impatient shortens waiting for what a fault keeps from happening. It cannot make a red check green.
const impatient = 4 * time.Second

// together is how many checks of a fault run at once: of those that turn red, most wait for as long as they may.
const together = 48

// proofs gives the checks to prove with each fault: every check with the fault that turns the fewest checks red.
func proofs(t *testing.T) map[string][]string {
	t.Helper()
	best := map[string][]string{} // check: fault, number
	size := map[string]int{}
	for _, line := range lines(t, faultsFile) {
		fault, red := line[0], line[1:]
		size[fault] = len(red)
		for _, check := range red {
			if b, ok := best[check]; !ok || size[b[0]] > len(red) {
				best[check] = []string{fault}
			}
		}
	}
	of := map[string][]string{}
	for check, fault := range best {
		of[fault[0]] = append(of[fault[0]], check)
	}
	return of
}

func TestEveryCheckIsProvenOrJustified(t *testing.T) {
	s, _ := theSuite(t)
	known := map[string]bool{}
	for _, f := range refhub.Faults() {
		known[f.Name] = true
	}
	proven := map[string]bool{}
	for _, line := range lines(t, faultsFile) {
		if !known[line[0]] {
			t.Errorf("%s names the fault %s, which does not exist: write it anew with -update", faultsFile, line[0])
		}
		for _, check := range line[1:] {
			proven[check] = true
		}
	}
	justified := map[string]bool{}
	for _, line := range lines(t, unprovenFile) {
		justified[line[0]] = true
		if len(line) < 4 {
			t.Errorf("%s gives no reason for %s", unprovenFile, line[0])
		}
		if proven[line[0]] {
			t.Errorf("%s is proven, so %s must not list it", line[0], unprovenFile)
		}
	}
	for _, c := range s.Checks() {
		if !proven[c.Name()] && !justified[c.Name()] {
			t.Errorf("no fault turns %s red, and %s does not say why", c.Name(), unprovenFile)
		}
		delete(proven, c.Name())
		delete(justified, c.Name())
	}
	for name := range proven {
		t.Errorf("%s names %s, which is no check: write it anew with -update", faultsFile, name)
	}
	for name := range justified {
		t.Errorf("%s names %s, which is no check", unprovenFile, name)
	}
}

// writeMatrix writes which checks each fault turns red: all that it turns red of the requirement that it offends; of the other
// checks of the area those that nothing has turned red until then; and of all others those that are left after that. The heavy
// ones are run for the faults of their own requirements alone.
func writeMatrix(t *testing.T, s *suite.Suite, k *keys) {
	t.Helper()
	var mu sync.Mutex
	red := map[string]map[string]bool{}
	proven := map[string]bool{}
	note := func(f refhub.Fault, selected func(c suite.Check) bool) {
		found := turned(t, s, k, f.Name, selected)
		// Once is luck, perhaps: the impatient give up early on a busy machine.
		again := turned(t, s, k, f.Name, func(c suite.Check) bool { return slices.Contains(found, c.Name()) })
		found = slices.DeleteFunc(found, func(name string) bool { return !slices.Contains(again, name) })
		mu.Lock()
		defer mu.Unlock()
		if red[f.Name] == nil {
			red[f.Name] = map[string]bool{}
		}
		for _, check := range found {
			red[f.Name][check], proven[check] = true, true
		}
	}
	each(refhub.Faults(), func(f refhub.Fault) {
		id, _, _ := strings.Cut(f.Check, "/")
		note(f, func(c suite.Check) bool { return c.ID == id })
	})
	write(t, red)
	for _, near := range []bool{true, false} {
		each(refhub.Faults(), func(f refhub.Fault) {
			area, _, _ := strings.Cut(f.Check, "-")
			mu.Lock()
			left := map[string]bool{} // what nothing has turned red until now
			for _, c := range s.Checks() {
				left[c.Name()] = !c.Heavy && !proven[c.Name()] && (c.Area() == area) == near
			}
			mu.Unlock()
			note(f, func(c suite.Check) bool { return left[c.Name()] })
		})
		write(t, red)
	}
}

// write writes the matrix.
func write(t *testing.T, red map[string]map[string]bool) {
	t.Helper()
	var b strings.Builder
	b.WriteString("# The checks that each fault of the reference hub turns red: those of its own requirement, and others that no fault of theirs does.\n" +
		"# Written by 'make conformance-faults'.\n")
	for _, f := range refhub.Faults() {
		fmt.Fprintf(&b, "%s %s\n", f.Name, strings.Join(slices.Sorted(maps.Keys(red[f.Name])), " "))
	}
	if err := os.WriteFile(faultsFile, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// turned gives the selected checks that a fault turns red. A check that is skipped at one site is run at the next.
func turned(t *testing.T, s *suite.Suite, k *keys, fault string, selected func(suite.Check) bool) []string {
	t.Helper()
	var red []string
	done := map[string]bool{}
	for _, at := range sites() {
		wanted := func(c suite.Check) bool { return !done[c.Name()] && selected(c) }
		if !slices.ContainsFunc(s.Checks(), wanted) {
			break
		}
		target, stop, err := at.start(k, fault)
		if err != nil {
			t.Errorf("fault %s: %v", fault, err)
			return red
		}
		target.Patience = impatient
		results, err := ask(t.Context(), s, target, together, wanted)
		stop()
		if err != nil {
			t.Errorf("fault %s breaks the hub: %v", fault, err)
		}
		for name, r := range results {
			done[name] = done[name] || r.Status != suite.Skip
			if r.Status == suite.Fail {
				red = append(red, name)
			}
		}
	}
	return red
}
