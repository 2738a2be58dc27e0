package hub

import (
	"context"
	"log/slog"
	"time"
)

// finishWait bounds how long a stream that ends may take to get the entry out that is being written.
const finishWait = time.Second

// Reasons for which streams end. Those from reasonExpired on are the hub's doing, see [Metrics].
const (
	reasonGone      = "gone"
	reasonDiscarded = "discarded"

	reasonExpired      = "expired"
	reasonLifetime     = "lifetime"
	reasonDrained      = "drained"
	reasonClosed       = "closed"
	reasonStopped      = "stopped"
	reasonWriteTimeout = "write_timeout"
	reasonHistoryGone  = "history_gone"
	reasonHistoryReset = "history_reset"
	reasonHistoryError = "history_error"
)

// end ends a stream for the reason. Entries that wait are left out, for the reader finds them by its cursor; one that
// has been written in part is completed first, within finishWait and before the token expires (PRIV-09), for its frame would be
// torn otherwise.
func (s *shard) end(sub *Subscriber, reason string) {
	if sub.phase >= finishing {
		if reason == reasonGone {
			s.terminate(sub, false)
		}
		return
	}
	s.logger.LogAttrs(context.Background(), slog.LevelDebug, "stream ended",
		slog.String("subscriber_id", sub.id), slog.String("reason", reason))
	s.unregister(sub)
	s.roster.end(sub)
	sub.held, sub.heldFor = nil, 0
	switch reason {
	case reasonGone, reasonDiscarded, reasonWriteTimeout:
		if reason == reasonWriteTimeout {
			s.opts.Metrics.Cut(reason)
		}
		s.terminate(sub, false)
		return
	}
	s.opts.Metrics.Cut(reason)
	if sub.offset == 0 {
		s.terminate(sub, true)
		return
	}
	s.keepFrames(sub, 1)
	sub.phase = finishing
	sub.endBy = s.now + finishWait
	if sub.expiry != 0 {
		sub.endBy = min(sub.endBy, s.now+sub.untilExpiry())
	}
	s.account(sub)
	s.schedule(sub)
}

// terminate lets go of the stream, cleanly or not.
func (s *shard) terminate(sub *Subscriber, clean bool) {
	if sub.phase == ended {
		return
	}
	sub.phase = ended
	s.keepFrames(sub, 0)
	s.account(sub)
	s.wheel.remove(sub)
	if sub.sink != nil {
		if clean {
			sub.sink.Finish()
		} else {
			sub.sink.Abort()
		}
		sub.sink = nil
	}
	s.subscribers.remove(sub)
	close(sub.done)
	s.left()
}

// drain ends every stream within the window, each at a moment of its own, and streams that come later as well.
func (s *shard) drain(window time.Duration) {
	s.writeAll() // what came before the end is written before it
	s.draining = true
	s.drainBy = s.now + window
	for sub := range s.subscribers.m {
		s.endWithin(sub, window)
	}
}

// abandon ends what drain has left, at once.
func (s *shard) abandon() {
	s.drainBy = s.now
	s.endAll(reasonDrained)
	s.cutAll()
}

// endWithin has the stream end at a random moment within the window.
func (s *shard) endWithin(sub *Subscriber, window time.Duration) {
	if sub.phase >= finishing {
		return
	}
	if window <= 0 {
		s.end(sub, reasonDrained)
		return
	}
	at := s.now + jitter(window)
	if sub.endBy == 0 || at < sub.endBy {
		sub.endBy = at
	}
	s.schedule(sub)
}

// isDone tells whether the stream has ended.
func (s *Subscriber) isDone() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}
