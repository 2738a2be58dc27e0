package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/cinnabar-hub/cinnabar/internal/presence"
)

// fillPercent is how full bbolt makes pages: nothing is ever put between what is there.
const fillPercent = 0.95

// reapBytes bounds the records of more than one subscriber that a call of Reap gives: one alone can be megabytes, and a hub asks for many.
const reapBytes = 4 << 20

// errDoubtful says that a write has failed in a way that leaves it open what is on the disk.
var errDoubtful = errors.New("local: nothing is kept after a failed write until the file is reopened")

// Directory is a presence.Directory in a file.
type Directory struct {
	closing chan struct{} // closed by Close
	once    sync.Once
	// turn holds a value while a call, which alone may then, uses what follows. Its capacity is 1, nobody closes it, and Close never takes its value out.
	turn chan struct{}

	db     *bbolt.DB
	file   *os.File // what db has open
	size   int64    // of the file when it was opened, in bytes
	stuck  bool     // bbolt has panicked in a transaction: the database cannot be closed
	failed error    // why nothing can be changed any more

	keys map[string]uint64 // by id, of the subscribers of this process and of those that it has reaped
	next uint64            // the next subscriber's key
	reap uint64            // where Reap goes on; what is there from here up to gone is for it
	gone uint64            // the first key of this process
}

var _ presence.Directory = (*Directory)(nil)

// begin waits for the caller's turn, which ends with d.end when begin returns nil.
func (d *Directory) begin(ctx context.Context) error {
	if d.isClosing() {
		return presence.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-d.closing:
		return presence.ErrClosed
	}
	if d.isClosing() {
		d.end()
		return presence.ErrClosed
	}
	return nil
}

func (d *Directory) end() { <-d.turn }

func (d *Directory) isClosing() bool {
	select {
	case <-d.closing:
		return true
	default:
		return false
	}
}

// Put implements presence.Directory. It fails when there is no space on the disk, and may succeed when there is some again; after other
// failed writes everything fails that would change something.
func (d *Directory) Put(ctx context.Context, subscribers []presence.Subscriber) error {
	if err := d.put(ctx, subscribers); err != nil {
		return fmt.Errorf("put subscribers: %w", err)
	}
	return nil
}

