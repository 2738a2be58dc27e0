package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// testInvalid checks that records which lack what they need are refused and not stored.
func testInvalid(t *testing.T, f *fixture) {
	ctx := t.Context()
	check(t, "CreateAccount", f.CreateAccount(ctx, account(1)))
	check(t, "CreateGrant", f.CreateGrant(ctx, grant(5), nil))
	endless, c := issued(5, "t"), code(1)
	endless.ExpiresAt = time.Time{}
	c.ExpiresAt = time.Time{}
	noKey := key("k")
	noKey.Private = nil
	endlessRefresh, otherRefresh := refresh(5, "y"), refresh(6, "y")
	endlessRefresh.ExpiresAt = time.Time{}
	_, revokeErr := f.Revoke(ctx, revocation(store.RevokeSubject, ""))
	for name, err := range map[string]error{
		"client without id":                     f.PutClient(ctx, store.Client{}),
		"client with an account's id":           f.PutClient(ctx, store.Client{ID: "u_x"}),
		"account without id":                    f.CreateAccount(ctx, store.Account{Username: "x"}),
		"account with a client's id":            f.CreateAccount(ctx, store.Account{ID: "x", Username: "x"}),
		"account with a bare prefix":            f.CreateAccount(ctx, store.Account{ID: "u_", Username: "x"}),
		"account without name":                  f.UpdateAccount(ctx, store.Account{ID: account(1).ID, Revision: 1}),
		"session without end":                   f.CreateBrowserSession(ctx, store.BrowserSession{IDHash: "x", SessionID: "x", AccountID: "x", Issuer: "x"}),
		"interaction without end":               f.CreateInteraction(ctx, store.Interaction{IDHash: "x", ClientID: "x", Issuer: "x"}),
		"grant without id":                      f.CreateGrant(ctx, store.Grant{Issuer: "x", ClientID: "x"}, nil),
		"code without end":                      f.CreateGrant(ctx, grant(1), &c),
		"redemption without time":               f.RedeemCode(ctx, "x", time.Time{}, issued(5, "t"), nil),
		"token without end":                     f.RecordToken(ctx, endless),
		"assertion without jti":                 f.UseAssertion(ctx, "c", "", epoch()),
		"assertion without end":                 f.UseAssertion(ctx, "c", "j", time.Time{}),
		"key without private part":              f.SaveKeys(ctx, issuer, 0, []store.Key{noKey}),
		"keys without issuer":                   f.SaveKeys(ctx, "", 0, nil),
		"client that lacks its secret":          f.PutClient(ctx, store.Client{ID: "x", AuthMethod: "client_secret_basic"}),
		"client deleted at no time":             f.DeleteClient(ctx, "x", time.Time{}),
		"session ended at no time":              endSession(ctx, f, "x", time.Time{}),
		"session ended without id":              endSession(ctx, f, "", epoch()),
		"token revoked at no time":              f.RevokeToken(ctx, "t", time.Time{}),
		"pushed request without end":            f.CreatePushedRequest(ctx, store.PushedRequest{IDHash: "x", Issuer: "x", ClientID: "x"}),
		"binding without browser":               f.BindPushedRequest(ctx, "x", ""),
		"code's refresh token without end":      f.RedeemCode(ctx, "x", epoch(), issued(5, "t"), &endlessRefresh),
		"code's refresh token of another grant": f.RedeemCode(ctx, "x", epoch(), issued(5, "t"), &otherRefresh),
		"refresh at no time":                    f.UseRefreshToken(ctx, "x", time.Time{}, epoch(), issued(5, "t")),
		"refresh to no time":                    f.UseRefreshToken(ctx, "x", epoch(), time.Time{}, issued(5, "t")),
		"rotation at no time":                   f.RotateRefreshToken(ctx, "x", time.Time{}, grace, refresh(5, "y"), issued(5, "t")),
		"rotation to itself":                    f.RotateRefreshToken(ctx, "y", epoch(), grace, refresh(5, "y"), issued(5, "t")),
		"rotation to another grant":             f.RotateRefreshToken(ctx, "x", epoch(), grace, otherRefresh, issued(5, "t")),
		"rotation to what has no end":           f.RotateRefreshToken(ctx, "x", epoch(), grace, endlessRefresh, issued(5, "t")),
		"revocation without value":              revokeErr,
		"grant revoked at no time":              f.RevokeGrant(ctx, grant(5).ID, time.Time{}),
		"audit record without event":            f.Audit(ctx, store.AuditRecord{At: epoch()}),
	} {
		want(t, name, err, store.ErrInvalid)
	}
	accounts, err := f.ListAccounts(ctx)
	check(t, "ListAccounts", err)
	grants, err := f.ListGrants(ctx, store.GrantFilter{})
	check(t, "ListGrants", err)
	if len(accounts) != 1 || len(grants) != 1 || len(entries(ctx, t, f)) != 0 {
		t.Fatal("an invalid record was stored")
	}
}

