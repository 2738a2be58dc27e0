package sqlstore

import (
	"context"
	"strings"
	"time"
)

// How long records are kept after their end.
const (
	keepCodes      = time.Hour // at least store.MinCodeRetention
	keepAssertions = 10 * time.Minute
	keepTokens     = time.Hour
	keepRevoked    = time.Hour // a hub with a slow clock must still find the entry
	keepGrants     = 24 * time.Hour
)

// sweepBatch bounds how long one transaction of Sweep holds the write lock.
const sweepBatch = 500

// sweepRule deletes the rows of a table that ended at or before a cutoff, which is the value of every placeholder of where.
type sweepRule struct {
	table, key, where string
	keep              time.Duration
}

// sweepRules are in an order that removes what refers to a row before the row.
func (s *Store) sweepRules() []sweepRule {
	rules := []sweepRule{
		{table: "interactions", key: "id_hash", where: `expires_at <= ?`},
		{table: "browser_sessions", key: "id_hash", where: `expires_at <= ?`},
		{table: "assertions", key: "key_hash", where: `expires_at <= ?`, keep: keepAssertions},
		{table: "codes", key: "signature", where: `expires_at <= ? AND used_at <= ?`, keep: keepCodes},
		{table: "issued_tokens", key: "id", where: `expires_at <= ?`, keep: keepTokens},
		{table: "grants", key: "id", keep: keepGrants, where: `((expires_at <> 0 AND expires_at <= ?) OR (revoked_at <> 0 AND revoked_at <= ?))
			AND NOT EXISTS (SELECT 1 FROM codes WHERE grant_id = grants.id)
			AND NOT EXISTS (SELECT 1 FROM issued_tokens WHERE grant_id = grants.id)`},
		{table: "revocations", key: "seq", where: `until <= ?`, keep: keepRevoked},
	}
	if s.options.AuditRetention > 0 {
		rules = append(rules, sweepRule{table: "audit", key: "seq", where: `at <= ?`, keep: s.options.AuditRetention})
	}
	return rules
}

// Sweep implements store.Journal.
func (s *Store) Sweep(ctx context.Context, now time.Time, limit int) (int, error) {
	deleted := 0
	for _, rule := range s.sweepRules() {
		for deleted < limit {
			batch := min(sweepBatch, limit-deleted)
			n, err := s.sweepTable(ctx, rule, now, batch)
			deleted += n
			if err != nil {
				return deleted, err
			}
			if n < batch {
				break
			}
		}
	}
	return deleted, nil
}

func (s *Store) sweepTable(ctx context.Context, r sweepRule, now time.Time, batch int) (int, error) {
	// The names come from sweepRules, never from outside.
	query := `DELETE FROM ` + r.table + ` WHERE ` + r.key + ` IN (SELECT ` + r.key + ` FROM ` + r.table + ` WHERE ` + r.where + ` LIMIT ?)`
	var args []any
	for range strings.Count(r.where, "?") {
		args = append(args, millis(now.Add(-r.keep)))
	}
	args = append(args, batch)
	var n int64
	err := s.write(ctx, "sweep "+r.table, func(q querier) (err error) {
		n, err = q.exec(ctx, query, args...)
		return err
	})
	return int(n), err
}
