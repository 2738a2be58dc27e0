package sqlstore

import (
	"context"
	"log/slog"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/as/store"
)

// A client may have very many grants. To mark them all revoked in one transaction would keep every other writer waiting, so the client is
// noted in the table ended_clients, from where on nothing is issued under its grants any more, and its grants are marked in batches: by
// whoever ended it, and if that is interrupted, by Sweep.

// endClient revokes all that was issued to a client: what there is of tokens by the revocation log, what could still come by the note.
func (s *Store) endClient(ctx context.Context, q querier, id string, at time.Time) error {
	const note = `INSERT INTO ended_clients (client_id, sweep_at) VALUES (?, ?)
		ON CONFLICT (client_id) DO UPDATE SET sweep_at = excluded.sweep_at`
	if _, err := q.exec(ctx, note, id, millis(s.now().Add(keepEnded))); err != nil {
		return err
	}
	if _, err := markGrants(ctx, q, id, at); err != nil {
		return err
	}
	return s.logEverywhere(ctx, q, store.RevokeClient, id, at)
}

// markGrants marks a batch of the client's grants revoked; when it is less than a batch, they are all marked.
func markGrants(ctx context.Context, q querier, id string, at time.Time) (int64, error) {
	const batch = `id IN (SELECT id FROM grants WHERE client_id = ? AND revoked_at = 0 LIMIT ?)`
	return revokeGrants(ctx, q, at, batch, id, sweepBatch)
}

// finishClient marks the rest of the grants of a client that ended. It is the tail of something that is done and acknowledged: an
// error is logged, and Sweep does what is left.
func (s *Store) finishClient(ctx context.Context, id string) {
	if err := s.markRest(ctx, id); err != nil {
		s.options.Logger.LogAttrs(ctx, slog.LevelWarn, "grants of a client that is gone are not all marked yet",
			slog.String("client_id", id), slog.String("error", err.Error()))
	}
}

// markRest marks batch after batch, each in a transaction of its own.
func (s *Store) markRest(ctx context.Context, id string) error {
	for n := int64(sweepBatch); n == sweepBatch; {
		err := s.write(ctx, "mark grants", func(q querier) (err error) {
			n, err = markGrants(ctx, q, id, s.now())
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// revive takes back the note of a client that ended, when it may be used again and all its earlier grants are marked: the new client does
// not inherit them. It returns false when it marked a batch and there may be more.
func (s *Store) revive(ctx context.Context, q querier, c store.Client) (bool, error) {
	if c.Disabled {
		return true, nil
	}
	var noted int64
	if err := q.row(ctx, `SELECT count(*) FROM ended_clients WHERE client_id = ?`, c.ID).Scan(&noted); err != nil || noted == 0 {
		return err == nil, err
	}
	n, err := markGrants(ctx, q, c.ID, s.now())
	if err != nil || n == sweepBatch {
		return false, err
	}
	_, err = q.exec(ctx, `DELETE FROM ended_clients WHERE client_id = ?`, c.ID)
	return true, err
}

// unfinishedClients selects the clients with grants that are not marked.
const unfinishedClients = `SELECT client_id FROM ended_clients WHERE EXISTS
	(SELECT 1 FROM grants WHERE client_id = ended_clients.client_id AND revoked_at = 0)`

// finishClients does what was left over by finishClient.
func (s *Store) finishClients(ctx context.Context) error {
	scan := func(row scanner) (id string, err error) { return id, row.Scan(&id) }
	var unfinished []string
	err := s.read(ctx, "list ended clients", func(q querier) (err error) {
		unfinished, err = list(ctx, q, scan, unfinishedClients)
		return err
	})
	if err != nil {
		return err
	}
	for _, id := range unfinished {
		if err := s.markRest(ctx, id); err != nil {
			return err
		}
	}
	return nil
}
