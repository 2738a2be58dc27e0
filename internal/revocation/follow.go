package revocation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"
)

// maxPause bounds the pause after a failure, which doubles each time.
const maxPause = 10 * time.Second

// Run follows the log until ctx ends, and returns nil. A source that fails is logged once, unless Load has just told its caller, and
// asked again less and less often; the list stays as it is meanwhile. It can be called again once it has returned.
func (l *List) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	failures := 0
	if l.reported.Load() {
		failures = 1
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-l.poked:
		}
		err := l.read(ctx)
		if ctx.Err() != nil {
			return nil
		}
		l.forget()
		failures = l.report(ctx, err, failures)
		timer.Reset(l.pause(err, failures))
	}
}

// report logs the beginning and the end of an outage, and returns the number of failures in a row.
func (l *List) report(ctx context.Context, err error, failures int) int {
	switch {
	case err == nil && failures > 0:
		l.opts.Logger.LogAttrs(ctx, slog.LevelInfo, "the revocation log can be read again", slog.String("source", l.opts.Name))
	case err != nil && failures == 0:
		l.opts.Logger.LogAttrs(ctx, slog.LevelError,
			"the revocation log cannot be read: what is revoked from now on goes unnoticed until it can",
			slog.String("source", l.opts.Name), slog.String("error", err.Error()))
	}
	if err == nil {
		return 0
	}
	return failures + 1
}

// pause is how long to wait before the log is read again.
func (l *List) pause(err error, failures int) time.Duration {
	if err == nil {
		return l.opts.Every
	}
	limit := max(maxPause, l.opts.Every)
	pause := min(l.opts.Every<<min(failures, 10), limit)
	if later, ok := errors.AsType[*LaterError](err); ok {
		pause = min(max(pause, later.After), limit)
	}
	// Hubs that lost the same source should not come back at the same moment.
	return pause - rand.N(pause/4+1) //nolint:gosec // spreads load, and keeps nothing secret
}

// read reads what is new in the log, through to its end.
func (l *List) read(ctx context.Context) error {
	l.reading.Lock()
	defer l.reading.Unlock()
	fresh, err := l.resume(ctx)
	for err == nil && len(fresh) > 0 {
		if err = l.apply(ctx, fresh); err == nil {
			fresh, err = l.page(ctx, l.last.Seq)
		}
	}
	if err != nil {
		return err
	}
	l.opts.Metrics.RevocationsRead(l.opts.Name, l.opts.Now())
	return nil
}

// resume returns the entries after the last one that was read, or from the beginning when that is not in the log any more. The
// caller holds reading.
func (l *List) resume(ctx context.Context) ([]Entry, error) {
	if l.last.Seq == 0 || l.setBack() {
		l.last = Entry{}
		return l.page(ctx, 0)
	}
	page, err := l.page(ctx, l.last.Seq-1)
	if err != nil {
		return nil, err
	}
	if len(page) > 0 && page[0].equal(&l.last) {
		l.strayed = false
		if len(page) > 1 {
			return page[1:], nil
		}
		return nil, nil
	}
	// An entry whose time is over may be gone because the log was tidied up. Any other one never goes by itself.
	if l.opts.Now().Before(l.last.Until) && !l.strayed {
		l.strayed = true
		l.opts.Logger.LogAttrs(ctx, slog.LevelWarn,
			"the revocation log does not go on from where it was read: it is read from its beginning, and what is known stays in force",
			slog.String("source", l.opts.Name), slog.Int64("position", l.last.Seq))
	}
	l.last = Entry{}
	return l.page(ctx, 0)
}

// setBack tells whether the clock was ahead, so that something was forgotten too early. What is read from the beginning makes up for it.
func (l *List) setBack() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.opts.Now().Before(l.gone) {
		return false
	}
	l.gone = time.Time{}
	return true
}

// page returns the next entries after seq.
func (l *List) page(ctx context.Context, seq int64) ([]Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	page, err := l.opts.Source.Since(ctx, seq, pageEntries)
	if err != nil {
		return nil, fmt.Errorf("read revocations after %d: %w", seq, err)
	}
	for i := range page {
		if page[i].Seq <= seq {
			return nil, fmt.Errorf("%w: entry %d follows %d", ErrSource, page[i].Seq, seq)
		}
		seq = page[i].Seq
	}
	return page, nil
}

// apply puts entries into force, then closes the streams they end. The caller holds reading.
func (l *List) apply(ctx context.Context, entries []Entry) error {
	batch, err := l.enter(ctx, entries)
	if batch.size() > 0 && l.opts.Close != nil {
		closed := l.opts.Close(func(t Token) bool { return batch.revoked(&t) })
		l.opts.Metrics.StreamsRevoked(l.opts.Name, closed)
		l.opts.Logger.LogAttrs(ctx, slog.LevelDebug, "revocations applied",
			slog.String("source", l.opts.Name), slog.Int64("position", l.last.Seq), slog.Int("streams_closed", closed))
	}
	return err
}

// enter puts entries into the index and returns those that say anything new.
func (l *List) enter(ctx context.Context, entries []Entry) (*index, error) {
	now, batch := l.opts.Now(), &index{}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() {
		l.opts.Metrics.RevocationsKnown(l.opts.Name, l.index.size())
		l.opts.Metrics.RevocationsApplied(l.opts.Name, l.last.Seq)
	}()
	for i := range entries {
		e := &entries[i]
		k, known := kindOf(e.Kind)
		switch {
		case !known:
			l.logUnknownKind(ctx, e)
		case e.Until.Before(now): // nothing it could revoke is left
			l.gone = later(l.gone, e.Until)
		case l.index.held() >= l.opts.MaxEntries: // it is asked for again, and there may be room then
			return batch, fmt.Errorf("%w: more than %d", ErrTooMany, l.opts.MaxEntries)
		case l.index.add(e, k):
			batch.add(e, k)
		}
		l.last = *e
	}
	return batch, nil
}

// logUnknownKind logs the first entry of an unknown kind: the authorization server is newer, and revokes something this hub cannot see.
func (l *List) logUnknownKind(ctx context.Context, e *Entry) {
	if l.strange {
		return
	}
	l.strange = true
	l.opts.Logger.LogAttrs(ctx, slog.LevelError, "the revocation log has entries of a kind that is not understood: they revoke nothing here",
		slog.String("source", l.opts.Name), slog.Int64("position", e.Seq))
}

// forget removes what has lost its meaning.
func (l *List) forget() {
	now := l.opts.Now()
	for more := true; more; {
		l.mu.Lock()
		var last time.Time
		last, more = l.index.forget(now, forgetAtOnce)
		l.gone = later(l.gone, last)
		l.opts.Metrics.RevocationsKnown(l.opts.Name, l.index.size())
		l.mu.Unlock()
	}
}
