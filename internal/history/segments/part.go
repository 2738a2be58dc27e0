package segments

import (
	"context"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// part is a stretch of retained records within one segment, which stays readable until closePart.
type part struct {
	log     *Log
	segment *segment // nil when there is no record in the range
	upTo    history.Position
	from    history.Position // first record
	through history.Position // last record
	size    int64            // of what was committed to the segment
	grown   *growing         // its index as long as it has no other one
	offsets []uint32         // that of grown
	buffer  *[]byte
	set     bitmap
	topics  uint32 // checksum of the section by which topics were numbered
}

// openPart returns the records of (after, upTo] that lie in one segment, the first ones of the
// range. 0 means the earliest retained record, and the head.
func (l *Log) openPart(after, upTo history.Position) (*part, error) {
	if after == 0 {
		return l.openFrom(0, upTo)
	}
	return l.openFrom(after+1, upTo)
}

// openFrom is openPart with the first position of the range; 0 means the earliest retained record.
func (l *Log) openFrom(from, upTo history.Position) (*part, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if from != 0 && from <= l.passed {
		return nil, history.ErrPositionGone
	}
	if upTo == 0 || upTo > l.last {
		upTo = l.last
	}
	p := &part{log: l, upTo: upTo, from: max(from, l.first)}
	if p.from > upTo {
		return p, nil
	}
	s := l.find(p.from)
	s.readers.Add(1) // under the lock, so that reap sees it
	p.segment, p.size = s, s.size
	p.through = min(upTo, s.last())
	if p.grown = s.growing; p.grown != nil {
		p.offsets = p.grown.offsets
	}
	p.buffer = l.buffer()
	return p, nil
}

// closePart gives the segment and the buffer back.
func (l *Log) closePart(p *part) {
	if p.segment == nil {
		return
	}
	l.giveBack(p.buffer)
	l.release(p.segment)
}

func (l *Log) buffer() *[]byte {
	if b, ok := l.buffers.Get().(*[]byte); ok {
		return b
	}
	return new([]byte)
}

func (l *Log) giveBack(b *[]byte) {
	if cap(*b) <= 4*readBytes {
		l.buffers.Put(b)
	}
}

// number returns the number in the segment of the record at the position.
func (p *part) number(at history.Position) int { return int(at - p.segment.base) }

// left returns the number of records of the part.
func (p *part) left() int { return int(p.through-p.from) + 1 }

// place returns where a record begins and ends, in a segment of the given size.
func (x *growing) place(record int, size int64) place { return placeIn(x.offsets, record, size) }

func placeIn(offsets []uint32, record int, size int64) place {
	p := place{record: record, from: int64(offsets[record]), to: size}
	if record+1 < len(offsets) {
		p.to = int64(offsets[record+1])
	}
	return p
}

// start returns the offset of the part's first record.
func (p *part) start(ctx context.Context) (offset int64, err error) {
	record := p.number(p.from)
	switch {
	case record == 0:
		return headerSize, nil
	case p.grown != nil:
		return int64(p.offsets[record]), nil
	}
	err = p.log.withIndex(ctx, p.segment, func(x *sealed) error {
		at, err := x.place(record)
		offset = at.from
		return err
	})
	return offset, err
}

// each calls fn with up to most of the part's records, in order, until fn returns false; more tells whether it never did. What it
// has gone through is no longer part of the part.
func (p *part) each(ctx context.Context, most int, fn func(*view) bool) (more bool, err error) {
	offset, err := p.start(ctx)
	if err != nil {
		return false, err
	}
	r := recordReader{file: p.segment.file, seed: p.segment.seed, next: offset, end: p.size, want: readBytes, buf: (*p.buffer)[:0]}
	defer func() { *p.buffer = r.buf }()
	for n := min(most, p.left()); n > 0; n-- {
		v, err := r.read()
		if err == nil && v.position != p.from {
			err = recordError("position out of order")
		}
		if err != nil {
			return false, p.segment.damaged(&r, p.from, err)
		}
		p.from++
		if !fn(&v) {
			return false, nil
		}
	}
	return true, nil
}

// Records that are wanted are read together with what lies between them when that is less than this.
const maxGap = 8 << 10

// hitsAtOnce is how many records eachHit looks up at a time.
const hitsAtOnce = 256

// eachHit calls fn with those of the part's records that are in the part's set, in order, until fn returns false; more tells whether
// it never did.
func (p *part) eachHit(ctx context.Context, fn func(*view) bool) (more bool, err error) {
	places := make([]place, 0, hitsAtOnce)
	for next := p.number(p.from); ; {
		if places, next, err = p.hits(ctx, places[:0], next); err != nil || len(places) == 0 {
			return err == nil, err
		}
		for rest := places; len(rest) > 0; {
			n := together(rest)
			more, err := p.readTogether(rest[:n], fn)
			if err != nil || !more {
				return false, err
			}
			rest = rest[n:]
		}
	}
}

// hits appends where the next records of the set are, up to the capacity of dst, and returns where to go on.
func (p *part) hits(ctx context.Context, dst []place, from int) ([]place, int, error) {
	if p.grown != nil {
		for len(dst) < cap(dst) {
			n := p.set.next(from)
			if n < 0 {
				break
			}
			dst, from = append(dst, placeIn(p.offsets, n, p.size)), n+1
		}
		return dst, from, nil
	}
	next := from
	err := p.log.withIndex(ctx, p.segment, func(x *sealed) error {
		dst, next = dst[:0], from
		for len(dst) < cap(dst) {
			n := p.set.next(next)
			if n < 0 {
				break
			}
			at, err := x.place(n)
			if err != nil {
				return err
			}
			dst, next = append(dst, at), n+1
		}
		return nil
	})
	return dst, next, err
}

// together returns how many of the places, one at least, are worth being read at once.
func together(places []place) int {
	n := 1
	for n < len(places) && places[n].from-places[n-1].to <= maxGap && places[n].to-places[0].from <= readBytes {
		n++
	}
	return n
}

// readTogether reads what lies at the places with one call of the system and calls fn as eachHit does.
func (p *part) readTogether(places []place, fn func(*view) bool) (more bool, err error) {
	s := p.segment
	last := places[len(places)-1]
	r := recordReader{file: s.file, seed: s.seed, end: last.to, want: int(last.to - places[0].from), buf: (*p.buffer)[:0]}
	defer func() { *p.buffer = r.buf }()
	for i, at := range places {
		if i == 0 {
			r.next = at.from
		} else {
			r.pass(at.from)
		}
		pos := s.base + history.Position(at.record)
		v, err := r.read()
		if err == nil && v.position != pos {
			err = recordError("position out of order")
		}
		if err != nil {
			return false, s.damaged(&r, pos, err)
		}
		p.from = pos + 1
		if !fn(&v) {
			return false, nil
		}
	}
	return true, nil
}
