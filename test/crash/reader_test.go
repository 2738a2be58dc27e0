package crash_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/cinnabar-hub/cinnabar/test/harness"
)

// gate is open while the hub runs. Safe for concurrent use.
type gate struct {
	mu         sync.Mutex
	ch         chan struct{} // closed while open
	generation int
}

func newGate() *gate { return &gate{ch: make(chan struct{})} }

// open begins a generation, and gives it.
func (g *gate) open() (generation int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.generation++
	close(g.ch)
	return g.generation
}

// isOpen says whether the hub of a generation runs. The gate is shut before that hub is killed, so what fails while it is open is
// the hub's fault.
func (g *gate) isOpen(generation int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.ch:
		return g.generation == generation
	default:
		return false
	}
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ch = make(chan struct{})
}

func (g *gate) wait(ctx context.Context) (generation int, err error) {
	g.mu.Lock()
	ch := g.ch
	g.mu.Unlock()
	select {
	case <-ch:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.generation, nil
}

// reader reads with an EventSource's rules: when its stream ends it connects again, with the last id that it has seen.
type reader struct {
	name   string
	query  string // matchers
	token  string // empty: anonymous
	last   string // the id at which it stops
	cursor string
	seen   []string
	opens  int // streams it had

	opened func(generation int) // told of each stream
}

// run reads until the last update has come. Whatever it returns is final.
func (r *reader) run(ctx context.Context, c *http.Client, hub string, g *gate) error {
	r.cursor = "earliest"
	for {
		generation, err := g.wait(ctx)
		if err != nil {
			return fmt.Errorf("%s has read %d updates and waits for more: %w", r.name, len(r.seen), err)
		}
		done, err := r.read(ctx, c, hub, g, generation)
		if done || err != nil {
			return err
		}
	}
}

// errLoss says that the hub did not resume where the reader was.
var errLoss = errors.New("the hub did not know the reader's cursor")

// read reads one stream to its end, and says whether the last update has come. That the hub went away is no error.
func (r *reader) read(ctx context.Context, c *http.Client, hub string, g *gate, generation int) (done bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, hub+"?"+r.query, http.NoBody)
	if err != nil {
		return false, err
	}
	req.Header.Set("Last-Event-ID", r.cursor)
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	resp, err := c.Do(req)
	if err != nil {
		if ctx.Err() == nil && g.isOpen(generation) {
			return false, fmt.Errorf("%s has no answer from a hub that was not killed: %w", r.name, err)
		}
		return false, nil // the hub is gone; the gate says when it is back
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return false, fmt.Errorf("%s: status %d", r.name, resp.StatusCode)
	}
	if got := resp.Header.Get("Mercure-Last-Event-ID"); got != r.cursor {
		return false, fmt.Errorf("%s resumed from %q, asked for %q: %w", r.name, got, r.cursor, errLoss)
	}
	r.opens++
	r.opened(generation)
	var broken error
	_ = harness.ReadEvents(resp.Body, func(e harness.Event) bool { // its error: the hub is gone
		r.cursor = e.ID
		if e.ID == r.last {
			done = true
			return false
		}
		r.seen = append(r.seen, e.ID)
		if e.Data != data(e.ID) {
			broken = fmt.Errorf("%s: the data of %s is not what was published", r.name, e.ID)
		}
		return broken == nil
	})
	return done, broken
}
