// Package sse writes and reads event streams (text/event-stream).
//
// It owns the byte format of the WHATWG HTML standard, section "Server-sent
// events": the fields of one event, the splitting of data into lines, comments,
// reconnection times, and the receiver's parser. It knows nothing of Mercure,
// of HTTP, or of who may read what; packages mercure and hub do.
//
// # Writing
//
// [AppendEvent] writes the fields in the order id, event, retry, data, each as
// "name: value" with exactly one space, because a receiver strips exactly one:
// leading spaces of a value survive (SSE-10, SSE-13). Data becomes one data
// field per line, whatever the line ends were, so that no payload can inject a
// field (SSE-12), and there is always at least one data field, so that a
// receiver dispatches events without content too (SSE-11).
//
// # Reading
//
// [Decoder] is the standard's parser with a limit on the size of one event. It
// serves the command line client and is the oracle of the encoder's tests.
//
// # Concurrency
//
// The Append functions are pure. A Decoder belongs to one goroutine.
package sse
