package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

const codeColumns = `signature, issuer, client_id, grant_id, request, pkce, created_at, expires_at, used_at`

func insertCode(ctx context.Context, q querier, c store.Code) error {
	const query = `INSERT INTO codes (` + codeColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
	_, err := q.exec(ctx, query, c.Signature, c.Issuer, c.ClientID, c.GrantID, string(c.Request), string(c.PKCE),
		millis(c.CreatedAt), millis(c.ExpiresAt), millis(c.UsedAt))
	return err
}

// Code implements store.Grants.
func (s *Store) Code(ctx context.Context, signature string) (store.Code, error) {
	var c store.Code
	err := s.read(ctx, "read code", func(q querier) error {
		return q.row(ctx, `SELECT `+codeColumns+` FROM codes WHERE signature = ?`, signature).Scan(&c.Signature, &c.Issuer,
			&c.ClientID, &c.GrantID, rawColumn{&c.Request}, rawColumn{&c.PKCE}, timeColumn{&c.CreatedAt}, timeColumn{&c.ExpiresAt},
			timeColumn{&c.UsedAt})
	})
	return c, err
}

// RedeemCode implements store.Grants.
func (s *Store) RedeemCode(ctx context.Context, signature string, at time.Time, t store.IssuedToken, refresh *store.RefreshToken) error {
	const op = "redeem code"
	if err := checkRedemption(at, t, refresh); err != nil {
		return s.wrap(op, err)
	}
	return s.write(ctx, op, func(q querier) error {
		const mark = `UPDATE codes SET used_at = ? WHERE signature = ? AND used_at = 0 AND expires_at > ? RETURNING grant_id`
		var grantID string
		err := q.row(ctx, mark, millis(at), signature, millis(at)).Scan(&grantID)
		if isNoRows(err) {
			return whyNotRedeemed(ctx, q, signature)
		}
		if err != nil {
			return err
		}
		if t.GrantID != grantID {
			return fmt.Errorf("%w: token: of another grant than the code", store.ErrInvalid)
		}
		if err := redeemed(insertToken(ctx, q, t)); err != nil || refresh == nil {
			return err
		}
		return insertRefreshToken(ctx, q, *refresh)
	})
}

func checkRedemption(at time.Time, t store.IssuedToken, refresh *store.RefreshToken) error {
	if err := t.Validate(); err != nil {
		return err
	}
	if at.IsZero() {
		return fmt.Errorf("%w: redemption: no time", store.ErrInvalid)
	}
	if refresh == nil {
		return nil
	}
	if refresh.GrantID != t.GrantID {
		return fmt.Errorf("%w: refresh token: of another grant than the token", store.ErrInvalid)
	}
	return refresh.Validate()
}

// redeemed makes the code of a revoked grant look used, which is what a caller has to treat it as.
func redeemed(err error) error {
	if errors.Is(err, store.ErrRevoked) {
		return fmt.Errorf("%w: %w", store.ErrConsumed, store.ErrRevoked)
	}
	return err
}

// whyNotRedeemed tells a used code from one that is unknown or has expired.
func whyNotRedeemed(ctx context.Context, q querier, signature string) error {
	var used int64
	if err := q.row(ctx, `SELECT used_at FROM codes WHERE signature = ?`, signature).Scan(&used); err != nil {
		return err
	}
	if used != 0 {
		return store.ErrConsumed
	}
	return errExpired()
}
