package segments

import (
	"context"
	"errors"
	"fmt"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// Seek implements history.Log. It looks the id up in every segment's index and checks the hit
// against the record.
func (l *Log) Seek(ctx context.Context, id string) (history.Position, error) {
	if err := l.begin(ctx); err != nil {
		return 0, fmt.Errorf("seek in segments: %w", err)
	}
	defer l.calls.Done()
	hash := l.hash(id)
	for from := history.Position(0); ; {
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("seek in segments: %w", err)
		}
		p, ok := l.candidate(hash, from)
		if !ok {
			return 0, fmt.Errorf("seek in segments: %w", history.ErrUnknownID)
		}
		same, err := l.bears(p, id)
		switch {
		case err != nil && !errors.Is(err, history.ErrPositionGone):
			return 0, fmt.Errorf("seek in segments: %w", err)
		case same:
			return p, nil
		}
		from = p + 1 // another id with the same hash, or trimmed meanwhile
	}
}

// candidate returns the earliest retained record from the given position on whose id has the hash.
func (l *Log) candidate(hash uint64, from history.Position) (history.Position, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	from = max(from, l.first)
	for _, s := range l.segments {
		if s.last() < from {
			continue
		}
		if i, ok := s.ids.next(hash, recordNumber(s, max(from, s.base))); ok {
			return s.base + history.Position(i), true
		}
	}
	return 0, false
}

// bears tells whether the record at p has the id.
func (l *Log) bears(p history.Position, id string) (bool, error) {
	same := false
	part, err := l.openPart(p-1, p)
	if err != nil {
		return false, err
	}
	defer l.closePart(part)
	part.reader.want = probeBytes
	_, err = part.each(func(v *view) bool {
		same = string(v.id) == id
		return false
	})
	return same, err
}

// Replay implements history.Log.
func (l *Log) Replay(ctx context.Context, q history.Query) (history.Page, error) {
	if err := l.begin(ctx); err != nil {
		return history.Page{}, fmt.Errorf("replay segments: %w", err)
	}
	defer l.calls.Done()
	page, err := l.replay(ctx, q)
	if err != nil {
		return history.Page{}, fmt.Errorf("replay segments: %w", err)
	}
	return page, nil
}

// replay goes through one segment after the other until the page is full.
func (l *Log) replay(ctx context.Context, q history.Query) (history.Page, error) {
	if q.MaxBytes <= 0 {
		q.MaxBytes = history.DefaultPageBytes
	}
	p := pager{
		page: history.Page{Through: q.After}, selector: newSelector(&q.Select), room: q.MaxBytes, passing: q.PassedBytes(),
	}
	upTo := q.UpTo
	for {
		part, err := l.openPart(p.page.Through, upTo)
		switch {
		case errors.Is(err, history.ErrPositionGone) && len(p.page.Entries) > 0:
			return p.page, nil // trimmed meanwhile: the next query says so
		case err != nil:
			return history.Page{}, err
		}
		upTo = part.upTo
		if part.segment == nil {
			p.page.Through = max(p.page.Through, upTo)
			return p.page, nil
		}
		more, err := part.each(func(v *view) bool { return p.take(v) && ctx.Err() == nil })
		l.closePart(part)
		switch {
		case err != nil:
			return history.Page{}, err
		case ctx.Err() != nil:
			return history.Page{}, ctx.Err()
		case !more:
			return p.page, nil
		}
	}
}

// pager fills a page.
type pager struct {
	page     history.Page
	selector selector
	room     int
	passing  int // bytes that may still be passed over
}

// take looks at the next record and tells whether the page has room for more.
func (p *pager) take(v *view) bool {
	p.page.Through = v.position
	if !p.selector.selects(v) {
		p.passing -= v.size
		return p.passing > 0
	}
	e := v.entry()
	p.page.Entries = append(p.page.Entries, e)
	p.room -= e.Size()
	return p.room > 0
}

// selector is a history.Selection made ready for many records.
type selector struct {
	all     bool
	exact   map[string]struct{}
	pattern func(string) bool
}

func newSelector(s *history.Selection) selector {
	if s.Everything() {
		return selector{all: true}
	}
	x := selector{exact: make(map[string]struct{}, len(s.Exact)), pattern: s.Pattern}
	for _, t := range s.Exact {
		x.exact[t] = struct{}{}
	}
	return x
}

// selects decides on the record's bytes, so that what is not wanted costs no allocation.
func (x *selector) selects(v *view) bool {
	if x.all {
		return true
	}
	rest := v.rest
	for range v.topics {
		var t []byte
		t, rest = cutTopic(rest)
		if _, ok := x.exact[string(t)]; ok {
			return true
		}
		if x.pattern != nil && x.pattern(string(t)) {
			return true
		}
	}
	return false
}

// part is a stretch of retained records within one segment, which stays readable until closePart.
type part struct {
	segment *segment // nil when there is no record in the range
	upTo    history.Position
	from    history.Position // first record
	through history.Position // last record
	skip    int              // records between the reader's start and the first one
	reader  recordReader
	buffer  *[]byte
}

// openPart returns the records of (after, upTo] that lie in one segment, the first ones of the
// range. 0 means the earliest retained record, and the head.
func (l *Log) openPart(after, upTo history.Position) (*part, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if after != 0 && after+1 < l.first {
		return nil, history.ErrPositionGone
	}
	if upTo == 0 || upTo > l.last {
		upTo = l.last
	}
	p := &part{upTo: upTo, from: max(after+1, l.first)}
	if p.from > upTo {
		return p, nil
	}
	s := l.find(p.from)
	s.readers.Add(1) // under the lock, so that reap sees it
	p.segment = s
	p.through = min(upTo, s.last())
	record := recordNumber(s, p.from)
	at, offset := s.offsets.before(record)
	p.skip = record - at
	p.buffer = l.buffer()
	p.reader = recordReader{file: s.file, seed: s.seed, next: offset, end: s.size, want: readBytes, buf: (*p.buffer)[:0]}
	return p, nil
}

// closePart gives the segment and the buffer back.
func (l *Log) closePart(p *part) {
	if p.segment == nil {
		return
	}
	if c := cap(p.reader.buf); c <= 4*readBytes {
		*p.buffer = p.reader.buf
		l.buffers.Put(p.buffer)
	}
	if p.segment.readers.Add(-1) == 0 && p.segment.trimmed.Load() {
		l.wakeJanitor()
	}
}

func (l *Log) buffer() *[]byte {
	if b, ok := l.buffers.Get().(*[]byte); ok {
		return b
	}
	return new([]byte)
}

// each calls fn with the part's records in order until fn returns false; more tells whether it
// never did.
func (p *part) each(fn func(*view) bool) (more bool, err error) {
	for range p.skip {
		if err := p.reader.skip(); err != nil {
			return false, p.segment.damaged(&p.reader, p.from, err)
		}
	}
	var v view
	for pos := p.from; pos <= p.through; pos++ {
		v, err = p.reader.read()
		if err == nil && v.position != pos {
			err = recordError("position out of order")
		}
		if err != nil {
			return false, p.segment.damaged(&p.reader, pos, err)
		}
		if !fn(&v) {
			return false, nil
		}
	}
	return true, nil
}

// recordNumber returns the number in the segment of the record at p.
func recordNumber(s *segment, p history.Position) int {
	return int(p - s.base)
}
