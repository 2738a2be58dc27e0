// Package sqlstore implements the authorization server's store on a SQL database: SQLite in one file.
//
// It owns the schema and its migrations, the transactions, the sealing of private keys, and the rules for the database file. It does
// not own the meaning of any record (see store) nor the secret that seals (see secretfile). What differs between SQL databases is
// behind dialect; everything else is portable SQL with ? placeholders.
//
// # Processes and concurrency
//
// Any number of processes may have the same file open: a server and the commands run beside it. Readers never wait. Each write is one
// BEGIN IMMEDIATE transaction, so that it takes the write lock before it reads what it decides on; writers of one process queue in
// order, writers of several processes take turns by SQLite's busy handler. A writer waits at most BusyTimeout and then gets
// store.ErrUnavailable. Everything a Store does happens in the caller's goroutine.
//
// # Durability
//
// The write-ahead log is synced before a commit is acknowledged (synchronous=FULL), so what was acknowledged survives kill -9 and a
// power failure. The file and its -wal and -shm companions have mode 0600 in a folder with mode 0700; looser modes are refused. The
// file must be on a local disk: the write-ahead log does not work over network file systems.
//
// # Schema
//
// Only Open with Migrate set changes the schema; each migration is one transaction. Without it, another schema is store.ErrSchema. A
// schema that a later program made is refused either way, and nothing is changed. Times are whole milliseconds since 1970 in UTC, 0
// for "not set".
//
// # Retention
//
// Sweep removes codes one hour after they expired or were used, traces of tokens and revocations one hour and assertions ten minutes
// after their end, grants one day after they ended, sessions and interactions when they end, audit records after AuditRetention.
package sqlstore
