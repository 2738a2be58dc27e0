package store

import "errors"

// Errors every implementation returns, wrapped with the operation.
var (
	// ErrNotFound says that no such record exists, or that it has expired.
	ErrNotFound = errors.New("store: not found")
	// ErrExists says that a record with this key exists already.
	ErrExists = errors.New("store: already exists")
	// ErrConsumed says that a one-time record has been used before.
	ErrConsumed = errors.New("store: already consumed")
	// ErrRevoked says that the grant, or the client, account or session behind it, was revoked, so that nothing may be issued under it.
	// RedeemCode returns it together with ErrConsumed: the code of a revoked grant is as dead as a used one.
	ErrRevoked = errors.New("store: revoked")
	// ErrConflict says that a record changed since it was read.
	ErrConflict = errors.New("store: changed meanwhile")
	// ErrInvalid says that a record lacks what every record of its kind must have; it is a mistake of the caller.
	ErrInvalid = errors.New("store: invalid record")
	// ErrUnavailable says that the database could not be had in time: it is locked by another process, its disk is full or failing.
	// The caller may try again later.
	ErrUnavailable = errors.New("store: unavailable")
	// ErrSchema says that the database has a schema this program must not touch.
	ErrSchema = errors.New("store: schema version mismatch")
	// ErrSecret says that the database was sealed with another secret file.
	ErrSecret = errors.New("store: wrong secret")
)
