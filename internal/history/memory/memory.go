package memory

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
	"github.com/cinnabar-hub/cinnabar/internal/history/calls"
	"github.com/cinnabar-hub/cinnabar/internal/history/feed"
)

// Defaults of Options.
const (
	DefaultMaxEvents = 100_000
	DefaultMaxBytes  = 128 << 20
	// DefaultMaxSubscriptionEvents bounds those to a tenth of the updates.
	DefaultMaxSubscriptionEvents = 10_000
)

// Options configure a Log.
type Options struct {
	// MaxEvents bounds the number of updates; 0 means DefaultMaxEvents, negative no limit.
	MaxEvents int
	// MaxSubscriptionEvents bounds the number of subscription events; 0 means DefaultMaxSubscriptionEvents, negative no limit.
	MaxSubscriptionEvents int
	// MaxBytes bounds the entries by their Size; 0 means DefaultMaxBytes, negative no limit.
	MaxBytes int64
	// MaxAge bounds the age of entries; 0 means no limit.
	MaxAge time.Duration
	// TailLagBytes bounds what a running Tail may lag behind before Append waits; 0
	// means 64 MiB.
	TailLagBytes int64
	// AppendPatience is how long Append waits for a lagging Tail; 0 means 5 s.
	AppendPatience time.Duration
}

