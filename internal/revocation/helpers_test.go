package revocation_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cinnabar-hub/cinnabar/internal/revocation"
)

const (
	issuer = "https://auth.example.com"
	other  = "https://other.example.com"
)

// start is when the tests' entries and tokens are made. The lists' clock is the bubble's.
func start() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// journal is a Source that can be written, spoilt and repaired.
type journal struct {
	mu      sync.Mutex
	entries []revocation.Entry
	most    int // entries per page; 0: as asked
	err     error
	asked   []int64
	hook    func() // called for each question, without the lock
}

func (j *journal) Since(_ context.Context, seq int64, limit int) ([]revocation.Entry, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.hook != nil {
		j.mu.Unlock()
		j.hook()
		j.mu.Lock()
	}
	j.asked = append(j.asked, seq)
	if j.err != nil {
		return nil, j.err
	}
	if j.most > 0 {
		limit = min(limit, j.most)
	}
	var out []revocation.Entry
	for _, e := range j.entries {
		if e.Seq > seq && len(out) < limit {
			out = append(out, e)
		}
	}
	return out, nil
}

// add appends entries for tokens with the ids, that last an hour.
func (j *journal) add(ids ...string) {
	for _, id := range ids {
		j.append(revocation.Entry{
			Issuer: issuer, Kind: revocation.KindToken, Value: id, IssuedBefore: start(), Until: start().Add(time.Hour),
		})
	}
}

// append gives an entry the next number.
func (j *journal) append(e revocation.Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.Seq = 1
	if n := len(j.entries); n > 0 {
		e.Seq = j.entries[n-1].Seq + 1
	}
	j.entries = append(j.entries, e)
}

// change changes the journal in any way.
func (j *journal) change(f func(*journal)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f(j)
}

func (j *journal) questions() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.asked)
}

// closer is what a list closes streams with: it has one stream for each token.
type closer struct {
	mu     sync.Mutex
	open   []revocation.Token
	calls  int
	closed []string // ids
}

func (c *closer) close(match func(revocation.Token) bool) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	before := len(c.open)
	c.open = slices.DeleteFunc(c.open, func(t revocation.Token) bool {
		if !match(t) {
			return false
		}
		c.closed = append(c.closed, t.ID)
		return true
	})
	return before - len(c.open)
}

func (c *closer) state() (calls int, closed []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls, slices.Clone(c.closed)
}

// counts is a revocation.Metrics.
type counts struct {
	mu      sync.Mutex
	source  string
	known   int
	applied int64
	read    time.Time
	revoked int
}

func (c *counts) set(source string, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.source = source
	f()
}

func (c *counts) RevocationsKnown(s string, n int)       { c.set(s, func() { c.known = n }) }
func (c *counts) RevocationsApplied(s string, seq int64) { c.set(s, func() { c.applied = seq }) }
func (c *counts) RevocationsRead(s string, at time.Time) { c.set(s, func() { c.read = at }) }
func (c *counts) StreamsRevoked(s string, n int)         { c.set(s, func() { c.revoked += n }) }

func (c *counts) get() counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return counts{source: c.source, known: c.known, applied: c.applied, read: c.read, revoked: c.revoked}
}

// env is a list and what it works with.
type env struct {
	*revocation.List

	journal *journal
	closer  *closer
	counts  *counts
	log     *bytes.Buffer // to be read while nothing runs
}

func newEnv(tb testing.TB, change func(*revocation.Options)) *env {
	tb.Helper()
	e := &env{journal: &journal{}, closer: &closer{}, counts: &counts{}, log: &bytes.Buffer{}}
	o := revocation.Options{
		Source: e.journal, Name: "the log", Close: e.closer.close, Metrics: e.counts,
		Logger: slog.New(slog.NewTextHandler(e.log, nil)), Now: start,
	}
	if change != nil {
		change(&o)
	}
	list, err := revocation.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	e.List = list
	return e
}

// load reads the log.
func (e *env) load(tb testing.TB) {
	tb.Helper()
	if err := e.Load(context.Background()); err != nil {
		tb.Fatalf("Load = %v", err)
	}
}

// revoked tells whether the token with the id is revoked.
func (e *env) revoked(id string) bool { return e.Revoked(tokenWith(id)) }

// want compares which of the tokens are revoked.
func (e *env) want(tb testing.TB, want map[string]bool) {
	tb.Helper()
	for id, revoked := range want {
		if got := e.revoked(id); got != revoked {
			tb.Errorf("Revoked(%s) = %v, want %v", id, got, revoked)
		}
	}
}

// logged returns the number of log lines at that level that contain text.
func (e *env) logged(level, text string) int {
	n := 0
	for line := range strings.Lines(e.log.String()) {
		if strings.Contains(line, "level="+level) && strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// tokenWith is a token of the issuer that was issued a minute before start.
func tokenWith(id string) revocation.Token {
	return revocation.Token{Issuer: issuer, ID: id, IssuedAt: start().Add(-time.Minute)}
}
