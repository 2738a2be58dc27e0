package hub

import "errors"

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
	// ErrDraining says that the hub is shutting down and takes neither updates nor subscribers.
	ErrDraining = errors.New("hub: draining")
	// ErrTooManySubscribers says that Options.MaxSubscribers are connected (LIM-04).
	ErrTooManySubscribers = errors.New("hub: too many subscribers")
	// ErrNoMatcher says that a subscription selects nothing (SUB-38).
	ErrNoMatcher = errors.New("hub: no topic matcher")
	// ErrRunning says that Run was called twice.
	ErrRunning = errors.New("hub: already running")
)
