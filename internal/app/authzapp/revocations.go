package authzapp

import (
	"context"
	"fmt"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
	"github.com/cinnabar-hub/cinnabar/internal/revocation"
	"github.com/cinnabar-hub/cinnabar/internal/token"
)

// RevocationLog lets a list follow the revocation log of a store in the same process.
func RevocationLog(s store.Journal) revocation.Source { return revocationLog{s} }

type revocationLog struct{ store store.Journal }

// Since implements revocation.Source.
func (l revocationLog) Since(ctx context.Context, seq int64, limit int) ([]revocation.Entry, error) {
	entries, err := l.store.RevocationsSince(ctx, seq, limit)
	if err != nil {
		return nil, fmt.Errorf("read revocation log: %w", err)
	}
	out := make([]revocation.Entry, 0, len(entries))
	for _, e := range entries {
		out = append(out, revocation.Entry{
			Seq: e.Seq, Issuer: e.Issuer, Kind: string(e.Kind), Value: e.Value, IssuedBefore: e.IssuedBefore, Until: e.Until,
		})
	}
	return out, nil
}

// TokenOf is what a list of revocations is asked about a token with these claims.
func TokenOf(c *token.Claims) revocation.Token {
	return revocation.Token{
		Issuer: c.Issuer, ID: c.ID, GrantID: c.GrantID, SessionID: c.SessionID, Subject: c.Subject, ClientID: c.ClientID, IssuedAt: c.IssuedAt,
	}
}
