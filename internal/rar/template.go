package rar

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// placeholderMark stands for a placeholder in the skeleton of a template. No topic holds it.
const placeholderMark = '\x00'

// template is a matcher string cut at its placeholders: literals[i] precedes names[i], and the last literal ends it.
type template struct {
	literals []string
	names    []string
}

// cutTemplate cuts s at {{name}}.
func cutTemplate(s string) (template, error) {
	var t template
	for {
		before, rest, found := strings.Cut(s, "{{")
		t.literals = append(t.literals, before)
		if !found {
			return t, nil
		}
		name, after, closed := strings.Cut(rest, "}}")
		if !closed || !variableName(name) {
			return template{}, ErrTemplate
		}
		t.names = append(t.names, name)
		s = after
	}
}

// variableName reports whether name is sub, client_id, user.<attribute> or claims.<name>.
func variableName(name string) bool {
	if name == "sub" || name == "client_id" {
		return true
	}
	space, member, _ := strings.Cut(name, ".")
	return (space == "user" || space == "claims") && member != "" && !strings.ContainsFunc(member, func(r rune) bool {
		return !wordByte(r)
	})
}

// wordByte reports whether r may stand in the name of an attribute or claim.
func wordByte(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' || r == '.'
}

// lexeme is an element of a skeleton: a literal character, or something with a meaning in the pattern syntax.
type lexeme struct {
	char    rune
	literal bool
}

func (l lexeme) is(c rune) bool { return l.literal && l.char == c }

func (l lexeme) mark() bool { return l.is(placeholderMark) }

// lexExact returns the lexemes of an exact matcher.
func lexExact(skeleton string) []lexeme {
	ls := make([]lexeme, 0, len(skeleton))
	for _, r := range skeleton {
		ls = append(ls, lexeme{char: r, literal: true})
	}
	return ls
}

// lexPattern returns the lexemes of a URL Pattern. Groups are one lexeme each and must not hold placeholders.
func lexPattern(skeleton string) ([]lexeme, error) {
	var ls []lexeme
	for i := 0; i < len(skeleton); {
		r, size := utf8.DecodeRuneInString(skeleton[i:])
		l := lexeme{char: r, literal: true}
		switch r {
		case '\\':
			if i+1 == len(skeleton) {
				return nil, ErrTemplate
			}
			l.char, size = utf8.DecodeRuneInString(skeleton[i+1:])
			size++
			if l.mark() {
				return nil, ErrTemplate
			}
		case '{', '(':
			size = groupSize(skeleton[i:])
			if size == 0 || strings.ContainsRune(skeleton[i:i+size], placeholderMark) {
				return nil, ErrTemplate
			}
			l.literal = false
		case ':':
			name := strings.IndexFunc(skeleton[i+1:], func(r rune) bool { return !nameCharacter(r) })
			if name < 0 {
				name = len(skeleton) - i - 1
			}
			size += name
			l.literal = name == 0
		case '*', '+', '}', ')':
			l.literal = false
		case '?':
			// After a group it is a modifier, else it begins the query.
			l.literal = len(ls) == 0 || ls[len(ls)-1].literal
		}
		ls = append(ls, l)
		i += size
	}
	return ls, nil
}

// nameCharacter reports, generously, whether r may belong to the name of a group.
func nameCharacter(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r >= utf8.RuneSelf
}

