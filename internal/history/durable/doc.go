// Package durable is what history logs on a disk have in common whatever they write: the folder of a store, locked for one process, and
// whether the log can store what comes.
//
// [Open] makes the folder and missing parents (0700), refuses rights that other users must not have, takes the lock, and waits for
// another process that has it as long as it is told. [Health] says why nothing can be stored any more, and tells the operator once
// when storing begins to fail and once when it succeeds again.
//
// It does not own what is in the folder, but for the lock's file: names, formats, commits, and when a name has to be made durable, are the
// business of the log (packages segments and bolt). Nor does it own calls (package calls) and tails (package feed).
//
// # The lock
//
// The file LOCK bears an exclusive lock, flock, or LockFileEx on Windows, which ends with the process. It is never removed: that would race
// with a process that has just opened it. A lock counts only while the paths name what was opened and locked; otherwise somebody else could
// lock what is there now. A store that is read alone and has no such file, such as a backup, is not locked.
//
// # Concurrency
//
// A Folder's methods, but for Close, are safe for concurrent use. Of Health, Report belongs to the one goroutine that commits; the others are safe
// for concurrent use. Its lock is a leaf.
package durable
