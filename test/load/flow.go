package main

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
)

// flow keeps publishers from being far ahead of the subscribers.
type flow struct {
	fan    int64 // deliveries of each update
	window int64 // deliveries that may be outstanding, at least fan; 0: any number

	sent      atomic.Int64 // updates
	delivered atomic.Int64 // deliveries, and those that cannot be expected any more

	wake atomic.Int64 // somebody waits for so many deliveries
	mu   sync.Mutex
	room *sync.Cond
}

// begin starts a phase in which nothing is under way and nobody waits.
func (f *flow) begin(fan, window int64) {
	f.room = sync.NewCond(&f.mu)
	f.fan, f.window = fan, window
	f.sent.Store(0)
	f.delivered.Store(0)
	f.wake.Store(math.MaxInt64)
}

// deliver counts deliveries and wakes the publishers that wait for them.
func (f *flow) deliver(n int64) {
	if f.delivered.Add(n) >= f.wake.Load() {
		f.broadcast()
	}
}

func (f *flow) broadcast() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wake.Store(math.MaxInt64)
	f.room.Broadcast()
}

// publish counts an update that is about to be published. It waits until the window has room for it; it is false when ctx is done.
func (f *flow) publish(ctx context.Context) bool {
	sent := f.sent.Add(1)
	full := func() bool { return f.window > 0 && sent*f.fan-f.delivered.Load() > f.window }
	if !full() {
		return true
	}
	defer context.AfterFunc(ctx, f.broadcast)()
	// Being woken for each delivery would cost more than the delivery: a quarter of the window is to be free, or whatever
	// can become free when all that was counted before this update is delivered.
	enough := min(sent*f.fan-f.window*3/4, (sent-1)*f.fan)
	f.mu.Lock()
	defer f.mu.Unlock()
	for full() && ctx.Err() == nil {
		f.wake.Store(min(f.wake.Load(), enough))
		// Who delivers looks at wake after counting; this looks at the count after setting wake. One of them sees the other.
		if f.delivered.Load() >= enough {
			break
		}
		f.room.Wait()
	}
	if ctx.Err() != nil {
		f.sent.Add(-1)
		return false
	}
	return true
}

// outstanding says whether something is not delivered yet.
func (f *flow) outstanding() bool { return f.delivered.Load() < f.sent.Load()*f.fan }
