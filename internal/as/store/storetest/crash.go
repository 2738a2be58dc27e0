package storetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

const (
	acknowledged = "acknowledged "
	crashAfter   = 20 // rounds of writes
)

// keepOn writes, and says so after each round, until the process is killed.
func keepOn(ctx context.Context, t *testing.T, s store.Store) {
	t.Helper()
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
	now := time.Now()
	c, r, successor, p := code(n), refresh(n, fmt.Sprintf("r%d", n)), refresh(n, fmt.Sprintf("s%d", n)), pushed(n)
	p.ExpiresAt = now.Add(time.Hour)
	id := strconv.Itoa(n)
	check(t, "CreateAccount", s.CreateAccount(ctx, account(n)))
	check(t, "PutClient", s.PutClient(ctx, client(id)))
	check(t, "PutClient", s.PutClient(ctx, client("deleted"+id)))
	check(t, "DeleteClient", s.DeleteClient(ctx, "deleted"+id, now))
	check(t, "UseAssertion", s.UseAssertion(ctx, clientID, id, now.Add(time.Hour)))
	check(t, "CreatePushedRequest", s.CreatePushedRequest(ctx, p))
	check(t, "BindPushedRequest", s.BindPushedRequest(ctx, p.IDHash, id))
	check(t, "CreateGrant", s.CreateGrant(ctx, grant(n), &c))
	check(t, "RedeemCode", s.RedeemCode(ctx, c.Signature, epoch(), issued(n, tokenID(n, 0)), &r))
	check(t, "RotateRefreshToken", s.RotateRefreshToken(ctx, r.ID, epoch(), grace, successor, issued(n, tokenID(n, 1))))
	check(t, "UseRefreshToken", s.UseRefreshToken(ctx, successor.ID, epoch(), epoch().Add(2*time.Hour), issued(n, tokenID(n, 2))))
	check(t, "RevokeToken", s.RevokeToken(ctx, tokenID(n, 2), now))
	check(t, "RevokeGrant", s.RevokeGrant(ctx, grant(n).ID, now))
	check(t, "EndSession", endSession(ctx, s, "sid-"+id, now))
}

// checkRound checks that everything of the round is there.
func checkRound(ctx context.Context, t testing.TB, s store.Store, n int) {
	t.Helper()
	id := strconv.Itoa(n)
	_, err := s.Account(ctx, account(n).ID)
	check(t, "Account", err)
	_, err = s.Client(ctx, id)
	check(t, "Client", err)
	_, err = s.Client(ctx, "deleted"+id)
	want(t, "Client(deleted)", err, store.ErrNotFound)
	want(t, "UseAssertion", s.UseAssertion(ctx, clientID, id, time.Now()), store.ErrConsumed)
	want(t, "BindPushedRequest", s.BindPushedRequest(ctx, pushed(n).IDHash, "other"), store.ErrConsumed)
	c, err := s.Code(ctx, code(n).Signature)
	check(t, "Code", err)
	g, err := s.Grant(ctx, grant(n).ID)
	check(t, "Grant", err)
	r, err := s.RefreshToken(ctx, fmt.Sprintf("r%d", n))
	check(t, "RefreshToken", err)
	successor, err := s.RefreshToken(ctx, r.SuccessorID)
	check(t, "RefreshToken(successor)", err)
	token, err := s.IssuedToken(ctx, tokenID(n, 2))
	check(t, "IssuedToken", err)
	moved := successor.ExpiresAt.Equal(epoch().Add(2 * time.Hour).Truncate(time.Millisecond))
	if c.UsedAt.IsZero() || g.RevokedAt.IsZero() || r.UsedAt.IsZero() || token.RevokedAt.IsZero() || !moved {
		t.Errorf("round %d: a redemption, refresh or revocation is lost", n)
	}
}

