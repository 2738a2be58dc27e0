// Package local keeps which subscribers a hub has in a file, for a hub that is one process on one machine: its next process reports the
// ends of the subscriptions that a process has left behind.
//
// It owns the file, what is in it and what happens to one that cannot be read. It does not own the folder: whoever opens the file holds
// the lock of the history's store that it is in. The file is locked all the same, and an open one is never given to a second process.
//
// # File
//
// It is a bbolt database with one bucket. Its keys are numbers that count up, so that subscribers which are put together lie together, whatever
// their identifiers are. A value is a subscriber with a checksum, in the format of this package (record.go). Those found by Open belong to
// processes that are gone; which of the keys are of this process is known in memory alone.
//
// # Durability
//
// Every change is one transaction with its syncs, removals too: bbolt tells the newest state by its meta page, and without a sync that page can
// be on the disk before what it refers to, which a loss of power then leaves as damage. So a file opens again whatever has ended the process.
//
// A change that finds no space on the disk is undone, and the next one may succeed. After any other failed write nobody knows what is on the
// disk, so nothing is changed until the file is opened again. A file that is damaged or of another program is no reason for a hub not to
// start: Open gives it another name, says so in the log, and begins anew.
//
// # Concurrency
//
// All methods are safe for concurrent use and take turns. There is no goroutine.
package local
