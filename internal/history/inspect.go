package history

import (
	"context"
	"io"
	"time"
)

// Stats describes a log at one moment, for people.
type Stats struct {
	// Driver is the name of the implementation, as the configuration has it.
	Driver string `json:"driver"`
	// Epoch is that of Head.
	Epoch string `json:"epoch"`
	// Events is the number of retained entries, without the subscription events, and SubscriptionEvents that of those.
	Events             int64 `json:"events"`
	SubscriptionEvents int64 `json:"subscription_events"`
	// Bytes is what the retained entries and their indexes take where they are stored.
	Bytes int64 `json:"bytes"`
	// Segments is the number of files with entries, without their indexes; 0 for a log without files.
	Segments int `json:"segments"`
	// First and Last are those of Head.
	First Position `json:"first"`
	Last  Position `json:"last"`
	// FirstAt and LastAt say when the oldest and the newest retained entry were appended; zero when
	// nothing is retained.
	FirstAt time.Time `json:"first_at,omitzero"`
	LastAt  time.Time `json:"last_at,omitzero"`
	// LastID is that of Head.
	LastID string `json:"last_id"`
}

// Inspector is a log that can describe itself. It is safe for concurrent use.
type Inspector interface {
	// Stats returns a consistent description. It costs no more than one read of the store.
	Stats(ctx context.Context) (Stats, error)
}

// Backupper is a log that can be copied while it is in use. It is safe for concurrent use.
type Backupper interface {
	// Backup writes a consistent copy of the log to files, which it asks for with create, one after the other: the next
	// only after the last was closed. All entries that were acknowledged before the call are in it, but for those that
	// retention removes meanwhile. The copy has an epoch of its own. It is complete when Backup returns nil, and
	// worthless otherwise. Neither appends nor reads wait for it; an error of create, of a write, or of the context
	// ends it.
	Backup(ctx context.Context, create CreateFile) error
}

// CreateFile makes a file of a backup: name is a plain file name without a folder, size is what will be
// written to it before it is closed. A file that was not written whole is closed too.
type CreateFile func(name string, size int64) (io.WriteCloser, error)
