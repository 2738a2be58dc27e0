package memory

import (
	"fmt"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// ring is a queue of entries with consecutive positions and an index of their ids.
type ring struct {
	items []item // oldest first; those before head are gone
	head  int
	bytes int64
	ids   map[string]twins
}

// item is an entry, when it was stored, and the next entry that bears its id (0: none).
type item struct {
	history.Entry
	stored time.Time
	twin   history.Position
}

// twins are the oldest and the newest entry that bear an id, linked through item.twin.
type twins struct{ first, last history.Position }

func newRing() ring { return ring{ids: make(map[string]twins)} }

func (r *ring) len() int { return len(r.items) - r.head }

// at returns the i-th oldest entry, i from 0 to len-1.
func (r *ring) at(i int) *item { return &r.items[r.head+i] }

// find returns the oldest entry that bears the id.
func (r *ring) find(id string) (history.Position, bool) {
	t, ok := r.ids[id]
	return t.first, ok
}

func (r *ring) push(e history.Entry, now time.Time) {
	t, ok := r.ids[e.ID]
	if ok {
		oldest := r.at(0).Position
		r.at(int(t.last - oldest)).twin = e.Position
		t.last = e.Position
	} else {
		t = twins{first: e.Position, last: e.Position}
	}
	r.ids[e.ID] = t
	r.items = append(r.items, item{Entry: e, stored: now})
	r.bytes += int64(e.Size())
}

// pop drops the oldest entry.
func (r *ring) pop() {
	it := r.at(0)
	r.bytes -= int64(it.Size())
	if it.twin == 0 {
		delete(r.ids, it.ID)
	} else {
		t := r.ids[it.ID]
		t.first = it.twin
		r.ids[it.ID] = t
	}
	*it = item{} // for the garbage collector
	r.head++
	if r.head > len(r.items)/2 {
		n := copy(r.items, r.items[r.head:])
		clear(r.items[n:])
		r.items, r.head = r.items[:n], 0
	}
}

// check compares the index with the entries, the first of which is at the position.
func (r *ring) check(first history.Position) error {
	seen := make(map[string]history.Position, len(r.ids))
	var bytes int64
	for i := range r.len() {
		it := r.at(i)
		if p := first + history.Position(i); it.Position != p {
			return fmt.Errorf("entry %d is at position %d", it.Position, p)
		}
		before, ok := seen[it.ID]
		if !ok && r.ids[it.ID].first != it.Position || ok && r.at(int(before-first)).twin != it.Position {
			return fmt.Errorf("the index of ids leaves out entry %d", it.Position)
		}
		seen[it.ID] = it.Position
		bytes += int64(it.Size())
	}
	for id, last := range seen {
		if t := r.ids[id]; t.last != last || r.at(int(last-first)).twin != 0 {
			return fmt.Errorf("the index of ids goes wrong after entry %d", last)
		}
	}
	if len(seen) != len(r.ids) || bytes != r.bytes {
		return fmt.Errorf("the index holds %d ids and counts %d bytes, the entries have %d and %d", len(r.ids), r.bytes, len(seen), bytes)
	}
	return nil
}
