package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

const grantColumns = `id, issuer, client_id, account_id, session_id, resource, details, created_at, expires_at, revoked_at`

func scanGrant(row scanner) (store.Grant, error) {
	var g store.Grant
	err := row.Scan(&g.ID, &g.Issuer, &g.ClientID, &g.AccountID, &g.SessionID, &g.Resource, rawColumn{&g.Details},
		timeColumn{&g.CreatedAt}, timeColumn{&g.ExpiresAt}, timeColumn{&g.RevokedAt})
	return g, err
}

// CreateGrant implements store.Grants.
func (s *Store) CreateGrant(ctx context.Context, g store.Grant, code *store.Code) error {
	const op = "create grant"
	if err := checkGrant(g, code); err != nil {
		return s.wrap(op, err)
	}
	return s.write(ctx, op, func(q querier) error {
		const query = `INSERT INTO grants (` + grantColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
		_, err := q.exec(ctx, query, g.ID, g.Issuer, g.ClientID, g.AccountID, g.SessionID, g.Resource, string(g.Details),
			millis(g.CreatedAt), millis(g.ExpiresAt), millis(g.RevokedAt))
		if err != nil || code == nil {
			return err
		}
		return insertCode(ctx, q, *code)
	})
}

func checkGrant(g store.Grant, code *store.Code) error {
	if err := g.Validate(); err != nil {
		return err
	}
	if code == nil {
		return nil
	}
	if code.GrantID != g.ID {
		return fmt.Errorf("%w: code: of another grant", store.ErrInvalid)
	}
	return code.Validate()
}

// Grant implements store.Grants.
func (s *Store) Grant(ctx context.Context, id string) (store.Grant, error) {
	var g store.Grant
	err := s.read(ctx, "read grant", func(q querier) (err error) {
		g, err = scanGrant(q.row(ctx, `SELECT `+grantColumns+` FROM grants WHERE id = ?`, id))
		return err
	})
	return g, err
}

// ListGrants implements store.Grants.
func (s *Store) ListGrants(ctx context.Context, accountID string) ([]store.Grant, error) {
	query, args := `SELECT `+grantColumns+` FROM grants`, []any(nil)
	if accountID != "" {
		query, args = query+` WHERE account_id = ?`, []any{accountID}
	}
	var out []store.Grant
	err := s.read(ctx, "list grants", func(q querier) (err error) {
		out, err = list(ctx, q, scanGrant, query+` ORDER BY created_at DESC, id`, args...)
		return err
	})
	return out, err
}

// RecordToken implements store.Grants.
func (s *Store) RecordToken(ctx context.Context, t store.IssuedToken) error {
	const op = "record token"
	if err := t.Validate(); err != nil {
		return s.wrap(op, err)
	}
	return s.write(ctx, op, func(q querier) error {
		return insertToken(ctx, q, t)
	})
}

// insertToken refuses a token of a revoked grant. The check and the record are in one transaction: otherwise a token minted while its
// grant was being revoked would escape the revocation log, which names tokens issued until the revocation.
func insertToken(ctx context.Context, q querier, t store.IssuedToken) error {
	var grant any // NULL without one
	if t.GrantID != "" {
		grant = t.GrantID
		var revoked int64
		if err := q.row(ctx, `SELECT revoked_at FROM grants WHERE id = ?`, t.GrantID).Scan(&revoked); err != nil {
			return fmt.Errorf("grant of the token: %w", err)
		}
		if revoked != 0 {
			return store.ErrRevoked
		}
	}
	const query = `INSERT INTO issued_tokens (id, issuer, grant_id, session_id, subject, client_id, issued_at, expires_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
	_, err := q.exec(ctx, query, t.ID, t.Issuer, grant, t.SessionID, t.Subject, t.ClientID, millis(t.IssuedAt), millis(t.ExpiresAt))
	return err
}

// RevokeGrant implements store.Grants.
func (s *Store) RevokeGrant(ctx context.Context, id string, at time.Time) error {
	const op = "revoke grant"
	if at.IsZero() {
		return s.wrap(op, fmt.Errorf("%w: revocation: no time", store.ErrInvalid))
	}
	return s.write(ctx, op, func(q querier) error {
		const mark = `UPDATE grants SET revoked_at = ? WHERE id = ? AND revoked_at = 0`
		n, err := q.exec(ctx, mark, millis(at), id)
		if err != nil {
			return err
		}
		var issuer string
		if err := q.row(ctx, `SELECT issuer FROM grants WHERE id = ?`, id).Scan(&issuer); err != nil {
			return err
		}
		if n == 0 {
			return nil // revoked before
		}
		return s.logGrant(ctx, q, id, issuer, at)
	})
}

// logGrant appends the entry of a revoked grant. Nothing is issued under it any more, so the entry covers every token there is: also
// one whose time of issue is ahead of the clock that at was read from.
func (s *Store) logGrant(ctx context.Context, q querier, id, issuer string, at time.Time) error {
	r := store.Revocation{Issuer: issuer, Kind: store.RevokeGrant, Value: id}
	const query = `SELECT coalesce(max(issued_at), 0), coalesce(max(expires_at), 0) FROM issued_tokens WHERE grant_id = ?`
	if err := q.row(ctx, query, id).Scan(timeColumn{&r.IssuedBefore}, timeColumn{&r.Until}); err != nil {
		return err
	}
	if r.IssuedBefore.Before(at) {
		r.IssuedBefore = at
	}
	if r.Until.Before(at) {
		r.Until = at
	}
	_, err := appendRevocation(ctx, q, r)
	return err
}
