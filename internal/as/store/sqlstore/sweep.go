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
	keepRevoked    = time.Hour      // a hub with a slow clock must still find the entry
	keepRefresh    = 24 * time.Hour // beyond its idle time: a rotated one that comes again is told apart from a guess
	keepEnded      = 24 * time.Hour // longer than any request is under way
	keepGrants     = 24 * time.Hour
)

// sweepBatch bounds how long one transaction of Sweep holds the write lock.
const sweepBatch = 500

// postponeGrants is after which time a grant is looked at again that was in use when it should have gone.
const postponeGrants = 24 * time.Hour

// grantInUse selects grants that others refer to.
const grantInUse = `EXISTS (SELECT 1 FROM codes WHERE grant_id = grants.id)
	OR EXISTS (SELECT 1 FROM issued_tokens WHERE grant_id = grants.id)
	OR EXISTS (SELECT 1 FROM refresh_tokens WHERE grant_id = grants.id)`

// grantSweep is when a grant that ends by itself is swept; 0 for one that does not.
func grantSweep(expiresAt time.Time) int64 {
	if expiresAt.IsZero() {
		return 0
	}
	return millis(expiresAt.Add(keepGrants))
}

// sweepRule deletes the rows of a table that ended at or before a cutoff, which is the value of every placeholder of where.
type sweepRule struct {
	table, key, where string
	keep              time.Duration
}

// sweepRules are in an order that removes what refers to a row before the row.
func (s *Store) sweepRules() []sweepRule {
	rules := []sweepRule{
		{table: "interactions", key: "id_hash", where: `expires_at <= ?`},
		{table: "pushed_requests", key: "id_hash", where: `expires_at <= ?
			AND NOT EXISTS (SELECT 1 FROM interactions WHERE pushed_hash = pushed_requests.id_hash)`},
		{table: "browser_sessions", key: "id_hash", where: `expires_at <= ?`},
		{table: "ended_sessions", key: "key_hash", where: `sweep_at <= ?`},
		{table: "ended_clients", key: "client_id", where: `sweep_at <= ?
			AND NOT EXISTS (SELECT 1 FROM grants WHERE client_id = ended_clients.client_id AND revoked_at = 0)`},
		{table: "assertions", key: "key_hash", where: `expires_at <= ?`, keep: keepAssertions},
		{table: "codes", key: "signature", where: `expires_at <= ? AND used_at <= ?`, keep: keepCodes},
		{table: "issued_tokens", key: "id", where: `expires_at <= ?`, keep: keepTokens},
		{table: "refresh_tokens", key: "id", where: `expires_at <= ?`, keep: keepRefresh},
		{table: "grants", key: "id", where: `sweep_at <> 0 AND sweep_at <= ? AND NOT (` + grantInUse + `)`},
		{table: "revocations", key: "seq", where: `until <= ?`, keep: keepRevoked},
	}
	if s.options.AuditRetention > 0 {
		rules = append(rules, sweepRule{table: "audit", key: "seq", where: `at <= ?`, keep: s.options.AuditRetention})
	}
	return rules
}

// Sweep implements store.Journal.
func (s *Store) Sweep(ctx context.Context, now time.Time, limit int) (int, error) {
	if err := s.finishClients(ctx); err != nil {
		return 0, err
	}
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
	if deleted == limit {
		return deleted, nil // what refers to grants may not be gone yet
	}
	return deleted, s.postpone(ctx, now)
}

// postpone puts off the grants that had to stay, so that the next sweep does not look at them all again.
func (s *Store) postpone(ctx context.Context, now time.Time) error {
	const query = `UPDATE grants SET sweep_at = ? WHERE id IN
		(SELECT id FROM grants WHERE sweep_at <> 0 AND sweep_at <= ? AND (` + grantInUse + `) LIMIT ?)`
	for n := int64(sweepBatch); n == sweepBatch; {
		err := s.write(ctx, "postpone grants", func(q querier) (err error) {
			n, err = q.exec(ctx, query, millis(now.Add(postponeGrants)), millis(now), sweepBatch)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
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
