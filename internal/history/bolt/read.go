package bolt

import (
	"bytes"
	"context"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// Seek implements history.Log. It looks the id up in the index and checks the hit against the record.
func (l *Log) Seek(ctx context.Context, id string) (history.Position, error) {
	if err := l.calls.Begin(ctx); err != nil {
		return 0, fmt.Errorf("seek in bolt: %w", err)
	}
	defer l.calls.Done()
	first, last := l.bounds()
	var found history.Position
	err := l.view(func(tx *bbolt.Tx) (err error) {
		found, err = l.find(ctx, tx, id, first, last)
		return err
	})
	switch {
	case err != nil:
		return 0, fmt.Errorf("seek in bolt: %w", err)
	case found == 0:
		return 0, fmt.Errorf("seek in bolt: %w", history.ErrUnknownID)
	}
	return found, nil
}

// find returns the earliest position between first and last whose record bears the id; 0 for none.
func (l *Log) find(ctx context.Context, tx *bbolt.Tx, id string, first, last history.Position) (history.Position, error) {
	prefix := l.key.idPrefix(id)
	records := newFinder(tx)
	w := newWalker(tx, idsBucket)
	err := w.seek(append(bytes.Clone(prefix), positionKey(first)...))
	for ; err == nil && bytes.HasPrefix(w.key, prefix); err = w.next() {
		p := keyPosition(w.key)
		if err := ctx.Err(); err != nil || p > last {
			return 0, err
		}
		v, err := records.record(p)
		if err != nil {
			return 0, err
		}
		if string(v.id) == id {
			return p, nil
		}
	}
	return 0, err
}

// Replay implements history.Log. A page is read in one transaction, which ends with it. By the topics' index, or one entry after the other where
// that takes less.
func (l *Log) Replay(ctx context.Context, q history.Query) (history.Page, error) {
	if err := l.calls.Begin(ctx); err != nil {
		return history.Page{}, fmt.Errorf("replay bolt: %w", err)
	}
	defer l.calls.Done()
	page, err := l.replay(ctx, q)
	if err != nil {
		return history.Page{}, fmt.Errorf("replay bolt: %w", err)
	}
	return page, nil
}

func (l *Log) replay(ctx context.Context, q history.Query) (history.Page, error) {
	if err := ctx.Err(); err != nil {
		return history.Page{}, err
	}
	if q.MaxBytes <= 0 {
		q.MaxBytes = history.DefaultPageBytes
	}
	p := pager{page: history.Page{Through: q.After}, selects: newSelector(&q.Select), room: q.MaxBytes, passing: q.PassedBytes()}
	err := l.stretch(q.After, q.UpTo, func(tx *bbolt.Tx, s stretch) error {
		if s.from <= s.to {
			if err := l.fillPage(ctx, tx, s, &q.Select, &p); err != nil {
				return err
			}
		}
		if !p.full {
			p.page.Through = max(p.page.Through, s.to)
		}
		return nil
	})
	if err != nil {
		return history.Page{}, err
	}
	return p.page, nil
}

// stretch is a range of positions between which nothing is missing but subscription events; none when from is beyond to.
type stretch struct {
	from, to history.Position
}

// stretch calls fn, in a read transaction, with the positions of (after, upTo] that are retained; 0 means the earliest one, and the head.
func (l *Log) stretch(after, upTo history.Position, fn func(*bbolt.Tx, stretch) error) error {
	first, last := l.bounds() // before the transaction, which so has them all, but for what is trimmed meanwhile
	if after != 0 && after+1 < first {
		return history.ErrPositionGone
	}
	s := stretch{from: max(after+1, first), to: last}
	if upTo != 0 {
		s.to = min(upTo, last)
	}
	return l.view(func(tx *bbolt.Tx) error {
		if s.from > s.to {
			return fn(tx, s)
		}
		st, err := readState(tx)
		switch {
		case err != nil:
			return err
		case st.gone >= s.from && after != 0:
			return history.ErrPositionGone
		}
		s.from = max(s.from, st.gone+1)
		return fn(tx, s)
	})
}

// fillPage reads the stretch until the page is full.
func (l *Log) fillPage(ctx context.Context, tx *bbolt.Tx, s stretch, sel *history.Selection, p *pager) error {
	if !sel.Everything() {
		g, ok, err := l.gather(tx, s, sel)
		switch {
		case err != nil:
			return err
		case ok:
			return p.takeGathered(ctx, newFinder(tx), g)
		}
	}
	return eachRecord(ctx, tx, s, func(v *view) error {
		if !p.take(v) {
			return errEnough
		}
		return nil
	})
}

// pager fills a page.
type pager struct {
	page    history.Page
	selects selector
	room    int
	passing int  // bytes that may still be passed over
	full    bool // Through is right
}

// take looks at the next record and tells whether the page has room for more.
func (p *pager) take(v *view) bool {
	p.page.Through = v.position
	if !p.selects.selects(v) {
		p.passing -= v.size
		p.full = p.passing <= 0
		return !p.full
	}
	e := v.entry()
	p.page.Entries = append(p.page.Entries, e)
	p.room -= e.Size()
	p.full = p.room <= 0
	return !p.full
}

// takeGathered takes the records at positions that an index gave.
func (p *pager) takeGathered(ctx context.Context, records finder, g gathered) error {
	for i, pos := range g.positions {
		if i%256 == 255 && ctx.Err() != nil {
			return ctx.Err()
		}
		v, err := records.record(pos)
		if err != nil {
			return err
		}
		if !p.take(&v) {
			return nil
		}
	}
	p.page.Through, p.full = max(p.page.Through, g.through), true
	return nil
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

// selects decides on the record's bytes, so that what is not wanted costs no allocation but for a pattern.
func (x *selector) selects(v *view) bool {
	if x.all {
		return true
	}
	rest := v.rest
	for range v.topics {
		var t []byte
		t, _, rest = cutTopic(rest)
		if _, ok := x.exact[string(t)]; ok {
			return true
		}
		if x.pattern != nil && x.pattern(string(t)) {
			return true
		}
	}
	return false
}
