package storetest

import (
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

func testTokens(t *testing.T, f *fixture) {
	ctx := t.Context()
	_, err := f.IssuedToken(ctx, "free")
	want(t, "IssuedToken(unknown)", err, store.ErrNotFound)
	free := issued(1, "free")
	free.GrantID, free.RevokedAt = "", epoch() // RevokedAt is not taken
	check(t, "RecordToken(no grant)", f.RecordToken(ctx, free))
	free.RevokedAt = time.Time{}
	got, err := f.IssuedToken(ctx, "free")
	check(t, "IssuedToken", err)
	same(t, "token", got, free)
	want(t, "RecordToken(known id)", f.RecordToken(ctx, free), store.ErrExists)
	want(t, "RecordToken(unknown grant)", f.RecordToken(ctx, issued(1, "t1")), store.ErrNotFound)
	check(t, "CreateGrant", f.CreateGrant(ctx, grant(1), nil))
	check(t, "RecordToken", f.RecordToken(ctx, issued(1, "t1")))
	got, err = f.IssuedToken(ctx, "t1")
	check(t, "IssuedToken", err)
	same(t, "token of a grant", got, issued(1, "t1"))
	testRevokedTokens(t, f)
}

// testRevokedTokens is part of testTokens: there is a token t1.
func testRevokedTokens(t *testing.T, f *fixture) {
	ctx := t.Context()
	at := epoch().Add(time.Minute)
	want(t, "RevokeToken(unknown)", f.RevokeToken(ctx, "nobody", at), store.ErrNotFound)
	entry := store.Revocation{
		Issuer: issuer, Kind: store.RevokeToken, Value: "t1", IssuedBefore: at, Until: issued(1, "t1").ExpiresAt,
	}
	for range 2 { // twice is harmless
		check(t, "RevokeToken", f.RevokeToken(ctx, "t1", at))
		same(t, "revocation log", entries(ctx, t, f), []store.Revocation{entry})
		at = at.Add(time.Second)
	}
	revoked := issued(1, "t1")
	revoked.RevokedAt = epoch().Add(time.Minute)
	got, err := f.IssuedToken(ctx, "t1")
	check(t, "IssuedToken", err)
	same(t, "revoked token", got, revoked)
	check(t, "RecordToken(same grant)", f.RecordToken(ctx, issued(1, "t2")))

	// One that was issued by a clock that is ahead is covered all the same, and one that has expired does no harm.
	ahead := issued(1, "ahead")
	ahead.IssuedAt = at.Add(time.Hour)
	ahead.ExpiresAt = at.Add(2 * time.Hour)
	check(t, "RecordToken", f.RecordToken(ctx, ahead))
	check(t, "RevokeToken", f.RevokeToken(ctx, "ahead", at))
	late := issued(1, "t2").ExpiresAt.Add(time.Minute)
	check(t, "RevokeToken(expired)", f.RevokeToken(ctx, "t2", late))
	same(t, "revocation log", entries(ctx, t, f)[1:], []store.Revocation{
		{Issuer: issuer, Kind: store.RevokeToken, Value: "ahead", IssuedBefore: ahead.IssuedAt, Until: ahead.ExpiresAt},
		{Issuer: issuer, Kind: store.RevokeToken, Value: "t2", IssuedBefore: late, Until: late.Add(time.Second)},
	})
}

// redeem creates grant n and redeems its code for a first token and a refresh token with this id.
func (f *fixture) redeem(t *testing.T, n int, id string) {
	t.Helper()
	c, r := code(n), refresh(n, id)
	check(t, "CreateGrant", f.CreateGrant(t.Context(), grant(n), &c))
	check(t, "RedeemCode", f.RedeemCode(t.Context(), c.Signature, epoch(), issued(n, "first-"+id), &r))
}

// refreshToken fails the test unless the store holds this refresh token.
func (f *fixture) refreshToken(t *testing.T, wanted store.RefreshToken) {
	t.Helper()
	got, err := f.RefreshToken(t.Context(), wanted.ID)
	check(t, "RefreshToken", err)
	same(t, "refresh token", got, wanted)
}

func testRefreshTokens(t *testing.T, f *fixture) {
	ctx := t.Context()
	at := epoch().Add(time.Minute)
	_, err := f.RefreshToken(ctx, "r1")
	want(t, "RefreshToken(unknown)", err, store.ErrNotFound)
	want(t, "UseRefreshToken(unknown)", f.UseRefreshToken(ctx, "r1", at, at.Add(time.Hour), issued(1, "t1")), store.ErrNotFound)
	f.redeem(t, 1, "r1")
	f.redeem(t, 2, "r2")
	f.refreshToken(t, refresh(1, "r1"))

	// A redemption that fails leaves no refresh token.
	r := refresh(1, "r9")
	want(t, "RedeemCode(again)", f.RedeemCode(ctx, "signature1", at, issued(1, "t9"), &r), store.ErrConsumed)
	_, err = f.RefreshToken(ctx, "r9")
	want(t, "RefreshToken(of a code used before)", err, store.ErrNotFound)
	c := code(3)
	check(t, "CreateGrant", f.CreateGrant(ctx, grant(3), &c))
	r = refresh(3, "r1")
	want(t, "RedeemCode(known refresh token)", f.RedeemCode(ctx, "signature3", epoch(), issued(3, "t9"), &r), store.ErrExists)
	_, err = f.IssuedToken(ctx, "t9")
	want(t, "IssuedToken(of a redemption that failed)", err, store.ErrNotFound)

	// The end of the idle time moves with each use, and the token stays the same.
	moved := refresh(1, "r1")
	for n, id := range []string{"t1", "t2", "t3"} {
		at = moved.ExpiresAt.Add(-time.Millisecond) // just in time
		moved.ExpiresAt = at.Add(time.Hour)
		if n == 2 {
			moved.ExpiresAt = at.Add(time.Second) // the idle time is shorter now
		}
		check(t, "UseRefreshToken", f.UseRefreshToken(ctx, "r1", at, moved.ExpiresAt, issued(1, id)))
		f.refreshToken(t, moved)
		_, err = f.IssuedToken(ctx, id)
		check(t, "IssuedToken", err)
	}
	end := moved.ExpiresAt
	want(t, "UseRefreshToken(expired)", f.UseRefreshToken(ctx, "r1", end, end.Add(time.Hour), issued(1, "t4")), store.ErrNotFound)
	want(t, "RotateRefreshToken(expired)", f.RotateRefreshToken(ctx, "r1", end, grace, refresh(1, "s1"), issued(1, "t4")), store.ErrNotFound)
	f.refreshToken(t, moved)
	at = epoch()
	want(t, "UseRefreshToken(token of another grant)", f.UseRefreshToken(ctx, "r2", at, end, issued(1, "t4")), store.ErrInvalid)
	want(t, "UseRefreshToken(known token)", f.UseRefreshToken(ctx, "r2", at, end, issued(2, "t1")), store.ErrExists)
	f.refreshToken(t, refresh(2, "r2")) // not moved by what failed

	check(t, "RevokeGrant", f.RevokeGrant(ctx, grant(2).ID, at))
	want(t, "UseRefreshToken(revoked)", f.UseRefreshToken(ctx, "r2", at, end, issued(2, "t4")), store.ErrRevoked)
	want(t, "RotateRefreshToken(revoked)", f.RotateRefreshToken(ctx, "r2", at, grace, refresh(2, "s2"), issued(2, "t4")), store.ErrRevoked)
	f.refreshToken(t, refresh(2, "r2"))
	_, err = f.RefreshToken(ctx, "s2")
	want(t, "RefreshToken(successor that was refused)", err, store.ErrNotFound)
}

func testRotation(t *testing.T, f *fixture) {
	ctx := t.Context()
	at := epoch().Add(time.Minute)
	rotate := func(id string, at time.Time, successor, token string) error {
		s := refresh(1, successor)
		s.CreatedAt, s.ExpiresAt = at, at.Add(time.Hour)
		return f.RotateRefreshToken(ctx, id, at, grace, s, issued(1, token))
	}
	want(t, "RotateRefreshToken(unknown)", rotate("r1", at, "s1", "t1"), store.ErrNotFound)
	f.redeem(t, 1, "r1")
	f.redeem(t, 2, "r2")
	check(t, "RotateRefreshToken", rotate("r1", at, "s1", "t1"))
	used, successor := refresh(1, "r1"), refresh(1, "s1")
	used.UsedAt, used.SuccessorID = at, "s1"
	successor.CreatedAt, successor.ExpiresAt = at, at.Add(time.Hour)
	f.refreshToken(t, used)
	f.refreshToken(t, successor)

	// Within grace the same successor may be asked for again; the stored one stays as it was.
	last := at.Truncate(time.Millisecond).Add(grace - time.Millisecond)
	check(t, "RotateRefreshToken(again)", rotate("r1", at.Add(-time.Second), "s1", "t2")) // by a clock that is behind
	check(t, "RotateRefreshToken(last moment of grace)", rotate("r1", last, "s1", "t3"))
	want(t, "RotateRefreshToken(other successor)", rotate("r1", at, "s2", "t4"), store.ErrConsumed)
	want(t, "RotateRefreshToken(after grace)", rotate("r1", last.Add(time.Millisecond), "s1", "t4"), store.ErrConsumed)
	want(t, "RotateRefreshToken(known token)", rotate("r1", at, "s1", "t1"), store.ErrExists)
	want(t, "UseRefreshToken(rotated)", f.UseRefreshToken(ctx, "r1", at, last, issued(1, "t4")), store.ErrConsumed)
	f.refreshToken(t, used)
	f.refreshToken(t, successor)
	for _, id := range []string{"t1", "t2", "t3"} {
		_, err := f.IssuedToken(ctx, id)
		check(t, "IssuedToken", err)
	}
	_, err := f.IssuedToken(ctx, "t4")
	want(t, "IssuedToken(refused)", err, store.ErrNotFound)
	_, err = f.RefreshToken(ctx, "s2")
	want(t, "RefreshToken(refused)", err, store.ErrNotFound)

	// The chain goes on, and a rotation that fails leaves its token to be used.
	want(t, "RotateRefreshToken(known successor)", rotate("s1", at, "r1", "t4"), store.ErrExists)
	f.refreshToken(t, successor)
	check(t, "RotateRefreshToken(next)", rotate("s1", at.Add(time.Minute), "s3", "t5"))
	other := refresh(2, "s4")
	want(t, "RotateRefreshToken(of another grant)", f.RotateRefreshToken(ctx, "s3", at, grace, other, issued(2, "t6")), store.ErrInvalid)

	// A used one is known as used also after it would have expired, so that whoever has it gives himself away.
	want(t, "RotateRefreshToken(used and expired)", rotate("r1", used.ExpiresAt.Add(time.Hour), "s1", "t7"), store.ErrConsumed)
	check(t, "RevokeGrant", f.RevokeGrant(ctx, grant(1).ID, at))
	want(t, "RotateRefreshToken(used and revoked)", rotate("r1", at, "s1", "t7"), store.ErrRevoked)
}
