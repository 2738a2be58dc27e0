package segments

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/history"
)

var (
	_ history.Verifier  = (*Log)(nil)
	_ history.Compacter = (*Log)(nil)
)

// Verify implements history.Verifier. It reads one segment after the other as far as each is written by then, and compares its index with
// one that it makes from the records. A segment that is trimmed before its turn is left out; one whose index has not been made yet
// has its records checked alone. A damaged index is told, not mended: Compact does that, and so does any call that needs it.
func (l *Log) Verify(ctx context.Context) (history.Verification, error) {
	if err := l.calls.Begin(ctx); err != nil {
		return history.Verification{}, fmt.Errorf("verify segments: %w", err)
	}
	defer l.calls.Done()
	var done history.Verification
	for _, x := range l.extents() {
		if err := l.verifyExtent(ctx, x, &done); err != nil {
			return done, fmt.Errorf("verify segments: %w", err)
		}
	}
	return done, nil
}

// verifyExtent checks a segment as far as it is written by now.
func (l *Log) verifyExtent(ctx context.Context, x extent, done *history.Verification) error {
	if !l.hold(&x) {
		return nil
	}
	s := x.segment
	defer l.release(s)
	l.mu.RLock()
	x.count, x.size = s.count, s.size
	index, grown := s.index, s.growing // later ones may know of more records
	l.mu.RUnlock()
	again, err := l.readAgain(ctx, x)
	if err != nil {
		return err
	}
	if err := l.compareIndex(index, grown, again); err != nil {
		return fmt.Errorf("%w: %s: %w", history.ErrCorrupt, s.name, err)
	}
	done.Segments++
	done.Events += int64(again.kept())
	done.Bytes += x.size
	if index != nil || grown != nil {
		done.Indexes++
	}
	return nil
}

// readAgain reads a segment, checks it, and makes its index.
func (l *Log) readAgain(ctx context.Context, x extent) (*segment, error) {
	s := x.segment
	again := &segment{base: s.base, name: s.name, hollow: s.hollow, header: s.header, seed: s.seed, key: s.key, file: s.file, growing: newGrowing(), size: headerSize}
	r := &recordReader{file: s.file, seed: s.seed, next: headerSize, end: x.size, want: scanBytes}
	for n := range x.count {
		p := s.base + history.Position(n)
		v, err := r.read()
		if err == nil && v.position != p {
			err = recordError("position out of order")
		}
		if err != nil {
			return nil, s.damaged(r, p, err)
		}
		again.add(v.kind(), l.hash(s.key, v.id), v.millis, v.size, v.topics, v.rest)
		if n%1024 == 0 {
			if err := l.calls.MayGoOn(ctx); err != nil {
				return nil, err
			}
		}
	}
	if again.size != x.size {
		return nil, s.damaged(r, again.last()+1, recordError("more than the records that belong there"))
	}
	return again, nil
}

// compareIndex compares the index of a segment, if it has one, with that of the records read again.
func (l *Log) compareIndex(x *sealed, grown *growing, again *segment) error {
	switch {
	case grown != nil:
		return l.compareGrown(grown, again.growing)
	case x != nil:
		return guarded(func() error {
			if !bytes.Equal(x.data, again.growing.image(again)) {
				return indexError("does not agree with the records; compact the history to have it made again")
			}
			return nil
		})
	}
	return nil
}

// comparedAtOnce is how many look-ups in the index of the segment being written are compared while appends wait.
const comparedAtOnce = 256

// compareGrown compares an index that may have grown since with that of its first records. Both number records and topics as they came,
// so what they hold is the same, and what is looked up must be found there.
func (l *Log) compareGrown(x, want *growing) error {
	l.mu.RLock()
	offsets, hashes, names, text, posts := x.offsets, x.hashes, x.names, x.text, x.posts
	l.mu.RUnlock()
	sameName := func(a, b name) bool { return a.start == b.start && a.size == b.size && a.normal == b.normal }
	if !begins(offsets, want.offsets) || !begins(hashes, want.hashes) || !begins(posts, want.posts) || !begins(text, want.text) ||
		len(names) < len(want.names) || !slices.EqualFunc(names[:len(want.names)], want.names, sameName) {
		return indexError("does not agree with the records")
	}
	for from := 0; from < max(len(want.hashes), len(want.names)); from += comparedAtOnce {
		if !l.findsAll(x, want, from, from+comparedAtOnce) {
			return indexError("does not find what it holds")
		}
	}
	return nil
}

func begins[T comparable](all, first []T) bool {
	return len(all) >= len(first) && slices.Equal(all[:len(first)], first)
}

// findsAll tells whether the index finds the wanted records and topics from one number to another.
func (l *Log) findsAll(x, want *growing, from, to int) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for n := from; n < min(to, len(want.hashes)); n++ {
		if first, ok := x.next(want.hashes[n], 0); !ok || first > n || x.hashes[first] != want.hashes[n] {
			return false
		}
	}
	for n := from; n < min(to, len(want.names)); n++ {
		at := x.newest[n]
		for at > want.newest[n] {
			at = x.posts[at-1].before
		}
		if at != want.newest[n] || x.find(string(want.nameOf(n))) != n {
			return false
		}
	}
	return true
}

// Compact implements history.Compacter. It enforces the limits, removes what they leave out, makes damaged indexes anew and
// writes missing ones. Appends do not wait for it, but for the disk that both use. It fails for a log that was opened for
// reading alone, and with history.ErrCorrupt, when all else is done, for segments that cannot be read.
func (l *Log) Compact(ctx context.Context) (history.Compaction, error) {
	if err := l.calls.Begin(ctx); err != nil {
		return history.Compaction{}, fmt.Errorf("compact segments: %w", err)
	}
	defer l.calls.Done()
	if l.o.ReadOnly {
		return history.Compaction{}, fmt.Errorf("compact segments: %w", errReading)
	}
	c := history.Compaction{Before: l.fileBytes()}
	err := l.compact(ctx)
	c.After = l.fileBytes()
	if err != nil {
		return c, fmt.Errorf("compact segments: %w", err)
	}
	return c, nil
}

func (l *Log) compact(ctx context.Context) error {
	if l.o.MaxAge > 0 {
		l.expire(time.Now())
	}
	l.mu.Lock()
	l.trim()
	l.mu.Unlock()
	l.reap()
	damage := l.hollowAll(ctx)
	for _, x := range l.extents() {
		err := l.calls.MayGoOn(ctx)
		if err == nil {
			err = l.compactSegment(ctx, x)
		}
		switch {
		case errors.Is(err, history.ErrCorrupt):
			damage = errors.Join(damage, err) // which is no reason to leave out the others
		case err != nil:
			return err
		}
	}
	l.reap()
	return damage
}

// compactSegment sees to it that a full segment has an index file, and that all of it is sound.
func (l *Log) compactSegment(ctx context.Context, x extent) error {
	if !l.hold(&x) {
		return nil
	}
	s := x.segment
	defer l.release(s)
	l.mu.RLock()
	full := s != l.active()
	l.mu.RUnlock()
	if !full {
		return nil
	}
	err := l.withIndex(ctx, s, func(x *sealed) error { return x.check(s) })
	if err != nil {
		return err
	}
	return l.seal(ctx, s)
}

// fileBytes returns the size of the files, of those too that are about to be removed.
func (l *Log) fileBytes() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	n := l.bytes
	for _, s := range l.trimmed {
		n += s.size + s.indexed
	}
	return n
}
