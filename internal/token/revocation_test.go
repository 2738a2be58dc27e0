package token_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/revocation"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

// revocationLog is a revocation log, and the list of it as a verifier is given it.
type revocationLog struct {
	*revocation.List

	mu      sync.Mutex
	entries []revocation.Entry
}

func newRevocationLog(tb testing.TB, now func() time.Time) *revocationLog {
	tb.Helper()
	r := &revocationLog{}
	list, err := revocation.New(revocation.Options{Source: r, Now: now})
	if err != nil {
		tb.Fatal(err)
	}
	r.List = list
	return r
}

func (r *revocationLog) Since(_ context.Context, seq int64, limit int) ([]revocation.Entry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]revocation.Entry(nil), r.entries[seq:min(int(seq)+limit, len(r.entries))]...), nil
}

// Revoked implements token.Revocations.
func (r *revocationLog) Revoked(c *token.Claims) bool {
	return r.List.Revoked(revocation.Token{
		Issuer: c.Issuer, ID: c.ID, GrantID: c.GrantID, SessionID: c.SessionID, Subject: c.Subject, ClientID: c.ClientID, IssuedAt: c.IssuedAt,
	})
}

func (r *revocationLog) revoke(tb testing.TB, kind, value string, issuedBefore time.Time) {
	tb.Helper()
	r.mu.Lock()
	r.entries = append(r.entries, revocation.Entry{
		Seq: int64(len(r.entries) + 1), Issuer: asIssuer, Kind: kind, Value: value,
		IssuedBefore: issuedBefore, Until: start.Add(time.Hour),
	})
	r.mu.Unlock()
	if err := r.Load(context.Background()); err != nil {
		tb.Error(err)
	}
}

// newRevocable is a verifier with a cache that follows a revocation log.
func newRevocable(tb testing.TB) (*token.Verifier, *revocationLog) {
	tb.Helper()
	clock := newClock()
	r := newRevocationLog(tb, clock.Now)
	o := options(tb)
	o.Now, o.Revocations = clock.Now, r
	o.Issuers = []token.Issuer{{ID: asIssuer, AuthorizationServer: true, Keys: newCountingSource()}}
	return newVerifier(tb, o), r
}

// TestVerify_Revocation revokes tokens that are remembered, by everything they can be revoked by.
func TestVerify_Revocation(t *testing.T) {
	t.Parallel()
	issued := start.Add(-time.Minute)
	for _, c := range []struct {
		name, kind, value string
		claims            object
		issuedBefore      time.Time
		want              token.Check
	}{
		{"its jti", revocation.KindToken, "x1", object{"jti": `"x1"`}, issued, token.CheckRevocation},
		{"its grant", revocation.KindGrant, "x1", object{"grant_id": `"x1"`}, issued, token.CheckRevocation},
		{"its session", revocation.KindSession, "x1", object{"sid": `"x1"`}, issued, token.CheckRevocation},
		{"its subject", revocation.KindSubject, "x1", object{"sub": `"x1"`}, issued, token.CheckRevocation},
		{"its client", revocation.KindClient, "x1", object{"client_id": `"x1"`}, issued, token.CheckRevocation},
		{"another's jti", revocation.KindToken, "x2", object{"jti": `"x1"`}, issued, ""},
		{"its subject before it was issued", revocation.KindSubject, "x1", object{"sub": `"x1"`}, issued.Add(-time.Second), ""},
		{"its subject, and it does not say when it was issued", revocation.KindSubject, "x1", object{"sub": `"x1"`, "iat": ""}, issued.Add(-time.Hour), token.CheckRevocation},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v, r := newRevocable(t)
			compact := compact(header().String(), claims().with(object{"iat": seconds(issued)}).with(c.claims).String(), "ES256", ecKey())
			for range 2 { // the second time from memory
				if _, err := v.Verify(t.Context(), compact, rar.Subscribe); err != nil {
					t.Fatal(err)
				}
			}
			r.revoke(t, c.kind, c.value, c.issuedBefore)
			for _, endpoint := range []rar.Action{rar.Subscribe, rar.Publish, rar.Subscribe} {
				_, err := v.Verify(t.Context(), compact, endpoint)
				wantCheck(t, err, c.want)
			}
		})
	}
}

// TestVerify_RevocationRace revokes tokens while they are verified and remembered: none is accepted by a call that begins
// after it was revoked.
func TestVerify_RevocationRace(t *testing.T) {
	t.Parallel()
	v, r := newRevocable(t)
	const tokens = 16
	var compacts [tokens]string
	for i := range compacts {
		compacts[i] = anotherToken(i)
	}
	var revoked [tokens]sync.WaitGroup // done when the token is revoked
	for i := range revoked {
		revoked[i].Add(1)
	}
	var work sync.WaitGroup
	stop := make(chan struct{})
	for worker := range 4 {
		work.Go(func() {
			for i := worker; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				_, err := v.Verify(context.Background(), compacts[i%tokens], rar.Subscribe)
				if invalid, ok := errors.AsType[*token.InvalidError](err); err != nil && (!ok || invalid.Check != token.CheckRevocation) {
					t.Errorf("Verify() = %v", err)
					return
				}
			}
		})
	}
	for i := range tokens {
		work.Go(func() {
			revoked[i].Wait()
			for range 20 {
				_, err := v.Verify(context.Background(), compacts[i], rar.Subscribe)
				wantCheck(t, err, token.CheckRevocation)
			}
		})
	}
	for i := range tokens {
		r.revoke(t, revocation.KindToken, fmt.Sprintf("t%d", i), start)
		revoked[i].Done()
		<-time.After(2 * time.Millisecond)
	}
	close(stop)
	work.Wait()
}
