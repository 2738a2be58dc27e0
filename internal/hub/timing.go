package hub

import (
	"math/rand/v2"
	"time"
)

// maxVisit is the longest time between two visits: expiry is wall-clock time, and the wall clock may jump.
const maxVisit = time.Minute

// jitter returns a random duration from 0 to limit, so that what began together does not go on together.
func jitter(limit time.Duration) time.Duration {
	return rand.N(limit + 1) //nolint:gosec // spreads load, and keeps nothing secret
}

// lifetime returns how long a new stream may last: 80 to 100 % of the maximum (PRIV-10).
func (s *shard) lifetime() time.Duration {
	limit := s.opts.MaxLifetime
	return limit - jitter(limit/5)
}

// schedule has the wheel bring the subscriber up when something may be due.
func (s *shard) schedule(sub *Subscriber) {
	at := s.now + maxVisit
	if sub.endBy != 0 {
		at = min(at, sub.endBy)
	}
	if sub.phase < finishing {
		if sub.expiry != 0 {
			// A tick early, beside the rounding down: a stream never ends late (PRIV-09).
			at = min(at, s.now+sub.untilExpiry()-wheelTick)
		}
		if sub.blocked && s.opts.WriteTimeout > 0 {
			at = min(at, sub.blockedAt+s.opts.WriteTimeout)
		}
		if sub.sink != nil && !sub.blocked && s.opts.Heartbeat > 0 {
			at = min(at, sub.lastWrite+s.opts.Heartbeat)
		}
	}
	s.wheel.schedule(sub, at)
}

// untilExpiry is how long the token lasts by the wall clock as it is now.
func (s *Subscriber) untilExpiry() time.Duration {
	return time.Duration(s.expiry - time.Now().UnixNano())
}

// visit looks after subscribers for whom something is due, some at a time.
func (s *shard) visit() {
	s.due = s.wheel.advance(s.now, s.due)
	n := min(len(s.due), visitsPerStep)
	for _, sub := range s.due[:n] {
		if sub.phase != ended {
			s.look(sub)
		}
	}
	rest := copy(s.due, s.due[n:])
	clear(s.due[rest:])
	s.due = s.due[:rest]
}

// look does what is due for a subscriber. The wheel rounds down, so what is due within the tick is due.
func (s *shard) look(sub *Subscriber) {
	now := s.now + wheelTick
	switch {
	case sub.phase == finishing:
		if sub.endBy <= now {
			s.terminate(sub, false)
			return
		}
	case s.expired(sub):
		s.end(sub, reasonExpired)
		return
	case sub.endBy != 0 && sub.endBy <= now:
		reason := reasonLifetime
		if s.draining {
			reason = reasonDrained
		}
		s.end(sub, reason)
		return
	case sub.blocked && s.opts.WriteTimeout > 0 && sub.blockedAt+s.opts.WriteTimeout <= now:
		s.end(sub, reasonWriteTimeout)
		return
	case s.opts.Heartbeat > 0 && sub.sink != nil && !sub.blocked && len(sub.queue) == 0 &&
		sub.lastWrite+s.opts.Heartbeat <= now:
		s.push(sub, s.writer.heartbeat)
		s.touch(sub)
		sub.lastWrite = s.now
	}
	s.schedule(sub)
}

// expired tells whether the token has expired, or will within the next ticks.
func (s *shard) expired(sub *Subscriber) bool {
	return sub.expiry != 0 && sub.untilExpiry() <= 2*wheelTick
}
