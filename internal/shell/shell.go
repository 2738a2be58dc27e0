// Package shell writes words so that a POSIX shell reads them back: for command lines that people are given to paste. It runs
// nothing. Its functions are pure and safe for concurrent use.
package shell

import "strings"

// Quote writes one word.
func Quote(word string) string {
	if word != "" && !strings.ContainsFunc(word, isSpecial) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Line writes words as one command line.
func Line(words ...string) string {
	quoted := make([]string, 0, len(words))
	for _, w := range words {
		quoted = append(quoted, Quote(w))
	}
	return strings.Join(quoted, " ")
}

func isSpecial(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune("-_./:@%+=,", r)
}
