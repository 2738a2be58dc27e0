package segments

import (
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/durable"
)

// maxIdleBuffer is the size up to which the committer keeps its buffer between commits.
const maxIdleBuffer = 2 * commitBytes

// committer is the state of the goroutine that writes.
type committer struct {
	segment *segment // the one being written: the last of Log.segments
	buf     []byte
	batch   []*request
	entries []history.Entry
	millis  int64 // time of the newest record, so that times never decrease
	stamps  []int64
	cut     bool // the segment was cut back, and not synced since
}

// runCommitter commits what is queued until the log is closed, when nothing is queued any more.
func (l *Log) runCommitter() {
	defer l.workers.Done()
	for {
		select {
		case <-l.quit:
			return
		case <-l.queue.wake:
		}
		for l.commitQueued() {
		}
	}
}

// commitQueued makes one commit and tells whether there may be more to do.
func (l *Log) commitQueued() bool {
	// Publishers that are about to append get to run first and share this commit's sync.
	runtime.Gosched()
	c := &l.committer
	maxBytes := int(min(commitBytes, l.o.SegmentBytes))
	batch, bytes, rotate := l.queue.take(c.batch[:0], maxBytes, l.o.segmentUpdates())
	c.batch = batch
	if rotate {
		l.rotateIdle()
	}
	if len(batch) == 0 {
		return rotate
	}
	err := l.commit(batch, bytes)
	l.health.Report(err)
	if err != nil {
		var size int64
		for _, q := range batch {
			q.err = err
			size += recordsSize(q.records)
		}
		l.feed.Release(size)
	}
	for _, q := range batch {
		q.done <- struct{}{}
	}
	clear(batch)
	clear(c.entries)
	if cap(c.buf) > maxIdleBuffer {
		c.buf = nil
	}
	return true
}

// commit stores the batch and makes it visible, first to readers, then to tails. When it fails,
// nothing has become visible.
func (l *Log) commit(batch []*request, bytes int) error {
	if err := l.health.Err(); err != nil {
		return err
	}
	s := l.committer.segment
	if s.count > 0 && l.overfull(s, batch, bytes) {
		if err := l.rotate(); err != nil {
			return err
		}
		s = l.committer.segment
	}
	l.encode(s, batch)
	if err := l.write(s); err != nil {
		return err
	}
	l.publish(s)
	return nil
}

// overfull tells whether the batch is too much for the segment, or for the memory that its index takes while it grows.
func (l *Log) overfull(s *segment, batch []*request, bytes int) bool {
	posts, records, updates := len(s.growing.posts), s.count, s.count-s.events
	for _, q := range batch {
		records += len(q.records)
		for _, r := range q.records {
			posts += len(r.Topics)
			if !r.Subscription {
				updates++
			}
		}
	}
	return s.size+int64(bytes) > l.o.SegmentBytes || records > l.o.segmentRecords() || updates > l.o.segmentUpdates() || posts > maxSegmentPosts
}

// encode fills the committer's buffers with the batch.
func (l *Log) encode(s *segment, batch []*request) {
	c := &l.committer
	now := time.Now().UnixMilli()
	c.buf, c.entries, c.stamps = c.buf[:0], c.entries[:0], c.stamps[:0]
	next := s.last() + 1
	for _, q := range batch {
		c.millis = max(c.millis, q.stamped(now))
		for i, r := range q.records {
			at := stamp{position: next, millis: c.millis, first: len(c.entries) == 0, more: i < len(q.records)-1}
			c.buf = appendRecord(c.buf, s.seed, at, r)
			c.entries = append(c.entries, history.Entry{Position: next, Record: *r})
			c.stamps = append(c.stamps, c.millis)
			q.position = next
			next++
		}
	}
}

// write makes the committer's buffer durable at the end of the segment.
func (l *Log) write(s *segment) error {
	_, err := s.file.WriteAt(l.committer.buf, s.size)
	switch {
	case err == nil:
		if err = s.file.Sync(); err == nil {
			l.committer.cut = false
			return nil
		}
		err = fmt.Errorf("sync: %w", err)
	case durable.IsNoSpace(err):
		if cut := s.file.Truncate(s.size); cut == nil {
			l.committer.cut = true
			return fmt.Errorf("%w: %w", history.ErrNoSpace, err)
		}
	}
	// Whatever reached the file was never acknowledged. Cutting it off spares the next Open the
	// doubt; that this may fail as well changes nothing.
	_ = s.file.Truncate(s.size)
	return l.health.Fail(err)
}

// publish makes what was committed visible.
func (l *Log) publish(s *segment) {
	c := &l.committer
	l.mu.Lock()
	before, b := s.size, c.buf
	for i := range c.entries {
		r := &c.entries[i].Record
		size, n := encodedSize(r), len(r.ID)
		rest := b[fixedSize:size]
		s.add(kindOf(r), l.hash(s.key, rest[:n]), c.stamps[i], size, len(r.Topics), rest[n:])
		b = b[size:]
	}
	l.bytes += s.size - before
	l.last = s.last()
	l.lastID = c.entries[len(c.entries)-1].ID
	dropped := l.trim()
	l.mu.Unlock()
	l.feed.Publish(c.entries)
	if dropped {
		l.wakeJanitor()
	}
}

// rotateIdle closes the current segment because of its age. Its failure is the next commit's
// business, if it persists.
func (l *Log) rotateIdle() {
	if l.committer.segment.count == 0 || l.health.Err() != nil {
		return
	}
	if err := l.rotate(); err != nil {
		l.o.Logger.Warn("history segment was not closed", slog.String("error", err.Error()))
	}
}

// rotate begins a new segment. The current one is complete and synced, what a full disk had left at its end included: once
// another segment follows, that would be damage.
func (l *Log) rotate() error {
	if l.committer.cut {
		if err := l.committer.segment.file.Sync(); err != nil {
			return l.health.Fail(fmt.Errorf("sync: %w", err))
		}
		l.committer.cut = false
	}
	s, err := l.createSegment(l.committer.segment.last()+1, l.committer.segment.events)
	if err != nil {
		return err
	}
	l.committer.segment = s
	l.mu.Lock()
	l.segments = append(l.segments, s)
	l.bytes += s.size
	l.trim()
	l.mu.Unlock()
	l.wakeJanitor()
	return nil
}
