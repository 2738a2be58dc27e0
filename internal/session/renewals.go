package session

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"
)

const (
	// renewalReuse is how long the answer to a renewal serves others that ask with the same refresh token: tabs that were a
	// moment late, and a page whose answer got lost. It also bounds what one session can cost the authorization server, and is
	// shorter than any token takes to become due again.
	renewalReuse = 2 * time.Second
	// maxRenewals bounds the answers kept, and the sessions that are remembered as ended, in each of two generations.
	maxRenewals = 4096
)

// errEnded says that the session is over, as far as this process knows.
var errEnded = errors.New("session: over")

// tokenKey stands for a refresh token where the token itself must not be kept.
type tokenKey [sha256.Size]byte

func keyOf(refreshToken string) tokenKey { return sha256.Sum256([]byte(refreshToken)) }

// renewals sees to it that a refresh token is sent once at a time, and never again once its session is over. It
// knows this process alone; what others do is the authorization server's to judge. It is safe for concurrent use.
type renewals struct {
	mu      sync.Mutex           // protects the fields below
	running map[tokenKey]*flight // each belongs to a connection, which the server bounds
	landed  generations[*flight]
	ended   generations[bool] // sessions that are over; true: and the authorization server knows
}

// flight is one token request, and its answer once done is closed.
type flight struct {
	done   chan struct{}
	until  time.Time // when the answer is too old to be given to others
	tokens *tokens
	err    error
}

func newRenewals() *renewals { return &renewals{running: map[tokenKey]*flight{}} }

// do runs fetch, or waits for the one that runs for the same key, or gives its answer if it was just there. A failure is given
// to those who wait for it, and not kept. fetch does not end with ctx, since others may wait for it.
func (r *renewals) do(ctx context.Context, key tokenKey, fetch func(context.Context) (*tokens, error)) (*tokens, error) {
	r.mu.Lock()
	if _, ended := r.ended.get(key); ended {
		r.mu.Unlock()
		return nil, errEnded
	}
	f, ok := r.running[key]
	if !ok {
		f, ok = r.landed.get(key)
		ok = ok && time.Now().Before(f.until)
	}
	if ok {
		r.mu.Unlock()
		select {
		case <-f.done:
			return f.tokens, f.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	f = &flight{done: make(chan struct{}), err: errUnavailable}
	r.running[key] = f
	r.mu.Unlock()
	defer r.land(key, f)
	f.tokens, f.err = fetch(context.WithoutCancel(ctx))
	if f.err == nil && r.over(key) {
		f.err = errEnded
	}
	return f.tokens, f.err
}

// land gives the answer of a flight to those who wait, and keeps it for a while if it is a good one.
func (r *renewals) land(key tokenKey, f *flight) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, key)
	if f.err == nil {
		now := time.Now()
		f.until = now.Add(renewalReuse)
		r.landed.age(now, renewalReuse) // tokens stay in memory no longer than they must
		r.landed.set(key, f)
	}
	close(f.done)
}

// end notes that a session is over. It reports whether the authorization server knew before.
func (r *renewals) end(key tokenKey) (told bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	told, _ = r.ended.get(key)
	r.ended.set(key, told)
	return told
}

// told notes that a session is over and that the authorization server knows.
func (r *renewals) told(key tokenKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended.set(key, true)
}

// over says whether a session is known to be over.
func (r *renewals) over(key tokenKey) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ended := r.ended.get(key)
	return ended
}

// generations is a bounded map: when the young half is full, the old one is forgotten. Its zero value is ready.
type generations[V any] struct {
	young, old map[tokenKey]V
	began      time.Time // the young one
}

func (g *generations[V]) get(key tokenKey) (V, bool) {
	if v, ok := g.young[key]; ok {
		return v, true
	}
	v, ok := g.old[key]
	return v, ok
}

func (g *generations[V]) set(key tokenKey, v V) {
	if g.young == nil || len(g.young) >= maxRenewals {
		g.old, g.young = g.young, map[tokenKey]V{}
	}
	g.young[key] = v
}

// age begins a new generation if the young one is older than most.
func (g *generations[V]) age(now time.Time, most time.Duration) {
	if now.Sub(g.began) < most {
		return
	}
	g.old, g.young, g.began = g.young, map[tokenKey]V{}, now
}
