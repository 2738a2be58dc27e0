package token_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

// countingSource counts how often it is asked, and has keys that change.
type countingSource struct {
	asked   atomic.Int32
	version atomic.Uint64
	mu      sync.Mutex
	keys    []token.Key
}

func newCountingSource() *countingSource {
	s := &countingSource{keys: []token.Key{{ID: "as1", Algorithm: "ES256", Material: &ecKey().PublicKey}}}
	s.version.Store(1)
	return s
}

func (s *countingSource) Keys(context.Context, string) ([]token.Key, error) {
	s.asked.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys, nil
}

func (s *countingSource) KeysVersion() uint64 { return s.version.Load() }

func (s *countingSource) set(keys ...token.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = keys
	s.version.Add(1)
}

// cached is a verifier with a cache, and what its verdicts hang on.
type cached struct {
	*token.Verifier
	clock   *clock
	source  *countingSource
	revoked *atomic.Bool
}

func (c cached) Revoked(*token.Claims) bool { return c.revoked.Load() }

func newCached(tb testing.TB, size int) cached {
	tb.Helper()
	c := cached{clock: newClock(), source: newCountingSource(), revoked: new(atomic.Bool)}
	o := options(tb)
	o.CacheSize, o.Now, o.Revocations = size, c.clock.Now, c
	o.Issuers = []token.Issuer{{ID: asIssuer, AuthorizationServer: true, Keys: c.source}}
	c.Verifier = newVerifier(tb, o)
	return c
}

func (c cached) verify(tb testing.TB, compact string, endpoint rar.Action, want token.Check) {
	tb.Helper()
	_, err := c.Verify(tb.Context(), compact, endpoint)
	wantCheck(tb, err, want)
}

func (c cached) wantAsked(tb testing.TB, want int32) {
	tb.Helper()
	if got := c.source.asked.Load(); got != want {
		tb.Errorf("the keys were asked for %d times, want %d", got, want)
	}
}

