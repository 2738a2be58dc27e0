package hubhttp

import (
	"strings"
	"unicode/utf8"
)

// latin1ToUTF8 returns s as it is when it is UTF-8, and read as Latin-1 otherwise.
func latin1ToUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}
