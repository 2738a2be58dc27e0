// Package hub is the engine: it takes updates, stores them in the ordered log, and delivers them to subscribers, live and
// from the history.
//
// It owns publishing, routing, authorization of every single delivery, replay and its hand-off to live delivery, and the
// life of streams: keep-alives, expiry, limits, back-pressure, draining. It knows neither HTTP (package hubhttp), nor
// sockets (package sink), nor tokens: it is given a [Principal]. It stores nothing itself (package history).
//
// # The pipeline
//
//	Publish ─► history.Log.Append ──► acknowledged
//	                  │ Tail: every committed entry, in order
//	                  ▼
//	             tailer ─► dispatcher ─────────────── owns the index of matchers
//	                          │ one look-up per entry: who listens, who may read
//	                          │ wakes only the shards that have readers for it
//	             ┌────────────┼────────────┐
//	             ▼            ▼            ▼
//	          shard 0      shard 1      shard n ───── own their subscribers
//	             │ one joined write per subscriber and wake
//	             ▼
//	           sinks
//
// A shard is one goroutine. It lets others run once before it collects what waits, so that entries
// published together are written together. What a sink does not take waits as shared frames and an offset. A
// subscriber has no goroutine, timer or buffer of its own while it is idle: a timing wheel per shard does
// everything that is timed.
//
// # Replay and hand-off
//
// A stream with a cursor starts replaying. A few workers read pages of the history, one at a time per stream, the next
// one when the reader has taken the one before. A page is bounded by what it holds and by what it passes over, so a
// reader that selects little of a long history waits in line again instead of holding up the others. When a page
// reaches the head of the log, the shard asks the dispatcher to register the stream; the dispatcher answers with the
// position P up to which it has dispatched, in the same queue through which entries reach the shard, so that exactly
// the entries after P follow. They are held back while what lies between the last page and P is read. A stream without
// a cursor is registered before Subscribe returns, and has no gap.
//
// A reader that falls so far behind that too much waits for it goes back to replaying: what waits is
// dropped, except for an entry that is partly written, and read again later. So a slow reader costs bounded memory, loses
// nothing while the history has what it lacks, and is cut only when it takes nothing at all for the write time-out.
//
// # Active subscriptions
//
// The roster knows which subscriptions are active here. A stream is taken in before Subscribe returns, and struck off by its shard when it
// ends; neither waits for anything. The announcer publishes an event for each of a stream's subscriptions, after that: so who reads an event,
// and asks for the list then, finds its effect, and who reads the list first and goes on from the cursor that came with it misses nothing.
// Events are gathered for as long as 50 ms and share their commits. They are entries of the log like any other, private, with a retention of their
// own there. While the history takes nothing, or less than there is to tell, they wait, but for those of readers who come and go meanwhile: so
// what waits is bounded by the streams that are open or were announced, and a number beside that.
//
// The directory (package presence) keeps who was announced, for the process that comes after this one: it announces the ends. That is how a
// killed hub's readers are seen to leave, and those that are still being drained when a successor has taken the history over.
//
// # Revocation
//
// Whoever learns that tokens were revoked makes that known to Options.Revoked first and calls [Hub.CloseBy] afterwards. A stream is made
// known to its shard first and Options.Revoked is asked afterwards. So a stream whose token is revoked while it is being opened is
// either refused or closed, whichever comes first; waiting and replaying ones are among those that CloseBy closes.
//
// # Stopping
//
// [Hub.Quiesce] shuts the gate for updates and new streams and waits for the updates under way. From then on the history may be closed
// and opened by a successor while the streams live on; a page that a stream cannot read any more is not asked for again. [Hub.Drain]
// ends the streams within its window, each at a moment of its own, and their readers go on by their cursors wherever the history is by then.
//
// # Invariants
//
//   - I1: a subscriber sees entries in log order, each once (TestModel, TestHandOff, TestDelivery, TestReplay_Long; TestStorm in package
//     sink, over sockets and with the durable history).
//   - I2: live delivery starts after the later of the shard's position and the cursor, which can be ahead of the
//     shard (TestHandOff_JustAcknowledged, TestHandOff, TestModel).
//   - I3: an entry is framed once for all its live readers; delivering it allocates nothing per
//     subscriber (TestDeliveryAllocations).
//   - I4: what a shard keeps belongs to its goroutine; others send messages (TestMethods_Pairs: every two exported methods, and TestRace,
//     under the race detector). It is given back when the stream ends (TestChurn; TestVisits in package hubhttp).
//   - I5: nothing blocks the dispatcher or another subscriber: sinks and mailboxes never block, and what waits for one reader
//     or for all is bounded (TestSlowReader, TestReplay_Long; STRESS-03, TestSlowReaders and TestDeadPeer in package sink).
//   - I6: replay is authorised with the current principal (TestModel, TestHandOff, TestResume).
//   - I7: an acknowledged update survives as the history promises: Publish returns no earlier (package
//     historytest; TestKill in package crash, with every durable history). One that was begun before Quiesce is acknowledged or refused
//     before it returns (TestQuiesce).
//   - I8: no stream of a token that Options.Revoked and CloseBy were told about stays open (TestModel, TestRevoked).
//   - I9: whoever was announced ends in the history, once, or at worst twice if the hub is killed, as long as the directory works; a list contains
//     the effect of every event before its cursor (TestSubscriptionEvents_random, TestSubscriptionEvents_listFirst, TestSubscriptionEvents_successor).
//
// TestModel compares the hub with a naive one, a slice and loops, under everything that happens to a hub one after the other; what happens at
// the same time is for TestHandOff. Both take -rapid.checks for how long.
//
// # Goroutines
//
// [Hub.Run] starts all goroutines and waits for them: the tailer, the dispatcher, the shards, the replay workers, the announcer. Senders to
// shards and dispatcher never wait, with one exception: the dispatcher waits for a shard that is far behind, and
// thereby lets the log hold the entries. Shards wait for nobody, so no cycle can form.
//
// # References
//
// Mercure, "Subscription", "Publication", "Authorization", "Reconnection, State Reconciliation, and Event Sourcing"; requirements SUB-32 to
// SUB-40, SSE-02 to SSE-20, PRIV-01 to PRIV-13, REC-07 to REC-28, LIM-04; "Active Subscriptions", ACT-02 to ACT-23, ACT-39 to ACT-42.
package hub
