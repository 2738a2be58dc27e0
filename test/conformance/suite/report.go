package suite

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is a finished run.
type Report struct {
	Hub      string    `json:"hub"`
	Features []Feature `json:"features"`
	Demand   Level     `json:"fail_on"` // the weakest class of levels whose failures count; empty: none
	Started  time.Time `json:"started"`
	Results  []Result  `json:"results"`
}

// tally counts results.
type tally struct{ passed, failed, skipped int }

func (t *tally) add(s Status) {
	switch s {
	case Pass:
		t.passed++
	case Fail:
		t.failed++
	case Skip:
		t.skipped++
	}
}

// String is passed/run, and how many were skipped.
func (t *tally) String() string {
	if t.passed+t.failed+t.skipped == 0 {
		return "-"
	}
	s := fmt.Sprintf("%d/%d", t.passed, t.passed+t.failed)
	if t.skipped > 0 {
		s += fmt.Sprintf(" +%ds", t.skipped)
	}
	return s
}

// WriteText writes the results for people: what failed (all results when verbose), then the summary by area and level.
func (r Report) WriteText(w io.Writer, verbose bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Mercure 1.0 conformance of %s\nfeatures: %s\n\n", r.Hub, joined(r.Features))
	for _, res := range r.Results {
		if verbose || res.Status == Fail {
			fmt.Fprintf(&b, "%s  %-11s %s: %s\n", res.Status, res.Level, res.Check, res.Observed)
		}
	}
	if verbose || slices.ContainsFunc(r.Results, func(r Result) bool { return r.Status == Fail }) {
		b.WriteByte('\n')
	}
	if err := r.summary(&b); err != nil {
		return err
	}
	failures := len(Failures(r.Results, r.Demand))
	if r.Demand == "" {
		failures = 0
	}
	fmt.Fprintf(&b, "\n%s\n", r.verdict(failures))
	_, err := io.WriteString(w, b.String())
	return err
}

// Verdict says in one line how the run ended.
func (r Report) verdict(failures int) string {
	skipped := 0
	for _, res := range r.Results {
		if res.Status == Skip {
			skipped++
		}
	}
	switch {
	case r.Demand == "":
		return fmt.Sprintf("%d checks, %d of them skipped; no failure counts.", len(r.Results), skipped)
	case failures == 0:
		return fmt.Sprintf("%d checks, %d of them skipped: nothing that counts (%s) failed.", len(r.Results), skipped, demanded(r.Demand))
	default:
		return fmt.Sprintf("%d checks, %d of them skipped: %d failures count (%s).", len(r.Results), skipped, failures, demanded(r.Demand))
	}
}

// demanded lists the classes from MUST to the weakest one that counts.
func demanded(l Level) string {
	var all []string
	for _, c := range Classes() {
		all = append(all, string(c))
		if c == l {
			break
		}
	}
	return strings.Join(all, ", ")
}

func (r Report) summary(w io.Writer) error {
	var areas []string
	cells := map[string]map[Level]*tally{}
	const total = "total"
	cell := func(area string, class Level) *tally {
		if cells[area] == nil {
			cells[area] = map[Level]*tally{}
		}
		if cells[area][class] == nil {
			cells[area][class] = &tally{}
		}
		return cells[area][class]
	}
	for _, res := range r.Results {
		if !slices.Contains(areas, res.Area) {
			areas = append(areas, res.Area)
		}
		cell(res.Area, res.Level.Class()).add(res.Status)
		cell(total, res.Level.Class()).add(res.Status)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintf(tw, "area\t%s\t%s\t%s\t%s\n", Must, Should, Derived, May)
	for _, area := range append(areas, total) {
		fmt.Fprint(tw, area)
		for _, class := range Classes() {
			fmt.Fprintf(tw, "\t%s", cell(area, class))
		}
		fmt.Fprintln(tw)
	}
	return tw.Flush()
}

func joined(features []Feature) string {
	parts := make([]string, len(features))
	for i, f := range features {
		parts[i] = string(f)
	}
	return strings.Join(parts, ", ")
}

// WriteJSON writes the report as one JSON object.
func (r Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Skipped *junitMessage `xml:"skipped,omitempty"`
	Output  string        `xml:"system-out,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
}

// WriteJUnit writes the report in the XML that build servers read: a suite for each area. A failure that does not count
// is written as skipped, with its level.
func (r Report) WriteJUnit(w io.Writer) error {
	var out junitSuites
	index := map[string]int{}
	took := map[string]time.Duration{}
	for _, res := range r.Results {
		i, ok := index[res.Area]
		if !ok {
			i = len(out.Suites)
			index[res.Area] = i
			out.Suites = append(out.Suites, junitSuite{Name: res.Area})
		}
		s := &out.Suites[i]
		c := junitCase{Class: "mercure." + res.ID, Name: res.Check, Time: seconds(res.Took)}
		switch {
		case res.Status == Fail && r.Demand != "" && res.Counts(r.Demand):
			c.Failure = &junitMessage{Message: res.Observed, Type: string(res.Level)}
			s.Failures++
		case res.Status == Fail:
			c.Skipped = &junitMessage{Message: string(res.Level) + " not met: " + res.Observed}
			s.Skipped++
		case res.Status == Skip:
			c.Skipped = &junitMessage{Message: res.Observed}
			s.Skipped++
		default:
			c.Output = res.Observed
		}
		s.Tests++
		took[res.Area] += res.Took
		s.Time = seconds(took[res.Area])
		s.Cases = append(s.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
