package topic

import (
	"maps"
	"slices"
)

// MatcherID is the number of a matcher in one [Index]. Numbers are small and those of released matchers are used again.
type MatcherID uint32

// Index finds, among many matchers, those that select a topic, at a cost that depends on the matchers that come close
// rather than on all of them. Exact matchers are looked up by hash. URL Patterns are found by their literal parts: the
// protocol, the hostname and the leading segments of the pathname.
//
// An index belongs to one goroutine. All its matchers must come from compilers for the same hub URL.
type Index struct {
	slots       []slot
	free        []MatcherID
	live        int
	wildcard    MatcherID // valid when hasWildcard
	hasWildcard bool
	exact       compactMap[string, MatcherID]
	patterns    compactMap[string, MatcherID]
	sites       compactMap[site, *siteBucket]
}

// slot is one interned matcher. The rest is where patterns stand in their bucket.
type slot struct {
	matcher *Matcher
	refs    int
	place   int // index in the list of the bucket
}

// NewIndex returns an empty index.
func NewIndex() *Index { return &Index{} }

// Intern takes a reference to m and returns its number. Matchers with equal keys share one; the first of them is kept.
func (x *Index) Intern(m *Matcher) MatcherID {
	if id, ok := x.find(m); ok {
		x.slots[id].refs++
		return id
	}
	id := x.allocate()
	x.slots[id] = slot{matcher: m, refs: 1}
	x.live++
	switch {
	case m.wildcard:
		x.wildcard, x.hasWildcard = id, true
	case m.typ == Exact:
		x.exact.set(m.pattern, id)
	default:
		x.patterns.set(m.pattern, id)
		x.addPattern(id, m.url)
	}
	return id
}

func (x *Index) find(m *Matcher) (MatcherID, bool) {
	switch {
	case m.wildcard:
		return x.wildcard, x.hasWildcard
	case m.typ == Exact:
		return x.exact.get(m.pattern)
	default:
		return x.patterns.get(m.pattern)
	}
}

func (x *Index) allocate() MatcherID {
	if n := len(x.free); n > 0 {
		id := x.free[n-1]
		x.free = x.free[:n-1]
		return id
	}
	x.slots = append(x.slots, slot{})
	return MatcherID(len(x.slots) - 1)
}

// Release gives a reference back; the last one removes the matcher. Releasing a number that is not interned does
// nothing.
func (x *Index) Release(id MatcherID) {
	m := x.Matcher(id)
	if m == nil {
		return
	}
	if x.slots[id].refs--; x.slots[id].refs > 0 {
		return
	}
	switch {
	case m.wildcard:
		x.hasWildcard = false
	case m.typ == Exact:
		x.exact.remove(m.pattern)
	default:
		x.patterns.remove(m.pattern)
		x.removePattern(id, m.url)
	}
	x.slots[id] = slot{}
	if x.live--; x.live == 0 {
		x.slots, x.free = nil, nil
		return
	}
	x.free = append(x.free, id)
}

// Matcher returns the matcher with the number id, or nil if there is none.
func (x *Index) Matcher(id MatcherID) *Matcher {
	if int64(id) >= int64(len(x.slots)) {
		return nil
	}
	return x.slots[id].matcher
}

// Len returns the number of distinct matchers.
func (x *Index) Len() int { return x.live }

// Match appends the numbers of the matchers that select any of ts to dst, ascending and each once, and returns the
// extended slice. It does not allocate when dst has room and the topics are parsed.
func (x *Index) Match(dst []MatcherID, ts []*Topic) []MatcherID {
	start := len(dst)
	if x.hasWildcard && len(ts) > 0 {
		dst = append(dst, x.wildcard)
	}
	for _, t := range ts {
		if id, ok := x.exact.get(t.raw); ok {
			dst = append(dst, id)
		}
		if x.patterns.len() > 0 {
			dst = x.matchPatterns(dst, t)
		}
	}
	added := dst[start:]
	if len(added) < 2 {
		return dst
	}
	slices.Sort(added)
	return dst[:start+len(slices.Compact(added))]
}

// compactMap is a map that gives memory back: Go's maps never shrink, so it is rebuilt when it has shrunk to a quarter
// of its largest size. The zero value is empty.
type compactMap[K comparable, V any] struct {
	m    map[K]V
	peak int
}

// compactFrom is the size below which rebuilding a map is not worth it.
const compactFrom = 256

func (c *compactMap[K, V]) get(k K) (V, bool) {
	v, ok := c.m[k]
	return v, ok
}

func (c *compactMap[K, V]) len() int { return len(c.m) }

func (c *compactMap[K, V]) set(k K, v V) {
	if c.m == nil {
		c.m = make(map[K]V)
	}
	c.m[k] = v
	c.peak = max(c.peak, len(c.m))
}

func (c *compactMap[K, V]) remove(k K) {
	delete(c.m, k)
	if c.peak < compactFrom || len(c.m) > c.peak/4 {
		return
	}
	rebuilt := make(map[K]V, len(c.m))
	maps.Copy(rebuilt, c.m)
	c.m, c.peak = rebuilt, len(rebuilt)
}
