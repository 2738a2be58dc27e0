package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// walker goes through the keys of a bucket. Unlike bbolt's cursor it comes to an end on damaged pages as well, since keys have to increase.
type walker struct {
	bucket string
	cursor *bbolt.Cursor // nil for a bucket that is not there, which is as good as an empty one
	key    []byte        // where it stands; nil at the end
	value  []byte
}

func newWalker(tx *bbolt.Tx, bucket string) walker {
	w := walker{bucket: bucket}
	if b := tx.Bucket([]byte(bucket)); b != nil {
		w.cursor = b.Cursor()
	}
	return w
}

// seek goes to the first key from the given one on.
func (w *walker) seek(key []byte) error {
	if w.cursor == nil {
		return nil
	}
	w.key, w.value = w.cursor.Seek(key)
	if w.key != nil && bytes.Compare(w.key, key) < 0 {
		return w.disorder()
	}
	return nil
}

// next goes to the next key.
func (w *walker) next() error {
	before := w.key
	w.key, w.value = w.cursor.Next()
	if w.key != nil && bytes.Compare(w.key, before) <= 0 {
		return w.disorder()
	}
	return nil
}

func (w *walker) disorder() error {
	w.key, w.value = nil, nil
	return fmt.Errorf("%w: %s: the keys of bucket %s are not in order", history.ErrCorrupt, fileName, w.bucket)
}

// records goes through the records of both buckets in the order of their positions.
type records struct {
	updates walker
	subs    walker
}

// recordsFrom starts with the first record from the position on.
func recordsFrom(tx *bbolt.Tx, p history.Position) (*records, error) {
	r := &records{updates: newWalker(tx, entriesBucket), subs: newWalker(tx, subsBucket)}
	return r, r.seek(p)
}

func (r *records) seek(p history.Position) error {
	key := positionKey(p)
	if err := r.updates.seek(key); err != nil {
		return err
	}
	return r.subs.seek(key)
}

// at returns the walker that stands at the next record; nil at the end.
func (r *records) at() *walker {
	switch {
	case r.subs.key == nil && r.updates.key == nil:
		return nil
	case r.subs.key == nil, r.updates.key != nil && bytes.Compare(r.updates.key, r.subs.key) < 0:
		return &r.updates
	}
	return &r.subs
}

// next goes to the next record.
func (r *records) next() error { return r.at().next() }

// view reads the record it stands at; ok is false at the end.
func (r *records) view() (v view, ok bool, err error) {
	w := r.at()
	if w == nil {
		return view{}, false, nil
	}
	v, err = decodeIn(w.bucket, w.key, w.value)
	if err == nil && bytes.Equal(r.subs.key, r.updates.key) {
		err = damaged(v.position, recordError("it is there twice"))
	}
	return v, true, err
}

// decodeIn checks the record of a bucket.
func decodeIn(bucket string, key, raw []byte) (view, error) {
	p := keyPosition(key)
	v, err := decodeRecord(p, raw)
	if err == nil && v.subscription != (bucket == subsBucket) {
		err = recordError("it is in the wrong bucket")
	}
	if err != nil {
		return view{}, damaged(p, err)
	}
	return v, nil
}

// errEnough ends a walk.
var errEnough = errors.New("enough")

// eachRecord calls fn with the records of the stretch in order until it returns errEnough. The stretch must not be empty, nor end beyond the head.
func eachRecord(ctx context.Context, tx *bbolt.Tx, s stretch, fn func(*view) error) error {
	r, err := recordsFrom(tx, s.from)
	for n := 1; err == nil; n++ {
		var v view
		var ok bool
		switch v, ok, err = r.view(); {
		case err != nil:
			return err
		case !ok: // the newest entry stays as long as there is another one
			return fmt.Errorf("%w: %s: nothing is there up to record %d", history.ErrCorrupt, fileName, s.to)
		case v.position > s.to:
			return nil
		}
		switch err := fn(&v); {
		case errors.Is(err, errEnough):
			return nil
		case err != nil:
			return err
		}
		if v.position == s.to {
			return nil
		}
		if n%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		err = r.next()
	}
	return err
}

// finder finds records that an index knows.
type finder struct {
	updates *bbolt.Bucket
	subs    *bbolt.Bucket // nil when there is none
}

func newFinder(tx *bbolt.Tx) finder {
	return finder{updates: tx.Bucket([]byte(entriesBucket)), subs: tx.Bucket([]byte(subsBucket))}
}

// record returns the record at p.
func (f finder) record(p history.Position) (view, error) {
	key := positionKey(p)
	if raw := f.updates.Get(key); raw != nil {
		return decodeIn(entriesBucket, key, raw)
	}
	if f.subs != nil {
		if raw := f.subs.Get(key); raw != nil {
			return decodeIn(subsBucket, key, raw)
		}
	}
	return view{}, damaged(p, recordError("an index has it, and it is missing"))
}
