package revocation

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// DefaultEvery is how often a log is asked for new entries.
	DefaultEvery = 250 * time.Millisecond
	// DefaultMaxEntries bounds the entries in force and their extensions.
	DefaultMaxEntries = 1 << 20
	// readTimeout bounds one question to the source.
	readTimeout = 10 * time.Second
	// pageEntries is how many entries are asked for at a time.
	pageEntries = 1000
	// forgetAtOnce is how many entries are forgotten while those who ask the list wait.
	forgetAtOnce = 1000
)

// Options configures a List.
type Options struct {
	// Source is the log; required.
	Source Source
	// Name says in log lines and metrics which log it is, for example an issuer.
	Name string
	// Every is how often the log is asked for new entries; 0 means DefaultEvery.
	Every time.Duration
	// MaxEntries bounds the entries in force, and thereby memory: a log with more counts as failing. One that extends another counts
	// beside it until the other's time is over. 0 means DefaultMaxEntries.
	MaxEntries int
	// Close ends the streams of the tokens for which match returns true, and returns their number. It is called from one goroutine
	// at a time, once for all entries that were read together, after they have come into force. match may be called from several
	// goroutines at once, and until Close has returned. Nil ends nothing.
	Close func(match func(Token) bool) int
	// Metrics counts; nil counts nothing.
	Metrics Metrics
	// Logger gets outages of the source, once each; nil means none.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Validate reports what makes o unusable.
func (o Options) Validate() error {
	switch {
	case o.Source == nil:
		return errors.New("revocation: Options.Source is required")
	case o.Every < 0:
		return errors.New("revocation: Options.Every must not be negative")
	case o.MaxEntries < 0:
		return errors.New("revocation: Options.MaxEntries must not be negative")
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Every == 0 {
		o.Every = DefaultEvery
	}
	if o.MaxEntries == 0 {
		o.MaxEntries = DefaultMaxEntries
	}
	if o.Metrics == nil {
		o.Metrics = noMetrics{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// List knows which tokens are revoked at this moment. It is safe for concurrent use.
type List struct {
	opts Options
	// poked has capacity 1 and is never closed; a token in it asks Run to read the log now.
	poked chan struct{}

	// reading is held while the log is read, and protects what follows up to mu.
	reading sync.Mutex
	last    Entry // the last one that was read; Seq is 0 when there is none
	strayed bool  // the log was found to be another one, and that has been logged
	strange bool  // an entry of an unknown kind has been logged

	reported atomic.Bool // Load has returned the error of an outage

	mu    sync.RWMutex // protects what follows; taken after reading
	index index
	gone  time.Time // the latest Until of what was forgotten or left out
}

// New returns an empty list, or the error of Options.Validate.
func New(o Options) (*List, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &List{opts: o.withDefaults(), poked: make(chan struct{}, 1)}, nil
}

// Revoked tells whether t is revoked. It answers from memory.
func (l *List) Revoked(t Token) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.index.revoked(&t)
}

// Load reads the log through to its end. A hub must not serve before it has: what was revoked yesterday is revoked today.
// The error is the source's, ErrSource, ErrTooMany or ctx's.
func (l *List) Load(ctx context.Context) error {
	err := l.read(ctx)
	l.reported.Store(err != nil)
	return err
}

// Poke has Run read the log now.
func (l *List) Poke() {
	select {
	case l.poked <- struct{}{}:
	default:
	}
}
