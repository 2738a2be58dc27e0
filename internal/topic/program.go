package topic

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// maxEvaluation bounds the work of one regular expression on one component, in program instructions times bytes. RE2 is
// linear in each of the two, not in both; beyond the bound the pattern does not match (URLP-07, URLP-08). It is about a
// quarter of a millisecond.
const maxEvaluation = 1 << 17

// programKind says how a component is matched.
type programKind uint8

const (
	anyProgram     programKind = iota // matches everything
	literalProgram                    // matches one string
	shapeProgram                      // matches a sequence of steps, decided from left to right
	regexpProgram                     // needs RE2
)

// program matches one component.
type program struct {
	kind    programKind
	literal string // all of it for literalProgram, else the text every match starts with
	shape   *shape
	regexp  *boundedRegexp
}

// shape is a component without regular expressions and modifiers whose match needs no search: every named group ends
// where the delimiter is, and after the first wildcard comes nothing but literal text and wildcards.
type shape struct {
	steps     []step
	delimiter byte
}

// step is one element of a shape; text is set for fixedPart alone.
type step struct {
	kind partKind
	text string
}

type boundedRegexp struct {
	*regexp.Regexp
	cost int // an estimate of the number of instructions
}

// newProgram compiles parts. The error is [ErrPattern].
func newProgram(parts []part, o componentOptions) (program, error) {
	steps, plain := flatten(parts)
	leading := ""
	if len(steps) > 0 && steps[0].kind == fixedPart {
		leading = steps[0].text
	}
	switch {
	case !plain:
	case len(steps) == 0, len(steps) == 1 && steps[0].kind == fixedPart:
		return program{kind: literalProgram, literal: leading}, nil
	case len(steps) == 1 && steps[0].kind == wildcardPart:
		return program{kind: anyProgram}, nil
	case decidable(steps, o.delimiter):
		return program{kind: shapeProgram, literal: leading, shape: &shape{steps: steps, delimiter: o.delimiter}}, nil
	}
	source := `\A(?:` + regexpSource(parts, o) + `)\z`
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return program{}, ErrPattern
	}
	re, err := regexp.Compile(source)
	if err != nil {
		return program{}, ErrPattern
	}
	return program{kind: regexpProgram, literal: leading, regexp: &boundedRegexp{Regexp: re, cost: regexpCost(tree)}}, nil
}

// flatten turns parts into steps with adjacent literals joined. It stops at the first part with a modifier or a regular
// expression of its own, and plain tells whether there was none.
func flatten(parts []part) (steps []step, plain bool) {
	fixed := func(text string) {
		if n := len(steps); n > 0 && steps[n-1].kind == fixedPart {
			steps[n-1].text += text
		} else if text != "" {
			steps = append(steps, step{kind: fixedPart, text: text})
		}
	}
	for _, g := range parts {
		if g.modifier != 0 {
			return steps, false
		}
		if g.kind == fixedPart {
			fixed(g.value)
			continue
		}
		fixed(g.prefix)
		if g.kind == regexpPart {
			return steps, false
		}
		steps = append(steps, step{kind: g.kind})
		fixed(g.suffix)
	}
	return steps, true
}

// decidable reports whether steps can be matched from left to right without going back.
func decidable(steps []step, delimiter byte) bool {
	wild := false
	for i, s := range steps {
		switch s.kind {
		case wildcardPart:
			wild = true
		case segmentPart:
			if wild {
				return false
			}
			if i+1 < len(steps) && steps[i+1].kind == segmentPart {
				return false
			}
			if i+1 < len(steps) && steps[i+1].kind == fixedPart && steps[i+1].text[0] != delimiter {
				return false
			}
		case fixedPart, regexpPart:
		}
	}
	return true
}

// match reports whether the program matches the whole of s.
func (p *program) match(s string) bool {
	switch p.kind {
	case anyProgram:
		return true
	case literalProgram:
		return s == p.literal
	case shapeProgram:
		return p.shape.match(s)
	case regexpProgram:
		return strings.HasPrefix(s, p.literal) && p.regexp.match(s)
	}
	return false
}

func (r *boundedRegexp) match(s string) bool {
	return r.cost*(len(s)+1) <= maxEvaluation && r.MatchString(s)
}

func (sh *shape) match(s string) bool {
	for i, st := range sh.steps {
		switch st.kind {
		case fixedPart:
			if !strings.HasPrefix(s, st.text) {
				return false
			}
			s = s[len(st.text):]
		case segmentPart:
			n := strings.IndexByte(s, sh.delimiter)
			if n < 0 {
				n = len(s)
			}
			if n == 0 {
				return false
			}
			if i+1 < len(sh.steps) && sh.steps[i+1].kind == wildcardPart {
				_, n = utf8.DecodeRuneInString(s) // the wildcard takes the rest
			}
			s = s[n:]
		case wildcardPart:
			return matchTail(s, sh.steps[i+1:])
		case regexpPart:
			return false
		}
	}
	return s == ""
}

// matchTail matches s against literals and wildcards that follow a wildcard. The leftmost place for every literal but
// the last is the best one, so this is linear.
func matchTail(s string, steps []step) bool {
	for i, st := range steps {
		if st.kind == wildcardPart {
			continue
		}
		if i == len(steps)-1 {
			return strings.HasSuffix(s, st.text)
		}
		n := strings.Index(s, st.text)
		if n < 0 {
			return false
		}
		s = s[n+len(st.text):]
	}
	return true
}

// regexpCost estimates the number of instructions that re compiles to, without compiling it.
func regexpCost(re *syntax.Regexp) int {
	cost := 1
	if re.Op == syntax.OpLiteral {
		cost = len(re.Rune)
	}
	if re.Op == syntax.OpCharClass {
		cost += len(re.Rune) / 8 // large classes are slower to test
	}
	for _, sub := range re.Sub {
		cost += regexpCost(sub)
	}
	if re.Op == syntax.OpRepeat {
		cost *= max(re.Min, re.Max, 1)
	}
	return cost
}
