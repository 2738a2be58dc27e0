package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"

	"go.etcd.io/bbolt"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

var _ history.Backupper = (*Log)(nil)

// Backup implements history.Backupper. The copy is the database as one transaction sees it, pages that are free included, and an epoch of its
// own. What is appended while it is taken goes to other pages, so the file may grow by as much.
func (l *Log) Backup(ctx context.Context, create history.CreateFile) error {
	if err := l.calls.Begin(ctx); err != nil {
		return fmt.Errorf("back up bolt: %w", err)
	}
	defer l.calls.Done()
	if err := l.backup(ctx, create); err != nil {
		return fmt.Errorf("back up bolt: %w", err)
	}
	return nil
}

func (l *Log) backup(ctx context.Context, create history.CreateFile) error {
	done, err := l.beginUpkeep(ctx)
	if err != nil {
		return err
	}
	defer done()
	err = l.view(func(tx *bbolt.Tx) error {
		return writeFile(create, fileName, tx.Size(), func(w io.Writer) error {
			out := &stoppable{under: w, mayGoOn: func() error { return l.calls.MayGoOn(ctx) }}
			_, err := tx.WriteTo(out)
			if out.err != nil {
				return out.err // bbolt's has no cause
			}
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = fmt.Errorf("%w: %s is cut off: %w", history.ErrCorrupt, fileName, err)
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	epoch := newEpoch() + "\n"
	return writeFile(create, epochName, int64(len(epoch)), func(w io.Writer) error {
		_, err := io.WriteString(w, epoch)
		return err
	})
}

// beginUpkeep waits until no copy and no compaction is under way; the caller must call done.
func (l *Log) beginUpkeep(ctx context.Context) (done func(), err error) {
	select {
	case l.upkeep <- struct{}{}:
		return func() { <-l.upkeep }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// writeFile makes one file of a copy.
func writeFile(create history.CreateFile, name string, size int64, fill func(io.Writer) error) (err error) {
	w, err := create(name, size)
	if err != nil {
		return err
	}
	defer func() {
		if closed := w.Close(); err == nil { // a failure before it is the cause of what it complains about
			err = closed
		}
	}()
	return fill(w)
}

// stoppable is a writer for a copy that must end when its caller or the log does. It has no other methods that write, so that everything goes
// through this one, and remembers its error.
type stoppable struct {
	under   io.Writer
	mayGoOn func() error
	err     error
}

func (s *stoppable) Write(p []byte) (n int, err error) {
	if s.err == nil {
		s.err = s.mayGoOn()
	}
	if s.err == nil {
		n, s.err = s.under.Write(p)
	}
	return n, s.err
}
