package bolt

import (
	"errors"
	"log/slog"
	"time"
)

// commitBytes bounds the records of one commit; a single record may exceed it.
const commitBytes = 4 << 20

// Options configure a Log. Zero values mean the defaults that the fields name.
type Options struct {
	// Dir is the store's folder, which holds nothing else. Open makes it, and missing parents,
	// with mode 0700.
	Dir string
	// MaxEvents bounds the number of entries that are no subscription events; 0 means no limit.
	MaxEvents int
	// MaxSubscriptionEvents bounds the number of subscription events; 0 means no limit.
	MaxSubscriptionEvents int
	// MaxBytes bounds the pages of the file that are in use; 0 means no limit. Less than 64 KiB makes no sense.
	MaxBytes int64
	// MaxAge is how long entries are kept at least; 0 means no limit by age.
	MaxAge time.Duration
	// TailBufferBytes bounds the recent entries kept in memory for Tail; 0 means 8 MiB.
	TailBufferBytes int64
	// TailLagBytes bounds what waits to be stored and what a running Tail lags behind before
	// Append waits; 0 means 64 MiB.
	TailLagBytes int64
	// AppendPatience is how long Append waits then; 0 means 5 s.
	AppendPatience time.Duration
	// Wait is how long Open waits for another process that has the store open, such as a predecessor that is
	// about to end; 0 means that Open returns history.ErrLocked at once.
	Wait time.Duration
	// ReadOnly opens a store that is there for reading alone, and changes nothing in it: the limits are not enforced, and
	// Append fails. It takes the lock all the same.
	ReadOnly bool
	// Logger receives what an operator should know about failures behind the scenes; nil means nobody.
	Logger *slog.Logger
}

// Validate returns an error for values that make no sense.
func (o Options) Validate() error {
	switch {
	case o.Dir == "":
		return errors.New("bolt: no folder given")
	case o.MaxEvents < 0 || o.MaxSubscriptionEvents < 0 || o.MaxBytes < 0 || o.MaxAge < 0,
		o.TailBufferBytes < 0 || o.TailLagBytes < 0 || o.AppendPatience < 0 || o.Wait < 0:
		return errors.New("bolt: negative limit")
	case o.MaxBytes > 0 && o.MaxBytes < 64<<10:
		return errors.New("bolt: limit by bytes below 64 KiB")
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.ReadOnly {
		o.MaxEvents, o.MaxSubscriptionEvents, o.MaxBytes, o.MaxAge = 0, 0, 0, 0 // nothing is trimmed
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
