package storetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

const (
	// childVariable tells a test binary that it is a child, and which location it shall open; taskVariable what it shall do there.
	childVariable = "CINNABAR_STORETEST_CHILD"
	taskVariable  = "CINNABAR_STORETEST_TASK"
	taskWrite     = "write"
	taskCall      = "call"
	// childLifetime ends a child that nobody ends.
	childLifetime = 2 * time.Minute
	// processes share one database.
	processes = 2
)

// What children write, each on a line of its own.
const (
	sayReady   = "ready"
	sayOutcome = "outcome "
	sayDone    = "done"
)

// runChild does its task in a process of its own.
func runChild(t *testing.T, open Opener, location string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), childLifetime)
	defer cancel()
	s := open(t, location, time.Now)
	defer func() { check(t, "Close", s.Close()) }()
	switch task := os.Getenv(taskVariable); task {
	case taskWrite:
		keepOn(ctx, t, s)
	case taskCall:
		answer(ctx, t, s)
	default:
		t.Fatalf("no task %q", task)
	}
}

// child is a running child.
type child struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.Reader
	stderr strings.Builder
}

// startChild runs the test binary again.
func startChild(ctx context.Context, t *testing.T, location, task string) *child {
	t.Helper()
	self, err := os.Executable()
	check(t, "Executable", err)
	root, _, _ := strings.Cut(t.Name(), "/")
	c := &child{}
	c.cmd = exec.CommandContext(ctx, self, "-test.run=^"+regexp.QuoteMeta(root)+"$", "-test.count=1") //nolint:gosec // the test binary itself
	c.cmd.Env = append(os.Environ(), childVariable+"="+location, taskVariable+"="+task)
	c.cmd.Stderr = &c.stderr
	c.in, err = c.cmd.StdinPipe()
	check(t, "StdinPipe", err)
	c.out, err = c.cmd.StdoutPipe()
	check(t, "StdoutPipe", err)
	check(t, "start child", c.cmd.Start())
	return c
}

// contest is a kind of call that many make at once, and what may become of it.
type contest struct {
	name string
	// prepare creates what the calls of this round are about.
	prepare func(f *fixture, t *testing.T, round int)
	call    func(ctx context.Context, s store.Store, round, n int) error
	// winners is how many succeed; anyNumber: it depends.
	winners int
	// losers is what the others get.
	losers []error
}

const anyNumber = -1

// contests are the same in all processes.
func contests() []contest {
	redeemed := func(f *fixture, t *testing.T, round int) { f.redeem(t, round, fmt.Sprintf("r%d", round)) }
	rotation := func(grace time.Duration, successors int) func(context.Context, store.Store, int, int) error {
		return func(ctx context.Context, s store.Store, round, n int) error {
			successor := refresh(round, fmt.Sprintf("s%d-%d", round, n%successors))
			return s.RotateRefreshToken(ctx, fmt.Sprintf("r%d", round), epoch(), grace, successor, issued(round, tokenID(round, n)))
		}
	}
	rotate := rotation(grace, 1)
	return []contest{
		{
			name: "code", winners: 1, losers: []error{store.ErrConsumed},
			prepare: func(f *fixture, t *testing.T, round int) {
				c := code(round)
				check(t, "CreateGrant", f.CreateGrant(t.Context(), grant(round), &c))
			},
			call: func(ctx context.Context, s store.Store, round, n int) error {
				r := refresh(round, tokenID(round, n))
				return s.RedeemCode(ctx, code(round).Signature, epoch(), issued(round, tokenID(round, n)), &r)
			},
		},
		{
			name: "refresh token that stays", winners: parallel, prepare: redeemed,
			call: func(ctx context.Context, s store.Store, round, n int) error {
				return s.UseRefreshToken(ctx, fmt.Sprintf("r%d", round), epoch(), epoch().Add(time.Hour), issued(round, tokenID(round, n)))
			},
		},
		{name: "refresh token that is rotated", winners: parallel, prepare: redeemed, call: rotate},
		{name: "refresh token, no grace", winners: 1, losers: []error{store.ErrConsumed}, prepare: redeemed, call: rotation(0, 1)},
		{
			name: "refresh token, two successors", winners: parallel / 2, losers: []error{store.ErrConsumed}, prepare: redeemed,
			call: rotation(grace, 2),
		},
		{
			name: "refresh token of a grant that is revoked", winners: anyNumber, losers: []error{store.ErrRevoked}, prepare: redeemed,
			call: func(ctx context.Context, s store.Store, round, n int) error {
				if n == parallel/2 {
					return s.RevokeGrant(ctx, grant(round).ID, epoch())
				}
				return rotate(ctx, s, round, n)
			},
		},
	}
}

