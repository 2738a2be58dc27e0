package storetest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

func pushed(n int) store.PushedRequest {
	return store.PushedRequest{
		IDHash: fmt.Sprintf("pushed%d", n), Issuer: issuer, ClientID: clientID, Request: json.RawMessage(`{"state":"\u003c"}`),
		CreatedAt: epoch(), ExpiresAt: epoch().Add(90 * time.Second),
	}
}

// pushedInteraction is interaction n, which came from pushed request p.
func pushedInteraction(n, p int) store.Interaction {
	i := interaction(n)
	i.PushedHash = pushed(p).IDHash
	return i
}

func testPushedRequests(t *testing.T, f *fixture) {
	ctx := t.Context()
	p := pushed(1)
	_, err := f.PushedRequest(ctx, p.IDHash)
	want(t, "PushedRequest(unknown)", err, store.ErrNotFound)
	want(t, "BindPushedRequest(unknown)", f.BindPushedRequest(ctx, p.IDHash, "b1"), store.ErrNotFound)
	want(t, "UsePushedRequest(unknown)", f.UsePushedRequest(ctx, p.IDHash), store.ErrConsumed)
	check(t, "CreatePushedRequest", f.CreatePushedRequest(ctx, p))
	want(t, "CreatePushedRequest(again)", f.CreatePushedRequest(ctx, p), store.ErrExists)
	got, err := f.PushedRequest(ctx, p.IDHash)
	check(t, "PushedRequest", err)
	same(t, "pushed request", got, p)

	// The first browser gets it, as often as it likes; another does not.
	for range 2 {
		check(t, "BindPushedRequest", f.BindPushedRequest(ctx, p.IDHash, "b1"))
		want(t, "BindPushedRequest(other browser)", f.BindPushedRequest(ctx, p.IDHash, "b2"), store.ErrConsumed)
	}
	p.BindingHash = "b1"
	got, err = f.PushedRequest(ctx, p.IDHash)
	check(t, "PushedRequest", err)
	same(t, "bound request", got, p)

	// Of two interactions that came from it, one is finished.
	check(t, "CreateInteraction", f.CreateInteraction(ctx, pushedInteraction(1, 1)))
	check(t, "CreateInteraction", f.CreateInteraction(ctx, pushedInteraction(2, 1)))
	update := interaction(1) // the pushed request is not replaced
	check(t, "UpdateInteraction", f.UpdateInteraction(ctx, update))
	read, err := f.Interaction(ctx, update.IDHash)
	check(t, "Interaction", err)
	same(t, "interaction", read, pushedInteraction(1, 1))
	check(t, "FinishInteraction", f.FinishInteraction(ctx, "interaction1"))
	_, err = f.PushedRequest(ctx, p.IDHash)
	want(t, "PushedRequest(used up)", err, store.ErrNotFound)
	want(t, "BindPushedRequest(used up)", f.BindPushedRequest(ctx, p.IDHash, "b1"), store.ErrNotFound)
	want(t, "FinishInteraction(used up)", f.FinishInteraction(ctx, "interaction2"), store.ErrConsumed)
	want(t, "FinishInteraction(again)", f.FinishInteraction(ctx, "interaction1"), store.ErrNotFound)

	// One that needs no interaction.
	check(t, "CreatePushedRequest", f.CreatePushedRequest(ctx, pushed(2)))
	check(t, "CreateInteraction", f.CreateInteraction(ctx, pushedInteraction(3, 2)))
	check(t, "UsePushedRequest", f.UsePushedRequest(ctx, "pushed2"))
	want(t, "UsePushedRequest(again)", f.UsePushedRequest(ctx, "pushed2"), store.ErrConsumed)
	want(t, "FinishInteraction(used up)", f.FinishInteraction(ctx, "interaction3"), store.ErrConsumed)
	testPushedExpiry(t, f)
}

// testPushedExpiry is part of testPushedRequests. An interaction takes longer than a pushed request lives: it was begun in time.
func testPushedExpiry(t *testing.T, f *fixture) {
	ctx := t.Context()
	for n := range 2 {
		check(t, "CreatePushedRequest", f.CreatePushedRequest(ctx, pushed(10+n)))
	}
	check(t, "CreateInteraction", f.CreateInteraction(ctx, pushedInteraction(10, 10)))
	check(t, "CreateInteraction", f.CreateInteraction(ctx, pushedInteraction(11, 10)))
	f.clock.advance(90*time.Second - time.Millisecond)
	_, err := f.PushedRequest(ctx, "pushed10")
	check(t, "PushedRequest(just in time)", err)
	f.clock.advance(time.Millisecond)
	_, err = f.PushedRequest(ctx, "pushed10")
	want(t, "PushedRequest(expired)", err, store.ErrNotFound)
	want(t, "BindPushedRequest(expired)", f.BindPushedRequest(ctx, "pushed10", "b1"), store.ErrNotFound)
	deleted, err := f.Sweep(ctx, f.clock.Now(), 100)
	check(t, "Sweep", err)
	if deleted != 1 { // the one that no interaction came from
		t.Fatalf("Sweep deleted %d records, want 1", deleted)
	}
	check(t, "FinishInteraction", f.FinishInteraction(ctx, "interaction10"))
	want(t, "FinishInteraction(used up)", f.FinishInteraction(ctx, "interaction11"), store.ErrConsumed)
}
