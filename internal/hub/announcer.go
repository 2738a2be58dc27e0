package hub

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/presence"
	"github.com/cinnabar-hub/cinnabar/internal/sse"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

const (
	// gatherTime is how long changes are gathered that follow others, so that a storm of them costs few commits.
	gatherTime = 50 * time.Millisecond
	// announcedAtOnce bounds how many subscribers' changes are announced before others are looked at, and reapedAtOnce those of a process
	// that is gone.
	announcedAtOnce = 512
	reapedAtOnce    = 256
	// announceRetryMin and announceRetryMax bound the pause after a failure of the history or of the directory.
	announceRetryMin = 50 * time.Millisecond
	announceRetryMax = 5 * time.Second
)

// announcer publishes the events of subscriptions that begin and end (ACT-02, ACT-03): of what the roster has for it, and of those that a process
// which is gone had left open. The first change after a pause is announced at once.
//
// A subscriber is put into the directory before its beginning is announced, and removed after its end was. Once the hub is quiesced nothing
// is announced any more: the successor finds in the directory what was open.
type announcer struct {
	roster    *roster
	directory presence.Directory // nil: nobody comes after this process
	log       history.Log
	path      string // of the hub's URL
	compiler  *topic.Compiler
	gate      *gate
	mark      *watermark
	metrics   Metrics
	logger    *slog.Logger

	changes []change
	notices []notice
	records []*history.Record
	reaped  bool // nothing is left of processes that are gone
	// failing and unkept say that the operator was told that the history, and that the directory, cannot be used.
	failing, unkept bool
}

// notice is what is said of a subscriber: that its subscriptions have begun, or ended.
type notice struct {
	presence.Subscriber

	active bool
}

// run works until ctx ends or the hub is quiesced.
func (a *announcer) run(ctx context.Context) {
	a.reaped = a.directory == nil
	pace := time.NewTimer(gatherTime)
	defer pace.Stop()
	for {
		more, ok := a.announceChanges(ctx)
		if ok && !a.reaped {
			var left bool
			left, ok = a.announceLeft(ctx)
			more = more || left
		}
		if !ok {
			return
		}
		if more {
			continue
		}
		pace.Reset(gatherTime)
		if !await(ctx, pace.C) || !a.awaitChanges(ctx) {
			return
		}
	}
}

// awaitChanges returns when there may be something to do, or reports false when ctx has ended.
func (a *announcer) awaitChanges(ctx context.Context) bool {
	if a.reaped {
		return await(ctx, a.roster.wake)
	}
	ctx, cancel := context.WithTimeout(ctx, announceRetryMax)
	defer cancel()
	return await(ctx, a.roster.wake) || errors.Is(ctx.Err(), context.DeadlineExceeded)
}

// announceChanges announces what the roster has, some of it at a time, and tells whether there is more; ok is false when nothing can be announced any
// more.
func (a *announcer) announceChanges(ctx context.Context) (more, ok bool) {
	a.changes, more = a.roster.take(a.changes[:0], announcedAtOnce)
	for _, c := range a.changes {
		a.notices = append(a.notices, notice{Subscriber: a.describe(c.sub), active: c.active})
	}
	clear(a.changes)
	return more, a.announce(ctx)
}

// announceLeft announces the ends of some subscriptions that a process which is gone had left open, and tells whether there may be more.
func (a *announcer) announceLeft(ctx context.Context) (more, ok bool) {
	if !a.gate.enter() {
		return false, false
	}
	left, err := a.directory.Reap(ctx, reapedAtOnce)
	a.gate.leave()
	a.reportDirectory(ctx, err)
	if err != nil {
		return false, ctx.Err() == nil // tried again later
	}
	a.reaped = len(left) == 0
	for _, s := range left {
		a.notices = append(a.notices, notice{Subscriber: s})
	}
	return !a.reaped, a.announce(ctx)
}

// describe returns what others are told of a subscriber.
func (a *announcer) describe(s *Subscriber) presence.Subscriber {
	d := presence.Subscriber{ID: s.id, Subscriptions: make([]presence.Subscription, len(s.matchers))}
	for i, m := range s.matchers {
		payload, _ := s.principal.grants().Payload(m, a.compiler)
		d.Subscriptions[i] = presence.Subscription{MatchType: string(m.Type()), Match: m.Pattern(), Payload: payload}
	}
	return d
}

