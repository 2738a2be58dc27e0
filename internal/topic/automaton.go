package topic

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

const (
	maxAutomatonSource = 4096 // bytes of the regular expression
	maxAutomatonSize   = 3000 // instructions
	maxProofStates     = 2000 // states of the product
)

// firstCharacter is the smallest character a component of a parsed URL can hold: the parser removes TAB, LF and CR and
// percent-encodes the other C0 controls.
const firstCharacter = 0x20

// automaton is a nondeterministic automaton for a regular expression, whose states are instructions.
type automaton struct {
	prog  *syntax.Prog
	seen  []int // generation in which closure last saw an instruction
	gen   int
	stack []uint32
	work  int // instructions looked at since the budget was last charged
}

// newAutomaton compiles source. It refuses what the product construction does not model: assertions and case folding.
func newAutomaton(source string) (*automaton, bool) {
	if len(source) > maxAutomatonSource {
		return nil, false
	}
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil || regexpCost(tree) > maxAutomatonSize {
		return nil, false
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil || len(prog.Inst) > maxAutomatonSize {
		return nil, false
	}
	for i := range prog.Inst {
		in := &prog.Inst[i]
		characters := in.Op == syntax.InstRune || in.Op == syntax.InstRune1
		if in.Op == syntax.InstEmptyWidth || characters && syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
			return nil, false
		}
	}
	return &automaton{prog: prog, seen: make([]int, len(prog.Inst))}, true
}

// closure returns the instructions that consume a character and are reachable from set without consuming one, in
// ascending order, and whether the match instruction is reachable.
func (m *automaton) closure(set []uint32) (next []uint32, accepts bool) {
	m.gen++
	m.stack = append(m.stack[:0], set...)
	for len(m.stack) > 0 {
		pc := m.stack[len(m.stack)-1]
		m.stack = m.stack[:len(m.stack)-1]
		m.work++
		if m.seen[pc] == m.gen {
			continue
		}
		m.seen[pc] = m.gen
		switch in := &m.prog.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			m.stack = append(m.stack, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop, syntax.InstEmptyWidth:
			m.stack = append(m.stack, in.Out)
		case syntax.InstMatch:
			accepts = true
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			next = append(next, pc)
		case syntax.InstFail:
		}
	}
	slices.Sort(next)
	return next, accepts
}

func (m *automaton) start() (set []uint32, accepts bool) {
	return m.closure([]uint32{uint32(m.prog.Start)})
}

// step returns the closure of what set reaches by consuming r.
func (m *automaton) step(set []uint32, r rune) (next []uint32, accepts bool) {
	var out []uint32
	m.work += 1 + len(set)
	for _, pc := range set {
		if in := &m.prog.Inst[pc]; in.MatchRune(r) {
			out = append(out, in.Out)
		}
	}
	if len(out) == 0 {
		return nil, false
	}
	return m.closure(out)
}

// boundaries appends the characters where the behaviour of an instruction changes.
func (m *automaton) boundaries(dst []rune) []rune {
	for i := range m.prog.Inst {
		in := &m.prog.Inst[i]
		if in.Op != syntax.InstRune && in.Op != syntax.InstRune1 {
			continue
		}
		if len(in.Rune) == 1 {
			dst = append(dst, in.Rune[0], in.Rune[0]+1)
			continue
		}
		for j := 0; j+1 < len(in.Rune); j += 2 {
			dst = append(dst, in.Rune[j], in.Rune[j+1]+1)
		}
	}
	return dst
}

// alphabet returns one representative of every class of characters that no instruction of the automata tells apart.
func alphabet(ms ...*automaton) []rune {
	rs := []rune{firstCharacter}
	for _, m := range ms {
		rs = m.boundaries(rs)
	}
	rs = slices.DeleteFunc(rs, func(r rune) bool { return r < firstCharacter || r > utf8.MaxRune })
	slices.Sort(rs)
	return slices.Compact(rs)
}

// productState is a state of inner paired with the states outer can be in after the same text.
type productState struct {
	inner, outer []uint32
}

// product explores pairs of states of two automata.
type product struct {
	inner, outer *automaton
	letters      []rune
	seen         map[string]struct{}
	queue        []productState
	key          []byte
}

// includes proves that outer accepts everything that inner accepts: it walks the product of inner with the
// determinised outer and looks for a state where inner accepts and outer does not. It charges the budget.
func (p *Prover) includes(outer, inner *automaton) bool {
	in, innerAccepts := inner.start()
	out, outerAccepts := outer.start()
	if innerAccepts && !outerAccepts {
		return false
	}
	w := &product{inner: inner, outer: outer, letters: alphabet(outer, inner), seen: map[string]struct{}{}}
	w.visit(productState{in, out})
	for len(w.queue) > 0 {
		s := w.queue[len(w.queue)-1]
		w.queue = w.queue[:len(w.queue)-1]
		for _, r := range w.letters {
			if !w.step(s, r) || !p.charge(inner, outer) {
				return false
			}
		}
	}
	return true
}

// step follows r from s. It reports false if inner then accepts and outer does not, or if there are too many states.
func (w *product) step(s productState, r rune) bool {
	in, innerAccepts := w.inner.step(s.inner, r)
	if len(in) == 0 && !innerAccepts {
		return true
	}
	out, outerAccepts := w.outer.step(s.outer, r)
	if innerAccepts && !outerAccepts {
		return false
	}
	return len(in) == 0 || w.visit(productState{in, out})
}

// visit queues s unless it was there before. It reports false if there are too many states.
func (w *product) visit(s productState) bool {
	w.key = appendStates(w.key[:0], s.inner)
	w.key = append(w.key, 0xFF, 0xFF) // no instruction has this number
	w.key = appendStates(w.key, s.outer)
	if _, ok := w.seen[string(w.key)]; ok {
		return true
	}
	if len(w.seen) == maxProofStates {
		return false
	}
	w.seen[string(w.key)] = struct{}{}
	w.queue = append(w.queue, s)
	return true
}

// appendStates appends the numbers of set, which are below maxAutomatonSize.
func appendStates(b []byte, set []uint32) []byte {
	for _, pc := range set {
		b = binary.BigEndian.AppendUint16(b, uint16(pc))
	}
	return b
}

// charge takes the work of the automata from the budget and reports whether something is left.
func (p *Prover) charge(ms ...*automaton) bool {
	for _, m := range ms {
		p.left -= m.work
		m.work = 0
	}
	return p.left > 0
}
