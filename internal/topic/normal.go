package topic

import "strings"

// Bounds of host names in normal form (RFC 1035).
const (
	maxHostBytes  = 253
	maxLabelBytes = 63
)

// Normal reports whether raw is in normal form: a URL that comes out as raw again when it is parsed and written, whatever it is
// resolved against, and that has no userinfo; or the path of one, as the hub's own topics are, and perhaps a query and a fragment. So the
// components that patterns are tested against are parts of raw, in its order, but for what a path takes from the hub's URL. This is what
// [Matcher.Prefixes] rests on.
//
// It is a plain look at the characters, in time linear in raw and without an allocation, and knows the usual forms alone: http, https, ws, wss
// and ftp with an ASCII host name or an IPv4 address, other schemes with a path that does not begin with a slash, such as
// urn, and paths that begin with one slash. It is false for any other URL, however normal. Stores keep what it says: a change of it is one of
// their formats.
func Normal(raw string) bool {
	if normalPath(raw) {
		return true
	}
	n := strings.IndexByte(raw, ':')
	if n <= 0 || !normalScheme(raw[:n]) {
		return false
	}
	rest := raw[n+1:]
	port, special := defaultPort(raw[:n])
	if !special {
		return raw[:n] != "file" && rest != "" && rest[0] != '/' && rest[0] != '?' && rest[0] != '#' && normalTail(rest, true)
	}
	rest, found := strings.CutPrefix(rest, "//")
	end := strings.IndexByte(rest, '/')
	return found && end > 0 && normalAuthority(rest[:end], port) && normalTail(rest[end:], false)
}

// normalPath reports whether raw is a path in normal form, and not the rest of a URL that lacks its scheme.
func normalPath(raw string) bool {
	return strings.HasPrefix(raw, "/") && !strings.HasPrefix(raw, "//") && normalTail(raw, false)
}

// defaultPort returns the default port of a special scheme other than file.
func defaultPort(scheme string) (port string, special bool) {
	switch scheme {
	case "http", "ws":
		return "80", true
	case "https", "wss":
		return "443", true
	case "ftp":
		return "21", true
	}
	return "", false
}

func normalScheme(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !lower(c) && (i == 0 || !digit(c) && c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return true
}

// normalAuthority reports whether s is a host name or an IPv4 address, and perhaps a port that is not the default one.
func normalAuthority(s, standard string) bool {
	host, port, found := strings.Cut(s, ":")
	if found && (port == standard || !canonicalNumber(port, 65535) || port == "0") {
		return false
	}
	return normalHost(host)
}

func normalHost(host string) bool {
	if len(host) > maxHostBytes {
		return false
	}
	numbers, labels, last := 0, 0, ""
	for label := range strings.SplitSeq(host, ".") {
		if !normalLabel(label) {
			return false
		}
		if canonicalNumber(label, 255) {
			numbers++
		}
		labels, last = labels+1, label
	}
	return lower(last[0]) || labels == 4 && numbers == 4
}

// normalLabel reports whether s is a label of a host name that no rule for internationalised names concerns.
func normalLabel(s string) bool {
	if s == "" || len(s) > maxLabelBytes || s[0] == '-' || s[len(s)-1] == '-' || strings.Contains(s, "--") {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !lower(c) && !digit(c) && c != '-' {
			return false
		}
	}
	return true
}

// canonicalNumber reports whether s is a decimal number up to most, written without needless zeros.
func canonicalNumber(s string, most int) bool {
	if s == "" || len(s) > 5 || len(s) > 1 && s[0] == '0' {
		return false
	}
	n := 0
	for i := range len(s) {
		if !digit(s[i]) {
			return false
		}
		n = 10*n + int(s[i]-'0')
	}
	return n <= most
}

// normalTail reports whether s is a path, and perhaps a query and a fragment, that the parser leaves as they are.
func normalTail(s string, opaque bool) bool {
	path, fragment, _ := strings.Cut(s, "#")
	path, query, _ := strings.Cut(path, "?")
	return plain(path, "\"`<>{}\\") && (opaque || !dotSegments(path)) && plain(query, "\"'<>") && plain(fragment, "\"`<>")
}

// plain reports whether s holds nothing but printable ASCII characters that are not among the excluded, and well-formed
// percent-encoding.
func plain(s, excluded string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c > '~' || strings.IndexByte(excluded, c) >= 0 {
			return false
		}
		if c == '%' {
			if _, ok := percentDecoded(s[i:]); !ok {
				return false
			}
		}
	}
	return true
}

