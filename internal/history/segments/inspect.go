package segments

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

var _ history.Inspector = (*Log)(nil)

// Stats implements history.Inspector. Bytes is the size of the files, indexes included, so it counts what the limit by number has trimmed
// from the oldest one too. It reads one record, the oldest.
func (l *Log) Stats(ctx context.Context) (history.Stats, error) {
	if err := l.calls.Begin(ctx); err != nil {
		return history.Stats{}, fmt.Errorf("stats of segments: %w", err)
	}
	defer l.calls.Done()
	for {
		if err := ctx.Err(); err != nil {
			return history.Stats{}, fmt.Errorf("stats of segments: %w", err)
		}
		s := l.snapshotStats()
		if s.Events == 0 {
			return s, nil
		}
		at, err := l.appendedAt(ctx, s.First)
		switch {
		case errors.Is(err, history.ErrPositionGone): // trimmed meanwhile: look again
		case err != nil:
			return history.Stats{}, fmt.Errorf("stats of segments: %w", err)
		default:
			s.FirstAt = at
			return s, nil
		}
	}
}

// snapshotStats returns everything but FirstAt.
func (l *Log) snapshotStats() history.Stats {
	l.mu.RLock()
	defer l.mu.RUnlock()
	s := history.Stats{
		Driver: "segments", Epoch: hex.EncodeToString(l.store[:]), Bytes: l.bytes, Segments: len(l.segments),
		First: l.first, Last: l.last, LastID: l.lastID,
	}
	if l.first <= l.last {
		s.Events = int64(l.last - l.first + 1)
		s.LastAt = time.UnixMilli(l.find(l.last).newest).UTC()
	}
	return s
}

// appendedAt returns when the retained record at p was appended.
func (l *Log) appendedAt(ctx context.Context, p history.Position) (time.Time, error) {
	part, err := l.openPart(p-1, p)
	if err != nil {
		return time.Time{}, err
	}
	defer l.closePart(part)
	if part.segment == nil || part.from != p { // p-1 is 0 for the first record of all, which asks for the earliest there is
		return time.Time{}, history.ErrPositionGone
	}
	var millis int64
	_, err = part.each(ctx, 1, func(v *view) bool {
		millis = v.millis
		return false
	})
	return time.UnixMilli(millis).UTC(), err
}
