package segments

import (
	"context"
	"errors"
	"fmt"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// Seek implements history.Log. It looks the id up in every segment's index, from the oldest on, and checks the hit
// against the record. A segment that cannot be read is passed over; history.ErrCorrupt is returned when the id is in no other one.
func (l *Log) Seek(ctx context.Context, id string) (history.Position, error) {
	if err := l.calls.Begin(ctx); err != nil {
		return 0, fmt.Errorf("seek in segments: %w", err)
	}
	defer l.calls.Done()
	if id == "" { // which is what is left of entries that have gone
		return 0, fmt.Errorf("seek in segments: %w", history.ErrUnknownID)
	}
	p, err := l.seek(ctx, []byte(id))
	if err != nil {
		return 0, fmt.Errorf("seek in segments: %w", err)
	}
	return p, nil
}

func (l *Log) seek(ctx context.Context, id []byte) (history.Position, error) {
	list, first := l.holdAll()
	defer func() {
		for _, s := range list {
			l.release(s)
		}
	}()
	var damage error
	for _, s := range list {
		if err := l.calls.MayGoOn(ctx); err != nil {
			return 0, err
		}
		from := 0
		if first > s.base {
			from = int(first - s.base)
		}
		switch record, err := l.seekIn(ctx, s, id, from); {
		case errors.Is(err, history.ErrCorrupt):
			damage = err // what is in other segments can still be found
		case err != nil:
			return 0, err
		case record >= 0:
			return s.base + history.Position(record), nil
		}
	}
	if damage != nil {
		return 0, damage
	}
	return 0, history.ErrUnknownID
}

// holdAll keeps all segments open and there until each is released, and returns the position of the first retained record.
func (l *Log) holdAll() ([]*segment, history.Position) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	list := make([]*segment, len(l.segments))
	for i, s := range l.segments {
		s.readers.Add(1) // under the lock, so that reap sees it
		list[i] = s
	}
	return list, l.first
}

// seekIn returns the first record of a segment from the given one on that bears the id, or -1.
func (l *Log) seekIn(ctx context.Context, s *segment, id []byte, from int) (int, error) {
	hash := l.hash(s.key, id)
	for {
		at, err := l.nextHit(ctx, s, hash, from)
		if err != nil || at.record < 0 {
			return -1, err
		}
		same := false
		err = l.readPlace(s, at, func(v *view) { same = string(v.id) == string(id) })
		switch {
		case err != nil:
			return -1, err
		case same:
			return at.record, nil
		}
		from = at.record + 1 // another id with the same hash
	}
}

// nextHit returns where the first record from the given one on is whose id has the hash; its number is -1 when there is none.
func (l *Log) nextHit(ctx context.Context, s *segment, hash uint64, from int) (at place, err error) {
	l.mu.RLock()
	if x := s.growing; x != nil {
		defer l.mu.RUnlock()
		record, ok := x.next(hash, from)
		if !ok {
			return place{record: -1}, nil
		}
		return x.place(record, s.size), nil
	}
	l.mu.RUnlock()
	err = l.withIndex(ctx, s, func(x *sealed) error {
		record, ok, err := x.next(hash, from)
		if err != nil || !ok {
			at = place{record: -1}
			return err
		}
		at, err = x.place(record)
		return err
	})
	return at, err
}

// readPlace calls fn with the record at a place of a segment that the caller keeps open.
func (l *Log) readPlace(s *segment, at place, fn func(*view)) error {
	buffer := l.buffer()
	defer l.giveBack(buffer)
	r := recordReader{file: s.file, seed: s.seed, next: at.from, end: at.to, want: int(at.to - at.from), buf: (*buffer)[:0]}
	v, err := r.read()
	if err == nil && v.position != s.base+history.Position(at.record) {
		err = recordError("position out of order")
	}
	if err != nil {
		return s.damaged(&r, s.base+history.Position(at.record), err)
	}
	fn(&v)
	*buffer = r.buf
	return nil
}
