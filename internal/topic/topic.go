package topic

import (
	"strings"
	"sync"

	"github.com/nlnwa/whatwg-url/url"
)

// Bounds of the URLs that topics are read as. The parser joins the path and the userinfo piece by piece, at a cost that
// grows with the square of their length: half a second for 8 KiB of at signs.
const (
	maxPathSegments  = 256
	maxUserinfoBytes = 512
)

// Topic is a topic string together with its parsed form. It is parsed when a matcher or [Topic.Reserved] first needs
// it, and only once. It is safe for concurrent use.
type Topic struct {
	raw      string
	compiler *Compiler

	once       sync.Once
	valid      bool // a URL reference
	excessive  bool // too expensive to find out
	components [componentCount]string
}

// Topic returns the topic raw, to be resolved against the hub URL. Every string is accepted; one that is no URL
// reference is selected by exact matchers and "*" alone (URLP-06).
func (c *Compiler) Topic(raw string) *Topic {
	return &Topic{raw: raw, compiler: c}
}

// Raw returns the topic as it was given.
func (t *Topic) Raw() string { return t.raw }

// Reserved reports whether the topic lies in the reserved namespace of the hub: its path, resolved against the hub URL
// and with the percent-encoding of unreserved characters undone, is that of the hub or below it, whatever scheme,
// authority, query and fragment (Mercure, "Reserved Hub Namespace"; NS-01 to NS-12). A topic that is no URL reference
// is not reserved (NS-10). One with more than 256 slashes or a userinfo of more than 512 bytes counts as reserved, because
// the answer would cost too much.
func (t *Topic) Reserved() bool {
	t.parse()
	if !t.valid {
		return t.excessive
	}
	path, hub := decodeUnreserved(t.components[pathnameComponent]), t.compiler.reserved
	return strings.HasPrefix(path, hub) && (len(path) == len(hub) || path[len(hub)] == '/')
}

// parse fills in the components.
func (t *Topic) parse() {
	t.once.Do(func() {
		if t.excessive = excessive(t.raw); t.excessive {
			return
		}
		if Normal(t.raw) { // as most are, and parsing takes longer than all else that is done with a topic
			t.valid, t.components = true, t.compiler.normalComponents(t.raw)
			return
		}
		u, ok := t.compiler.resolve(t.raw)
		if !ok {
			return
		}
		t.valid, t.components = true, componentsOf(u)
	})
}

// componentsOf returns the components of u that patterns are tested against.
func componentsOf(u *url.Url) [componentCount]string {
	return [componentCount]string{
		protocolComponent: u.Scheme(),
		usernameComponent: u.Username(),
		passwordComponent: u.Password(),
		hostnameComponent: u.Hostname(),
		portComponent:     u.Port(),
		pathnameComponent: u.Pathname(),
		searchComponent:   u.Query(),
		hashComponent:     u.Fragment(),
	}
}

// excessive reports whether raw has too many slashes, or an at sign too far into what could be its authority.
func excessive(raw string) bool {
	if len(raw) <= maxPathSegments {
		return false
	}
	if strings.Count(raw, "/")+strings.Count(raw, `\`) > maxPathSegments {
		return true
	}
	if i := strings.IndexAny(raw, `:/\?#`); i >= 0 && raw[i] == ':' {
		raw = raw[i+1:]
	}
	raw = strings.TrimLeft(raw, "/\\\t\r\n")
	if i := strings.IndexAny(raw, "/?#"); i >= 0 {
		raw = raw[:i]
	}
	return strings.LastIndexByte(raw, '@') > maxUserinfoBytes
}

// resolve parses raw against the hub URL. A panic of the parser counts as a failure, so that no topic takes the process
// down.
func (c *Compiler) resolve(raw string) (u *url.Url, ok bool) {
	defer func() {
		if recover() != nil {
			u, ok = nil, false
		}
	}()
	u, err := c.parser.BasicParser(raw, c.hub, nil, url.NoState)
	return u, err == nil
}

// decodeUnreserved undoes the percent-encoding of unreserved characters (RFC 3986 §2.3), once.
func decodeUnreserved(path string) string {
	first := strings.IndexByte(path, '%')
	if first < 0 {
		return path
	}
	b := make([]byte, 0, len(path))
	b = append(b, path[:first]...)
	for i := first; i < len(path); i++ {
		if c, ok := percentDecoded(path[i:]); ok && unreserved(c) {
			b = append(b, c)
			i += 2
			continue
		}
		b = append(b, path[i])
	}
	return string(b)
}

// percentDecoded returns the octet that s starts with in percent-encoding.
func percentDecoded(s string) (c byte, ok bool) {
	if len(s) < 3 || s[0] != '%' {
		return 0, false
	}
	high, low := hexDigit(s[1]), hexDigit(s[2])
	return high<<4 | low&0xF, high <= 0xF && low <= 0xF
}

// hexDigit returns the value of a hexadecimal digit, 0xFF for anything else.
func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 0xFF
}

// unreserved reports whether c is an unreserved character (RFC 3986 §2.3).
func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}
