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

// testRevocationAtomic checks that a change and its entries in the log come together or not at all.
func testRevocationAtomic(t *testing.T, f *fixture) {
	ctx := t.Context()
	a := account(1)
	check(t, "CreateAccount", f.CreateAccount(ctx, a))
	check(t, "PutClient", f.PutClient(ctx, client("app")))
	check(t, "CreateBrowserSession", f.CreateBrowserSession(ctx, session(1, 1)))
	good, bad := revocation(store.RevokeSubject, a.ID), revocation("everything", "*")
	a.Revision, a.Username = 1, "renamed"
	other := client("app")
	other.Name = "renamed"
	hash := session(1, 1).IDHash
	for _, change := range []struct {
		name string
		do   func(r ...store.Revocation) error
	}{
		{"UpdateAccount", func(r ...store.Revocation) error { return f.UpdateAccount(ctx, a, r...) }},
		{"PutClient", func(r ...store.Revocation) error { return f.PutClient(ctx, other, r...) }},
		{"DeleteClient", func(r ...store.Revocation) error { return f.DeleteClient(ctx, "app", r...) }},
		{"DeleteBrowserSession", func(r ...store.Revocation) error { return f.DeleteBrowserSession(ctx, hash, r...) }},
		{"EndBrowserSessions", func(r ...store.Revocation) error {
			_, err := f.EndBrowserSessions(ctx, a.ID, r...)
			return err
		}},
	} {
		before := len(entries(ctx, t, f))
		want(t, change.name+"(bad entry)", change.do(good, bad), store.ErrInvalid)
		if after := len(entries(ctx, t, f)); after != before {
			t.Fatalf("%s failed and left %d entries", change.name, after-before)
		}
		if change.name == "DeleteBrowserSession" {
			if _, err := f.BrowserSession(ctx, hash); err != nil {
				t.Fatalf("DeleteBrowserSession failed and deleted the session: %v", err)
			}
		}
		check(t, change.name, change.do(good, revocation(store.RevokeToken, "t1")))
		if after := len(entries(ctx, t, f)); after != before+2 {
			t.Fatalf("%s appended %d entries, want 2", change.name, after-before)
		}
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
		check(t, "RedeemCode", f.RedeemCode(ctx, c.Signature, epoch(), issued(i, fmt.Sprintf("t%d", i))))
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
	left, err := f.ListGrants(ctx, "")
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
