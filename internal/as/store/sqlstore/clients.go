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

const clientColumns = `id, name, auth_method, secret_sealed, jwks, redirect_uris, grant_types, origins, skip_consent, static, broker,
	disabled, created_at`

// scanClient opens the sealed hash of the client's secret.
func (s *Store) scanClient(row scanner) (store.Client, error) {
	var c store.Client
	var sealed []byte
	err := row.Scan(&c.ID, &c.Name, &c.AuthMethod, &sealed, rawColumn{&c.JWKS}, jsonColumn[[]string]{&c.RedirectURIs},
		jsonColumn[[]string]{&c.GrantTypes}, jsonColumn[[]string]{&c.Origins}, &c.SkipConsent, &c.Static, &c.Broker, &c.Disabled,
		timeColumn{&c.CreatedAt})
	if err != nil || len(sealed) == 0 {
		return c, err
	}
	if c.SecretHash, err = s.secrets.Open(sealed, c.ID); err != nil {
		return c, fmt.Errorf("secret of client %q: %w", c.ID, err)
	}
	return c, nil
}

// clientValues are the values of clientColumns, with secret for secret_sealed.
func clientValues(c store.Client, secret []byte) ([]any, error) {
	redirects, err1 := listText(c.RedirectURIs)
	grants, err2 := listText(c.GrantTypes)
	origins, err3 := listText(c.Origins)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	var sealed any // NULL without one
	if len(secret) > 0 {
		sealed = secret
	}
	return []any{
		c.ID, c.Name, c.AuthMethod, sealed, string(c.JWKS), redirects, grants, origins, flag(c.SkipConsent), flag(c.Static), flag(c.Broker),
		flag(c.Disabled), millis(c.CreatedAt),
	}, nil
}

// sameClient compares clients by their values, with secrets that are not sealed: sealing one value twice gives two different ones.
func sameClient(a, b store.Client) (bool, error) {
	values, err1 := clientValues(a, a.SecretHash)
	others, err2 := clientValues(b, b.SecretHash)
	if err := errors.Join(err1, err2); err != nil {
		return false, err
	}
	return equalValues(values, others), nil
}

// Client implements store.Clients.
func (s *Store) Client(ctx context.Context, id string) (store.Client, error) {
	var c store.Client
	err := s.read(ctx, "read client", func(q querier) (err error) {
		c, err = s.readClient(ctx, q, id)
		return err
	})
	return c, err
}

func (s *Store) readClient(ctx context.Context, q querier, id string) (store.Client, error) {
	return s.scanClient(q.row(ctx, `SELECT `+clientColumns+` FROM clients WHERE id = ?`, id))
}

// ListClients implements store.Clients.
func (s *Store) ListClients(ctx context.Context) ([]store.Client, error) {
	var out []store.Client
	err := s.read(ctx, "list clients", func(q querier) (err error) {
		out, err = list(ctx, q, s.scanClient, `SELECT `+clientColumns+` FROM clients ORDER BY id`)
		return err
	})
	return out, err
}

// PutClient implements store.Clients.
func (s *Store) PutClient(ctx context.Context, c store.Client) error {
	const op = "put client"
	if err := c.Validate(); err != nil {
		return s.wrap(op, err)
	}
	for done := false; !done; {
		err := s.write(ctx, op, func(q querier) (err error) {
			if done, err = s.revive(ctx, q, c); err != nil || !done {
				return err
			}
			return s.putClient(ctx, q, c)
		})
		if err != nil {
			return err
		}
	}
	if c.Disabled {
		s.finishClient(ctx, c.ID)
	}
	return nil
}

// putClient writes nothing when the client is stored as it is: a server that puts its static clients after each change it sees must
// not see a change of its own making.
func (s *Store) putClient(ctx context.Context, q querier, c store.Client) error {
	old, err := s.readClient(ctx, q, c.ID)
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
	if known {
		if same, err := sameClient(c, old); err != nil || same {
			return err
		}
	}
	if err := s.writeClient(ctx, q, c); err != nil {
		return err
	}
	if known && c.Disabled && !old.Disabled {
		if err := s.endClient(ctx, q, c.ID, s.now()); err != nil {
			return err
		}
	}
	return touch(ctx, q)
}

// writeClient seals the secret and stores the client.
func (s *Store) writeClient(ctx context.Context, q querier, c store.Client) error {
	var sealed []byte
	if len(c.SecretHash) > 0 {
		sealed = s.secrets.Seal(c.SecretHash, c.ID)
	}
	values, err := clientValues(c, sealed)
	if err != nil {
		return err
	}
	const query = `INSERT INTO clients (` + clientColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET name = excluded.name, auth_method = excluded.auth_method, secret_sealed = excluded.secret_sealed,
		jwks = excluded.jwks, redirect_uris = excluded.redirect_uris, grant_types = excluded.grant_types, origins = excluded.origins,
		skip_consent = excluded.skip_consent, static = excluded.static, broker = excluded.broker, disabled = excluded.disabled,
		created_at = excluded.created_at`
	_, err = q.exec(ctx, query, values...)
	return err
}

// DeleteClient implements store.Clients. The client's grants are revoked so that a client made later with the same id does not
// inherit them.
func (s *Store) DeleteClient(ctx context.Context, id string, at time.Time) error {
	const op = "delete client"
	if at.IsZero() {
		return s.wrap(op, errNoTime())
	}
	err := s.write(ctx, op, func(q querier) error {
		n, err := q.exec(ctx, `DELETE FROM clients WHERE id = ?`, id)
		if err := oneRow(n, err); err != nil {
			return err
		}
		if err := s.endClient(ctx, q, id, at); err != nil {
			return err
		}
		return touch(ctx, q)
	})
	if err == nil {
		s.finishClient(ctx, id)
	}
	return err
}

// UseAssertion implements store.Clients. What was recorded counts as used until it is swept, however late that is.
func (s *Store) UseAssertion(ctx context.Context, clientID, jti string, until time.Time) error {
	const op = "use assertion"
	if clientID == "" || jti == "" || until.IsZero() {
		return s.wrap(op, fmt.Errorf("%w: assertion: no client id, jti or time", store.ErrInvalid))
	}
	return s.write(ctx, op, func(q querier) error {
		const query = `INSERT INTO assertions (key_hash, expires_at) VALUES (?, ?) ON CONFLICT (key_hash) DO NOTHING`
		n, err := q.exec(ctx, query, recordKey(clientID, jti), millis(until))
		if err != nil {
			return err
		}
		if n == 0 {
			return store.ErrConsumed
		}
		return nil
	})
}

// recordKey is the same for the same parts only, and short however long the parts are.
func recordKey(parts ...string) []byte {
	var data []byte
	for i, part := range parts {
		if i < len(parts)-1 {
			data = binary.BigEndian.AppendUint64(data, uint64(len(part)))
		}
		data = append(data, part...)
	}
	sum := sha256.Sum256(data)
	return sum[:]
}
