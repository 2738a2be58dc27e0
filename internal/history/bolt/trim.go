package bolt

import (
	"log/slog"
	"time"

	"go.etcd.io/bbolt"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

const (
	// Bounds of the janitor's interval when there is a limit by age.
	minTidyInterval = time.Second
	maxTidyInterval = time.Minute

	// tidyCount and tidyBytes bound a transaction that does nothing but trim: a publish waits for one of them at most.
	tidyCount = 256
	tidyBytes = 1 << 20
)

// firstByNumber returns the position before which the limit by number lets nothing be.
func firstByNumber(most int, last history.Position) history.Position {
	if n := history.Position(most); most > 0 && last >= n {
		return last - n + 1
	}
	return 0
}

// trimBounds bound what one transaction removes.
type trimBounds struct {
	count    int
	bytes    int
	incoming int // bytes that the transaction adds
}

// trim removes the oldest entries that the limits leave no room for.
func (l *Log) trim(tx *bbolt.Tx, n *change, b trimBounds) error {
	byNumber := firstByNumber(l.o.MaxEvents, n.last)
	excess := int64(0)
	if l.o.MaxBytes > 0 {
		excess = l.committer.used + int64(b.incoming) - l.o.MaxBytes
	}
	oldest := int64(0)
	if l.o.MaxAge > 0 {
		oldest = time.Now().Add(-l.o.MaxAge).UnixMilli()
	}
	over := func() bool {
		return n.first < byNumber || excess > 0 && n.count > 1 || n.oldest < oldest
	}
	if n.count == 0 || !over() {
		return nil
	}
	cursor := tx.Bucket([]byte(entriesBucket)).Cursor()
	for n.count > 0 && b.count > 0 && b.bytes > 0 && over() {
		k, raw := cursor.Seek(positionKey(n.first))
		v, err := decodeRecord(n.first, raw)
		if err == nil && keyPosition(k) != n.first {
			err = recordError("it is missing")
		}
		if err != nil {
			return damaged(n.first, err)
		}
		cost, err := l.remove(tx, &v)
		if err != nil {
			return err
		}
		excess -= cost
		b.count--
		b.bytes -= int(cost)
		n.bytes -= cost
		n.count--
		n.first++
		if err := n.look(cursor); err != nil {
			return err
		}
	}
	return nil
}

// look reads the time of the entry that has become the oldest.
func (n *change) look(cursor *bbolt.Cursor) error {
	if n.count == 0 {
		return nil
	}
	k, raw := cursor.Seek(positionKey(n.first))
	v, err := decodeRecord(n.first, raw)
	if err == nil && keyPosition(k) != n.first {
		err = recordError("it is missing")
	}
	if err != nil {
		return damaged(n.first, err)
	}
	n.oldest = v.millis
	return nil
}

// remove removes an entry and its index keys, and returns what they took.
func (l *Log) remove(tx *bbolt.Tx, v *view) (int64, error) {
	cost := int64(8 + v.size)
	id := l.key.idKey(string(v.id), v.position)
	cost += int64(len(id))
	if err := tx.Bucket([]byte(idsBucket)).Delete(id); err != nil {
		return 0, err
	}
	topics := tx.Bucket([]byte(topicsBucket))
	err := v.eachTopic(func(t []byte, normal bool) error {
		k := l.key.topicKey(string(t), normal, v.position)
		cost += int64(len(k))
		return topics.Delete(k)
	})
	if err != nil {
		return 0, err
	}
	return cost, tx.Bucket([]byte(entriesBucket)).Delete(positionKey(v.position))
}

// excess tells whether the limits leave no room for the oldest entry. Only the committer calls it.
func (l *Log) excess() bool {
	c := &l.committer
	return c.state.count > 0 && (c.first < firstByNumber(l.o.MaxEvents, c.state.last) ||
		l.o.MaxBytes > 0 && c.used > l.o.MaxBytes && c.state.count > 1 ||
		l.o.MaxAge > 0 && c.oldest < time.Now().Add(-l.o.MaxAge).UnixMilli())
}

// tidy removes some of what the limits leave no room for, and asks for more of that when there is more: what has queued meanwhile comes
// first. Only the committer calls it.
func (l *Log) tidy() {
	if !l.excess() || l.health.Err() != nil {
		return
	}
	if err := l.trimOnce(); err != nil {
		l.o.Logger.Warn("history was not trimmed", slog.String("error", err.Error()))
		return
	}
	if l.excess() {
		l.queue.askTidy()
	}
}

// trimOnce removes at most what one transaction may.
func (l *Log) trimOnce() error {
	next := l.beginChange()
	err := l.update(func(tx *bbolt.Tx) error {
		if err := l.trim(tx, &next, trimBounds{count: tidyCount, bytes: tidyBytes}); err != nil {
			return err
		}
		return next.save(tx)
	})
	if err != nil {
		return l.refused(err)
	}
	l.endChange(&next, "")
	return nil
}

// runJanitor looks from time to time whether entries have become too old.
func (l *Log) runJanitor() {
	defer l.workers.Done()
	if l.o.MaxAge == 0 {
		return
	}
	t := time.NewTicker(min(max(l.o.MaxAge/16, minTidyInterval), maxTidyInterval))
	defer t.Stop()
	for {
		select {
		case <-l.quit:
			return
		case <-t.C:
			l.queue.askTidy()
		}
	}
}
