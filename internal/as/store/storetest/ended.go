package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

const otherIssuer = "http://localhost:8080"

// everywhere is the entries of something that was revoked for every issuer: at an instant, valid until the end of the last token.
func everywhere(kind store.RevocationKind, value string, at, until time.Time) []store.Revocation {
	var out []store.Revocation
	for _, i := range []string{otherIssuer, issuer} { // in order
		out = append(out, store.Revocation{Issuer: i, Kind: kind, Value: value, IssuedBefore: at, Until: until})
	}
	return out
}

// twoIssuers gives two issuers keys, so that both can have issued tokens.
func (f *fixture) twoIssuers(t *testing.T) {
	t.Helper()
	for _, i := range []string{issuer, otherIssuer} {
		k := key("k")
		k.Issuer = i
		check(t, "SaveKeys", f.SaveKeys(t.Context(), i, 0, []store.Key{k}))
	}
}

// inForce fails the test unless a token can be recorded under exactly these of the grants.
func (f *fixture) inForce(t *testing.T, token string, grants map[int]bool) {
	t.Helper()
	for n, ok := range grants {
		err := f.RecordToken(t.Context(), issued(n, token+grant(n).ID))
		if ok {
			check(t, "RecordToken", err)
		} else {
			want(t, "RecordToken(revoked)", err, store.ErrRevoked)
		}
	}
}

// endSession ends a session, whether or not it has ended before.
func endSession(ctx context.Context, s store.Logins, sessionID string, at time.Time) error {
	_, err := s.EndSession(ctx, issuer, sessionID, at)
	return err
}

func testEndSession(t *testing.T, f *fixture) {
	ctx := t.Context()
	check(t, "CreateAccount", f.CreateAccount(ctx, account(1)))
	// A session in two browsers, one of another session, and one of the same name at another issuer.
	own, twin, other, foreign := session(1, 1), session(1, 1), session(1, 2), session(1, 1)
	twin.IDHash, foreign.IDHash, foreign.Issuer = "twin", "foreign", otherIssuer
	for _, s := range []store.BrowserSession{own, twin, other, foreign} {
		check(t, "CreateBrowserSession", f.CreateBrowserSession(ctx, s))
	}
	for n, sid := range map[int]string{1: own.SessionID, 2: own.SessionID, 3: other.SessionID, 4: own.SessionID} {
		g := grant(n)
		g.SessionID = sid
		if n == 4 {
			g.Issuer = otherIssuer
		}
		check(t, "CreateGrant", f.CreateGrant(ctx, g, nil))
		token := issued(n, "t"+sid+g.ID)
		token.SessionID, token.ExpiresAt = sid, epoch().Add(time.Duration(n)*time.Hour)
		if n < 4 { // what the other issuer issued has no part in it
			check(t, "RecordToken", f.RecordToken(ctx, token))
		}
	}
	at := epoch().Add(time.Minute)
	entry := store.Revocation{
		Issuer: issuer, Kind: store.RevokeSession, Value: own.SessionID, IssuedBefore: at, Until: epoch().Add(2 * time.Hour),
	}
	for _, first := range []bool{true, false} { // twice is harmless
		ended, err := f.EndSession(ctx, issuer, own.SessionID, at)
		check(t, "EndSession", err)
		same(t, "session ended now", ended, first)
		same(t, "revocation log", entries(ctx, t, f), []store.Revocation{entry})
		at = at.Add(time.Minute)
	}
	for hash, ended := range map[string]bool{own.IDHash: true, "twin": true, other.IDHash: false, "foreign": false} {
		_, err := f.BrowserSession(ctx, hash)
		if ended {
			want(t, "BrowserSession(ended)", err, store.ErrNotFound)
		} else {
			check(t, "BrowserSession", err)
		}
	}
	g, err := f.Grant(ctx, grant(1).ID)
	check(t, "Grant", err)
	if !g.RevokedAt.Equal(epoch().Add(time.Minute).Truncate(time.Millisecond)) {
		t.Errorf("grant of the session revoked at %s", g.RevokedAt)
	}
	f.inForce(t, "after", map[int]bool{1: false, 2: false, 3: true, 4: true})

	// One that was never seen: a hub may know of it all the same.
	ended, err := f.EndSession(ctx, issuer, "sid of nobody", at)
	check(t, "EndSession(unknown)", err)
	same(t, "session ended now", ended, true)
	same(t, "revocation log", entries(ctx, t, f)[1:], []store.Revocation{{
		Issuer: issuer, Kind: store.RevokeSession, Value: "sid of nobody", IssuedBefore: at, Until: at.Add(time.Second),
	}})
}

