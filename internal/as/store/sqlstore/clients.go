package sqlstore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

const clientColumns = `id, name, auth_method, secret_hash, jwks, redirect_uris, grant_types, origins, skip_consent, static, disabled, created_at`

func scanClient(row scanner) (store.Client, error) {
	var c store.Client
	err := row.Scan(&c.ID, &c.Name, &c.AuthMethod, &c.SecretHash, rawColumn{&c.JWKS}, jsonColumn[[]string]{&c.RedirectURIs},
		jsonColumn[[]string]{&c.GrantTypes}, jsonColumn[[]string]{&c.Origins}, &c.SkipConsent, &c.Static, &c.Disabled,
		timeColumn{&c.CreatedAt})
	return c, err
}

// clientValues are the values of clientColumns.
func clientValues(c store.Client) ([]any, error) {
	redirects, err1 := listText(c.RedirectURIs)
	grants, err2 := listText(c.GrantTypes)
	origins, err3 := listText(c.Origins)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	var secret any // NULL without one
	if len(c.SecretHash) > 0 {
		secret = c.SecretHash
	}
	return []any{
		c.ID, c.Name, c.AuthMethod, secret, string(c.JWKS), redirects, grants, origins, flag(c.SkipConsent), flag(c.Static),
		flag(c.Disabled), millis(c.CreatedAt),
	}, nil
}

// Client implements store.Clients.
func (s *Store) Client(ctx context.Context, id string) (store.Client, error) {
	var c store.Client
	err := s.read(ctx, "read client", func(q querier) (err error) {
		c, err = readClient(ctx, q, id)
		return err
	})
	return c, err
}

func readClient(ctx context.Context, q querier, id string) (store.Client, error) {
	return scanClient(q.row(ctx, `SELECT `+clientColumns+` FROM clients WHERE id = ?`, id))
}

// ListClients implements store.Clients.
func (s *Store) ListClients(ctx context.Context) ([]store.Client, error) {
	var out []store.Client
	err := s.read(ctx, "list clients", func(q querier) (err error) {
		out, err = list(ctx, q, scanClient, `SELECT `+clientColumns+` FROM clients ORDER BY id`)
		return err
	})
	return out, err
}

// PutClient implements store.Clients.
func (s *Store) PutClient(ctx context.Context, c store.Client, revoke ...store.Revocation) error {
	const op = "put client"
	if err := c.Validate(); err != nil {
		return s.wrap(op, err)
	}
	return s.write(ctx, op, func(q querier) error {
		if err := s.putClient(ctx, q, c); err != nil {
			return err
		}
		return appendRevocations(ctx, q, revoke)
	})
}

// putClient writes nothing when the client is stored as it is: a server that puts its static clients after each change it sees must
// not see a change of its own making.
func (s *Store) putClient(ctx context.Context, q querier, c store.Client) error {
	old, err := readClient(ctx, q, c.ID)
	known := err == nil
	if err != nil && !isNoRows(err) {
		return err
	}
	if c.CreatedAt.IsZero() {
		c.CreatedAt = s.now()
		if known {
			c.CreatedAt = old.CreatedAt
		}
	}
	values, err := clientValues(c)
	if err != nil {
		return err
	}
	if known {
		oldValues, err := clientValues(old)
		if err != nil {
			return err
		}
		if equalValues(values, oldValues) {
			return nil
		}
	}
	const query = `INSERT INTO clients (` + clientColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET name = excluded.name, auth_method = excluded.auth_method, secret_hash = excluded.secret_hash,
		jwks = excluded.jwks, redirect_uris = excluded.redirect_uris, grant_types = excluded.grant_types, origins = excluded.origins,
		skip_consent = excluded.skip_consent, static = excluded.static, disabled = excluded.disabled, created_at = excluded.created_at`
	if _, err := q.exec(ctx, query, values...); err != nil {
		return err
	}
	return touch(ctx, q)
}

// DeleteClient implements store.Clients. The client's grants are revoked so that a client made later with the same id does not
// inherit them.
func (s *Store) DeleteClient(ctx context.Context, id string, revoke ...store.Revocation) error {
	return s.write(ctx, "delete client", func(q querier) error {
		n, err := q.exec(ctx, `DELETE FROM clients WHERE id = ?`, id)
		if err != nil {
			return err
		}
		if n == 0 {
			return store.ErrNotFound
		}
		const query = `UPDATE grants SET revoked_at = ? WHERE client_id = ? AND revoked_at = 0`
		if _, err := q.exec(ctx, query, millis(s.now()), id); err != nil {
			return err
		}
		if err := appendRevocations(ctx, q, revoke); err != nil {
			return err
		}
		return touch(ctx, q)
	})
}

// UseAssertion implements store.Clients. What was recorded counts as used until it is swept, however late that is.
func (s *Store) UseAssertion(ctx context.Context, clientID, jti string, until time.Time) error {
	const op = "use assertion"
	if clientID == "" || jti == "" || until.IsZero() {
		return s.wrap(op, fmt.Errorf("%w: assertion: no client id, jti or time", store.ErrInvalid))
	}
	return s.write(ctx, op, func(q querier) error {
		const query = `INSERT INTO assertions (key_hash, expires_at) VALUES (?, ?) ON CONFLICT (key_hash) DO NOTHING`
		n, err := q.exec(ctx, query, assertionKey(clientID, jti), millis(until))
		if err != nil {
			return err
		}
		if n == 0 {
			return store.ErrConsumed
		}
		return nil
	})
}

// assertionKey is the same for the same pair only, and short however long a jti the client made up.
func assertionKey(clientID, jti string) []byte {
	data := binary.BigEndian.AppendUint64(nil, uint64(len(clientID)))
	data = append(data, clientID...)
	data = append(data, jti...)
	sum := sha256.Sum256(data)
	return sum[:]
}
