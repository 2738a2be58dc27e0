package topic

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The components of a URL, in the order of the URL Pattern Standard.
const (
	protocolComponent = iota
	usernameComponent
	passwordComponent
	hostnameComponent
	portComponent
	pathnameComponent
	searchComponent
	hashComponent
	componentCount
)

// errNotCanonical reports a component string that go-urlpattern can not have produced. A pattern with one is refused,
// because matching it by our own means could then mean something else than the standard says.
var errNotCanonical = errors.New("topic: not a canonical component pattern")

// componentOptions are the options of a component ("options" in the URL Pattern Standard); zero bytes stand for the empty string.
type componentOptions struct {
	delimiter byte // where a named group ends
	prefix    byte // the character that binds to the group after it
}

// segmentRegexp is the regular expression that the standard gives a named group without one of its own. The library
// writes the empty delimiter as U+0000, which no component contains.
func (o componentOptions) segmentRegexp() string {
	return "[^" + quoteRegexp(string(rune(o.delimiter))) + "]+?"
}

// partKind says what a part of a component matches.
type partKind uint8

const (
	fixedPart    partKind = iota // value, literally
	segmentPart                  // everything up to the delimiter, not empty
	wildcardPart                 // everything
	regexpPart                   // the regular expression value
)

// part is one part of a component pattern ("part" in the URL Pattern Standard).
type part struct {
	kind           partKind
	value          string
	prefix, suffix string // literal text that belongs to the group
	modifier       byte   // 0, '?', '*' or '+'
}

// componentParser reads the canonical pattern string of one component. It is the parser of the standard without its
// canonicalisation, which the library has done already.
type componentParser struct {
	in      string
	pos     int
	options componentOptions
	literal strings.Builder // fixed text not yet in parts
	parts   []part
}

// parseComponent returns the parts of a canonical component string. The error is errNotCanonical.
func parseComponent(s string, o componentOptions) ([]part, error) {
	p := &componentParser{in: s, options: o}
	for p.pos < len(p.in) {
		if err := p.next(); err != nil {
			return nil, err
		}
	}
	p.flush()
	return p.parts, nil
}

func (p *componentParser) next() error {
	switch c := p.in[p.pos]; c {
	case '{':
		p.pos++
		return p.group()
	case ':', '(', '*':
		return p.add(part{})
	case '}', ')', '?', '+':
		return errNotCanonical
	default:
		if c == p.options.prefix && c != 0 && p.pos+1 < len(p.in) && strings.IndexByte(":(*", p.in[p.pos+1]) >= 0 {
			p.pos++
			return p.add(part{prefix: string(rune(c))})
		}
		return p.char(&p.literal)
	}
}

// char moves one possibly escaped character to b.
func (p *componentParser) char(b *strings.Builder) error {
	if p.in[p.pos] == '\\' {
		p.pos++
	}
	if p.pos >= len(p.in) {
		return errNotCanonical
	}
	_, size := utf8.DecodeRuneInString(p.in[p.pos:])
	b.WriteString(p.in[p.pos : p.pos+size])
	p.pos += size
	return nil
}

// text reads literal text inside braces.
func (p *componentParser) text() (string, error) {
	var b strings.Builder
	for p.pos < len(p.in) {
		switch p.in[p.pos] {
		case '{', '}', ':', '(', '*':
			return b.String(), nil
		case ')', '?', '+':
			return "", errNotCanonical
		}
		if err := p.char(&b); err != nil {
			return "", err
		}
	}
	return "", errNotCanonical
}

// group reads what follows an opening brace.
func (p *componentParser) group() error {
	prefix, err := p.text()
	if err != nil {
		return err
	}
	if p.pos < len(p.in) && p.in[p.pos] == '}' {
		p.pos++
		m := p.modifier()
		if m == 0 {
			p.literal.WriteString(prefix)
			return nil
		}
		p.flush()
		if prefix != "" {
			p.parts = append(p.parts, part{kind: fixedPart, value: prefix, modifier: m})
		}
		return nil
	}
	g := part{prefix: prefix}
	if err := p.matching(&g); err != nil {
		return err
	}
	if g.suffix, err = p.text(); err != nil {
		return err
	}
	if p.pos >= len(p.in) || p.in[p.pos] != '}' {
		return errNotCanonical
	}
	p.pos++
	p.finish(g)
	return nil
}

