package history

import (
	"context"
	"time"
)

// Verifier is a log that can check itself. It is safe for concurrent use.
type Verifier interface {
	// Verify reads every retained entry and every index and compares them, and changes nothing. The error wraps
	// ErrCorrupt for damage, and says where it is; others are those of the context and of the store. What is appended
	// or trimmed after the call began may be left out.
	Verify(ctx context.Context) (Verification, error)
}

// Verification says what was checked.
type Verification struct {
	// Events is the number of entries.
	Events int64 `json:"events"`
	// Bytes is what they take where they are stored.
	Bytes int64 `json:"bytes"`
	// Segments is the number of files with entries; 0 for a log without files.
	Segments int `json:"segments"`
	// Indexes is the number of indexes that were compared with the entries.
	Indexes int `json:"indexes"`
}

// Compacter is a log that can give back what it does not need. It is safe for concurrent use.
type Compacter interface {
	// Compact enforces the limits now, writes missing indexes and gives space back to the file system. Appends may wait
	// for it; an implementation says how long.
	Compact(ctx context.Context) (Compaction, error)
}

// Compaction says what a log took before it was compacted, and takes since, in bytes of its files; of its entries for a
// log without files.
type Compaction struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// Stamped is a record and the time at which it was appended.
type Stamped struct {
	Record

	At time.Time
}

// Importer is a log that can take over the entries of another one. It is safe for concurrent use.
type Importer interface {
	// Import appends the records that next returns, in order, with the times they bear, until next returns io.EOF. A
	// time before that of the record before, or after the present one, is moved there. The log must never have had an
	// entry: ErrNotEmpty. The records are durable when it returns nil; positions are the log's own, and its limits hold
	// as ever. What was imported before an error stays. next is called from one goroutine, and hands its records over
	// for good.
	Import(ctx context.Context, next func() (Stamped, error)) error
}

// Exporter is a log that gives away its entries. It is safe for concurrent use.
type Exporter interface {
	// Export calls fn from one goroutine with the entries that are retained when it begins, oldest first; an error of fn
	// ends it and is returned. The log may be in use: Export fails with ErrPositionGone when retention overtakes it.
	Export(ctx context.Context, fn func(Stamped) error) error
}
