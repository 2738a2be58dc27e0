package hub

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Hub is the engine. Its methods are safe for concurrent use.
type Hub struct {
	opts       Options
	mark       *watermark
	tailer     *tailer
	dispatcher *dispatcher
	replays    *replays
	shards     []*shard
	backlog    *backlog

	next    atomic.Uint64 // picks the shard of a new subscriber
	running atomic.Bool
	stopped chan struct{} // closed when Run has ended

	// opening has a token for each Subscribe that reads the history; its capacity is Options.Replays, and who
	// finds it full waits.
	opening chan struct{}

	open     atomic.Int64 // streams, those being opened included
	draining atomic.Bool
	emptied  sync.Once
	drained  chan struct{} // closed when the hub drains and no stream is open
}

// New returns a hub that does nothing before [Hub.Run]. The error says which option is wrong.
func New(o Options) (*Hub, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	h := &Hub{
		opts:    o.withDefaults(),
		mark:    &watermark{},
		stopped: make(chan struct{}),
		drained: make(chan struct{}),
	}
	h.opening = make(chan struct{}, h.opts.Replays)
	for i := range h.opts.Shards {
		h.shards = append(h.shards, newShard(i, &h.opts))
	}
	h.dispatcher = newDispatcher(h.opts.Compiler, h.shards)
	h.replays = newReplays(h.opts.Log, h.dispatcher)
	h.backlog = &backlog{limit: h.opts.TotalBacklog, shards: h.shards}
	for _, s := range h.shards {
		s.orders, s.replays, s.backlog, s.left = h.dispatcher.orders, h.replays, h.backlog, h.leave
		s.writer = newWriter()
	}
	h.tailer = &tailer{
		log: h.opts.Log, dispatcher: h.dispatcher, mark: h.mark, logger: h.opts.Logger,
		positioned: make(chan struct{}),
	}
	return h, nil
}

// Run works until ctx ends, then ends all streams and returns nil when every goroutine of the engine has ended. It can
// be called once.
func (h *Hub) Run(ctx context.Context) error {
	if !h.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	var work sync.WaitGroup
	work.Go(func() { h.tailer.run(ctx) })
	work.Go(func() { h.dispatcher.run(ctx) })
	for _, s := range h.shards {
		work.Go(func() { s.run(ctx) })
	}
	for range h.opts.Replays {
		work.Go(func() { h.replays.work(ctx) })
	}
	work.Wait()
	close(h.stopped)
	return nil
}

// Ready returns nil when the hub can publish and deliver, and otherwise why not.
func (h *Hub) Ready(ctx context.Context) error {
	if h.draining.Load() {
		return ErrDraining
	}
	if err := h.tailer.ready(); err != nil {
		return fmt.Errorf("follow history: %w", err)
	}
	select {
	case <-h.tailer.positioned:
	default:
		return fmt.Errorf("%w: the history has not been reached yet", ErrUnavailable)
	}
	if err := h.opts.Log.Ready(ctx); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

// Drain refuses updates and subscribers with ErrDraining from now on, ends the streams over Options.DrainWindow (or
// nine tenths of the time until ctx's deadline, if that is less) and returns when none is left. When ctx ends first, it
// ends the rest at once and returns ctx's error. The history may be closed before or meanwhile.
func (h *Hub) Drain(ctx context.Context) error {
	h.draining.Store(true)
	window := h.opts.DrainWindow
	if deadline, ok := ctx.Deadline(); ok {
		window = min(window, time.Until(deadline)/10*9)
	}
	h.tellAll(message{kind: drainMessage, window: max(window, 0)})
	h.checkDrained()
	select {
	case <-h.drained:
		return nil
	case <-h.stopped:
		return nil
	case <-ctx.Done():
	}
	h.tellAll(message{kind: abandonMessage})
	return fmt.Errorf("drain: %w", ctx.Err())
}

// CloseBy ends the streams of the principals for which match returns true, and returns how many those were. Streams
// that wait or replay are among them; anonymous ones are never asked about. match is called from several goroutines and
// must not block.
func (h *Hub) CloseBy(match func(*Principal) bool) int {
	if !h.running.Load() {
		return 0
	}
	c := &closing{match: match, closed: make(chan int, len(h.shards))}
	asked := h.tellAll(message{kind: closeMessage, closing: c})
	total := 0
	for range asked {
		select {
		case n := <-c.closed:
			total += n
		case <-h.stopped:
			return total
		}
	}
	return total
}

// tellAll sends a message to every shard and returns how many got it.
func (h *Hub) tellAll(m message) int {
	n := 0
	for _, s := range h.shards {
		if s.inbox.put(m) {
			n++
		}
	}
	return n
}

func (h *Hub) nextShard() *shard {
	return h.shards[h.next.Add(1)%uint64(len(h.shards))]
}

// admit counts a stream in, if there may be another.
func (h *Hub) admit() error {
	n := h.open.Add(1)
	h.opts.Metrics.Subscribers(1)
	switch {
	case h.draining.Load():
		h.leave()
		return ErrDraining
	case h.opts.MaxSubscribers > 0 && n > int64(h.opts.MaxSubscribers):
		h.leave()
		return ErrTooManySubscribers
	}
	return nil
}

// leave counts a stream out.
func (h *Hub) leave() {
	h.opts.Metrics.Subscribers(-1)
	h.open.Add(-1)
	h.checkDrained()
}

func (h *Hub) checkDrained() {
	if h.draining.Load() && h.open.Load() == 0 {
		h.emptied.Do(func() { close(h.drained) })
	}
}
