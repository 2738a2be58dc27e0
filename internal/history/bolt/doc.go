// Package bolt is a durable history log in one bbolt database, for operators who know that engine and its tools. Package segments
// stores many times as many updates a second.
//
// # Durability
//
// Append returns when the transaction with its entries has been written and synced, twice: its pages, and the page that makes
// them valid. It survives kill -9 and, as far as the disk keeps its word, the loss of power. One committer goroutine stores
// whatever has queued meanwhile as one transaction of at most 4 MiB, so that many publishers share its price; what one Append brings is never
// divided between two. Records are checked before they queue, so none makes the transaction of others fail.
//
// After a failed write or sync nothing is retried, since nobody can tell what is on the disk: the transaction's appends fail, nothing of
// it becomes visible, and every later Append returns history.ErrReadOnly until the store is opened again, when the
// entries of that transaction may be there. A full disk is the exception: when a write finds no space, bbolt puts everything back,
// appends fail with history.ErrNoSpace and work again once there is space. The logger is told when that begins and when it is over.
//
// # Retention
//
// The limit by number is exact as long as there are no subscription events. These have a limit of their own: the transaction that exceeds it
// removes the oldest of them, wherever they lie. The limit by number pushes out the oldest entries of all, so subscription events that are older
// than the last update to go are gone too, and where many of them lie before it there are some updates too many, until the next
// transactions have removed what the first one had no room for. Neither limit leaves fewer than it says otherwise.
//
// The limit by bytes is one of the pages of the file that are in use, and the newest entry stays whatever its size.
// The limit by age removes entries when they have passed it, give or take the janitor's interval of at most a minute. What a
// transaction pushes out is removed in it, at most twice as many entries as it adds and a few more, half of which for the limit of subscription
// events. What is left over, as after a limit was lowered, goes in transactions of at most 256 entries and about a megabyte, between which what has
// queued is stored. So no publish waits for more than one of them. Updates that a lowered limit leaves no room for are hidden at once
// where there are no subscription events, and elsewhere seen until they are removed.
//
// The file never shrinks by itself: bbolt keeps free pages and uses them again. So with a limit by bytes it grows to about that, plus what a
// commit replaces, and what a copy that is being taken holds back, and stays there; without one it is as large as the log ever was. [Log.Compact]
// writes it anew. Subscription events have a bucket to themselves, so that pages which they leave become free whole, and those of updates stay
// full. Both indexes are in order of hashes and topics, so their pages are about two thirds full, and full after that.
//
// # Files
//
// The folder (0700) holds three files (0600): history.db; EPOCH, the log's epoch in hexadecimal digits; and LOCK, on which the process
// that has the store open holds an exclusive lock (flock, or LockFileEx on Windows). bbolt holds its own lock on history.db besides, so its tools
// wait for a hub too. Files that end with .tmp are being made, and are removed when found. Names that start with a dot and lost+found are left alone; any
// other file, any link, and a database that is not of this store make Open fail with history.ErrForeignFile, and rights of
// others than owner and group with private.ErrLoose. Integers in keys are big-endian, so that keys sort as numbers do. The
// database has five buckets:
//
//	meta           "format": version, 1 (2 bytes) · "hash key": 32 random bytes · "state": the newest position ever, its
//	               time, the bytes of the entries, the number of updates, that of subscription events, the position
//	               up to which everything has gone, that of the oldest entry (8 bytes each)
//	entries        position (8 bytes) → record of an update
//	subscriptions  position (8 bytes) → record of a subscription event
//	ids            hash of the id (8 bytes), position → nothing
//	topics         tag, topic, end, position → nothing
//
// Between the oldest entry and the newest, positions are missing where subscription events have gone. In a store without subscription events
// the bucket for them may be missing, and the state may end with the number of updates: then no position is.
//
//	offset size  record, integers little-endian
//	     0    1  record version: 1
//	     1    1  flags: 1 private, 2 subscription event
//	     2    2  number of topics
//	     4    4  length of the id
//	     8    8  time of the append, milliseconds since 1970 UTC, never decreasing
//	    16    4  CRC-32C of the position as in the key, of bytes 0 to 15 and from 20 on
//	    20       id; for each topic its length (4 bytes, the highest bit set for one in normal form) and bytes; the event
//
// A topic's tag is n when it is in normal form (topic.Normal) and o otherwise. A zero in it is followed by FF; after it comes 00 01, or, of
// one longer than 448 bytes, after its first 448 bytes 00 02 and the hash of all of it. Hashes are the first 8 bytes of SHA-256 of the hash
// key and the text: chosen texts cannot collide, and each hit is checked against the record.
//
// # Opening
//
// Open reads the first and the last record of both kinds and no more, so it takes the same time whatever the length of the log and however the last process
// ended: bbolt needs no recovery, since the pages of an unfinished transaction are free. It does keep the list of free pages in the file, at
// the price of some kilobytes per commit, because without it every opening, and every full disk, would have to walk through the whole file; and
// it has that list as a map, because looking for free pages in a sorted list takes time that grows with it.
//
// A file that was cut off, ends that are not where the state says, and a record that is damaged are history.ErrCorrupt, the latter when it is
// read: bbolt's pages have no checksum. A panic of bbolt on a damaged page, and the fault of touching one that is not there, become that error
// too; in a transaction that writes they make the log read-only. So do keys that do not increase, as where pages name each other in a
// circle: no walk through a bucket goes on for ever. [Log.Verify] and [Log.Compact] look for circles before anything else; elsewhere bbolt itself
// ends the process when it goes down into one, because it is looking for a key that should be there. A record that is missing between others, as a
// subscription event might be, is found where an index leads to it, and by Verify, which reads everything and counts.
//
// While the log is open nobody may shorten the file or write over it: bbolt can fault where it begins a transaction, with its
// lock held, and then neither goes on nor closes. A newer format is history.ErrNewerFormat.
//
// A successor waits for the lock as long as Options.Wait. Its owner gives the lock up last, when the database is closed. A store can
// also be opened for reading alone, which takes the lock and changes nothing.
//
// # Reading
//
// A page of a replay is one transaction: it ends before anybody waits for a reader, so that no reader keeps pages from being used again. Exact topics
// and prefixes are looked up in the index of topics, at most 8192 positions for a page, unless that takes more steps than a quarter of the
// positions in question, or than 262144; then entries are read one after the other, as they are for everything. Where patterns have no prefix,
// each topic in the index is tried once. A selection's pattern is called within the transaction: it must not use the log.
//
// # Backup
//
// Backup sends the database as one transaction sees it, and an epoch made up for the copy. A database that is opened without EPOCH beside it counts as
// a copy, too. Appends go on meanwhile, on other pages. One case is left in which they wait for the rest of a copy: where the file outgrows, while
// it is taken, the address space that was set aside when it was opened, at least a gigabyte beyond its size then (on 64-bit systems
// other than Windows; nothing is set aside elsewhere).
//
// # Concurrency
//
// The committer is the only writer of the database, and, under the log's lock, of the state that readers look at. Compact is run by it, so that nothing
// is written meanwhile, and changes the database under a lock that readers hold for the length of their transactions. Copies and
// compactions exclude each other. Lock order: swap, log, feed; the locks of the queue, the running calls and the health are leaves.
package bolt
