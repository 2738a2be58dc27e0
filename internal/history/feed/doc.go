// Package feed is the part of a history log that its implementations have in
// common: it hands committed entries to tails and keeps appends from running
// away from them.
//
// An implementation admits a record ([Feed.Admit]) before it queues it, stores
// it, makes it visible, and then publishes it ([Feed.Publish]) or gives up its
// reservation ([Feed.Release]). Publish must be called in position order, by one
// goroutine at a time.
//
// # Bounds
//
// Beside one oversized record, admitted and not yet published records plus what the slowest tail has
// not got stay within LagBytes. Recent entries are kept within BufferBytes; a
// tail that lags further reads the store, unless KeepUnread asks to keep for it what
// it has not got, which LagBytes bounds. A tail counts from where the log ended when it
// began: reading old entries holds nobody up.
//
// # Concurrency
//
// All methods are safe for concurrent use. The feed's lock is a leaf: the feed
// calls neither the store nor a tail's function while it holds it, so it may
// be called with the implementation's locks held.
package feed
