package client

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/url"
	"slices"
	"time"
)

// Subscription says which updates to follow. It needs a topic or a pattern.
type Subscription struct {
	// Topics select updates by a topic that equals one of them byte by byte; "*" selects every update.
	Topics []string
	// Patterns select updates with a topic that matches a URL Pattern, such as https://example.com/books/:id. A relative pattern
	// is resolved against the hub URL.
	Patterns []string
	// Cursor is the id of the event after which to begin: that of the last one a program has dealt with, [Discovery.Cursor], or
	// [Earliest] for everything the hub has kept. Empty begins with what is published from now on.
	Cursor string
	// Opened, if set, is called whenever the stream has been opened, before the first event of that connection.
	Opened func(Connection)
	// Retry, if set, is called when the stream has been lost or could not be opened and another attempt may help, before the wait.
	// The error is an [*Error]; returning false ends the iteration with it.
	Retry func(err error, wait time.Duration) bool
}

// Connection describes a stream that has been opened.
type Connection struct {
	// Cursor is the event id after which the stream was asked to begin; empty: none.
	Cursor string
	// From is the id of the event after which it does begin, or [Earliest], as the hub says; empty when nothing was asked for.
	From string
	// Gap says that updates may be missing before what comes now, or that some may come again; see [Event.Gap].
	Gap bool
}

// Event is an update as a reader gets it.
type Event struct {
	// ID is the event's id, and the cursor to resume after it.
	ID string
	// Type is the event type; empty means "message".
	Type string
	// Data is the content.
	Data string
	// Gap says that updates before this one may be missing, or that some may come again: the hub does not have the event to resume
	// after, does not say whether it has, or there was none. Whoever keeps a state made from updates should fetch it anew (REC-21).
	Gap bool
}

// Subscribe returns the updates that match the subscription, as they come. Each range over it is a subscription of its own.
//
// A stream that is lost, or could not be opened, is opened anew after a wait: what the hub asked for (retry in the stream, up to a
// minute, or Retry-After, up to 15 minutes, whichever is longer) plus a random time of up to a second, doubled with every failure in
// a row to at most 30 seconds. The new stream goes on after the last event.
//
// The iteration ends with an error, its last value, when another attempt cannot be expected to help (an [*Error] that is not
// [Error.Retryable]: the hub refused the request, or the token and there is no other one, or does not speak the protocol), when
// [Subscription.Retry] says so, and when ctx ends, then with the context's cause. It never ends without one unless the loop is left.
func (c *Client) Subscribe(ctx context.Context, s Subscription) iter.Seq2[Event, error] {
	query := c.hub.Query()
	for _, t := range s.Topics {
		query.Add(paramMatch, t)
	}
	for _, p := range s.Patterns {
		query.Add(paramMatchPattern, p)
	}
	empty := len(s.Topics)+len(s.Patterns) == 0
	return func(yield func(Event, error) bool) {
		if empty {
			yield(Event{}, errors.New("client: a subscription needs a topic or a pattern"))
			return
		}
		f := &follower{client: c, subscription: s, query: query, cursor: s.Cursor, yield: yield}
		if err := f.follow(ctx); !errors.Is(err, errLeft) {
			yield(Event{}, err)
		}
	}
}

// errLeft says that the loop has been left, so that nothing may be yielded any more.
var errLeft = errors.New("client: the loop has been left")

// follower is one iteration, over as many connections as it takes.
type follower struct {
	client       *Client
	subscription Subscription
	query        url.Values // of the hub URL, with the matchers
	yield        func(Event, error) bool

	cursor  string
	resumed bool // the cursor is what a stream said, not what the caller did
	opened  bool // there has been a stream
	gap     bool // to be reported with the next event
	backoff backoff
}

// follow opens streams until one cannot be followed by another.
func (f *follower) follow(ctx context.Context) error {
	for {
		err := f.stream(ctx)
		if errors.Is(err, errLeft) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		e, ok := errors.AsType[*Error](err)
		if !ok || !e.Retryable() {
			return err
		}
		delay := f.backoff.next(e.RetryAfter)
		if f.subscription.Retry != nil && !f.subscription.Retry(err, delay) {
			return err
		}
		level := slog.LevelWarn
		if errors.Is(err, errEnded) { // which is how hubs let go of readers
			level = slog.LevelInfo
		}
		f.client.logger.LogAttrs(ctx, level, "stream is resumed",
			slog.String("error", err.Error()), slog.Duration("wait", delay), slog.Int("failures", f.backoff.failures-1))
		if err := wait(ctx, delay); err != nil {
			return err
		}
	}
}

// stream opens one stream and yields its events. It returns errLeft or an *Error.
func (f *follower) stream(ctx context.Context) error {
	s, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	f.announce(s.from)
	begun := time.Now()
	defer func() {
		if time.Since(begun) >= settled {
			f.backoff.succeeded()
		}
	}()
	for {
		e, err := s.next()
		if d, ok := s.decoder.Retry(); ok {
			f.backoff.suggest(d)
		}
		if err != nil {
			return err
		}
		f.backoff.succeeded()
		if e.ID != "" {
			f.cursor, f.resumed = e.ID, true
		}
		gap := f.gap
		f.gap = false
		if !f.yield(Event{ID: e.ID, Type: e.Type, Data: e.Data, Gap: gap}, nil) {
			return errLeft
		}
	}
}

// announce takes note of where a new stream begins: after the event that Mercure-Last-Event-ID names.
func (f *follower) announce(from string) {
	c := Connection{Cursor: f.cursor, From: from}
	if f.cursor == "" {
		c.Gap = f.opened // what came in between cannot be asked for
	} else {
		c.Gap = from != trimmed(f.cursor)
	}
	f.opened = true
	if c.Gap {
		f.gap = true
		f.client.logger.Warn("updates may be missing")
		if f.cursor != "" && from != "" { // from here on it is a stream without a gap
			f.cursor, f.resumed = from, true
		}
	}
	if f.subscription.Opened != nil {
		f.subscription.Opened(c)
	}
}

// target is the URL of the next stream, and the cursor to send in the header. A cursor that the caller gave goes into the URL, one that a
// stream gave into the header (REC-03, DISC-06), unless a header cannot carry it.
func (f *follower) target() (target, header string) {
	query := f.query
	if f.cursor != "" {
		if f.resumed && fitsHeader(f.cursor) {
			header = f.cursor
		} else {
			query = make(url.Values, len(f.query)+1)
			for name, values := range f.query {
				query[name] = slices.Clone(values)
			}
			query.Set(paramLastEventID, f.cursor)
		}
	}
	u := *f.client.hub
	u.RawQuery = query.Encode()
	return u.String(), header
}

// fitsHeader reports whether a header field carries an id unchanged.
func fitsHeader(id string) bool {
	for i := range len(id) {
		if id[i] < ' ' || id[i] == 0x7f {
			return false
		}
	}
	return id == trimmed(id)
}
