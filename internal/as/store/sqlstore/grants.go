package sqlstore

import (
	"context"
	"fmt"
	"strings"
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
		if err := mayGrant(ctx, q, g); err != nil {
			return err
		}
		const query = `INSERT INTO grants (` + grantColumns + `, sweep_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
		_, err := q.exec(ctx, query, g.ID, g.Issuer, g.ClientID, g.AccountID, g.SessionID, g.Resource, string(g.Details),
			millis(g.CreatedAt), millis(g.ExpiresAt), millis(g.RevokedAt), grantSweep(g.ExpiresAt))
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

// mayGrant refuses a grant to what was revoked while the request for it was under way: the revocation did not see the grant.
func mayGrant(ctx context.Context, q querier, g store.Grant) error {
	if err := clientInForce(ctx, q, g.ClientID); err != nil {
		return err
	}
	if g.AccountID != "" {
		if err := accountInForce(ctx, q, g.AccountID); err != nil && !isNoRows(err) {
			return err
		}
	}
	if g.SessionID == "" {
		return nil
	}
	return sessionInForce(ctx, q, g.Issuer, g.SessionID)
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
func (s *Store) ListGrants(ctx context.Context, f store.GrantFilter) ([]store.Grant, error) {
	var where []string
	var args []any
	for _, c := range []struct{ column, value string }{ // the most selective first
		{"session_id", f.SessionID}, {"account_id", f.AccountID}, {"client_id", f.ClientID},
	} {
		if c.value == "" {
			continue
		}
		if len(where) > 0 {
			c.column += ` || ''` // by no index: a client may have very many grants
		}
		where, args = append(where, c.column+` = ?`), append(args, c.value)
	}
	query := `SELECT ` + grantColumns + ` FROM grants`
	if len(where) > 0 {
		query += ` WHERE ` + strings.Join(where, ` AND `)
	}
	var out []store.Grant
	err := s.read(ctx, "list grants", func(q querier) (err error) {
		out, err = list(ctx, q, scanGrant, query+` ORDER BY created_at DESC, id`, args...)
		return err
	})
	return out, err
}

// RevokeGrant implements store.Grants.
func (s *Store) RevokeGrant(ctx context.Context, id string, at time.Time) error {
	const op = "revoke grant"
	if at.IsZero() {
		return s.wrap(op, errNoTime())
	}
	return s.write(ctx, op, func(q querier) error {
		g, err := scanGrant(q.row(ctx, `SELECT `+grantColumns+` FROM grants WHERE id = ?`, id))
		if err != nil || !g.RevokedAt.IsZero() {
			return err
		}
		if _, err := revokeGrants(ctx, q, at, `id = ?`, id); err != nil {
			return err
		}
		return s.logRevocation(ctx, q, store.RevokeGrant, g.Issuer, id, at)
	})
}
