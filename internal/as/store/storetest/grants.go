package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

func testGrants(t *testing.T, f *fixture) {
	ctx := t.Context()
	_, err := f.Grant(ctx, "grant1")
	want(t, "Grant(unknown)", err, store.ErrNotFound)
	own, other := grant(1), grant(2)
	other.AccountID, other.ExpiresAt = "", time.Time{} // a client for itself, until it is revoked
	c := code(1)
	check(t, "CreateGrant", f.CreateGrant(ctx, own, &c))
	check(t, "CreateGrant(no code)", f.CreateGrant(ctx, other, nil))
	got, err := f.Grant(ctx, own.ID)
	check(t, "Grant", err)
	same(t, "grant", got, own)
	list, err := f.ListGrants(ctx, store.GrantFilter{})
	check(t, "ListGrants", err)
	same(t, "grants, newest first", list, []store.Grant{other, own})
	list, err = f.ListGrants(ctx, store.GrantFilter{AccountID: own.AccountID})
	check(t, "ListGrants", err)
	same(t, "grants of an account", list, []store.Grant{own})
	testGrantFilter(t, f)

	c = code(2)
	c.GrantID = own.ID
	want(t, "CreateGrant(known id)", f.CreateGrant(ctx, own, &c), store.ErrExists)
	_, err = f.Code(ctx, c.Signature)
	want(t, "Code of a grant that was refused", err, store.ErrNotFound)
	third, twice := grant(3), code(1)
	twice.GrantID = third.ID
	want(t, "CreateGrant(known signature)", f.CreateGrant(ctx, third, &twice), store.ErrExists)
	_, err = f.Grant(ctx, third.ID)
	want(t, "Grant of a code that was refused", err, store.ErrNotFound)
	want(t, "CreateGrant(code of another)", f.CreateGrant(ctx, third, &c), store.ErrInvalid)
}

func testCodes(t *testing.T, f *fixture) {
	ctx := t.Context()
	at := epoch().Add(time.Second)
	_, err := f.Code(ctx, "signature1")
	want(t, "Code(unknown)", err, store.ErrNotFound)
	want(t, "RedeemCode(unknown)", f.RedeemCode(ctx, "signature1", at, issued(1, "t1"), nil), store.ErrNotFound)
	for n := range 4 {
		c := code(n)
		check(t, "CreateGrant", f.CreateGrant(ctx, grant(n), &c))
	}
	got, err := f.Code(ctx, "signature1")
	check(t, "Code", err)
	same(t, "code", got, code(1))

	want(t, "RedeemCode(token of another grant)", f.RedeemCode(ctx, "signature1", at, issued(2, "t1"), nil), store.ErrInvalid)
	check(t, "RedeemCode", f.RedeemCode(ctx, "signature1", at, issued(1, "t1"), nil))
	want(t, "RedeemCode(again)", f.RedeemCode(ctx, "signature1", at, issued(1, "t2"), nil), store.ErrConsumed)
	used := code(1)
	used.UsedAt = at
	got, err = f.Code(ctx, "signature1")
	check(t, "Code(used)", err)
	same(t, "used code", got, used)

	want(t, "RedeemCode(known token)", f.RedeemCode(ctx, "signature2", at, issued(2, "t1"), nil), store.ErrExists)
	check(t, "RedeemCode after a failure", f.RedeemCode(ctx, "signature2", at, issued(2, "t3"), nil))

	check(t, "RedeemCode(just in time)", f.RedeemCode(ctx, "signature3", code(3).ExpiresAt.Add(-time.Millisecond), issued(3, "t4"), nil))
	want(t, "RedeemCode(expired)", f.RedeemCode(ctx, "signature0", code(0).ExpiresAt, issued(0, "t5"), nil), store.ErrNotFound)

	f.clock.advance(time.Minute + store.MinCodeRetention)
	_, err = f.Sweep(ctx, f.clock.Now(), 1000)
	check(t, "Sweep", err)
	got, err = f.Code(ctx, "signature1")
	check(t, "Code(used, half an hour later)", err)
	same(t, "used code", got, used)
	want(t, "RedeemCode(replay, half an hour later)", f.RedeemCode(ctx, "signature1", at, issued(1, "t6"), nil), store.ErrConsumed)
}

