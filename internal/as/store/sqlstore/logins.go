package sqlstore

import (
	"context"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

const (
	sessionColumns     = `id_hash, session_id, account_id, issuer, auth_time, expires_at`
	interactionColumns = `id_hash, binding_hash, issuer, client_id, request, account_id, session_id, auth_time, consented_at, created_at, expires_at`
)

// CreateBrowserSession implements store.Logins.
func (s *Store) CreateBrowserSession(ctx context.Context, b store.BrowserSession) error {
	const op = "create browser session"
	if err := b.Validate(); err != nil {
		return s.wrap(op, err)
	}
	return s.write(ctx, op, func(q querier) error {
		const query = `INSERT INTO browser_sessions (` + sessionColumns + `) VALUES (?, ?, ?, ?, ?, ?)`
		_, err := q.exec(ctx, query, b.IDHash, b.SessionID, b.AccountID, b.Issuer, millis(b.AuthTime), millis(b.ExpiresAt))
		return err
	})
}

// BrowserSession implements store.Logins.
func (s *Store) BrowserSession(ctx context.Context, idHash string) (store.BrowserSession, error) {
	var b store.BrowserSession
	err := s.read(ctx, "read browser session", func(q querier) error {
		const query = `SELECT ` + sessionColumns + ` FROM browser_sessions WHERE id_hash = ? AND expires_at > ?`
		return q.row(ctx, query, idHash, millis(s.now())).Scan(&b.IDHash, &b.SessionID, &b.AccountID, &b.Issuer,
			timeColumn{&b.AuthTime}, timeColumn{&b.ExpiresAt})
	})
	return b, err
}

// DeleteBrowserSession implements store.Logins.
func (s *Store) DeleteBrowserSession(ctx context.Context, idHash string, revoke ...store.Revocation) error {
	return s.write(ctx, "delete browser session", func(q querier) error {
		if _, err := q.exec(ctx, `DELETE FROM browser_sessions WHERE id_hash = ?`, idHash); err != nil {
			return err
		}
		return appendRevocations(ctx, q, revoke)
	})
}

// EndBrowserSessions implements store.Logins.
func (s *Store) EndBrowserSessions(ctx context.Context, accountID string, revoke ...store.Revocation) (int, error) {
	var ended int64
	err := s.write(ctx, "end browser sessions", func(q querier) (err error) {
		if ended, err = endSessions(ctx, q, accountID); err != nil {
			return err
		}
		return appendRevocations(ctx, q, revoke)
	})
	return int(ended), err
}

func endSessions(ctx context.Context, q querier, accountID string) (int64, error) {
	return q.exec(ctx, `DELETE FROM browser_sessions WHERE account_id = ?`, accountID)
}

// CreateInteraction implements store.Logins.
func (s *Store) CreateInteraction(ctx context.Context, i store.Interaction) error {
	const op = "create interaction"
	if err := i.Validate(); err != nil {
		return s.wrap(op, err)
	}
	return s.write(ctx, op, func(q querier) error {
		const query = `INSERT INTO interactions (` + interactionColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
		_, err := q.exec(ctx, query, i.IDHash, i.BindingHash, i.Issuer, i.ClientID, string(i.Request), i.AccountID, i.SessionID,
			millis(i.AuthTime), millis(i.ConsentedAt), millis(i.CreatedAt), millis(i.ExpiresAt))
		return err
	})
}

// Interaction implements store.Logins.
func (s *Store) Interaction(ctx context.Context, idHash string) (store.Interaction, error) {
	var i store.Interaction
	err := s.read(ctx, "read interaction", func(q querier) error {
		const query = `SELECT ` + interactionColumns + ` FROM interactions WHERE id_hash = ? AND expires_at > ?`
		return q.row(ctx, query, idHash, millis(s.now())).Scan(&i.IDHash, &i.BindingHash, &i.Issuer, &i.ClientID,
			rawColumn{&i.Request}, &i.AccountID, &i.SessionID, timeColumn{&i.AuthTime}, timeColumn{&i.ConsentedAt},
			timeColumn{&i.CreatedAt}, timeColumn{&i.ExpiresAt})
	})
	return i, err
}

// UpdateInteraction implements store.Logins.
func (s *Store) UpdateInteraction(ctx context.Context, i store.Interaction) error {
	return s.write(ctx, "update interaction", func(q querier) error {
		const query = `UPDATE interactions SET request = ?, account_id = ?, session_id = ?, auth_time = ?, consented_at = ?
			WHERE id_hash = ? AND expires_at > ?`
		n, err := q.exec(ctx, query, string(i.Request), i.AccountID, i.SessionID, millis(i.AuthTime), millis(i.ConsentedAt), i.IDHash,
			millis(s.now()))
		return oneRow(n, err)
	})
}

// FinishInteraction implements store.Logins.
func (s *Store) FinishInteraction(ctx context.Context, idHash string) error {
	return s.write(ctx, "finish interaction", func(q querier) error {
		n, err := q.exec(ctx, `DELETE FROM interactions WHERE id_hash = ? AND expires_at > ?`, idHash, millis(s.now()))
		return oneRow(n, err)
	})
}

// oneRow turns "no row changed" into store.ErrNotFound.
func oneRow(n int64, err error) error {
	if err == nil && n == 0 {
		return store.ErrNotFound
	}
	return err
}
