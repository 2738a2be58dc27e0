package account_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/cinnabar-hub/cinnabar/internal/as/account"
)

// cheap is the lowest cost there is.
func cheap() account.HashOptions {
	return account.HashOptions{MemoryKiB: 8, Iterations: 1, Parallelism: 1, Concurrent: 2}
}

func mustHasher(t *testing.T, o account.HashOptions) *account.Hasher {
	t.Helper()
	h, err := account.NewHasher(o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHasher(t *testing.T) {
	ctx := t.Context()
	h := mustHasher(t, cheap())
	hash, err := h.Hash(ctx, "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(hash, "$argon2id$v=19$m=8,t=1,p=1$") {
		t.Errorf("Hash = %q, want a PHC string with its cost", hash)
	}
	if again, err := h.Hash(ctx, "correct horse"); err != nil || again == hash {
		t.Errorf("two hashes have one salt (%v)", err)
	}
	other := cheap()
	other.Iterations = 2
	for _, c := range []struct {
		name, password, hash string
		h                    *account.Hasher
		match, stale         bool
	}{
		{"the password", "correct horse", hash, h, true, false},
		{"another password", "Correct horse", hash, h, false, false},
		{"no password", "", hash, h, false, false},
		{"no hash", "correct horse", "", h, false, false},
		{"no hash and no password", "", "", h, false, false},
		{"a cost of before", "correct horse", hash, mustHasher(t, other), true, true},
	} {
		match, stale, err := c.h.Verify(ctx, c.password, c.hash)
		if err != nil || match != c.match || stale != c.stale {
			t.Errorf("%s: Verify = %t, %t, %v, want %t, %t", c.name, match, stale, err, c.match, c.stale)
		}
	}
}

// TestHasher_foreignHashes must neither panic nor allocate what a hash asks for.
func TestHasher_foreignHashes(t *testing.T) {
	const tail = "$c2FsdHNhbHRzYWx0c2FsdA$a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2U"
	h := mustHasher(t, cheap())
	for _, hash := range []string{
		"x", "plain", "$2a$10$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234", "$argon2i$v=19$m=8,t=1,p=1" + tail,
		"$argon2id$v=16$m=8,t=1,p=1" + tail, "$argon2id$v=19$m=8,t=0,p=1" + tail, "$argon2id$v=19$m=8,t=1,p=0" + tail,
		"$argon2id$v=19$m=4194304,t=1,p=1" + tail, "$argon2id$v=19$m=8,t=1000000,p=1" + tail, "$argon2id$v=19$m=8,t=1,p=1$c2FsdA$",
		"$argon2id$v=19$m=8,t=1,p=1$!$!", "$argon2id$v=19$m=8,t=1,p=1" + tail + strings.Repeat("A", 10_000), "$$$$$",
	} {
		match, _, err := h.Verify(t.Context(), "password", hash)
		if match || !errors.Is(err, account.ErrHash) {
			t.Errorf("Verify with %.40q = %t, %v, want ErrHash", hash, match, err)
		}
		if err != nil && strings.Contains(err.Error(), "c2Fsd") {
			t.Errorf("the error holds the hash: %v", err)
		}
	}
}

func TestHasher_options(t *testing.T) {
	for name, o := range map[string]account.HashOptions{
		"too much memory": {MemoryKiB: 1 << 30}, "too many passes": {Iterations: 1000}, "a negative number": {Concurrent: -1},
	} {
		if _, err := account.NewHasher(o); err == nil {
			t.Errorf("NewHasher with %s succeeded", name)
		}
	}
}

// TestHasher_bounds floods a Hasher: what does not fit is refused at once, and what waits can be given up.
func TestHasher_bounds(t *testing.T) {
	o := cheap()
	o.MemoryKiB, o.Concurrent, o.Queue = 1024, 1, 2
	h := mustHasher(t, o)
	var wg sync.WaitGroup
	start := make(chan struct{})
	errs := make([]error, 50)
	for i := range errs {
		wg.Go(func() {
			<-start
			_, errs[i] = h.Hash(context.Background(), "password")
		})
	}
	close(start)
	wg.Wait()
	done, busy := 0, 0
	for _, err := range errs {
		switch {
		case err == nil:
			done++
		case errors.Is(err, account.ErrBusy):
			busy++
		default:
			t.Errorf("Hash = %v", err)
		}
	}
	if done < 3 || done+busy != len(errs) {
		t.Errorf("%d hashes were computed and %d refused, want at least 3 of %d computed", done, busy, len(errs))
	}
	if _, err := h.Hash(t.Context(), "password"); err != nil {
		t.Errorf("Hash after a flood = %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10 { // a free turn may be taken even so; nothing may stay taken
		if _, err := h.Hash(ended, "password"); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Hash with an ended context = %v", err)
		}
	}
	if _, err := h.Hash(t.Context(), "password"); err != nil {
		t.Errorf("Hash after ended contexts = %v", err)
	}
}
