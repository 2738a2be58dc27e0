package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

const (
	// firstPageBytes bounds the page that is read before the response begins.
	firstPageBytes = 64 << 10
	// startPatience is how long Subscribe waits for the hub to reach the history for the first time.
	startPatience = 5 * time.Second
)

// SubscribeRequest describes a stream.
type SubscribeRequest struct {
	// Principal is the reader; nil for an anonymous one.
	Principal *Principal
	// Matchers selects the topics; at least one. Equal ones count once; wildcards of two types are two subscriptions (ACT-23).
	Matchers []*topic.Matcher
	// Cursor is the event id to go on from, "earliest", or anything else a client sent.
	Cursor string
	// HasCursor says whether there is a cursor: an empty one counts (REC-19).
	HasCursor bool
}

// start is where a stream begins, as Subscribe found out.
type start struct {
	generation uint64
	x          history.Position
	fresh      bool
	atHead     bool
	frames     []*frame
	filter     *filter
}

// Subscribe opens a stream. What is published after Subscribe has returned will be delivered. With a cursor, the
// beginning of the replay has been read when Subscribe returns, so that [Subscriber.ResumedFrom] is true; without one
// the stream starts live. The caller attaches a sink to the subscriber or discards it.
//
// The error is ErrNoMatcher, ErrRevoked, ErrDraining, ErrTooManySubscribers, ErrUnavailable or ctx's. ctx bounds this call, not
// the stream.
func (h *Hub) Subscribe(ctx context.Context, r SubscribeRequest) (*Subscriber, error) {
	matchers := distinct(r.Matchers)
	if len(matchers) == 0 {
		return nil, ErrNoMatcher
	}
	if err := h.awaitHistory(ctx); err != nil {
		return nil, err
	}
	if err := h.admit(); err != nil {
		return nil, err
	}
	s := &Subscriber{
		id:        mercure.NewEventID(),
		principal: r.Principal,
		matchers:  matchers,
		hasCursor: r.HasCursor,
		shard:     h.nextShard(),
		done:      make(chan struct{}),
	}
	// From here on CloseBy finds the stream, and the shard gives its place back when it ends.
	if !s.shard.inbox.put(message{kind: openMessage, sub: s}) {
		h.leave()
		return nil, ErrDraining
	}
	if err := h.launch(ctx, s, r.Cursor); err != nil {
		s.Discard()
		return nil, err
	}
	h.roster.begin(s)
	return s, nil
}

// launch starts a stream that its shard knows. Only now is it asked whether the token was revoked: a revocation that was
// not known yet comes to the shard as a call of CloseBy, after the stream.
func (h *Hub) launch(ctx context.Context, s *Subscriber, cursor string) error {
	if h.revoked(s.principal) {
		return ErrRevoked
	}
	st, err := h.begin(ctx, s, cursor)
	if err != nil {
		return err
	}
	return h.startStream(ctx, s, st)
}

// revoked tells whether the token of p was revoked. Nothing can revoke an anonymous client.
func (h *Hub) revoked(p *Principal) bool {
	return p != nil && h.opts.Revoked != nil && h.opts.Revoked(p)
}

// distinct returns the matchers without repetitions.
func distinct(matchers []*topic.Matcher) []*topic.Matcher {
	if len(matchers) == 1 {
		return matchers
	}
	seen := make(map[matcherKey]struct{}, len(matchers))
	out := make([]*topic.Matcher, 0, len(matchers))
	for _, m := range matchers {
		if _, ok := seen[keyOf(m)]; ok {
			continue
		}
		seen[keyOf(m)] = struct{}{}
		out = append(out, m)
	}
	return out
}

// awaitHistory waits until positions mean something.
func (h *Hub) awaitHistory(ctx context.Context) error {
	select {
	case <-h.tailer.positioned:
		return nil
	default:
	}
	timer := time.NewTimer(startPatience)
	defer timer.Stop()
	select {
	case <-h.tailer.positioned:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-h.stopped:
		return ErrDraining
	case <-timer.C:
		return fmt.Errorf("%w: the history has not been reached yet", ErrUnavailable)
	}
}

// begin finds out where the stream begins, and sets what it resumed from.
func (h *Hub) begin(ctx context.Context, s *Subscriber, cursor string) (*start, error) {
	generation, newest := h.mark.current()
	st := &start{generation: generation}
	if !s.hasCursor {
		st.x, st.fresh, st.atHead = newest, true, true
		return st, nil
	}
	select {
	case h.opening <- struct{}{}:
		defer func() { <-h.opening }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-h.stopped:
		return nil, ErrDraining
	}
	return st, h.resume(ctx, s, cursor, st, newest)
}

// resume finds out where a stream with a cursor begins, and reads its first page.
func (h *Hub) resume(ctx context.Context, s *Subscriber, cursor string, st *start, newest history.Position) error {
	s.resumed = mercure.Earliest
	known, err := h.seek(ctx, s, cursor, st)
	if err != nil {
		return h.unavailable("seek cursor", err)
	}
	if !known && h.opts.LiveAfterUnknown && cursor != mercure.Earliest {
		st.x, st.fresh, st.atHead = newest, true, true
		return nil
	}
	st.filter = newFilter(h.opts.Compiler, s.matchers, s.principal.grants())
	page, err := h.replays.page(ctx, fetch{filter: st.filter, after: st.x, maxBytes: firstPageBytes})
	if st.x != 0 && errors.Is(err, history.ErrPositionGone) {
		// Trimmed since Seek: as unknown as if the request had come a moment later.
		s.resumed, st.x = mercure.Earliest, 0
		page, err = h.replays.page(ctx, fetch{filter: st.filter, maxBytes: firstPageBytes})
	}
	if err != nil {
		return h.unavailable("read history", err)
	}
	st.x, st.atHead, st.frames = page.through, page.atHead, page.frames
	return nil
}

// seek resolves the cursor, and reports whether it is the id of an entry.
func (h *Hub) seek(ctx context.Context, s *Subscriber, cursor string, st *start) (known bool, err error) {
	if cursor == "" || cursor == mercure.Earliest {
		return false, nil
	}
	at, err := h.opts.Log.Seek(ctx, cursor)
	switch {
	case errors.Is(err, history.ErrUnknownID):
		return false, nil
	case err != nil:
		return false, err
	}
	s.resumed, st.x = cursor, at
	return true, nil
}

// startStream hands the stream to its shard; one that has nothing left to replay is live when it returns.
func (h *Hub) startStream(ctx context.Context, s *Subscriber, st *start) error {
	if !s.shard.inbox.put(message{kind: startMessage, sub: s, start: st}) {
		return ErrDraining
	}
	if !st.atHead {
		return nil
	}
	joined := make(chan struct{})
	if !h.dispatcher.orders.put(order{sub: s, joined: joined}) {
		return ErrDraining
	}
	select {
	case <-joined:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-h.stopped:
		return ErrDraining
	}
}

// unavailable wraps an error of the history. The caller's own context stays what it is.
func (h *Hub) unavailable(operation string, err error) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", operation, err)
	case errors.Is(err, history.ErrClosed) && h.gate.isShut():
		return fmt.Errorf("%s: %w", operation, ErrDraining)
	}
	return &failure{ErrUnavailable, operation, err}
}
