package suite_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
)

func results() []suite.Result {
	return []suite.Result{
		{Check: "A-01/x", ID: "A-01", Area: "A", Level: suite.MustNot, Status: suite.Pass, Observed: "fine", Took: time.Second},
		{Check: "A-02/x", ID: "A-02", Area: "A", Level: suite.Recommended, Status: suite.Fail, Observed: "answered <200>"},
		{Check: "A-02/y", ID: "A-02", Area: "A", Level: suite.Recommended, Status: suite.Skip, Observed: "no cookie"},
		{Check: "B-01/x", ID: "B-01", Area: "B", Level: suite.Derived, Status: suite.Fail, Observed: "odd"},
		{Check: "B-02/x", ID: "B-02", Area: "B", Level: suite.May, Status: suite.Fail, Observed: "507"},
	}
}

func TestWhatCounts(t *testing.T) {
	for demand, want := range map[suite.Level]int{suite.Must: 0, suite.Should: 1, suite.Derived: 2, suite.May: 2} {
		if got := len(suite.Failures(results(), demand)); got != want {
			t.Errorf("%s: %d failures count, want %d", demand, got, want)
		}
	}
	broken := suite.Result{Level: suite.MustNot, Status: suite.Fail}
	for _, demand := range suite.Classes() {
		if !broken.Counts(demand) {
			t.Errorf("%s: what a hub MUST NOT do counts for everybody", demand)
		}
	}
}

func TestText(t *testing.T) {
	r := suite.Report{Hub: "https://hub.example/x", Features: []suite.Feature{suite.Cookie, suite.TLS}, Demand: suite.Should, Results: results()}
	var b strings.Builder
	if err := r.WriteText(&b, false); err != nil {
		t.Fatal(err)
	}
	want := `Mercure 1.0 conformance of https://hub.example/x
features: cookie, tls

FAIL  RECOMMENDED A-02/x: answered <200>
FAIL  DERIVED     B-01/x: odd
FAIL  MAY         B-02/x: 507

area    MUST   SHOULD    DERIVED   MAY
A       1/1    0/1 +1s   -         -
B       -      -         0/1       0/1
total   1/1    0/1 +1s   0/1       0/1

5 checks, 1 of them skipped: 1 failures count (MUST, SHOULD).
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	b.Reset()
	if err := r.WriteText(&b, true); err != nil || !strings.Contains(b.String(), "PASS  MUST NOT    A-01/x: fine\n") || !strings.Contains(b.String(), "SKIP  RECOMMENDED A-02/y: no cookie\n") {
		t.Errorf("all results are there when asked for: %v\n%s", err, b.String())
	}
	for demand, verdict := range map[suite.Level]string{
		"":         "5 checks, 1 of them skipped; no failure counts.\n",
		suite.Must: "5 checks, 1 of them skipped: nothing that counts (MUST) failed.\n",
	} {
		b.Reset()
		r.Demand = demand
		if err := r.WriteText(&b, false); err != nil || !strings.HasSuffix(b.String(), verdict) {
			t.Errorf("%q: %v\n%s", demand, err, b.String())
		}
	}
}

func TestJSON(t *testing.T) {
	r := suite.Report{Hub: "https://hub.example/x", Demand: suite.Must, Started: time.Unix(0, 0).UTC(), Results: results()}
	var b strings.Builder
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got suite.Report
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, got); diff != "" {
		t.Error(diff)
	}
}

func TestJUnit(t *testing.T) {
	var b strings.Builder
	if err := (suite.Report{Demand: suite.Should, Results: results()}).WriteJUnit(&b); err != nil {
		t.Fatal(err)
	}
	type message struct {
		Message string `xml:"message,attr"`
	}
	var got struct {
		Suites []struct {
			Name     string `xml:"name,attr"`
			Tests    int    `xml:"tests,attr"`
			Failures int    `xml:"failures,attr"`
			Skipped  int    `xml:"skipped,attr"`
			Time     string `xml:"time,attr"`
			Cases    []struct {
				Class   string   `xml:"classname,attr"`
				Name    string   `xml:"name,attr"`
				Failure *message `xml:"failure"`
				Skipped *message `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Suites) != 2 {
		t.Fatalf("%d suites\n%s", len(got.Suites), b.String())
	}
	a, other := got.Suites[0], got.Suites[1]
	if a.Name != "A" || a.Tests != 3 || a.Failures != 1 || a.Skipped != 1 || a.Time != "1.000" || a.Cases[1].Failure.Message != "answered <200>" || a.Cases[1].Class != "mercure.A-02" {
		t.Errorf("%+v", a)
	}
	// What does not count is no failure for a build server.
	if other.Failures != 0 || other.Skipped != 2 || other.Cases[0].Skipped.Message != "DERIVED not met: odd" {
		t.Errorf("%+v", other)
	}
}

func TestRequirements(t *testing.T) {
	raw, err := os.ReadFile("../testdata/requirements.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := suite.Requirements(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	observable := 0
	for _, r := range rows {
		if r.Observable() {
			observable++
		}
	}
	// Every line that looks like a row is one: none is lost by the way it is written.
	if lines := strings.Count(string(raw), "\n| ") - strings.Count(string(raw), "\n| id |") - strings.Count(string(raw), "\n| --- |"); len(rows) != lines {
		t.Errorf("%d rows of %d lines", len(rows), lines)
	}
	if len(rows) < 400 || observable < 300 {
		t.Errorf("%d rows, %d observable", len(rows), observable)
	}
	first := suite.Requirement{
		ID: "TOPIC-02", Area: "TOPIC", Level: suite.MustNot, Who: "publisher, hub", Text: "No C0 control (U+0000–U+001F) in a topic.",
		Observe: "POST `topic=a%00b`, `%09`, `%0A`, `%0D`, `%1B`, `%1F` → 400",
	}
	if diff := cmp.Diff(first, rows[1]); diff != "" {
		t.Error(diff)
	}
}

func TestAMatrixThatCannotBeRead(t *testing.T) {
	for name, matrix := range map[string]string{
		"nothing":         "# Requirements",
		"a cell too many": "| A-01 | MUST | hub | a | b | c |",
		"no such level":   "| A-01 | OUGHT | hub | a | b |",
		"twice":           "| A-01 | MUST | hub | a | b |\n| A-01 | MUST | hub | a | b |",
	} {
		if _, err := suite.Requirements(matrix); !errors.Is(err, suite.ErrMatrix) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
