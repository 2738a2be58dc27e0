// Command load puts a load on any hub that speaks Mercure 1.0 and says what it made of it: how many updates a second it takes and
// delivers, how long that takes, what an idle subscriber costs, and whether anything was lost, repeated, out of order or given to
// somebody it was not for.
//
//	go run ./test/load -hub https://hub.example.com/.well-known/mercure -key issuer.secret -issuer https://app.example.com \
//	    -scenario fan-out -n 1000 -c 16
//
// docs/performance.md is its manual. It owns its own small client, because one that people would want to program with costs more
// than the hubs that are to be measured. It is a program for trusted hubs: what it reads is bounded, and not otherwise defended.
//
// # How it reads
//
// A subscriber is one goroutine, blocked in a read on its connection with a buffer of 2 KiB. When a read has filled that, the
// goroutine borrows one of 64 KiB until it has read what there is. There is no timer and no channel per subscriber. A byte-level
// parser takes the head, the chunks and the lines apart; it copies nothing but the first bytes of a line that a read has cut.
//
// A subscriber that is to stall (-stalled) waits in the same way, for its pool to be closed, on a connection with the smallest buffers that there
// are.
//
// # How it accounts
//
// The data of every update names a lane and a number in it (see mark). A lane has one publisher, which publishes one update at a
// time, so every subscriber of a lane must see the numbers 0, 1, 2 … in this order, each once. What is missing in the end is
// lost, unless its publication was not acknowledged; what comes after a later one is late; what comes again is a repeat; and
// what comes to a subscriber that did not ask for it, or may not have it, is a stray. Subscribers of the same lanes must also agree on the
// order among the lanes. While a subscriber stalls it follows nothing; when it comes back it has everything still to see.
//
// # How it is bounded
//
// Publishers wait while more than a window of updates is not delivered yet. A phase ends after a time and a number of updates,
// whichever comes first, and waits for what is under way only while something arrives.
package main
