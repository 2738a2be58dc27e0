package hubapp

import (
	"context"
	"runtime/debug"
	"time"
)

const (
	// calmLook is how often the number of streams is looked at.
	calmLook = time.Second
	// stormStreams is by how many streams it has to have changed for their garbage to be worth a collection.
	stormStreams = 1000
)

// calm gives memory back after many streams have come or gone. A request leaves several times as much garbage as an idle stream
// keeps, and Go holds on to it until it allocates as much again, which a hub whose streams are idle does not do.
type calm struct {
	streams func() int // open ones
	free    func()
	last    int // streams at the time of the last collection
	before  int // streams at the last look
}

func newCalm(streams func() int) *calm { return &calm{streams: streams, free: debug.FreeOSMemory} }

// run works until ctx ends.
func (c *calm) run(ctx context.Context) error {
	tick := time.NewTicker(calmLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			c.look()
		}
	}
}

// look collects when the streams have changed much since the last time, and little since the last look. It takes time in proportion to
// the memory in use, while the hub works on, and happens once per storm.
func (c *calm) look() {
	n := c.streams()
	moving := abs(n-c.before) > max(stormStreams, n)/100
	c.before = n
	if moving || abs(n-c.last) < max(stormStreams, c.last/4) {
		return
	}
	c.last = n
	c.free()
}

func abs(n int) int { return max(n, -n) }
