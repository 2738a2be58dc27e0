package storetest

import (
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

func key(id string) store.Key {
	return store.Key{
		ID: id, Issuer: issuer, Algorithm: "ES256", Actions: 255, State: "active", Private: []byte(`{"kty":"EC","d":"` + id + `"}`),
		CreatedAt: epoch(), ActivatesAt: epoch().Add(time.Minute), RetiresAt: epoch().Add(time.Hour), ExpiresAt: epoch().Add(2 * time.Hour),
	}
}

func testKeys(t *testing.T, f *fixture) {
	ctx := t.Context()
	keys, version, err := f.LoadKeys(ctx, issuer)
	check(t, "LoadKeys", err)
	if len(keys) != 0 || version != 0 {
		t.Fatalf("LoadKeys(unknown) = %d keys, version %d, want none, 0", len(keys), version)
	}
	open := key("b")
	open.RetiresAt, open.ExpiresAt = time.Time{}, time.Time{}
	check(t, "SaveKeys", f.SaveKeys(ctx, issuer, 0, []store.Key{open, key("a")}))
	keys, first, err := f.LoadKeys(ctx, issuer)
	check(t, "LoadKeys", err)
	same(t, "keys in order of id", keys, []store.Key{key("a"), open})
	want(t, "SaveKeys(stale)", f.SaveKeys(ctx, issuer, version, nil), store.ErrConflict)
	want(t, "SaveKeys(ahead)", f.SaveKeys(ctx, issuer, first+1, nil), store.ErrConflict)

	foreign := key("c")
	foreign.Issuer = "https://other.example.com"
	want(t, "SaveKeys(of another issuer)", f.SaveKeys(ctx, issuer, first, []store.Key{foreign}), store.ErrInvalid)
	want(t, "SaveKeys(one id twice)", f.SaveKeys(ctx, issuer, first, []store.Key{key("c"), key("c")}), store.ErrExists)
	keys, version, err = f.LoadKeys(ctx, issuer)
	check(t, "LoadKeys", err)
	same(t, "keys after failures", keys, []store.Key{key("a"), open})
	if version != first {
		t.Fatalf("version = %d after failures, want %d", version, first)
	}

	// Two issuers may have keys of the same id, each with a life of its own.
	foreign.ID = "a"
	check(t, "SaveKeys(other issuer)", f.SaveKeys(ctx, foreign.Issuer, 0, []store.Key{foreign}))
	check(t, "SaveKeys(none)", f.SaveKeys(ctx, issuer, first, nil))
	keys, version, err = f.LoadKeys(ctx, issuer)
	check(t, "LoadKeys", err)
	if len(keys) != 0 || version == first || version == 0 {
		t.Fatalf("LoadKeys = %d keys, version %d, want none and a new version", len(keys), version)
	}
	keys, _, err = f.LoadKeys(ctx, foreign.Issuer)
	check(t, "LoadKeys", err)
	same(t, "keys of the other issuer", keys, []store.Key{foreign})
}
