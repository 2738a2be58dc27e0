package bolt

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/durable"
)

var _ history.Compacter = (*Log)(nil)

// Compact implements history.Compacter. It trims what the limits say and writes the database anew without what is free, which takes as much
// space again while it lasts. Appends wait for all of it, which is as long as the disk takes to read and write the entries; readers for the moment in which the files
// change places alone. A copy that is being taken is waited for. When the context ends, or the log closes, everything is as it was.
func (l *Log) Compact(ctx context.Context) (history.Compaction, error) {
	if err := l.calls.Begin(ctx); err != nil {
		return history.Compaction{}, fmt.Errorf("compact bolt: %w", err)
	}
	defer l.calls.Done()
	var c history.Compaction
	done, err := l.beginUpkeep(ctx)
	if err == nil {
		defer done()
		finished := make(chan struct{}) // closed by the committer, which goes on until no call is left
		l.queue.run(func() {
			c, err = l.compact(ctx)
			close(finished)
		})
		<-finished
	}
	if err != nil {
		return history.Compaction{}, fmt.Errorf("compact bolt: %w", err)
	}
	return c, nil
}

// compact is run by the committer.
func (l *Log) compact(ctx context.Context) (c history.Compaction, err error) {
	if err := l.health.Err(); err != nil {
		return c, err
	}
	if err := l.view(func(tx *bbolt.Tx) error { return l.checkPages(ctx, tx) }); err != nil {
		return c, err
	}
	for l.excess() {
		if err := l.trimOnce(); err != nil {
			return c, err
		}
		if err := l.calls.MayGoOn(ctx); err != nil {
			return c, err
		}
	}
	if c.Before, err = l.fileSize(); err != nil {
		return c, err
	}
	if err := l.rewrite(ctx); err != nil {
		if durable.IsNoSpace(err) {
			err = fmt.Errorf("%w: %w", history.ErrNoSpace, err)
		}
		return c, errors.Join(err, l.folder.settle())
	}
	if err := l.exchange(); err != nil {
		return c, errors.Join(err, l.folder.settle())
	}
	c.After, err = l.fileSize()
	return c, err
}

func (l *Log) fileSize() (int64, error) {
	info, err := l.folder.Root().Stat(fileName)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// rewrite makes a durable copy of the database beside it.
func (l *Log) rewrite(ctx context.Context) error {
	if err := l.folder.settle(); err != nil {
		return err
	}
	db, file, err := openFile(l.folder.File(fileName+tempSuffix), l.o)
	if err != nil {
		return err
	}
	db.NoSync = true // it is synced as a whole
	err = contain(func() error { return l.db.View(func(tx *bbolt.Tx) error { return l.copyBuckets(ctx, tx, db) }) })
	if errors.Is(err, errPanicked) {
		return errors.Join(err, abandon(file))
	}
	if err == nil {
		err = db.Sync()
	}
	return errors.Join(err, db.Close())
}

// copyBuckets copies what the transaction sees, in the order of the keys, so that pages become full.
func (l *Log) copyBuckets(ctx context.Context, from *bbolt.Tx, to *bbolt.DB) error {
	for _, name := range []string{entriesBucket, subsBucket, idsBucket, topicsBucket, metaBucket} {
		w := newWalker(from, name)
		if err := w.seek(nil); err != nil {
			return err
		}
		for more := true; more; more = w.key != nil {
			if err := l.calls.MayGoOn(ctx); err != nil {
				return err
			}
			if err := to.Update(func(tx *bbolt.Tx) error { return copySome(tx, &w) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// copySome copies what one transaction takes of a bucket, from where the walker stands on, and leaves that where it stopped.
func copySome(tx *bbolt.Tx, w *walker) error {
	bucket, err := tx.CreateBucketIfNotExists([]byte(w.bucket))
	if err != nil {
		return err
	}
	bucket.FillPercent = fill
	for bytes := 0; w.key != nil && bytes < commitBytes; {
		bytes += len(w.key) + len(w.value)
		if err := bucket.Put(w.key, w.value); err != nil {
			return err
		}
		if err := w.next(); err != nil {
			return err
		}
	}
	return nil
}

// exchange puts the copy in the place of the database. The lock on the folder keeps others away while neither is open.
func (l *Log) exchange() error {
	l.swap.Lock()
	defer l.swap.Unlock()
	err := l.db.Close()
	l.db, l.file = nil, nil
	if err == nil {
		err = l.folder.rename(fileName)
	}
	// Whichever has the name now is whole.
	db, file, opened := openFile(l.folder.File(fileName), l.o)
	if opened != nil {
		return l.health.Fail(errors.Join(err, opened))
	}
	l.db, l.file = db, file
	l.measure()
	if err != nil {
		return err
	}
	// Until the name is durable, a loss of power brings back the old file, which lacks what would be appended from now on.
	if err := l.folder.sync(); err != nil {
		return l.health.Fail(err)
	}
	return nil
}
