package segments

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// selector is a history.Selection made ready for many records.
type selector struct {
	all      bool
	exact    map[string]struct{}
	pattern  func(string) bool
	prefixes []string // in order, none of which begins with another one; nil says nothing
}

func newSelector(s *history.Selection) selector {
	if s.Everything() {
		return selector{all: true}
	}
	x := selector{exact: make(map[string]struct{}, len(s.Exact)), pattern: s.Pattern, prefixes: shortest(s.Prefixes)}
	for _, t := range s.Exact {
		x.exact[t] = struct{}{}
	}
	return x
}

// selects decides on the record's bytes, so that what is not wanted costs no allocation unless a pattern is asked about it.
func (x *selector) selects(v *view) bool {
	if x.all || v.kind() == hollow {
		return v.kind() != hollow
	}
	rest := v.rest
	for range v.topics {
		var t []byte
		t, rest = cutTopic(rest)
		if _, ok := x.exact[string(t)]; ok {
			return true
		}
		if x.pattern == nil {
			continue
		}
		begins := x.begins(t)
		if s := string(t); (begins || !topic.Normal(s)) && x.pattern(s) {
			return true
		}
	}
	return false
}

// begins tells whether the topic begins with one of the prefixes, as those in normal form do that the pattern selects.
func (x *selector) begins(t []byte) bool {
	if x.prefixes == nil {
		return true
	}
	// What lies between one of them and a topic that begins with it would begin with it as well.
	n := sort.Search(len(x.prefixes), func(i int) bool { return x.prefixes[i] > string(t) })
	return n > 0 && bytes.HasPrefix(t, []byte(x.prefixes[n-1]))
}

// shortest returns the prefixes in order, without those that begin with another one.
func shortest(prefixes []string) []string {
	if prefixes == nil {
		return nil
	}
	kept := make([]string, 0, len(prefixes))
	for _, p := range slices.Sorted(slices.Values(prefixes)) {
		if n := len(kept); n == 0 || !strings.HasPrefix(p, kept[n-1]) {
			kept = append(kept, p)
		}
	}
	return kept
}

// asks tells whether the pattern has to be asked about a topic of a growing index.
func (x *selector) asks(n *name, text []byte) bool {
	return !n.normal || x.begins(text[n.start:n.start+n.size])
}

// askable returns how many topics a pattern has to be asked about for the records of the part.
func (p *part) askable(ctx context.Context, s *selector) (most int, err error) {
	if x := p.grown; x != nil {
		p.log.mu.RLock()
		names, text := x.names, x.text
		p.log.mu.RUnlock()
		for i := range names {
			if s.asks(&names[i], text) {
				most++
			}
		}
		return most, nil
	}
	err = p.log.withIndex(ctx, p.segment, func(x *sealed) error {
		spans, err := x.candidates(s.prefixes)
		most = 0
		for _, sp := range spans {
			most += sp.to - sp.from
		}
		return err
	})
	return most, err
}

// collect puts those records of the part that are selected into its set. cost is what asking the pattern counts for.
func (p *part) collect(ctx context.Context, s *selector) (cost int, err error) {
	if p.grown != nil {
		return p.collectGrown(ctx, s)
	}
	matched, cost, err := p.matched(ctx, s)
	if err != nil {
		return cost, err
	}
	return cost, p.log.withIndex(ctx, p.segment, func(x *sealed) error { return p.mark(x, s, matched) })
}

// mark puts those records of the part into its set that have one of the topics that were matched, or that are wanted by name.
func (p *part) mark(x *sealed, s *selector, matched []int) error {
	if err := p.sameTopics(x); len(matched) > 0 && err != nil {
		return err
	}
	from, through := p.number(p.from), p.number(p.through)
	for _, n := range matched {
		if err := x.mark(p.set, n, from, through); err != nil {
			return err
		}
	}
	for t := range s.exact {
		n, err := x.find(t)
		if err == nil && n >= 0 {
			err = x.mark(p.set, n, from, through)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// askedAtOnce is how many topics are copied out of an index before the pattern is asked about them.
const askedAtOnce = 256

// matched returns the topics that the pattern selects. It is asked outside of the index, about copies: it may keep them, and what goes
// wrong in it is not the index's fault.
func (p *part) matched(ctx context.Context, s *selector) (matched []int, cost int, err error) {
	if s.pattern == nil {
		return nil, 0, nil
	}
	var spans []span
	err = p.log.withIndex(ctx, p.segment, func(x *sealed) (err error) {
		p.topics = x.sums[topicSection]
		spans, err = x.candidates(s.prefixes)
		return err
	})
	names := make([]string, 0, askedAtOnce)
	for _, sp := range spans {
		for ; sp.from < sp.to && err == nil; sp.from += len(names) {
			if names, err = p.names(ctx, names[:0], sp); err != nil {
				break
			}
			for i, t := range names {
				cost += topicCost + len(t)
				if s.pattern(t) {
					matched = append(matched, sp.from+i)
				}
			}
		}
	}
	return matched, cost, err
}

// names appends the first topics of the span to dst, up to its capacity.
func (p *part) names(ctx context.Context, dst []string, sp span) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return dst, err
	}
	err := p.log.withIndex(ctx, p.segment, func(x *sealed) error {
		dst = dst[:0]
		if err := p.sameTopics(x); err != nil {
			return err
		}
		b, err := x.use(topicSection)
		for n := sp.from; n < min(sp.to, sp.from+cap(dst)) && err == nil; n++ {
			dst = append(dst, string(x.name(b, n)))
		}
		return err
	})
	return dst, err
}

// sameTopics fails when the index, made again meanwhile, numbers topics other than the one did that was asked before: that one was wrong
// and had the checksums of a sound one.
func (p *part) sameTopics(x *sealed) error {
	if x.sums[topicSection] == p.topics {
		return nil
	}
	return fmt.Errorf("%w: %s: its index was wrong", history.ErrCorrupt, p.segment.name)
}

// collectGrown is collect for a segment whose index is still growing.
func (p *part) collectGrown(ctx context.Context, s *selector) (cost int, err error) {
	x := p.grown
	var matched []int
	if s.pattern != nil {
		p.log.mu.RLock()
		names, text := x.names, x.text
		p.log.mu.RUnlock()
		if matched, cost, err = matchedNames(ctx, s, names, text); err != nil {
			return cost, err
		}
	}
	heads := make([]uint32, 0, len(matched)+len(s.exact))
	p.log.mu.RLock()
	for _, n := range matched {
		heads = append(heads, x.newest[n])
	}
	for t := range s.exact {
		if n := x.find(t); n >= 0 {
			heads = append(heads, x.newest[n])
		}
	}
	posts := x.posts
	p.log.mu.RUnlock()
	from, through := uint32(p.number(p.from)), uint32(p.number(p.through))
	for _, at := range heads {
		for ; at != 0 && posts[at-1].record >= from; at = posts[at-1].before {
			if r := posts[at-1].record; r <= through {
				p.set.add(int(r))
			}
		}
	}
	return cost, nil
}

// matchedNames returns the topics of a growing index that the pattern selects.
func matchedNames(ctx context.Context, s *selector, names []name, text []byte) (matched []int, cost int, err error) {
	for n := range names {
		if n%askedAtOnce == 0 && ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		at := &names[n]
		if !s.asks(at, text) {
			continue
		}
		t := string(text[at.start : at.start+at.size])
		cost += topicCost + len(t)
		if s.pattern(t) {
			matched = append(matched, n)
		}
	}
	return matched, cost, nil
}
