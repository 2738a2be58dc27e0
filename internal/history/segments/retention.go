package segments

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// Bounds of the janitor's interval when there is a limit by age.
const (
	minTidyInterval = time.Second
	maxTidyInterval = time.Minute
)

// trim enforces the limits by number and bytes, but for that of subscription events in the midst of others: it moves first, and takes segments without
// retained entries out of the log. It tells whether there are any to remove. The caller holds the lock.
func (l *Log) trim() bool {
	dropped := false
	for first := l.firstByNumber(); len(l.segments) > 1; {
		oldest := l.segments[0]
		idle := oldest.events == oldest.count && l.outlived(0) // no update goes with it
		gone := oldest.last() < first
		if !gone && !idle && !l.tooLarge() {
			break
		}
		if !idle {
			l.passed = oldest.last()
		}
		l.drop()
		dropped = true
	}
	l.setFirst()
	return dropped
}

// tooLarge tells whether the files exceed the limit by bytes. What subscription events take that are about to go counts no more: no update has to
// make room for it. The caller holds the lock.
func (l *Log) tooLarge() bool {
	if l.o.MaxBytes == 0 {
		return false
	}
	// Room for a full segment is set aside, so that the files stay within the limit while it grows.
	size := l.bytes - l.active().size + max(l.active().size, l.o.SegmentBytes)
	return size > l.o.MaxBytes && size-l.reclaimable() > l.o.MaxBytes
}

// drop takes the oldest segment out of the log. The caller holds the lock.
func (l *Log) drop() {
	s := l.segments[0]
	s.trimmed.Store(true)
	l.bytes -= s.size + s.indexed
	l.segments[0] = nil
	l.segments = l.segments[1:]
	l.trimmed = append(l.trimmed, s)
}

// setFirst sets first by the segments that are left. The caller holds the lock.
func (l *Log) setFirst() {
	l.first = max(l.segments[0].base, l.firstByNumber())
	if l.first > l.segments[0].base {
		l.passed = max(l.passed, l.first-1)
	}
	if l.first > l.last {
		l.lastID = ""
	}
}

// firstByNumber returns the position before which the limit by number lets nothing be; 0 when it lets everything be. In the segment where that is,
// records count as updates whatever they are, so that none too many is given up. The caller holds the lock.
func (l *Log) firstByNumber() history.Position {
	if l.o.MaxEvents == 0 {
		return 0
	}
	room := l.o.MaxEvents
	for _, s := range slices.Backward(l.segments) {
		n := s.count - s.events
		if n >= room {
			return s.base + history.Position(n-room)
		}
		room -= n
	}
	return 0
}

// runJanitor does what can wait until the log is closed.
func (l *Log) runJanitor(ctx context.Context) {
	defer l.workers.Done()
	var tick <-chan time.Time
	if l.o.MaxAge > 0 {
		t := time.NewTicker(min(max(l.o.MaxAge/16, minTidyInterval), maxTidyInterval))
		defer t.Stop()
		tick = t.C
	}
	for {
		select {
		case <-l.quit:
			return
		case <-tick:
			l.expire(time.Now())
		case <-l.tidy:
		}
		l.reap()
		_ = l.hollowAll(ctx) // they have told the operator
		_ = l.sealFull(ctx)
		l.reap()
	}
}

func (l *Log) wakeJanitor() {
	select {
	case l.tidy <- struct{}{}:
	default: // it will run anyway
	}
}

// expire enforces the limit by age.
func (l *Log) expire(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest := now.Add(-l.o.MaxAge).UnixMilli()
	for len(l.segments) > 1 && l.segments[0].newest < oldest {
		l.passed = l.segments[0].last()
		l.drop()
	}
	l.setFirst()
	if a := l.active(); a.count > 0 && a.oldest < now.Add(-l.o.MaxAge/8).UnixMilli() {
		l.queue.askRotation() // the queue's lock is a leaf
	}
}

// reap removes the files of trimmed segments, oldest first and only while nobody reads them: at no
// time may a gap be found on disk. What fails is tried again later.
func (l *Log) reap() {
	l.reaping.Lock()
	defer l.reaping.Unlock()
	for {
		s := l.reapable()
		if s == nil {
			return
		}
		if err := l.removeSegment(s); err != nil {
			l.o.Logger.Warn("trimmed history segment was not removed",
				slog.String("segment", s.name), slog.String("error", err.Error()))
			return
		}
		l.mu.Lock()
		l.trimmed = l.trimmed[1:]
		l.mu.Unlock()
	}
}

// reapable returns the next segment to remove if nobody reads it.
func (l *Log) reapable() *segment {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if len(l.trimmed) == 0 || l.trimmed[0].readers.Load() > 0 {
		return nil
	}
	return l.trimmed[0]
}

// removeSegment closes and removes a file and its index and makes that durable before the next one goes.
func (l *Log) removeSegment(s *segment) error {
	if err := s.close(); err != nil {
		l.o.Logger.Warn("trimmed history segment was not closed", slog.String("error", err.Error()))
	}
	for _, name := range []string{s.indexName(), s.name} {
		if err := l.removeIfThere(name); err != nil {
			return err
		}
	}
	return l.folder.Sync()
}
