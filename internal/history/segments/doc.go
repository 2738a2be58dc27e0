// Package segments is a durable history log in append-only files: the default of
// a hub that runs alone.
//
// # Durability
//
// Append returns when its entries have been written and synced (fdatasync on
// Linux, a full sync elsewhere): they survive kill -9 and, as far as the disk
// keeps its word, the loss of power. One committer goroutine writes whatever has
// queued meanwhile as one commit of at most 4 MiB with one sync, so that
// many publishers share its price. What one Append brings is never divided between two commits, and what a crash has left of an
// Append that was never answered is all of it or nothing.
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
// The limit by number is exact as long as the oldest segment holds no subscription events. These do not count for it. Where the oldest segment
// holds some, its records are given up as if all of them were updates, so that up to a segment of updates too many is kept, and none too few.
//
// Subscription events have a limit of their own. When the segments after a full one hold as many as are kept, that one is made
// hollow: it is written again, beside itself, with a hollow record of 32 bytes in the place of each subscription event, and nothing else
// changed. So positions and numbers stay. There are up to two segments of subscription events too many, and those that are fewer than one in 1,024 of the records of
// their segment stay with them: writing all of it again would spare too little. A segment with nothing but subscription events is removed instead when it is the oldest.
// What is about to be given back in this way does not count for the limit by bytes, so that updates make room for nothing that goes
// anyway; the files can exceed the limit by so much until it has happened. A hollow record and its place in the index take 36 bytes, as long as
// the segment is there.
//
// The limit by bytes is one of the files, indexes included: the oldest
// segments are removed so that the files, a full newest one included, stay
// within it; between that limit and a quarter less is kept. The limit by age
// removes a segment when its newest entry has passed it; a segment is closed
// after an eighth of it at the latest, so entries go between one and nine
// eighths of the limit, give or take the janitor's interval of at most a minute. Files are removed
// oldest first, each after its index, by a janitor goroutine, which also makes segments hollow. A segment that is being read goes when that is over, be it
// trimmed or replaced by a hollow one, so for so long the files can exceed the limit. Compact does at once what the janitor would do.
//
// # Files
//
// The folder (0700) holds a file LOCK, on which the process that has the store open
// holds an exclusive lock (flock, or LockFileEx on Windows), and segments (0600), named
// after the position of their first record in 16 hexadecimal digits:
// 0000000000000001.seg, or 0000000000000001.hollow.seg for a hollow one. Beside each segment but the last lies its index,
// 0000000000000001.idx or 0000000000000001.hollow.idx (0600). A file
// under construction ends with .tmp and is removed when found, as is a segment beside the hollow one that takes its place, and an index without a full segment. Names
// that start with a dot and lost+found are left alone; any other file, and any link, makes
// Open fail with history.ErrForeignFile, and rights of others than owner and group with private.ErrLoose. No file that
// has appeared meanwhile is overwritten. Integers are little-endian. A segment is a
// header and records without gaps:
//
//	offset size  segment header, 64 bytes
//	     0    8  magic: "cbrseg" CR LF
//	     8    2  format version: 1
//	    10    2  size of the header: 64
//	    12    4  number of subscription events in the segment before, gone or not; 0 in the first one ever
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
//	     9    1  flags: 1 private, 2 first record of a commit, 4 subscription event, 8 the next record was appended together with this one
//	    10    2  number of topics
//	    12    4  length of the id
//	    16    8  position: base + number of records before this one
//	    24    8  time of the append, milliseconds since 1970 UTC, never decreasing
//	    32       id; for each topic its length (4 bytes) and bytes; the event
//
// A hollow record has flag 4 and neither id nor topics nor event. In a hollow segment, which has the header of the one that it replaces, all records with
// that flag are hollow, and in no other one. Nobody is ever given one: whoever reads passes over it.
//
// An index is a header and three sections without gaps. The checksums continue from that of the segment's header, so that the
// index of another segment does not pass for it. It is made of the segment alone: the same segment has the same index.
//
//	offset size  index header, 128 bytes
//	     0    8  magic: "cbridx" CR LF
//	     8    2  format version: 2
//	    10    2  size of the header: 128
//	    12    4  0
//	    16    8  base
//	    24   28  store id and salt of the segment
//	    52    4  number of records
//	    56    8  size of the segment
//	    64   16  times of the first and the last record
//	    80    8  number of topics in normal form (topic.Normal), and of others
//	    88    8  sizes of the topics' text, and of the postings
//	    96   12  CRC-32C of each section
//	   108    4  number of subscription events, gone or not
//	   112    4  bytes that they take beyond those of hollow records
//	   116    8  0
//	   124    4  CRC-32C of bytes 0 to 123
//
//	ids          the hashes of all ids (8 bytes each), in order; the number of the record (4) of each; hollow records have none
//	offsets      the offset (4) of each record
//	topics       for each topic where its text and its postings begin (4 and 4), and where the last ones end; the
//	             text of all topics, those in normal form first, each kind in order; their postings: for each topic
//	             the number of its first record, and how many further on the next one is, as varints
//
// Records are numbered from 0. The hash of an id is the first 8 bytes of the SHA-256 of a key and the id; the key is the SHA-256
// of "cinnabar segments: hashes of ids", store id and salt. The salt is random, and no more than the updates themselves known to
// anybody who may not read the files, so chosen ids cannot collide.
//
// # Opening
//
// How long Open takes does not depend on the length of the history. It reads the last segment, of at most 131,072 records, and of
// each other one no more than its header and that of its index; when the last one is still empty, also the last record of the one before, and
// all of that if it has no index. So damage in a full segment is found when it is read, by Replay,
// Seek, Tail, Export, Backup or Verify: they fail with history.ErrCorrupt and say where.
//
// Only the last segment can have been cut short by a crash: its tail from the first invalid record on, or from the first one of several that were appended
// together and are not all there, was never acknowledged and is cut off, unless a valid record that starts a
// later commit follows, which proves that the invalid one had been synced; the search for one takes time that grows with
// the tail alone, whatever a publisher has put into it. That, a gap between segments, a hollow segment at the end, which others had followed, and a segment
// whose size is not the one that its index tells of are history.ErrCorrupt, and nothing is changed.
// A newer format is history.ErrNewerFormat. Missing segments at the beginning cannot be told from trimmed ones.
//
// An index that is missing, damaged, of another version or of another segment is never an error. It is made from its segment, in
// the background or as soon as something needs it, and replaced. Until then the number of a segment's records is taken from the
// name of the next one, and that of subscription events from its header, so that the limits hold at once. A damaged section of an index is noticed when it is first used; Verify compares all of it with the records.
//
// A successor waits for the lock as long as Options.Wait. Its owner gives the lock up last, when its files are closed,
// and nobody looks at the files before having it, so no two processes write. A store can also be opened for reading
// alone, which takes the lock and changes nothing: the indexes that it lacks are made in memory, when something needs them.
//
// # Backup
//
// Backup copies the segments from the newest to the oldest, up to where each ended when it began, while the committer
// and the janitor go on. A segment that was trimmed before its turn is left out, and with it the older ones, so the
// copy has no gap and holds up no removal but that of the file it is reading. Every record is checked. The copy is
// another store: its segments have another store id, salts of their own, and checksums that continue from these. It has no
// indexes: whoever opens it makes them. A segment that became hollow before its turn is copied as that.
//
// # Index
//
// The index of the segment that is being written grows in memory, by some 40 bytes per record and another 40 and its text per
// distinct topic. A segment is full at its size, when its updates are an eighth of their limit or its records an eighth of the greater of both limits by number, at
// 131,072 records, or when its records have 524,288 topics, so that memory is bounded whatever is published. The janitor then writes the index to its file, which is mapped into
// memory and takes part of the page cache, not of the heap. The file is synced before it gets its name. The name is not made durable: what a
// loss of power takes away is made again, as is, when the store is opened next, one whose file somebody has removed. While no
// file can be written, the index stays in memory, and the logger is told once for each segment.
//
// Seek looks in every segment from the oldest on. Hits are checked against the record, so equal hashes do no harm. A segment
// that cannot be read does not keep it from finding what is in another one.
//
// Replay costs what is cheaper, for each segment: its entries after the cursor, one after the other, or the postings of the
// selection. Topics of Exact are looked up. A pattern is asked once about each distinct topic that it can select: of those in normal form
// about the ones with a prefix of the selection, which lie together, and about all others. When these are many, 128 records
// are looked at first, and the others too if one in sixteen of them is selected, since the page is full soon then. Wanted
// records that lie close together are read at once.
//
// A page ends when it is full, or when too much was looked at in vain: records that are not selected count by their size, topics that a
// pattern was asked about by their length and 128 bytes.
//
// # Verification and transfer
//
// Verify reads all records and makes every index again. Appends wait for it for microseconds at a time. Compact
// enforces the limits, makes segments hollow, mends indexes and writes missing ones; appends do not wait. Import gives records to the committer, 4,096 or 4 MiB
// to a commit, with the times that they bear; Export reads as Replay does.
//
// # Concurrency
//
// The committer is the only writer of segments and, under the log's lock, of the
// state that readers look at. The janitor, or Compact, writes hollow segments and the indexes of full ones, and removes
// replaced and trimmed files that nobody reads any more. Nobody waits while a segment is made hollow: who reads the old one goes on with it. Readers look up a segment under the log's lock, hold it, and
// read the file and its index without the lock; of an index that grows they copy what never changes again. Patterns are asked with no lock held.
// An index is made under its segment's own lock, by whoever needs it first. A mapped file that cannot be
// read is a damaged index. Lock order: sealing, reaping, a segment's building, log, feed; the locks of the queue, the running calls and the health are leaves.
package segments