// announce announces the notices, in order, and forgets them. It reports false when nothing can be announced any more.
func (a *announcer) announce(ctx context.Context) bool {
	defer func() {
		clear(a.notices)
		clear(a.records)
		a.notices, a.records = a.notices[:0], a.records[:0]
	}()
	if !a.keep(ctx) {
		return false
	}
	size := 0
	for _, n := range a.notices {
		for i := range n.Subscriptions {
			r := a.record(n, &n.Subscriptions[i])
			if size += r.Size(); size > history.MaxAppendBytes {
				if !a.publish(ctx) {
					return false
				}
				size = r.Size()
			}
			a.records = append(a.records, r)
		}
	}
	return a.publish(ctx) && a.forget(ctx)
}

// record returns the event of a subscription that has begun or ended (ACT-04 to ACT-22).
func (a *announcer) record(n notice, s *presence.Subscription) *history.Record {
	document := mercure.Subscription{
		ID:         mercure.SubscriptionsTopic(a.path, s.MatchType, s.Match, n.ID),
		MatchType:  s.MatchType,
		Match:      s.Match,
		Subscriber: n.ID,
		Active:     n.active,
		Payload:    s.Payload,
	}
	id := mercure.NewEventID()
	return &history.Record{
		ID:           id,
		Topics:       []string{document.ID},
		Private:      true,
		Subscription: true,
		Event:        sse.AppendEvent(nil, sse.Event{ID: id, Type: mercure.ReservedEventType, Data: string(document.AppendJSON(nil))}),
	}
}

// publish appends the records, and tries again as long as that fails.
func (a *announcer) publish(ctx context.Context) bool {
	if len(a.records) == 0 {
		return true
	}
	defer func() {
		clear(a.records)
		a.records = a.records[:0]
	}()
	for pause := announceRetryMin; ; pause = min(2*pause, announceRetryMax) {
		if !a.gate.enter() {
			return false
		}
		generation, _ := a.mark.current()
		at, err := a.log.Append(ctx, a.records...)
		if err == nil {
			a.mark.raise(generation, at)
		}
		a.gate.leave()
		a.report(ctx, err)
		switch {
		case err == nil:
			a.metrics.Announced(len(a.records))
			return true
		case errors.Is(err, history.ErrTooLarge):
			return true // it never fits: the next ones may
		}
		if !sleep(ctx, pause+jitter(pause/2)) {
			return false
		}
	}
}

// report tells the operator when events cannot be stored, and when they can be again.
func (a *announcer) report(ctx context.Context, err error) {
	if ctx.Err() != nil || (err != nil) == a.failing {
		return
	}
	a.failing = err != nil
	a.roster.setFailing(a.failing)
	if a.failing {
		a.logger.LogAttrs(ctx, slog.LevelError, "subscription events cannot be stored; trying again", slog.Any("error", err))
	} else {
		a.logger.LogAttrs(ctx, slog.LevelInfo, "subscription events are stored again")
	}
}

// keep puts those that have begun into the directory. One that cannot be put is announced all the same: if the process dies, nobody
// reports its end, but until then others know of it.
func (a *announcer) keep(ctx context.Context) bool {
	var begun []presence.Subscriber
	for _, n := range a.notices {
		if n.active {
			begun = append(begun, n.Subscriber)
		}
	}
	if a.directory == nil || len(begun) == 0 {
		return true
	}
	if !a.gate.enter() {
		return false
	}
	defer a.gate.leave()
	a.reportDirectory(ctx, a.directory.Put(ctx, begun))
	return ctx.Err() == nil
}

// forget removes those that have ended from the directory.
func (a *announcer) forget(ctx context.Context) bool {
	var ended []string
	for _, n := range a.notices {
		if !n.active {
			ended = append(ended, n.ID)
		}
	}
	if a.directory == nil || len(ended) == 0 {
		return true
	}
	if !a.gate.enter() {
		return false
	}
	defer a.gate.leave()
	a.reportDirectory(ctx, a.directory.Remove(ctx, ended))
	return ctx.Err() == nil
}

// reportDirectory tells the operator when the directory cannot be used, and when it can be again.
func (a *announcer) reportDirectory(ctx context.Context, err error) {
	if ctx.Err() != nil || (err != nil) == a.unkept {
		return
	}
	a.unkept = err != nil
	if a.unkept {
		a.logger.LogAttrs(ctx, slog.LevelError,
			"which subscriptions are open cannot be stored; if this process dies, nobody reports their end", slog.Any("error", err))
	} else {
		a.logger.LogAttrs(ctx, slog.LevelInfo, "which subscriptions are open is stored again")
	}
}

// await returns when c fires, or reports false when ctx has ended.
func await[T any](ctx context.Context, c <-chan T) bool {
	select {
	case <-c:
		return true
	case <-ctx.Done():
		return false
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	return await(ctx, timer.C)
}