// answer is the task of a child: it makes its part of the calls of the contests it is told, a line for each: contest, round, and the
// number of the first call.
func answer(ctx context.Context, t *testing.T, s store.Store) {
	t.Helper()
	_, err := fmt.Fprintln(os.Stdout, sayReady)
	check(t, "say ready", err)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var kind, round, first int
		_, err := fmt.Sscan(lines.Text(), &kind, &round, &first)
		check(t, "read what to do", err)
		results := make([]error, parallel/processes)
		var wg sync.WaitGroup
		for i := range results {
			wg.Go(func() { results[i] = contests()[kind].call(ctx, s, round, first+i) })
		}
		wg.Wait()
		for i, err := range results {
			_, err := fmt.Fprintf(os.Stdout, "%s%d %s\n", sayOutcome, first+i, outcome(err))
			check(t, "say what came out", err)
		}
		_, err = fmt.Fprintln(os.Stdout, sayDone)
		check(t, "say done", err)
	}
}

// outcomes are the errors that have a name between processes.
func outcomes() map[string]error {
	return map[string]error{"consumed": store.ErrConsumed, "revoked": store.ErrRevoked, "not-found": store.ErrNotFound, "exists": store.ErrExists}
}

func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	for name, target := range outcomes() {
		if errors.Is(err, target) {
			return name
		}
	}
	return strconv.Quote(err.Error())
}

// testProcesses has two processes contest for one record at the same moment.
func testProcesses(t *testing.T, open Opener, location string) {
	ctx, cancel := context.WithTimeout(t.Context(), childLifetime)
	defer cancel()
	f := &fixture{open: open, location: location, clock: &clock{now: epoch()}}
	f.Store = f.another(t)
	children := make([]*child, processes)
	readers := make([]*bufio.Scanner, processes)
	for i := range children {
		children[i] = startChild(ctx, t, location, taskCall)
		readers[i] = bufio.NewScanner(children[i].out)
		until(t, readers[i], sayReady)
	}
	for kind, c := range contests() {
		for again := range 2 {
			round := 10*kind + again
			c.prepare(f, t, round)
			for i, child := range children { // each begins at once, beside the other
				_, err := fmt.Fprintln(child.in, kind, round, i*parallel/processes)
				check(t, "tell the child", err)
			}
			var said []string
			for _, r := range readers {
				said = append(said, until(t, r, sayDone)...)
			}
			f.judge(t, c, round, said)
		}
	}
	for _, child := range children {
		check(t, "close", child.in.Close())
		_, err := io.Copy(io.Discard, child.out)
		check(t, "read from child", err)
		if err := child.cmd.Wait(); err != nil {
			t.Errorf("child: %v: %s", err, child.stderr.String())
		}
	}
}

// until returns the lines before the one that is awaited.
func until(t *testing.T, lines *bufio.Scanner, awaited string) []string {
	t.Helper()
	var out []string
	for lines.Scan() {
		if lines.Text() == awaited {
			return out
		}
		out = append(out, lines.Text())
	}
	t.Fatalf("the child ended before it said %q: %v: %v", awaited, lines.Err(), out)
	return nil
}

// judge checks what came out of a contest: who won, what the others got, and that the tokens of the winners are there and no others.
func (f *fixture) judge(t *testing.T, c contest, round int, said []string) {
	t.Helper()
	won, calls := 0, 0
	for _, line := range said {
		text, ok := strings.CutPrefix(line, sayOutcome)
		if !ok {
			continue
		}
		calls++
		number, result, _ := strings.Cut(text, " ")
		n, err := strconv.Atoi(number)
		check(t, "number of the call", err)
		if result == "ok" {
			won++
		} else if !allowed(c.losers, result) {
			t.Errorf("%s: call %d: %s", c.name, n, result)
		}
		if c.winners == anyNumber && n == parallel/2 {
			continue // it was no call for a token
		}
		_, err = f.IssuedToken(t.Context(), tokenID(round, n))
		if recorded := err == nil; recorded != (result == "ok") {
			t.Errorf("%s: call %d: %s, and its token is recorded: %t (%v)", c.name, n, result, recorded, err)
		}
	}
	if calls != parallel {
		t.Errorf("%s: %d calls, want %d", c.name, calls, parallel)
	}
	if c.winners != anyNumber && won != c.winners {
		t.Errorf("%s: %d calls succeeded, want %d", c.name, won, c.winners)
	}
}

func allowed(errs []error, result string) bool {
	for _, err := range errs {
		if errors.Is(outcomes()[result], err) {
			return true
		}
	}
	return false
}
