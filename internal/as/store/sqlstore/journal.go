package sqlstore

import (
	"context"
	"fmt"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

const auditColumns = `at, event, actor, subject, client, issuer, details`

// Revoke implements store.Journal.
func (s *Store) Revoke(ctx context.Context, r store.Revocation) (int64, error) {
	var seq int64
	err := s.write(ctx, "revoke", func(q querier) (err error) {
		seq, err = s.appendRevocation(ctx, q, r)
		return err
	})
	if err != nil {
		return 0, err
	}
	return seq, nil
}

// appendRevocation numbers an entry with the time in milliseconds, or the number after the last one if that is more. Numbers so made stay
// ahead of those that a reader saw before an older copy of the database was put in its place: it would wait for its number otherwise,
// and miss what comes until then.
func (s *Store) appendRevocation(ctx context.Context, q querier, r store.Revocation) (int64, error) {
	if err := r.Validate(); err != nil {
		return 0, err
	}
	const number = `UPDATE meta SET number = CASE WHEN number < ? THEN ? ELSE number + 1 END WHERE name = ? RETURNING number`
	now := millis(s.now())
	var seq int64
	if err := q.row(ctx, number, now, now, metaRevocation).Scan(&seq); err != nil {
		return 0, fmt.Errorf("number revocation: %w", err)
	}
	const query = `INSERT INTO revocations (seq, issuer, kind, value, issued_before, until) VALUES (?, ?, ?, ?, ?, ?)`
	if _, err := q.exec(ctx, query, seq, r.Issuer, string(r.Kind), r.Value, millis(r.IssuedBefore), millis(r.Until)); err != nil {
		return 0, fmt.Errorf("append revocation: %w", err)
	}
	return seq, nil
}

// RevocationsSince implements store.Journal.
func (s *Store) RevocationsSince(ctx context.Context, seq int64, limit int) ([]store.Revocation, error) {
	scan := func(row scanner) (store.Revocation, error) {
		var r store.Revocation
		err := row.Scan(&r.Seq, &r.Issuer, &r.Kind, &r.Value, timeColumn{&r.IssuedBefore}, timeColumn{&r.Until})
		return r, err
	}
	const query = `SELECT seq, issuer, kind, value, issued_before, until FROM revocations WHERE seq > ? ORDER BY seq LIMIT ?`
	var out []store.Revocation
	err := s.read(ctx, "read revocations", func(q querier) (err error) {
		out, err = list(ctx, q, scan, query, seq, max(limit, 0))
		return err
	})
	return out, err
}

// Audit implements store.Journal.
func (s *Store) Audit(ctx context.Context, r store.AuditRecord) error {
	const op = "audit"
	if err := r.Validate(); err != nil {
		return s.wrap(op, err)
	}
	details, err := mapText(r.Details)
	if err != nil {
		return s.wrap(op, err)
	}
	return s.write(ctx, op, func(q querier) error {
		const query = `INSERT INTO audit (` + auditColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?)`
		_, err := q.exec(ctx, query, millis(r.At), r.Event, r.Actor, r.Subject, r.Client, r.Issuer, details)
		return err
	})
}

// ListAudit implements store.Journal.
func (s *Store) ListAudit(ctx context.Context, limit int) ([]store.AuditRecord, error) {
	scan := func(row scanner) (store.AuditRecord, error) {
		var r store.AuditRecord
		err := row.Scan(timeColumn{&r.At}, &r.Event, &r.Actor, &r.Subject, &r.Client, &r.Issuer, jsonColumn[map[string]string]{&r.Details})
		return r, err
	}
	var out []store.AuditRecord
	err := s.read(ctx, "list audit", func(q querier) (err error) {
		out, err = list(ctx, q, scan, `SELECT `+auditColumns+` FROM audit ORDER BY seq DESC LIMIT ?`, max(limit, 0))
		return err
	})
	return out, err
}
