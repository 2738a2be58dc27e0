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
	// noticesBytes bounds about how much is told of subscribers at a time: all of that is in one commit of the directory, and a token's payload
	// counts for each subscription that it belongs to.
	noticesBytes = history.MaxAppendBytes
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
	// unstored, unkept, unremoved and unreaped are the failures of the history, and of each method of the directory: one may work while another fails.
	unstored, unkept, unremoved, unreaped outage
}

// outage is a failure that the operator is told of when it begins and when it ends.
type outage struct{ lasts bool }

// turns notes what came of a call, and tells whether the operator has to hear of it.
func (o *outage) turns(ctx context.Context, err error) bool {
	if ctx.Err() != nil || (err != nil) == o.lasts {
		return false
	}
	o.lasts = err != nil
	return true
}

// notice is what is said of a subscriber: that its subscriptions have begun, or ended.
type notice struct {
	presence.Subscriber

	active bool
}

// size is about what the directory keeps of the subscriber, in bytes.
func (n *notice) size() int {
	size := 0
	for i := range n.Subscriptions {
		size += len(n.Subscriptions[i].Match) + len(n.Subscriptions[i].Payload)
	}
	return size
}

// run works until ctx ends or the hub is quiesced.
func (a *announcer) run(ctx context.Context) {
	defer a.roster.close()
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
	a.reportDirectory(ctx, "reap", &a.unreaped, err)
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

// announce announces the notices, in order and some of them at a time, and forgets them. It reports false when nothing can be announced any more.
func (a *announcer) announce(ctx context.Context) bool {
	defer func() {
		clear(a.notices)
		a.notices = a.notices[:0]
	}()
	for rest := a.notices; len(rest) > 0; {
		n, size := 1, rest[0].size()
		for n < len(rest) {
			if size += rest[n].size(); size > noticesBytes {
				break
			}
			n++
		}
		if !a.announceSome(ctx, rest[:n]) {
			return false
		}
		rest = rest[n:]
	}
	return true
}

// announceSome announces notices that make one commit of the directory.
func (a *announcer) announceSome(ctx context.Context, notices []notice) bool {
	defer func() {
		clear(a.records)
		a.records = a.records[:0]
	}()
	if !a.keep(ctx, notices) {
		return false
	}
	size := 0
	for _, n := range notices {
		for i := range n.Subscriptions {
			r := a.record(n, &n.Subscriptions[i])
			if size += r.Size(); size > history.MaxAppendBytes {
				if !a.publish(ctx, a.records) {
					return false
				}
				clear(a.records)
				a.records, size = a.records[:0], r.Size()
			}
			a.records = append(a.records, r)
		}
	}
	return a.publish(ctx, a.records) && a.forget(ctx, notices)
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

// publish appends records, and tries again as long as that fails.
func (a *announcer) publish(ctx context.Context, records []*history.Record) bool {
	if len(records) == 0 {
		return true
	}
	for pause := announceRetryMin; ; pause = min(2*pause, announceRetryMax) {
		if !a.gate.enter() {
			return false
		}
		generation, _ := a.mark.current()
		at, err := a.log.Append(ctx, records...)
		if err == nil {
			a.mark.raise(generation, at)
		}
		a.gate.leave()
		if errors.Is(err, history.ErrTooLarge) {
			return a.publishFitting(ctx, records, err)
		}
		a.report(ctx, err)
		if err == nil {
			a.metrics.Announced(len(records))
			return true
		}
		if !sleep(ctx, pause+jitter(pause/2)) {
			return false
		}
	}
}

// publishFitting appends those of the records that the history can hold, one by one. A record that is alone never fits.
func (a *announcer) publishFitting(ctx context.Context, records []*history.Record, err error) bool {
	if len(records) == 1 {
		a.logger.LogAttrs(ctx, slog.LevelError, "a subscription event is too large to be stored: nobody is told", slog.Any("error", err))
		return true
	}
	for i := range records {
		if !a.publish(ctx, records[i:i+1]) {
			return false
		}
	}
	return true
}

// report tells the operator when events cannot be stored, and when they can be again.
func (a *announcer) report(ctx context.Context, err error) {
	if !a.unstored.turns(ctx, err) {
		return
	}
	a.roster.setFailing(err != nil)
	if err != nil {
		a.logger.LogAttrs(ctx, slog.LevelError, "subscription events cannot be stored; trying again", slog.Any("error", err))
	} else {
		a.logger.LogAttrs(ctx, slog.LevelInfo, "subscription events are stored again")
	}
}

// keep puts those that have begun into the directory. One that cannot be put is announced all the same: if the process dies, nobody
// reports its end, but until then others know of it.
func (a *announcer) keep(ctx context.Context, notices []notice) bool {
	var begun []presence.Subscriber
	for i := range notices {
		if notices[i].active {
			begun = append(begun, notices[i].Subscriber)
		}
	}
	if a.directory == nil || len(begun) == 0 {
		return true
	}
	if !a.gate.enter() {
		return false
	}
	defer a.gate.leave()
	a.reportDirectory(ctx, "put", &a.unkept, a.directory.Put(ctx, begun))
	return ctx.Err() == nil
}

// forget removes those that have ended from the directory.
func (a *announcer) forget(ctx context.Context, notices []notice) bool {
	var ended []string
	for i := range notices {
		if !notices[i].active {
			ended = append(ended, notices[i].ID)
		}
	}
	if a.directory == nil || len(ended) == 0 {
		return true
	}
	if !a.gate.enter() {
		return false
	}
	defer a.gate.leave()
	a.reportDirectory(ctx, "remove", &a.unremoved, a.directory.Remove(ctx, ended))
	return ctx.Err() == nil
}

// reportDirectory tells the operator when an operation of the directory fails, and when it works again.
func (a *announcer) reportDirectory(ctx context.Context, operation string, o *outage, err error) {
	if !o.turns(ctx, err) {
		return
	}
	if err != nil {
		a.logger.LogAttrs(ctx, slog.LevelError,
			"the directory of subscribers fails; ends that the next process has to report may be lost, or reported twice",
			slog.String("operation", operation), slog.Any("error", err))
	} else {
		a.logger.LogAttrs(ctx, slog.LevelInfo, "the directory of subscribers works again", slog.String("operation", operation))
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
