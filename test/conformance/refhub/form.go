package refhub

import (
	"strings"
	"unicode/utf8"
)

// pair is a name and a value of a form, decoded to octets: whether they are UTF-8 is judged by who reads them.
type pair struct {
	name, value string
	body        bool // from a body, not from the query component
}

// parseForm is the parser of application/x-www-form-urlencoded of the URL Standard, section 5.1, short of its last step,
// the lossy decoding (SUB-15 to SUB-21, PUB-07, PUB-37).
func (h *Hub) parseForm(s string, body bool) ([]pair, error) {
	if h.fault("decoded-before-split") && !body {
		s = h.decode(s, body)
	}
	separators := "&"
	if h.fault("semicolon-separates") && !body || h.fault("body-semicolon-separates") && body {
		separators = "&;"
	}
	var pairs []pair
	for _, sequence := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		name, value, found := strings.Cut(sequence, "=")
		if i := strings.LastIndexByte(sequence, '='); i >= 0 && (h.fault("last-equals-splits") && !body || h.fault("body-last-equals-splits") && body) {
			name, value = sequence[:i], sequence[i+1:]
		}
		if !found && !body {
			if h.fault("valueless-names-skipped") {
				continue
			}
			if h.fault("valueless-matchers-refused") && strings.HasPrefix(name, "match") {
				return nil, malformed("A matcher has no value.")
			}
		}
		p := pair{name: h.decode(name, body), value: h.decode(value, body), body: body}
		if h.fault("names-not-decoded") && !body || h.fault("body-names-not-decoded") && body {
			p.name = name
		}
		if h.fault("names-decoded-twice") && !body {
			p.name = h.decode(p.name, body)
		}
		if h.fault("body-decoded-twice") && body {
			p.value = h.decode(p.value, body)
		}
		pairs = append(pairs, p)
	}
	switch {
	case h.fault("stray-percent-refused") && !body && strayPercent(s):
		return nil, malformed("A percent sign is followed by no octet.")
	case h.fault("empty-pairs-refused") && !body && (strings.HasPrefix(s, "&") || strings.Contains(s, "&&")):
		return nil, malformed("A parameter has no name.")
	}
	return pairs, nil
}

// decode undoes the percent-encoding. What is no encoded octet stays as it is.
func (h *Hub) decode(s string, body bool) string {
	if !h.faultIf("plus-kept", !body) && !h.faultIf("body-plus-kept", body) {
		s = strings.ReplaceAll(s, "+", " ")
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] >= 0x80 && body && h.fault("raw-octets-dropped"):
		case s[i] != '%':
			b.WriteByte(s[i])
		case i+2 < len(s) && hex(s[i+1]) >= 0 && hex(s[i+2]) >= 0:
			b.WriteByte(byte(hex(s[i+1])<<4 | hex(s[i+2])))
			i += 2
		case h.fault("stray-percent-dropped") && !body || h.fault("body-stray-percent-dropped") && body:
		default:
			b.WriteByte('%')
		}
	}
	return b.String()
}

// hex is the value of a hexadecimal digit, or -1.
func hex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

func strayPercent(s string) bool {
	for i := range len(s) {
		if s[i] == '%' && (i+2 >= len(s) || hex(s[i+1]) < 0 || hex(s[i+2]) < 0) {
			return true
		}
	}
	return false
}

// isUTF8 says whether all names and values are.
func (h *Hub) isUTF8(pairs []pair) bool {
	for _, p := range pairs {
		if !utf8.ValidString(p.name) {
			return false
		}
		switch {
		case p.name == "topic": // judged with the other rules of topics
		case p.name == "data" && h.fault("data-utf8-unchecked"):
		case !utf8.ValidString(p.value):
			return false
		}
	}
	return true
}
