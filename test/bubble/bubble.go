// Package bubble moves the clock of a testing/synctest bubble, for tests of what happens later. No test waits for real time: outside a
// bubble the clock cannot be moved, and trying to fails the test.
package bubble

import (
	"testing/synctest"
	"time"
)

// Advance lets d pass on the clock of the bubble that it is called in: first everything under way there comes to rest, then what is due
// within d happens. Outside a bubble it panics. One goroutine of a bubble calls it at a time.
func Advance(d time.Duration) {
	synctest.Wait() // panics outside a bubble, so that nothing below can wait for real
	<-time.NewTimer(d).C
}
