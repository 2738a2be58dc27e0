// Package store is the port to the authorization server's database: the records it keeps, the operations on them, and the errors
// they end with.
//
// It owns the vocabulary (Client, Account, Grant, Code, RefreshToken, Key, Revocation, …), the promises about atomicity below, and the sentinel
// errors. It does not own any database: sqlstore implements the port, storetest checks an implementation against every promise made
// here. It does not own policy either: whether a client is disabled, a code is bound to the right redirect URI or an account may
// sign in is decided by package as; what a request in Interaction.Request, PushedRequest.Request, Code.Request or RefreshToken.Request means is known to package as alone.
//
// # Concurrency
//
// All methods are safe for concurrent use by goroutines and by processes that share one database: a server and the commands an
// operator runs beside it. Every method is one transaction. What a method acknowledged by returning nil is durable: it survives
// kill -9 of the process and a power failure. Records go in and come out as copies; two readers never share memory, so a caller may
// change what it got.
//
// # Invariants
//
//   - A one-time record is used once: of any number of concurrent RedeemCode, UseAssertion, UsePushedRequest or FinishInteraction
//     calls for one record exactly one succeeds. A refresh token has one successor at most.
//   - Nothing is issued under what is revoked: a grant, a session that ended, an account or client that is disabled, a client that was
//     deleted. It is checked in the transaction that records the token or creates the grant, so that what was under way cannot slip in
//     behind the revocation that should have caught it.
//   - A change that revokes and its entries in the revocation log are one transaction. An entry covers every token there is of what it
//     names, and stays until its Until. Sequence numbers become visible in order and are never reused, also not by an older copy of
//     the database that was put in its place, so a reader that asks for everything after the last number it saw misses nothing.
//   - A rotated refresh token is known as such while its reuse tells something: at least until its idle time would have ended.
//   - Each change of clients, accounts or keys raises Version in its own transaction.
//   - Account identifiers are never reused: accounts are disabled, never deleted.
//   - No operation takes longer because there are more grants or tokens of others, but for the lists of all.
//
// # Secrets
//
// Codes, refresh tokens, request URIs and the values of cookies are stored by their hash, which the caller makes: they have the entropy
// of a key. The private parts of signing keys and the hashes of client secrets, which people may have chosen, are sealed by the
// implementation.
//
// # Times
//
// Implementations keep times as whole milliseconds since 1970 in UTC, rounded down, and the zero time as zero. What comes back is in
// UTC and may therefore differ from what went in by less than a millisecond; the first instant of 1970 comes back as the zero time.
//
// References: RFC 6749, RFC 7009, RFC 7523 section 3, RFC 9126, RFC 9396, RFC 9700 sections 2.1 and 4.14.
package store
