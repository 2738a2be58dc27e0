package hub

import (
	"context"
	"math/bits"
	"sync/atomic"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

const (
	// roundEntries and roundBytes bound what the dispatcher collects before it hands it to the shards.
	roundEntries = 1024
	roundBytes   = 1 << 20
	// idArena is how many matcher ids the dispatcher allocates at a time.
	idArena = 4096
)

// dispatcher takes the entries of the log in order, finds out once per entry which shards have readers for it, and
// wakes those. It owns the index; whoever changes it sends a message, which is handled between two batches.
type dispatcher struct {
	compiler *topic.Compiler
	shards   []*shard
	registry *registry

	// orders is bounded by the subscribers: each has at most one registration and one removal under way.
	orders *mailbox[order]
	// batches and resets are unbuffered and never closed, as is done, by which the dispatcher tells the tail, their
	// only sender, that it has carried out what came.
	batches chan []history.Entry
	resets  chan reset
	done    chan struct{}

	position history.Position
	// dispatched is position as others may read it: every entry up to it has been handed to the shards.
	dispatched atomic.Uint64

	topics  []*topic.Topic
	matched []topic.MatcherID
	ids     []topic.MatcherID
	out     [][]message // by shard
	pending int
	bytes   int
	spare   []order
}

// order asks the dispatcher to change the index.
type order struct {
	sub *Subscriber
	// joined, if not nil, is closed once sub is registered.
	joined chan<- struct{}
	// leave, if not nil, is a registration of the subscriber's shard to take back.
	leave *registration
}

// reset tells the dispatcher where the log stands: at the start, and when positions have lost their meaning.
type reset struct {
	position   history.Position
	generation uint64
}

func newDispatcher(c *topic.Compiler, shards []*shard) *dispatcher {
	return &dispatcher{
		compiler: c,
		shards:   shards,
		registry: newRegistry(),
		orders:   newMailbox[order](),
		batches:  make(chan []history.Entry),
		done:     make(chan struct{}),
		resets:   make(chan reset),
		out:      make([][]message, len(shards)),
	}
}

// run works until ctx ends.
func (d *dispatcher) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			d.orders.close()
			return
		case <-d.orders.wake:
			d.obey()
		case entries := <-d.batches:
			d.dispatch(ctx, entries)
			d.answer(ctx)
		case r := <-d.resets:
			d.reset(r)
			d.answer(ctx)
		}
	}
}

func (d *dispatcher) answer(ctx context.Context) {
	select {
	case d.done <- struct{}{}:
	case <-ctx.Done():
	}
}

func (d *dispatcher) awaitAnswer(ctx context.Context) error {
	select {
	case <-d.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// deliver hands a batch of the tail over and waits until it has been dispatched.
func (d *dispatcher) deliver(ctx context.Context, entries []history.Entry) error {
	select {
	case d.batches <- entries:
	case <-ctx.Done():
		return ctx.Err()
	}
	return d.awaitAnswer(ctx)
}

// reposition makes r known and waits until every shard has been told.
func (d *dispatcher) reposition(ctx context.Context, r reset) error {
	select {
	case d.resets <- r:
		return d.awaitAnswer(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *dispatcher) reset(r reset) {
	d.position = r.position
	d.dispatched.Store(uint64(r.position))
	for _, s := range d.shards {
		s.inbox.put(message{kind: resetMessage, generation: r.generation})
	}
}

// obey carries out the orders that wait.
func (d *dispatcher) obey() {
	d.spare = d.orders.take(d.spare)
	for i := range d.spare {
		o := &d.spare[i]
		if o.leave != nil {
			d.registry.remove(o.sub.shard.number, *o.leave)
			continue
		}
		s := o.sub
		reg := d.registry.add(s.shard.number, s.matchers, s.principal.grants())
		reg.at = d.position
		s.shard.inbox.put(message{kind: joinMessage, sub: s, join: &reg})
		if o.joined != nil {
			close(o.joined)
		}
	}
}

// dispatch sends entries to the shards that have readers for them.
func (d *dispatcher) dispatch(ctx context.Context, entries []history.Entry) {
	for i := range entries {
		d.entry(&entries[i])
		if d.pending >= roundEntries || d.bytes >= roundBytes {
			d.flush(ctx)
		}
	}
	d.flush(ctx)
}

func (d *dispatcher) entry(e *history.Entry) {
	d.position = e.Position
	d.topics = d.topics[:0]
	for _, raw := range e.Topics {
		d.topics = append(d.topics, d.compiler.Topic(raw))
	}
	var targets shardSet
	d.matched, targets = d.registry.match(d.matched[:0], d.topics, e.Private)
	if targets == 0 {
		return
	}
	m := message{kind: deliverMessage, frame: newFrame(e.Position, e.Event), ids: d.keep(d.matched), private: e.Private}
	d.pending++
	d.bytes += len(m.frame.chunk)
	for ; targets != 0; targets &= targets - 1 {
		i := bits.TrailingZeros64(uint64(targets))
		d.out[i] = append(d.out[i], m)
	}
}

// keep returns a copy of ids that shards may read for as long as they like.
func (d *dispatcher) keep(ids []topic.MatcherID) []topic.MatcherID {
	if cap(d.ids)-len(d.ids) < len(ids) {
		d.ids = make([]topic.MatcherID, 0, max(idArena, len(ids)))
	}
	start := len(d.ids)
	d.ids = append(d.ids, ids...)
	return d.ids[start:len(d.ids):len(d.ids)]
}

// flush hands over what has been collected. A shard that is far behind is waited for: shards wait for nobody, so what
// they lack is processor time, and the log holds the rest meanwhile.
func (d *dispatcher) flush(ctx context.Context) {
	clear(d.topics)
	for i, s := range d.shards {
		if len(d.out[i]) == 0 {
			continue
		}
		if !s.admit(ctx, d.out[i]) {
			return
		}
		clear(d.out[i])
		d.out[i] = d.out[i][:0]
	}
	d.pending, d.bytes = 0, 0
	d.dispatched.Store(uint64(d.position))
}
