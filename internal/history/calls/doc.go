// Package calls counts the running calls of a history log, so that closing it refuses new ones, ends the ones that wait for something or
// take long, and waits for all of them. All implementations use it, the one in memory too.
//
// It does not own what a log does when no call is left: ending its workers, and closing its files.
//
// # Concurrency
//
// All methods are safe for concurrent use. The lock is a leaf, and held for moments alone.
package calls
