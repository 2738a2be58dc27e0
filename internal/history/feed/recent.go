package feed

import (
	"sort"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// recent holds the newest entries of a log: all of those after floor.
type recent struct {
	items []sized // oldest first; those before head have been dropped
	head  int
	bytes int64
	floor history.Position
}

type sized struct {
	history.Entry
	size int64
}

func (r *recent) push(e *history.Entry, size int64) {
	r.items = append(r.items, sized{Entry: *e, size: size})
	r.bytes += size
}

// evict drops the oldest entries until at most limit bytes are left, but none after
// keep.
func (r *recent) evict(limit int64, keep history.Position) {
	for r.bytes > limit && r.head < len(r.items) && r.items[r.head].Position <= keep {
		r.bytes -= r.items[r.head].size
		r.floor = r.items[r.head].Position
		r.items[r.head] = sized{} // for the garbage collector
		r.head++
	}
	if r.head > len(r.items)/2 {
		n := copy(r.items, r.items[r.head:])
		clear(r.items[n:])
		r.items, r.head = r.items[:n], 0
		r.shrink()
	}
}

// shrink gives back the memory of a burst.
func (r *recent) shrink() {
	const small = 1024
	if cap(r.items) > small && len(r.items) < cap(r.items)/4 {
		r.items = append(make([]sized, 0, cap(r.items)/2), r.items...)
	}
}

// after appends to dst the entries that follow the position, up to about
// maxBytes, and returns their sizes' sum.
func (r *recent) after(dst []history.Entry, pos history.Position, maxBytes int64) []history.Entry {
	live := r.items[r.head:]
	i := sort.Search(len(live), func(i int) bool { return live[i].Position > pos })
	var bytes int64
	for ; i < len(live) && bytes < maxBytes; i++ {
		dst = append(dst, live[i].Entry)
		bytes += live[i].size
	}
	return dst
}
