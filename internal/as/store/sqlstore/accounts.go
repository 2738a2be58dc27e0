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
func (s *Store) UpdateAccount(ctx context.Context, a store.Account) error {
	const op = "update account"
	roles, attributes, err := accountTexts(a)
	if err != nil {
		return s.wrap(op, err)
	}
	return s.write(ctx, op, func(q querier) error {
		var revision int64
		var disabled bool
		if err := q.row(ctx, `SELECT revision, disabled FROM accounts WHERE id = ?`, a.ID).Scan(&revision, &disabled); err != nil {
			return err
		}
		if revision != a.Revision {
			return fmt.Errorf("%w: now at revision %d", store.ErrConflict, revision)
		}
		const query = `UPDATE accounts SET username = ?, password_hash = ?, roles = ?, attributes = ?, demo = ?, disabled = ?,
			revision = revision + 1 WHERE id = ?`
		_, err := q.exec(ctx, query, a.Username, a.PasswordHash, roles, attributes, flag(a.Demo), flag(a.Disabled), a.ID)
		if err != nil {
			return err
		}
		if a.Disabled && !disabled {
			if _, err := s.signOutEverywhere(ctx, q, a.ID, s.now()); err != nil {
				return err
			}
		}
		return touch(ctx, q)
	})
}

func accountTexts(a store.Account) (roles, attributes string, err error) {
	if err := a.Validate(); err != nil {
		return "", "", err
	}
	roles, err1 := listText(a.Roles)
	attributes, err2 := mapText(a.Attributes)
	return roles, attributes, errors.Join(err1, err2)
}
