package history

import (
	"context"
	"errors"
	"slices"
)

// Position orders entries: an entry with a greater position is a later one. 0 is
// the position before every entry.
type Position uint64

// Record is an update as the log stores it. It must not be modified once it has
// been handed to Append or received from a log.
type Record struct {
	// ID is the event id; it must not be empty.
	ID string
	// Topics holds the canonical topic first; there is at least one.
	Topics []string
	// Private says that reading needs a grant.
	Private bool
	// Subscription says that this is a subscription event, which the hub itself publishes (ACT-02, ACT-03). These do not count for the
	// limit by number, and have one of their own.
	Subscription bool
	// Event is the wire-ready event, as sse.AppendEvent makes it.
	Event []byte
}

// Entry is a stored record and its position.
type Entry struct {
	Position Position
	Record
}

// Head describes a log at one moment.
type Head struct {
	// Epoch identifies the sequence of positions. When it changes, positions from
	// before the change mean nothing any more.
	Epoch string
	// First is the position of the oldest retained entry, or an earlier one where only subscription events have gone since. It is
	// greater than Last when nothing is retained.
	First Position
	// Last is the position of the newest entry ever appended; 0 when there never was
	// one.
	Last Position
	// LastID is the id of the entry at Last; empty when it is not retained.
	LastID string
}

// Query asks for a page of retained entries.
type Query struct {
	// After is the position before the first entry wanted; 0 means from the
	// earliest retained entry on, wherever that is.
	After Position
	// UpTo is the last position wanted; 0 means the newest there is.
	UpTo Position
	// MaxBytes bounds the entries of the page by their [Record.Size]; a page may
	// exceed it by its last entry, so that one too large for it can be read. 0 or less means 1 MiB. It
	// bounds what is passed over as well, see [Query.PassedBytes].
	MaxBytes int
	// Select says which entries are of use.
	Select Selection
}

// MaxAppendBytes bounds what one Append of several records may hold, by [Record.Size]. A single record may be as large as an
// implementation can hold.
const MaxAppendBytes = 1 << 20

// DefaultPageBytes is the bound of a page for queries that set none.
const DefaultPageBytes = 1 << 20

// passedFactor is how much more of a log may be passed over for a page than the page may hold.
const passedFactor = 16

// PassedBytes bounds the entries that are looked at in vain for one page, by about their [Record.Size]. Without a bound a selection
// of little would keep its reader, and those in line behind it, for as long as the whole log takes. What an implementation
// passes over by an index does not count, but the topics that it has to ask a pattern about do.
func (q *Query) PassedBytes() int {
	if q.MaxBytes <= 0 {
		return passedFactor * DefaultPageBytes
	}
	return passedFactor * q.MaxBytes
}

// Page is a part of the log.
type Page struct {
	// Entries holds entries in order. It is the caller's; what its entries refer to is
	// shared.
	Entries []Entry
	// Through says how far the page goes: the log has no other entry of use in
	// (After, Through]. The next query goes on from there, also after a page without entries; the last
	// page of a query has Through at UpTo or, where UpTo lies beyond it, at the head. It is at least After.
	Through Position
}

// Selection is a hint which entries a reader can use. An implementation may leave out entries
// that cannot be of use and need not: readers still judge every entry they get. The zero
// Selection selects everything, so that forgetting it costs time, not entries.
type Selection struct {
	// All selects every entry, as does a Selection with nothing set.
	All bool
	// Exact selects entries with one of these topics.
	Exact []string
	// Pattern selects entries with a topic for which it returns true; nil selects
	// none. It is called from one goroutine at a time, with the log's locks free, and must answer the same for the same
	// topic as long as the call lasts: an implementation may ask once for all entries with a topic.
	Pattern func(topic string) bool
	// Prefixes narrows Pattern for topics that are in normal form (topic.Normal): Pattern returns true for such a topic
	// only when it begins with one of these. nil says nothing. Other topics are asked of Pattern one by one.
	Prefixes []string
}

// Log is the hub's ordered log of updates.
//
// The context of a call bounds it; each returns the context's error when that ends
// first, and ErrClosed once the log is closed.
type Log interface {
	// Append stores records, at least one, in one commit, and returns the position of the last when they are as durable as the
	// implementation promises, and visible: all of them, in order, with nothing in between, or none. Several may be no larger than
	// MaxAppendBytes together, by [Record.Size] (ErrTooLarge). The context bounds the waiting until the log
	// accepts the records (ErrOverloaded after the log's own patience); accepted
	// records are finished whatever becomes of the context, and their outcome returned.
	Append(ctx context.Context, records ...*Record) (Position, error)

	// Tail calls fn from one goroutine with every entry after the given position, in
	// order, each once, as many at a time as there are, until the context ends, fn
	// fails, or the log closes; it returns that error. After 0 starts with the earliest
	// retained entry. A position beyond the head is fine: entries up to it are left out.
	// It fails with ErrPositionGone when entries that it had to deliver were trimmed. The slice is
	// fn's until it returns.
	Tail(ctx context.Context, after Position, fn func([]Entry) error) error

	// Seek returns the position of the earliest retained entry with the event id, or
	// ErrUnknownID.
	Seek(ctx context.Context, id string) (Position, error)

	// Replay returns a page of the retained entries in (After, UpTo]. It fails with
	// ErrPositionGone when After is not 0 and the entry that follows it was trimmed.
	Replay(ctx context.Context, q Query) (Page, error)

	// Head returns where the log begins and ends.
	Head(ctx context.Context) (Head, error)

	// Ready returns nil when the log can append, and otherwise why not.
	Ready(ctx context.Context) error

	// Close finishes accepted appends, ends all other calls with ErrClosed and
	// releases the store. Further calls of Close return nil.
	Close() error
}

// What a record and each of its topics are counted for beside their contents.
const (
	recordOverhead = 128
	topicOverhead  = 16
)

// Size returns the number of bytes for which r counts in limits and bounds: its
// contents and a fixed share for keeping it.
func (r *Record) Size() int {
	n := recordOverhead + len(r.ID) + len(r.Event)
	for _, t := range r.Topics {
		n += topicOverhead + len(t)
	}
	return n
}

// CheckAppend returns what every implementation refuses to append, whatever it can hold: no records, one without id or topic, and several that
// are ErrTooLarge together.
func CheckAppend(records []*Record) error {
	size := 0
	for _, r := range records {
		if r.ID == "" || len(r.Topics) == 0 {
			return errors.New("record without id or topic")
		}
		size += r.Size()
	}
	switch {
	case len(records) == 0:
		return errors.New("nothing to append")
	case len(records) > 1 && size > MaxAppendBytes:
		return ErrTooLarge
	}
	return nil
}

// Selects tells whether an entry with the topics can be of use.
func (s *Selection) Selects(topics []string) bool {
	if s.Everything() {
		return true
	}
	for _, t := range topics {
		if slices.Contains(s.Exact, t) || s.Pattern != nil && s.Pattern(t) {
			return true
		}
	}
	return false
}

// Everything tells whether every entry is selected.
func (s *Selection) Everything() bool {
	return s.All || s.Exact == nil && s.Pattern == nil
}
