package hub

import (
	"context"

	"github.com/cinnabar-hub/cinnabar/internal/mercure"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// listedAtOnce is how many subscriptions are described before it is asked whether anybody still waits for the list.
const listedAtOnce = 1024

// SubscriptionQuery selects active subscriptions. The zero value selects all of them.
type SubscriptionQuery struct {
	// MatchType and Match select those with a matcher, as its subscriber sent it; an empty MatchType selects those with any.
	MatchType topic.Type
	Match     string
	// Subscriber selects those of one subscriber; an empty one selects those of any.
	Subscriber string
}

// ActiveSubscriptions returns the subscriptions that are active on this node, in no order, and the id of the newest event before the list was made,
// "earliest" if there is none (ACT-41, ACT-42). A reader that has the list and goes on from there misses nothing; it may be told again what
// it knows. Without Options.Subscriptions there are none. The error is ErrUnavailable or ctx's.
func (h *Hub) ActiveSubscriptions(ctx context.Context, q SubscriptionQuery) (cursor string, list []mercure.Subscription, err error) {
	head, err := h.opts.Log.Head(ctx)
	if err != nil {
		return "", nil, h.unavailable("read head", err)
	}
	if cursor = head.LastID; cursor == "" {
		cursor = mercure.Earliest
	}
	if h.roster == nil {
		return cursor, nil, nil
	}
	var key *matcherKey
	if q.MatchType != "" {
		key = &matcherKey{typ: q.MatchType, pattern: q.Match}
	}
	listed := h.roster.list(key, q.Subscriber)
	list = make([]mercure.Subscription, len(listed))
	for i, l := range listed {
		if i%listedAtOnce == 0 && ctx.Err() != nil {
			return "", nil, ctx.Err()
		}
		payload, _ := l.sub.principal.grants().Payload(l.matcher, h.opts.Compiler)
		list[i] = mercure.Subscription{
			ID:         mercure.SubscriptionsTopic(h.opts.Compiler.HubPath(), string(l.matcher.Type()), l.matcher.Pattern(), l.sub.id),
			MatchType:  string(l.matcher.Type()),
			Match:      l.matcher.Pattern(),
			Subscriber: l.sub.id,
			Active:     true,
			Payload:    payload,
		}
	}
	return cursor, list, nil
}
