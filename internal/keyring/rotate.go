package keyring

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/rar"
)

// Defaults of a rotation.
const (
	// DefaultOverlap is how long a new key is published before it signs: longer than verifiers cache a key set.
	DefaultOverlap = 10 * time.Minute
	// DefaultMaxTokenLife is the life of the longest token that anybody mints.
	DefaultMaxTokenLife = 24 * time.Hour
	// keepMargin is how much longer than the longest token life a retired key is accepted: a server may sign with it for a moment
	// more, and clocks differ.
	keepMargin = 10 * time.Minute
	// keepGone is how long a key that is accepted no more is still listed.
	keepGone = 24 * time.Hour
	// maxPublished bounds the set: verifiers refuse one that is much longer, and with it every token.
	maxPublished = 48
	// rotateAttempts bounds the races with other processes that change the keys too. Each lost race is a change that somebody made.
	rotateAttempts = 20
)

// Errors of Rotate.
var (
	// ErrRotation says that the options of a rotation contradict each other.
	ErrRotation = errors.New("keyring: cannot rotate so")
	// ErrCrowded says that so many earlier keys are still accepted that verifiers would refuse a set with more.
	ErrCrowded = errors.New("keyring: too many earlier keys are still accepted")
)

// RotateOptions says how to replace the signing keys.
type RotateOptions struct {
	// Overlap is how long the new keys are published before they sign; 0 means DefaultOverlap. An immediate rotation has none.
	Overlap time.Duration
	// MaxTokenLife is the life of the longest token signed with the keys there are; 0 means DefaultMaxTokenLife.
	MaxTokenLife time.Duration
	// Immediately makes the new keys sign at once and retires all others, planned ones too: for an emergency. Verifiers that
	// cache the set refuse the new tokens until they read it again.
	Immediately bool
	// Revoke, with Immediately, withdraws the old keys at once, so that every token signed with them is refused.
	Revoke bool
	// Algorithm is that of the new keys: ES256, EdDSA or RS256; empty means that of the ring.
	Algorithm string
}

func (o RotateOptions) withDefaults() (RotateOptions, error) {
	if o.Overlap == 0 {
		o.Overlap = DefaultOverlap
	}
	if o.MaxTokenLife == 0 {
		o.MaxTokenLife = DefaultMaxTokenLife
	}
	switch {
	case o.Overlap < 0 || o.MaxTokenLife < 0:
		return o, fmt.Errorf("%w: negative durations", ErrRotation)
	case o.Revoke && !o.Immediately:
		return o, fmt.Errorf("%w: old keys are withdrawn by an immediate rotation only", ErrRotation)
	}
	if o.Immediately {
		o.Overlap = 0
	}
	return o, nil
}

// Rotate gives every family a new key. The new key is published now and signs after the overlap; at that instant the one that signs
// today retires, and it is accepted until its last token has expired. A family whose new key waits already is left as it is, unless the
// rotation is immediate: so several processes that rotate at once make one key for each family. Rotate returns the keys it made,
// without their private parts; none when all families wait already.
//
// The change is one write of the store: it happens whole or, on an error, not at all. The ring has it when Rotate returns. Errors wrap
// ErrRotation for options that make no sense, ErrCrowded when it was called too often of late, and ErrConflict when other processes changed the keys all the time.
func (r *Ring) Rotate(ctx context.Context, o RotateOptions) ([]Entry, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	var made []Entry
	for range rotateAttempts {
		if made, err = r.rotate(ctx, o); !errors.Is(err, ErrConflict) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("rotate keys: %w", err)
	}
	if err := r.Reload(ctx); err != nil {
		return nil, fmt.Errorf("rotate keys: %w", err)
	}
	for i := range made {
		made[i].Private = nil
	}
	return made, nil
}

// rotate is one attempt.
func (r *Ring) rotate(ctx context.Context, o RotateOptions) ([]Entry, error) {
	entries, version, err := r.store.LoadKeys(ctx, r.issuer)
	if err != nil {
		return nil, fmt.Errorf("load keys: %w", err)
	}
	now := r.now().UTC().Truncate(time.Millisecond) // as stores keep times, so that one key retires in the instant the next one signs
	var made []Entry
	for _, family := range families() {
		at, due := turnover(entries, family, now, o)
		if !due {
			continue
		}
		next, err := r.generate(family, o.Algorithm, now)
		if err != nil {
			return nil, err
		}
		next.ActivatesAt = at
		made = append(made, next)
		for i := range entries {
			if entries[i].Actions == family {
				entries[i] = retire(entries[i], now, at, o)
			}
		}
	}
	if len(made) == 0 {
		return nil, nil
	}
	if n := published(entries, now) + len(made); n > maxPublished {
		return nil, fmt.Errorf("%w: there would be %d, at most %d are published", ErrCrowded, n, maxPublished)
	}
	entries = slices.DeleteFunc(entries, func(e Entry) bool {
		return !e.ExpiresAt.IsZero() && now.Sub(e.ExpiresAt) >= keepGone
	})
	if err := r.store.SaveKeys(ctx, r.issuer, version, append(entries, made...)); err != nil {
		return nil, fmt.Errorf("save keys: %w", err)
	}
	return made, nil
}

// published counts the keys that are not gone.
func published(entries []Entry, now time.Time) int {
	n := 0
	for _, e := range entries {
		if e.State(now) != Gone {
			n++
		}
	}
	return n
}

// turnover says when a new key of the family takes over, and whether it should have one.
func turnover(entries []Entry, family rar.ActionSet, now time.Time, o RotateOptions) (at time.Time, due bool) {
	signs, waits := false, false
	for _, e := range entries {
		if e.Actions == family {
			state := e.State(now)
			signs, waits = signs || state == Active, waits || state == Next
		}
	}
	switch {
	case o.Immediately || !signs: // where nothing signs, waiting helps nobody
		return now, true
	case waits:
		return time.Time{}, false
	}
	return now.Add(o.Overlap), true
}

// retire ends the life of a key whose successor signs from at on. What has retired keeps its plan.
func retire(e Entry, now, at time.Time, o RotateOptions) Entry {
	if o.Revoke {
		if e.ExpiresAt.IsZero() || e.ExpiresAt.After(at) {
			e.ExpiresAt = at
		}
		if e.RetiresAt.IsZero() || e.RetiresAt.After(at) {
			e.RetiresAt = at
		}
		return e
	}
	if state := e.State(now); state == Retiring || state == Gone {
		return e
	}
	e.RetiresAt = at
	if end := at.Add(o.MaxTokenLife + keepMargin); e.ExpiresAt.Before(end) {
		e.ExpiresAt = end
	}
	return e
}

// Entries returns all keys there are, those that are gone but not forgotten too, in order of their activation, without their private
// parts. The caller owns the slice.
func (r *Ring) Entries() []Entry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	entries := make([]Entry, 0, len(r.keys))
	for _, k := range r.keys {
		e := k.entry
		e.Private = nil
		entries = append(entries, e)
	}
	return entries
}
