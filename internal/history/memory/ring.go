package memory

import (
	"fmt"
	"sort"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// ring is a queue of entries in the order of their positions, and an index of their ids. Subscription events can be taken out of its middle.
type ring struct {
	items []item // oldest first; those before head are gone
	head  int
	bytes int64
	ids   map[string]twins

	events []history.Position // of the subscription events, oldest first; those before oldest are gone
	oldest int
	hollow int // items whose entry was taken out of the middle
}

// item is an entry, when it was stored, and the next entry that bears its id (0: none). One without an id is hollow.
type item struct {
	history.Entry

	stored time.Time
	twin   history.Position
}

// twins are the oldest and the newest entry that bear an id, linked through item.twin.
type twins struct{ first, last history.Position }

func newRing() ring { return ring{ids: make(map[string]twins)} }

// len returns the number of items, hollow ones included.
func (r *ring) len() int { return len(r.items) - r.head }

// subscriptionEvents returns how many of the entries are such.
func (r *ring) subscriptionEvents() int { return len(r.events) - r.oldest }

// updates returns how many of the entries are no subscription events.
func (r *ring) updates() int { return r.len() - r.hollow - r.subscriptionEvents() }

// at returns the i-th oldest item, i from 0 to len-1.
func (r *ring) at(i int) *item { return &r.items[r.head+i] }

// from returns the number of the first item at the position or after it; len if there is none.
func (r *ring) from(p history.Position) int {
	n := r.len()
	if n == 0 {
		return 0
	}
	if first := r.at(0).Position; p <= first {
		return 0
	} else if r.at(n-1).Position == first+history.Position(n-1) { // no gaps
		return min(int(p-first), n)
	}
	return sort.Search(n, func(i int) bool { return r.at(i).Position >= p })
}

// of returns the item at the position, which must be there.
func (r *ring) of(p history.Position) *item { return r.at(r.from(p)) }

// find returns the oldest entry that bears the id.
func (r *ring) find(id string) (history.Position, bool) {
	t, ok := r.ids[id]
	return t.first, ok
}

func (r *ring) push(e history.Entry, now time.Time) {
	t, ok := r.ids[e.ID]
	if ok {
		r.of(t.last).twin = e.Position
		t.last = e.Position
	} else {
		t = twins{first: e.Position, last: e.Position}
	}
	r.ids[e.ID] = t
	r.items = append(r.items, item{Entry: e, stored: now})
	r.bytes += int64(e.Size())
	if e.Subscription {
		r.events = append(r.events, e.Position)
	}
}

// pop drops the oldest entry, and the hollow items behind it: the first item is never hollow.
func (r *ring) pop() {
	it := r.at(0)
	r.forget(it)
	if it.Subscription {
		r.passEvent()
	}
	r.drop()
	r.dropHollow()
	r.shrink()
}

// hollowOldest takes the oldest subscription event out.
func (r *ring) hollowOldest() {
	it := r.of(r.events[r.oldest])
	r.passEvent()
	r.forget(it)
	*it = item{Entry: history.Entry{Position: it.Position}}
	r.hollow++
	r.dropHollow()
	r.shrink()
}

func (r *ring) dropHollow() {
	for r.len() > 0 && r.at(0).ID == "" {
		r.hollow--
		r.drop()
	}
}

// drop drops the first item.
func (r *ring) drop() {
	*r.at(0) = item{} // for the garbage collector
	r.head++
}

// passEvent notes that the oldest subscription event is gone.
func (r *ring) passEvent() {
	r.oldest++
	if r.oldest > len(r.events)/2 {
		r.events = r.events[:copy(r.events, r.events[r.oldest:])]
		r.oldest = 0
	}
}

// shrink gives up items that hold nothing once they are more than half, which costs each of them a constant share.
func (r *ring) shrink() {
	if r.head+r.hollow <= len(r.items)/2 {
		return
	}
	n := 0
	for i := range r.items[r.head:] {
		if it := r.at(i); it.ID != "" {
			r.items[n] = *it
			n++
		}
	}
	clear(r.items[n:])
	r.items, r.head, r.hollow = r.items[:n], 0, 0
}

// forget takes an entry out of the index.
func (r *ring) forget(it *item) {
	r.bytes -= int64(it.Size())
	t := r.ids[it.ID]
	switch {
	case t.first == it.Position && it.twin == 0:
		delete(r.ids, it.ID)
		return
	case t.first == it.Position:
		t.first = it.twin
	default:
		before := r.of(t.first)
		for before.twin != it.Position {
			before = r.of(before.twin)
		}
		before.twin = it.twin
		if it.twin == 0 {
			t.last = before.Position
		}
	}
	r.ids[it.ID] = t
}

// check compares the indexes with the entries, all of which must lie after the position.
func (r *ring) check(after history.Position) error {
	latest := make(map[string]*item, len(r.ids))
	var bytes int64
	hollow, events := 0, r.events[r.oldest:]
	for i := range r.len() {
		it := r.at(i)
		if it.Position <= after {
			return fmt.Errorf("entry %d comes after position %d", it.Position, after)
		}
		after = it.Position
		if it.ID == "" {
			hollow++
			continue
		}
		if before := latest[it.ID]; !r.isNext(it, before) {
			return fmt.Errorf("the index of ids leaves out entry %d", it.Position)
		}
		latest[it.ID] = it
		bytes += int64(it.Size())
		if !it.Subscription {
			continue
		}
		if len(events) == 0 || events[0] != it.Position {
			return fmt.Errorf("the list of subscription events leaves out entry %d", it.Position)
		}
		events = events[1:]
	}
	if len(latest) != len(r.ids) || bytes != r.bytes || hollow != r.hollow || len(events) > 0 {
		return fmt.Errorf("the index holds %d ids, counts %d bytes and %d gaps, and the entries have %d, %d and %d; subscription events left over: %d",
			len(r.ids), r.bytes, r.hollow, len(latest), bytes, hollow, len(events))
	}
	return r.checkEnds(latest)
}

// isNext tells whether the index has the item behind the one that bears its id before it, or as the first.
func (r *ring) isNext(it, before *item) bool {
	if before == nil {
		return r.ids[it.ID].first == it.Position
	}
	return before.twin == it.Position
}

// checkEnds compares the index of ids with the newest item that bears each.
func (r *ring) checkEnds(latest map[string]*item) error {
	for id, it := range latest {
		if r.ids[id].last != it.Position || it.twin != 0 {
			return fmt.Errorf("the index of ids goes wrong after entry %d", it.Position)
		}
	}
	return nil
}
