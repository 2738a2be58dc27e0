package main

import "slices"

// lane is what one publisher sends in one order. It belongs to its publisher until that has ended.
type lane struct {
	sent   uint32   // numbers used
	failed []uint32 // those whose publication was not acknowledged: nobody can say whether they are delivered
}

// maxGaps bounds what a follower remembers of what it misses.
const maxGaps = 4096

// follower is what one subscriber has seen. It belongs to its reader until that has ended.
type follower struct {
	shared []uint32 // the next number of each of the first lanes, which the subscriber shares with others
	own    uint32   // a lane of its own, beyond those; noLane when there is none
	next   uint32   // its next number
	gaps   []gap

	delivered, repeated, late, stray, gone int64

	order uint64 // of what it saw in shared lanes, among them
}

// gap is a range of numbers that were passed over.
type gap struct{ lane, from, to uint32 }

const noLane = ^uint32(0)

// see takes a mark that was delivered.
func (f *follower) see(m mark) {
	var next *uint32
	switch {
	case m.lane < uint32(len(f.shared)):
		next = &f.shared[m.lane]
	case m.lane == f.own && m.lane != noLane:
		next = &f.next
	default:
		f.stray++
		return
	}
	switch {
	case m.seq < *next:
		if f.fill(m) {
			f.late++
			f.delivered++
		} else {
			f.repeated++
		}
		return
	case m.seq > *next:
		if len(f.gaps) < maxGaps {
			f.gaps = append(f.gaps, gap{lane: m.lane, from: *next, to: m.seq})
		} else {
			f.gone += int64(m.seq - *next)
		}
	}
	*next = m.seq + 1
	f.delivered++
	if next != &f.next {
		f.order = (f.order ^ (uint64(m.lane)<<32 | uint64(m.seq))) * 0x9E3779B97F4A7C15
		f.order ^= f.order >> 29
	}
}

// fill takes a number out of a gap, and says whether it was in one.
func (f *follower) fill(m mark) bool {
	for i, g := range f.gaps {
		if g.lane != m.lane || m.seq < g.from || m.seq >= g.to {
			continue
		}
		f.gaps = append(f.gaps[:i], f.gaps[i+1:]...)
		if m.seq > g.from {
			f.gaps = append(f.gaps, gap{lane: g.lane, from: g.from, to: m.seq})
		}
		if m.seq+1 < g.to {
			f.gaps = append(f.gaps, gap{lane: g.lane, from: m.seq + 1, to: g.to})
		}
		return true
	}
	return false
}

// forget takes it that nobody can say what there was in shared lanes before the first that was delivered of each. start is the numbers that
// the lanes began with.
func (f *follower) forget(start []uint32, lanes []lane) {
	f.gaps = slices.DeleteFunc(f.gaps, func(g gap) bool { return g.lane < uint32(len(start)) && g.from == start[g.lane] })
	for i, from := range start {
		if f.shared[i] == from {
			f.shared[i] = lanes[i].sent
		}
	}
}

// lost counts what was acknowledged to the publishers of its lanes and not delivered.
func (f *follower) lost(lanes []lane) int64 {
	n := f.gone
	for _, g := range f.gaps {
		n += acknowledged(&lanes[g.lane], g.from, g.to)
	}
	for i, next := range f.shared {
		n += acknowledged(&lanes[i], next, lanes[i].sent)
	}
	if f.own != noLane {
		n += acknowledged(&lanes[f.own], f.next, lanes[f.own].sent)
	}
	return n
}

// acknowledged counts the acknowledged numbers of a range.
func acknowledged(l *lane, from, to uint32) int64 {
	if to <= from {
		return 0
	}
	n := int64(to - from)
	for _, seq := range l.failed {
		if seq >= from && seq < to {
			n--
		}
	}
	return n
}
