package topic

import "strings"

// Bounds of host names in normal form (RFC 1035).
const (
	maxHostBytes  = 253
	maxLabelBytes = 63
)

// Normal reports whether raw is a URL in normal form: one that comes out as raw again when it is parsed and written, whatever it is
// resolved against, and that has no userinfo. So the components that patterns are tested against are parts of raw, in its order,
// which is what [Matcher.Prefix] rests on.
//
// It is a plain look at the characters, in time linear in raw and without an allocation, and knows the usual forms alone: http, https, ws, wss
// and ftp with an ASCII host name or an IPv4 address, and other schemes with a path that does not begin with a slash, such as
// urn. It is false for any other URL, however normal. Stores keep what it says: a change of it is one of their formats.
func Normal(raw string) bool {
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

// normalComponents cuts a URL in normal form into its components.
func normalComponents(raw string) (c [componentCount]string) {
	scheme, rest, _ := strings.Cut(raw, ":")
	c[protocolComponent] = scheme
	if _, special := defaultPort(scheme); special {
		authority := rest[len("//"):]
		end := strings.IndexByte(authority, '/')
		authority, rest = authority[:end], authority[end:]
		c[hostnameComponent], c[portComponent], _ = strings.Cut(authority, ":")
	}
	rest, c[hashComponent], _ = strings.Cut(rest, "#")
	c[pathnameComponent], c[searchComponent], _ = strings.Cut(rest, "?")
	return c
}

// Prefix returns a string with which every topic in normal form ([Normal]) that m selects begins; ok is false when there
// is none to rely on. Topics that are not in normal form can begin with anything.
func (m *Matcher) Prefix() (prefix string, ok bool) {
	switch {
	case m.wildcard:
		return "", false
	case m.typ == Exact:
		return m.pattern, true
	}
	prefix = m.url.prefix()
	return prefix, prefix != ""
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
