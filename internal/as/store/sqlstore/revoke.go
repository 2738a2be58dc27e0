package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// minRevocation is the least time that an entry of the revocation log is valid for, also when no token is left to revoke: streams are
// closed by it.
const minRevocation = time.Second

func errNoTime() error { return fmt.Errorf("%w: revocation: no time", store.ErrInvalid) }

// grantInForce returns store.ErrRevoked for a revoked grant and one of a client that was deleted or disabled.
func grantInForce(ctx context.Context, q querier, id string) error {
	var clientID string
	var revoked int64
	if err := q.row(ctx, `SELECT client_id, revoked_at FROM grants WHERE id = ?`, id).Scan(&clientID, &revoked); err != nil {
		return fmt.Errorf("grant of the token: %w", err)
	}
	if revoked != 0 {
		return store.ErrRevoked
	}
	return clientInForce(ctx, q, clientID)
}

// clientInForce returns store.ErrRevoked for a client that was deleted lately or is disabled. One that never was is in force: commands
// issue tokens under a name that is not registered.
func clientInForce(ctx context.Context, q querier, id string) error {
	const query = `SELECT (SELECT count(*) FROM ended_clients WHERE client_id = ?) +
		(SELECT count(*) FROM clients WHERE id = ? AND disabled <> 0)`
	return inForce(ctx, q, "client", query, id, id)
}

// sessionInForce returns store.ErrRevoked for a login session that ended lately.
func sessionInForce(ctx context.Context, q querier, issuer, sessionID string) error {
	const query = `SELECT count(*) FROM ended_sessions WHERE key_hash = ?`
	return inForce(ctx, q, "session", query, recordKey(issuer, sessionID))
}

// accountInForce returns store.ErrRevoked for a disabled account, and sql.ErrNoRows for an unknown one.
func accountInForce(ctx context.Context, q querier, id string) error {
	return inForce(ctx, q, "account", `SELECT disabled FROM accounts WHERE id = ?`, id)
}

func inForce(ctx context.Context, q querier, what, query string, args ...any) error {
	var dead int64
	if err := q.row(ctx, query, args...).Scan(&dead); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if dead != 0 {
		return fmt.Errorf("%w: %s", store.ErrRevoked, what)
	}
	return nil
}

// revokeGrants marks the grants in force that the condition selects, and returns how many there were.
func revokeGrants(ctx context.Context, q querier, at time.Time, where string, args ...any) (int64, error) {
	query := `UPDATE grants SET revoked_at = ?, sweep_at = ? WHERE ` + where + ` AND revoked_at = 0`
	return q.exec(ctx, query, append([]any{millis(at), millis(at.Add(keepGrants))}, args...)...)
}

// signOutEverywhere ends the browser sessions of an account and revokes all that was issued for it.
func (s *Store) signOutEverywhere(ctx context.Context, q querier, accountID string, at time.Time) (ended int, err error) {
	scan := func(row scanner) (store.BrowserSession, error) {
		var b store.BrowserSession
		err := row.Scan(&b.Issuer, &b.SessionID)
		return b, err
	}
	const forget = `DELETE FROM browser_sessions WHERE account_id = ? RETURNING issuer, session_id`
	sessions, err := list(ctx, q, scan, forget, accountID)
	if err != nil {
		return 0, err
	}
	for _, b := range sessions {
		if _, err := s.noteEnded(ctx, q, b.Issuer, b.SessionID); err != nil {
			return 0, err
		}
	}
	if _, err := revokeGrants(ctx, q, at, `account_id = ?`, accountID); err != nil {
		return 0, err
	}
	return len(sessions), s.logEverywhere(ctx, q, store.RevokeSubject, accountID, at)
}

// noteEnded notes that a login session has ended, so that a request which is under way in it leaves nothing behind. It reports false
// for one that was noted before.
func (s *Store) noteEnded(ctx context.Context, q querier, issuer, sessionID string) (bool, error) {
	const note = `INSERT INTO ended_sessions (key_hash, sweep_at) VALUES (?, ?) ON CONFLICT (key_hash) DO NOTHING`
	n, err := q.exec(ctx, note, recordKey(issuer, sessionID), millis(s.now().Add(keepEnded)))
	return n > 0, err
}

// logEverywhere appends an entry for every issuer that can sign.
func (s *Store) logEverywhere(ctx context.Context, q querier, kind store.RevocationKind, value string, at time.Time) error {
	scan := func(row scanner) (issuer string, err error) { return issuer, row.Scan(&issuer) }
	issuers, err := list(ctx, q, scan, `SELECT issuer FROM key_sets ORDER BY issuer`)
	if err != nil {
		return err
	}
	for _, issuer := range issuers {
		if err := s.logRevocation(ctx, q, kind, issuer, value, at); err != nil {
			return err
		}
	}
	return nil
}

// logRevocation appends the entry of something that was revoked in this transaction. Nothing is issued under it any more, so the entry
// covers every token there is: also one whose time of issue is ahead of the clock that at was read from.
func (s *Store) logRevocation(ctx context.Context, q querier, kind store.RevocationKind, issuer, value string, at time.Time) error {
	r := store.Revocation{Issuer: issuer, Kind: kind, Value: value}
	query := `SELECT coalesce(max(issued_at), 0), coalesce(max(expires_at), 0) FROM issued_tokens WHERE ` + tokenColumn(kind) + ` = ?`
	if kind == store.RevokeClient {
		// A client may have very many tokens. The latest end of all tokens is late enough.
		query = `SELECT coalesce((SELECT max(issued_at) FROM issued_tokens WHERE client_id = ?), 0),
			coalesce((SELECT max(expires_at) FROM issued_tokens), 0)`
	}
	if err := q.row(ctx, query, value).Scan(timeColumn{&r.IssuedBefore}, timeColumn{&r.Until}); err != nil {
		return err
	}
	if r.IssuedBefore.Before(at) {
		r.IssuedBefore = at
	}
	if least := at.Add(minRevocation); r.Until.Before(least) {
		r.Until = least
	}
	_, err := s.appendRevocation(ctx, q, r)
	return err
}

// tokenColumn is the column of issued_tokens that holds what a kind of entry names.
func tokenColumn(kind store.RevocationKind) string {
	switch kind {
	case store.RevokeToken:
		return "id"
	case store.RevokeGrant:
		return "grant_id"
	case store.RevokeSession:
		return "session_id"
	case store.RevokeSubject:
		return "subject"
	default:
		return "client_id"
	}
}
