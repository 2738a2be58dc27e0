package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

const refreshColumns = `id, issuer, client_id, grant_id, request, created_at, expires_at, used_at, successor_id`

// insertRefreshToken stores a token that has not been used.
func insertRefreshToken(ctx context.Context, q querier, r store.RefreshToken) error {
	const query = `INSERT INTO refresh_tokens (` + refreshColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, 0, '')`
	_, err := q.exec(ctx, query, r.ID, r.Issuer, r.ClientID, r.GrantID, string(r.Request), millis(r.CreatedAt), millis(r.ExpiresAt))
	return err
}

// RefreshToken implements store.Tokens.
func (s *Store) RefreshToken(ctx context.Context, id string) (store.RefreshToken, error) {
	var r store.RefreshToken
	err := s.read(ctx, "read refresh token", func(q querier) (err error) {
		r, err = readRefreshToken(ctx, q, id)
		return err
	})
	return r, err
}

func readRefreshToken(ctx context.Context, q querier, id string) (store.RefreshToken, error) {
	var r store.RefreshToken
	err := q.row(ctx, `SELECT `+refreshColumns+` FROM refresh_tokens WHERE id = ?`, id).Scan(&r.ID, &r.Issuer, &r.ClientID, &r.GrantID,
		rawColumn{&r.Request}, timeColumn{&r.CreatedAt}, timeColumn{&r.ExpiresAt}, timeColumn{&r.UsedAt}, &r.SuccessorID)
	return r, err
}

// UseRefreshToken implements store.Tokens.
func (s *Store) UseRefreshToken(ctx context.Context, id string, at, expiresAt time.Time, t store.IssuedToken) error {
	const op = "use refresh token"
	if err := t.Validate(); err != nil {
		return s.wrap(op, err)
	}
	if at.IsZero() || expiresAt.IsZero() {
		return s.wrap(op, fmt.Errorf("%w: refresh token: no time", store.ErrInvalid))
	}
	return s.write(ctx, op, func(q querier) error {
		r, err := liveRefreshToken(ctx, q, id, t)
		if err != nil {
			return err
		}
		switch {
		case !r.UsedAt.IsZero():
			return store.ErrConsumed
		case !r.ExpiresAt.After(at):
			return errExpired()
		}
		if _, err := q.exec(ctx, `UPDATE refresh_tokens SET expires_at = ? WHERE id = ?`, millis(expiresAt), id); err != nil {
			return err
		}
		return insertToken(ctx, q, t)
	})
}

// RotateRefreshToken implements store.Tokens.
func (s *Store) RotateRefreshToken(ctx context.Context, id string, at time.Time, grace time.Duration, successor store.RefreshToken,
	t store.IssuedToken,
) error {
	const op = "rotate refresh token"
	if err := checkRotation(id, at, successor, t); err != nil {
		return s.wrap(op, err)
	}
	return s.write(ctx, op, func(q querier) error {
		r, err := liveRefreshToken(ctx, q, id, t)
		if err != nil {
			return err
		}
		if !r.UsedAt.IsZero() {
			if r.SuccessorID != successor.ID || !at.Before(r.UsedAt.Add(grace)) {
				return store.ErrConsumed
			}
			return insertToken(ctx, q, t)
		}
		if !r.ExpiresAt.After(at) {
			return errExpired()
		}
		const mark = `UPDATE refresh_tokens SET used_at = ?, successor_id = ? WHERE id = ?`
		if _, err := q.exec(ctx, mark, millis(at), successor.ID, id); err != nil {
			return err
		}
		if err := insertRefreshToken(ctx, q, successor); err != nil {
			return err
		}
		return insertToken(ctx, q, t)
	})
}

func checkRotation(id string, at time.Time, successor store.RefreshToken, t store.IssuedToken) error {
	if err := t.Validate(); err != nil {
		return err
	}
	if err := successor.Validate(); err != nil {
		return err
	}
	if at.IsZero() {
		return fmt.Errorf("%w: refresh token: no time", store.ErrInvalid)
	}
	if successor.ID == id {
		return fmt.Errorf("%w: refresh token: succeeds itself", store.ErrInvalid)
	}
	if successor.GrantID != t.GrantID {
		return fmt.Errorf("%w: refresh token: of another grant than the token", store.ErrInvalid)
	}
	return nil
}

// liveRefreshToken returns the refresh token whose grant is in force and is that of the token to record. It may be rotated or expired.
func liveRefreshToken(ctx context.Context, q querier, id string, t store.IssuedToken) (store.RefreshToken, error) {
	r, err := readRefreshToken(ctx, q, id)
	if err != nil {
		return r, err
	}
	if t.GrantID != r.GrantID {
		return r, fmt.Errorf("%w: token: of another grant than the refresh token", store.ErrInvalid)
	}
	return r, grantInForce(ctx, q, r.GrantID)
}

// errExpired is a function because only sentinels may be global.
func errExpired() error { return fmt.Errorf("%w: expired", store.ErrNotFound) }
