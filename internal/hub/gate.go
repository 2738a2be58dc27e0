package hub

import (
	"sync"
	"sync/atomic"
)

// gate is what updates pass on their way into the history, until it is shut for good. Who only reads the history does not pass it,
// but asks whether it is shut.
type gate struct {
	closed atomic.Bool
	inside atomic.Int64
	once   sync.Once
	// empty is closed when the gate is shut and nobody is inside.
	empty chan struct{}
}

func newGate() *gate { return &gate{empty: make(chan struct{})} }

// enter reports false when the gate is shut. Who was let in leaves.
func (g *gate) enter() bool {
	g.inside.Add(1)
	if g.closed.Load() {
		g.leave()
		return false
	}
	return true
}

func (g *gate) leave() {
	if g.inside.Add(-1) == 0 && g.closed.Load() {
		g.once.Do(func() { close(g.empty) })
	}
}

// shut lets nobody in any more.
func (g *gate) shut() {
	g.closed.Store(true)
	if g.inside.Load() == 0 {
		g.once.Do(func() { close(g.empty) })
	}
}

func (g *gate) isShut() bool { return g.closed.Load() }