func testSignOutEverywhere(t *testing.T, f *fixture) {
	ctx := t.Context()
	f.twoIssuers(t)
	for n := range 2 {
		check(t, "CreateAccount", f.CreateAccount(ctx, account(n+1)))
		check(t, "CreateBrowserSession", f.CreateBrowserSession(ctx, session(n+1, 1)))
		for k := range 3 {
			g := grant(10*n + k)
			g.AccountID = account(n + 1).ID
			check(t, "CreateGrant", f.CreateGrant(ctx, g, nil))
			token := issued(10*n+k, "t"+g.ID)
			token.Subject, token.ExpiresAt = g.AccountID, epoch().Add(time.Duration(k+1)*time.Hour)
			check(t, "RecordToken", f.RecordToken(ctx, token))
		}
	}
	f.clock.advance(time.Minute)
	ended, err := f.EndBrowserSessions(ctx, account(1).ID)
	check(t, "EndBrowserSessions", err)
	if ended != 1 {
		t.Fatalf("EndBrowserSessions ended %d sessions, want 1", ended)
	}
	log := everywhere(store.RevokeSubject, account(1).ID, f.clock.Now(), epoch().Add(3*time.Hour))
	same(t, "revocation log", entries(ctx, t, f), log)
	f.inForce(t, "after", map[int]bool{0: false, 1: false, 2: false, 10: true, 11: true, 12: true})

	// An account that is disabled is signed out with the same stroke; one that was disabled before has nothing to lose.
	a, err := f.Account(ctx, account(2).ID)
	check(t, "Account", err)
	f.clock.advance(time.Minute)
	at := f.clock.Now()
	a.Disabled = true
	for range 2 {
		check(t, "UpdateAccount(disabled)", f.UpdateAccount(ctx, a))
		a.Revision++
		log2 := everywhere(store.RevokeSubject, account(2).ID, at, epoch().Add(3*time.Hour))
		same(t, "revocation log", entries(ctx, t, f)[2:], log2)
		f.clock.advance(time.Minute)
	}
	_, err = f.BrowserSession(ctx, session(2, 1).IDHash)
	want(t, "BrowserSession(disabled)", err, store.ErrNotFound)
	f.inForce(t, "later", map[int]bool{10: false, 11: false, 12: false})
	want(t, "CreateBrowserSession(disabled)", f.CreateBrowserSession(ctx, session(2, 2)), store.ErrRevoked)

	// Once it may sign in again, what was revoked stays so, and nothing else does.
	a.Disabled = false
	check(t, "UpdateAccount(enabled)", f.UpdateAccount(ctx, a))
	check(t, "CreateBrowserSession", f.CreateBrowserSession(ctx, session(2, 2)))
	g := grant(20)
	g.AccountID = account(2).ID
	check(t, "CreateGrant", f.CreateGrant(ctx, g, nil))
	f.inForce(t, "again", map[int]bool{10: false, 20: true})
	if got := len(entries(ctx, t, f)); got != 4 {
		t.Errorf("%d entries in the log, want 4", got)
	}
}

func testRevokedClients(t *testing.T, f *fixture) {
	ctx := t.Context()
	f.twoIssuers(t)
	check(t, "PutClient", f.PutClient(ctx, client(clientID)))
	c, other, foreign := code(2), grant(4), issued(4, "foreign")
	other.ClientID, foreign.ClientID = "other", "other"
	foreign.ExpiresAt = epoch().Add(5 * time.Hour)
	check(t, "CreateGrant", f.CreateGrant(ctx, grant(1), nil))
	check(t, "CreateGrant", f.CreateGrant(ctx, grant(2), &c))
	check(t, "CreateGrant", f.CreateGrant(ctx, other, nil))
	check(t, "RecordToken", f.RecordToken(ctx, issued(1, "t1")))
	check(t, "RecordToken", f.RecordToken(ctx, foreign))

	at := epoch().Add(time.Minute)
	check(t, "DeleteClient", f.DeleteClient(ctx, clientID, at))
	checkEverywhere(t, entries(ctx, t, f), at)
	want(t, "DeleteClient(again)", f.DeleteClient(ctx, clientID, at), store.ErrNotFound)

	// A client that is made again with the same id does not inherit grants, and may have new ones.
	check(t, "PutClient", f.PutClient(ctx, client(clientID)))
	f.inForce(t, "after", map[int]bool{1: false, 2: false, 4: true})
	want(t, "RedeemCode(client deleted)", f.RedeemCode(ctx, "signature2", epoch(), issued(2, "t5"), nil), store.ErrRevoked)
	check(t, "CreateGrant", f.CreateGrant(ctx, grant(5), nil))

	// One that is disabled loses the same.
	f.clock.advance(2 * time.Minute)
	disabled := client(clientID)
	disabled.Disabled = true
	at = f.clock.Now()
	for range 2 {
		check(t, "PutClient(disabled)", f.PutClient(ctx, disabled))
		checkEverywhere(t, entries(ctx, t, f)[2:], at)
		f.clock.advance(time.Minute)
		disabled.Name += "." // changed, and disabled already
	}
	check(t, "PutClient(enabled)", f.PutClient(ctx, client(clientID)))
	f.inForce(t, "again", map[int]bool{1: false, 5: false})
	check(t, "CreateGrant", f.CreateGrant(ctx, grant(6), nil))
}