// groupSize returns the length of the group in braces or parentheses that s starts with, 0 if it is not closed.
func groupSize(s string) int {
	var open []byte
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			i++
		case '{', '(':
			open = append(open, c)
		case '}', ')':
			want := byte('{')
			if c == ')' {
				want = '('
			}
			if open[len(open)-1] != want {
				return 0
			}
			if open = open[:len(open)-1]; len(open) == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// region is the part of a URL a placeholder stands in.
type region uint8

const (
	textRegion region = iota // an exact matcher that does not look like a URL
	hostRegion
	pathRegion
	queryRegion
)

// place returns the region of every placeholder in ls, in order. The error says that one stands where its value could
// change what the matcher means.
func place(ls []lexeme, pattern bool) ([]region, error) {
	if err := separated(ls); err != nil {
		return nil, err
	}
	start, authority := afterScheme(ls)
	switch {
	case authority:
		return placeURL(ls, start)
	case len(ls) > 0 && ls[0].is('/') && (len(ls) == 1 || !ls[1].is('/') && !ls[1].is('\\')):
		return placePath(ls, 0)
	case pattern:
		return nil, ErrTemplate
	}
	return make([]region, countMarks(ls)), nil
}

func countMarks(ls []lexeme) int {
	n := 0
	for _, l := range ls {
		if l.mark() {
			n++
		}
	}
	return n
}

// separated demands that no placeholder touches anything but literal text, that none completes a percent-encoded octet, and
// that a character which percent-encoding would hide stands between two of them. Else two different lists of values
// could give the same matcher.
func separated(ls []lexeme) error {
	open := false // a placeholder, and since then only characters that values hold
	for i, l := range ls {
		switch {
		case l.mark():
			if open || i > 0 && !ls[i-1].literal || i+1 < len(ls) && !ls[i+1].literal ||
				i > 0 && ls[i-1].is('%') || i > 1 && ls[i-2].is('%') {
				return ErrTemplate
			}
			open = true
		case !l.literal || l.char != '%' && !unreservedRune(l.char):
			open = false
		}
	}
	return nil
}

// afterScheme returns the index after "://" if ls begins with a scheme and an authority.
func afterScheme(ls []lexeme) (start int, ok bool) {
	for i, l := range ls {
		switch {
		case l.mark(), l.is('/'), l.is('\\'), l.is('?'), l.is('#'):
			return 0, false
		case l.is(':'):
			return i + 3, i > 0 && i+2 < len(ls) && ls[i+1].is('/') && ls[i+2].is('/')
		}
	}
	return 0, false
}

func placeURL(ls []lexeme, start int) ([]region, error) {
	end := start
	for end < len(ls) && !ls[end].is('/') && !ls[end].is('\\') && !ls[end].is('?') && !ls[end].is('#') {
		end++
	}
	authority := ls[start:end]
	var rs []region
	for i, l := range authority {
		if !l.mark() {
			continue
		}
		if slices.ContainsFunc(authority, func(l lexeme) bool { return l.is('@') }) || !isLabel(authority, i) {
			return nil, ErrTemplate
		}
		rs = append(rs, hostRegion)
	}
	rest, err := placePath(ls, end)
	return append(rs, rest...), err
}

// isLabel reports whether the placeholder at i stands in a label of its host that is followed by another one, and which
// is otherwise made of letters, digits and hyphens. The last label is left out: in its place a number makes an address, and
// a name another owner.
func isLabel(authority []lexeme, i int) bool {
	from, to := segment(authority, i, ".")
	for _, l := range authority[from:to] {
		if !l.literal || !l.mark() && !labelRune(l.char) {
			return false
		}
	}
	return to+1 < len(authority)
}

func labelRune(r rune) bool { return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' }

// segment returns the bounds of the run around i that holds none of the separators.
func segment(ls []lexeme, i int, separators string) (from, to int) {
	stop := func(l lexeme) bool { return l.literal && strings.ContainsRune(separators, l.char) }
	from, to = i, i
	for from > 0 && !stop(ls[from-1]) {
		from--
	}
	for to < len(ls) && !stop(ls[to]) {
		to++
	}
	return from, to
}

// placePath places the placeholders of the path that starts at start, and of query and fragment.
func placePath(ls []lexeme, start int) ([]region, error) {
	var rs []region
	in := pathRegion
	queryStart := len(ls)
	for i := start; i < len(ls); i++ {
		l := ls[i]
		switch {
		case l.is('#'):
			if countMarks(ls[i:]) > 0 {
				return nil, ErrTemplate
			}
			return rs, nil
		case l.is('?') && in == pathRegion:
			in, queryStart = queryRegion, i+1
		case l.mark() && in == pathRegion:
			from, to := segment(ls, i, `/\?#`)
			if !allLiteral(ls[max(from, start):to]) {
				return nil, ErrTemplate
			}
			rs = append(rs, pathRegion)
		case l.mark():
			if !isQueryValue(ls[queryStart:], i-queryStart) {
				return nil, ErrTemplate
			}
			rs = append(rs, queryRegion)
		}
	}
	return rs, nil
}

func allLiteral(ls []lexeme) bool {
	return !slices.ContainsFunc(ls, func(l lexeme) bool { return !l.literal })
}

// isQueryValue reports whether the placeholder at i stands after the equals sign of a pair that is literal.
func isQueryValue(query []lexeme, i int) bool {
	from, to := segment(query, i, "&#")
	return allLiteral(query[from:to]) && slices.ContainsFunc(query[from:i], func(l lexeme) bool { return l.is('=') })
}
