package segments

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

var _ history.Inspector = (*Log)(nil)

// Stats implements history.Inspector. Bytes is the size of the files, indexes included, so it counts what the limit by number has trimmed
// from the oldest one too. Where the oldest segment holds subscription events, some of these may be counted as updates that have gone. It reads the
// oldest records, up to one that is still an entry.
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
		if s.Events+s.SubscriptionEvents == 0 {
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
		s.Events = -int64(l.first - l.segments[0].base) // what is trimmed of the oldest segment counts as updates
		for _, x := range l.segments {
			s.SubscriptionEvents += int64(x.live())
			s.Events += int64(x.count - x.events)
		}
		s.Events = max(s.Events, 0)
		s.LastAt = time.UnixMilli(l.find(l.last).newest).UTC()
	}
	return s
}

// appendedAt returns when the oldest entry was appended, from a position on that is not trimmed.
func (l *Log) appendedAt(ctx context.Context, from history.Position) (time.Time, error) {
	for {
		part, err := l.openFrom(from, 0)
		if err != nil {
			return time.Time{}, err
		}
		if part.segment == nil {
			return time.Time{}, history.ErrPositionGone // all that was there
		}
		millis := int64(-1)
		_, err = part.each(ctx, part.left(), func(v *view) bool {
			if v.kind() != hollow {
				millis = v.millis
			}
			return millis < 0 && ctx.Err() == nil
		})
		from = part.through + 1
		l.closePart(part)
		if err = cmp.Or(err, ctx.Err()); err != nil || millis >= 0 {
			return time.UnixMilli(millis).UTC(), err
		}
	}
}
