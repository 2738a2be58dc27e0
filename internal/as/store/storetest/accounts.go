package storetest

import (
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

func testAccounts(t *testing.T, f *fixture) {
	ctx := t.Context()
	_, err := f.Account(ctx, account(1).ID)
	want(t, "Account(unknown)", err, store.ErrNotFound)
	_, err = f.AccountByUsername(ctx, "person1")
	want(t, "AccountByUsername(unknown)", err, store.ErrNotFound)
	want(t, "UpdateAccount(unknown)", f.UpdateAccount(ctx, account(1)), store.ErrNotFound)

	full := account(2)
	full.Demo = true
	bare := store.Account{ID: "u_bare", Username: "a"}
	check(t, "CreateAccount", f.CreateAccount(ctx, full))
	check(t, "CreateAccount", f.CreateAccount(ctx, bare))
	full.Revision, bare.Revision, bare.CreatedAt = 1, 1, f.clock.Now()
	got, err := f.Account(ctx, full.ID)
	check(t, "Account", err)
	same(t, "account", got, full)
	got, err = f.AccountByUsername(ctx, full.Username)
	check(t, "AccountByUsername", err)
	same(t, "account by name", got, full)
	_, err = f.AccountByUsername(ctx, "PERSON2")
	want(t, "AccountByUsername(other spelling)", err, store.ErrNotFound)
	all, err := f.ListAccounts(ctx)
	check(t, "ListAccounts", err)
	same(t, "accounts in order of name", all, []store.Account{bare, full})

	taken := account(3)
	taken.Username = full.Username
	want(t, "CreateAccount(taken name)", f.CreateAccount(ctx, taken), store.ErrExists)
	taken = account(2)
	taken.Username = "free"
	want(t, "CreateAccount(taken id)", f.CreateAccount(ctx, taken), store.ErrExists)
}

// testAccountUpdates is part of testBrowserSessions: an account that is disabled loses its sessions.
func testAccountUpdates(t *testing.T, f *fixture) {
	ctx := t.Context()
	a, err := f.Account(ctx, account(1).ID)
	check(t, "Account", err)
	stale := a
	a.Username, a.Roles, a.Attributes, a.PasswordHash = "renamed", nil, map[string]string{"x": ""}, ""
	a.CreatedAt = a.CreatedAt.Add(time.Hour) // not taken
	check(t, "UpdateAccount", f.UpdateAccount(ctx, a))
	a.CreatedAt, a.Revision = stale.CreatedAt, stale.Revision+1
	got, err := f.Account(ctx, a.ID)
	check(t, "Account", err)
	same(t, "updated account", got, a)
	_, err = f.AccountByUsername(ctx, stale.Username)
	want(t, "AccountByUsername(old name)", err, store.ErrNotFound)
	want(t, "UpdateAccount(stale)", f.UpdateAccount(ctx, stale), store.ErrConflict)
	taken := a
	taken.Username = account(2).Username
	want(t, "UpdateAccount(taken name)", f.UpdateAccount(ctx, taken), store.ErrExists)
	got, err = f.Account(ctx, a.ID)
	check(t, "Account", err)
	same(t, "account after failed updates", got, a)
}
