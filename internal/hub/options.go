package hub

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/presence"
	"github.com/cinnabar-hub/cinnabar/internal/topic"
)

// maxShards is how many shards fit into the sets of shards that the dispatcher keeps.
const maxShards = 64

// Options configures a Hub. Zero values mean what each field says; [DefaultOptions] is the best start.
type Options struct {
	// Log is the history; required. The hub uses it and does not close it.
	Log history.Log
	// Compiler parses topics against the hub URL; required, and the one that made the matchers and
	// grants given to the hub.
	Compiler *topic.Compiler
	// Shards is the number of goroutines that own subscribers, at most 64; 0 means one per processor.
	Shards int
	// Heartbeat is the idle time after which a stream gets a comment line (SSE-02); 0 means never.
	Heartbeat time.Duration
	// MaxLifetime bounds streams whatever their token says (PRIV-10). Each lasts between 80 and 100 % of it, so
	// that they do not all end at once; 0 means no bound.
	MaxLifetime time.Duration
	// WriteTimeout bounds how long a reader may take nothing while something waits for it; 0 means
	// no bound, which lets stalled readers stay.
	WriteTimeout time.Duration
	// DrainWindow is the time over which [Hub.Drain] spreads the ends of streams; 0 ends all at once.
	DrainWindow time.Duration
	// Backlog bounds the bytes that wait in memory for one reader, beyond the entry being written. A reader
	// that exceeds it goes on from the history. 0 means 1 MiB.
	Backlog int
	// TotalBacklog bounds the bytes that wait for all readers, each reader's counted by itself. The largest
	// backlogs give way first. 0 means 256 MiB.
	TotalBacklog int64
	// Replays bounds how many pages of the history are read at a time, for streams that open and, apart from those, for
	// streams that go on; 0 means 4 per processor.
	Replays int
	// MaxSubscribers bounds the open streams; 0 means no bound.
	MaxSubscribers int
	// Retry is the reconnection time that streams begin with, give or take a fifth so that
	// readers do not come back all at once (SSE-18); 0 leaves it out.
	Retry time.Duration
	// LiveAfterUnknown makes streams with an unknown cursor start live instead of with everything
	// that is kept. The reader is told "earliest" either way (REC-17).
	LiveAfterUnknown bool
	// Revoked tells whether a principal's token was revoked since it was verified; nil means that none ever is. Publish asks it first,
	// and Subscribe once [Hub.CloseBy] finds the stream, so that a stream is either refused or closed whenever the revocation was
	// known to Revoked before CloseBy was called. It is asked from several goroutines, answers from memory and must not block.
	Revoked func(*Principal) bool
	// Subscriptions turns active subscriptions on: the hub publishes an event for each subscription that begins or ends
	// (ACT-02, ACT-03), and lists those that are active.
	Subscriptions bool
	// Directory keeps for whoever comes after this process which subscribers it has, so that the end of their subscriptions is announced
	// even if the process dies; nil keeps nothing. The hub uses it with Subscriptions alone, never after Quiesce has returned, and does not close it.
	Directory presence.Directory
	// Metrics counts; nil counts nothing.
	Metrics Metrics
	// Logger gets the engine's log; nil discards it.
	Logger *slog.Logger
}

// DefaultOptions returns the defaults that the product documents. Log and Compiler are still to be set.
func DefaultOptions() Options {
	return Options{
		Heartbeat:    15 * time.Second,
		MaxLifetime:  time.Hour,
		WriteTimeout: 30 * time.Second,
		DrainWindow:  5 * time.Second,
		Backlog:      1 << 20,
		TotalBacklog: 256 << 20,
		Retry:        3 * time.Second,
	}
}

// Validate reports what makes o unusable.
func (o Options) Validate() error {
	switch {
	case o.Log == nil:
		return errors.New("hub: Options.Log is required")
	case o.Compiler == nil:
		return errors.New("hub: Options.Compiler is required")
	case o.Shards < 0 || o.Shards > maxShards:
		return fmt.Errorf("hub: Options.Shards must be between 0 and %d", maxShards)
	}
	for _, field := range []struct {
		name  string
		value int64
	}{
		{"Heartbeat", int64(o.Heartbeat)},
		{"MaxLifetime", int64(o.MaxLifetime)},
		{"WriteTimeout", int64(o.WriteTimeout)},
		{"DrainWindow", int64(o.DrainWindow)},
		{"Backlog", int64(o.Backlog)},
		{"TotalBacklog", o.TotalBacklog},
		{"Replays", int64(o.Replays)},
		{"MaxSubscribers", int64(o.MaxSubscribers)},
		{"Retry", int64(o.Retry)},
	} {
		if field.value < 0 {
			return fmt.Errorf("hub: Options.%s must not be negative", field.name)
		}
	}
	return nil
}

// withDefaults returns o with the zero values replaced that stand for something else.
func (o Options) withDefaults() Options {
	processors := runtime.GOMAXPROCS(0)
	if o.Shards == 0 {
		o.Shards = min(processors, maxShards)
	}
	if o.Backlog == 0 {
		o.Backlog = 1 << 20
	}
	if o.TotalBacklog == 0 {
		o.TotalBacklog = 256 << 20
	}
	if o.Replays == 0 {
		o.Replays = 4 * processors
	}
	if o.Metrics == nil {
		o.Metrics = noMetrics{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
