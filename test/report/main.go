// Command report runs the tests and says in few words what matters: what failed, what was left out and why, and whether any
// secret came out of any test's process.
//
// It runs 'go test -json' with its arguments. With CINNABAR_TEST_REQUIRE=all a test that was left out is a failure. It looks
// through everything that tests and the programs they started printed for anything shaped like a token, and for any piece of 12
// characters of the secrets that tests recorded (package secretwatch).
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/secretwatch"
)

// pieceLength is how much of a secret must show to count as a leak.
const pieceLength = 12

type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64
	Output  string
}

type key struct{ pkg, test string }

// report gathers the events of one run.
type report struct {
	output  map[key]*strings.Builder
	failed  []key
	skipped []key
	passed  int
	all     *os.File
	out     io.Writer
}

func main() {
	code, err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(args []string, out io.Writer) (code int, err error) {
	dir, err := os.MkdirTemp("", "cinnabar-test-*")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	outputs := filepath.Join(dir, "output")
	secrets := filepath.Join(dir, "secrets")
	if err := os.Mkdir(outputs, 0o700); err != nil {
		return 1, err
	}
	all, err := os.Create(filepath.Join(outputs, "go-test.log"))
	if err != nil {
		return 1, err
	}
	r := &report{output: map[key]*strings.Builder{}, all: all, out: out}
	start := time.Now()
	testErr := r.runTests(args, secrets, outputs)
	if err := all.Close(); err != nil {
		return 1, err
	}
	leaks, err := findLeaks(secrets, outputs)
	if err != nil {
		return 1, err
	}
	return r.summary(testErr, leaks, time.Since(start)), nil
}

func (r *report) runTests(args []string, secrets, outputs string) error {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Env = append(os.Environ(), secretwatch.SecretsVariable+"="+secrets, secretwatch.OutputVariable+"="+outputs)
	var stderr bytes.Buffer
	cmd.Stderr = io.MultiWriter(os.Stderr, &stderr)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	sc := bufio.NewScanner(pipe)
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		var e event
		if json.Unmarshal(sc.Bytes(), &e) != nil {
			_, _ = fmt.Fprintln(r.out, sc.Text()) // not an event: the go command itself speaks
			continue
		}
		if err := r.take(e); err != nil {
			return err
		}
	}
	return errors.Join(sc.Err(), cmd.Wait())
}

func (r *report) take(e event) error {
	k := key{e.Package, e.Test}
	switch e.Action {
	case "output", "build-output":
		if r.output[k] == nil {
			r.output[k] = &strings.Builder{}
		}
		r.output[k].WriteString(e.Output)
		if e.Action == "build-output" {
			_, _ = fmt.Fprint(r.out, e.Output)
		}
		_, err := r.all.WriteString(e.Output)
		return err
	case "pass":
		if e.Test != "" {
			r.passed++
			delete(r.output, k)
			return nil
		}
		_, _ = fmt.Fprintf(r.out, "ok    %s  %.1fs\n", e.Package, e.Elapsed)
	case "skip":
		if e.Test != "" {
			r.skipped = append(r.skipped, k)
		}
	case "fail":
		r.failed = append(r.failed, k)
		if e.Test != "" {
			_, _ = fmt.Fprintf(r.out, "FAIL  %s  %s\n%s", e.Package, e.Test, r.text(k))
		} else {
			_, _ = fmt.Fprintf(r.out, "FAIL  %s\n%s", e.Package, r.text(k))
		}
	}
	return nil
}

func (r *report) text(k key) string {
	if b := r.output[k]; b != nil {
		return b.String()
	}
	return ""
}

func (r *report) summary(testErr error, leaks []string, took time.Duration) int {
	code := 0
	if len(r.failed) > 0 || testErr != nil {
		code = 1
	}
	if len(r.skipped) > 0 {
		_, _ = fmt.Fprintln(r.out, "\nLeft out:")
		for _, k := range r.skipped {
			_, _ = fmt.Fprintf(r.out, "  %s: %s\n", k.test, reason(r.text(k)))
		}
		if os.Getenv("CINNABAR_TEST_REQUIRE") == "all" {
			_, _ = fmt.Fprintln(r.out, "  and CINNABAR_TEST_REQUIRE=all asks for everything")
			code = 1
		}
	}
	for _, l := range leaks {
		_, _ = fmt.Fprintln(r.out, "SECRET IN OUTPUT:", l)
		code = 1
	}
	if testErr != nil && len(r.failed) == 0 {
		_, _ = fmt.Fprintln(r.out, "go test:", testErr)
	}
	_, _ = fmt.Fprintf(r.out, "\n%d passed, %d failed, %d skipped\n", r.passed, len(r.failed), len(r.skipped))
	_, _ = fmt.Fprintf(r.out, "in %s; no output checked for secrets is kept\n", took.Round(time.Second))
	return code
}

// reason takes the text of t.Skip out of a test's output.
func reason(output string) string {
	for line := range strings.Lines(output) {
		if _, text, ok := strings.Cut(line, ".go:"); ok {
			if _, text, ok = strings.Cut(text, ": "); ok {
				return strings.TrimSpace(text)
			}
		}
	}
	return "no reason given"
}

// findLeaks looks for secrets in all output and gives a description of each, which holds no secret.
func findLeaks(secretsFile, outputs string) ([]string, error) {
	pieces, err := readPieces(secretsFile)
	if err != nil {
		return nil, err
	}
	token := regexp.MustCompile(`eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`)
	files, err := filepath.Glob(filepath.Join(outputs, "*"))
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		n := 0
		for line := range strings.Lines(string(raw)) {
			n++
			if token.MatchString(line) {
				found[fmt.Sprintf("%s line %d: something shaped like a token", filepath.Base(name), n)] = true
			}
			if holdsPiece(line, pieces) {
				found[fmt.Sprintf("%s line %d: a piece of a secret that a test used", filepath.Base(name), n)] = true
			}
		}
	}
	var out []string
	for f := range found {
		out = append(out, f)
	}
	sort.Strings(out)
	return out, nil
}

func holdsPiece(line string, pieces map[string]bool) bool {
	for i := 0; i+pieceLength <= len(line); i++ {
		if pieces[line[i:i+pieceLength]] {
			return true
		}
	}
	return false
}

// readPieces gives every piece of every recorded secret.
func readPieces(path string) (map[string]bool, error) {
	pieces := map[string]bool{}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return pieces, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var s string
		if err := json.Unmarshal(sc.Bytes(), &s); err != nil {
			return nil, fmt.Errorf("read secrets: %w", err)
		}
		for i := 0; i+pieceLength <= len(s); i++ {
			pieces[s[i:i+pieceLength]] = true
		}
	}
	return pieces, sc.Err()
}
