// Package control is how commands reach a running hub: HTTP over a Unix socket in the hub's folder. It serves what only
// the process that has the history open can answer, its statistics, a copy taken while it is in use, and its upkeep. It owns the
// socket and the protocol; it does not own the history, and writes no files: who asks for a copy writes it, with the
// rights of that user.
//
// # Who may connect
//
// The socket has mode 0600. It is made in a folder that other users cannot write to; a missing folder is made with mode
// 0700. So those may connect who may read the history's files anyway, and there is no other authentication. Windows has
// no such modes: there the folder's access control list decides.
//
// # Protocol
//
// Every path starts with the version, and every answer names the protocol in the header Cinnabar-Control, so that
// neither side takes something else for the other.
//
//	GET /v1/stats    200, application/json: history.Stats
//	GET /v1/backup   200, application/x-tar: the files of the copy, in USTAR format; the trailer
//	                 Cinnabar-Status is "complete", or says why the copy is not
//	GET /v1/verify   200, application/json: history.Verification, after white space while it takes; the trailer
//	                 Cinnabar-Status is "complete", or says what is wrong, and then there is no JSON
//	POST /v1/compact 200, application/json: history.Compaction, as before
//
// Errors are application/json {"error": "…"}: 404 for another version, 409 while the history is being copied, verified
// or compacted for somebody else, 501 for what the history cannot do, 503 when the hub is stopping.
//
// # Bounds
//
// At most 16 connections are served, one copy, verification or compaction at a time. A client that takes nothing for 30 seconds is cut off, and
// stopping the server waits for no client longer than half a second, and for the history to end what it was asked for.
//
// # Concurrency
//
// Servers and clients are safe for concurrent use. A server's goroutines end before Serve returns.
package control