// Validate returns an error for values that make no sense.
func (o Options) Validate() error {
	if o.MaxAge < 0 || o.TailLagBytes < 0 || o.AppendPatience < 0 {
		return errors.New("memory: negative limit")
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.MaxEvents == 0 {
		o.MaxEvents = DefaultMaxEvents
	}
	if o.MaxSubscriptionEvents == 0 {
		o.MaxSubscriptionEvents = DefaultMaxSubscriptionEvents
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	return o
}

// Log is a history.Log in memory.
type Log struct {
	o     Options
	epoch string
	feed  *feed.Feed
	calls calls.Running // Close waits for them

	// mu protects all fields below.
	mu        sync.Mutex
	ring      ring
	last      history.Position
	passed    history.Position // the newest that the limits for all entries have taken; 0 at first
	importing bool
}

var _ history.Log = (*Log)(nil)

// Open returns an empty log.
func Open(o Options) (*Log, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &Log{
		o: o.withDefaults(), epoch: rand.Text(), ring: newRing(),
		feed: feed.New(feed.Options{
			BufferBytes: -1, KeepUnread: true, LagBytes: o.TailLagBytes, Patience: o.AppendPatience,
		}, 0),
	}, nil
}

// Append implements history.Log.
func (l *Log) Append(ctx context.Context, records ...*history.Record) (history.Position, error) {
	if err := l.calls.Begin(ctx); err != nil {
		return 0, fmt.Errorf("append to memory: %w", err)
	}
	defer l.calls.Done()
	p, err := l.append(ctx, time.Time{}, records...)
	if err != nil {
		return 0, fmt.Errorf("append to memory: %w", err)
	}
	return p, nil
}

// append appends records as of some time in the past; the zero time is the present.
func (l *Log) append(ctx context.Context, at time.Time, records ...*history.Record) (history.Position, error) {
	if err := history.CheckAppend(records); err != nil {
		return 0, err
	}
	size := 0
	for _, r := range records {
		size += r.Size()
	}
	if err := l.feed.Admit(ctx, int64(size)); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); at.IsZero() || at.After(now) {
		at = now
	}
	if n := l.ring.len(); n > 0 && at.Before(l.ring.at(n-1).stored) {
		at = l.ring.at(n - 1).stored
	}
	entries := make([]history.Entry, len(records))
	for i, r := range records {
		l.last++
		entries[i] = history.Entry{Position: l.last, Record: *r}
		l.ring.push(entries[i], at)
	}
	l.trim()
	l.feed.Publish(entries)
	return l.last, nil
}

// trim enforces the limits. The caller holds the lock.
func (l *Log) trim() {
	for l.o.MaxSubscriptionEvents > 0 && l.ring.subscriptionEvents() > l.o.MaxSubscriptionEvents {
		l.ring.hollowOldest()
	}
	var oldest time.Time
	if l.o.MaxAge > 0 {
		oldest = time.Now().Add(-l.o.MaxAge)
	}
	for l.ring.len() > 0 {
		first := l.ring.at(0)
		tooMany := l.o.MaxEvents > 0 && l.ring.updates() > l.o.MaxEvents
		tooBig := l.o.MaxBytes > 0 && l.ring.len() > 1 && l.ring.bytes > l.o.MaxBytes
		tooOld := l.o.MaxAge > 0 && first.stored.Before(oldest)
		if !tooMany && !tooBig && !tooOld {
			return
		}
		l.passed = first.Position
		l.ring.pop()
	}
}

// Tail implements history.Log.
func (l *Log) Tail(ctx context.Context, after history.Position, fn func([]history.Entry) error) error {
	if err := l.calls.Begin(ctx); err != nil {
		return fmt.Errorf("tail memory: %w", err)
	}
	defer l.calls.Done()
	if after == 0 {
		l.mu.Lock()
		l.trim()
		after = l.first() - 1
		l.mu.Unlock()
	}
	if err := l.feed.Tail(ctx, after, l.replay, fn); err != nil {
		return fmt.Errorf("tail memory: %w", err)
	}
	return nil
}

// first returns the position at which the log begins. The caller holds the lock.
func (l *Log) first() history.Position { return l.passed + 1 }

// Seek implements history.Log.
func (l *Log) Seek(ctx context.Context, id string) (history.Position, error) {
	if err := l.calls.Begin(ctx); err != nil {
		return 0, fmt.Errorf("seek in memory: %w", err)
	}
	defer l.calls.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trim()
	if p, ok := l.ring.find(id); ok {
		return p, nil
	}
	return 0, fmt.Errorf("seek in memory: %w", history.ErrUnknownID)
}

// Replay implements history.Log.
func (l *Log) Replay(ctx context.Context, q history.Query) (history.Page, error) {
	if err := l.calls.Begin(ctx); err != nil {
		return history.Page{}, fmt.Errorf("replay memory: %w", err)
	}
	defer l.calls.Done()
	page, err := l.replay(ctx, q)
	if err != nil {
		return history.Page{}, fmt.Errorf("replay memory: %w", err)
	}
	return page, nil
}

func (l *Log) replay(ctx context.Context, q history.Query) (history.Page, error) {
	if q.MaxBytes <= 0 {
		q.MaxBytes = history.DefaultPageBytes
	}
	page := history.Page{Through: q.After}
	upTo := q.UpTo
	var chunk []history.Entry
	bytes, passed := 0, 0
	for {
		if err := ctx.Err(); err != nil {
			return history.Page{}, err
		}
		var err error
		chunk, upTo, err = l.chunk(chunk[:0], page.Through, upTo)
		switch {
		case err != nil && len(page.Entries) > 0:
			return page, nil // the rest was trimmed meanwhile: the next query says so
		case err != nil:
			return history.Page{}, err
		case len(chunk) == 0:
			page.Through = max(page.Through, upTo)
			return page, nil
		}
		for i := range chunk {
			page.Through = chunk[i].Position
			if !q.Select.Selects(chunk[i].Topics) {
				if passed += chunk[i].Size(); passed >= q.PassedBytes() {
					return page, nil
				}
				continue
			}
			page.Entries = append(page.Entries, chunk[i])
			if bytes += chunk[i].Size(); bytes >= q.MaxBytes {
				return page, nil
			}
		}
	}
}

// chunk copies some of the entries in (after, upTo] to dst; none means that there
// are no more. It returns upTo clipped to the head, where 0 stands for the head.
func (l *Log) chunk(dst []history.Entry, after, upTo history.Position) ([]history.Entry, history.Position, error) {
	const most = 256
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trim()
	if upTo == 0 || upTo > l.last {
		upTo = l.last
	}
	first := l.first()
	if after != 0 && after+1 < first {
		return dst, upTo, history.ErrPositionGone
	}
	for i := l.ring.from(max(after+1, first)); i < l.ring.len() && len(dst) < most; i++ {
		it := l.ring.at(i)
		if it.Position > upTo {
			break
		}
		if it.ID != "" {
			dst = append(dst, it.Entry)
		}
	}
	return dst, upTo, nil
}

// Head implements history.Log.
func (l *Log) Head(ctx context.Context) (history.Head, error) {
	if err := l.calls.Begin(ctx); err != nil {
		return history.Head{}, fmt.Errorf("head of memory: %w", err)
	}
	defer l.calls.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trim()
	h := history.Head{Epoch: l.epoch, First: l.first(), Last: l.last}
	if n := l.ring.len(); n > 0 {
		h.LastID = l.ring.at(n - 1).ID
	}
	return h, nil
}

// Ready implements history.Log.
func (l *Log) Ready(ctx context.Context) error {
	if err := l.calls.Begin(ctx); err != nil {
		return err
	}
	l.calls.Done()
	return nil
}

// Close implements history.Log. It must not be called from a Tail's function.
func (l *Log) Close() error {
	l.calls.Close(l.feed.Close)
	return nil
}
