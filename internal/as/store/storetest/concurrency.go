package storetest

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// parallel is how many calls meet at one record.
const parallel = 50

// race makes calls on two stores of one database at the same moment, and returns how many succeeded and all other errors.
func (f *fixture) race(t *testing.T, call func(s store.Store, n int) error) (won int, errs []error) {
	t.Helper()
	stores := []store.Store{f.Store, f.another(t)}
	start := make(chan struct{})
	results := make([]error, parallel)
	var wg sync.WaitGroup
	for n := range parallel {
		wg.Go(func() {
			<-start
			results[n] = call(stores[n%len(stores)], n)
		})
	}
	close(start)
	wg.Wait()
	for _, err := range results {
		if err == nil {
			won++
		} else {
			errs = append(errs, err)
		}
	}
	return won, errs
}

// once fails the test unless exactly one call succeeded and all others failed with the target.
func (f *fixture) once(t *testing.T, what string, target error, call func(s store.Store, n int) error) {
	t.Helper()
	won, errs := f.race(t, call)
	if won != 1 {
		t.Errorf("%s: %d of %d calls succeeded, want 1", what, won, parallel)
	}
	for _, err := range errs {
		if !errors.Is(err, target) {
			t.Errorf("%s = %v, want %v", what, err, target)
		}
	}
}

func testParallelRedemption(t *testing.T, f *fixture) {
	ctx := t.Context()
	for round := range 3 {
		c := code(round)
		check(t, "CreateGrant", f.CreateGrant(ctx, grant(round), &c))
		var winner atomic.Int64
		f.once(t, "RedeemCode", store.ErrConsumed, func(s store.Store, n int) error {
			err := s.RedeemCode(ctx, c.Signature, epoch(), issued(round, tokenID(round, n)), nil)
			if err == nil {
				winner.Store(int64(n))
			}
			return err
		})
		for n := range parallel {
			// Only the winner's token was recorded: the others' ids are free.
			err := f.RecordToken(ctx, issued(round, tokenID(round, n)))
			if taken := errors.Is(err, store.ErrExists); taken != (int64(n) == winner.Load()) {
				t.Errorf("token of call %d is recorded: %t (%v), the winner is call %d", n, taken, err, winner.Load())
			}
		}
	}
}

func tokenID(round, n int) string { return fmt.Sprintf("token%d-%d", round, n) }

func testParallelOnce(t *testing.T, f *fixture) {
	ctx := t.Context()
	f.once(t, "UseAssertion", store.ErrConsumed, func(s store.Store, _ int) error {
		return s.UseAssertion(ctx, clientID, "jti", epoch())
	})
	check(t, "CreateInteraction", f.CreateInteraction(ctx, interaction(1)))
	f.once(t, "FinishInteraction", store.ErrNotFound, func(s store.Store, _ int) error {
		return s.FinishInteraction(ctx, interaction(1).IDHash)
	})
	f.once(t, "CreateAccount", store.ErrExists, func(s store.Store, n int) error {
		a := account(n)
		a.Username = "one"
		return s.CreateAccount(ctx, a)
	})
}

func testParallelCompareAndSet(t *testing.T, f *fixture) {
	ctx := t.Context()
	check(t, "CreateAccount", f.CreateAccount(ctx, account(1)))
	f.once(t, "UpdateAccount", store.ErrConflict, func(s store.Store, n int) error {
		a := account(1)
		a.Revision, a.Roles = 1, []string{strconv.Itoa(n)}
		return s.UpdateAccount(ctx, a)
	})
	f.once(t, "SaveKeys", store.ErrConflict, func(s store.Store, n int) error {
		return s.SaveKeys(ctx, issuer, 0, []store.Key{key(strconv.Itoa(n))})
	})
	keys, _, err := f.LoadKeys(ctx, issuer)
	check(t, "LoadKeys", err)
	if len(keys) != 1 {
		t.Fatalf("%d keys after one save of one key won", len(keys))
	}
	before, err := f.Version(ctx)
	check(t, "Version", err)
	won, errs := f.race(t, func(s store.Store, n int) error { return s.PutClient(ctx, client(strconv.Itoa(n))) })
	if won != parallel {
		t.Fatalf("PutClient of different clients: %d failed: %v", len(errs), errors.Join(errs...))
	}
	after, err := f.Version(ctx)
	check(t, "Version", err)
	if after != before+parallel {
		t.Errorf("%d changes raised the version by %d", parallel, after-before)
	}
}

