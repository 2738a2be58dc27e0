package topic

// Matcher selects topics. It is immutable and safe for concurrent use.
type Matcher struct {
	typ      Type
	wildcard bool
	pattern  string
	compiler *Compiler
	url      *urlPattern // for URL Patterns other than "*"
}

// Key identifies a matcher among those of one [Compiler]: equal keys select the same topics. The wildcard has one key
// whatever its type (MATCH-06).
type Key struct {
	typ     Type
	pattern string
}

// Type returns the matcher type.
func (m *Matcher) Type() Type { return m.typ }

// Pattern returns the matcher string as it was given.
func (m *Matcher) Pattern() string { return m.pattern }

// Wildcard reports whether the matcher is "*".
func (m *Matcher) Wildcard() bool { return m.wildcard }

// Key returns the identity of the matcher.
func (m *Matcher) Key() Key {
	if m.wildcard {
		return Key{pattern: Wildcard}
	}
	return Key{typ: m.typ, pattern: m.pattern}
}

// HasRegexpGroups reports whether the matcher is a URL Pattern with regular expressions of its author, as opposed to
// wildcards and named groups.
func (m *Matcher) HasRegexpGroups() bool { return m.url != nil && m.url.regexpGroups }

// Cost estimates what the regular expressions of the matcher cost, in program instructions: each takes memory for as long as the
// matcher lives and time for every byte it is tested against. It is 0 for matchers that need none, which are most.
func (m *Matcher) Cost() int {
	if m.url == nil {
		return 0
	}
	cost := 0
	for i := range m.url.programs {
		if re := m.url.programs[i].regexp; re != nil {
			cost += re.cost
		}
	}
	return cost
}

// Match reports whether the matcher selects t. A URL Pattern selects no topic that is not a URL reference (URLP-06), and none
// that would be too expensive to parse or to evaluate (URLP-08). It does not allocate once t is parsed.
func (m *Matcher) Match(t *Topic) bool {
	switch {
	case m.wildcard:
		return true
	case m.typ == Exact:
		return m.pattern == t.raw
	}
	t.parse()
	return t.valid && m.url.match(&t.components)
}
