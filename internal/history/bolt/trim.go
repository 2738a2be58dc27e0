package bolt

import (
	"fmt"
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

// trimBounds bound what one transaction removes.
type trimBounds struct {
	count    int
	bytes    int
	incoming int // bytes that the transaction adds
}

// trimming is what a transaction removes.
type trimming struct {
	log     *Log
	tx      *bbolt.Tx
	n       *standing
	excess  int64 // bytes that there is no room for
	tooOld  int64 // what has become the oldest must not be older
	bounds  trimBounds
	records *records // stands at the oldest entry
}

// trim removes what the limits leave no room for: first subscription events beyond their own limit, so that they push nothing out, with
// about half of the count at most, and then the oldest entries.
func (l *Log) trim(tx *bbolt.Tx, n *standing, b trimBounds) error {
	t := trimming{log: l, tx: tx, n: n, bounds: b}
	if l.o.MaxBytes > 0 {
		t.excess = l.committer.used + int64(b.incoming) - l.o.MaxBytes
	}
	if l.o.MaxAge > 0 {
		t.tooOld = time.Now().Add(-l.o.MaxAge).UnixMilli()
	}
	if l.tooManySubs(&n.state) {
		if err := t.trimSubs(b.count - b.count/2); err != nil {
			return err
		}
	}
	return t.trimOldest()
}

// trimSubs removes the oldest subscription events, wherever they are, but no more than so many.
func (t *trimming) trimSubs(most int) error {
	n := t.n
	first := n.first
	for p := first; t.log.tooManySubs(&n.state) && most > 0 && t.bounds.bytes > 0; most-- {
		w := newWalker(t.tx, subsBucket)
		if err := w.seek(positionKey(p)); err != nil {
			return err
		}
		if w.key == nil {
			return fmt.Errorf("%w: %s: %d subscription events are missing", history.ErrCorrupt, fileName, n.subs)
		}
		v, err := decodeIn(subsBucket, w.key, w.value)
		if err != nil {
			return err
		}
		if err := t.remove(&v); err != nil {
			return err
		}
		n.subsGone = v.position
		p = v.position + 1
		if v.position == n.first {
			n.first = p // or later, until it was looked for
		}
	}
	if n.first == first {
		return nil
	}
	return t.look()
}

// trimOldest removes the oldest entries.
func (t *trimming) trimOldest() error {
	for n := t.n; n.count() > 0 && t.bounds.count > 0 && t.bounds.bytes > 0 && t.over(); {
		v, err := t.oldest()
		if err == nil && v.position != n.first {
			err = damaged(n.first, recordError("it is missing"))
		}
		if err != nil {
			return err
		}
		if err := t.remove(&v); err != nil {
			return err
		}
		n.gone = v.position
		if err := t.look(); err != nil {
			return err
		}
	}
	return nil
}

// over tells whether the limits leave no room for the oldest entry.
func (t *trimming) over() bool {
	return t.log.tooManyUpdates(&t.n.state) || t.excess > 0 && t.n.count() > 1 || t.n.oldest < t.tooOld
}

// oldest returns the oldest entry, if that is at n.first or after it.
func (t *trimming) oldest() (v view, err error) {
	if t.records == nil {
		t.records, err = recordsFrom(t.tx, t.n.first)
	} else {
		err = t.records.seek(t.n.first)
	}
	if err != nil {
		return view{}, err
	}
	v, ok, err := t.records.view()
	if err == nil && !ok {
		err = damaged(t.n.first, recordError("it is missing"))
	}
	return v, err
}

// look finds out what has become the oldest entry.
func (t *trimming) look() error {
	if t.n.count() == 0 {
		t.n.first = t.n.last + 1
		return nil
	}
	v, err := t.oldest()
	if err != nil {
		return err
	}
	t.n.first, t.n.oldest = v.position, v.millis
	return nil
}

// remove removes an entry and its index keys.
func (t *trimming) remove(v *view) error {
	key := &t.log.key
	cost := int64(8 + v.size)
	id := key.idKey(string(v.id), v.position)
	cost += int64(len(id))
	if err := t.tx.Bucket([]byte(idsBucket)).Delete(id); err != nil {
		return err
	}
	topics := t.tx.Bucket([]byte(topicsBucket))
	err := v.eachTopic(func(topic []byte, normal bool) error {
		k := key.topicKey(string(topic), normal, v.position)
		cost += int64(len(k))
		return topics.Delete(k)
	})
	if err != nil {
		return err
	}
	bucket := entriesBucket
	if v.subscription {
		bucket = subsBucket
		t.n.subs--
	} else {
		t.n.updates--
	}
	t.n.bytes -= cost
	t.excess -= cost
	t.bounds.count--
	t.bounds.bytes -= int(cost)
	return t.tx.Bucket([]byte(bucket)).Delete(positionKey(v.position))
}

func (l *Log) tooManySubs(s *state) bool {
	return l.o.MaxSubscriptionEvents > 0 && s.subs > int64(l.o.MaxSubscriptionEvents)
}

func (l *Log) tooManyUpdates(s *state) bool {
	return l.o.MaxEvents > 0 && s.updates > int64(l.o.MaxEvents)
}

// excess tells whether the limits leave no room for an entry. Only the committer calls it.
func (l *Log) excess() bool {
	c := &l.committer
	return l.tooManySubs(&c.state) || l.tooManyUpdates(&c.state) || l.o.MaxBytes > 0 && c.used > l.o.MaxBytes && c.count() > 1 ||
		l.o.MaxAge > 0 && c.count() > 0 && c.oldest < time.Now().Add(-l.o.MaxAge).UnixMilli()
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
	next := l.committer.standing
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
