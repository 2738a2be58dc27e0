// Package history is the port of the hub's single ordered log of updates, and
// its contract. The packages beside it implement it; package historytest
// is the suite that every implementation passes. The hub's engine is the only
// user: no implementation ever sees a subscriber, a matcher or a token.
//
// # Order
//
// Every entry has a [Position]. Positions start at 1 or later, strictly increase in the
// order in which entries become visible, and may have gaps. They are the log's own: clients
// know event ids only.
//
// # Visibility
//
// Append returns after the entry has become visible to Replay, Seek and Head of
// this process, and Tail delivers an entry only then. An entry is visible to all
// of them or to none. Entries become visible in order: who sees an entry sees all
// retained ones before it. The parts of one commit become visible together.
//
// # Durability
//
// Each implementation documents what an acknowledged Append survives. An Append
// that failed left nothing visible, and the head where it was. After a restart of a
// durable log every acknowledged entry is there, in order; an entry whose Append was
// never answered may be there or not.
//
// # Retention
//
// A log may be limited by number, bytes and age. It gives up entries from the
// oldest on, never from the middle, but for subscription events: these do not count for the limit by number, have one of their own, and the oldest
// of them go wherever they lie, so that readers who come and go push no update out. A replay passes over what has gone in this way, and their ids
// are unknown; a tail may still be given them. First in [Head] is the position of the
// oldest entry it still has. An implementation may trim in blocks; it documents how
// far that makes it exceed or fall short of a limit. Reads that need entries which
// are gone fail with [ErrPositionGone], and ids of such entries are
// [ErrUnknownID].
//
// # Event ids
//
// Ids are expected to be unique and need not be. Seek resolves an id to the earliest
// retained entry that bears it (REC-12) by an index, so that its time depends little on the
// number of entries, or not at all.
//
// # Selections
//
// Replay may leave out what a reader has no use for ([Selection]): an implementation with an index of topics then costs what is
// wanted, not what is stored. Topics in normal form (topic.Normal) are those of which the beginning of a pattern says
// something. A page is bounded by what it holds and by what was looked at in vain ([Query.PassedBytes]).
//
// # Tending
//
// A log may be able to describe itself ([Inspector]), to check itself ([Verifier]), to give back space ([Compacter]), to be copied
// ([Backupper]), and to take over the entries of another one ([Importer], [Exporter]), so that a history can move from one implementation to
// another. Positions and epoch are not taken over, ids and times are.
//
// # Epochs and copies
//
// Positions mean something within one epoch only ([Head]). A copy of a log ([Backupper]) has another epoch than the
// log, whatever becomes of the two: they would give the same positions to different entries. Clients are not concerned,
// since their cursors are event ids: one that the copy knows goes on after it, any other is unknown.
//
// # Back-pressure
//
// A log holds a bounded number of bytes for appends that wait and for tails that
// lag; a tail that lags further reads from the store. When a tail lags too far, or
// too much waits to be stored, Append waits, and fails with [ErrOverloaded] when that
// takes too long.
//
// # Concurrency
//
// Every method is safe for concurrent use. Close waits until running calls have
// ended, and makes them end. Strings and slices in records and entries are shared
// and must never be modified: an Append hands its record over for good.
//
// References: Mercure, "Reconnection, State Reconciliation, and Event Sourcing";
// requirements REC-01 to REC-27.
package history
