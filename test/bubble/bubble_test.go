package bubble_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinnabar-hub/cinnabar/test/bubble"
)

func TestAdvance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		due := time.AfterFunc(time.Hour, func() {})
		bubble.Advance(time.Hour)
		synctest.Wait()
		if passed := time.Since(begin); passed != time.Hour || due.Stop() {
			t.Errorf("%v have passed, want an hour, and what was due by then done", passed)
		}
	})
}

func TestAdvance_neverWaitsForReal(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Advance outside a bubble did not panic")
		}
	}()
	bubble.Advance(time.Hour)
}