func TestVerify_Cache(t *testing.T) {
	t.Parallel()
	compact := compact(header().String(), claims().with(object{"nbf": seconds(start.Add(20 * time.Second))}).String(), "ES256", ecKey())
	t.Run("remembers a verdict", func(t *testing.T) {
		t.Parallel()
		c := newCached(t, 0)
		c.verify(t, compact, rar.Subscribe, "")
		c.verify(t, compact, rar.Subscribe, "")
		c.wantAsked(t, 1)
	})
	t.Run("remembers nothing when told so", func(t *testing.T) {
		t.Parallel()
		c := newCached(t, -1)
		c.verify(t, compact, rar.Subscribe, "")
		c.verify(t, compact, rar.Subscribe, "")
		c.wantAsked(t, 2)
	})
	t.Run("does not remember refusals", func(t *testing.T) {
		t.Parallel()
		c := newCached(t, 0)
		forged := compact[:len(compact)-86] + b64(make([]byte, 64))
		c.verify(t, forged, rar.Subscribe, token.CheckSignature)
		c.verify(t, forged, rar.Subscribe, token.CheckSignature)
		c.wantAsked(t, 2)
	})
	t.Run("TOK-26 keeps endpoints apart", func(t *testing.T) {
		t.Parallel()
		c := newCached(t, 0)
		c.verify(t, compact, rar.Subscribe, "")
		c.verify(t, compact, rar.Publish, "")
		c.wantAsked(t, 2)
	})
	t.Run("TOK-14 checks exp again", func(t *testing.T) {
		t.Parallel()
		c := newCached(t, 0)
		c.verify(t, compact, rar.Subscribe, "")
		c.clock.Advance(10*time.Minute - time.Nanosecond)
		c.verify(t, compact, rar.Subscribe, "")
		c.clock.Advance(time.Nanosecond)
		c.verify(t, compact, rar.Subscribe, token.CheckExp)
	})
	t.Run("TOK-16 checks nbf again", func(t *testing.T) {
		t.Parallel()
		c := newCached(t, 0)
		c.verify(t, compact, rar.Subscribe, "")
		c.clock.Advance(-time.Minute)
		c.verify(t, compact, rar.Subscribe, token.CheckNbf)
	})
	t.Run("checks revocation again", func(t *testing.T) {
		t.Parallel()
		c := newCached(t, 0)
		c.verify(t, compact, rar.Subscribe, "")
		c.revoked.Store(true)
		c.verify(t, compact, rar.Subscribe, token.CheckRevocation)
	})
	t.Run("TOK-08 forgets when keys change", func(t *testing.T) {
		t.Parallel()
		c := newCached(t, 0)
		c.verify(t, compact, rar.Subscribe, "")
		c.source.set(token.Key{ID: "as1", Algorithm: "ES256", Material: &ec2Key().PublicKey})
		c.verify(t, compact, rar.Subscribe, token.CheckSignature)
	})
	t.Run("TOK-26 forgets when a key serves less", func(t *testing.T) {
		t.Parallel()
		c := newCached(t, 0)
		c.verify(t, compact, rar.Subscribe, "")
		c.source.set(token.Key{ID: "as1", Algorithm: "ES256", Material: &ecKey().PublicKey, Actions: rar.Actions(rar.Publish)})
		c.verify(t, compact, rar.Subscribe, token.CheckKeyActions)
	})
	t.Run("remembers nothing while the keys cannot tell their version", func(t *testing.T) {
		t.Parallel()
		c := newCached(t, 0)
		c.source.version.Store(0)
		c.verify(t, compact, rar.Subscribe, "")
		c.verify(t, compact, rar.Subscribe, "")
		c.wantAsked(t, 2)
	})
	t.Run("forgets the least recently used", func(t *testing.T) {
		t.Parallel()
		c := newCached(t, 2)
		tokens := make([]string, 3)
		for i := range tokens {
			tokens[i] = anotherToken(i)
		}
		c.verify(t, tokens[0], rar.Subscribe, "")
		c.verify(t, tokens[1], rar.Subscribe, "")
		c.verify(t, tokens[0], rar.Subscribe, "")
		c.verify(t, tokens[2], rar.Subscribe, "") // pushes out 1
		c.wantAsked(t, 3)
		c.verify(t, tokens[0], rar.Subscribe, "")
		c.verify(t, tokens[2], rar.Subscribe, "")
		c.wantAsked(t, 3)
		c.verify(t, tokens[1], rar.Subscribe, "")
		c.wantAsked(t, 4)
	})
}

func anotherToken(i int) string {
	return compact(header().String(), claims().with(object{"jti": fmt.Sprintf(`"t%d"`, i)}).String(), "ES256", ecKey())
}

func TestVerify_CacheAllocations(t *testing.T) {
	c := newCached(t, 0)
	compact := good()
	c.verify(t, compact, rar.Subscribe, "")
	ctx := t.Context()
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := c.Verify(ctx, compact, rar.Subscribe); err != nil {
			t.Error(err)
		}
	})
	if allocs > 1 {
		t.Errorf("a cache hit allocates %v times, want at most once", allocs)
	}
}

func TestVerify_Concurrently(t *testing.T) {
	t.Parallel()
	c := newCached(t, 3)
	tokens := make([]string, 6)
	for i := range tokens {
		tokens[i] = anotherToken(i)
	}
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range 60 {
				n := (i + worker) % len(tokens)
				claims, err := c.Verify(context.Background(), tokens[n], rar.Subscribe)
				if err != nil {
					t.Error(err)
					return
				}
				if want := fmt.Sprintf("t%d", n); claims.ID != want {
					t.Errorf("Verify() returns the claims of %s, want %s", claims.ID, want)
				}
				if i%20 == worker {
					c.source.set(token.Key{ID: "as1", Algorithm: "ES256", Material: &ecKey().PublicKey})
				}
			}
		})
	}
	group.Wait()
}
