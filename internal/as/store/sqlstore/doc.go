// Package sqlstore implements the authorization server's store on a SQL database: SQLite in one file.
//
// It owns the schema and its migrations, the transactions, the sealing of private keys and of the hashes of client
// secrets, backups, and the rules for the database file. It does
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
// Backup copies one snapshot, beside those who read and write, into a file that gets its name when it is complete and synced. Restoring
// is to put the copy where the database was, with no process using it, and without the -wal and -shm files of the old one. Entries of
// the revocation log are numbered by time, so that those who follow it need not know of the restore.
//
// # Clients with many grants
//
// To delete or disable a client takes one short transaction, after which nothing is issued to it. Its grants are marked revoked in
// batches after that; if this is interrupted, Sweep goes on with it.
//
// # Schema
//
// Only Open with Migrate set changes the schema; each migration is one transaction. Without it, another schema is store.ErrSchema. A
// schema that a later program made is refused either way, and the database is not changed by a byte: it is looked at by a
// connection that can only read before it is opened for use. Times are whole milliseconds since 1970 in UTC, 0
// for "not set".
//
// # Retention
//
// Sweep removes codes one hour after they expired or were used, traces of tokens and revocations one hour and assertions ten minutes
// after their end, refresh tokens, used ones too, one day after the end of their idle time, grants one day after they ended or when
// nothing refers to them any more, sessions, interactions and pushed requests when they end, but the latter not while an interaction
// came from them, audit records after AuditRetention.
package sqlstore
