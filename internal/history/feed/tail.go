package feed

import (
	"context"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// batchBytes bounds the entries handed to a tail's function at a time.
const batchBytes = 4 << 20

// tail is one running Tail. The feed's lock protects it, except for batch.
type tail struct {
	position history.Position // of the last entry delivered
	counted  history.Position // entries after this one count as lag
	pending  int64            // lag in bytes
	batch    []history.Entry  // belongs to the tail's goroutine
}

// Tail implements history.Log.Tail. read returns pages of the store; it is called
// without the feed's lock when the tail lags behind the recent entries.
func (f *Feed) Tail(
	ctx context.Context, after history.Position,
	read func(context.Context, history.Query) (history.Page, error),
	fn func([]history.Entry) error,
) error {
	t := f.join(after)
	defer f.leave(t)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		wait, behind, err := f.next(t)
		switch {
		case err != nil:
			return err
		case wait != nil:
			select {
			case <-wait:
			case <-ctx.Done():
			}
			continue
		}
		var through history.Position
		if behind {
			page, err := read(ctx, history.Query{After: t.position, MaxBytes: batchBytes, Select: history.Selection{All: true}})
			if err != nil {
				return err
			}
			t.batch, through = append(t.batch, page.Entries...), page.Through
		} else {
			through = t.batch[len(t.batch)-1].Position
		}
		if len(t.batch) > 0 {
			if err := fn(t.batch); err != nil {
				return err
			}
		}
		f.delivered(t, through)
	}
}

// join registers a tail.
func (f *Feed) join(after history.Position) *tail {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &tail{position: after, counted: max(after, f.last)}
	f.tails[t] = struct{}{}
	return t
}

func (f *Feed) leave(t *tail) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.tails, t)
	f.evict()
	f.room.fire()
}

// next fills the tail's batch from the recent entries, says that it is behind them, or
// returns a channel to wait on.
func (f *Feed) next(t *tail) (wait <-chan struct{}, behind bool, err error) {
	clear(t.batch)
	t.batch = t.batch[:0]
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return nil, false, history.ErrClosed
	case t.position >= f.last:
		return f.more.wait(), false, nil
	case t.position < f.recent.floor:
		return nil, true, nil
	}
	t.batch = f.recent.after(t.batch, t.position, batchBytes)
	return nil, false, nil
}

// delivered moves the tail behind its batch.
func (f *Feed) delivered(t *tail, through history.Position) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t.position = max(t.position, through)
	for i := range t.batch {
		if t.batch[i].Position > t.counted {
			t.pending -= int64(t.batch[i].Size())
		}
	}
	f.evict()
	f.room.fire()
}