func (d *Directory) put(ctx context.Context, subscribers []presence.Subscriber) error {
	if err := d.begin(ctx); err != nil {
		return err
	}
	defer d.end()
	if len(subscribers) == 0 {
		return nil
	}
	err := d.update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket([]byte(bucketName))
		bucket.FillPercent = fillPercent
		var buf, k []byte
		for i := range subscribers {
			key := d.next + uint64(i)
			// bbolt keeps the value until the commit: each has its own part of the buffer, or of one before it.
			start := len(buf)
			buf = appendRecord(buf, key, &subscribers[i])
			k = appendKey(k[:0], key) // which bbolt copies
			if err := bucket.Put(k, buf[start:len(buf):len(buf)]); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	for i := range subscribers {
		d.keys[subscribers[i].ID] = d.next
		d.next++
	}
	return nil
}

// Remove implements presence.Directory. It fails as Put does.
func (d *Directory) Remove(ctx context.Context, ids []string) error {
	if err := d.remove(ctx, ids); err != nil {
		return fmt.Errorf("remove subscribers: %w", err)
	}
	return nil
}

func (d *Directory) remove(ctx context.Context, ids []string) error {
	if err := d.begin(ctx); err != nil {
		return err
	}
	defer d.end()
	var keys [][]byte
	for _, id := range ids {
		if key, ok := d.keys[id]; ok {
			keys = append(keys, appendKey(nil, key))
		}
	}
	if len(keys) == 0 {
		return nil
	}
	err := d.update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket([]byte(bucketName))
		for _, key := range keys {
			if err := bucket.Delete(key); err != nil { // of one that is there twice too
				return err
			}
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	for _, id := range ids {
		delete(d.keys, id)
	}
	if len(d.keys) == 0 {
		d.keys = map[string]uint64{} // a map keeps the memory of the most it ever held
	}
	return nil
}

// Reap implements presence.Directory. It gives fewer than limit where they are large. A record that has become unreadable since the file was opened is an error, and passed over by
// the next call.
func (d *Directory) Reap(ctx context.Context, limit int) ([]presence.Subscriber, error) {
	found, err := d.reapSome(ctx, max(limit, 1))
	if err != nil {
		return nil, fmt.Errorf("reap subscribers: %w", err)
	}
	return found, nil
}

func (d *Directory) reapSome(ctx context.Context, limit int) ([]presence.Subscriber, error) {
	if err := d.begin(ctx); err != nil {
		return nil, err
	}
	defer d.end()
	if d.reap == d.gone {
		return nil, nil
	}
	var r reaping
	err := contain(func() error {
		return d.db.View(func(tx *bbolt.Tx) error { return r.read(ctx, tx, d.reap, d.gone, limit) })
	})
	if err != nil {
		d.reap = max(d.reap, r.next)
		return nil, err
	}
	d.reap = r.next
	for i := range r.found {
		d.keys[r.found[i].ID] = r.keys[i]
	}
	return r.found, nil
}

// reaping is what a call of Reap finds.
type reaping struct {
	found []presence.Subscriber
	keys  []uint64 // of those
	next  uint64   // where the next call goes on; after an error 0 for where this one began
}

// read reads the records of the keys from first up to end, at most limit of them.
func (r *reaping) read(ctx context.Context, tx *bbolt.Tx, first, end uint64, limit int) error {
	size := 0
	cursor := tx.Bucket([]byte(bucketName)).Cursor()
	for k, v := cursor.Seek(appendKey(nil, first)); k != nil; k, v = cursor.Next() {
		key, err := parseKey(k)
		if err != nil {
			return fmt.Errorf("%w: wrong key", errDamaged)
		}
		if key >= end {
			break
		}
		size += len(v)
		if len(r.found) == limit || len(r.found) > 0 && size > reapBytes {
			r.next = key
			return nil
		}
		s, err := decodeRecord(key, v)
		switch {
		case err != nil && len(r.found) > 0:
			r.next = key // for the next call, so that those before it are not lost with it
			return nil
		case err != nil:
			r.next = key + 1
			return damaged(key, err)
		}
		r.found, r.keys = append(r.found, s), append(r.keys, key)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	r.next = end
	return nil
}

// update runs fn in a write transaction and commits it. It is the caller's turn.
func (d *Directory) update(fn func(tx *bbolt.Tx) error) error {
	if d.failed != nil {
		return d.failed
	}
	var given error // by fn: then nothing was written
	err := contain(func() error {
		return d.db.Update(func(tx *bbolt.Tx) error {
			given = fn(tx)
			return given
		})
	})
	if err == nil {
		return nil
	}
	d.stuck = errors.Is(err, errPanicked)
	// A write that found no space came before the one that makes a transaction valid, or did not change a page: bbolt has put everything back.
	p, ok := errors.AsType[*fs.PathError](err)
	noSpace := ok && p.Op == "write" && isNoSpace(err)
	if !noSpace && given == nil {
		d.failed = fmt.Errorf("%w: %w", errDoubtful, err)
		return d.failed
	}
	return err
}

// Close implements presence.Directory.
func (d *Directory) Close() error {
	var err error
	d.once.Do(func() {
		close(d.closing)
		d.turn <- struct{}{}
		err = d.closeFile()
	})
	if err != nil {
		return fmt.Errorf("close presence: %w", err)
	}
	return nil
}

func (d *Directory) closeFile() error {
	d.keys = nil
	if d.stuck {
		return abandon(d.file) // the database would wait for the transaction that has panicked
	}
	return d.db.Close()
}
