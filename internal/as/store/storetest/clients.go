package storetest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

func client(id string) store.Client {
	return store.Client{
		ID: id, Name: "An “app”", AuthMethod: "private_key_jwt", SecretHash: []byte{0, 1, 255}, JWKS: json.RawMessage(`{"keys": []}`),
		RedirectURIs: []string{"https://app.example.com/cb?a=b", "http://127.0.0.1/cb"}, GrantTypes: []string{"authorization_code"},
		Origins: []string{"https://app.example.com"}, SkipConsent: true, Static: true, CreatedAt: epoch(),
	}
}

func testClients(t *testing.T, f *fixture) {
	ctx := t.Context()
	_, err := f.Client(ctx, "app")
	want(t, "Client(unknown)", err, store.ErrNotFound)
	want(t, "DeleteClient(unknown)", f.DeleteClient(ctx, "app", epoch()), store.ErrNotFound)

	full, bare := client("b"), store.Client{ID: "a", AuthMethod: "none"}
	check(t, "PutClient", f.PutClient(ctx, full))
	check(t, "PutClient", f.PutClient(ctx, bare))
	bare.CreatedAt = f.clock.Now() // given by the store
	got, err := f.Client(ctx, "b")
	check(t, "Client", err)
	same(t, "client", got, full)
	all, err := f.ListClients(ctx)
	check(t, "ListClients", err)
	same(t, "clients in order of id", all, []store.Client{bare, full})

	f.clock.advance(time.Hour)
	changed := store.Client{ID: "b", Name: "other", AuthMethod: "none", Disabled: true}
	check(t, "PutClient(again)", f.PutClient(ctx, changed))
	changed.CreatedAt = full.CreatedAt // kept
	got, err = f.Client(ctx, "b")
	check(t, "Client", err)
	same(t, "replaced client", got, changed)

	check(t, "DeleteClient", f.DeleteClient(ctx, "b", epoch()))
	_, err = f.Client(ctx, "b")
	want(t, "Client(deleted)", err, store.ErrNotFound)
}

// testVersion checks what raises the version and what does not.
func testVersion(t *testing.T, f *fixture) {
	ctx := t.Context()
	a, keys := account(1), []store.Key{key("k1")}
	check(t, "PutClient", f.PutClient(ctx, client("old")))
	for _, step := range []struct {
		name   string
		raises bool
		do     func() error
	}{
		{"PutClient(new)", true, func() error { return f.PutClient(ctx, client("app")) }},
		{"PutClient(same)", false, func() error { return f.PutClient(ctx, client("app")) }},
		{"DeleteClient", true, func() error { return f.DeleteClient(ctx, "old", epoch()) }},
		{"DeleteClient(unknown)", false, func() error { _ = f.DeleteClient(ctx, "old", epoch()); return nil }},
		{"CreateAccount", true, func() error { return f.CreateAccount(ctx, a) }},
		{"CreateAccount(taken)", false, func() error { _ = f.CreateAccount(ctx, a); return nil }},
		{"UpdateAccount", true, func() error { a.Revision = 1; return f.UpdateAccount(ctx, a) }},
		{"UpdateAccount(conflict)", false, func() error { _ = f.UpdateAccount(ctx, a); return nil }},
		{"SaveKeys", true, func() error { return f.SaveKeys(ctx, issuer, 0, keys) }},
		{"SaveKeys(conflict)", false, func() error { _ = f.SaveKeys(ctx, issuer, 0, keys); return nil }},
		{"UseAssertion", false, func() error { return f.UseAssertion(ctx, clientID, "j", epoch()) }},
		{"CreateGrant", false, func() error { return f.CreateGrant(ctx, grant(1), nil) }},
		{"RevokeGrant", false, func() error { return f.RevokeGrant(ctx, grant(1).ID, epoch()) }},
	} {
		before, err := f.Version(ctx)
		check(t, "Version", err)
		check(t, step.name, step.do())
		after, err := f.Version(ctx)
		check(t, "Version", err)
		if after < before || (after > before) != step.raises {
			t.Errorf("%s: version went from %d to %d, want raised: %t", step.name, before, after, step.raises)
		}
	}
}

func testAssertions(t *testing.T, f *fixture) {
	ctx, until := t.Context(), epoch().Add(time.Minute)
	check(t, "UseAssertion", f.UseAssertion(ctx, "a", "j1", until))
	want(t, "UseAssertion(again)", f.UseAssertion(ctx, "a", "j1", until), store.ErrConsumed)
	check(t, "UseAssertion(other jti)", f.UseAssertion(ctx, "a", "j2", until))
	check(t, "UseAssertion(other client)", f.UseAssertion(ctx, "b", "j1", until))
	check(t, "UseAssertion(same letters)", f.UseAssertion(ctx, "aj", "1", until))
	// It is used until it has surely expired.
	f.clock.advance(time.Minute)
	_, err := f.Sweep(ctx, f.clock.Now(), 100)
	check(t, "Sweep", err)
	want(t, "UseAssertion(at its end)", f.UseAssertion(ctx, "a", "j1", until), store.ErrConsumed)
}
