package topic

import "strings"

// defaultProofSteps is the budget of a proof. It is some tens of milliseconds when all of it is used; ordinary proofs
// take a thousandth.
const defaultProofSteps = 1 << 19

// Contains reports whether every topic that a selects is proved to be selected by b as well. False means "no" or "not
// proved": unions, unreachable component values, case folding and assertions inside regular expressions, and proofs
// beyond the budget are not attempted. The matchers must come from compilers for the same hub URL.
func Contains(b, a *Matcher) bool { return NewProver(0).Contains(b, a) }

// Prover proves containment within a budget that all its proofs share, so that a request can not buy unbounded work
// with many small questions. It belongs to one goroutine.
type Prover struct {
	left   int
	topics map[string]*Topic // exact matchers as topics of one hub, parsed once
	hubURL string            // the hub of topics
}

// NewProver returns a prover with a budget of steps automaton steps; 0 means that of [Contains].
func NewProver(steps int) *Prover {
	if steps <= 0 {
		steps = defaultProofSteps
	}
	return &Prover{left: steps}
}

// Contains is the function [Contains] within what is left of the budget.
func (p *Prover) Contains(b, a *Matcher) bool {
	switch {
	case b.wildcard:
		return true
	case a.wildcard:
		// "*" selects topics that are no URLs as well, which no pattern does.
		return false
	case a.Key() == b.Key() && a.compiler.hubURL == b.compiler.hubURL:
		return true
	case b.typ == Exact:
		// A pattern selects many spellings of one topic.
		return a.typ == Exact && a.pattern == b.pattern
	case a.typ == Exact:
		return a.compiler.hubURL == b.compiler.hubURL && b.Match(p.topic(a))
	}
	return p.containsPattern(b.url, a.url)
}

// topic returns the exact matcher m as a topic.
func (p *Prover) topic(m *Matcher) *Topic {
	if p.topics == nil || p.hubURL != m.compiler.hubURL {
		p.topics, p.hubURL = map[string]*Topic{}, m.compiler.hubURL
	}
	t, ok := p.topics[m.pattern]
	if !ok {
		t = m.compiler.Topic(m.pattern)
		p.topics[m.pattern] = t
	}
	return t
}

// containsPattern proves containment component by component. A pattern selects a topic when all components match, so
// inclusion of each implies inclusion of the whole.
func (p *Prover) containsPattern(b, a *urlPattern) bool {
	for i := range b.components {
		if disjoint(&b.programs[i], &a.programs[i]) {
			return false
		}
	}
	for i := range b.components {
		if !p.containsComponent(b, a, i) {
			return false
		}
	}
	return true
}

// disjoint reports, cheaply, that no string matches both programs.
func disjoint(b, a *program) bool {
	if a.kind == literalProgram && b.kind == literalProgram {
		return a.literal != b.literal
	}
	if b.kind == literalProgram {
		a, b = b, a
	}
	if a.kind == literalProgram {
		return !strings.HasPrefix(a.literal, b.literal)
	}
	return !strings.HasPrefix(a.literal, b.literal) && !strings.HasPrefix(b.literal, a.literal)
}

func (p *Prover) containsComponent(b, a *urlPattern, i int) bool {
	if b.programs[i].kind == anyProgram || b.components[i] == a.components[i] && b.options(i) == a.options(i) {
		return true
	}
	if a.programs[i].kind == literalProgram {
		return b.programs[i].match(a.programs[i].literal)
	}
	outer, ok := p.automaton(b, i)
	if !ok {
		return false
	}
	inner, ok := p.automaton(a, i)
	return ok && p.includes(outer, inner)
}

func (p *Prover) automaton(u *urlPattern, i int) (*automaton, bool) {
	parts, err := u.parts(i)
	if err != nil {
		return nil, false
	}
	return newAutomaton(regexpSource(parts, u.options(i)))
}
