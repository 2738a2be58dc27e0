package checks

import (
	"strings"
	"unicode/utf8"
)

// pubIRIOrFragment says whether an id is what a hub may generate: an IRI with a scheme, or a reference that is a fragment
// alone (RFC 3987 section 2.2).
func pubIRIOrFragment(id string) bool {
	if fragment, ok := strings.CutPrefix(id, "#"); ok {
		return pubIRICharacters(fragment, "#[]")
	}
	scheme, rest, ok := strings.Cut(id, ":")
	if !ok || scheme == "" || rest == "" || !pubIRICharacters(rest, "") {
		return false
	}
	for i, c := range scheme {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || (c < '0' || c > '9') && !strings.ContainsRune("+-.", c)) {
			return false
		}
	}
	return strings.Count(rest, "#") <= 1
}

// pubIRICharacters says whether a text has only characters of an IRI, and none of these besides.
func pubIRICharacters(s, besides string) bool {
	if !utf8.ValidString(s) || strings.ContainsAny(s, besides) {
		return false
	}
	for i, c := range s {
		switch {
		case c >= 0x80:
			// ucschar and iprivate leave out C1, noncharacters and the tag characters.
			if c < 0xA0 || c >= 0xFDD0 && c <= 0xFDEF || c&0xFFFE == 0xFFFE || c >= 0xE0000 && c < 0xE1000 {
				return false
			}
		case c == '%':
			if i+2 >= len(s) || !pubHex(s[i+1]) || !pubHex(s[i+2]) {
				return false
			}
		case c <= ' ' || c == 0x7F || strings.ContainsRune(`<>"{}|\^`+"`", c):
			return false
		}
	}
	return true
}

func pubHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