func testRevokedGrants(t *testing.T, f *fixture) {
	ctx := t.Context()
	want(t, "RevokeGrant(unknown)", f.RevokeGrant(ctx, "grant1", epoch()), store.ErrNotFound)
	for n := range 4 {
		c := code(n)
		check(t, "CreateGrant", f.CreateGrant(ctx, grant(n), &c))
	}
	early, late := issued(1, "early"), issued(1, "late")
	late.IssuedAt, late.ExpiresAt = epoch().Add(time.Minute), epoch().Add(time.Hour)
	check(t, "RecordToken", f.RecordToken(ctx, late))
	check(t, "RecordToken", f.RecordToken(ctx, early))
	at := epoch().Add(30 * time.Second)
	check(t, "RevokeGrant", f.RevokeGrant(ctx, "grant1", at))
	got, err := f.Grant(ctx, "grant1")
	check(t, "Grant", err)
	revoked := grant(1)
	revoked.RevokedAt = at
	same(t, "revoked grant", got, revoked)
	// The entry covers every token of the grant, also one of a clock that is ahead.
	entry := store.Revocation{
		Issuer: issuer, Kind: store.RevokeGrant, Value: "grant1", IssuedBefore: late.IssuedAt, Until: late.ExpiresAt,
	}
	same(t, "revocation log", entries(ctx, t, f), []store.Revocation{entry})

	want(t, "RecordToken(revoked)", f.RecordToken(ctx, issued(1, "t1")), store.ErrRevoked)
	err = f.RedeemCode(ctx, "signature1", epoch(), issued(1, "t2"), nil)
	want(t, "RedeemCode(revoked)", err, store.ErrRevoked)
	want(t, "RedeemCode(revoked)", err, store.ErrConsumed)
	check(t, "RecordToken(other grant)", f.RecordToken(ctx, issued(2, "t3")))

	check(t, "RevokeGrant(again)", f.RevokeGrant(ctx, "grant1", at.Add(time.Hour)))
	got, err = f.Grant(ctx, "grant1")
	check(t, "Grant", err)
	same(t, "twice revoked grant", got, revoked)
	same(t, "revocation log", entries(ctx, t, f), []store.Revocation{entry})

	check(t, "RevokeGrant(no tokens)", f.RevokeGrant(ctx, "grant3", at))
	same(t, "revocation log", entries(ctx, t, f)[1:], []store.Revocation{{
		Issuer: issuer, Kind: store.RevokeGrant, Value: "grant3", IssuedBefore: at, Until: at.Add(time.Second),
	}})
}

// testGrantFilter is part of testGrants: there are grants 1 and 2 of one client, the second without account.
func testGrantFilter(t *testing.T, f *fixture) {
	ctx := t.Context()
	foreign := grant(9)
	foreign.ClientID, foreign.SessionID, foreign.AccountID = "other", "sid9", account(9).ID
	check(t, "CreateGrant", f.CreateGrant(ctx, foreign, nil))
	for _, c := range []struct {
		filter store.GrantFilter
		want   []string
	}{
		{store.GrantFilter{}, []string{"grant9", "grant2", "grant1"}},
		{store.GrantFilter{ClientID: clientID}, []string{"grant2", "grant1"}},
		{store.GrantFilter{SessionID: "sid9"}, []string{"grant9"}},
		{store.GrantFilter{AccountID: account(9).ID, ClientID: "other", SessionID: "sid9"}, []string{"grant9"}},
		{store.GrantFilter{AccountID: account(1).ID, ClientID: clientID}, []string{"grant1"}},
		{store.GrantFilter{AccountID: account(9).ID, ClientID: clientID}, nil},
		{store.GrantFilter{ClientID: "' OR 1=1 --"}, nil},
	} {
		list, err := f.ListGrants(ctx, c.filter)
		check(t, "ListGrants", err)
		var ids []string
		for _, g := range list {
			ids = append(ids, g.ID)
		}
		same(t, fmt.Sprintf("grants of %+v", c.filter), ids, c.want)
	}
}
