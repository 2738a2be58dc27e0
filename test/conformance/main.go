// Command conformance checks from outside whether a hub speaks Mercure 1.0: it publishes and subscribes, forges tokens
// and sends odd bytes, and says for every requirement that can be seen from outside what it observed.
//
//	go run ./test/conformance -hub https://hub.example.com/.well-known/mercure \
//	    -issuer 'id=https://issuer.example,alg=ES256,key=issuer.pem'
//
// docs/conformance.md is its manual.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/conformance/checks"
	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
)

//go:embed testdata/requirements.md
var matrix string

// Exit codes.
const (
	exitPassed = 0
	exitFailed = 1 // a failure counts
	exitBroken = 2 // the command line is wrong, or the hub cannot be tested
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// command is the program without the process around it.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitPassed
	}
	if err != nil {
		fmt.Fprintf(stderr, "conformance: %v\n", err)
		return exitBroken
	}
	rows, err := suite.Requirements(matrix)
	if err != nil {
		fmt.Fprintf(stderr, "conformance: %v\n", err)
		return exitBroken
	}
	s, err := suite.New(rows, checks.All())
	if err != nil {
		fmt.Fprintf(stderr, "conformance: %v\n", err)
		return exitBroken
	}
	if c.list {
		return list(s, rows, c.selected, stdout)
	}
	forms, err := open(c)
	if err != nil {
		fmt.Fprintf(stderr, "conformance: %v\n", err)
		return exitBroken
	}
	report, err := run(ctx, s, c, stderr)
	err = errors.Join(err, forms.write(report, err == nil, c, stdout))
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "conformance: %v\n", err)
		return exitBroken
	case suite.Cut(report.Results):
		fmt.Fprintf(stderr, "conformance: not all checks ran: the limit of %s was reached (-limit)\n", c.limit)
		return exitBroken
	case report.Demand != "" && len(suite.Failures(report.Results, report.Demand)) > 0:
		return exitFailed
	default:
		return exitPassed
	}
}

// list prints the checks, with their levels.
func list(s *suite.Suite, rows []suite.Requirement, selected func(suite.Check) bool, w io.Writer) int {
	level := map[string]suite.Level{}
	for _, r := range rows {
		level[r.ID] = r.Level
	}
	for _, c := range s.Checks() {
		if selected(c) {
			fmt.Fprintf(w, "%-11s %s\n", level[c.ID], c.Name())
		}
	}
	return exitPassed
}

func run(ctx context.Context, s *suite.Suite, c *options, stderr io.Writer) (suite.Report, error) {
	started := time.Now().UTC().Truncate(time.Second)
	if c.detect {
		if err := suite.Detect(ctx, &c.target); err != nil {
			return suite.Report{}, err
		}
	}
	done := 0
	results, err := s.Run(ctx, &c.target, suite.Options{
		Parallel: c.parallel, Limit: c.limit, Select: c.selected,
		Progress: func(suite.Result) {
			if done++; done%100 == 0 && c.progress {
				fmt.Fprintf(stderr, "%d checks done\n", done)
			}
		},
	})
	if errors.Is(err, context.Canceled) {
		return suite.Report{}, fmt.Errorf("interrupted: %w", err)
	}
	if err != nil {
		return suite.Report{}, err
	}
	if len(results) == 0 {
		return suite.Report{}, errors.New("no check has a name that -run and -skip leave")
	}
	return suite.Report{Hub: c.target.URL, Features: c.target.Known(), Demand: c.demand, Started: started, Results: results}, nil
}

// files are what the report is written to besides standard output. They are opened before the run, which takes minutes.
type files struct{ json, junit *os.File }

func open(c *options) (f files, err error) {
	if c.json == "-" && c.junit == "-" {
		return f, errors.New("-json and -junit cannot both be standard output")
	}
	for path, file := range map[*string]**os.File{&c.json: &f.json, &c.junit: &f.junit} {
		if *path == "" || *path == "-" {
			continue
		}
		var e error
		if *file, e = os.Create(*path); e != nil {
			err = errors.Join(err, e)
		}
	}
	return f, err
}

// write writes the report, if there is one, in the forms that were asked for, and closes the files. A form that goes to
// standard output replaces the text.
func (f files) write(report suite.Report, there bool, c *options, stdout io.Writer) error {
	var err error
	text := there
	for _, form := range []struct {
		path  string
		file  *os.File
		write func(io.Writer) error
	}{{c.json, f.json, report.WriteJSON}, {c.junit, f.junit, report.WriteJUnit}} {
		switch {
		case form.file != nil && there:
			err = errors.Join(err, form.write(form.file), form.file.Close())
		case form.file != nil:
			err = errors.Join(err, form.file.Close())
		case form.path == "-" && there:
			text = false
			err = errors.Join(err, form.write(stdout))
		}
	}
	if text {
		err = errors.Join(err, report.WriteText(stdout, c.verbose))
	}
	return err
}
