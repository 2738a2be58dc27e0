package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"time"

	"go.etcd.io/bbolt"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/durable"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// fill is how full pages of entries are left, which are only ever appended to.
const fill = 0.95

// committer is the state of the goroutine that writes.
type committer struct {
	standing

	used    int64 // bytes of the file's pages that are in use
	batch   []*request
	entries []history.Entry
	buf     []byte
	stuck   bool // bbolt has panicked in a transaction: nothing can be written, nor the database closed
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
	w := l.queue.take(l.committer.batch[:0], commitBytes)
	l.committer.batch = w.batch
	if w.job != nil {
		w.job()
	}
	if w.tidy {
		l.tidy()
	}
	if len(w.batch) > 0 {
		l.commitBatch(w)
	}
	return len(w.batch) > 0 || w.job != nil || w.tidy
}

// commitBatch stores a batch and tells those who wait for it.
func (l *Log) commitBatch(w work) {
	c := &l.committer
	err := l.commit(w)
	l.health.Report(err)
	if err != nil {
		var size int64
		for _, q := range w.batch {
			q.err = err
			size += sizeOf(q.records)
		}
		l.feed.Release(size)
	}
	for _, q := range w.batch {
		q.done <- struct{}{}
	}
	clear(w.batch)
	clear(c.entries)
	if cap(c.buf) > 2*commitBytes {
		c.buf = nil
	}
}

// commit stores the batch and makes it visible, first to readers, then to tails. When it fails,
// nothing has become visible.
func (l *Log) commit(w work) error {
	if err := l.health.Err(); err != nil {
		return err
	}
	c := &l.committer
	next := c.standing
	err := l.update(func(tx *bbolt.Tx) error {
		if err := l.put(tx, &next, w.batch); err != nil {
			return err
		}
		// What this commit pushes out goes with it, so that it costs no sync of its own.
		if err := l.trim(tx, &next, trimBounds{count: 2*w.records + 16, bytes: 2*w.bytes + 64<<10, incoming: w.bytes}); err != nil {
			return err
		}
		return next.save(tx)
	})
	if err != nil {
		return l.refused(err)
	}
	l.endChange(&next, c.entries[len(c.entries)-1].ID)
	l.feed.Publish(c.entries)
	if l.excess() {
		l.queue.askTidy()
	}
	return nil
}

// endChange takes over what was committed. The id is that of the newest entry when one has come, and otherwise empty.
func (l *Log) endChange(n *standing, lastID string) {
	l.committer.standing = *n
	l.measure()
	l.show(n, lastID)
}

// puts are the buckets that entries are put into.
type puts struct {
	updates *bbolt.Bucket
	subs    *bbolt.Bucket // nil until it is needed
	ids     *bbolt.Bucket
	topics  *bbolt.Bucket
}

// put stores the batch.
func (l *Log) put(tx *bbolt.Tx, n *standing, batch []*request) error {
	c := &l.committer
	c.entries = c.entries[:0]
	c.buf = c.buf[:0]
	b := puts{updates: tx.Bucket([]byte(entriesBucket)), ids: tx.Bucket([]byte(idsBucket)), topics: tx.Bucket([]byte(topicsBucket))}
	b.updates.FillPercent = fill
	now := time.Now().UnixMilli()
	for _, q := range batch {
		at := now
		if !q.at.IsZero() {
			at = min(at, q.at.UnixMilli())
		}
		n.millis = max(n.millis, at)
		for _, r := range q.records {
			if err := l.putRecord(tx, n, &b, r); err != nil {
				return err
			}
		}
		q.position = n.last
	}
	return nil
}

// putRecord stores one record as the newest one.
func (l *Log) putRecord(tx *bbolt.Tx, n *standing, b *puts, r *history.Record) error {
	c := &l.committer
	n.last++
	// bbolt keeps the value until the commit: each has its own part of the buffer, or of one before it.
	start := len(c.buf)
	c.buf = appendRecord(c.buf, n.last, n.millis, r, topic.Normal)
	raw := c.buf[start:len(c.buf):len(c.buf)]
	cost := int64(8 + len(raw))
	bucket, err := b.records(tx, r.Subscription)
	if err != nil {
		return err
	}
	if err := bucket.Put(positionKey(n.last), raw); err != nil {
		return err
	}
	id := l.key.idKey(r.ID, n.last)
	cost += int64(len(id))
	if err := b.ids.Put(id, nil); err != nil {
		return err
	}
	for _, t := range r.Topics {
		k := l.key.topicKey(t, topic.Normal(t), n.last)
		cost += int64(len(k))
		if err := b.topics.Put(k, nil); err != nil {
			return err
		}
	}
	if n.count() == 0 {
		n.first, n.oldest = n.last, n.millis
	}
	n.bytes += cost
	if r.Subscription {
		n.subs++
	} else {
		n.updates++
	}
	c.entries = append(c.entries, history.Entry{Position: n.last, Record: *r})
	return nil
}

// records returns the bucket for a record.
func (b *puts) records(tx *bbolt.Tx, subscription bool) (*bbolt.Bucket, error) {
	if !subscription {
		return b.updates, nil
	}
	if b.subs == nil {
		var err error
		if b.subs, err = tx.CreateBucketIfNotExists([]byte(subsBucket)); err != nil {
			return nil, err
		}
		b.subs.FillPercent = fill
	}
	return b.subs, nil
}

// refused says what the failure of a transaction means.
func (l *Log) refused(err error) error {
	// A write that found no space came before the one that makes a transaction valid, or did not change a page: bbolt has put everything back.
	// A sync that failed leaves it open what is on the disk.
	if p, ok := errors.AsType[*fs.PathError](err); ok && p.Op == "write" && durable.IsNoSpace(err) {
		return fmt.Errorf("%w: %w", history.ErrNoSpace, err)
	}
	return l.health.Fail(err)
}

// measure reads how much of the file is in use.
func (l *Log) measure() {
	var size int64
	err := contain(func() error {
		return l.db.View(func(tx *bbolt.Tx) error { size = tx.Size(); return nil })
	})
	if err != nil {
		return // the next transaction says what is wrong
	}
	s := l.db.Stats()
	page := int64(l.db.Info().PageSize)
	free := int64(s.FreePageN + s.PendingPageN)
	// The list of them grows with what is free, and must not push out entries. The statistics know its size after a commit alone.
	list := (pageHeaderSize + 8*free + page) / page
	l.committer.used = max(size-(free+list)*page, 0)
}
