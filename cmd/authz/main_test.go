package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"authz": func() { os.Exit(run()) }})
}

// TestScript runs the command as people do: what it prints, and its exit codes, are a contract.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"eventually": eventually, "exits": exits, "secretly": secretly},
	})
}

// eventually repeats a command until it succeeds and prints what is waited for, as for a server that starts beside the script.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually text program [args...]")
	}
	deadline, tick := time.After(30*time.Second), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for {
		err := ts.Exec(args[1], args[2:]...)
		if err == nil && strings.Contains(ts.ReadFile("stdout"), args[0]) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("%v does not print %q: %v", args[1:], args[0], err)
		}
	}
}

// exits runs a command that must end with the given exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code program [args...]")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v: %v", args[1:], err)
		}
		code = exit.ExitCode()
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("%v: exit code %d, want %s", args[1:], code, args[0])
	}
}

// secretly runs a command that must succeed. What it prints is a secret: it goes to the file, and not into the log as with exec. What it
// says on standard error goes to a second file, whose name ends in .err.
func secretly(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: secretly file program [args...]")
	}
	program := ""
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if found, err := exec.LookPath(filepath.Join(dir, args[1])); err == nil {
			program = found
			break
		}
	}
	var stdout, stderr strings.Builder
	cmd := exec.Command(program, args[2:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), &stdout, &stderr
	err := cmd.Run()
	ts.Logf("[stderr]\n%s", stderr.String())
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(stdout.String()), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".err"), []byte(stderr.String()), 0o600))
}
