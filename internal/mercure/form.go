package mercure

import (
	"strconv"
	"strings"
)

// Pair is a decoded name and value of a form. Either may hold bytes that are not
// UTF-8.
type Pair struct{ Name, Value string }

// ParseForm splits raw into its pairs, in order, and decodes them, by the
// application/x-www-form-urlencoded parser of the WHATWG URL standard. Nothing is
// malformed by that algorithm; the only error is a *FieldError, with TooLarge
// set, for more than maxPairs pairs. A maxPairs of 0 or less means no limit,
// which suits a query component, whose length is bounded already.
//
// Bytes that are not UTF-8 are kept: ParseUpdate and ParseSubscribe refuse them
// where the protocol forbids them.
func ParseForm(raw string, maxPairs int) ([]Pair, error) {
	if raw == "" {
		return nil, nil
	}
	n := strings.Count(raw, "&") + 1
	if maxPairs > 0 {
		n = min(n, maxPairs)
	}
	pairs := make([]Pair, 0, min(n, 64))
	for raw != "" {
		var seq string
		seq, raw, _ = strings.Cut(raw, "&")
		if seq == "" {
			continue
		}
		if maxPairs > 0 && len(pairs) == maxPairs {
			return nil, &FieldError{Field: "form", Rule: "has more than " + strconv.Itoa(maxPairs) + " fields", TooLarge: true}
		}
		name, value, _ := strings.Cut(seq, "=")
		pairs = append(pairs, Pair{Name: decode(name), Value: decode(value)})
	}
	return pairs, nil
}

// decode undoes the form's encoding: "+" is a space and %XX an octet; a "%" that
// two hex digits do not follow is itself.
func decode(s string) string {
	i := strings.IndexAny(s, "+%")
	if i < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	b = append(b, s[:i]...)
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case c == '+':
			b = append(b, ' ')
		case c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			b = append(b, unhex(s[i+1])<<4|unhex(s[i+2]))
			i += 2
		default:
			b = append(b, c)
		}
	}
	return string(b)
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// unhex returns the value of a hexadecimal digit.
func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}
