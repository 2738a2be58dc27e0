package hub

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// dispatchPatience bounds how long Quiesce waits for what was published to reach the shards, and dispatchLook how often it looks.
	dispatchPatience = time.Second
	dispatchLook     = 2 * time.Millisecond
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
	roster     *roster // nil without Options.Subscriptions, as is announcer
	announcer  *announcer

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

	// gate is shut when the hub takes neither updates nor streams any more. From then on the history may be closed.
	gate *gate
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
		gate:    newGate(),
	}
	h.opening = make(chan struct{}, h.opts.Replays)
	for i := range h.opts.Shards {
		h.shards = append(h.shards, newShard(i, &h.opts))
	}
	h.dispatcher = newDispatcher(h.opts.Compiler, h.shards)
	h.replays = newReplays(h.opts.Log, h.dispatcher)
	h.backlog = &backlog{limit: h.opts.TotalBacklog, shards: h.shards}
	if h.opts.Subscriptions {
		h.roster = newRoster()
		h.announcer = &announcer{
			roster: h.roster, directory: h.opts.Directory, log: h.opts.Log, path: h.opts.Compiler.HubPath(), compiler: h.opts.Compiler,
			gate: h.gate, mark: h.mark, metrics: h.opts.Metrics, logger: h.opts.Logger,
		}
	}
	for _, s := range h.shards {
		s.orders, s.replays, s.backlog, s.left = h.dispatcher.orders, h.replays, h.backlog, h.leave
		s.writer, s.gate, s.roster = newWriter(), h.gate, h.roster
	}
	h.tailer = &tailer{
		log: h.opts.Log, dispatcher: h.dispatcher, mark: h.mark, gate: h.gate, logger: h.opts.Logger,
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
	if h.announcer != nil {
		work.Go(func() { h.announcer.run(ctx) })
	}
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
	if h.gate.isShut() {
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
	return h.opts.Log.Ready(ctx)
}

// Quiesce refuses updates and subscribers with ErrDraining from now on, and returns when the updates under way have been
// acknowledged or refused and what was acknowledged is on its way to the readers there are. Streams stay open. The history may be closed
// as soon as Quiesce has returned, so that a successor can take the store over: then the streams live on without news, replaying ones
// too, until Drain ends them, and their readers go on by their cursors. When ctx ends first, its error is returned; the hub is quiet
// all the same.
func (h *Hub) Quiesce(ctx context.Context) error {
	h.gate.shut()
	select {
	case <-h.gate.empty:
	case <-h.stopped:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("quiesce: %w", ctx.Err())
	}
	if err := h.awaitDispatch(ctx); err != nil {
		return fmt.Errorf("quiesce: %w", err)
	}
	return nil
}

// awaitDispatch waits until what this process has published has been handed to the shards, if the history is being followed,
// and no longer than dispatchPatience: readers find by their cursors what they have not got.
func (h *Hub) awaitDispatch(ctx context.Context) error {
	patience := time.NewTimer(dispatchPatience)
	defer patience.Stop()
	look := time.NewTicker(dispatchLook)
	defer look.Stop()
	for {
		_, newest := h.mark.current()
		if uint64(newest) <= h.dispatcher.dispatched.Load() || !h.running.Load() || h.tailer.ready() != nil {
			return nil
		}
		select {
		case <-look.C:
		case <-patience.C:
			return nil
		case <-h.stopped:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Subscribers returns the number of open streams, those being opened included.
func (h *Hub) Subscribers() int { return int(h.open.Load()) }

// Drain refuses updates and subscribers with ErrDraining from now on, ends the streams over Options.DrainWindow (or
// nine tenths of the time until ctx's deadline, if that is less) and returns when none is left. When ctx ends first, it
// ends the rest at once and returns ctx's error. The history may be closed before or meanwhile.
func (h *Hub) Drain(ctx context.Context) error {
	h.gate.shut()
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
	return h.closeStreams(func(p *Principal) bool { return p != nil && match(p) })
}

// CloseAnonymous ends the streams that have no principal, as CloseBy does.
func (h *Hub) CloseAnonymous() int {
	return h.closeStreams(func(p *Principal) bool { return p == nil })
}

func (h *Hub) closeStreams(match func(*Principal) bool) int {
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
	case h.gate.isShut():
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
