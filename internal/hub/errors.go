package hub

import (
	"errors"
	"strings"
)

// Errors of the engine, wrapped with the operation where that says more.
var (
	// ErrReserved says that an update has a topic in the hub's reserved namespace. It is
	// reported before authorization, whoever publishes (Mercure, "Reserved Hub Namespace").
	ErrReserved = errors.New("hub: topic is in the reserved namespace")
	// ErrForbidden says that the publisher has no grant for one of the update's topics (PRIV-02).
	ErrForbidden = errors.New("hub: publishing is not granted")
	// ErrTooLarge says that an update is beyond what the history can hold (LIM-08).
	ErrTooLarge = errors.New("hub: update too large")
	// ErrUnavailable says that the history cannot serve the call now. Trying again later is
	// sensible; the cause is wrapped beside it.
	ErrUnavailable = errors.New("hub: temporarily unavailable")
	// ErrRevoked says that the principal's token was revoked after it had been verified (Options.Revoked).
	ErrRevoked = errors.New("hub: token revoked")
	// ErrDraining says that the hub is shutting down and takes neither updates nor subscribers.
	ErrDraining = errors.New("hub: draining")
	// ErrTooManySubscribers says that Options.MaxSubscribers are connected (LIM-04).
	ErrTooManySubscribers = errors.New("hub: too many subscribers")
	// ErrNoMatcher says that a subscription selects nothing (SUB-38).
	ErrNoMatcher = errors.New("hub: no topic matcher")
	// ErrRunning says that Run was called twice.
	ErrRunning = errors.New("hub: already running")
)

// failure is an error of the engine with the error of the history that caused it. It is both, and its text names one package.
type failure struct {
	err       error
	operation string
	cause     error
}

// Error implements error.
func (f *failure) Error() string {
	return f.err.Error() + ": " + f.operation + ": " + strings.TrimPrefix(f.cause.Error(), "history: ")
}

// Unwrap gives both errors.
func (f *failure) Unwrap() []error { return []error{f.err, f.cause} }