// checkEverywhere checks the entries of testRevokedClients: they may be valid longer than the client's tokens.
func checkEverywhere(t *testing.T, log []store.Revocation, at time.Time) {
	t.Helper()
	for i := range log {
		if log[i].Until.Before(issued(1, "t1").ExpiresAt.Truncate(time.Millisecond)) {
			t.Errorf("the entry ends at %s, before the client's last token", log[i].Until)
		}
		log[i].Until = at
	}
	same(t, "revocation log", log, everywhere(store.RevokeClient, clientID, at, at))
}

// testUnderWay checks that a request which began before a revocation and ends after it leaves nothing behind that the revocation did not
// see.
func testUnderWay(t *testing.T, f *fixture) {
	ctx := t.Context()
	n := 0
	begin := func() error { // creates a grant of its own
		n++
		c := code(n)
		return f.CreateGrant(ctx, grant(n), &c)
	}
	machine := issued(1, "machine") // a client for itself
	machine.GrantID, machine.Subject = "", clientID
	check(t, "CreateAccount", f.CreateAccount(ctx, account(1)))
	check(t, "PutClient", f.PutClient(ctx, client(clientID)))
	check(t, "CreateGrant", begin())

	check(t, "DeleteClient", f.DeleteClient(ctx, clientID, epoch()))
	want(t, "CreateGrant(client deleted)", begin(), store.ErrRevoked)
	want(t, "RecordToken(client deleted)", f.RecordToken(ctx, machine), store.ErrRevoked)
	disabled := client(clientID)
	disabled.Disabled = true
	check(t, "PutClient(disabled)", f.PutClient(ctx, disabled))
	want(t, "CreateGrant(client disabled)", begin(), store.ErrRevoked)
	want(t, "RecordToken(client disabled)", f.RecordToken(ctx, machine), store.ErrRevoked)
	check(t, "PutClient(enabled)", f.PutClient(ctx, client(clientID)))
	check(t, "CreateGrant", begin())
	check(t, "RecordToken", f.RecordToken(ctx, machine))

	a := account(1)
	a.Revision, a.Disabled = 1, true
	check(t, "UpdateAccount(disabled)", f.UpdateAccount(ctx, a))
	want(t, "CreateGrant(account disabled)", begin(), store.ErrRevoked)
	a.Revision, a.Disabled = 2, false
	check(t, "UpdateAccount(enabled)", f.UpdateAccount(ctx, a))
	check(t, "CreateGrant", begin())

	s := session(1, 1)
	check(t, "CreateBrowserSession", f.CreateBrowserSession(ctx, s))
	inSession := grant(n + 1)
	inSession.SessionID = s.SessionID
	_, err := f.EndBrowserSessions(ctx, account(1).ID)
	check(t, "EndBrowserSessions", err)
	want(t, "CreateGrant(signed out everywhere)", f.CreateGrant(ctx, inSession, nil), store.ErrRevoked)
	want(t, "CreateBrowserSession(signed out everywhere)", f.CreateBrowserSession(ctx, s), store.ErrRevoked)
	check(t, "CreateGrant", begin()) // in another session

	check(t, "EndSession", endSession(ctx, f, grant(1).SessionID, epoch()))
	want(t, "CreateGrant(session ended)", begin(), store.ErrRevoked)
	_, err = f.Grant(ctx, grant(n).ID)
	want(t, "Grant(refused)", err, store.ErrNotFound)
	_, err = f.Code(ctx, code(n).Signature)
	want(t, "Code(refused)", err, store.ErrNotFound)
	s.SessionID = grant(1).SessionID
	want(t, "CreateBrowserSession(session ended)", f.CreateBrowserSession(ctx, s), store.ErrRevoked)
	s.Issuer = otherIssuer
	check(t, "CreateBrowserSession(other issuer)", f.CreateBrowserSession(ctx, s))
}
