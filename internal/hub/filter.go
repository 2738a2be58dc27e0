package hub

import (
	"slices"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// filter tells which entries one reader wants and may read. Replay judges by it what live delivery finds by the
// index: with the grants the reader has now, whatever was allowed when the entry was published (I6).
type filter struct {
	compiler *topic.Compiler
	all      bool
	exact    []string // sorted
	patterns []*topic.Matcher
	grants   *rar.Grants
}

func newFilter(c *topic.Compiler, matchers []*topic.Matcher, grants *rar.Grants) *filter {
	f := &filter{compiler: c, grants: grants}
	for _, m := range matchers {
		switch {
		case m.Wildcard():
			f.all = true
		case m.Type() == topic.Exact:
			f.exact = append(f.exact, m.Pattern())
		default:
			f.patterns = append(f.patterns, m)
		}
	}
	slices.Sort(f.exact)
	return f
}

// selection is what the history may use to leave out entries that nobody wants.
func (f *filter) selection() history.Selection {
	if f.all {
		return history.Selection{All: true}
	}
	s := history.Selection{Exact: f.exact}
	if len(f.patterns) > 0 {
		s.Pattern = func(raw string) bool { return f.matches(f.compiler.Topic(raw)) }
		s.Prefixes = f.prefixes()
	}
	return s
}

// prefixes returns with what the topics in normal form begin that the patterns select; nil when that can be anything.
func (f *filter) prefixes() []string {
	list := make([]string, 0, len(f.patterns))
	for _, m := range f.patterns {
		prefixes := m.Prefixes()
		if prefixes == nil {
			return nil
		}
		list = append(list, prefixes...)
	}
	return list
}

// apply returns the entries that the reader gets; it uses the slice again.
func (f *filter) apply(entries []history.Entry) []history.Entry {
	return slices.DeleteFunc(entries, func(e history.Entry) bool { return !f.admits(&e.Record) })
}

// admits tells whether the reader gets the record.
func (f *filter) admits(r *history.Record) bool {
	if !r.Private && f.wantsUnparsed(r.Topics) {
		return true
	}
	topics := make([]*topic.Topic, len(r.Topics))
	for i, raw := range r.Topics {
		topics[i] = f.compiler.Topic(raw)
	}
	wanted := f.wantsUnparsed(r.Topics) || slices.ContainsFunc(topics, f.matches)
	return wanted && (!r.Private || f.grants.AllowsAny(rar.Subscribe, topics))
}

// wantsUnparsed tells whether a matcher that compares strings selects one of the topics.
func (f *filter) wantsUnparsed(topics []string) bool {
	if f.all {
		return true
	}
	return slices.ContainsFunc(topics, func(raw string) bool {
		_, found := slices.BinarySearch(f.exact, raw)
		return found
	})
}

// matches tells whether one of the URL Patterns selects t.
func (f *filter) matches(t *topic.Topic) bool {
	return slices.ContainsFunc(f.patterns, func(m *topic.Matcher) bool { return m.Match(t) })
}
