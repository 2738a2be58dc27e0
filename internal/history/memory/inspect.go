package memory

import (
	"context"
	"fmt"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

var _ history.Inspector = (*Log)(nil)

// Stats implements history.Inspector. Bytes counts entries by their Size.
func (l *Log) Stats(ctx context.Context) (history.Stats, error) {
	if err := l.calls.Begin(ctx); err != nil {
		return history.Stats{}, fmt.Errorf("stats of memory: %w", err)
	}
	defer l.calls.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trim()
	s := history.Stats{Driver: "memory", Epoch: l.epoch, Bytes: l.ring.bytes, First: l.first(), Last: l.last}
	s.Events, s.SubscriptionEvents = int64(l.ring.updates()), int64(l.ring.subscriptionEvents())
	if n := l.ring.len(); n > 0 {
		s.LastID = l.ring.at(n - 1).ID
		s.FirstAt, s.LastAt = l.ring.at(0).stored, l.ring.at(n-1).stored
	}
	return s, nil
}
