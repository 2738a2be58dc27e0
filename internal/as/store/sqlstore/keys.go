package sqlstore

import (
	"context"
	"fmt"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

const keyColumns = `id, issuer, algorithm, actions, state, private_sealed, created_at, activates_at, retires_at, expires_at`

// scanKey leaves the private part sealed.
func scanKey(row scanner) (store.Key, error) {
	var k store.Key
	err := row.Scan(&k.ID, &k.Issuer, &k.Algorithm, &k.Actions, &k.State, &k.Private, timeColumn{&k.CreatedAt},
		timeColumn{&k.ActivatesAt}, timeColumn{&k.RetiresAt}, timeColumn{&k.ExpiresAt})
	return k, err
}

// LoadKeys implements store.Keys.
func (s *Store) LoadKeys(ctx context.Context, issuer string) ([]store.Key, int64, error) {
	const op = "load keys"
	var keys []store.Key
	var version int64
	err := s.snapshot(ctx, op, func(q querier) (err error) {
		if version, err = keyVersion(ctx, q, issuer); err != nil {
			return err
		}
		keys, err = list(ctx, q, scanKey, `SELECT `+keyColumns+` FROM signing_keys WHERE issuer = ? ORDER BY id`, issuer)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	for i := range keys {
		plain, err := s.keys.Open(keys[i].Private, issuer, keys[i].ID)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: key %s: %w", op, keys[i].ID, err)
		}
		keys[i].Private = plain
	}
	return keys, version, nil
}

// keyVersion is 0 for an issuer without keys.
func keyVersion(ctx context.Context, q querier, issuer string) (int64, error) {
	var version int64
	err := q.row(ctx, `SELECT version FROM key_sets WHERE issuer = ?`, issuer).Scan(&version)
	if isNoRows(err) {
		return 0, nil
	}
	return version, err
}

// SaveKeys implements store.Keys.
func (s *Store) SaveKeys(ctx context.Context, issuer string, version int64, keys []store.Key) error {
	const op = "save keys"
	sealed, err := s.sealKeys(issuer, keys)
	if err != nil {
		return s.wrap(op, err)
	}
	return s.write(ctx, op, func(q querier) error {
		stored, err := keyVersion(ctx, q, issuer)
		if err != nil {
			return err
		}
		if stored != version {
			return fmt.Errorf("%w: keys are now at version %d", store.ErrConflict, stored)
		}
		const set = `INSERT INTO key_sets (issuer, version) VALUES (?, ?) ON CONFLICT (issuer) DO UPDATE SET version = excluded.version`
		if _, err := q.exec(ctx, set, issuer, version+1); err != nil {
			return err
		}
		if _, err := q.exec(ctx, `DELETE FROM signing_keys WHERE issuer = ?`, issuer); err != nil {
			return err
		}
		const insert = `INSERT INTO signing_keys (` + keyColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
		for i, k := range keys {
			_, err := q.exec(ctx, insert, k.ID, k.Issuer, k.Algorithm, k.Actions, k.State, sealed[i], millis(k.CreatedAt),
				millis(k.ActivatesAt), millis(k.RetiresAt), millis(k.ExpiresAt))
			if err != nil {
				return err
			}
		}
		return touch(ctx, q)
	})
}

// sealKeys seals the private parts, bound to issuer and key id.
func (s *Store) sealKeys(issuer string, keys []store.Key) ([][]byte, error) {
	if issuer == "" {
		return nil, fmt.Errorf("%w: keys: no issuer", store.ErrInvalid)
	}
	sealed := make([][]byte, len(keys))
	for i, k := range keys {
		if err := k.Validate(); err != nil {
			return nil, err
		}
		if k.Issuer != issuer {
			return nil, fmt.Errorf("%w: key: of another issuer", store.ErrInvalid)
		}
		sealed[i] = s.keys.Seal(k.Private, issuer, k.ID)
	}
	return sealed, nil
}