// dotSegments reports whether path may have segments that stand for itself or its parent.
func dotSegments(path string) bool {
	for i := range len(path) {
		switch path[i] {
		case '/':
			segment, _, _ := strings.Cut(path[i+1:min(len(path), i+4)], "/")
			if segment == "." || segment == ".." {
				return true
			}
		case '%':
			if c, _ := percentDecoded(path[i:]); c == '.' {
				return true
			}
		}
	}
	return false
}

func lower(c byte) bool { return 'a' <= c && c <= 'z' }

func digit(c byte) bool { return '0' <= c && c <= '9' }

// normalComponents cuts a topic in normal form into its components.
func (c *Compiler) normalComponents(raw string) (cs [componentCount]string) {
	rest := raw
	if raw[0] == '/' {
		cs[protocolComponent], cs[hostnameComponent], cs[portComponent] = c.hub.Scheme(), c.hub.Hostname(), c.hub.Port()
	} else {
		cs[protocolComponent], rest, _ = strings.Cut(raw, ":")
		if _, special := defaultPort(cs[protocolComponent]); special {
			authority := rest[len("//"):]
			end := strings.IndexByte(authority, '/')
			authority, rest = authority[:end], authority[end:]
			cs[hostnameComponent], cs[portComponent], _ = strings.Cut(authority, ":")
		}
	}
	rest, cs[hashComponent], _ = strings.Cut(rest, "#")
	cs[pathnameComponent], cs[searchComponent], _ = strings.Cut(rest, "?")
	return cs
}

// Prefixes returns strings with one of which every topic in normal form ([Normal]) that m selects begins, and nil when there
// are none to rely on. Topics that are not in normal form can begin with anything.
func (m *Matcher) Prefixes() []string {
	switch {
	case m.wildcard:
		return nil
	case m.typ == Exact:
		return []string{m.pattern}
	}
	prefix := m.url.prefix()
	if prefix == "" {
		return nil
	}
	prefixes := []string{prefix}
	origin := m.compiler.origin()
	if path, found := strings.CutPrefix(prefix, origin); found && strings.HasPrefix(path, "/") {
		prefixes = append(prefixes, path)
	} else if strings.HasPrefix(origin+"/", prefix) {
		prefixes = append(prefixes, "/")
	}
	return prefixes
}

// origin returns what a URL in normal form begins with, before its path, to which topics are resolved that are paths.
func (c *Compiler) origin() string {
	origin := c.hub.Scheme() + "://" + c.hub.Hostname()
	if port := c.hub.Port(); port != "" {
		origin += ":" + port
	}
	return origin
}

// prefix returns what the components say literally about the beginning of a URL.
func (u *urlPattern) prefix() string {
	p := &u.programs
	scheme := p[protocolComponent].literal
	if p[protocolComponent].kind != literalProgram {
		return scheme
	}
	if _, special := defaultPort(scheme); !special {
		return scheme + ":" + p[pathnameComponent].literal // nothing else comes between them in normal form
	}
	prefix := scheme + "://" + p[hostnameComponent].literal
	if p[hostnameComponent].kind != literalProgram || p[portComponent].kind != literalProgram {
		return prefix
	}
	if port := p[portComponent].literal; port != "" {
		prefix += ":" + port
	}
	return prefix + p[pathnameComponent].literal
}
