package mercure

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// FieldError says which field or parameter of a request broke which rule. Its
// text is fit for clients: it never contains a field's value.
type FieldError struct {
	// Field is the field's or parameter's name. It may come from the client:
	// Error quotes and shortens it.
	Field string
	// Rule is what the field breaks, as the end of a sentence that starts with the
	// field's name.
	Rule string
	// Hint is advice that often applies; it may be empty.
	Hint string
	// TooLarge says that a publication exceeds a limit, which is a 413; everything
	// else is a 400.
	TooLarge bool
}

// Error returns the field, quoted, and the rule it broke, without the hint.
func (e *FieldError) Error() string {
	return "mercure: " + quoteName(e.Field) + " " + e.Rule
}

// quoteName quotes a name and shortens it: it may be anything a client sent.
func quoteName(name string) string {
	const most = 64
	if len(name) > most {
		cut := most
		for cut > most-utf8.UTFMax && !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = name[:cut] + "..."
	}
	return strconv.QuoteToASCII(strings.ToValidUTF8(name, "\uFFFD"))
}
