package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

const sessionColumns = `id_hash, session_id, account_id, issuer, auth_time, expires_at`

// CreateBrowserSession implements store.Logins.
func (s *Store) CreateBrowserSession(ctx context.Context, b store.BrowserSession) error {
	const op = "create browser session"
	if err := b.Validate(); err != nil {
		return s.wrap(op, err)
	}
	return s.write(ctx, op, func(q querier) error {
		if err := accountInForce(ctx, q, b.AccountID); err != nil {
			return err
		}
		if err := sessionInForce(ctx, q, b.Issuer, b.SessionID); err != nil {
			return err
		}
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
func (s *Store) DeleteBrowserSession(ctx context.Context, idHash string) error {
	return s.write(ctx, "delete browser session", func(q querier) error {
		_, err := q.exec(ctx, `DELETE FROM browser_sessions WHERE id_hash = ?`, idHash)
		return err
	})
}

// EndSession implements store.Logins.
func (s *Store) EndSession(ctx context.Context, issuer, sessionID string, at time.Time) (ended bool, err error) {
	const op = "end session"
	if issuer == "" || sessionID == "" || at.IsZero() {
		return false, s.wrap(op, fmt.Errorf("%w: session: no issuer, session id or time", store.ErrInvalid))
	}
	err = s.write(ctx, op, func(q querier) (err error) {
		ended, err = s.noteEnded(ctx, q, issuer, sessionID)
		if err != nil || !ended {
			return err
		}
		const forget = `DELETE FROM browser_sessions WHERE session_id = ? AND issuer = ?`
		if _, err := q.exec(ctx, forget, sessionID, issuer); err != nil {
			return err
		}
		if _, err := revokeGrants(ctx, q, at, `session_id = ? AND issuer = ?`, sessionID, issuer); err != nil {
			return err
		}
		return s.logRevocation(ctx, q, store.RevokeSession, issuer, sessionID, at)
	})
	return ended, err
}

// EndBrowserSessions implements store.Logins.
func (s *Store) EndBrowserSessions(ctx context.Context, accountID string) (ended int, err error) {
	err = s.write(ctx, "end browser sessions", func(q querier) (err error) {
		ended, err = s.signOutEverywhere(ctx, q, accountID, s.now())
		return err
	})
	return ended, err
}
