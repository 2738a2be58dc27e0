package bolt

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

const (
	// gatherMost is how many positions a page is filled from at most.
	gatherMost = 8192
	// gatherSteps bounds the keys of the index that are looked at for one page, and with it how long its transaction lasts.
	gatherSteps = 1 << 18
	// freeSteps is how many may be looked at whatever the length of the stretch.
	freeSteps = 64
	// seekSteps is what finding a key counts for, beside going from one to the next.
	seekSteps = 4
)

// gathered are positions that an index gave: all those of interest up to through, in order.
type gathered struct {
	positions []history.Position
	through   history.Position
}

// gatherer collects positions from the index of topics.
type gatherer struct {
	index walker
	stretch
	err       error // of the index; it ends the gathering
	steps     int   // left
	positions []history.Position
}

// gather looks the selection up in the index of topics. It gives up, and ok is false, where reading the entries of the stretch would take less.
func (l *Log) gather(tx *bbolt.Tx, s stretch, sel *history.Selection) (found gathered, ok bool, err error) {
	g := gatherer{
		index: newWalker(tx, topicsBucket), stretch: s,
		steps: min(gatherSteps, freeSteps+int(min((s.to-s.from)/4, gatherSteps))),
	}
	ok = g.selection(&l.key, sel)
	if g.err != nil || !ok {
		return gathered{}, false, g.err
	}
	g.tidy()
	return gathered{positions: g.positions, through: g.to}, true, nil
}

// selection adds what the selection has in the stretch. It returns false when it took too long.
func (g *gatherer) selection(key *hashKey, sel *history.Selection) bool {
	for _, t := range sel.Exact {
		// A topic stands where it belonged when it was stored.
		for _, normal := range []bool{true, false} {
			if !g.topic(key.topicPrefix(nil, t, normal)) {
				return false
			}
		}
	}
	if sel.Pattern == nil {
		return true
	}
	prefixes := []string{""}
	if sel.Prefixes != nil {
		prefixes = outermost(sel.Prefixes)
	}
	for _, p := range prefixes {
		if !g.pattern(rangePrefix(tagNormal, p), sel.Pattern) {
			return false
		}
	}
	return g.pattern([]byte{tagOther}, sel.Pattern)
}

// outermost returns the prefixes that begin with none of the others.
func outermost(prefixes []string) []string {
	var kept []string
	for _, p := range slices.Sorted(slices.Values(prefixes)) {
		if len(kept) == 0 || !strings.HasPrefix(p, kept[len(kept)-1]) {
			kept = append(kept, p)
		}
	}
	return kept
}

// seek finds the first key from the given one on; nil when there is none.
func (g *gatherer) seek(key []byte) []byte {
	g.steps -= seekSteps
	g.err = cmp.Or(g.err, g.index.seek(key))
	return g.index.key
}

// next goes to the next key.
func (g *gatherer) next() []byte {
	g.steps--
	g.err = cmp.Or(g.err, g.index.next())
	return g.index.key
}

// add notes a position. When there are too many, the latest ones are left for another page, and the stretch ends before them.
func (g *gatherer) add(p history.Position) {
	g.positions = append(g.positions, p)
	if len(g.positions) >= 2*gatherMost {
		g.tidy()
	}
}

func (g *gatherer) tidy() {
	slices.Sort(g.positions)
	g.positions = slices.Compact(g.positions)
	if len(g.positions) > gatherMost {
		g.positions = g.positions[:gatherMost]
	}
	if len(g.positions) == gatherMost {
		g.to = min(g.to, g.positions[gatherMost-1])
	}
}

// topic adds what the keys with the prefix, which are those of one topic, have in the stretch. It returns false when it took too long.
func (g *gatherer) topic(prefix []byte) bool {
	n := len(prefix)
	start := append(bytes.Clone(prefix), positionKey(g.from)...)
	for k := g.seek(start); len(k) == n+8 && bytes.HasPrefix(k, prefix); k = g.next() {
		p := keyPosition(k)
		if p > g.to {
			break
		}
		if g.steps < 0 {
			return false
		}
		g.add(p)
	}
	return g.steps >= 0
}

// pattern adds what the topics whose keys begin with the prefix, and that match, have in the stretch.
func (g *gatherer) pattern(prefix []byte, match func(string) bool) bool {
	k := g.seek(prefix)
	for len(k) > 8 && bytes.HasPrefix(k, prefix) {
		group := bytes.Clone(k[:len(k)-8])
		text, whole := wholeTopic(k)
		if !whole || match(text) { // of a long topic the record decides
			if !g.topic(group) {
				return false
			}
		}
		if g.steps < 0 {
			return false
		}
		// The next topic's keys come after the greatest position.
		k = g.seek(append(group, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff))
	}
	return true
}
