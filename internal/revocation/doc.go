// Package revocation follows the log in which an authorization server records the tokens it takes back before they expire.
//
// It owns the list of what is revoked at this moment ([List]), the following of a log it comes from, and the reading of such a
// log over HTTP ([Remote]). It does not own the log, which is written in the revoking transaction (package as/store), the judging
// of tokens (package token) nor streams (package hub): those ask the list, or are told by it.
//
// # Following
//
// A log is entries in the order of their sequence numbers. The list asks for what comes after the last entry it has, and for
// that entry once more: when it is missing or another one, the log is not the one that was read so far, be it restored from a
// backup, replaced, or tidied up, and is read again from its beginning. What is in the list stays in it until it can
// mean nothing any more, whatever the log says or fails to say: no failure makes a revoked token good.
//
// # Invariants
//
//   - An entry is in the list before the streams it ends are closed. Whoever registers a stream first and asks the list
//     afterwards is therefore refused or closed, and never missed.
//   - An entry revokes the tokens of its own issuer that were issued no later than it says; a token that does not say when it was
//     issued counts as one of those. So an account that is enabled again can sign in.
//   - Asking costs a look-up per kind of entry, whatever the length of the list, and never waits for the source.
//   - The list forgets an entry once its Until has passed, reads the log again when the clock has been set back before that, and
//     holds no more than Options.MaxEntries.
//   - Entries that arrive together close streams together: Options.Close is called once for them all.
//
// # Concurrency
//
// A [List] is safe for concurrent use. It starts no goroutine; [List.Run] works in its caller's. A [Remote] is safe for concurrent use.
//
// References: RFC 7009; RFC 7523; RFC 9068 section 2.2.
package revocation
