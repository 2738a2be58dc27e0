package storetest

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

func testRevocations(t *testing.T, f *fixture) {
	ctx := t.Context()
	log, err := f.RevocationsSince(ctx, 0, 10)
	check(t, "RevocationsSince", err)
	if len(log) != 0 {
		t.Fatalf("a new log has %d entries", len(log))
	}
	kinds := []store.RevocationKind{
		store.RevokeToken, store.RevokeGrant, store.RevokeSession, store.RevokeSubject, store.RevokeClient,
	}
	var all []store.Revocation
	for i, kind := range kinds {
		r := revocation(kind, fmt.Sprintf("value%d", i))
		r.Seq = 999 // not read
		seq, err := f.Revoke(ctx, r)
		check(t, "Revoke", err)
		if i > 0 && seq <= all[i-1].Seq {
			t.Fatalf("Revoke = %d after %d", seq, all[i-1].Seq)
		}
		r.Seq = seq
		all = append(all, r)
	}
	for from := range all {
		log, err := f.RevocationsSince(ctx, all[from].Seq, 2)
		check(t, "RevocationsSince", err)
		same(t, "part of the log", log, all[from+1:min(from+3, len(all))])
	}
	log, err = f.RevocationsSince(ctx, 0, 0)
	check(t, "RevocationsSince", err)
	if len(log) != 0 {
		t.Fatalf("RevocationsSince(limit 0) = %d entries", len(log))
	}

	// A number is not given again after its entry was swept.
	f.clock.advance(1000 * time.Hour)
	_, err = f.Sweep(ctx, f.clock.Now(), 100)
	check(t, "Sweep", err)
	if log := entries(ctx, t, f); len(log) != 0 {
		t.Fatalf("%d entries are left after their end", len(log))
	}
	seq, err := f.Revoke(ctx, revocation(store.RevokeToken, "new"))
	check(t, "Revoke", err)
	if last := all[len(all)-1].Seq; seq <= last {
		t.Fatalf("Revoke = %d after entries up to %d were swept", seq, last)
	}
}

func testAudit(t *testing.T, f *fixture) {
	ctx := t.Context()
	var all []store.AuditRecord // newest first
	for i := range 5 {
		r := store.AuditRecord{At: epoch(), Event: fmt.Sprintf("event%d", i), Actor: "root", Issuer: issuer}
		if i%2 == 0 {
			r.Subject, r.Client, r.Details = account(1).ID, clientID, map[string]string{"jti": "x", "why": "“quoted”"}
		}
		check(t, "Audit", f.Audit(ctx, r))
		all = append([]store.AuditRecord{r}, all...)
	}
	for _, limit := range []int{0, 1, 3, 5, 100} {
		got, err := f.ListAudit(ctx, limit)
		check(t, "ListAudit", err)
		same(t, "audit trail", got, all[:min(limit, len(all))])
	}
}

