package history

import "errors"

// Errors of every implementation, wrapped with the operation.
var (
	// ErrUnknownID says that no retained entry bears the id.
	ErrUnknownID = errors.New("history: unknown event id")
	// ErrPositionGone says that entries which the call needs have been trimmed.
	ErrPositionGone = errors.New("history: position is gone")
	// ErrClosed says that the log is closed or closing.
	ErrClosed = errors.New("history: closed")
	// ErrOverloaded says that the log could not take an entry in time. The entry has
	// not been stored; trying again later is sensible.
	ErrOverloaded = errors.New("history: overloaded")
	// ErrTooLarge says that a record is beyond what the log can hold.
	ErrTooLarge = errors.New("history: record too large")
	// ErrNoSpace says that the storage is full. The entry has not been stored; appends
	// succeed again once there is space.
	ErrNoSpace = errors.New("history: no space left")
	// ErrReadOnly says that storing failed in a way that leaves the state of the
	// storage in doubt. Nothing can be appended until the log has been reopened.
	ErrReadOnly = errors.New("history: read-only after a failed write")
	// ErrLocked says that another process, or another log of this one, has the store open.
	ErrLocked = errors.New("history: store is in use")
	// ErrForeignFile says that the store's place holds something that is not its own.
	ErrForeignFile = errors.New("history: not a file of this store")
	// ErrNewerFormat says that a newer version of the program wrote the store.
	ErrNewerFormat = errors.New("history: store has a newer format")
	// ErrNotEmpty says that a log which was to take over another one's entries has, or had, entries of its own.
	ErrNotEmpty = errors.New("history: store is not empty")
	// ErrCorrupt says that acknowledged entries cannot be read back. Nothing was
	// changed or removed.
	ErrCorrupt = errors.New("history: store is damaged")
)
