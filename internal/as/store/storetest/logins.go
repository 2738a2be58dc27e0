package storetest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

func session(person, n int) store.BrowserSession {
	return store.BrowserSession{
		IDHash: fmt.Sprintf("hash%d-%d", person, n), SessionID: fmt.Sprintf("sid%d-%d", person, n), AccountID: account(person).ID,
		Issuer: issuer, AuthTime: epoch(), ExpiresAt: epoch().Add(time.Hour),
	}
}

func testBrowserSessions(t *testing.T, f *fixture) {
	ctx := t.Context()
	want(t, "CreateBrowserSession(no account)", f.CreateBrowserSession(ctx, session(1, 1)), store.ErrNotFound)
	for person := range 2 {
		check(t, "CreateAccount", f.CreateAccount(ctx, account(person+1)))
		for n := range 3 {
			check(t, "CreateBrowserSession", f.CreateBrowserSession(ctx, session(person+1, n)))
		}
	}
	exists := func(person, n int) bool {
		t.Helper()
		got, err := f.BrowserSession(ctx, session(person, n).IDHash)
		if err != nil {
			want(t, "BrowserSession", err, store.ErrNotFound)
			return false
		}
		same(t, "session", got, session(person, n))
		return true
	}
	want(t, "CreateBrowserSession(again)", f.CreateBrowserSession(ctx, session(1, 1)), store.ErrExists)
	if !exists(1, 0) || exists(1, 9) {
		t.Fatal("sessions are not those that were created")
	}
	check(t, "DeleteBrowserSession", f.DeleteBrowserSession(ctx, session(1, 0).IDHash))
	check(t, "DeleteBrowserSession(again)", f.DeleteBrowserSession(ctx, session(1, 0).IDHash))
	if exists(1, 0) || !exists(1, 1) {
		t.Fatal("DeleteBrowserSession did not delete one session")
	}
	ended, err := f.EndBrowserSessions(ctx, account(1).ID)
	check(t, "EndBrowserSessions", err)
	if ended != 2 || exists(1, 1) || !exists(2, 1) {
		t.Fatalf("EndBrowserSessions ended %d sessions, want the 2 of the account", ended)
	}

	testAccountUpdates(t, f)
	a, err := f.Account(ctx, account(2).ID)
	check(t, "Account", err)
	check(t, "UpdateAccount", f.UpdateAccount(ctx, a))
	if !exists(2, 1) {
		t.Fatal("an update ended sessions of an account that may sign in")
	}
	a.Revision++
	a.Disabled = true
	check(t, "UpdateAccount(disabled)", f.UpdateAccount(ctx, a))
	a.Revision++
	a.Disabled = false
	check(t, "UpdateAccount(enabled)", f.UpdateAccount(ctx, a))
	if exists(2, 1) {
		t.Fatal("a session outlived that its account was disabled")
	}

	check(t, "CreateBrowserSession", f.CreateBrowserSession(ctx, session(2, 5)))
	f.clock.advance(time.Hour - time.Millisecond)
	if !exists(2, 5) {
		t.Fatal("a session is gone before its end")
	}
	f.clock.advance(time.Millisecond)
	if exists(2, 5) {
		t.Fatal("a session is there at its end")
	}
}

func interaction(n int) store.Interaction {
	return store.Interaction{
		IDHash: fmt.Sprintf("interaction%d", n), BindingHash: "binding", Issuer: issuer, ClientID: clientID,
		Request: json.RawMessage(`{"state":"\u003c"}`), CreatedAt: epoch(), ExpiresAt: epoch().Add(10 * time.Minute),
	}
}

func testInteractions(t *testing.T, f *fixture) {
	ctx := t.Context()
	i := interaction(1)
	_, err := f.Interaction(ctx, i.IDHash)
	want(t, "Interaction(unknown)", err, store.ErrNotFound)
	want(t, "UpdateInteraction(unknown)", f.UpdateInteraction(ctx, i), store.ErrNotFound)
	want(t, "FinishInteraction(unknown)", f.FinishInteraction(ctx, i.IDHash), store.ErrNotFound)
	check(t, "CreateInteraction", f.CreateInteraction(ctx, i))
	want(t, "CreateInteraction(again)", f.CreateInteraction(ctx, i), store.ErrExists)

	i.AccountID, i.SessionID, i.AuthTime, i.ConsentedAt = account(1).ID, "sid", epoch(), epoch().Add(time.Second)
	i.Request = json.RawMessage(`{"state":"changed"}`)
	update := i
	update.BindingHash, update.ClientID, update.Issuer = "forged", "forged", "forged" // not taken
	update.ExpiresAt = i.ExpiresAt.Add(time.Hour)
	check(t, "UpdateInteraction", f.UpdateInteraction(ctx, update))
	got, err := f.Interaction(ctx, i.IDHash)
	check(t, "Interaction", err)
	same(t, "interaction", got, i)

	check(t, "FinishInteraction", f.FinishInteraction(ctx, i.IDHash))
	want(t, "FinishInteraction(again)", f.FinishInteraction(ctx, i.IDHash), store.ErrNotFound)
	_, err = f.Interaction(ctx, i.IDHash)
	want(t, "Interaction(finished)", err, store.ErrNotFound)

	late := interaction(2)
	check(t, "CreateInteraction", f.CreateInteraction(ctx, late))
	f.clock.advance(10 * time.Minute)
	_, err = f.Interaction(ctx, late.IDHash)
	want(t, "Interaction(expired)", err, store.ErrNotFound)
	want(t, "UpdateInteraction(expired)", f.UpdateInteraction(ctx, late), store.ErrNotFound)
	want(t, "FinishInteraction(expired)", f.FinishInteraction(ctx, late.IDHash), store.ErrNotFound)
}
