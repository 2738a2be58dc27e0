// Package memory is a history log that lives in the process and ends with it. It
// implements the contract of package history for hubs that need no durable history,
// and for tests.
//
// Durability: none. Retention is exact: limits by number and bytes hold after every
// append, the limit by age at every call. The newest entry is kept even when it alone
// exceeds the limit by bytes. A running Tail never loses entries to retention: what it has
// not got is kept for it.
//
// There is no index of topics: Replay looks at every entry after the cursor, a bounded number per page.
//
// One mutex protects the whole state; no call but Verify holds it for longer than one
// append, one look-up, or the copying of some hundred entries. Verify holds it while it looks at all entries.
package memory
