package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

const accountColumns = `id, username, password_hash, roles, attributes, demo, disabled, created_at, revision`

func scanAccount(row scanner) (store.Account, error) {
	var a store.Account
	err := row.Scan(&a.ID, &a.Username, &a.PasswordHash, jsonColumn[[]string]{&a.Roles}, jsonColumn[map[string]string]{&a.Attributes},
		&a.Demo, &a.Disabled, timeColumn{&a.CreatedAt}, &a.Revision)
	return a, err
}

// Account implements store.Accounts.
func (s *Store) Account(ctx context.Context, id string) (store.Account, error) {
	return s.account(ctx, `SELECT `+accountColumns+` FROM accounts WHERE id = ?`, id)
}

// AccountByUsername implements store.Accounts.
func (s *Store) AccountByUsername(ctx context.Context, username string) (store.Account, error) {
	return s.account(ctx, `SELECT `+accountColumns+` FROM accounts WHERE username = ?`, username)
}

func (s *Store) account(ctx context.Context, query, key string) (store.Account, error) {
	var a store.Account
	err := s.read(ctx, "read account", func(q querier) (err error) {
		a, err = scanAccount(q.row(ctx, query, key))
		return err
	})
	return a, err
}

// ListAccounts implements store.Accounts.
func (s *Store) ListAccounts(ctx context.Context) ([]store.Account, error) {
	var out []store.Account
	err := s.read(ctx, "list accounts", func(q querier) (err error) {
		out, err = list(ctx, q, scanAccount, `SELECT `+accountColumns+` FROM accounts ORDER BY username`)
		return err
	})
	return out, err
}

// CreateAccount implements store.Accounts.
func (s *Store) CreateAccount(ctx context.Context, a store.Account) error {
	const op = "create account"
	roles, attributes, err := accountTexts(a)
	if err != nil {
		return s.wrap(op, err)
	}
	if a.CreatedAt.IsZero() {
		a.CreatedAt = s.now()
	}
	return s.write(ctx, op, func(q querier) error {
		const query = `INSERT INTO accounts (` + accountColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1)`
		_, err := q.exec(ctx, query, a.ID, a.Username, a.PasswordHash, roles, attributes, flag(a.Demo), flag(a.Disabled),
			millis(a.CreatedAt))
		if err != nil {
			return err
		}
		return touch(ctx, q)
	})
}

// UpdateAccount implements store.Accounts.
func (s *Store) UpdateAccount(ctx context.Context, a store.Account, revoke ...store.Revocation) error {
	const op = "update account"
	roles, attributes, err := accountTexts(a)
	if err != nil {
		return s.wrap(op, err)
	}
	return s.write(ctx, op, func(q querier) error {
		const query = `UPDATE accounts SET username = ?, password_hash = ?, roles = ?, attributes = ?, demo = ?, disabled = ?,
			revision = revision + 1 WHERE id = ? AND revision = ?`
		n, err := q.exec(ctx, query, a.Username, a.PasswordHash, roles, attributes, flag(a.Demo), flag(a.Disabled), a.ID, a.Revision)
		if err != nil {
			return err
		}
		if n == 0 {
			return whyNotUpdated(ctx, q, a.ID)
		}
		if a.Disabled {
			if _, err := endSessions(ctx, q, a.ID); err != nil {
				return err
			}
		}
		if err := appendRevocations(ctx, q, revoke); err != nil {
			return err
		}
		return touch(ctx, q)
	})
}

// whyNotUpdated tells a changed account from a missing one.
func whyNotUpdated(ctx context.Context, q querier, id string) error {
	var revision int64
	if err := q.row(ctx, `SELECT revision FROM accounts WHERE id = ?`, id).Scan(&revision); err != nil {
		return err
	}
	return fmt.Errorf("%w: now at revision %d", store.ErrConflict, revision)
}

func accountTexts(a store.Account) (roles, attributes string, err error) {
	if err := a.Validate(); err != nil {
		return "", "", err
	}
	roles, err1 := listText(a.Roles)
	attributes, err2 := mapText(a.Attributes)
	return roles, attributes, errors.Join(err1, err2)
}
