package segments

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

// hollowShare is the share of a segment's records, one in so many, from which on subscription events that are not kept are worth writing
// it again.
const hollowShare = 1024

// hollowAll makes hollow what has to be, oldest first. It goes on with the next segment when one cannot be read or written.
func (l *Log) hollowAll(ctx context.Context) error {
	var failed error
	for _, x := range l.extents() {
		if err := l.calls.MayGoOn(ctx); err != nil {
			return errors.Join(failed, err)
		}
		if l.hollowable(x.segment) {
			failed = errors.Join(failed, l.makeHollow(ctx, x))
		}
	}
	return failed
}

// hollowable tells whether a segment holds subscription events enough, and those after it as many as are kept.
func (l *Log) hollowable(s *segment) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	i, ok := l.number(s.base)
	return ok && l.segments[i] == s && s.worthwhile() && l.outlived(i)
}

// worthwhile tells whether a segment can be made hollow, and whether that spares something. The caller holds the log's lock.
func (s *segment) worthwhile() bool { return s.live()*hollowShare > s.count && !s.unreadable.Load() }

// outlived tells whether the segments after one hold as many subscription events as are kept. That one is full then. The caller holds the lock.
func (l *Log) outlived(i int) bool {
	if l.o.MaxSubscriptionEvents == 0 {
		return false
	}
	n := 0
	for j := len(l.segments) - 1; j > i && n < l.o.MaxSubscriptionEvents; j-- {
		n += l.segments[j].live()
	}
	return n >= l.o.MaxSubscriptionEvents
}

// reclaimable returns how many bytes will be given back when all is hollow that has to be. What has failed does not count. The caller holds the lock.
func (l *Log) reclaimable() (bytes int64) {
	if l.o.MaxSubscriptionEvents == 0 {
		return 0
	}
	n := 0
	for _, s := range slices.Backward(l.segments) {
		if n >= l.o.MaxSubscriptionEvents && s.worthwhile() && !s.stubborn.Load() {
			bytes += s.spare
		}
		n += s.live()
	}
	return bytes
}

// makeHollow writes a full segment again, with hollow records in the place of subscription events, to a file of another name, and puts it in the old
// one's place. That one is removed when nobody reads it any more, like one that was trimmed. So nobody waits for anything, and whatever
// happens in between, one of the two is whole, with an index of its own or none.
func (l *Log) makeHollow(ctx context.Context, x extent) error {
	l.sealing.Lock() // the janitor may be at it, and Compact
	defer l.sealing.Unlock()
	if !l.hold(&x) {
		return nil
	}
	s := x.segment
	defer l.release(s)
	if s.hollow {
		return nil
	}
	err := l.writeAndReplace(ctx, s)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if errors.Is(err, history.ErrCorrupt) {
		s.unreadable.Store(true) // reading all of it again would not help
	}
	if !s.stubborn.Swap(true) {
		l.o.Logger.Warn("history segment still holds subscription events that are not kept, and takes more space than it should",
			slog.String("segment", s.name), slog.String("error", err.Error()))
	}
	return fmt.Errorf("make %s hollow: %w", s.name, err)
}

// errNotRemoved says that a hollow segment cannot be made because an earlier one, in which nobody could trust, has not been removed yet.
var errNotRemoved = errors.New("what an earlier attempt has left is still there")

func (l *Log) writeAndReplace(ctx context.Context, s *segment) error {
	l.mu.RLock()
	left := slices.ContainsFunc(l.trimmed, func(x *segment) bool { return x.name == hollowName(s.base) })
	l.mu.RUnlock()
	if left {
		return errNotRemoved
	}
	h, err := l.writeHollow(ctx, s)
	if err != nil {
		return errors.Join(err, l.removeIfThere(hollowName(s.base)+tempSuffix))
	}
	if err := l.install(h.name+tempSuffix, h.name); err != nil {
		return errors.Join(err, l.removeIfThere(h.name+tempSuffix))
	}
	if err = l.folder.Sync(); err == nil { // before the old one can go
		h.file, err = l.folder.Open(h.name)
	}
	l.replace(s, h, err)
	return err
}

// writeHollow makes the file that takes a segment's place, under a passing name, and its index. The caller keeps the segment open.
func (l *Log) writeHollow(ctx context.Context, s *segment) (*segment, error) {
	h := &segment{
		base: s.base, name: hollowName(s.base), hollow: true, header: s.header, seed: s.seed, key: s.key, size: headerSize, growing: newGrowing(),
	}
	temp := h.name + tempSuffix
	if err := l.removeIfThere(temp); err != nil {
		return nil, err
	}
	f, err := l.folder.Create(temp)
	if err != nil {
		return nil, err
	}
	err = l.copyHollow(ctx, s, h, f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	h.index, err = newSealed(h.growing.image(h), h)
	h.growing = nil
	return h, err
}

// copyHollow writes the header and the records of s to the file of h.
func (l *Log) copyHollow(ctx context.Context, s, h *segment, f file) error {
	out, seed := h.header.encode()
	written := int64(0)
	r := recordReader{file: s.file, seed: seed, next: headerSize, end: s.size, want: scanBytes}
	for n := range s.count { // neither number nor size of a full segment change
		p := s.base + history.Position(n)
		v, err := r.read()
		if err == nil && v.position != p {
			err = recordError("position out of order")
		}
		if err != nil {
			return s.damaged(&r, p, err)
		}
		if v.subscription {
			start := len(out)
			out = appendRecord(out, seed, v.stamp, &history.Record{Subscription: true})
			h.add(hollow, 0, v.millis, len(out)-start, 0, nil)
		} else {
			out = append(out, r.buf[r.pos-v.size:r.pos]...)
			h.add(update, l.hash(h.key, v.id), v.millis, v.size, v.topics, v.rest)
		}
		if len(out) < backupBytes && n < s.count-1 {
			continue
		}
		if err := l.calls.MayGoOn(ctx); err != nil {
			return err
		}
		if _, err := f.WriteAt(out, written); err != nil {
			return err
		}
		written += int64(len(out))
		out = out[:0]
	}
	return nil
}

// replace puts a hollow segment in the place of one. If that has been trimmed meanwhile, or there was an error, the hollow one is removed instead,
// before any later segment is: left alone, it would follow a gap. The caller keeps the segment open.
func (l *Log) replace(s, h *segment, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch i, ok := l.number(s.base); {
	case !ok:
		h.trimmed.Store(true)
		l.trimmed = slices.Insert(l.trimmed, slices.Index(l.trimmed, s)+1, h)
	case err != nil:
		h.trimmed.Store(true)
		l.trimmed = append(l.trimmed, h)
	default:
		s.trimmed.Store(true)
		l.segments[i] = h
		l.trimmed = append(l.trimmed, s)
		l.bytes += h.size - s.size - s.indexed
		l.trim()
	}
}