// testParallelRevocations follows the log while it grows: every entry is seen, once, in order.
func testParallelRevocations(t *testing.T, f *fixture) {
	ctx := t.Context()
	reader := f.another(t)
	var seen []int64
	follow := func() error {
		last := int64(0)
		if len(seen) > 0 {
			last = seen[len(seen)-1]
		}
		log, err := reader.RevocationsSince(ctx, last, 7)
		for _, r := range log {
			seen = append(seen, r.Seq)
		}
		return err
	}
	var writing atomic.Bool
	writing.Store(true)
	var wg sync.WaitGroup
	var followed error
	wg.Go(func() {
		for writing.Load() && followed == nil {
			followed = follow()
		}
	})
	won, errs := f.race(t, func(s store.Store, n int) error {
		_, err := s.Revoke(ctx, revocation(store.RevokeToken, strconv.Itoa(n)))
		return err
	})
	writing.Store(false)
	wg.Wait()
	check(t, "RevocationsSince", followed)
	for range parallel {
		check(t, "RevocationsSince", follow())
	}
	if won != parallel {
		t.Fatalf("Revoke: %v", errors.Join(errs...))
	}
	all, err := f.RevocationsSince(ctx, 0, 2*parallel)
	check(t, "RevocationsSince", err)
	var seqs []int64
	for _, r := range all {
		seqs = append(seqs, r.Seq)
	}
	same(t, "followed log", seen, seqs)
}

// testParallelRefresh uses one refresh token many times at once, rotated and not.
func testParallelRefresh(t *testing.T, f *fixture) {
	ctx := t.Context()
	f.redeem(t, 1, "r1")
	f.redeem(t, 2, "r2")
	won, errs := f.race(t, func(s store.Store, n int) error {
		return s.UseRefreshToken(ctx, "r1", epoch(), epoch().Add(time.Duration(n+1)*time.Hour), issued(1, tokenID(1, n)))
	})
	if won != parallel {
		t.Errorf("UseRefreshToken: %d of %d failed: %v", len(errs), parallel, errors.Join(errs...))
	}
	won, errs = f.race(t, func(s store.Store, n int) error {
		return s.RotateRefreshToken(ctx, "r2", epoch(), grace, refresh(2, "s2"), issued(2, tokenID(2, n)))
	})
	if won != parallel {
		t.Errorf("RotateRefreshToken: %d of %d failed: %v", len(errs), parallel, errors.Join(errs...))
	}
	f.once(t, "RotateRefreshToken(no grace)", store.ErrConsumed, func(s store.Store, n int) error {
		return s.RotateRefreshToken(ctx, "s2", epoch(), 0, refresh(2, "s3"), issued(2, tokenID(3, n)))
	})
	check(t, "CreatePushedRequest", f.CreatePushedRequest(ctx, pushed(1)))
	f.once(t, "BindPushedRequest", store.ErrConsumed, func(s store.Store, n int) error {
		return s.BindPushedRequest(ctx, pushed(1).IDHash, strconv.Itoa(n+1))
	})
	f.once(t, "UsePushedRequest", store.ErrConsumed, func(s store.Store, _ int) error {
		return s.UsePushedRequest(ctx, pushed(1).IDHash)
	})
}

// testRevocationRace revokes a grant while tokens are issued under it: each token was either refused or is covered by the entry.
func testRevocationRace(t *testing.T, f *fixture) {
	ctx := t.Context()
	check(t, "CreateGrant", f.CreateGrant(ctx, grant(1), nil))
	recorded := make([]bool, parallel)
	_, errs := f.race(t, func(s store.Store, n int) error {
		if n == parallel/2 {
			return s.RevokeGrant(ctx, grant(1).ID, epoch())
		}
		token := issued(1, tokenID(1, n))
		token.IssuedAt = epoch().Add(grant(n).CreatedAt.Sub(epoch())) // n seconds later
		token.ExpiresAt = token.IssuedAt.Add(1)
		err := s.RecordToken(ctx, token)
		recorded[n] = err == nil
		return err
	})
	for _, err := range errs {
		want(t, "RecordToken", err, store.ErrRevoked)
	}
	log := entries(ctx, t, f)
	if len(log) != 1 {
		t.Fatalf("%d entries in the log, want 1", len(log))
	}
	for n, ok := range recorded {
		if issuedAt := grant(n).CreatedAt; ok && issuedAt.Truncate(1e6).After(log[0].IssuedBefore) {
			t.Errorf("token issued at %s is not covered by %s", issuedAt, log[0].IssuedBefore)
		}
	}
	want(t, "RecordToken", f.RecordToken(ctx, issued(1, "after")), store.ErrRevoked)
}
