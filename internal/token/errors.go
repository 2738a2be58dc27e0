package token

import (
	"errors"
	"fmt"
)

// Errors of this package, always wrapped with what was going on. A token that is refused is an *InvalidError instead.
var (
	// ErrUnavailable says that the keys needed to judge a token cannot be had at the moment. It says nothing about
	// the token: the answer to a client is 503, not 401.
	ErrUnavailable = errors.New("token: keys unavailable")
	// ErrKey says that key material is unreadable, too weak, or of another kind than its algorithm needs. The text
	// around it is written for the operator who configured the key and never contains key material.
	ErrKey = errors.New("token: unusable key")
	// ErrTooLarge says that a token would be longer than a verifier with default limits accepts.
	ErrTooLarge = errors.New("token: too large")
	// ErrIncomplete says that a claim RFC 9068 section 2.2 requires is missing or malformed.
	ErrIncomplete = errors.New("token: required claim missing")
)

// InvalidError says which check refused a token, and why. Clients get the same bare answer whatever the check (ERR-13);
// Reason is for logs of the operator and for the commands that explain. It contains neither the token nor its details.
type InvalidError struct {
	// Check is the check that failed first.
	Check Check
	// Reason says in full words what is wrong.
	Reason string
}

// Error implements error.
func (e *InvalidError) Error() string { return "token: " + string(e.Check) + ": " + e.Reason }

// reasonError is why a check refuses a token; the list that runs the checks adds the name.
type reasonError string

func (r reasonError) Error() string { return string(r) }

func refuse(format string, args ...any) error { return reasonError(fmt.Sprintf(format, args...)) }

// shown is a value a stranger wrote, quoted and cut so that it can stand in a reason.
func shown(s string) string {
	const most = 120
	if len(s) > most {
		s = s[:most] + "…"
	}
	return fmt.Sprintf("%q", s)
}
