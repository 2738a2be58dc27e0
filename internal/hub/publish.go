package hub

import (
	"context"
	"errors"
	"fmt"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/rar"
	"github.com/cinnabar-hub/cinnabar/internal/sse"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// eventOverhead is about what an event takes beside its data and id, for small events.
const eventOverhead = 64

// Publish stores u and returns its event id, which is u's or a new one, when the history has acknowledged it. The
// update is delivered meanwhile and afterwards; nobody waits for readers. The topics and strings of u must not be
// modified any more.
//
// The error is ErrRevoked, ErrReserved, ErrForbidden (in this order), ErrTooLarge, ErrUnavailable, ErrDraining, or the history's
// own. An accepted update is stored even if ctx ends meanwhile.
func (h *Hub) Publish(ctx context.Context, p *Principal, u *mercure.Update) (id string, err error) {
	if h.revoked(p) {
		return "", ErrRevoked
	}
	topics := make([]*topic.Topic, len(u.Topics))
	for i, raw := range u.Topics {
		topics[i] = h.opts.Compiler.Topic(raw)
		if topics[i].Reserved() {
			return "", ErrReserved
		}
	}
	if !p.grants().AllowsAll(rar.Publish, topics) {
		return "", ErrForbidden
	}
	if !h.gate.enter() {
		return "", ErrDraining
	}
	defer h.gate.leave()
	id = u.ID
	if id == "" {
		id = mercure.NewEventID()
	}
	event := make([]byte, 0, len(u.Data)+len(id)+len(u.Type)+len(u.Retry)+eventOverhead)
	event = sse.AppendEvent(event, sse.Event{ID: id, Type: u.Type, Retry: u.Retry, Data: u.Data})
	generation, _ := h.mark.current()
	at, err := h.opts.Log.Append(context.WithoutCancel(ctx), &history.Record{
		ID: id, Topics: u.Topics, Private: u.Private, Event: event,
	})
	if err != nil {
		return "", appendError(err)
	}
	h.mark.raise(generation, at)
	h.opts.Metrics.Published()
	return id, nil
}

// appendError maps an error of the history.
func appendError(err error) error {
	const operation = "append update"
	switch {
	case errors.Is(err, history.ErrTooLarge):
		return &failure{ErrTooLarge, operation, err}
	case errors.Is(err, history.ErrOverloaded), errors.Is(err, history.ErrReadOnly),
		errors.Is(err, history.ErrNoSpace), errors.Is(err, history.ErrClosed):
		return &failure{ErrUnavailable, operation, err}
	}
	return fmt.Errorf("%s: %w", operation, err)
}
