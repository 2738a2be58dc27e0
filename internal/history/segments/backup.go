package segments

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

var _ history.Backupper = (*Log)(nil)

// backupBytes is how much of a copy is written at a time.
const backupBytes = 256 << 10

// Backup implements history.Backupper. The files are segments of a new store, the newest one first: so what retention
// removes meanwhile is always what has not been copied yet, and no gap can arise. At any time only the file being
// copied is kept from being removed. Each record is checked; one that cannot be read fails with history.ErrCorrupt.
func (l *Log) Backup(ctx context.Context, create history.CreateFile) error {
	if err := l.calls.Begin(ctx); err != nil {
		return fmt.Errorf("back up segments: %w", err)
	}
	defer l.calls.Done()
	if err := l.backup(ctx, create); err != nil {
		return fmt.Errorf("back up segments: %w", err)
	}
	return nil
}

func (l *Log) backup(ctx context.Context, create history.CreateFile) error {
	var store storeID
	_, _ = rand.Read(store[:]) // never fails: crypto/rand aborts the program instead
	l.mu.RLock()
	list := l.extentsNow()
	newest := len(list) - 1
	list[newest].segment.readers.Add(1) // now: a hollow one, which may hold more by the time, is never the last of a store
	l.mu.RUnlock()
	for i, x := range slices.Backward(list) {
		if i != newest && !l.hold(&x) {
			return nil // trimmed, and with it all older ones
		}
		err := l.copySegment(ctx, x, store, create)
		l.release(x.segment)
		if err != nil {
			return fmt.Errorf("%s: %w", x.segment.name, err)
		}
	}
	return nil
}

// extent is what was committed to a segment at some moment.
type extent struct {
	segment *segment
	count   int
	size    int64
}

// extents returns the segments as they are at this moment.
func (l *Log) extents() []extent {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.extentsNow()
}

// extentsNow is extents for a caller who holds the lock.
func (l *Log) extentsNow() []extent {
	list := make([]extent, len(l.segments))
	for i, s := range l.segments {
		list[i] = extent{segment: s, count: s.count, size: s.size}
	}
	return list
}

// hold keeps a segment's file open and there until release, or returns false when it is no longer part of the log. Where a hollow segment
// has taken its place, the extent is all of that from now on.
func (l *Log) hold(x *extent) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if x.segment.trimmed.Load() {
		i, ok := l.number(x.segment.base)
		if !ok {
			return false
		}
		s := l.segments[i]
		*x = extent{segment: s, count: s.count, size: s.size}
	}
	x.segment.readers.Add(1) // under the lock, so that reap sees it
	return true
}

func (l *Log) release(s *segment) {
	if s.readers.Add(-1) == 0 && s.trimmed.Load() {
		l.wakeJanitor()
	}
}

// copySegment writes a segment of the store, with the records of the extent.
func (l *Log) copySegment(ctx context.Context, x extent, store storeID, create history.CreateFile) (err error) {
	w, err := create(x.segment.name, x.size)
	if err != nil {
		return err
	}
	defer func() {
		if closed := w.Close(); err == nil { // a failure before it is the cause of what it complains about
			err = closed
		}
	}()
	h := header{base: x.segment.base, created: time.Now(), store: store, before: x.segment.header.before}
	_, _ = rand.Read(h.salt[:])
	head, seed := h.encode()
	if _, err := w.Write(head); err != nil {
		return err
	}
	return l.copyRecords(ctx, x, seed, w)
}

// copyRecords writes the records of the extent with checksums that continue from seed.
func (l *Log) copyRecords(ctx context.Context, x extent, seed uint32, w io.Writer) error {
	r := recordReader{file: x.segment.file, seed: x.segment.seed, next: headerSize, end: x.size, want: backupBytes}
	out := make([]byte, 0, 2*backupBytes)
	for n := range x.count {
		p := x.segment.base + history.Position(n)
		v, err := r.read()
		if err == nil && v.position != p {
			err = recordError("position out of order")
		}
		if err != nil {
			return x.segment.damaged(&r, p, err)
		}
		start := len(out)
		out = append(out, r.buf[r.pos-v.size:r.pos]...)
		binary.LittleEndian.PutUint32(out[start+4:], recordSum(seed, out[start:]))
		if len(out) < backupBytes && n < x.count-1 {
			continue
		}
		if err := l.calls.MayGoOn(ctx); err != nil {
			return err
		}
		if _, err := w.Write(out); err != nil {
			return err
		}
		out = out[:0]
	}
	return nil
}
