package segments

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/durable"
)

// withIndex calls fn with the index of a full segment, which the caller keeps open. When there is none, it is made from the
// records first, and when it turns out to be damaged, it is made anew and fn called again.
func (l *Log) withIndex(ctx context.Context, s *segment, fn func(*sealed) error) error {
	var bad *sealed
	for {
		x, err := l.index(ctx, s, bad)
		if err != nil {
			return err
		}
		err = guarded(func() error { return fn(x) })
		damage, ok := errors.AsType[indexError](err)
		switch {
		case !ok:
			return err
		case bad != nil:
			return fmt.Errorf("%w: %s: %w", history.ErrCorrupt, s.name, damage) // made a moment ago
		}
		l.o.Logger.Warn("history index is damaged and is made again",
			slog.String("segment", s.name), slog.String("reason", damage.Error()))
		bad = x
	}
}

// index returns the index of a full segment, other than the one that is known to be bad. It makes it when there is none.
func (l *Log) index(ctx context.Context, s *segment, bad *sealed) (*sealed, error) {
	if x := l.indexNow(s); x != nil && x != bad {
		return x, nil
	}
	s.building.Lock()
	defer s.building.Unlock()
	if x := l.indexNow(s); x != nil && x != bad {
		return x, nil
	}
	if s.broken != nil {
		return nil, s.broken
	}
	x, err := l.makeIndex(ctx, s)
	if err != nil {
		if errors.Is(err, history.ErrCorrupt) {
			s.broken = err
			// Whoever needs it fails, one call after the other; the operator is told once.
			l.o.Logger.Error("history segment is damaged: what it holds cannot be read",
				slog.String("segment", s.name), slog.String("error", err.Error()))
		}
		return nil, err
	}
	if bad != nil {
		s.retired = append(s.retired, bad)
	}
	l.mu.Lock()
	s.index, s.growing = x, nil
	s.oldest, s.newest, s.events, s.spare = x.oldest, x.newest, x.events, x.spare
	l.mu.Unlock()
	l.wakeJanitor() // to write it
	return x, nil
}

func (l *Log) indexNow(s *segment) *sealed {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return s.index
}

// makeIndex makes the index of a full segment, from what is known of its records or from the records themselves.
func (l *Log) makeIndex(ctx context.Context, s *segment) (*sealed, error) {
	l.mu.RLock()
	from := &segment{
		base: s.base, name: s.name, hollow: s.hollow, header: s.header, seed: s.seed, key: s.key, file: s.file,
		count: s.count, events: s.events, spare: s.spare, size: s.size, oldest: s.oldest, newest: s.newest, growing: s.growing,
	}
	l.mu.RUnlock()
	if from.growing == nil {
		count := from.count
		scan := &scanned{segment: from, end: from.size}
		switch err := scan.scan(ctx, l.hash, false); {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && !errors.Is(err, history.ErrCorrupt): // as Replay says when it cannot read a record
			return nil, fmt.Errorf("%w: make the index of %s: %w", history.ErrCorrupt, s.name, err)
		case err != nil:
			return nil, fmt.Errorf("make the index of %s: %w", s.name, err)
		}
		if from.count != count {
			return nil, fmt.Errorf("%w: %s holds %d records, and %d belong there", history.ErrCorrupt, s.name, from.count, count)
		}
	}
	x, err := newSealed(from.growing.image(from), from)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", history.ErrCorrupt, s.name, err)
	}
	return x, nil
}

// sealFull gives full segments an index file. It goes on with the next segment when one cannot be read, or its file not written: what
// keeps one from getting its index must not keep the indexes of all later ones in memory. The rest is left for another time when
// the disk is full.
func (l *Log) sealFull(ctx context.Context) error {
	var failed error
	for _, x := range l.extents() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !l.hold(&x) {
			continue
		}
		err := l.seal(ctx, x.segment)
		l.release(x.segment)
		switch {
		case err == nil || errors.Is(err, history.ErrCorrupt):
		case durable.IsNoSpace(err):
			return err
		case failed == nil:
			failed = err
		}
	}
	return failed
}

// seal makes the index file of a segment, unless it has one or is still written to. The caller keeps the segment open.
func (l *Log) seal(ctx context.Context, s *segment) error {
	l.sealing.Lock() // the janitor may be at it, and Compact
	defer l.sealing.Unlock()
	l.mu.RLock()
	done := s == l.active() || s.index != nil && s.index.stored
	l.mu.RUnlock()
	if done || l.o.ReadOnly {
		return nil
	}
	x, err := l.index(ctx, s, nil)
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, history.ErrCorrupt) {
			l.tellUnstored(s, err)
		}
		return err
	}
	if !l.countIndex(s, int64(len(x.data))) {
		return nil
	}
	stored, err := l.storeIndex(s, x)
	if err != nil {
		l.countIndex(s, 0)
		l.tellUnstored(s, err)
		return err
	}
	l.mu.Lock()
	current := s.index == x
	if current {
		s.index = stored
	}
	l.mu.Unlock()
	if !current {
		return stored.close() // found damaged meanwhile
	}
	return nil
}

// countIndex counts the index file as one of the store, before it is written, so that the files never exceed the limit. It tells
// whether the segment has outlived that.
func (l *Log) countIndex(s *segment, size int64) bool {
	l.mu.Lock()
	if s.trimmed.Load() {
		l.mu.Unlock()
		return false
	}
	l.bytes += size - s.indexed
	s.indexed = size
	dropped := l.trim()
	l.mu.Unlock()
	if dropped {
		l.reap()
	}
	return !s.trimmed.Load()
}

// storeIndex writes the index of a segment to its file and returns it as a mapping of that.
//
// The name is not made durable: an index that a loss of power takes away is made again. The contents are, so that a file with the
// name is whole.
func (l *Log) storeIndex(s *segment, x *sealed) (*sealed, error) {
	name := s.indexName()
	temp := name + tempSuffix
	err := l.writeIndex(temp, x.data)
	if err == nil {
		err = l.folder.Rename(temp, name)
	}
	if err != nil {
		return nil, errors.Join(err, l.removeIfThere(temp))
	}
	return l.openIndex(s)
}

func (l *Log) writeIndex(name string, data []byte) error {
	if err := l.removeIfThere(name); err != nil {
		return err
	}
	f, err := l.folder.Create(name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// openIndex maps the index file of a segment. Of its contents it looks at the header alone. The error is an indexError when the
// file is not what it should be.
func (l *Log) openIndex(s *segment) (*sealed, error) {
	f, err := l.folder.Open(s.indexName())
	if err != nil {
		return nil, err
	}
	data, free, err := mapWhole(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, errors.Join(err, freed(free))
	}
	var x *sealed
	err = guarded(func() (err error) {
		x, err = newSealed(data, s)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, freed(free))
	}
	x.free, x.stored = free, true
	return x, nil
}

func mapWhole(f file) ([]byte, func() error, error) {
	size, err := f.Size()
	switch {
	case err != nil:
		return nil, nil, err
	case size < indexHeaderSize || size > maxIndexBytes:
		return nil, nil, indexError("of an impossible size")
	}
	return f.Map(int(size))
}

func freed(free func() error) error {
	if free == nil {
		return nil
	}
	return free()
}

// tellUnstored tells the operator, once for each segment, that its index file cannot be written.
func (l *Log) tellUnstored(s *segment, err error) {
	if s.unstored.Swap(true) {
		return
	}
	l.o.Logger.Warn("history index was not written: it stays in memory, and is tried again later",
		slog.String("segment", s.name), slog.String("error", err.Error()))
}
