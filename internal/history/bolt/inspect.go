package bolt

import (
	"context"
	"fmt"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

var _ history.Inspector = (*Log)(nil)

// Stats implements history.Inspector. Bytes is what the entries and their index keys have; the file is larger. Bytes and FirstAt
// are those of what is stored: while entries that a lowered limit hides are yet to be removed, they are included.
func (l *Log) Stats(ctx context.Context) (history.Stats, error) {
	if err := l.calls.Begin(ctx); err != nil {
		return history.Stats{}, fmt.Errorf("stats of bolt: %w", err)
	}
	defer l.calls.Done()
	n := l.seen()
	s := history.Stats{
		Driver: "bolt", Epoch: l.epoch, Segments: 1, Events: n.updates, SubscriptionEvents: n.subs, Bytes: n.bytes,
		First: n.first, Last: n.last, LastID: n.lastID,
	}
	if n.first <= n.last {
		s.FirstAt, s.LastAt = time.UnixMilli(n.firstAt).UTC(), time.UnixMilli(n.lastAt).UTC()
	}
	return s, nil
}
