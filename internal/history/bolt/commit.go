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
	state   state
	first   history.Position // of the oldest entry in the database, whether it is shown or not
	oldest  int64            // its time
	used    int64            // bytes of the file's pages that are in use
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
			size += int64(q.record.Size())
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
	next := l.beginChange()
	err := l.update(func(tx *bbolt.Tx) error {
		if err := l.put(tx, &next, w.batch); err != nil {
			return err
		}
		// What this commit pushes out goes with it, so that it costs no sync of its own.
		if err := l.trim(tx, &next, trimBounds{count: 2*len(w.batch) + 16, bytes: 2*w.bytes + 64<<10, incoming: w.bytes}); err != nil {
			return err
		}
		return next.save(tx)
	})
	if err != nil {
		return l.refused(err)
	}
	l.endChange(&next, w.batch[len(w.batch)-1].record.ID)
	l.feed.Publish(c.entries)
	if l.excess() {
		l.queue.askTidy()
	}
	return nil
}

// change is what a transaction makes of the log.
type change struct {
	state

	first  history.Position
	oldest int64
}

func (l *Log) beginChange() change {
	c := &l.committer
	return change{state: c.state, first: c.first, oldest: c.oldest}
}

func (n *change) save(tx *bbolt.Tx) error {
	return tx.Bucket([]byte(metaBucket)).Put([]byte(stateKey), n.encode())
}

// endChange takes over what was committed. The id is that of the newest entry when one has come, and otherwise empty.
func (l *Log) endChange(n *change, lastID string) {
	c := &l.committer
	c.state, c.first, c.oldest = n.state, n.first, n.oldest
	l.measure()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = n.last
	if lastID != "" {
		l.lastID = lastID
	}
	l.first = max(l.first, n.first, firstByNumber(l.o.MaxEvents, n.last))
	if l.first > l.last {
		l.lastID = ""
	}
}

// put stores the batch.
func (l *Log) put(tx *bbolt.Tx, n *change, batch []*request) error {
	c := &l.committer
	c.entries = c.entries[:0]
	c.buf = c.buf[:0]
	entries, ids, topics := tx.Bucket([]byte(entriesBucket)), tx.Bucket([]byte(idsBucket)), tx.Bucket([]byte(topicsBucket))
	entries.FillPercent = fill
	now := time.Now().UnixMilli()
	for _, q := range batch {
		at := now
		if !q.at.IsZero() {
			at = min(at, q.at.UnixMilli())
		}
		n.millis = max(n.millis, at)
		n.last++
		q.position = n.last
		// bbolt keeps the value until the commit: each has its own part of the buffer, or of one before it.
		start := len(c.buf)
		c.buf = appendRecord(c.buf, q.position, n.millis, q.record, topic.Normal)
		raw := c.buf[start:len(c.buf):len(c.buf)]
		cost := int64(8 + len(raw))
		if err := entries.Put(positionKey(q.position), raw); err != nil {
			return err
		}
		id := l.key.idKey(q.record.ID, q.position)
		cost += int64(len(id))
		if err := ids.Put(id, nil); err != nil {
			return err
		}
		for _, t := range q.record.Topics {
			k := l.key.topicKey(t, topic.Normal(t), q.position)
			cost += int64(len(k))
			if err := topics.Put(k, nil); err != nil {
				return err
			}
		}
		if n.count == 0 {
			n.first, n.oldest = q.position, n.millis
		}
		n.bytes += cost
		n.count++
		c.entries = append(c.entries, history.Entry{Position: q.position, Record: *q.record})
	}
	return nil
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
