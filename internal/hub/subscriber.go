package hub

import (
	"sync/atomic"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// Subscriber is one stream. Its methods are safe for concurrent use.
type Subscriber struct {
	id        string
	principal *Principal
	matchers  []*topic.Matcher // distinct, at least one
	resumed   string
	hasCursor bool
	shard     *shard
	done      chan struct{} // closed by the shard
	claimed   atomic.Bool   // Attach or Discard has been called

	announcement announcement // protected by the roster's lock, as is rank
	rank         int          // in the roster's list of subscribers

	// What follows belongs to the shard's goroutine (I4).
	streamState
}

// phase is what a stream is doing.
type phase uint8

const (
	// opening: Subscribe has not finished.
	opening phase = iota
	// replaying: pages are read from the history; the shard delivers nothing.
	replaying
	// joining: the end of the history was reached; the dispatcher has been asked for live entries.
	joining
	// closingGap: live entries are held back until the page before them has come.
	closingGap
	// live: the shard delivers.
	live
	// finishing: the stream ends as soon as the entry being written is out.
	finishing
	// ended: nothing happens any more.
	ended
)

// streamState is what a shard keeps for a subscriber.
type streamState struct {
	phase    phase
	blocked  bool // the sink takes no more before it says so
	touched  bool // in the shard's list of subscribers to write to
	urgent   bool // in the shard's list of subscribers with too long a queue
	fetching bool // a page is under way
	asked    bool // the dispatcher has been asked to register and has not answered
	atHead   bool // the last page reached the head and was written at once

	sink Sink
	link wheelLink

	registration *registration // nil while the dispatcher does not know the subscriber
	places       []int         // of the subscriber in the shard's list for each route
	readers      *readers      // of the registration's grant set
	place        int           // in readers

	// x is the position through which the history has been read, or after which live begins.
	x history.Position
	// fresh streams begin wherever the dispatcher is, with no gap to close.
	fresh bool
	// seen is the newest position that was offered live. It makes an entry that several matchers select
	// one event, and keeps away entries that the replay brings (I1, I2).
	seen history.Position
	// gapEnd is the position through which history has to be read before held entries follow.
	gapEnd history.Position
	filter *filter

	queue   []*frame // to be written, in order
	offset  int      // bytes of the first frame that have been written
	queued  int      // cost of queue
	held    []*frame // live entries that wait for the gap to close
	heldFor int      // cost of held
	counted int      // what the stream's backlog is counted for

	lastWrite instant
	blockedAt instant
	endBy     instant // lifetime, drain, or the end of finishing; 0: none
	expiry    int64   // wall clock in ns since 1970; 0: none
}

// ID returns the subscriber's identifier, a random UUID as a URN.
func (s *Subscriber) ID() string { return s.id }

// ResumedFrom returns the id that precedes the first event of the stream, "earliest" when nothing precedes it or the
// cursor is unknown, and false when the stream was opened without a cursor (REC-14 to REC-19).
func (s *Subscriber) ResumedFrom() (id string, ok bool) { return s.resumed, s.hasCursor }

// Attach gives the stream its sink and returns at once; the engine owns the sink from here on. It is called once, and
// not after Discard.
func (s *Subscriber) Attach(sink Sink) {
	if !s.claimed.CompareAndSwap(false, true) {
		sink.Start((*notifier)(s))
		sink.Finish()
		return
	}
	sink.Start((*notifier)(s))
	if !s.shard.inbox.put(message{kind: attachMessage, sub: s, sink: sink}) {
		sink.Finish()
	}
}

// Discard ends a stream that never got a sink. Calling it again, or after Attach, does nothing.
func (s *Subscriber) Discard() {
	if s.claimed.CompareAndSwap(false, true) {
		s.shard.inbox.put(message{kind: discardMessage, sub: s})
	}
}

// End ends the stream as CloseBy does, before or after Attach. Its reader gets a clean end and may come back.
func (s *Subscriber) End() {
	s.shard.inbox.put(message{kind: endMessage, sub: s})
}

// Done is closed when the stream has ended.
func (s *Subscriber) Done() <-chan struct{} { return s.done }

// notifier is a subscriber as its sink sees it.
type notifier Subscriber

// Writable implements [Notify].
func (n *notifier) Writable() {
	n.shard.inbox.put(message{kind: writableMessage, sub: (*Subscriber)(n)})
}

// Gone implements [Notify].
func (n *notifier) Gone() {
	n.shard.inbox.put(message{kind: goneMessage, sub: (*Subscriber)(n)})
}
