package topic

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Check reports whether s may be a topic: valid UTF-8 without C0 and C1 controls, U+007F and characters of general
// category Cf (TOPIC-01 to TOPIC-06). The error wraps [ErrNotUTF8] or [ErrForbiddenCharacter] and names the offset of
// the first offending byte, never the text. It does not allocate when s is fine.
func Check(s string) error {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c < 0x20 || c == 0x7F {
				return fmt.Errorf("%w at byte %d", ErrForbiddenCharacter, i)
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			return fmt.Errorf("%w at byte %d", ErrNotUTF8, i)
		}
		if r <= 0x9F || unicode.Is(unicode.Cf, r) {
			return fmt.Errorf("%w at byte %d", ErrForbiddenCharacter, i)
		}
		i += size
	}
	return nil
}
