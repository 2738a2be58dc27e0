package segments

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

const (
	// DefaultSegmentBytes is the size of a full segment without other limits.
	DefaultSegmentBytes = 64 << 20

	// maxSegmentBytes keeps offsets within 32 bits with room for one oversized commit.
	maxSegmentBytes = 1 << 30
	// maxSegmentRecords and maxSegmentPosts bound the index of the segment being written: its records, and the topics of all
	// of them. A single commit may exceed the latter.
	maxSegmentRecords = 1 << 17
	maxSegmentPosts   = 1 << 19
	// maxIndexBytes bounds the index file of a segment.
	maxIndexBytes = 1 << 32
	// commitBytes bounds the records of one commit; a single record may exceed it.
	commitBytes = 4 << 20
)

// Options configure a Log. Zero values mean the defaults that the fields name.
type Options struct {
	// Dir is the store's folder, which holds nothing else. Open makes it, and missing parents,
	// with mode 0700.
	Dir string
	// MaxEvents bounds the number of updates; 0 means no limit.
	MaxEvents int
	// MaxSubscriptionEvents bounds the number of subscription events; 0 means no limit.
	MaxSubscriptionEvents int
	// MaxBytes bounds the size of the files, indexes included; 0 means no limit. Less than 64 KiB makes no sense.
	MaxBytes int64
	// MaxAge is how long entries are kept at least; 0 means no limit by age.
	MaxAge time.Duration
	// SegmentBytes is the size of a full file, and with it the grain in which MaxBytes trims. 0
	// means DefaultSegmentBytes, or an eighth of MaxBytes when that is less.
	SegmentBytes int64
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
	// ReadOnly opens a store that is there for reading alone, and changes nothing in it: what a crash has left at its
	// end is passed over, the limits are not enforced, and Append fails. It takes the lock all the same.
	ReadOnly bool
	// Logger receives what an operator should know about recovery and about failures behind the
	// scenes; nil means nobody.
	Logger *slog.Logger
}

// Validate returns an error for values that make no sense.
func (o Options) Validate() error {
	switch {
	case o.Dir == "":
		return errors.New("segments: no folder given")
	case o.MaxEvents < 0 || o.MaxSubscriptionEvents < 0 || o.MaxBytes < 0 || o.MaxAge < 0 || o.SegmentBytes < 0,
		o.TailBufferBytes < 0 || o.TailLagBytes < 0 || o.AppendPatience < 0 || o.Wait < 0:
		return errors.New("segments: negative limit")
	case o.MaxBytes > 0 && o.MaxBytes < 64<<10:
		return errors.New("segments: limit by bytes below 64 KiB")
	case o.SegmentBytes > maxSegmentBytes:
		return fmt.Errorf("segments: segment size above %d bytes", maxSegmentBytes)
	case o.MaxBytes > 0 && o.SegmentBytes > o.MaxBytes/2:
		return errors.New("segments: segment size above half of the limit by bytes")
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.ReadOnly {
		o.MaxEvents, o.MaxSubscriptionEvents, o.MaxBytes, o.MaxAge = 0, 0, 0, 0 // nothing is trimmed
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = DefaultSegmentBytes
		if o.MaxBytes > 0 {
			o.SegmentBytes = min(o.SegmentBytes, o.MaxBytes/8)
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// segmentUpdates returns the number of updates at which a segment is full: an eighth of the limit, so that
// trimmed entries do not linger on disk for long.
func (o Options) segmentUpdates() int { return eighth(o.MaxEvents) }

// segmentRecords returns the number of records at which a segment is full: an eighth of the greater limit, so that neither makes many files.
func (o Options) segmentRecords() int {
	if o.MaxEvents == 0 || o.MaxSubscriptionEvents == 0 {
		return maxSegmentRecords
	}
	return eighth(max(o.MaxEvents, o.MaxSubscriptionEvents))
}

func eighth(limit int) int {
	if limit == 0 {
		return maxSegmentRecords
	}
	return min(max(limit/8, 1024), maxSegmentRecords)
}
