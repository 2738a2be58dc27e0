// Package harness builds the programs, runs them as a user or an operator does, and speaks to them over HTTP: what all tests that
// look at the whole product from outside share.
//
// It owns the processes that it starts: each ends with its test, at the latest, and what it printed is shown when the test fails
// and kept for the checker of secrets (package report). It knows nothing of how the programs work inside; it reads only what
// they print, serve and leave in files. Functions that take a testing.TB end the test when they fail, so call them from the
// test's own goroutine; Buffer and Stream are safe for concurrent use.
package harness