// testCopies checks that nobody shares memory with the store or with another reader: two requests that got one session map and
// wrote to it would end the process.
func testCopies(t *testing.T, f *fixture) {
	ctx := t.Context()
	c, a, g := client("app"), account(1), grant(1)
	cd := code(1)
	check(t, "PutClient", f.PutClient(ctx, c))
	check(t, "CreateAccount", f.CreateAccount(ctx, a))
	check(t, "CreateGrant", f.CreateGrant(ctx, g, &cd))
	keys := []store.Key{key("k")}
	check(t, "SaveKeys", f.SaveKeys(ctx, issuer, 0, keys))
	spoil := func() {
		c.RedirectURIs[0], c.SecretHash[0], c.JWKS[0] = "spoilt", 'X', 'X'
		a.Roles[0], a.Attributes["team"] = "spoilt", "spoilt"
		g.Details[0], cd.Request[0], cd.PKCE[0], keys[0].Private[0] = 'X', 'X', 'X', 'X'
	}
	for range 2 { // first what went in, then what came out
		spoil()
		var err error
		c, err = f.Client(ctx, "app")
		check(t, "Client", err)
		same(t, "client", c, client("app"))
		a, err = f.Account(ctx, account(1).ID)
		check(t, "Account", err)
		a.Revision = 0
		same(t, "account", a, account(1))
		g, err = f.Grant(ctx, grant(1).ID)
		check(t, "Grant", err)
		same(t, "grant", g, grant(1))
		cd, err = f.Code(ctx, code(1).Signature)
		check(t, "Code", err)
		same(t, "code", cd, code(1))
		keys, _, err = f.LoadKeys(ctx, issuer)
		check(t, "LoadKeys", err)
		same(t, "keys", keys, []store.Key{key("k")})
	}
}

// testOddStrings checks that values are values: nothing in them is taken for something else, cut, folded or normalised.
func testOddStrings(t *testing.T, f *fixture) {
	ctx := t.Context()
	names := []string{
		`'; DROP TABLE accounts; --`, `"`, `\`, "%", "_", "?", "$1", ":x", "null", "0", " ", " a ", "a", "A", "é", "e\u0301", "ß", "ss", "\u202e",
		"𝔘nicode", "line\nbreak", "[]", "{}", "<b>",
	}
	for i, name := range names {
		a := account(i)
		a.Username, a.Roles, a.Attributes = name, []string{name, ""}, map[string]string{name: name}
		check(t, "CreateAccount", f.CreateAccount(ctx, a))
		c := client(name)
		c.Name, c.RedirectURIs = name, []string{name}
		check(t, "PutClient", f.PutClient(ctx, c))
	}
	for i, name := range names {
		a := account(i)
		a.Username, a.Roles, a.Attributes, a.Revision = name, []string{name, ""}, map[string]string{name: name}, 1
		got, err := f.AccountByUsername(ctx, name)
		check(t, "AccountByUsername", err)
		same(t, "account", got, a)
		c := client(name)
		c.Name, c.RedirectURIs = name, []string{name}
		gotClient, err := f.Client(ctx, name)
		check(t, "Client", err)
		same(t, "client", gotClient, c)
	}
}

// testContext checks that an ended context ends a call, changes nothing and harms no later call.
func testContext(t *testing.T, f *fixture) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	want(t, "PutClient(ended context)", f.PutClient(ended, client("app")), context.Canceled)
	_, err := f.Client(ended, "app")
	want(t, "Client(ended context)", err, context.Canceled)
	_, err = f.Client(t.Context(), "app")
	want(t, "Client", err, store.ErrNotFound)
	check(t, "PutClient", f.PutClient(t.Context(), client("app")))
	check(t, "Ready", f.Ready(t.Context()))
}

func testReopen(t *testing.T, f *fixture) {
	ctx := t.Context()
	first := f.open(t, f.location, f.clock.Now)
	check(t, "PutClient", first.PutClient(ctx, client("app")))
	check(t, "SaveKeys", first.SaveKeys(ctx, issuer, 0, []store.Key{key("k")}))
	version, err := first.Version(ctx)
	check(t, "Version", err)
	check(t, "Close", first.Close())

	again := f.another(t)
	check(t, "Ready", again.Ready(ctx))
	got, err := again.Client(ctx, "app")
	check(t, "Client", err)
	same(t, "client", got, client("app"))
	keys, _, err := again.LoadKeys(ctx, issuer)
	check(t, "LoadKeys", err)
	same(t, "keys", keys, []store.Key{key("k")})
	after, err := again.Version(ctx)
	check(t, "Version", err)
	if after != version {
		t.Fatalf("version = %d after reopening, want %d", after, version)
	}
}

func testClosed(t *testing.T, f *fixture) {
	ctx := t.Context()
	s := f.open(t, f.location, f.clock.Now)
	check(t, "Close", s.Close())
	if err := s.PutClient(ctx, client("app")); err == nil {
		t.Error("PutClient succeeded on a closed store")
	}
	if _, err := s.Client(ctx, "app"); err == nil {
		t.Error("Client succeeded on a closed store")
	}
	if err := s.Ready(ctx); err == nil {
		t.Error("a closed store is ready")
	}
}
