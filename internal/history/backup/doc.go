// Package backup writes copies of a history to a folder: what history.Backupper gives, from a log of this process or
// from a running hub through package control. It owns the folder's life and the checks; it does not own what the files
// hold.
//
// # The folder
//
// A copy is written to a folder of its own beside the one that was asked for, with ".partial-" and a number after its
// name, and in it a file INCOMPLETE, which makes a history refuse the folder. When all files are written and synced
// that file is removed, the copy is opened for a check, and only then the folder gets its name. So a folder with the
// name that was asked for is complete, and what a killed command leaves is recognised by name and by content. A copy
// that fails is removed.
//
// # Bounds
//
// Files are written as they come and synced every few megabytes, so that neither memory nor the system's queue of
// unwritten pages, for which the hub would wait too, grows with the history. Names are checked: a copy cannot leave its
// folder. A file takes what was announced, no byte more.
//
// # Concurrency
//
// Write may be called concurrently for different folders.
package backup
