package client

import (
	"net/url"
	"strings"
)

const (
	// maxLinkBytes bounds the Link fields that are looked at, and maxLinkParams the parameters of one link.
	maxLinkBytes  = 64 << 10
	maxLinkParams = 32
)

// link is one link of a Link field (RFC 8288 section 3).
type link struct {
	target string
	params map[string]string // by names in lower case; of a repeated one the first
}

// parseLinks reads Link fields, by the algorithm of RFC 8288 appendix B.2: where a field stops being one, the links before
// are kept.
func parseLinks(fields []string) []link {
	var links []link
	left := maxLinkBytes
	for _, field := range fields {
		if left -= len(field); left < 0 {
			break
		}
		s := scanner{rest: field}
		for {
			l, ok := s.link()
			if !ok {
				break
			}
			links = append(links, l)
		}
	}
	return links
}

// has reports whether the link has a relation. Registered ones are compared without regard to case.
func (l link) has(rel string) bool {
	for r := range strings.FieldsSeq(l.params["rel"]) {
		if strings.EqualFold(r, rel) {
			return true
		}
	}
	return false
}

// resolve gives the target of a link that is about the resource at base.
func (l link) resolve(base *url.URL) (*url.URL, bool) {
	if anchor, ok := l.params["anchor"]; ok { // the link is about something else
		about, err := base.Parse(anchor)
		if err != nil {
			return nil, false
		}
		if about.Fragment != "" || about.String() != base.String() {
			return nil, false
		}
	}
	target, err := base.Parse(l.target)
	return target, err == nil
}

// scanner reads a Link field.
type scanner struct{ rest string }

// link reads the next link; false when there is none.
func (s *scanner) link() (link, bool) {
	s.rest = strings.TrimLeft(s.rest, " \t,")
	if !s.take('<') {
		return link{}, false
	}
	target, rest, ok := strings.Cut(s.rest, ">")
	if !ok {
		return link{}, false
	}
	s.rest = rest
	l := link{target: target, params: map[string]string{}}
	for s.space(); s.take(';'); s.space() {
		name, value := s.param()
		if _, repeated := l.params[name]; name != "" && !repeated && len(l.params) < maxLinkParams {
			l.params[name] = value
		}
	}
	if s.rest != "" && s.rest[0] != ',' {
		s.rest = "" // what follows is no link
	}
	return l, true
}

// param reads a parameter: a name, and after "=" a token or a quoted string.
func (s *scanner) param() (name, value string) {
	s.space()
	name = strings.ToLower(s.until(" \t=;,"))
	s.space()
	if !s.take('=') {
		return name, ""
	}
	s.space()
	if s.take('"') {
		return name, s.quoted()
	}
	return name, s.until(" \t;,")
}

// quoted reads to the end of a quoted string, whose start has been read.
func (s *scanner) quoted() string {
	var b strings.Builder
	for i := 0; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '"':
			s.rest = s.rest[i+1:]
			return b.String()
		case c == '\\' && i+1 < len(s.rest):
			i++
			b.WriteByte(s.rest[i])
		default:
			b.WriteByte(c)
		}
	}
	s.rest = ""
	return b.String()
}

func (s *scanner) space() { s.rest = strings.TrimLeft(s.rest, " \t") }

// take reads c if it is next.
func (s *scanner) take(c byte) bool {
	if s.rest == "" || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// until reads up to one of the stop characters, or to the end.
func (s *scanner) until(stops string) string {
	end := strings.IndexAny(s.rest, stops)
	if end < 0 {
		end = len(s.rest)
	}
	word := s.rest[:end]
	s.rest = s.rest[end:]
	return word
}
