package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

var _ history.Verifier = (*Log)(nil)

// verifySteps is how many entries, or keys of an index, are checked in one transaction.
const verifySteps = 4096

// Verify implements history.Verifier. The pages are read first: see checkPages. Then every entry is read and looked up in both indexes, and every
// key of an index is looked up among the entries, some thousand in a transaction, so that nobody waits. Where nothing was stored or trimmed
// meanwhile, the numbers of the entries are compared too.
func (l *Log) Verify(ctx context.Context) (history.Verification, error) {
	if err := l.calls.Begin(ctx); err != nil {
		return history.Verification{}, fmt.Errorf("verify bolt: %w", err)
	}
	defer l.calls.Done()
	v, err := l.verify(ctx)
	if err != nil {
		return history.Verification{}, fmt.Errorf("verify bolt: %w", err)
	}
	return v, nil
}

func (l *Log) verify(ctx context.Context) (history.Verification, error) {
	var before state
	err := l.view(func(tx *bbolt.Tx) (err error) {
		if err := l.checkPages(ctx, tx); err != nil {
			return err
		}
		before, err = readState(tx)
		return err
	})
	if err != nil {
		return history.Verification{}, err
	}
	var sum state
	first, last := l.bounds()
	if err := l.verifyEntries(ctx, last, &sum); err != nil {
		return history.Verification{}, err
	}
	if err := l.verifyIndex(ctx, idsBucket, l.checkID); err != nil {
		return history.Verification{}, err
	}
	if err := l.verifyIndex(ctx, topicsBucket, l.checkTopic); err != nil {
		return history.Verification{}, err
	}
	err = l.view(func(tx *bbolt.Tx) error {
		after, err := readState(tx)
		if err != nil || after != before || after.last != last || after.first < first { // what is hidden was not counted
			return err
		}
		if sum.updates != after.updates || sum.subs != after.subs || sum.bytes != after.bytes {
			return fmt.Errorf("%w: %s: %d updates and %d subscription events of %d bytes, and it should be %d and %d of %d", history.ErrCorrupt, fileName,
				sum.updates, sum.subs, sum.bytes, after.updates, after.subs, after.bytes)
		}
		return nil
	})
	return history.Verification{Segments: 1, Indexes: 2, Events: sum.count(), Bytes: sum.bytes}, err
}

// verifyEntries reads the entries up to last, looks them up in the indexes, and counts them.
func (l *Log) verifyEntries(ctx context.Context, last history.Position, sum *state) error {
	for after := history.Position(0); after < last; {
		if err := l.calls.MayGoOn(ctx); err != nil {
			return err
		}
		err := l.stretch(after, last, func(tx *bbolt.Tx, s stretch) (err error) {
			after, err = l.verifySome(ctx, tx, s, sum)
			return err
		})
		switch {
		case errors.Is(err, history.ErrPositionGone):
			first, _ := l.bounds()
			after = max(after+1, first-1) // trimmed meanwhile, that is the one after it at least
		case err != nil:
			return err
		}
	}
	return nil
}

// verifySome does so with the first entries of the stretch and returns how far it came.
func (l *Log) verifySome(ctx context.Context, tx *bbolt.Tx, s stretch, sum *state) (through history.Position, err error) {
	through = s.to
	if s.from > s.to {
		return through, nil // all of it was trimmed
	}
	steps := 0
	err = eachRecord(ctx, tx, s, func(v *view) error {
		bytes, err := l.checkIndexed(tx, v)
		if err != nil {
			return err
		}
		sum.bytes += bytes
		if v.subscription {
			sum.subs++
		} else {
			sum.updates++
		}
		if steps++; steps == verifySteps {
			through = v.position
			return errEnough
		}
		return nil
	})
	return through, err
}

// checkIndexed checks that the indexes know the record, and returns what it and its keys there take.
func (l *Log) checkIndexed(tx *bbolt.Tx, v *view) (bytes int64, err error) {
	id := l.key.idKey(string(v.id), v.position)
	if !has(tx.Bucket([]byte(idsBucket)), id) {
		return 0, damaged(v.position, recordError("the index of ids lacks it"))
	}
	bytes = int64(8 + v.size + len(id))
	topics := tx.Bucket([]byte(topicsBucket))
	err = v.eachTopic(func(t []byte, normal bool) error {
		k := l.key.topicKey(string(t), normal, v.position)
		bytes += int64(len(k))
		if !has(topics, k) {
			return damaged(v.position, recordError("the index of topics lacks it"))
		}
		return nil
	})
	return bytes, err
}

func has(b *bbolt.Bucket, key []byte) bool {
	k, _ := b.Cursor().Seek(key)
	return bytes.Equal(k, key)
}

// verifyIndex checks that each key of an index belongs to a record.
func (l *Log) verifyIndex(ctx context.Context, bucket string, check func(*view, []byte) bool) error {
	var next []byte
	for more := true; more; more = next != nil {
		if err := l.calls.MayGoOn(ctx); err != nil {
			return err
		}
		err := l.view(func(tx *bbolt.Tx) (err error) {
			next, err = verifyKeys(tx, bucket, next, check)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// verifyKeys does so with some keys, from one on, and returns the next one; nil at the end.
func verifyKeys(tx *bbolt.Tx, bucket string, from []byte, check func(*view, []byte) bool) (next []byte, err error) {
	records := newFinder(tx)
	w := newWalker(tx, bucket)
	err = w.seek(from)
	for n := 0; err == nil && w.key != nil && n < verifySteps; n++ {
		v, err := records.record(keyPosition(w.key))
		if err != nil {
			return nil, err
		}
		if !check(&v, w.key) {
			return nil, damaged(v.position, recordError("the index of "+bucket+" has it under another key"))
		}
		if err := w.next(); err != nil {
			return nil, err
		}
	}
	return bytes.Clone(w.key), err
}

func (l *Log) checkID(v *view, key []byte) bool {
	return bytes.Equal(key, l.key.idKey(string(v.id), v.position))
}

func (l *Log) checkTopic(v *view, key []byte) bool {
	found := false
	_ = v.eachTopic(func(t []byte, normal bool) error { // fails with what the function returns alone
		found = found || bytes.Equal(key, l.key.topicKey(string(t), normal, v.position))
		return nil
	})
	return found
}
