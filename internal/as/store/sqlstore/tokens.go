package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

const tokenColumns = `id, issuer, grant_id, session_id, subject, client_id, issued_at, expires_at, revoked_at` //nolint:gosec // column names

// RecordToken implements store.Tokens.
func (s *Store) RecordToken(ctx context.Context, t store.IssuedToken) error {
	const op = "record token"
	if err := t.Validate(); err != nil {
		return s.wrap(op, err)
	}
	return s.write(ctx, op, func(q querier) error {
		return insertToken(ctx, q, t)
	})
}

// insertToken refuses a token of what is revoked. The check and the record are in one transaction: otherwise a token minted during
// the revocation would escape the revocation log, which names tokens issued until then.
func insertToken(ctx context.Context, q querier, t store.IssuedToken) error {
	var grant any // NULL without one
	if t.GrantID == "" {
		if err := clientInForce(ctx, q, t.ClientID); err != nil {
			return err
		}
	} else {
		grant = t.GrantID
		if err := grantInForce(ctx, q, t.GrantID); err != nil {
			return err
		}
	}
	const query = `INSERT INTO issued_tokens (` + tokenColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)`
	_, err := q.exec(ctx, query, t.ID, t.Issuer, grant, t.SessionID, t.Subject, t.ClientID, millis(t.IssuedAt), millis(t.ExpiresAt))
	return err
}

// IssuedToken implements store.Tokens.
func (s *Store) IssuedToken(ctx context.Context, id string) (store.IssuedToken, error) {
	var t store.IssuedToken
	err := s.read(ctx, "read token", func(q querier) (err error) {
		t, err = readToken(ctx, q, id)
		return err
	})
	return t, err
}

func readToken(ctx context.Context, q querier, id string) (store.IssuedToken, error) {
	var t store.IssuedToken
	var grant sql.NullString
	err := q.row(ctx, `SELECT `+tokenColumns+` FROM issued_tokens WHERE id = ?`, id).Scan(&t.ID, &t.Issuer, &grant, &t.SessionID,
		&t.Subject, &t.ClientID, timeColumn{&t.IssuedAt}, timeColumn{&t.ExpiresAt}, timeColumn{&t.RevokedAt})
	t.GrantID = grant.String
	return t, err
}

// RevokeToken implements store.Tokens.
func (s *Store) RevokeToken(ctx context.Context, id string, at time.Time) error {
	const op = "revoke token"
	if at.IsZero() {
		return s.wrap(op, errNoTime())
	}
	return s.write(ctx, op, func(q querier) error {
		t, err := readToken(ctx, q, id)
		if err != nil || !t.RevokedAt.IsZero() {
			return err
		}
		if _, err := q.exec(ctx, `UPDATE issued_tokens SET revoked_at = ? WHERE id = ?`, millis(at), id); err != nil {
			return err
		}
		return s.logRevocation(ctx, q, store.RevokeToken, t.Issuer, id, at)
	})
}
