package bolt

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

var _ history.Inspector = (*Log)(nil)

// Stats implements history.Inspector. Bytes is what the entries and their index keys have, trimmed entries that are yet to be removed
// included; the file is larger.
func (l *Log) Stats(ctx context.Context) (history.Stats, error) {
	if err := l.calls.Begin(ctx); err != nil {
		return history.Stats{}, fmt.Errorf("stats of bolt: %w", err)
	}
	defer l.calls.Done()
	s := history.Stats{Driver: "bolt", Epoch: l.epoch, Segments: 1}
	first, last := l.bounds()
	err := l.view(func(tx *bbolt.Tx) error {
		st, err := decodeState(tx.Bucket([]byte(metaBucket)).Get([]byte(stateKey)))
		if err != nil {
			return err
		}
		cursor := tx.Bucket([]byte(entriesBucket)).Cursor()
		k, _ := cursor.First()
		s.Bytes, s.Last = st.bytes, min(last, st.last)
		s.First = first
		if oldest := keyPosition(k); k != nil {
			s.First = max(first, oldest)
		}
		if k == nil || s.First > s.Last {
			s.First = s.Last + 1
			return nil
		}
		entries := tx.Bucket([]byte(entriesBucket))
		oldest, err := record(entries, s.First)
		if err != nil {
			return err
		}
		newest, err := record(entries, s.Last)
		if err != nil {
			return err
		}
		s.Events, s.LastID = int64(s.Last-s.First+1), string(newest.id)
		s.FirstAt, s.LastAt = time.UnixMilli(oldest.millis).UTC(), time.UnixMilli(newest.millis).UTC()
		return nil
	})
	if err != nil {
		return history.Stats{}, fmt.Errorf("stats of bolt: %w", err)
	}
	return s, nil
}
