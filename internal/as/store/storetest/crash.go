package storetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

const (
	// childVariable tells a test binary that it is the child of testCrash, and where it shall write.
	childVariable = "CINNABAR_STORETEST_CHILD"
	// childLifetime ends a child that nobody kills.
	childLifetime = time.Minute
	acknowledged  = "acknowledged "
	crashAfter    = 20 // rounds of writes
)

// runChild writes, and says so after each round, until it is killed.
func runChild(t *testing.T, open Opener, location string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), childLifetime)
	defer cancel()
	s := open(t, location, time.Now)
	for n := os.Getpid() * 1000; ctx.Err() == nil; n++ {
		writeRound(ctx, t, s, n)
		if _, err := fmt.Fprintf(os.Stdout, "%s%d\n", acknowledged, n); err != nil {
			return // the parent is gone
		}
	}
}

// writeRound makes one write of each kind.
func writeRound(ctx context.Context, t testing.TB, s store.Store, n int) {
	t.Helper()
	c := code(n)
	c.ExpiresAt = time.Now().Add(time.Hour)
	check(t, "CreateAccount", s.CreateAccount(ctx, account(n)))
	check(t, "CreateGrant", s.CreateGrant(ctx, grant(n), &c))
	check(t, "RedeemCode", s.RedeemCode(ctx, c.Signature, time.Now(), issued(n, tokenID(n, 0))))
	check(t, "UseAssertion", s.UseAssertion(ctx, clientID, strconv.Itoa(n), time.Now().Add(time.Hour)))
	check(t, "PutClient", s.PutClient(ctx, client(strconv.Itoa(n))))
	check(t, "RevokeGrant", s.RevokeGrant(ctx, grant(n).ID, time.Now()))
}

// checkRound checks that everything of the round is there.
func checkRound(ctx context.Context, t testing.TB, s store.Store, n int) {
	t.Helper()
	_, err := s.Account(ctx, account(n).ID)
	check(t, "Account", err)
	c, err := s.Code(ctx, code(n).Signature)
	check(t, "Code", err)
	g, err := s.Grant(ctx, grant(n).ID)
	check(t, "Grant", err)
	if c.UsedAt.IsZero() || g.RevokedAt.IsZero() {
		t.Errorf("round %d: a redemption or revocation is lost", n)
	}
	want(t, "UseAssertion", s.UseAssertion(ctx, clientID, strconv.Itoa(n), time.Now()), store.ErrConsumed)
	_, err = s.Client(ctx, strconv.Itoa(n))
	check(t, "Client", err)
}

// testCrash kills a process that writes: first when it is alone, so that the next one has to recover the database, then when this
// process has the database open and writes too.
func testCrash(t *testing.T, open Opener, location string) {
	ctx := t.Context()
	lone := crash(ctx, t, location, func() {})
	s := open(t, location, time.Now)
	defer func() { check(t, "Close", s.Close()) }()
	rounds := crash(ctx, t, location, func() { writeRound(ctx, t, s, len(lone)) })
	writeRound(ctx, t, s, len(lone)+1)
	for _, n := range append(append(lone, rounds...), len(lone), len(lone)+1) {
		checkRound(ctx, t, s, n)
	}
}

// crash runs a child until it has acknowledged some rounds, then kills it, and returns the rounds it acknowledged.
func crash(ctx context.Context, t *testing.T, location string, meanwhile func()) []int {
	t.Helper()
	self, err := os.Executable()
	check(t, "Executable", err)
	root, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.CommandContext(ctx, self, "-test.run=^"+regexp.QuoteMeta(root)+"$", "-test.count=1") //nolint:gosec // the test binary itself
	cmd.Env = append(os.Environ(), childVariable+"="+location)
	out, err := cmd.StdoutPipe()
	check(t, "StdoutPipe", err)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	check(t, "start child", cmd.Start())
	rounds, err := readRounds(out, func(n int) error {
		switch n {
		case crashAfter / 2:
			meanwhile()
		case crashAfter:
			return cmd.Process.Kill() // SIGKILL, or what is like it
		}
		return nil
	})
	_ = cmd.Wait() // it was killed
	check(t, "read from child", err)
	if len(rounds) < crashAfter {
		t.Fatalf("the child ended after %d rounds by itself: %s", len(rounds), stderr.String())
	}
	return rounds
}

// readRounds calls each after every acknowledged round; what a child wrote before it died is read too.
func readRounds(r io.Reader, each func(n int) error) ([]int, error) {
	var rounds []int
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), acknowledged)
		if !ok {
			continue // what the testing package prints
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, err
		}
		rounds = append(rounds, n)
		if err := each(len(rounds)); err != nil {
			return nil, err
		}
	}
	return rounds, lines.Err()
}
