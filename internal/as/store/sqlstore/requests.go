package sqlstore

import (
	"context"
	"fmt"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

const (
	interactionColumns = `id_hash, binding_hash, issuer, client_id, pushed_hash, request, account_id, session_id, auth_time, consented_at,
		created_at, expires_at`
	pushedColumns = `id_hash, issuer, client_id, request, binding_hash, created_at, expires_at`
)

// CreateInteraction implements store.Requests.
func (s *Store) CreateInteraction(ctx context.Context, i store.Interaction) error {
	const op = "create interaction"
	if err := i.Validate(); err != nil {
		return s.wrap(op, err)
	}
	return s.write(ctx, op, func(q querier) error {
		const query = `INSERT INTO interactions (` + interactionColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
		_, err := q.exec(ctx, query, i.IDHash, i.BindingHash, i.Issuer, i.ClientID, i.PushedHash, string(i.Request), i.AccountID, i.SessionID,
			millis(i.AuthTime), millis(i.ConsentedAt), millis(i.CreatedAt), millis(i.ExpiresAt))
		return err
	})
}

// Interaction implements store.Requests.
func (s *Store) Interaction(ctx context.Context, idHash string) (store.Interaction, error) {
	var i store.Interaction
	err := s.read(ctx, "read interaction", func(q querier) error {
		const query = `SELECT ` + interactionColumns + ` FROM interactions WHERE id_hash = ? AND expires_at > ?`
		return q.row(ctx, query, idHash, millis(s.now())).Scan(&i.IDHash, &i.BindingHash, &i.Issuer, &i.ClientID,
			&i.PushedHash, rawColumn{&i.Request}, &i.AccountID, &i.SessionID, timeColumn{&i.AuthTime}, timeColumn{&i.ConsentedAt},
			timeColumn{&i.CreatedAt}, timeColumn{&i.ExpiresAt})
	})
	return i, err
}

// UpdateInteraction implements store.Requests.
func (s *Store) UpdateInteraction(ctx context.Context, i store.Interaction) error {
	return s.write(ctx, "update interaction", func(q querier) error {
		const query = `UPDATE interactions SET request = ?, account_id = ?, session_id = ?, auth_time = ?, consented_at = ?
			WHERE id_hash = ? AND expires_at > ?`
		n, err := q.exec(ctx, query, string(i.Request), i.AccountID, i.SessionID, millis(i.AuthTime), millis(i.ConsentedAt), i.IDHash,
			millis(s.now()))
		return oneRow(n, err)
	})
}

// FinishInteraction implements store.Requests.
func (s *Store) FinishInteraction(ctx context.Context, idHash string) error {
	return s.write(ctx, "finish interaction", func(q querier) error {
		const query = `DELETE FROM interactions WHERE id_hash = ? AND expires_at > ? RETURNING pushed_hash`
		var pushed string
		if err := q.row(ctx, query, idHash, millis(s.now())).Scan(&pushed); err != nil {
			return err
		}
		if pushed == "" {
			return nil
		}
		return usePushedRequest(ctx, q, pushed)
	})
}

// CreatePushedRequest implements store.Requests.
func (s *Store) CreatePushedRequest(ctx context.Context, p store.PushedRequest) error {
	const op = "create pushed request"
	if err := p.Validate(); err != nil {
		return s.wrap(op, err)
	}
	return s.write(ctx, op, func(q querier) error {
		const query = `INSERT INTO pushed_requests (` + pushedColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?)`
		_, err := q.exec(ctx, query, p.IDHash, p.Issuer, p.ClientID, string(p.Request), p.BindingHash, millis(p.CreatedAt),
			millis(p.ExpiresAt))
		return err
	})
}

// PushedRequest implements store.Requests.
func (s *Store) PushedRequest(ctx context.Context, idHash string) (store.PushedRequest, error) {
	var p store.PushedRequest
	err := s.read(ctx, "read pushed request", func(q querier) error {
		const query = `SELECT ` + pushedColumns + ` FROM pushed_requests WHERE id_hash = ? AND expires_at > ?`
		return q.row(ctx, query, idHash, millis(s.now())).Scan(&p.IDHash, &p.Issuer, &p.ClientID, rawColumn{&p.Request},
			&p.BindingHash, timeColumn{&p.CreatedAt}, timeColumn{&p.ExpiresAt})
	})
	return p, err
}

// BindPushedRequest implements store.Requests.
func (s *Store) BindPushedRequest(ctx context.Context, idHash, bindingHash string) error {
	const op = "bind pushed request"
	if bindingHash == "" {
		return s.wrap(op, fmt.Errorf("%w: pushed request: no binding", store.ErrInvalid))
	}
	return s.write(ctx, op, func(q querier) error {
		const read = `SELECT binding_hash FROM pushed_requests WHERE id_hash = ? AND expires_at > ?`
		var bound string
		if err := q.row(ctx, read, idHash, millis(s.now())).Scan(&bound); err != nil {
			return err
		}
		switch bound {
		case bindingHash:
			return nil
		case "":
			_, err := q.exec(ctx, `UPDATE pushed_requests SET binding_hash = ? WHERE id_hash = ?`, bindingHash, idHash)
			return err
		default:
			return fmt.Errorf("%w: in another browser", store.ErrConsumed)
		}
	})
}

// UsePushedRequest implements store.Requests.
func (s *Store) UsePushedRequest(ctx context.Context, idHash string) error {
	return s.write(ctx, "use pushed request", func(q querier) error { return usePushedRequest(ctx, q, idHash) })
}

func usePushedRequest(ctx context.Context, q querier, idHash string) error {
	n, err := q.exec(ctx, `DELETE FROM pushed_requests WHERE id_hash = ?`, idHash)
	if err == nil && n == 0 {
		return fmt.Errorf("%w: pushed request", store.ErrConsumed)
	}
	return err
}

// oneRow turns "no row changed" into store.ErrNotFound.
func oneRow(n int64, err error) error {
	if err == nil && n == 0 {
		return store.ErrNotFound
	}
	return err
}
