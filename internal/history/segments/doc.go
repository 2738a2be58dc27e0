// Package segments is a durable history log in append-only files: the default of
// a hub that runs alone.
//
// # Durability
//
// Append returns when its entry has been written and synced (fdatasync on
// Linux, a full sync elsewhere): it survives kill -9 and, as far as the disk
// keeps its word, the loss of power. One committer goroutine writes whatever has
// queued meanwhile as one commit of at most 4 MiB with one sync, so that
// many publishers share its price.
//
// After a failed write or sync nothing is retried, since nobody can tell what is
// on the disk: the commit's appends fail, nothing of it becomes visible, the
// file is cut back to where it was as far as that works, and every later Append returns
// history.ErrReadOnly until the store is opened again. A full disk is the
// exception: when a write finds no space and the file can be cut back, appends fail with
// history.ErrNoSpace and work again once there is space. The logger is told when that begins and when it is over.
//
// What was written and not synced when a process was killed can be read by the next one, which therefore syncs the last file
// and the folder before it shows anything.
//
// # Retention
//
// The limit by number is exact. The limit by bytes is one of the files: the oldest
// segments are removed so that the files, a full newest one included, stay
// within it; between that limit and a quarter less is kept. The limit by age
// removes a segment when its newest entry has passed it; a segment is closed
// after an eighth of it at the latest, so entries go between one and nine
// eighths of the limit, give or take the janitor's interval of at most a minute. Files are removed
// oldest first, by a janitor goroutine.
//
// # Files
//
// The folder (0700) holds a file LOCK, on which the process that has the store open
// holds an exclusive lock (flock, or LockFileEx on Windows), and segments (0600), named
// after the position of their first record in 16 hexadecimal digits:
// 0000000000000001.seg. A segment under construction ends with .tmp and is removed
// when found. Names that start with a dot and lost+found are left alone; any other file, and any link, makes
// Open fail with history.ErrForeignFile, and rights of others than owner and group with private.ErrLoose. No file that
// has appeared meanwhile is overwritten. Integers are little-endian. A segment is a
// header and records without gaps:
//
//	offset size  segment header, 64 bytes
//	     0    8  magic: "cbrseg" CR LF
//	     8    2  format version: 1
//	    10    2  size of the header: 64
//	    12    4  0
//	    16    8  base: position of the first record
//	    24    8  time of creation, milliseconds since 1970 UTC
//	    32   16  store id, random, the same in all segments; the log's epoch
//	    48   12  salt, random
//	    60    4  CRC-32C of bytes 0 to 59
//
//	offset size  record
//	     0    4  length of what follows the checksum
//	     4    4  checksum: CRC-32C of bytes 0 to 3 and from 8 on, continued from the
//	             segment's header checksum, so that bytes of another segment, or
//	             made up by a publisher, do not pass for a record
//	     8    1  record version: 1
//	     9    1  flags: 1 private, 2 first record of a commit
//	    10    2  number of topics
//	    12    4  length of the id
//	    16    8  position: base + number of records before this one
//	    24    8  time of the append, milliseconds since 1970 UTC, never decreasing
//	    32       id; for each topic its length (4 bytes) and bytes; the event
//
// # Opening
//
// Open reads and checks every record once, several segments at a time, to build its
// index: about a second per million small records in the page cache. Only the last
// segment can have been cut short by a crash: its tail from the first invalid record on
// was never acknowledged and is cut off, unless a valid record that starts a
// later commit follows, which proves that the invalid one had been synced; the search for one takes time that grows with
// the tail alone, whatever a publisher has put into it. That, and an
// invalid record or a gap anywhere else, is history.ErrCorrupt, and nothing is changed.
// A newer format is history.ErrNewerFormat. Missing segments at the beginning cannot be told from trimmed ones.
//
// A successor waits for the lock as long as Options.Wait. Its owner gives the lock up last, when its files are closed,
// and nobody looks at the files before having it, so no two processes write. A store can also be opened for reading
// alone, which takes the lock and changes nothing.
//
// # Backup
//
// Backup copies the segments from the newest to the oldest, up to where each ended when it began, while the committer
// and the janitor go on. A segment that was trimmed before its turn is left out, and with it the older ones, so the
// copy has no gap and holds up no removal but that of the file it is reading. Every record is checked. The copy is
// another store: its segments have another store id, salts of their own, and checksums that continue from these.
//
// # Index
//
// Each segment has its own index in memory: sparse offsets (one per 64 KiB or 256 records)
// and the hashes of its ids, 12 bytes per entry once the segment is full. A segment has at
// most 131,072 entries and keeps one file open. Hashes are keyed with a secret of the process, so
// that chosen ids cannot collide, and a hit is checked against the record on disk, so that
// equal hashes do no harm. Replay reads from the cursor on and passes over what the selection does not
// want without copying it, a bounded amount per page; there is no index of topics.
//
// A full segment never changes, so a sealed index in a file beside it would take the place of the
// one in memory without a change elsewhere; it would need a secret of the store for its hashes.
//
// # Concurrency
//
// The committer is the only writer of files and, under the log's lock, of the
// state that readers look at. The janitor builds the indexes of full segments and removes
// trimmed files that nobody reads any more. Readers look up a segment under the lock
// and read the file without it. Lock order:
// reaping, log, feed; the queue's lock is a leaf.
package segments
