package account

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/secure/precis"
)

// Bounds of a password's length, in characters (runes) of its prepared form.
const (
	MinPasswordRunes = 8
	MaxPasswordRunes = 256
)

// maxPasswordBytes bounds what is prepared at all; the longest password fits in any script.
const maxPasswordBytes = MaxPasswordRunes * utf8.UTFMax

// ErrPassword says that a string cannot become a password; the wrapping error says why and does not contain it.
var ErrPassword = errors.New("account: unsuitable password")

// CheckPassword returns ErrPassword unless the password follows the rules for new passwords: MinPasswordRunes to MaxPasswordRunes
// characters, no control characters (NUL among them), and not the user name.
func CheckPassword(username, password string) error {
	_, err := newPassword(username, password)
	return err
}

// newPassword returns the prepared form of a new password.
func newPassword(username, password string) (string, error) {
	prepared, err := preparePassword(password)
	if err != nil {
		return "", err
	}
	n := utf8.RuneCountInString(prepared)
	if n < MinPasswordRunes || n > MaxPasswordRunes {
		return "", fmt.Errorf("%w: it has %d characters, %d to %d are needed", ErrPassword, n, MinPasswordRunes, MaxPasswordRunes)
	}
	if strings.EqualFold(prepared, username) {
		return "", fmt.Errorf("%w: it is the user name", ErrPassword)
	}
	return prepared, nil
}

// preparePassword returns the form of a password that is hashed and compared. It is the same for new and for given passwords; rules
// that may change with time are left to newPassword.
func preparePassword(password string) (string, error) {
	if len(password) > maxPasswordBytes {
		return "", fmt.Errorf("%w: longer than %d characters", ErrPassword, MaxPasswordRunes)
	}
	if !utf8.ValidString(password) { // the library lets some of it through
		return "", fmt.Errorf("%w: not UTF-8", ErrPassword)
	}
	prepared, err := precis.OpaqueString.String(password)
	if err != nil || prepared == "" {
		return "", fmt.Errorf("%w: empty, or with control characters", ErrPassword)
	}
	return prepared, nil
}
