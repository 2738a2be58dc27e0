package presence

import (
	"context"
	"encoding/json"
	"errors"
)

// ErrClosed says that the directory is closed or closing.
var ErrClosed = errors.New("presence: closed")

// Subscriber is a connection and its subscriptions. It is immutable once it has been handed to a Directory or received from one.
type Subscriber struct {
	// ID is the subscriber's identifier (ACT-08 to ACT-13); no two subscribers ever have the same one.
	ID string
	// Subscriptions holds one subscription for each matcher of the connection; there is at least one.
	Subscriptions []Subscription
}

// Subscription is a matcher that a subscriber listens with.
type Subscription struct {
	// MatchType is the canonical name of the matcher's type (ACT-05).
	MatchType string
	// Match is the matcher as the subscriber sent it.
	Match string
	// Payload is the JSON object that the subscriber's token attaches to the subscription (PAY-01); nil when there is none.
	Payload json.RawMessage
}

// Directory keeps which subscribers a node has. The context of a call bounds it; each returns the context's error when that
// ends first, and ErrClosed once the directory is closed. All methods are safe for concurrent use.
type Directory interface {
	// Put keeps subscribers of this node: all of them, durably, when it returns nil, and otherwise none. A subscriber is put once.
	Put(ctx context.Context, subscribers []Subscriber) error

	// Remove forgets the subscribers with these identifiers, those of this node and those that were reaped; unknown ones are passed over. It need
	// not be durable when it returns: a subscriber that comes back after a crash is reaped, and its end reported once more.
	Remove(ctx context.Context, ids []string) error

	// Reap returns subscribers whose node is gone, at most limit of them and no more than fit into a few megabytes, and none when there are no more. It keeps them until they are
	// removed, and gives each to one caller in the life of a node, so that who reaps one has to report its end. A limit of less than 1 means 1.
	Reap(ctx context.Context, limit int) ([]Subscriber, error)

	// Close releases the directory when running calls have ended. Further calls return nil.
	Close() error
}