// testSweep checks that what has ended goes, what has not stays, and that the limit holds.
func testSweep(t *testing.T, f *fixture) {
	ctx := t.Context()
	const n = 7
	check(t, "CreateAccount", f.CreateAccount(ctx, account(1)))
	for i := range n {
		c := code(i)
		check(t, "CreateGrant", f.CreateGrant(ctx, grant(i), &c))
		check(t, "RedeemCode", f.RedeemCode(ctx, c.Signature, epoch(), issued(i, fmt.Sprintf("t%d", i)), nil))
		check(t, "CreateInteraction", f.CreateInteraction(ctx, interaction(i)))
		check(t, "CreateBrowserSession", f.CreateBrowserSession(ctx, session(1, i)))
		check(t, "UseAssertion", f.UseAssertion(ctx, clientID, strconv.Itoa(i), epoch().Add(time.Minute)))
		_, err := f.Revoke(ctx, revocation(store.RevokeToken, "t"))
		check(t, "Revoke", err)
	}
	forever := grant(n)
	forever.ExpiresAt = time.Time{}
	check(t, "CreateGrant", f.CreateGrant(ctx, forever, nil))

	deleted, err := f.Sweep(ctx, f.clock.Now(), 1000)
	check(t, "Sweep", err)
	if deleted != 0 {
		t.Fatalf("Sweep deleted %d records that had not ended", deleted)
	}
	f.clock.advance(365 * 24 * time.Hour)
	for left := 7 * n; left > 0; left -= 10 {
		deleted, err := f.Sweep(ctx, f.clock.Now(), 10)
		check(t, "Sweep", err)
		if deleted != min(10, left) {
			t.Fatalf("Sweep deleted %d records, want %d", deleted, min(10, left))
		}
	}
	left, err := f.ListGrants(ctx, store.GrantFilter{})
	check(t, "ListGrants", err)
	same(t, "grants that are left", left, []store.Grant{forever})
	_, err = f.Account(ctx, account(1).ID)
	check(t, "Account", err)
	_, err = f.Code(ctx, code(1).Signature)
	want(t, "Code(swept)", err, store.ErrNotFound)

	check(t, "RevokeGrant", f.RevokeGrant(ctx, forever.ID, f.clock.Now()))
	f.clock.advance(365 * 24 * time.Hour)
	for deleted = 1; deleted > 0; {
		deleted, err = f.Sweep(ctx, f.clock.Now(), 10)
		check(t, "Sweep", err)
	}
	_, err = f.Grant(ctx, forever.ID)
	want(t, "Grant(revoked and swept)", err, store.ErrNotFound)
}

// testSweepKeeps checks that nothing goes while it is needed: revocations until their end, used refresh tokens while their reuse tells
// something, a grant while there is something of it.
func testSweepKeeps(t *testing.T, f *fixture) {
	ctx := t.Context()
	sweep := func() {
		t.Helper()
		for deleted := 1; deleted > 0; {
			var err error
			deleted, err = f.Sweep(ctx, f.clock.Now(), 100)
			check(t, "Sweep", err)
		}
	}
	f.redeem(t, 1, "r1")
	f.redeem(t, 2, "r2")
	rotate := func() error {
		return f.RotateRefreshToken(ctx, "r1", f.clock.Now(), grace, refresh(1, "s1"), issued(1, "t1"))
	}
	check(t, "RotateRefreshToken", rotate())
	check(t, "RevokeGrant", f.RevokeGrant(ctx, grant(2).ID, epoch()))
	check(t, "EndSession", endSession(ctx, f, "other sid", epoch()))
	log := entries(ctx, t, f)

	f.clock.advance(10*time.Minute - time.Millisecond) // the last moment of the tokens of grant 2
	sweep()
	same(t, "revocation log", entries(ctx, t, f), log)
	f.clock.advance(50*time.Minute + time.Second)
	sweep()
	if _, err := f.RefreshToken(ctx, "r1"); err != nil {
		t.Fatalf("RefreshToken(used, after its idle time) = %v", err)
	}
	want(t, "RotateRefreshToken(used, after its idle time)", f.RotateRefreshToken(ctx, "r1", f.clock.Now(), grace, refresh(1, "s1"),
		issued(1, "t2")), store.ErrConsumed)

	// Grants go after what refers to them, also when they had to stay at first.
	for range 5 {
		f.clock.advance(24 * time.Hour)
		sweep()
	}
	for n, id := range map[int]string{1: "r1", 2: "r2"} {
		_, err := f.RefreshToken(ctx, id)
		want(t, "RefreshToken(swept)", err, store.ErrNotFound)
		_, err = f.Grant(ctx, grant(n).ID)
		want(t, "Grant(swept)", err, store.ErrNotFound)
	}
	if left := entries(ctx, t, f); len(left) != 0 {
		t.Errorf("%d entries are left in the log", len(left))
	}
}
