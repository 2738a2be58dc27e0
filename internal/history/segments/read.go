package segments

import (
	"context"
	"errors"
	"fmt"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// Replay implements history.Log.
func (l *Log) Replay(ctx context.Context, q history.Query) (history.Page, error) {
	if err := l.calls.Begin(ctx); err != nil {
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
		if err := l.calls.MayGoOn(ctx); err != nil {
			return history.Page{}, err // indexes may have to be made, of one segment after the other
		}
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
		more, err := p.fill(ctx, part)
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
	set      bitmap
}

const (
	// sampleRecords is how many records of a part are looked at one by one before its index is asked.
	sampleRecords = 128
	// denseShare is the share of them, one in so many, from which on the index would not spare enough.
	denseShare = 16
	// fewTopics is how many topics a pattern is asked about without looking for something cheaper.
	fewTopics = 256
	// topicCost is what asking a pattern about a topic counts for beside the topic's bytes when it comes to what a page
	// may pass over. It is about what a record counts for.
	topicCost = 128
)

// fill puts what is selected of a part on the page, by the index where that is cheaper than looking at every record. It tells whether the
// page has room for more.
func (p *pager) fill(ctx context.Context, part *part) (more bool, err error) {
	take := func(v *view) bool { return p.take(v) && ctx.Err() == nil }
	byIndex, more, err := p.sample(ctx, part, take)
	switch {
	case err != nil || !more:
		return false, err
	case !byIndex:
		return part.each(ctx, part.left(), take)
	}
	p.set = p.set.sized(part.number(part.through) + 1)
	part.set = p.set
	cost, err := part.collect(ctx, &p.selector)
	if err != nil {
		return false, err
	}
	more, err = part.eachHit(ctx, take)
	if err != nil || !more {
		return false, err
	}
	p.page.Through = part.through
	p.passing -= cost
	return p.passing > 0, nil
}

// sample finds out whether the index of the part spares looking at its records. Where a pattern would have to be asked about many
// topics, it looks at some records first: when many of them are selected, the page will be full soon. It tells whether the page has room
// for more.
func (p *pager) sample(ctx context.Context, part *part, take func(*view) bool) (byIndex, more bool, err error) {
	switch {
	case p.selector.all || part.left() <= sampleRecords:
		return false, true, nil
	case p.selector.pattern == nil:
		return true, true, nil
	}
	most, err := part.askable(ctx, &p.selector)
	if err != nil || most <= fewTopics {
		return true, err == nil, err
	}
	before := len(p.page.Entries)
	if more, err = part.each(ctx, sampleRecords, take); err != nil || !more {
		return false, false, err
	}
	hits := len(p.page.Entries) - before
	return hits*denseShare < sampleRecords && most <= part.left() && most*topicCost <= p.passing, true, nil
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