// add reads a matching group outside braces and its modifier into g.
func (p *componentParser) add(g part) error {
	if err := p.matching(&g); err != nil {
		return err
	}
	p.finish(g)
	return nil
}

func (p *componentParser) finish(g part) {
	p.flush()
	g.modifier = p.modifier()
	p.parts = append(p.parts, g)
}

func (p *componentParser) flush() {
	if p.literal.Len() > 0 {
		p.parts = append(p.parts, part{kind: fixedPart, value: p.literal.String()})
		p.literal.Reset()
	}
}

func (p *componentParser) modifier() byte {
	if p.pos < len(p.in) {
		switch c := p.in[p.pos]; c {
		case '?', '*', '+':
			p.pos++
			return c
		}
	}
	return 0
}

// matching reads a wildcard, a name, a regular expression, or a name and a regular expression.
func (p *componentParser) matching(g *part) error {
	if p.pos >= len(p.in) {
		return errNotCanonical
	}
	switch p.in[p.pos] {
	case '*':
		p.pos++
		g.kind = wildcardPart
		return nil
	case ':':
		p.pos++
		n := nameLength(p.in[p.pos:])
		if n == 0 {
			return errNotCanonical
		}
		p.pos += n
		if p.pos >= len(p.in) || p.in[p.pos] != '(' {
			g.kind = segmentPart
			return nil
		}
	case '(':
	default:
		return errNotCanonical
	}
	value, size := regexpGroup(p.in[p.pos:])
	if value == "" {
		return errNotCanonical
	}
	p.pos += size
	switch value {
	case p.options.segmentRegexp():
		g.kind = segmentPart
	case ".*":
		g.kind = wildcardPart
	default:
		g.kind, g.value = regexpPart, value
	}
	return nil
}

// regexpGroup returns the regular expression between the parenthesis that s starts with and the one that closes it, and
// the number of bytes read; 0 if there is no such group.
func regexpGroup(s string) (value string, size int) {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return s[1:i], i + 1
			}
		}
	}
	return "", 0
}

// nameLength returns the number of leading bytes of s that form the name of a group, by the rules of the library.
func nameLength(s string) int {
	for i, r := range s {
		if !nameRune(r, i == 0) {
			return i
		}
	}
	return len(s)
}

func nameRune(r rune, first bool) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || !first && ('0' <= r && r <= '9' || r == '_')
	}
	if unicode.In(r, unicode.Pattern_Syntax, unicode.Pattern_White_Space) {
		return false
	}
	if unicode.In(r, unicode.L, unicode.Nl, unicode.Other_ID_Start) {
		return true
	}
	return !first && unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Continue)
}

// regexpSource returns the regular expression, not anchored, for parts. Groups do not capture.
func regexpSource(parts []part, o componentOptions) string {
	var b strings.Builder
	for _, g := range parts {
		writePart(&b, g, o)
	}
	return b.String()
}

func writePart(b *strings.Builder, g part, o componentOptions) {
	modifier := ""
	if g.modifier != 0 {
		modifier = string(rune(g.modifier))
	}
	if g.kind == fixedPart {
		if modifier == "" {
			b.WriteString(quoteRegexp(g.value))
			return
		}
		b.WriteString("(?:" + quoteRegexp(g.value) + ")" + modifier)
		return
	}
	value := g.value
	switch g.kind {
	case segmentPart:
		value = o.segmentRegexp()
	case wildcardPart:
		value = ".*"
	case fixedPart, regexpPart:
	}
	value = "(?:" + value + ")"
	prefix, suffix := quoteRegexp(g.prefix), quoteRegexp(g.suffix)
	switch {
	case g.modifier == 0 || g.modifier == '?':
		b.WriteString("(?:" + prefix + value + suffix + ")" + modifier)
	case prefix == "" && suffix == "":
		b.WriteString("(?:" + value + modifier + ")")
	default:
		b.WriteString("(?:" + prefix + value + "(?:" + suffix + prefix + value + ")*" + suffix + ")")
		if g.modifier == '*' {
			b.WriteByte('?')
		}
	}
}

// quoteRegexp escapes s for use in a regular expression, inside a character class as well.
func quoteRegexp(s string) string {
	const special = `\.+*?()|[]{}^$/-`
	if !strings.ContainsAny(s, special) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if r < utf8.RuneSelf && strings.ContainsRune(special, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