// testCrash kills a process that writes: first when it is alone, so that the next one has to recover the database, then when this
// process has the database open, writes too and makes a backup.
func testCrash(t *testing.T, open Opener, file, location string) {
	ctx := t.Context()
	lone := crash(ctx, t, location, func() {})
	s := open(t, location, time.Now)
	defer func() { check(t, "Close", s.Close()) }()
	path := filepath.Join(t.TempDir(), "copy.db")
	rounds := crash(ctx, t, location, func() {
		writeRound(ctx, t, s, len(lone))
		check(t, "Backup", s.Backup(ctx, path))
	})
	copied := restore(t, open, file, path, time.Now)
	for _, n := range append(slices.Concat(lone, rounds[:crashAfter/2]), len(lone)) { // what was acknowledged when it began
		checkRound(ctx, t, copied, n)
	}
	writeRound(ctx, t, s, len(lone)+1)
	all := append(slices.Concat(lone, rounds), len(lone), len(lone)+1)
	for _, n := range all {
		checkRound(ctx, t, s, n)
	}
	count := countLog(ctx, t, s)
	checkLog(t, count, all)
	for _, child := range [][]int{lone, rounds} {
		checkTorn(ctx, t, s, count, child[len(child)-1]+1)
	}
}

// countLog counts the entries of the revocation log by kind and value.
func countLog(ctx context.Context, t testing.TB, s store.Store) map[string]int {
	t.Helper()
	count := map[string]int{}
	for seq := int64(0); ; { // a child that is killed late has written more than one page
		log, err := s.RevocationsSince(ctx, seq, 1000)
		check(t, "RevocationsSince", err)
		if len(log) == 0 {
			return count
		}
		for _, r := range log {
			count[string(r.Kind)+" "+r.Value]++
			seq = r.Seq
		}
	}
}

// checkTorn checks what is there of the round in which the process was killed: of each operation all or nothing.
func checkTorn(ctx context.Context, t testing.TB, s store.Store, count map[string]int, n int) {
	t.Helper()
	found := func(err error) bool {
		if err != nil {
			want(t, "read", err, store.ErrNotFound)
		}
		return err == nil
	}
	token := func(i int) (store.IssuedToken, bool) {
		got, err := s.IssuedToken(ctx, tokenID(n, i))
		return got, found(err)
	}
	c, _ := s.Code(ctx, code(n).Signature)
	r, err := s.RefreshToken(ctx, fmt.Sprintf("r%d", n))
	refreshed := found(err)
	if _, first := token(0); first != refreshed || first == c.UsedAt.IsZero() {
		t.Errorf("round %d: the code is used at %s, its token recorded: %t, its refresh token: %t", n, c.UsedAt, first, refreshed)
	}
	_, err = s.RefreshToken(ctx, fmt.Sprintf("s%d", n))
	succeeded := found(err)
	if _, second := token(1); second != succeeded || second == r.UsedAt.IsZero() {
		t.Errorf("round %d: the refresh token is used at %s, its successor there: %t, its token: %t", n, r.UsedAt, succeeded, second)
	}
	third, _ := token(2)
	if logged := count["jti "+tokenID(n, 2)] == 1; logged == third.RevokedAt.IsZero() {
		t.Errorf("round %d: the token is revoked at %s, in the log: %t", n, third.RevokedAt, logged)
	}
	g, _ := s.Grant(ctx, grant(n).ID)
	if logged := count["grant "+grant(n).ID] == 1; logged == g.RevokedAt.IsZero() {
		t.Errorf("round %d: the grant is revoked at %s, in the log: %t", n, g.RevokedAt, logged)
	}
}

// checkLog checks that the revocation log has the entries of every round, each once.
func checkLog(t testing.TB, count map[string]int, rounds []int) {
	t.Helper()
	for _, n := range rounds {
		for _, name := range []string{"jti " + tokenID(n, 2), "grant " + grant(n).ID, "sid sid-" + strconv.Itoa(n)} {
			if count[name] != 1 {
				t.Errorf("the log has %d entries for %s, want 1", count[name], name)
			}
		}
	}
}

// crash runs a child until it has acknowledged some rounds, then kills it, and returns the rounds it acknowledged.
func crash(ctx context.Context, t *testing.T, location string, meanwhile func()) []int {
	t.Helper()
	c := startChild(ctx, t, location, taskWrite)
	rounds, err := readRounds(c.out, func(n int) error {
		switch n {
		case crashAfter / 2:
			meanwhile()
		case crashAfter:
			return c.cmd.Process.Kill() // SIGKILL, or what is like it
		}
		return nil
	})
	_ = c.cmd.Wait() // it was killed
	check(t, "read from child", err)
	if len(rounds) < crashAfter {
		t.Fatalf("the child ended after %d rounds by itself: %s", len(rounds), c.stderr.String())
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
