package topic

import (
	"errors"
	"regexp/syntax"
	"strings"

	urlpattern "github.com/dunglas/go-urlpattern"
)

// maxRegexpCost bounds the regular expressions of one pattern, in estimated program instructions. It is checked before
// the library compiles them: 4 KiB of nothing but counted repetitions take it half a second.
const maxRegexpCost = 1000

// urlPattern is a compiled URL Pattern.
type urlPattern struct {
	// components holds the canonical pattern strings.
	components   [componentCount]string
	programs     [componentCount]program
	regexpGroups bool
}

// newURLPattern compiles pattern. The only error is [ErrPattern]: go-urlpattern's texts quote the input.
func newURLPattern(pattern, hubURL string) (*urlPattern, error) {
	// The characters that topics may not hold make no sense here, and some break the way back from the canonical strings:
	// fixed text of line ends vanishes between two parts and leaves no trace that it kept them apart.
	if Check(pattern) != nil || !affordable(pattern) {
		return nil, ErrPattern
	}
	u := &urlPattern{}
	if err := u.canonicalise(pattern, hubURL); err != nil {
		return nil, err
	}
	for i := range u.components {
		parts, err := u.parts(i)
		if err != nil {
			return nil, ErrPattern
		}
		for _, g := range parts {
			if g.kind == regexpPart && !selfContained(g.value) {
				return nil, ErrPattern
			}
		}
		if u.programs[i], err = newProgram(parts, u.options(i)); err != nil {
			return nil, err
		}
	}
	return u, nil
}

// canonicalise lets the library validate pattern and keeps the component strings. It is the one place that calls
// the library, which panics on some input (v1.0.0 on "/:a../..", for one).
func (u *urlPattern) canonicalise(pattern, hubURL string) (err error) {
	defer func() {
		if recover() != nil {
			err = ErrPattern
		}
	}()
	// The base is for relative patterns alone (URLP-15): given one, the library puts the folder of the base before the
	// opaque path of an absolute pattern.
	p, err := urlpattern.New(pattern, "", nil)
	if errors.Is(err, urlpattern.ErrNoBaseURL) {
		p, err = urlpattern.New(pattern, hubURL, nil)
	}
	if err != nil {
		return ErrPattern
	}
	u.components = [componentCount]string{
		protocolComponent: p.Protocol(),
		usernameComponent: p.Username(),
		passwordComponent: p.Password(),
		hostnameComponent: p.Hostname(),
		portComponent:     p.Port(),
		pathnameComponent: p.Pathname(),
		searchComponent:   p.Search(),
		hashComponent:     p.Hash(),
	}
	u.regexpGroups = p.HasRegexpGroups()
	return nil
}

// parts parses component i.
func (u *urlPattern) parts(i int) ([]part, error) {
	return parseComponent(u.components[i], u.options(i))
}

// options returns the options of component i. Those of the pathname depend on the program of the protocol, which comes
// first.
func (u *urlPattern) options(i int) componentOptions {
	switch {
	case i == hostnameComponent:
		return componentOptions{delimiter: '.'}
	case i == pathnameComponent && u.special():
		return componentOptions{delimiter: '/', prefix: '/'}
	}
	return componentOptions{}
}

// special reports whether the protocol component matches a special scheme, and so the pathname is not opaque.
func (u *urlPattern) special() bool {
	for _, scheme := range [...]string{"http", "https", "ws", "wss", "ftp"} {
		if u.programs[protocolComponent].match(scheme) {
			return true
		}
	}
	return false
}

// match reports whether every component matches.
func (u *urlPattern) match(components *[componentCount]string) bool {
	for _, i := range [...]int{
		hostnameComponent, pathnameComponent, protocolComponent, portComponent,
		searchComponent, hashComponent, usernameComponent, passwordComponent,
	} {
		if !u.programs[i].match(components[i]) {
			return false
		}
	}
	return true
}

// affordable reports whether the regular expressions in pattern are well formed by themselves and together small.
func affordable(pattern string) bool {
	total := 0
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '(':
			value, size := regexpGroup(pattern[i:])
			if size == 0 || !selfContained(value) {
				return false
			}
			tree, err := syntax.Parse(value, syntax.Perl)
			if err != nil {
				return false
			}
			if total += regexpCost(tree); total > maxRegexpCost {
				return false
			}
			i += size - 1
		}
	}
	return true
}

// selfContained reports whether value is a regular expression of its own. The library joins the text of a component
// into one expression, where a value such as `[` could swallow what follows; in the URL Pattern Standard it is an
// error, as is \Q, which RE2 alone knows.
func selfContained(value string) bool {
	for rest := value; ; {
		_, after, found := strings.Cut(rest, `\`)
		if !found || after == "" {
			break
		}
		if after[0] == 'Q' {
			return false
		}
		rest = after[1:]
	}
	_, err := syntax.Parse(value, syntax.Perl)
	return err == nil
}
