package account

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"golang.org/x/text/secure/precis"
)

// MaxUsernameBytes bounds a user name in its canonical spelling; an email address fits.
const MaxUsernameBytes = 254

// maxInputBytes bounds what is normalised at all.
const maxInputBytes = 1024

// ErrUsername says that a string cannot be a user name; the wrapping error says why and does not contain the name.
var ErrUsername = errors.New("account: invalid user name")

// NormalizeUsername returns the canonical spelling of a user name, which is its own canonical spelling, or ErrUsername.
func NormalizeUsername(s string) (string, error) {
	if len(s) > maxInputBytes {
		return "", fmt.Errorf("%w: too long", ErrUsername)
	}
	if !utf8.ValidString(s) {
		return "", fmt.Errorf("%w: not UTF-8", ErrUsername)
	}
	name, err := precis.UsernameCaseMapped.String(s)
	if err != nil || name == "" { // the library lets an empty name through
		return "", fmt.Errorf("%w: empty, or with characters that are not allowed", ErrUsername)
	}
	// For rare characters the profile's result is not yet in the profile (RFC 8264 section 7): two spellings of such a name would be two
	// accounts.
	if again, err := precis.UsernameCaseMapped.String(name); err != nil || again != name {
		return "", fmt.Errorf("%w: with characters that have no stable spelling", ErrUsername)
	}
	if len(name) > MaxUsernameBytes {
		return "", fmt.Errorf("%w: longer than %d bytes", ErrUsername, MaxUsernameBytes)
	}
	return name, nil
}
