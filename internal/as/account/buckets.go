package account

import (
	"container/list"
	"time"
)

// buckets are token buckets by key. A bucket is kept as the instant at which it is full again, which makes the arithmetic exact (it is
// the generic cell rate algorithm). Full ones are not kept, and of the others at most a fixed number: the one not asked for longest is
// dropped first. They are not safe for concurrent use.
type buckets struct {
	limit   Limit
	entries int
	byKey   map[string]*list.Element
	order   *list.List // of *bucket, the one asked for last first
}

type bucket struct {
	key  string
	full time.Time
}

func newBuckets(l Limit, entries int) *buckets {
	return &buckets{limit: l, entries: entries, byKey: make(map[string]*list.Element), order: list.New()}
}

// wait returns how long it takes until a token is there, 0 when one is.
func (b *buckets) wait(key string, now time.Time) time.Duration {
	v := b.find(key, now)
	if v == nil {
		return 0
	}
	return max(v.full.Sub(now)-time.Duration(b.limit.Burst-1)*b.limit.Every, 0)
}

// take removes a token that is there.
func (b *buckets) take(key string, now time.Time) {
	v := b.find(key, now)
	if v == nil {
		if b.order.Len() >= b.entries {
			b.drop(b.order.Back())
		}
		v = &bucket{key: key, full: now}
		b.byKey[key] = b.order.PushFront(v)
	}
	v.full = v.full.Add(b.limit.Every)
}

// put gives a token back; a bucket that is not kept is full anyhow.
func (b *buckets) put(key string, now time.Time) {
	if v := b.find(key, now); v != nil {
		v.full = v.full.Add(-b.limit.Every)
	}
}

// forget makes the bucket full.
func (b *buckets) forget(key string) {
	if e, ok := b.byKey[key]; ok {
		b.drop(e)
	}
}

// find returns a bucket that is not full, or nil. An attempt that is refused counts as asking for it: a flood must not push out the
// bucket that refuses it.
func (b *buckets) find(key string, now time.Time) *bucket {
	e, ok := b.byKey[key]
	if !ok {
		return nil
	}
	v := value(e)
	if !v.full.After(now) {
		b.drop(e)
		return nil
	}
	if empty := now.Add(time.Duration(b.limit.Burst) * b.limit.Every); v.full.After(empty) {
		v.full = empty // the clock was set back
	}
	b.order.MoveToFront(e)
	return v
}

func (b *buckets) drop(e *list.Element) {
	delete(b.byKey, value(e).key)
	b.order.Remove(e)
}

func value(e *list.Element) *bucket {
	v, ok := e.Value.(*bucket)
	if !ok {
		panic("account: a list of buckets holds something else") // only take puts elements in
	}
	return v
}
