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

// Verify implements history.Verifier. Every entry is read and looked up in both indexes, and every key of an index is looked up
// among the entries, some thousand in a transaction, so that nobody waits.
func (l *Log) Verify(ctx context.Context) (history.Verification, error) {
	if err := l.calls.Begin(ctx); err != nil {
		return history.Verification{}, fmt.Errorf("verify bolt: %w", err)
	}
	defer l.calls.Done()
	v := history.Verification{Segments: 1, Indexes: 2}
	err := l.verifyEntries(ctx, &v)
	if err == nil {
		err = l.verifyIndex(ctx, idsBucket, l.checkID)
	}
	if err == nil {
		err = l.verifyIndex(ctx, topicsBucket, l.checkTopic)
	}
	if err != nil {
		return history.Verification{}, fmt.Errorf("verify bolt: %w", err)
	}
	return v, nil
}

// verifyEntries reads the entries and looks them up in the indexes.
func (l *Log) verifyEntries(ctx context.Context, sum *history.Verification) error {
	_, last := l.bounds()
	for after := history.Position(0); after < last; {
		if err := l.calls.MayGoOn(ctx); err != nil {
			return err
		}
		err := l.stretch(after, last, func(tx *bbolt.Tx, s stretch) error {
			s.to = min(s.to, s.from+verifySteps-1)
			after = s.to
			return eachRecord(ctx, tx, s, func(v *view) error {
				bytes, err := l.checkIndexed(tx, v)
				sum.Events++
				sum.Bytes += bytes
				return err
			})
		})
		switch {
		case errors.Is(err, history.ErrPositionGone):
			first, _ := l.bounds()
			after = max(after+1, first-1) // trimmed meanwhile, that is the one after it at least
		case err != nil:
			return err
		case after == 0:
			return nil // all of it was
		}
	}
	return nil
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
	for more := true; more; {
		if err := l.calls.MayGoOn(ctx); err != nil {
			return err
		}
		err := l.view(func(tx *bbolt.Tx) error {
			entries := tx.Bucket([]byte(entriesBucket))
			cursor := tx.Bucket([]byte(bucket)).Cursor()
			k, _ := cursor.Seek(next)
			for n := 0; k != nil && n < verifySteps; n++ {
				v, err := record(entries, keyPosition(k))
				if err != nil {
					return err
				}
				if !check(&v, k) {
					return damaged(v.position, recordError("the index of "+bucket+" has it under another key"))
				}
				k, _ = cursor.Next()
			}
			next, more = bytes.Clone(k), k != nil
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
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
