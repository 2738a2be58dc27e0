package ownhub_test

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/harness"
	"github.com/cinnabar-hub/cinnabar/test/secretwatch"
)

// program is the name of the suite's binary.
const program = "conformance"

// heavy is how the names of the load-shaped checks begin.
const heavy = "STRESS-"

// bound is the longest that the suite may take for one configuration, on a machine that does much else.
const bound = 15 * time.Minute

// atOnce is how many checks run at once: some only wait.
const atOnce = "8"

// hopeless is how long an answer or an update is waited for by checks that are known to fail, and howMany of them wait at once:
// most of them wait for what never comes.
const (
	hopeless = 5 * time.Second
	howMany  = "100"
)

// conform runs the suite against the site and gives the results in the order of checks. What is known to fail runs apart, so that
// it is not waited for as long as what must not fail.
func (s *site) conform(t *testing.T, checks []string, list []known) []suite.Result {
	t.Helper()
	var failing []string
	for _, c := range checks {
		if runs := s.heavy || !strings.HasPrefix(c, heavy); runs && isKnown(list, s.name, c) {
			failing = append(failing, regexp.QuoteMeta(c))
		}
	}
	var skip []string
	if !s.heavy {
		skip = append(skip, "^"+heavy)
	}
	if len(failing) == 0 {
		return s.suite(t, "-run", *selected, "-skip", strings.Join(skip, "|"))
	}
	known := "^(" + strings.Join(failing, "|") + ")$"
	results := s.suite(t, "-run", *selected, "-skip", strings.Join(append(skip, known), "|"))
	results = append(results, s.suite(t, "-run", known, "-patience", hopeless.String(), "-parallel", howMany)...)
	slices.SortStableFunc(results, func(a, b suite.Result) int {
		return slices.Index(checks, a.Check) - slices.Index(checks, b.Check)
	})
	return results
}

// suite runs the suite once.
func (s *site) suite(t *testing.T, args ...string) []suite.Result {
	t.Helper()
	file := filepath.Join(t.TempDir(), "results.json")
	args = slices.Concat(s.arguments(), args, []string{"-json", file})
	p := harness.Run(t, program, exec.Command(harness.Program(program), args...))
	select {
	case <-p.Done:
	case <-time.After(bound):
		t.Fatalf("the suite has not ended after %v", bound)
	}
	if p.Err != nil { // failures do not count for its exit code, so it could not do its work
		t.Fatalf("the suite ended with %v", p.Err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := secretwatch.Output(t, "results", io.Discard).Write(raw); err != nil { // no token may stand in them
		t.Fatal(err)
	}
	var report suite.Report
	if err := json.Unmarshal(raw, &report); err != nil {
		t.Fatal(err)
	}
	return report.Results
}

// arguments describe the hub to the suite.
func (s *site) arguments() []string {
	features := []suite.Feature{suite.Cookie, suite.QueryMethod, suite.History, suite.Metadata}
	if !s.closed {
		features = append(features, suite.Anonymous)
	}
	if s.subscriptions {
		features = append(features, suite.Subscriptions)
	}
	names := make([]string, len(features))
	for i, f := range features {
		names[i] = string(f)
	}
	args := slices.Concat(s.flags, []string{
		"-hub", s.url, "-resource", s.resource, "-features", strings.Join(names, ","), "-cookie", cookieName,
		"-ca", harness.CAFile(s.dir), "-fail-on", "none", "-limit", (bound - time.Minute).String(),
		"-parallel", atOnce, "-keep-alive", s.heartbeat.String(), "-lifetime", s.lifetime.String(),
	})
	if s.cors != "" {
		args = append(args, "-cors-origin", s.cors, "-publish-origin", s.publisher)
	}
	if s.asIssuer != "" {
		args = append(args, "-as-issuer", s.asIssuer, "-as-client", clientID, "-as-secret-file", filepath.Join(s.dir, secretFile))
	}
	return args
}

// allChecks asks the suite for the names of its checks.
func allChecks(t *testing.T) []string {
	t.Helper()
	var names []string
	for line := range strings.Lines(harness.Must(t, "", program, "-list", "-run", *selected)) {
		fields := strings.Fields(line)
		names = append(names, fields[len(fields)-1])
	}
	return names
}
