package checks

import (
	"fmt"
	"strings"

	"github.com/cinnabar-hub/cinnabar/test/conformance/suite"
	"github.com/cinnabar-hub/cinnabar/test/conformance/wire"
)

// challenge is one challenge of a WWW-Authenticate field (RFC 9110 section 11.6.1).
type challenge struct {
	Scheme  string // in lower case
	Token68 string
	Params  []authParam
}

// authParam is a parameter of a challenge, with its value as it is meant.
type authParam struct {
	Name   string // in lower case
	Value  string
	Quoted bool
}

// Get gives the value of the first parameter of this name.
func (c challenge) Get(name string) (string, bool) {
	for _, p := range c.Params {
		if p.Name == name {
			return p.Value, true
		}
	}
	return "", false
}

// challengesOf reads all WWW-Authenticate fields of an answer, and says what in them is not as RFC 9110 has it. What can
// be understood nevertheless is given, so that a check about something else does not depend on the syntax.
func challengesOf(resp *wire.Response) (all []challenge, faults []string) {
	for _, v := range resp.All("WWW-Authenticate") {
		p := &challengeParser{rest: v}
		p.list()
		all, faults = append(all, p.all...), append(faults, p.faults...)
	}
	return all, faults
}

// bearerOf gives the first Bearer challenge of an answer.
func bearerOf(resp *wire.Response) (challenge, bool) {
	all, _ := challengesOf(resp)
	for _, c := range all {
		if c.Scheme == "bearer" {
			return c, true
		}
	}
	return challenge{}, false
}

// errorCode gives the error code that the Bearer challenge of an answer carries, or nothing.
func errorCode(resp *wire.Response) string {
	c, _ := bearerOf(resp)
	code, _ := c.Get("error")
	return code
}

// wantCode sends a request; the check fails when the answer is not of this status with a Bearer challenge that carries
// this error code. The empty code stands for a challenge without any.
func wantCode(t *suite.T, r wire.Request, status int, code string) *wire.Response {
	resp := t.Want(r, status)
	c, ok := bearerOf(resp)
	if !ok {
		t.Fail("%d without a Bearer challenge", status)
	}
	switch got, has := c.Get("error"); {
	case code == "" && has:
		t.Fail("%d with error=%q, wanted none", status, got)
	case got != code:
		t.Fail("%d with error=%q, wanted %q", status, got, code)
	}
	return resp
}

// challengeParser reads a list of challenges:
//
//	challenge  = auth-scheme [ 1*SP ( token68 / #auth-param ) ]
//	auth-param = token BWS "=" BWS ( token / quoted-string )
//
// BWS and empty list elements must not be sent (sections 5.6.1.1 and 5.6.3), so they are faults here.
type challengeParser struct {
	rest   string
	all    []challenge
	faults []string
}

func (p *challengeParser) fault(format string, args ...any) {
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

// list reads elements, each a challenge with perhaps its first parameter, or a further parameter.
func (p *challengeParser) list() {
	if strings.Trim(p.rest, " \t") == "" {
		p.fault("empty field")
		return
	}
	for {
		p.space()
		if p.rest == "" || p.rest[0] == ',' {
			p.fault("empty list element")
		} else {
			p.element()
		}
		p.space()
		if p.rest == "" {
			return
		}
		if p.rest[0] == ',' {
			p.rest = p.rest[1:]
			continue
		}
		p.fault("no comma before %.20q", p.rest)
	}
}

func (p *challengeParser) element() {
	name := p.token()
	if name == "" {
		p.fault("%.20q begins neither a scheme nor a parameter", p.rest)
		p.skip()
		return
	}
	if p.equals() {
		p.param(name)
		return
	}
	p.all = append(p.all, challenge{Scheme: strings.ToLower(name)})
	if strings.HasPrefix(p.rest, "\t") {
		p.fault("a tab after the scheme")
	}
	p.space()
	if p.rest == "" || p.rest[0] == ',' {
		return
	}
	if token68 := p.token68(); token68 != "" {
		p.all[len(p.all)-1].Token68 = token68
		return
	}
	name = p.token()
	if name == "" || !p.equals() {
		p.fault("no parameter after the scheme: %.20q", name+p.rest)
		p.skip()
		return
	}
	p.param(name)
}

// equals takes the sign between name and value, if it is there.
func (p *challengeParser) equals() bool {
	after := strings.TrimLeft(p.rest, " \t")
	if !strings.HasPrefix(after, "=") {
		return false
	}
	if after != p.rest {
		p.fault("space before =")
	}
	p.rest = after[1:]
	if p.rest != strings.TrimLeft(p.rest, " \t") {
		p.fault("space after =")
		p.space()
	}
	return true
}

func (p *challengeParser) param(name string) {
	a := authParam{Name: strings.ToLower(name)}
	if strings.HasPrefix(p.rest, `"`) {
		a.Quoted = true
		a.Value = p.quoted()
	} else {
		a.Value = p.token()
		if end := strings.IndexAny(p.rest+",", ", \t"); a.Value == "" || end > 0 {
			a.Value += p.rest[:end]
			p.rest = p.rest[end:]
			p.fault("the value of %s is neither a token nor a quoted string", name)
		}
	}
	if len(p.all) == 0 {
		p.fault("parameter %s before any scheme", name)
		return
	}
	c := &p.all[len(p.all)-1]
	if c.Token68 != "" {
		p.fault("parameter %s after a token68", name)
	}
	if _, twice := c.Get(a.Name); twice {
		p.fault("parameter %s twice in a challenge", name)
	}
	c.Params = append(c.Params, a)
}

// quoted reads a quoted-string (section 5.6.4).
func (p *challengeParser) quoted() string {
	var b strings.Builder
	for i := 1; i < len(p.rest); i++ {
		c := p.rest[i]
		switch {
		case c == '"':
			p.rest = p.rest[i+1:]
			return b.String()
		case c == '\\' && i+1 < len(p.rest):
			i++
			c = p.rest[i]
		}
		if c != '\t' && c < ' ' || c == 0x7F {
			p.fault("control character in a quoted string")
		}
		b.WriteByte(c)
	}
	p.fault("quoted string without end")
	p.rest = ""
	return b.String()
}

// token takes a token (section 5.6.2), which may be empty.
func (p *challengeParser) token() string {
	i := 0
	for i < len(p.rest) && tokenByte(p.rest[i]) {
		i++
	}
	token := p.rest[:i]
	p.rest = p.rest[i:]
	return token
}

func tokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// token68 takes a token68 (section 11.2), which only the end of the challenge may follow; otherwise it takes nothing.
func (p *challengeParser) token68() string {
	i := 0
	for i < len(p.rest) && (tokenByte(p.rest[i]) || p.rest[i] == '/') && strings.IndexByte("!#$%&'*^`|", p.rest[i]) < 0 {
		i++
	}
	n := i
	for i < len(p.rest) && p.rest[i] == '=' {
		i++
	}
	after := strings.TrimLeft(p.rest[i:], " \t")
	if n == 0 || after != "" && after[0] != ',' {
		return ""
	}
	token := p.rest[:i]
	p.rest = p.rest[i:]
	return token
}

func (p *challengeParser) space() { p.rest = strings.TrimLeft(p.rest, " \t") }

// skip goes on to the next comma.
func (p *challengeParser) skip() {
	end := strings.IndexByte(p.rest+",", ',')
	p.rest = p.rest[end:]
}
