package hub

import "time"

const (
	// wheelTick is the resolution of everything timed in a shard.
	wheelTick = 100 * time.Millisecond
	// wheelSlots makes the wheel reach 102 seconds ahead; what is due later is looked at then.
	wheelSlots = 1024
)

// instant is a moment as the monotonic time since the shard was made: comparing two is an integer comparison,
// and a wall clock that jumps moves none.
type instant = time.Duration

// wheel holds the subscribers of a shard by when they have to be looked at next. Each is in it at most once, linked
// through its own fields: timing a subscriber costs no memory beside it and no timer.
type wheel struct {
	slots  [wheelSlots]*Subscriber
	tick   int64 // the last tick whose slot has been emptied
	linked int
}

// wheelLink is a subscriber's place in the wheel.
type wheelLink struct {
	prev, next *Subscriber
	tick       int64
	linked     bool
}

// schedule has s looked at no later than at, rounded down to a tick, the next one at the earliest. An earlier
// appointment stays; the visit renews it.
func (w *wheel) schedule(s *Subscriber, at instant) {
	tick := min(max(int64(at/wheelTick), w.tick+1), w.tick+wheelSlots-1)
	if s.link.linked {
		if s.link.tick <= tick {
			return
		}
		w.remove(s)
	}
	slot := &w.slots[tick%wheelSlots]
	s.link = wheelLink{next: *slot, tick: tick, linked: true}
	if s.link.next != nil {
		s.link.next.link.prev = s
	}
	*slot = s
	w.linked++
}

// remove cancels the appointment of s, if there is one.
func (w *wheel) remove(s *Subscriber) {
	if !s.link.linked {
		return
	}
	if s.link.prev != nil {
		s.link.prev.link.next = s.link.next
	} else {
		w.slots[s.link.tick%wheelSlots] = s.link.next
	}
	if s.link.next != nil {
		s.link.next.link.prev = s.link.prev
	}
	s.link = wheelLink{}
	w.linked--
}

// advance moves the wheel to now, appends the subscribers that are due to dst, and takes them out.
func (w *wheel) advance(now instant, dst []*Subscriber) []*Subscriber {
	target := int64(now / wheelTick)
	for ; w.tick < target && w.linked > 0; w.tick++ {
		slot := &w.slots[(w.tick+1)%wheelSlots]
		for *slot != nil {
			s := *slot
			w.remove(s)
			dst = append(dst, s)
		}
	}
	w.tick = max(w.tick, target)
	return dst
}

// next returns when the wheel has to be advanced next, and false when it is empty.
func (w *wheel) next() (at instant, ok bool) {
	if w.linked == 0 {
		return 0, false
	}
	for tick := w.tick + 1; ; tick++ {
		if w.slots[tick%wheelSlots] != nil {
			return instant(tick) * wheelTick, true
		}
	}
}
